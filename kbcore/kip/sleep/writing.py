"""The few writes that phases have in common: join a domain, leave one, be put away. Each edits drafts, nothing else."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from kbcore.ids import link_id
from kbcore.kip.kml.drafts import NodeDraft
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.model.concepts import ARCHIVED, DOMAIN, IN_DOMAIN, SYSTEM, concept_id

ARCHIVING: Final = "SleepArchive"
_MEMBERSHIPS: Final = "select from_id, id, len(files) = 0 from member where from_id in (select unnest($3::varchar[]))"


def stamp(source: str, confidence: float | None = None) -> dict[str, Any]:
    """Return the metadata of what the sleeping mind writes."""
    provenance: dict[str, Any] = {"source": source, "author": SYSTEM}
    return provenance if confidence is None else {**provenance, "confidence": confidence}


def edit(step: PhaseResult, node: NodeDraft, attributes: dict[str, Any]) -> None:
    """Set attributes of a concept. Who made it, and out of what, stays: the record says who changed it."""
    node.edits.set_members(attributes, {})
    step.items += 1


def join(step: PhaseResult, concept: str, domain: str, metadata: dict[str, Any]) -> None:
    """Add a concept to a domain; both are named by their ids."""
    draft = step.work.new_link(IN_DOMAIN, "", (concept, domain), 0)
    draft.edits.set_members({}, metadata)
    draft.is_stated = True
    step.items += 1


def leave(step: PhaseResult, links: Collection[str]) -> None:
    """Take back memberships that clients alone state, by the ids of the links."""
    step.propositions += tuple(step.work.stored_links(links))
    step.items += len(links)


def put_away(step: PhaseResult, memory: Memory, nodes: Collection[NodeDraft]) -> int:
    """Archive concepts: they say so themselves, belong to Archived, and to no other domain. Return how many.

    What a file states of their domains stays.
    """
    archived = concept_id(DOMAIN, ARCHIVED)
    memberships: dict[str, list[str]] = {}
    for concept, link, is_free in memory.ask(_MEMBERSHIPS, [node.id for node in nodes]):
        if is_free and link != link_id(IN_DOMAIN, "", concept, archived):
            memberships.setdefault(concept, []).append(link)
    leaving: list[str] = []
    count = 0
    for node in nodes:
        links = memberships.get(node.id, [])
        if len(links) + 2 > step.room - len(leaving):
            step.leave(LATER)
            continue
        edit(step, node, {"status": "archived", "archived_at": memory.now, "archived_by": SYSTEM})
        join(step, node.id, archived, stamp(ARCHIVING, 1.0))
        leaving += links
        count += 1
    leave(step, leaving)
    return count
