"""EXPORT: a part of the graph as a capsule, the text of UPSERTs that write the same elements into another store.

A capsule stands on the vocabulary that every store knows, and on the pages before it, alone: the definitions of the
types and predicates that it uses are part of it, and links are, whose two ends are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import cursor as cursors
from kbcore.concepts import PREDICATE, TYPE, VOCABULARY
from kbcore.config import KipLimits
from kbcore.ids import is_link_id
from kbcore.kip import syntax as s
from kbcore.kip.elements import element_json, in_order, link_json, node_json
from kbcore.kip.errors import RESOURCE, VERSION, refused
from kbcore.kip.kml.drafts import LinkDraft
from kbcore.kip.kml.selection import selected
from kbcore.kip.kml.work import Work
from kbcore.kip.paging import cursor_in, mark_of
from kbcore.kip.printer import write
from kbcore.limits import MAX_KIP_BYTES
from kbcore.model import Link, Node
from kbcore.schema import Schema
from kbcore.view.view import View

_AGAIN: Final = "EXPORT again from the first page, without CURSOR; a capsule that was written already changes nothing."
_HINT: Final = "Export fewer elements at a time with LIMIT, and ask for the next page with CURSOR."


class Exported(msgspec.Struct, frozen=True):
    """The answer of EXPORT; ``next_cursor`` is "" on the last page."""

    result: dict[str, Any]
    next_cursor: str


def export(view: View, schema: Schema, command: s.Export, limits: KipLimits) -> Exported:
    """Return a part of the graph as a capsule. All pages speak of the same seq.

    Raises: ``KipRefused`` with the offset of the place: KIP_4002 where the capsule would be too large for one command,
    KIP_3005 for the cursor of a page since which something was written; what ``find.solutions`` raises.
    """
    mark = mark_of(view.basis.store_id, command)
    last_key = _ended(view, command.cursor, mark) if command.cursor else ""
    work = Work(view, schema, limits)
    # The vocabulary is everywhere already; pages of what is left out would hold nothing.
    found = [draft.id for draft in selected(work, command.variable, command.where) if draft.is_stored]
    first = bisect_right(found, last_key)
    last = min(len(found), first + command.limit.value) if command.limit else len(found)
    before, now = _Closure(work, found[:first]), _Closure(work, found[:last])
    nodes = [node for key, node in now.nodes.items() if key not in before.nodes]
    links = [link for key, link in now.links.items() if key not in before.links]
    text = _capsule(work, nodes, links)
    if len(text.encode()) > MAX_KIP_BYTES:
        message = f"The capsule would have {len(text.encode())} bytes; one command takes {MAX_KIP_BYTES}."
        raise refused(RESOURCE, message, at=command.at, hint=_HINT)
    more = last < len(found)
    token = cursors.encode(cursors.Cursor(mark, view.seq, len(found), found[last - 1])) if more else ""
    return Exported({"capsule": text, "concepts": len(nodes), "propositions": len(links)}, token)


def _ended(view: View, given: s.Text, mark: str) -> str:
    """Return the id with which the page ended that gave a cursor. Raises: ``KipRefused``."""
    cursor = cursor_in(given, mark)
    if cursor.seq != view.seq:
        message = f"The page before spoke of seq {cursor.seq}, and the branch is at {view.seq}."
        raise refused(VERSION, message, at=given.at, hint=_AGAIN)
    return cursor.last


class _Closure:
    """What a capsule of some elements holds: them, the ends of links, the links among them, and what defines them."""

    def __init__(self, work: Work, ids: Sequence[str]) -> None:
        self.work = work
        self.nodes: dict[str, Node] = {}
        self.links: dict[str, Link] = {}
        asked = {key for key in ids if not is_link_id(key)}
        self._add(ids)
        self._join(asked)
        self._define()

    def _add(self, ids: Iterable[str]) -> None:
        """Take in elements by their ids, and whatever their ends are; the vocabulary is everywhere already."""
        pending = list(ids)
        while pending:
            wanted = [key for key in dict.fromkeys(pending) if key not in self.nodes and key not in self.links]
            links = {
                one.id: one for one in self.work.view.links([key for key in wanted if is_link_id(key)]) if one.stands
            }
            self.links |= links
            self.nodes |= {node.id: node for node in self.work.view.nodes([k for k in wanted if not is_link_id(k)])}
            pending = [end for link in links.values() for end in (link.from_id, link.to_id)]

    def _join(self, among: Collection[str]) -> None:
        """Take in the links whose two ends are here or in the vocabulary, and links about these."""
        frontier = set(among)
        while frontier:
            found = [link for link in self.work.view.touching(sorted(frontier)) if link.stands]
            new = {link.id: link for link in found if link.id not in self.links and self._holds(link)}
            self.links |= new
            frontier = set(new)

    def _holds(self, link: Link) -> bool:
        ends = (link.from_id, link.to_id)
        return all(
            end in self.nodes or end in self.links or end in self.work.core_nodes or end in self.work.core_links
            for end in ends
        )

    def _define(self) -> None:
        """Take in the definitions of the branch that these elements need, and say where those belong."""
        types = {(TYPE, node.type) for node in self.nodes.values()}
        wanted = types | {(PREDICATE, link.type) for link in self.links.values()}
        own = {
            key: node
            for key, node in self.work.view.definitions().items()
            if (node.type, node.fields.get("name")) in wanted - VOCABULARY and key not in self.nodes
        }
        self.nodes = own | self.nodes
        self._join(own)


def _capsule(work: Work, nodes: Sequence[Node], links: Sequence[Link]) -> str:
    if not nodes and not links:
        return ""
    names = work.names
    handles: dict[str, s.Variable] = {}
    blocks: list[s.Block] = []
    for node in sorted(nodes, key=lambda one: (one.type != TYPE, one.type != PREDICATE, one.id)):
        shown = node_json(node, names)
        handles[node.id] = s.Variable(f"c{len(handles) + 1}")
        identity = s.Matcher(type=s.Text(shown["type"]), name=s.Text(shown["name"]))
        blocks.append(
            s.Concept(
                handles[node.id], identity, attributes=_map(shown["attributes"]), metadata=_map(_own(shown["metadata"]))
            )
        )
    for link in in_order(links):
        shown = link_json(link)
        fact = s.Fact(_end(work, link.from_id, handles), s.Text(link.type), _end(work, link.to_id, handles))
        handles[link.id] = s.Variable(f"p{len(handles) + 1}")
        attributes, metadata = _map(shown["attributes"]), _map(_own(shown["metadata"]))
        blocks.append(s.Proposition(handles[link.id], fact, attributes=attributes, metadata=metadata))
    return write(s.Upserts((s.Upsert(tuple(blocks)),)))


def _end(work: Work, key: str, handles: Mapping[str, s.Variable]) -> s.Target:
    """Return how a capsule names the end of a link: by its handle, or as it is known in the other store."""
    if key in handles:
        return handles[key]
    draft = work.element(key, 0)
    assert draft is not None and draft.old is not None, "the ends of a link that stands exist"  # noqa: S101, PT018 - narrows the types
    if isinstance(draft, LinkDraft):
        ends = _end(work, draft.from_id, handles), _end(work, draft.to_id, handles)
        return s.Fact(ends[0], s.Text(draft.type), ends[1])
    shown = element_json(draft.old, work.names)
    return s.Matcher(type=s.Text(shown["type"]), name=s.Text(shown["name"]))


def _own(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without those that KB keeps itself."""
    return {key: value for key, value in metadata.items() if not key.startswith("_")}


def _map(values: Mapping[str, Any]) -> s.Object | None:
    return s.Object(tuple(s.Member(key, s.Value(value)) for key, value in values.items())) if values else None
