"""Records that are folded late, some of them after others that came later, give what a full replay gives."""

from __future__ import annotations

import msgspec
import pytest

from kbcore.errors import ViewDamaged
from kbcore.ids import link_id
from kbcore.model.folding import apply
from kbcore.model.graph import FORMER_IDS
from kbcore.model.read_set import NOTHING, needs, needs_of_fold
from kbcore.model.record import DropNode, Operation, PutNode, ReadSource, StateLink
from kbcore.model.schema import CORE
from kbcore.model.state import Stamp
from kbcore.view.history import state_at
from kbcore.view.sync_facts import gone_with_former_ids
from tests.support.generators.histories import basis_at, entries_of, lines_of, states_of
from tests.support.views.grown import built
from tests.support.views.late import wrong_when_late


@pytest.mark.sliced(2)
@pytest.mark.parametrize("seed", range(6))
def test_records_that_are_folded_late_come_to_what_full_replay_comes_to(seed: int) -> None:
    assert wrong_when_late(seed) == []


def creating(number: int, *ends: str) -> list[Operation]:
    made: list[Operation] = [PutNode(id=f"N-{number}", base=0, set={"type": "req", "title": "x"})]
    return made + [StateLink(type="depends_on", from_id=f"N-{number}", to_id=end, base=0) for end in ends]


def test_what_an_operation_creates_is_not_looked_up_to_fold_it_but_is_to_plan_it() -> None:
    ops = creating(1, "A")
    key = link_id("depends_on", "", "N-1", "A")
    assert (needs(ops).nodes, needs(ops).links) == ({"N-1", "A"}, {key})
    assert (needs_of_fold(ops).nodes, needs_of_fold(ops).links) == ({"N-1", "A"}, set()), "the ends of the edge"
    assert needs_of_fold(ops[:1]).nodes == set()
    assert needs_of_fold(ops).touching == needs(ops).touching == {"N-1", key}, "what waits for them"
    changed = [PutNode(id="A", base=1, set={"title": "y"})]
    assert needs_of_fold(changed) == needs(changed) != NOTHING


def test_records_are_folded_only_when_what_they_may_change_is_asked_for() -> None:
    entries = entries_of([creating(1), creating(2), creating(3), creating(4, "N-1")])
    with built(entries, 2) as view:
        view.extend(iter(entries[2:]), basis_at(entries, 4))
        assert view.seq == 4
        assert [node.id for node in view.nodes(["N-2", "N-9"])] == ["N-2"]
        assert (view.links([link_id("depends_on", "", "N-2", "N-1")]), view.touching(["N-2"])) == ([], [])
        assert view.changeset("cs-3") == (3, entries[2].record.digest)
        assert "Drug" not in view.schema(CORE).entities
        assert len(view._pending.entries) == 2
        assert [link.to_id for link in view.touching(["N-1"])] == ["N-1"]
        assert not view._pending.entries
        assert view.rows("select count(*) from node") == [(4,)]


def test_an_id_that_is_gone_with_its_former_ids_is_known_before_and_after_it_is_in_tables() -> None:
    renamed = [
        PutNode(id=f"N-{number}", base=0, set={"type": "req", "title": "x", FORMER_IDS: [f"OLD-{number}"]})
        for number in (2, 3)
    ]
    changed = [DropNode("N-1", base=1), DropNode("N-2", base=1), PutNode(id="N-3", base=1, set={"title": "y"})]
    entries = entries_of([creating(1) + renamed, changed])
    for at in (0, 1, 2):
        with built(entries, at) as view:
            view.extend(iter(entries[at:]), basis_at(entries, 2))
            assert gone_with_former_ids(view) == ["N-2"]
            assert "_connection" not in vars(view) or at, "a short branch needs no database for it"
            assert view.rows("select count(*) from node_history") == [(3,)]
            assert gone_with_former_ids(view) == ["N-2"]


EDGE = StateLink(type="depends_on", from_id="N-1", to_id="N-9", base=0)
EDGE_ID = link_id("depends_on", "", "N-1", "N-9")
ABOUT = StateLink(type="relates_to", from_id=EDGE_ID, to_id="N-1", base=0)
ABOUT_ID = link_id("relates_to", "", EDGE_ID, "N-1")
SOURCE = ReadSource(path="docs/a.md", hash="1" * 64, extractor="markdown", base=0)


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("early", "late", "asked"),
    [
        pytest.param([EDGE], creating(9), lambda view: view.links([EDGE_ID]), id="its end comes"),
        pytest.param([EDGE], creating(9), lambda view: view.touching(["N-1"]), id="the other end comes"),
        pytest.param([EDGE, ABOUT], creating(9), lambda view: view.links([ABOUT_ID]), id="the end of its end comes"),
        pytest.param([], [EDGE], lambda view: view.links([EDGE_ID]), id="the edge comes"),
        pytest.param([], [EDGE], lambda view: view.touching(["N-9"]), id="an edge comes to the end"),
        pytest.param([], creating(9), lambda view: view.nodes(["N-9"]), id="the entity comes"),
        pytest.param(
            [],
            [PutNode(id="N-9", base=0, set={"name": "nine"})],
            lambda view: view.named(["nine"]),
            id="the name comes",
        ),
        pytest.param([], [SOURCE], lambda view: view.sources(["docs/a.md"]), id="the file comes"),
        pytest.param(
            [],
            [msgspec.structs.replace(SOURCE, is_ok=False)],
            lambda view: view.unread(["docs/a.md"]),
            id="the unread file comes",
        ),
        pytest.param(
            [],
            [PutNode(id="N-9", base=0, set={"title": "x"}, src="docs/a.md")],
            lambda view: view.stated_by(["docs/a.md"]),
            id="what the file states comes",
        ),
        pytest.param(
            [],
            creating(9),
            lambda view: view.cells("node", ["id"], ("id = ?", ["N-9"]), lambda node: node.id == "N-9"),
            id="the cells come",
        ),
    ],
)
def test_what_pending_records_change_is_answered_as_after_a_full_fold(early, late, asked) -> None:
    entries = entries_of([creating(1) + early, creating(2), late])
    with built(entries, 3) as whole, built(entries, 1) as view:
        assert asked(whole)
        assert asked(whole) != asked(view)
        view.extend(iter(entries[1:]), basis_at(entries, 3))
        assert asked(view) == asked(whole)


