"""One changeset of a command's drafts and deletions, and the command's answer once that is planned."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from kbcore import limits
from kbcore.ids import is_link_id
from kbcore.kip.errors import RESOURCE, refused
from kbcore.kip.kml.command_drafts import CommandDrafts
from kbcore.kip.kml.drafts import UPDATED, LinkDraft, NodeDraft, edge_item, entity_item
from kbcore.kip.kml.protection import check_written, is_kept
from kbcore.kip.kml.refusals import DraftSources
from kbcore.model.changeset import Changeset, EdgeDelete, EdgeWrite, EntityDelete, EntityWrite, parse
from kbcore.model.state import Changes
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

Write = TypeVar("Write", EntityWrite, EdgeWrite)
Answer = Callable[[Changes], dict[str, Any]]


class Intent(msgspec.Struct):
    """The deletions of a command, besides its drafts, and its answer.

    ``answer`` is given what the planned changeset changes, and refuses it where that is not what was asked for.
    """

    answer: Answer
    concepts: tuple[NodeDraft, ...] = ()
    propositions: tuple[LinkDraft, ...] = ()


def changeset_of(
    work: CommandDrafts,
    intent: Intent,
    origin: DraftSources,
    *,
    most_deleted: int,
    most: int = limits.MAX_CHANGESET_ITEMS,
) -> Changeset:
    """Return the changeset of a command; ``origin`` is given where each item of it comes from.

    Raises: ``KipRefused`` for a protected element and for too much; ``LimitExceeded``.
    """
    edges = _edges(work, origin)
    entities: list[dict[str, Any]] = []
    for draft in [*work.nodes.values()]:
        if draft.edits or draft.is_end or not draft.is_stored:
            check_written(draft, work.names)
            item = None if is_kept(draft) else entity_item(draft, work.names)
            if item is not None:
                origin.note(f"$.entities[{len(entities)}]", draft, node_words(work, draft))
                entities.append(item)
    changeset = (
        parse({"entities": entities, "edges": edges}, most=most, is_of_kip=True) if entities or edges else Changeset()
    )
    changeset = msgspec.structs.replace(
        changeset,
        entities=tuple([_as_meant(item, work.nodes.get(item.id)) for item in changeset.entities]),
        edges=tuple([_as_meant(item, work.links.get(item.id)) for item in changeset.edges]),
    )
    gone = len(intent.concepts) + len(intent.propositions)
    if gone > most_deleted:
        message = f"The command would delete {gone} elements; the limit is {most_deleted}."
        raise refused(RESOURCE, message, hint="Narrow WHERE down, and send several commands.")
    return msgspec.structs.replace(
        changeset,
        cascade=True,
        entity_deletes=tuple(_entity_deletes(intent.concepts, origin, work)),
        edge_deletes=tuple(_edge_deletes(intent.propositions, origin)),
    )


def _as_meant(item: Write, draft: NodeDraft | LinkDraft | None) -> Write:
    """Return an item with what its writer has seen, and with which members of its objects it leaves as they are."""
    if draft is None or draft.old is None:
        return item
    members = {f"{part}.{key}" for part, members in item.objects.items() for key in members}
    carried = frozenset(members - draft.edits.members())
    return msgspec.structs.replace(item, has_seen=draft.has_seen, carried=carried)


def leave_out_updated(work: CommandDrafts) -> list[str]:
    """Take out of the drafts what only KB notes of a concept, when it was last changed; return what to say of that."""
    named = [node_words(work, draft) for draft in work.nodes.values() if UPDATED in draft.edits.metadata]
    for draft in work.nodes.values():
        draft.edits.metadata.pop(UPDATED, None)
    if not named:
        return []
    return [f"`{UPDATED}` of {some_of(named, 1)} is left out: KB notes it by itself. Leave it out of the command."]


def _edges(work: CommandDrafts, origin: DraftSources) -> list[dict[str, Any]]:
    """Return the items of the propositions to write; what they begin and end at is marked to be written down too."""
    work.load_existing()
    ends = {
        end for draft in work.links.values() if draft.edits or draft.is_stated for end in (draft.from_id, draft.to_id)
    }
    work.look_up(end for end in ends if end not in work.nodes and not is_link_id(end))
    items: dict[str, dict[str, Any]] = {}
    looked_at = -1
    while looked_at < len(items):
        looked_at = len(items)
        written = []
        for draft in work.links.values():
            item = edge_item(draft) if draft.id not in items else None
            if item is not None:
                origin.note(f"$.edges[{len(items)}]", draft, link_words(draft))
                items[draft.id] = item
                written.append(draft)
        work.look_up(end for draft in written for end in (draft.from_id, draft.to_id))
        for draft in written:
            for end in (draft.from_id, draft.to_id):
                known = work.element(end, draft.at)
                if known is not None and not known.is_stored:
                    known.is_end = True
    return list(items.values())


def _entity_deletes(drafts: Iterable[NodeDraft], origin: DraftSources, work: CommandDrafts) -> Iterable[EntityDelete]:
    for number, draft in enumerate(drafts):
        path = f"$.deleted_concepts[{number}]"
        origin.note(path, draft, node_words(work, draft))
        yield EntityDelete(path, draft.id)


def _edge_deletes(drafts: Iterable[LinkDraft], origin: DraftSources) -> Iterable[EdgeDelete]:
    for number, draft in enumerate(drafts):
        path = f"$.deleted_propositions[{number}]"
        origin.note(path, draft, link_words(draft))
        yield EdgeDelete(path, draft.type, draft.from_id, draft.to_id, draft.kind)


def node_words(work: CommandDrafts, draft: NodeDraft) -> str:
    """Return a concept as a person reads it: its type and its name."""
    return f"{work.names.shown(draft.type)} {in_quotes(draft.name)}"


def link_words(draft: LinkDraft) -> str:
    """Return a proposition as a person reads it: its ends and its predicate."""
    return f"({draft.from_id} {draft.type} {draft.to_id})"


def fallen(changes: Changes) -> tuple[int, int]:
    """Return how many concepts and how many propositions are gone after a changeset, as KIP sees it."""
    nodes = sum(change.after is None for change in changes.nodes)
    links = sum(
        change.before is not None and change.before.is_resolved and not (change.after and change.after.is_resolved)
        for change in changes.links
    )
    return nodes, links
