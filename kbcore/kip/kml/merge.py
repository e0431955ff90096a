"""MERGE: a concept becomes a part of another one; its links are led to that, and nothing it knew is lost.

What the target says already stays as it is; only what it does not say is filled in. Of two links that become one the
higher confidence stays. Several may be merged at once, so that links between them lead from one target to the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kbcore.confirmed import DECAYED, confirmed_at
from kbcore.kip import syntax as s
from kbcore.kip.elements import in_order, link_json, node_json
from kbcore.kip.errors import DUPLICATE, IMMUTABLE, NOT_FOUND, refused
from kbcore.kip.kml.delete import check_deletable
from kbcore.kip.kml.drafts import LinkDraft, NodeDraft
from kbcore.kip.kml.intent import Intent, node_words
from kbcore.kip.kml.selection import check_named
from kbcore.kip.kml.work import Work, misused
from kbcore.model import CLIENT, Link
from kbcore.visible import in_quotes

ALIASES = "aliases"
MERGED_FROM = "_merged_from"
_SURENESS = ("confidence", DECAYED)


def apply_merge(work: Work, command: s.Merge) -> Intent:
    """Merge the one concept into the other. Raises: ``KipRefused``."""
    source, target = _both(work, command)
    if source.id == target.id:
        message = f"?{command.source.name} and ?{command.target.name} are the same concept."
        raise misused(message, command.at, "Name two different concepts.")
    if source.type != target.type:
        message = f"{node_words(work, source)} and {node_words(work, target)} are of different types."
        raise misused(message, command.at, "Only concepts of one type can be merged.")
    return merge(work, [(source, target)], command.at)


def merge(work: Work, pairs: Sequence[tuple[NodeDraft, NodeDraft]], at: int = 0) -> Intent:
    """Merge the first concept of each pair into the second one, which is the first one of no pair.

    Raises: ``KipRefused`` for a concept that belongs to every store, and for one that a file links.
    """
    sources = [source for source, _ in pairs]
    check_deletable(work, sources)
    repointed, deduplicated = _Links(work, {source.id: target.id for source, target in pairs}, at).lead()
    filled = sum(_fill(work, source, target) for source, target in pairs)
    told = {"links_repointed": repointed, "links_deduplicated": deduplicated, "attributes_filled": filled}
    done = {"merged": len(pairs), **told}
    return Intent(lambda _: done, dict.fromkeys(done, 0), concepts=tuple(sources))


def _both(work: Work, command: s.Merge) -> tuple[NodeDraft, NodeDraft]:
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
            message = f"?{variable.name} stands for a proposition; MERGE takes concepts."
            raise misused(message, variable.at, "Name concepts by their type and name.")
        draft.at = variable.at
        found.append(draft)
    return found[0], found[1]


def _fill(work: Work, source: NodeDraft, target: NodeDraft) -> int:
    """Fill in what the target does not say; return how many attributes."""
    assert source.old and target.old, "both were found"  # noqa: S101, PT018 - narrows the types
    gone, kept = node_json(source.old, work.names), node_json(target.old, work.names)
    attributes = kept["attributes"] | target.edits.attributes
    missing = {
        key: value
        for key, value in gone["attributes"].items()
        if key != ALIASES and value is not None and attributes.get(key) is None
    }
    aliases = [*_list(attributes.get(ALIASES)), source.name, *_list(gone["attributes"].get(ALIASES))]
    known = [one for one in _distinct(aliases) if one != target.name]
    target.edits.attributes |= missing | ({ALIASES: known} if known != attributes.get(ALIASES) else {})
    merged = (kept["metadata"] | target.edits.metadata).get(MERGED_FROM)
    before = [*_list(merged), *_list(gone["metadata"].get(MERGED_FROM)), source.id]
    target.edits.metadata[MERGED_FROM] = _distinct(before)
    return len(missing)


def _list(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _distinct(values: list[Any]) -> list[Any]:
    """Return values each once, where it first stands; which are one, ``is_same`` says."""
    found: dict[bytes, Any] = {}
    for one in values:
        found.setdefault(msgspec.json.encode(one, order="sorted"), one)
    return [*found.values()]


class _Links:
    """The links of what is merged, and the links about these, as they lead to the targets instead.

    ``moved`` maps the id of what goes to that of what takes its place.
    """

    def __init__(self, work: Work, moved: dict[str, str], at: int) -> None:
        self.work = work
        self.moved = moved
        self.gone: set[str] = set()
        self.began: dict[str, str] = {}
        self.since: dict[str, str] = {}
        self.at = at

    def lead(self) -> tuple[int, int]:
        """Write the links anew; return how many, and how many of them were there already."""
        reached = self._reached()
        for link in reached:
            self._check_free(link)
        led = [(link, draft) for link in in_order(reached) if (draft := self._led(link))]
        self.work.settle()
        self.since = confirmed_at(self.work.view.rows, {key for link, draft in led for key in (link.id, draft.id)})
        are_new = [self._say(link, draft) for link, draft in led]
        return sum(are_new), len(are_new) - sum(are_new)

    def _reached(self) -> list[Link]:
        """Return the links that stand at the source, and those about them."""
        found: dict[str, Link] = {}
        frontier = list(self.moved)
        while frontier:
            links = {link.id: link for link in self.work.view.touching(frontier) if link.stands}
            frontier = sorted(links.keys() - found.keys())
            found |= links
        return list(found.values())

    def _check_free(self, link: Link) -> None:
        """Refuse to lead elsewhere what a file states. Raises: ``KipRefused`` (KIP_3004)."""
        file = next((one.src for one in link.statements if one.src != CLIENT), "")
        if file:
            message = (
                f"({link.from_id} {link.type} {link.to_id}) is stated by {in_quotes(file)}, and would lose an end."
            )
            hint = f"Merge the other way round, or let {in_quotes(file)} name the concept that is kept, and sync."
            raise refused(IMMUTABLE, message, at=self.at, hint=hint)

    def _led(self, link: Link) -> LinkDraft | None:
        """Return what a link becomes; None where it led from the one to the other, or is about one that did."""
        old = link.from_id, link.to_id
        ends = self.moved.get(link.from_id, link.from_id), self.moved.get(link.to_id, link.to_id)
        if self.gone.intersection(old) or (ends[0] == ends[1] and old[0] != old[1]):
            self.gone.add(link.id)
            return None
        draft = self.work.new_link(link.type, link.kind, ends, self.at)
        self.moved[link.id] = draft.id
        return draft

    def _say(self, link: Link, draft: LinkDraft) -> bool:
        """Have a draft say what a link says and it does not; tell whether there was none before."""
        shown = link_json(link)
        attributes = {key: value for key, value in shown["attributes"].items() if not (key == "kind" and link.kind)}
        metadata = {key: value for key, value in shown["metadata"].items() if not key.startswith("_")}
        is_new = not draft.is_stated and not (draft.old and draft.old.stands)
        if is_new:
            self.began[draft.id] = link.created_at
        else:
            there = link_json(draft.old) if draft.old else {"attributes": {}, "metadata": {}}
            attributes = _missing(attributes, there["attributes"] | draft.edits.attributes)
            said = there["metadata"] | draft.edits.metadata
            is_surer = _confidence(metadata) > _confidence(said) and not (
                draft.old and "confidence" in draft.old.owners
            )
            surer = {key: metadata.get(key) for key in _SURENESS if key in metadata or key in said} if is_surer else {}
            metadata = {key: value for key, value in _missing(metadata, said).items() if key not in _SURENESS} | surer
        if _confidence(metadata) >= 0:
            self.since[draft.id] = self.since[link.id]
        if attributes or metadata:
            metadata |= self._counted(draft)
        draft.edits.attributes |= attributes
        draft.edits.metadata |= metadata
        draft.is_stated = True
        return is_new

    def _counted(self, draft: LinkDraft) -> dict[str, str]:
        """Return from when a confidence counts, where that is later than the link itself; a merge confirms nothing."""
        since = self.since.get(draft.id, "")
        began = self.began.get(draft.id) or (draft.old.created_at if draft.old else "")
        return {DECAYED: since} if since > began else {}


def _confidence(metadata: Mapping[str, Any]) -> float:
    said = metadata.get("confidence")
    return said if isinstance(said, int | float) else -1


def _missing(values: Mapping[str, Any], there: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None and there.get(key) is None}
