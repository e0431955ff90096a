"""MERGE: a concept becomes a part of another one; its links are led to that, and nothing it knew is lost.

Where two elements that become one contradict each other, the one with the higher confidence wins, with its source and
author; the values of the other one stay readable as ``_merged_values`` in the metadata. What only one has is kept.
Several may be merged at once, so that links between them lead from one target to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.kip import syntax as s
from kbcore.kip.confidence import DECAYED, confirmed_at
from kbcore.kip.elements import CONTESTED_KEY, in_order, link_json, node_json
from kbcore.kip.errors import DUPLICATE, IMMUTABLE, NOT_FOUND, refused
from kbcore.kip.kml.command_drafts import CommandDrafts, misused
from kbcore.kip.kml.delete import check_deletable
from kbcore.kip.kml.drafts import CREATED, MERGED_FROM, MERGED_VALUES, LinkDraft, NodeDraft, distinct
from kbcore.kip.kml.intent import Intent, node_words
from kbcore.kip.kml.selection import check_named
from kbcore.model.concepts import ARCHIVED, DOMAIN, IN_DOMAIN, UNSORTED, VOCABULARY, concept_id
from kbcore.model.graph import CLIENT, FORMER_IDS, FORMER_KEY, Link, Node, former_ids
from kbcore.model.values import is_same
from kbcore.store.planning.conflicts import contested_in
from kbcore.text.escaping import in_quotes

ALIASES: Final = "aliases"

_PROVENANCE: Final = ("source", "author", "confidence", "observed_at")
"""The source of a value and its confidence: a merge keeps all of these of one element or of the other."""
_OF_KB: Final = frozenset({"created_at", "updated_at", *_PROVENANCE, DECAYED})
"""Metadata that are compared in no other way."""
_CARRIED: Final = (MERGED_FROM, MERGED_VALUES)
UNSORTED_ID: Final = concept_id(DOMAIN, UNSORTED)
_NO_PLACES: Final = frozenset({UNSORTED_ID, concept_id(DOMAIN, ARCHIVED)})
"""Domains of what has no place of its own."""

Shown = dict[str, dict[str, Any]]
"""The values of an element: its ``attributes`` and its ``metadata``."""
Conflict = dict[str, Any]
"""Two values of one key: ``id`` of the element, ``key``, and value and provenance of both (``kept``, ``other``)."""

_MOST_TOLD: Final = 100
"""Conflicts that a receipt lists."""


def apply_merge(work: CommandDrafts, command: s.Merge) -> Intent:
    """Merge the one concept into the other. Raises: ``KipRefused``."""
    source, target = _both(work, command)
    if source.id == target.id:
        message = f"?{command.source.name} and ?{command.target.name} are the same concept."
        raise misused(message, command.at, "Name two different concepts.")
    if source.type != target.type:
        message = f"{node_words(work, source)} and {node_words(work, target)} are of different types."
        raise misused(message, command.at, "Only concepts of one type can be merged.")
    return merge(work, [(source, target)], command.at)


def merge(work: CommandDrafts, pairs: Sequence[tuple[NodeDraft, NodeDraft]], at: int = 0) -> Intent:
    """Merge the first concept of each pair into the second one, which is the first one of no pair.

    Raises: ``KipRefused`` for a concept that belongs to every store, and for one that a file links.
    """
    sources = [source for source, _ in pairs]
    check_deletable(work, sources)
    for source in sources:
        _check_settled(node_words(work, source), source.old, at)
    links = _Links(work, {source.id: target.id for source, target in pairs}, at)
    repointed, deduplicated = links.lead()
    filled = [_fill(work, source, target) for source, target in pairs]
    conflicts = [*(one for _, found in filled for one in found), *links.conflicts]
    counts = {
        "merged_concepts": len(pairs),
        "links_repointed": repointed,
        "links_deduplicated": deduplicated,
        "attributes_filled": sum(count for count, _ in filled),
    }
    listed: dict[str, Any] = {"conflicts": conflicts[:_MOST_TOLD]}
    if len(conflicts) > _MOST_TOLD:
        listed["conflicts_left_out"] = len(conflicts) - _MOST_TOLD
    done = {"merged": True, **counts, **listed}
    return Intent(lambda _: done, concepts=tuple(sources), propositions=tuple(links.leaving))


def _check_settled(words: str, element: Node | Link | None, at: int) -> None:
    """Refuse to merge away what is contested: all values but one would be lost. Raises: ``KipRefused`` (KIP_2002)."""
    if contested := contested_in(element):
        message = f"{words} would go, and something of it is contested: {', '.join(contested)}."
        raise misused(message, at, f"Settle it first: `{CONTESTED_KEY}` in its metadata has the values.")


def _both(work: CommandDrafts, command: s.Merge) -> tuple[NodeDraft, NodeDraft]:
    variables = [command.source, command.target]
    rows = work.solutions(command.where, variables)
    if not rows:
        for variable in variables:
            check_named(work, variable, command.where)
    found = []
    for variable in variables:
        values = {row[variable.name] for row in rows} - {None}
        drafts = [draft for key in sorted(map(str, values)) if (draft := work.element(key, variable.at))]
        if not drafts:
            message = f"WHERE finds no concept for ?{variable.name}."
            raise refused(NOT_FOUND, message, at=variable.at)
        if len(drafts) > 1:
            message = f"WHERE finds {len(drafts)} elements for ?{variable.name}; MERGE takes one."
            raise refused(DUPLICATE, message, at=variable.at)
        draft = drafts[0]
        if not isinstance(draft, NodeDraft):
            message = f"?{variable.name} means a proposition; MERGE takes concepts."
            raise misused(message, variable.at, "Name concepts by their type and name.")
        draft.at = variable.at
        found.append(draft)
    return found[0], found[1]


def _fill(work: CommandDrafts, source: NodeDraft, target: NodeDraft) -> tuple[int, list[Conflict]]:
    """Merge the values of the source into the target; return how many attributes were filled in, and the conflicts."""
    assert source.old and target.old, "both were found"  # noqa: S101, PT018 - narrows the types
    gone, kept = node_json(source.old, work.names), node_json(target.old, work.names)
    attributes = kept["attributes"] | target.edits.attributes
    aliases = [*_list(attributes.get(ALIASES)), source.name, *_list(gone["attributes"].pop(ALIASES, None))]
    merged = (kept["metadata"] | target.edits.metadata).get(MERGED_FROM)
    before = [*_list(merged), *_list(gone["metadata"].get(MERGED_FROM)), source.id]
    _join_former_ids(source, target, attributes, gone["attributes"])
    is_fixed = bool(target.old.owners) or not target.is_stored or (target.type, target.name) in VOCABULARY
    may_win = not is_fixed and kept["metadata"].get("confidence") is not None
    found = _take_in(target, kept, gone, source.id, may_win=may_win)
    known = [one for one in distinct(aliases) if one != target.name]
    if known != attributes.get(ALIASES):
        target.edits.attributes[ALIASES] = known
    target.edits.metadata[MERGED_FROM] = distinct(before)
    return found


def _join_former_ids(source: NodeDraft, target: NodeDraft, attributes: Mapping[str, Any], gone: dict[str, Any]) -> None:
    """Give the former ids of the source to the target, unless a file states those of the target."""
    former = former_ids(source.old)
    if former and target.old and FORMER_IDS not in target.old.owners:
        gone.pop(FORMER_KEY, None)
        target.edits.attributes[FORMER_KEY] = distinct([*_list(attributes.get(FORMER_KEY)), *former])


def _take_in(
    draft: NodeDraft | LinkDraft, there: Shown, gone: Shown, gone_id: str, *, may_win: bool
) -> tuple[int, list[Conflict]]:
    """Merge the values of another element into one; return how many attributes were filled in, and the conflicts.

    ``may_win`` tells whether values of the other one may take the place of what is there.
    """
    mine = _with_edits(draft, there)
    provenance = _provenance(mine["metadata"]), _provenance(gone["metadata"])
    is_known = isinstance(draft, LinkDraft) and bool(provenance[1]) and not provenance[0]
    wins = may_win and (is_known or _confidence(provenance[1]) > _confidence(provenance[0]))
    compared = [*_compared(mine, gone)]
    open_ = [(part, key, value) for part, key, own, value in compared if own is None]
    contrary = [one for one in compared if one[2] is not None and not is_same(one[2], one[3])]
    for part, key, value in (*open_, *((part, key, value) for part, key, _, value in contrary if wins)):
        _edits(draft)[part][key] = value
    if wins:
        _set_provenance(draft, there["metadata"], provenance[1] | _only(gone["metadata"], DECAYED))
    filled = [key for part, key, _ in open_ if part == "attributes"]
    lost: Shown = {"attributes": {}, "metadata": {}}
    for part, key, own, value in contrary:
        lost[part][key] = own if wins else value
    if provenance[0] != provenance[1]:
        lost["metadata"] |= provenance[0 if wins else 1]
    entry: dict[str, Any] = {part: members for part, members in lost.items() if members}
    if lost["metadata"] and (keys := _alone(mine, gone) if wins else sorted(filled)):
        entry["kept_keys"] = keys
    before = _list(mine["metadata"].get(MERGED_VALUES))
    after = [*before, *_list(gone["metadata"].get(MERGED_VALUES))]
    after += [{"id": draft.id if wins else gone_id, **entry}] if entry else []
    if after != before:
        draft.edits.metadata[MERGED_VALUES] = after
    own, value = (one.get("confidence") for one in provenance)
    if None not in {own, value} and own != value:
        contrary.append(("metadata", "confidence", own, value))
    conflicts = [
        _conflict(draft.id, f"{part}.{key}", (own, provenance[0]), (value, provenance[1]), wins=wins)
        for part, key, own, value in contrary
    ]
    return len(filled), conflicts


def _with_edits(draft: NodeDraft | LinkDraft, there: Shown) -> Shown:
    """Return the values of an element with its edits."""
    edited = {part: {**there[part], **edits} for part, edits in _edits(draft).items()}
    dropped = draft.edits.dropped_metadata
    return edited | {"metadata": {key: one for key, one in edited["metadata"].items() if key not in dropped}}


def _compared(mine: Shown, gone: Shown) -> Iterator[tuple[str, str, Any, Any]]:
    """Yield part, key and both values of each value of the one that goes, provenance aside."""
    for part in ("attributes", "metadata"):
        for key, value in gone[part].items():
            is_kept_by_kb = part == "metadata" and (key in _OF_KB or key.startswith("_"))
            if value is not None and not is_kept_by_kb:
                yield part, key, mine[part].get(key), value


def _alone(mine: Shown, gone: Shown) -> list[str]:
    """Return the attributes of which only the first one has a value."""
    others = {*gone["attributes"], ALIASES}
    return sorted(key for key, one in mine["attributes"].items() if one is not None and key not in others)


def _edits(draft: NodeDraft | LinkDraft) -> Shown:
    return {"attributes": draft.edits.attributes, "metadata": draft.edits.metadata}


def _provenance(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return _only(metadata, *_PROVENANCE)


def _only(metadata: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: metadata[key] for key in keys if metadata.get(key) is not None}


def _set_provenance(draft: NodeDraft | LinkDraft, there: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Replace the provenance of an element by that of another one."""
    fields = draft.old.fields if draft.old else {}
    for key in (*_PROVENANCE, DECAYED):
        draft.edits.metadata.pop(key, None)
        draft.edits.dropped_metadata.discard(key)
        if key in wanted:
            draft.edits.metadata[key] = wanted[key]
        elif f"metadata.{key}" in fields or key in fields:
            draft.edits.dropped_metadata.add(key)
        elif key in there:
            draft.edits.metadata[key] = None


