"""Phase 6: concepts whose names are one name, and that nothing contradicts, are merged as MERGE does it.

A name is merged as a whole or not at all: of three of which two contradict each other, the third could be
either. All other pairs that look alike are for judgement: alike is not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from kbcore.kip.elements import node_json
from kbcore.kip.kml.merge import ALIASES, merge
from kbcore.kip.names import TypeNames
from kbcore.kip.sleep.memory import Memory
from kbcore.kip.sleep.phase import LATER, PhaseResult
from kbcore.kip.sleep.similar import IS_FREE, Pair, namesakes
from kbcore.model.graph import Node
from kbcore.model.values import is_same

_DEGREES: Final = """select id, count(*) from (
  select from_id as id from link where is_resolved union all select to_id from link where is_resolved
) where id in (select unnest($1::varchar[])) group by id"""

_DISPUTED: Final = """select unnest([from_id, to_id]) from link where contested <> '{}'"""

_FREE: Final = f"select id from node where id in (select unnest($1::varchar[])) and {IS_FREE}"  # noqa: S608 - constants


class LikelyDuplicate(msgspec.Struct, frozen=True):
    """Two concepts that look alike: one to keep, one to merge into it, and where they contradict each other."""

    kept: Node
    gone: Node
    pair: Pair
    contradictions: tuple[str, ...]


class _Known:
    """Facts of some concepts: their content, their number of links, and whether no file states them."""

    def __init__(self, memory: Memory, ids: Iterable[str]) -> None:
        listed = sorted(set(ids))
        self.nodes = {node.id: node for node in memory.view.nodes(listed)}
        self.free = {key for (key,) in memory.view.rows(_FREE, [listed])} if listed else set[str]()
        self.degrees: dict[str, int] = dict(memory.view.rows(_DEGREES, [listed])) if listed else {}

    def in_rank(self, ids: Iterable[str]) -> list[Node]:
        """Return them with the one to keep first: what a file states, then what is older, then better linked."""

        def rank(node: Node) -> tuple[bool, int, int, str]:
            return node.id in self.free, node.created_seq, -self.degrees.get(node.id, 0), node.id

        return sorted((self.nodes[key] for key in ids), key=rank)


def likenesses(memory: Memory, names: TypeNames, found: Sequence[Pair]) -> list[LikelyDuplicate]:
    """Return what is to become of pairs, those aside of which neither may go."""
    known = _Known(memory, (key for pair in found for key in (pair.one, pair.two)))
    judged = []
    for pair in found:
        kept, gone = known.in_rank((pair.one, pair.two))
        if gone.id in known.free:
            judged.append(LikelyDuplicate(kept, gone, pair, tuple(_contradictions([kept, gone], names))))
    return judged


def _contradictions(nodes: Sequence[Node], names: TypeNames) -> list[str]:
    """Return the attributes of which some of these say one thing and some another."""
    said: dict[str, Any] = {}
    found = set()
    for node in nodes:
        for key, value in node_json(node, names)["attributes"].items():
            if key != ALIASES and value is not None and not is_same(said.setdefault(key, value), value):
                found.add(key)
    return sorted(found)


def plan(memory: Memory) -> PhaseResult:
    """Return the merges that need no decision: of all that share a name, or of none of them."""
    step = PhaseResult(memory.work())
    found = namesakes(memory)
    clear = [one.ids for one in found if one.is_clear]
    known = _Known(memory, (key for ids in clear for key in ids))
    into: dict[str, str] = {}
    doubts = len(found) - len(clear)
    disputed = {key for (key,) in memory.view.rows(_DISPUTED, [])} if clear else set[str]()
    for ids in clear:
        kept, *gone = known.in_rank(ids)
        size = sum(1 + known.degrees.get(node.id, 0) for node in gone)
        if _contradictions([kept, *gone], step.work.names) or not disputed.isdisjoint(ids):
            doubts += 1
        elif size > step.room:
            step.leave(LATER, len(gone))
        else:
            into |= {node.id: kept.id for node in gone}
            step.items += size
    step.work.look_up({*into.keys(), *into.values()})
    drafts = [(step.work.node(gone, 0), step.work.node(kept, 0)) for gone, kept in sorted(into.items())]
    couples = [(gone, kept) for gone, kept in drafts if gone and kept]
    if couples:
        merged = merge(step.work, couples)
        step.concepts, step.propositions = merged.concepts, merged.propositions
    step.count("duplicates merged", len(couples))
    step.leave("names of several concepts, for judgement", doubts)
    return step
