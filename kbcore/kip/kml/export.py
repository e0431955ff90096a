"""EXPORT: a part of the graph as a capsule, the text of UPSERTs that write the same elements into another store.

A capsule needs only the vocabulary of every store, and the pages before it: the definitions of the
types and predicates that it uses are part of it, and links are, whose two ends are. What a page needs of an earlier one
it may state again, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from kbcore.config.settings import KipLimits
from kbcore.ids import is_link_id
from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json, in_order, is_restated, link_json, node_json
from kbcore.kip.errors import RESOURCE, VERSION, refused
from kbcore.kip.kml.command_drafts import CommandDrafts
from kbcore.kip.kml.drafts import MERGED_FROM, MERGED_VALUES, UPDATED, LinkDraft
from kbcore.kip.kml.selection import selected
from kbcore.kip.paging import cursor_in, head_words, mark_of
from kbcore.kip.printer import write
from kbcore.kip.sql.projection import ValueSlice
from kbcore.limits import MAX_KIP_BYTES
from kbcore.model.concepts import PREDICATE, TYPE
from kbcore.model.graph import FORMER_KEY, Link, Node, former_ids
from kbcore.model.schema import Schema
from kbcore.text import cursor as cursors
from kbcore.view.view import View

_AGAIN: Final = "EXPORT again from the first page, without CURSOR; a capsule that was written already changes nothing."
_HINT: Final = "Export fewer elements at a time with LIMIT, and ask for the next page with CURSOR."


class ExportAnswer(msgspec.Struct, frozen=True):
    """The answer of EXPORT; ``next_cursor`` is "" on the last page."""

    result: dict[str, Any]
    next_cursor: str


def export(view: View, schema: Schema, command: s.ExportCommand, limits: KipLimits, *, now: str = "") -> ExportAnswer:
    """Return a part of the graph as a capsule. All pages are of the same seq and the same time, ``now``.

    Raises: ``KipRefused`` with the offset of the place: KIP_4002 where the capsule would be too large for one command,
    KIP_3005 for the cursor of a page since which something was written; what ``find.solutions`` raises.
    """
    mark = mark_of(view.basis.store_id, command)
    ended = _ended(view, command.cursor, mark) if command.cursor else cursors.Cursor(mark, view.seq, 0, "", now)
    last_key, now = ended.last, ended.basis
    work = CommandDrafts(view, schema, limits, now=now)
    # So many rows more as the vocabulary, which is left out, may take of them.
    spare = 1 + len(work.vocabulary.nodes) + len(work.vocabulary.links)
    page = ValueSlice(after=last_key, most=work.most(command.limit, spare))
    drafts = selected(work, command.variable, command.where, page)
    found = [one.id for one in drafts if one.is_stored and not (one.old and _is_everywhere(work, one.old))]
    ids = found[: command.limit.value] if command.limit else found
    capsule = _Capsule(work, command, last_key)
    capsule.fill(ids)
    text = capsule.text()
    if len(text.encode()) > MAX_KIP_BYTES:
        message = f"The capsule would have {len(text.encode())} bytes; one command takes {MAX_KIP_BYTES}."
        raise refused(RESOURCE, message, at=command.at, hint=_HINT)
    counts = {"concepts": len(capsule.nodes), "propositions": len(capsule.links)}
    renamed = sum(bool(former_ids(node)) for node in capsule.nodes.values())
    counts |= {"former_ids_left_out": renamed} if renamed else {}
    token = ""
    if len(ids) < len(found):
        token = cursors.encode(cursors.Cursor(mark, view.seq, 0, ids[-1], now, view.overlay_mark))
    return ExportAnswer({"capsule": text, **counts}, token)


def _ended(view: View, given: s.Text, mark: str) -> cursors.Cursor:
    """Return where the page ended that gave a cursor. Raises: ``KipRefused``."""
    cursor = cursor_in(given, mark, view.overlay_mark)
    if cursor.seq != view.seq:
        message = f"The page before spoke of seq {cursor.seq}, and the branch is at {head_words(view)}."
        raise refused(VERSION, message, at=given.at, hint=_AGAIN)
    return cursor


def _is_everywhere(work: CommandDrafts, stored: Node | Link) -> bool:
    """Return whether a stored element is one of the vocabulary and says what it says in every store."""
    core = work.core_nodes.get(stored.id) or work.core_links.get(stored.id)
    return core is not None and is_restated(element_json(core, work.names), element_json(stored, work.names))


class _Capsule:
    """The content of one page: the elements selected for it, the ends of links, their links, their definitions.

    It needs the pages before it, of which it knows only what WHERE selected: so a page costs what it contains.
    """

    def __init__(self, work: CommandDrafts, command: s.ExportCommand, last_key: str) -> None:
        self.work = work
        self.nodes: dict[str, Node] = {}
        self.links: dict[str, Link] = {}
        self._command = command
        self._last_key = last_key
        self._own: set[str] = set()
        """The concepts whose links are included: those selected for this page, and its definitions."""
        self._earlier: dict[str, bool] = {}
        """True for an element of an earlier page, as far as that was asked."""

    def fill(self, ids: Sequence[str]) -> None:
        """Take in what was selected for this page, and what belongs to it."""
        self._own = {key for key in ids if not is_link_id(key)}
        self._take(ids)
        self._join(set(self._own))
        definitions = self._definitions()
        self._own |= definitions.keys()
        self.nodes = definitions | self.nodes
        self._join(set(definitions))
        # A link that a link here leads to is stated again: of several kinds a name would not tell which is meant.
        self._take([end for link in self.links.values() for end in (link.from_id, link.to_id) if is_link_id(end)])

    def _take(self, ids: Iterable[str]) -> None:
        """Take in elements by their ids, and the ends of links, except what is in every store or an earlier page."""
        pending = list(ids)
        while pending:
            wanted = [key for key in dict.fromkeys(pending) if key not in self.nodes and key not in self.links]
            found = [one for one in self.work.view.links([key for key in wanted if is_link_id(key)]) if one.is_resolved]
            self.links |= {one.id: one for one in found}
            self.nodes |= {one.id: one for one in self.work.view.nodes([k for k in wanted if not is_link_id(k)])}
            ends = {end for link in found for end in (link.from_id, link.to_id)} - self._core.keys()
            self._look_up(ends)
            pending = sorted(end for end in ends if is_link_id(end) or not self._earlier[end])

    def _join(self, frontier: set[str]) -> None:
        """Take in the links of these elements whose other end is here, earlier or everywhere, and links about them."""
        while frontier:
            touching = self.work.view.touching(sorted(frontier))
            found = [
                one for one in touching if one.is_resolved and one.id not in self.links and one.id not in self._core
            ]
            self._look_up({key for link in found for key in (link.id, link.from_id, link.to_id)})
            new = {link.id: link for link in found if not self._earlier[link.id] and self._holds(link)}
            self.links |= new
            frontier = set(new)

    def _holds(self, link: Link) -> bool:
        """Return whether this page, an earlier one or every store has both ends of a link."""
        ends = (link.from_id, link.to_id)
        return all(
            end in self._own or end in self.links or end in self._core or self._earlier.get(end, False) for end in ends
        )

    def _look_up(self, ids: Collection[str]) -> None:
        """Find out which elements earlier pages hold: what was selected for them, and links between such elements."""
        links: dict[str, Link] = {}
        pending = [key for key in ids if key not in self._earlier and key not in self._core]
        while pending:
            selected_before = self._selected_before(pending)
            self._earlier |= {key: key in selected_before for key in pending}
            left = [key for key in pending if is_link_id(key) and key not in selected_before]
            found = {one.id: one for one in self.work.view.links(left) if one.is_resolved} if self._last_key else {}
            links |= found
            ends = {end for link in found.values() for end in (link.from_id, link.to_id)}
            pending = [key for key in ends if key not in self._earlier and key not in self._core]
        for link in in_order(links.values()):
            ends = {link.from_id, link.to_id} - self._core.keys()
            self._earlier[link.id] = all(self._earlier[end] for end in ends)

    def _selected_before(self, ids: Sequence[str]) -> set[str]:
        """Return those of these elements that WHERE selects and whose ids come up to the end of the page before."""
        before = tuple(key for key in ids if key <= self._last_key)
        if not before:
            return set()
        variable = self._command.variable
        rows = self.work.solutions(self._command.where, [variable], ValueSlice(keys=before, most=len(before)))
        return {key for row in rows if (key := row[variable.name]) is not None}

    @cached_property
    def _core(self) -> Mapping[str, Node | Link]:
        return {**self.work.core_nodes, **self.work.core_links}

    def _definitions(self) -> dict[str, Node]:
        """Return the definitions of the branch that these elements need."""
        types = {(TYPE, node.type) for node in self.nodes.values()}
        wanted = types | {(PREDICATE, link.type) for link in self.links.values()}
        return {
            key: node
            for key, node in self.work.view.definitions().items()
            if (node.type, node.fields.get("name")) in wanted
            and key not in self.nodes
            and not _is_everywhere(self.work, node)
        }

    def text(self) -> str:
        """Return the capsule as KIP."""
        return _text(self.work, [*self.nodes.values()], [*self.links.values()])


def _text(work: CommandDrafts, nodes: Sequence[Node], links: Sequence[Link]) -> str:
    if not nodes and not links:
        return ""
    names = work.names
    handles: dict[str, s.Variable] = {}
    blocks: list[s.Block] = []
    for node in sorted(nodes, key=lambda one: (one.type != TYPE, one.type != PREDICATE, one.id)):
        shown = node_json(node, names)
        shown["attributes"].pop(FORMER_KEY, None)  # only KB and documents set them
        handles[node.id] = s.Variable(f"c{len(handles) + 1}")
        identity = s.Matcher(type=s.Text(shown["type"]), name=s.Text(shown["name"]))
        blocks.append(
            s.ConceptBlock(
                handles[node.id], identity, attributes=_map(shown["attributes"]), metadata=_map(_own(shown["metadata"]))
            )
        )
    for link in in_order(links):
        shown = link_json(link)
        fact = s.WrittenLink(_end(work, link.from_id, handles), s.Text(link.type), _end(work, link.to_id, handles))
        handles[link.id] = s.Variable(f"p{len(handles) + 1}")
        attributes, metadata = _map(shown["attributes"]), _map(_own(shown["metadata"]))
        blocks.append(s.Proposition(handles[link.id], fact, attributes=attributes, metadata=metadata))
    return write(s.Upserts((s.Upsert(tuple(blocks)),)))


def _end(work: CommandDrafts, key: str, handles: Mapping[str, s.Variable]) -> s.Target:
    """Return how a capsule names the end of a link: by its handle, or as it is known in the other store."""
    if key in handles:
        return handles[key]
    draft = work.element(key, 0)
    assert draft is not None and draft.old is not None, "the ends of a resolved link exist"  # noqa: S101, PT018 - narrows the types
    if isinstance(draft, LinkDraft):
        ends = _end(work, draft.from_id, handles), _end(work, draft.to_id, handles)
        return s.WrittenLink(ends[0], s.Text(draft.type), ends[1])
    shown = element_json(draft.old, work.names)
    return s.Matcher(type=s.Text(shown["type"]), name=s.Text(shown["name"]))


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without those that KB keeps itself, but with what merges noted: ids, and what did not win."""
    noted = {MERGED_FROM, MERGED_VALUES}
    kept = {key: value for key, value in metadata.items() if key in noted or not key.startswith("_")}
    kept.pop(UPDATED, None)
    return kept


def _map(values: Mapping[str, Any]) -> s.Object | None:
    return s.Object(tuple(s.MapMember(key, s.JsonValue(value)) for key, value in values.items())) if values else None