def _conflict(
    key: str, place: str, mine: tuple[Any, Mapping[str, Any]], gone: tuple[Any, Mapping[str, Any]], *, wins: bool
) -> Conflict:
    """Return the entry of a receipt for two values: which one stays, which one does not, and where each comes from."""
    kept, other = (gone, mine) if wins else (mine, gone)
    sides = {name: {"value": value, **origin} for name, (value, origin) in (("kept", kept), ("other", other))}
    return {"id": key, "key": place, **sides}


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


class _Links:
    """The links of what is merged, and the links about these, as they lead to the targets instead.

    ``moved`` maps the id of what goes to that of what takes its place.
    """

    def __init__(self, work: CommandDrafts, moved: dict[str, str], at: int) -> None:
        self.work = work
        self.moved = moved
        self.gone: set[str] = set()
        self.began: dict[str, str] = {}
        self.since: dict[str, str] = {}
        self.at = at
        self.conflicts: list[Conflict] = []
        self.leaving: list[LinkDraft] = []
        """Memberships in Unsorted of those that belong elsewhere too."""

    def lead(self) -> tuple[int, int]:
        """Write the links again; return how many, and how many of them were there already."""
        reached = self._reached()
        for link in reached:
            self._check_free(link)
            _check_settled(f"({link.from_id} {link.type} {link.to_id})", link, self.at)
        self._leave_unsorted(reached)
        led = [(link, draft) for link in in_order(reached) if (draft := self._led(link))]
        self.work.load_existing()
        self.since = confirmed_at(self.work.view.rows, {key for link, draft in led for key in (link.id, draft.id)})
        are_new = [self._merge_link(link, draft) for link, draft in led]
        return sum(are_new), len(are_new) - sum(are_new)

    def _reached(self) -> list[Link]:
        """Return the links at the source, and those about them."""
        found: dict[str, Link] = {}
        frontier = list(self.moved)
        while frontier:
            links = {link.id: link for link in self.work.view.touching(frontier) if link.is_resolved}
            frontier = sorted(links.keys() - found.keys())
            found |= links
        return list(found.values())

    def _leave_unsorted(self, reached: Sequence[Link]) -> None:
        """Remove targets from Unsorted that belong to another domain, or come to by the merge."""
        targets = {*self.moved.values()}
        held = [link for link in self.work.view.touching(sorted(targets)) if link.is_resolved]
        members = [link for link in (*reached, *held) if link.type == IN_DOMAIN]
        places = {self.moved.get(one.from_id, one.from_id) for one in members if one.to_id not in _NO_PLACES}
        for link in members:
            if link.to_id != UNSORTED_ID or self.moved.get(link.from_id, link.from_id) not in places:
                continue
            if link.from_id in targets and all(one.src == CLIENT for one in link.statements):
                self.leaving += self.work.stored_links([link.id], self.at)
            elif link.from_id in self.moved:
                self.gone.add(link.id)

    def _check_free(self, link: Link) -> None:
        """Refuse to lead elsewhere what a file states. Raises: ``KipRefused`` (KIP_3004)."""
        file = next((one.src for one in link.statements if one.src != CLIENT), "")
        if file:
            message = (
                f"({link.from_id} {link.type} {link.to_id}) is stated by {in_quotes(file)}, and would lose an end."
            )
            kept = f"let {in_quotes(file)} name the concept that is kept, and {kb('sync', lead='run')}"
            hint = f"Merge the other way round, or {kept}."
            raise refused(IMMUTABLE, message, at=self.at, hint=hint)

    def _led(self, link: Link) -> LinkDraft | None:
        """Return what a link becomes; None where it led from the one to the other, or is about one that did."""
        old = link.from_id, link.to_id
        ends = self.moved.get(link.from_id, link.from_id), self.moved.get(link.to_id, link.to_id)
        if link.id in self.gone or self.gone.intersection(old) or (ends[0] == ends[1] and old[0] != old[1]):
            self.gone.add(link.id)
            return None
        draft = self.work.new_link(link.type, link.kind, ends, self.at)
        self.moved[link.id] = draft.id
        return draft

    def _merge_link(self, link: Link, draft: LinkDraft) -> bool:
        """Merge the values of a link into a draft; return whether there was none before."""
        shown = link_json(link)
        attributes = {key: value for key, value in shown["attributes"].items() if not (key == "kind" and link.kind)}
        is_new = not draft.is_stated and not (draft.old and draft.old.is_resolved)
        if is_new:
            self.began[draft.id] = shown["metadata"][CREATED]
            if _confidence(shown["metadata"]) >= 0:
                self.since[draft.id] = self.since[link.id]
            draft.edits.attributes |= attributes
            draft.edits.metadata |= {
                key: one for key, one in shown["metadata"].items() if key in _CARRIED or not key.startswith("_")
            }
        else:
            there = link_json(draft.old) if draft.old else {"attributes": {}, "metadata": {}}
            there["attributes"] = {k: one for k, one in there["attributes"].items() if not (k == "kind" and draft.kind)}
            before = draft.edits.metadata.get("confidence", there["metadata"].get("confidence"))
            is_fixed = draft.old is not None and any(one.src != CLIENT for one in draft.old.statements)
            gone = {"attributes": attributes, "metadata": shown["metadata"]}
            _, conflicts = _take_in(draft, there, gone, link.id, may_win=not is_fixed)
            self.conflicts += conflicts
            if draft.edits.metadata.get("confidence", before) != before:
                self.since[draft.id] = self.since[link.id]
        if draft.edits:
            counted = self._counted(draft)
            draft.edits.metadata |= counted
            draft.edits.dropped_metadata.difference_update(counted)
        draft.is_stated = True
        return is_new

    def _counted(self, draft: LinkDraft) -> dict[str, str]:
        """Return from when a confidence counts, where that is later than the link itself; a merge confirms nothing."""
        since = self.since.get(draft.id, "")
        began = self.began.get(draft.id) or (link_json(draft.old)["metadata"][CREATED] if draft.old else "")
        return {DECAYED: since} if since > began else {}


def _confidence(metadata: Mapping[str, Any]) -> float:
    confidence = metadata.get("confidence")
    return confidence if isinstance(confidence, int | float) else -1
