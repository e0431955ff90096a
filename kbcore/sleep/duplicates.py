"""Phase 6: concepts whose names are one name, and that say nothing against each other, are merged as MERGE does it.

All other pairs that look alike are for judgement: alike is not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.kip.elements import node_json
from kbcore.kip.kml.merge import ALIASES, merge
from kbcore.kip.names import TypeNames
from kbcore.model import Node
from kbcore.sleep.alike import SAME_NAME, Pair, namesakes
from kbcore.sleep.memory import PROTECTED, Memory
from kbcore.sleep.phase import LATER, Step
from kbcore.values import is_same

_DEGREES: Final = """select id, count(*) from (
  select from_id as id from link where stands union all select to_id from link where stands
) where id in (select unnest($1::varchar[])) group by id"""


class Likeness(msgspec.Struct, frozen=True):
    """Two concepts that look alike: one to keep, one to merge into it, and where they contradict each other."""

    kept: Node
    gone: Node
    pair: Pair
    links: int
    """How many links would have to be led from the one to the other."""
    contradictions: tuple[str, ...]

    @property
    def is_sure(self) -> bool:
        """Tell whether they may be merged without asking anybody."""
        return self.pair.score == SAME_NAME and self.pair.is_free and not self.contradictions


def likenesses(memory: Memory, names: TypeNames, found: Sequence[Pair]) -> list[Likeness]:
    """Return what is to become of pairs. Kept is what a file states, then what is older, then better linked."""
    ids = sorted({key for pair in found for key in (pair.one, pair.two)})
    nodes = {node.id: node for node in memory.view.nodes(ids)}
    degrees = dict(memory.view.rows(_DEGREES, [ids])) if ids else {}

    def rank(node: Node) -> tuple[bool, int, int, str]:
        return not node.owners, node.created_seq, -degrees.get(node.id, 0), node.id

    judged = []
    for pair in found:
        kept, gone = sorted((nodes[pair.one], nodes[pair.two]), key=rank)
        if not gone.owners and gone.id not in PROTECTED:
            against = tuple(_contradictions(kept, gone, names))
            judged.append(Likeness(kept, gone, pair, degrees.get(gone.id, 0), against))
    return judged


def _contradictions(one: Node, two: Node, names: TypeNames) -> Iterable[str]:
    """Yield the attributes that both have, with different values."""
    first, second = (node_json(node, names)["attributes"] for node in (one, two))
    for key in sorted(first.keys() & second.keys()):
        if (
            key != ALIASES
            and first[key] is not None
            and second[key] is not None
            and not is_same(first[key], second[key])
        ):
            yield key


def plan(memory: Memory) -> Step:
    """Return the merges that need nobody's judgement."""
    step = Step(memory.work())
    found = likenesses(memory, step.work.names, namesakes(memory))
    into: dict[str, str] = {}
    for one in found:
        if one.is_sure and one.gone.id not in into:
            if step.room <= one.links:
                step.leave(LATER)
                continue
            into[one.gone.id] = one.kept.id
            step.items += 1 + one.links
    targets = {gone: _end(into, gone) for gone in into}
    against = {one.gone.id for one in found if not one.is_sure}
    safe = {gone: kept for gone, kept in targets.items() if gone not in against}
    step.work.look_up({*safe.keys(), *safe.values()})
    drafts = [(step.work.node(gone, 0), step.work.node(kept, 0)) for gone, kept in sorted(safe.items())]
    couples = [(gone, kept) for gone, kept in drafts if gone and kept]
    if couples:
        intent = merge(step.work, couples)
        step.concepts = intent.concepts
    step.count("duplicates merged", len(couples))
    step.leave("pairs of one name for judgement", sum(not one.is_sure for one in found))
    return step


def _end(into: Mapping[str, Any], key: str) -> str:
    """Return what is left of a concept once all is merged: what is kept may itself be merged into another."""
    while key in into:
        key = into[key]
    return key
