"""The change that a record of a client is, for single records."""

from __future__ import annotations

import time

from kbcore.ids import link_id
from kbcore.model.claims.change import SELF, AddEdge, Change, Create, EdgeRef, EntityRef, identified
from kbcore.model.claims.derived import derived
from kbcore.model.claims.fold import fold
from kbcore.model.record import PutNode, Record, WithdrawLink

EDGES = 10_000


def test_an_entity_with_many_edges_that_waited_for_it_is_created_in_seconds() -> None:
    hub = EntityRef("HUB")
    claims = [
        claim
        for number in range(EDGES)
        for claim in (
            Create(f"S-{number}"),
            AddEdge(EdgeRef("relates_to", EntityRef(f"S-{number}", (SELF,)), hub, "see")),
        )
    ]
    before = fold([identified(Change("", "2026-11-01T00:00:00.000000Z", "ann", "kb/test", tuple(claims)))])
    ops = (PutNode("HUB", 0, {"type": "symbol"}),)
    record = Record(1, "hub-1", "", "2026-11-02T00:00:00.000000Z", "ann", "cli", "kb/test", ops)
    began_s = time.process_time()
    change = derived(record, "chain", before)
    assert time.process_time() - began_s < 5
    assert change is not None
    assert sum(isinstance(one, AddEdge) for one in change.claims) == EDGES


def test_an_edge_about_one_that_a_new_entity_takes_over_is_gone_where_the_same_record_withdraws_it() -> None:
    one, other = EntityRef("S-1", (SELF,)), EntityRef("S-2", (SELF,))
    waiting = EdgeRef("relates_to", one, EntityRef("HUB"))
    claims = (Create("S-1"), Create("S-2"), AddEdge(waiting), AddEdge(EdgeRef("relates_to", other, waiting)))
    earlier = identified(Change("", "2026-11-01T00:00:00.000000Z", "ann", "kb/test", claims))
    end = link_id("relates_to", "", "S-1", "HUB")
    ops = (PutNode("HUB", 0, {"type": "symbol"}), WithdrawLink("relates_to", "S-2", end, 1))
    record = Record(1, "hub-1", "", "2026-11-02T00:00:00.000000Z", "ann", "cli", "kb/test", ops)
    before = fold([earlier])
    assert {*before.edges} == {end, link_id("relates_to", "", "S-2", end)}

    change = derived(record, "chain", before)

    assert change is not None
    assert {*fold([earlier, change]).edges} == {end}