def test_what_a_pending_record_defines_counts_at_once() -> None:
    defining = PutNode(id="$ConceptType:Drug", base=0, set={"type": "$ConceptType", "name": "Drug"})
    entries = entries_of([creating(1), [defining], [PutNode(id=defining.id, base=2, set={"title": "x"})]])
    with built(entries, 1) as view:
        assert "$ConceptType:Drug" not in view.definitions()
        view.extend(iter(entries[1:2]), basis_at(entries, 2))
        assert "Drug" in view.schema(CORE).entities
        view.extend(iter(entries[2:]), basis_at(entries, 3))
        assert view.definitions()["$ConceptType:Drug"].fields["title"] == "x"


def test_many_records_are_folded_before_a_write_takes_the_lock() -> None:
    entries = entries_of([creating(number) for number in range(1, 601)])
    with built(entries, 1) as view:
        view.extend(iter(entries[1:400]), basis_at(entries, 400))
        view.prepare()
        assert len(view._pending.entries) == 399
        view.extend(iter(entries[400:]), basis_at(entries, 600))
        view.prepare()
        assert not view._pending.entries
        assert view.tail_rows == 2 * 599


def test_a_view_is_ready_while_little_is_to_be_taken_in_and_little_to_be_folded() -> None:
    entries = entries_of([creating(number) for number in range(1, 601)])
    with built(entries, 1) as view:
        assert view.is_ready(1)
        assert view.is_ready(64)
        assert not view.is_ready(65), "64 records are yet to be read"
        view.extend(iter(entries[1:500]), basis_at(entries, 500))
        assert view.is_ready(512)
        assert not view.is_ready(513), "512 records are yet to be folded"
        view.prepare()
        assert view.is_ready(512)


def test_a_fold_that_was_interrupted_is_done_again_or_the_view_is_given_up(monkeypatch) -> None:
    entries = entries_of([creating(number) for number in range(1, 5)])

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with built(entries, 1) as view:
        view.extend(iter(entries[1:]), basis_at(entries, 4))
        with monkeypatch.context() as patched:
            patched.setattr("kbcore.view.view.fold", interrupted)
            with pytest.raises(KeyboardInterrupt):
                view.nodes(["N-3"])
        assert [node.id for node in view.nodes(["N-3"])] == ["N-3"]
    with built(entries, 1) as view:
        view.extend(iter(entries[1:]), basis_at(entries, 4))
        with monkeypatch.context() as patched:
            patched.setattr(view._tail, "add", interrupted)
            with pytest.raises(KeyboardInterrupt):
                view.nodes(["N-3"])
        with pytest.raises(ViewDamaged, match="interrupt"):
            view.rows("select 1")


def test_the_commit_of_this_process_does_not_wait_for_what_others_wrote() -> None:
    entries = entries_of([creating(1), creating(2), creating(3, "N-1")])
    with built(entries, 1) as view:
        view.extend(iter(entries[1:2]), basis_at(entries, 2))
        record = entries[2].record
        state = view.gather(needs(record.ops))
        changes = apply(state, Stamp(3, record.at, record.actor, record.source), record.ops)
        view.adopt(entries[2], changes, basis_at(entries, 3))
        assert (view.seq, len(view._pending.entries)) == (3, 1)
        assert lines_of(state_at(view, 3)) == lines_of(states_of(entries)[3])


def test_the_changes_since_a_record_are_in_the_order_of_the_records() -> None:
    entries = entries_of([creating(1), creating(2), creating(3, "N-1")])
    with built(entries, 1) as view:
        assert view.changes_since(1) == []
        view.extend(iter(entries[1:2]), basis_at(entries, 2))
        record = entries[2].record
        changes = apply(view.gather(needs(record.ops)), Stamp(3, record.at, record.actor, record.source), record.ops)
        view.adopt(entries[2], changes, basis_at(entries, 3))  # the second one is folded after it
        since = view.changes_since(1)
        assert since is not None
        assert [change.key for one in since for change in one.nodes] == ["N-2", "N-3"]
        assert view.changes_since(2) == [changes]
        assert [view.has_record(number, entries[number - 1].sum) for number in (1, 2, 3)] == [True, True, True]
        assert [view.has_record(number, entries[0].sum) for number in (0, 2, 3, 4)] == [True, False, False, False]


def test_the_changes_since_a_record_that_only_the_base_has_are_not_available() -> None:
    entries = entries_of([creating(number) for number in range(1, 4)])
    with built(entries, 2) as view:
        view.extend(iter(entries[2:]), basis_at(entries, 3))
        assert view.changes_since(1) is None
        assert len(view.changes_since(2) or []) == 1
