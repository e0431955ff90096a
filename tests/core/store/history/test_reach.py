"""The earliest seq that a branch answers for: one boundary, and the same words from every caller."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kbcore.errors import HistoryPruned, InvalidQuery, NotFound
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.salvage import salvage
from kbcore.model.schema import CORE
from kbcore.model.state import Stamp
from kbcore.query.paging import page_of
from kbcore.query.request import Query
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.store.history.compare import count_differences, diff, differences_from
from kbcore.store.history.log import log, no_such_entity, record_json, stated_json
from kbcore.store.history.moment import read_at, seq_at
from kbcore.store.history.reach import first_record, is_pruned, not_listed
from kbcore.store.history.touched import changes_of, touched
from kbcore.store.history.undo import revert_planner, rollback_planner
from kbcore.view.gaps import Gap
from kbcore.view.history import state_at
from kbcore.view.view import View
from tests.support.disk.damage import FIRST, flip, forget
from tests.support.repository.project import AUTHOR, Project

STAMP = Stamp(9, "2999-01-01T00:00:00.000000Z", "tester", "cli")


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture
def pruned(project: Project) -> View:
    """Five records, of which 1 to 3 are pruned; B came and went among these."""
    project.apply(entities=[entity("A"), entity("B")])
    project.delete(entities=[{"id": "B"}])
    project.apply(entities=[{"id": "A", "status": "done"}])
    compact(project.workspace(), "main")
    project.apply(entities=[{"id": "A", "status": "met"}])
    project.apply(entities=[entity("C")])
    compact(project.workspace(), "main", prune_before=4)
    return project.view()


ASKED: list[Callable[[View], Any]] = [
    lambda view: seq_at(view, "2"),
    lambda view: seq_at(view, "2001-01-01"),
    lambda view: state_at(view, 2),
    lambda view: next(differences_from(view, 5, 2, 0, at_once=1)),
    lambda view: count_differences(view, 2, 5),
    lambda view: diff(view, 2, 5),
    lambda view: diff(view, 5, 0),
    lambda view: rollback_planner(2)(view, STAMP),
    lambda view: revert_planner([3], CORE)(view, STAMP),
    lambda view: revert_planner([5, 3], CORE)(view, STAMP),
]


@pytest.mark.sliced(3)
@pytest.mark.parametrize("ask", ASKED)
def test_everybody_names_the_same_first_record(pruned: View, ask: Callable[[View], Any]) -> None:
    with pytest.raises(HistoryPruned, match="Records before seq 4 were pruned") as refused:
        ask(pruned)
    assert "record 4 or later" in refused.value.hint
    assert "at seq 3 or later" in refused.value.hint
    assert refused.value.data == {"history_from": 3, "pruned_before": 4}


def test_the_last_pruned_record_is_out_of_reach_and_how_it_left_things_is_not(pruned: View, project: Project) -> None:
    store = project.workspace().store("main")
    with pytest.raises(HistoryPruned, match="record 3 is out of reach"):
        record_json(store, pruned, 3)
    assert (seq_at(pruned, "3"), record_json(store, pruned, 4)["seq"]) == (3, 4)
    assert [one["change"] for one in diff(pruned, 3, 5)["entities"]] == ["updated", "created"]
    assert (first_record(pruned), is_pruned(pruned)) == (4, True)


def test_an_id_of_pruned_records_alone_is_not_said_never_to_have_been(pruned: View) -> None:
    with pytest.raises(NotFound, match=r"since seq 4\. Records before seq 4 were pruned"):
        log(pruned, id="B")
    assert "since seq 4" in no_such_entity(pruned, "B").message


def test_a_record_that_never_was_is_not_said_to_be_pruned(pruned: View, project: Project) -> None:
    store = project.workspace().store("main")
    for seq in (0, 6):
        with pytest.raises(NotFound) as refused:
            record_json(store, pruned, seq)
        assert "4 to 5" in refused.value.hint


def test_as_long_as_nothing_was_pruned_everything_is_in_reach(project: Project) -> None:
    project.apply(entities=[entity("A")])
    view = project.view()
    assert (first_record(view), is_pruned(view), seq_at(view, "0")) == (1, False, 0)
    with pytest.raises(InvalidQuery, match="before the first record"):
        seq_at(view, "2001-01-01")


def test_where_nothing_was_written_there_is_no_record_to_name(project: Project) -> None:
    with pytest.raises(NotFound) as refused:
        revert_planner([1], CORE)(project.view(), STAMP)
    assert refused.value.hint == "Nothing was written yet."


@pytest.fixture
def salvaged(project: Project) -> Project:
    """Eight records, of which the fourth is missing since a salvage; a snapshot holds what the first six led to."""
    depends = {"type": "depends_on", "from": "C", "to": "A"}
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(entities=[entity("C")], edges=[depends, {"type": "depends_on", "from": "B", "to": "A"}])
    project.apply(entities=[{"id": "A", "title": "A two"}])
    project.apply(entities=[{"id": "A", "title": "A three"}], edges=[depends])
    project.apply(entities=[{"id": "B", "title": "B two"}])
    project.apply(entities=[{"id": "A", "title": "A four"}])
    compact(project.workspace(), "main")
    project.apply(entities=[{"id": "C", "title": "C two"}])
    project.apply(entities=[entity("D")])
    flip(project.workspace().folders.directory_of("main") / FIRST, b"A three")
    forget(project)
    salvage(project.workspace(), "main", AUTHOR)
    return project


MISSING = "record 4 is missing since the salvage that record 9 documents"


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda view: rollback_planner(2)(view, STAMP), f"What changed after seq 2 is not proven: {MISSING}"),
        (lambda view: rollback_planner(5)(view, STAMP), f"The state at seq 5 is not proven: {MISSING}"),
        (lambda view: diff(view, 5, 8), f"The state at seq 5 is not proven: {MISSING}"),
        (lambda view: revert_planner([2], CORE)(view, STAMP), f"What became of the changes of record 2 .*: {MISSING}"),
        (lambda view: revert_planner([4], CORE)(view, STAMP), f"^R{MISSING[1:]}"),
        (lambda view: revert_planner([5], CORE)(view, STAMP), f"What record 5 changed is not proven: {MISSING}"),
        (lambda view: page_of(view, Query(at=5), ""), f"The state at seq 5 is not proven: {MISSING}"),
    ],
)  # fmt: skip
def test_what_is_missing_since_a_salvage_is_not_said_to_be_pruned(salvaged: Project, ask: Any, said: str) -> None:
    with pytest.raises(HistoryPruned, match=said) as refused:
        ask(salvaged.view())
    assert "prune" not in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.data["missing"] == [{"first": 4, "last": 4, "marked_by": 9}]


def test_every_record_that_is_left_is_listed_and_shown_as_far_as_it_is_proven(salvaged: Project) -> None:
    view, store = salvaged.view(), salvaged.workspace().store("main")
    assert [row["seq"] for row in log(view, id="A")] == [6, 3, 2, 1]
    named = touched(view, [7, 6, 5, 3, 2, 1], limit=9)
    words = {seq: [(one.change, one.id, one.to_id) for one in found] for seq, found in named.items()}
    assert words[6] == [("updated", "A", "")], "it was there before"
    assert words[2] == [("created", "C", ""), ("created", "B", "A"), ("created", "C", "A")]
    assert words[7] == [("updated", "C", "")]
    assert changes_of(view, "A", 1) == {}, "what stood before it is not known"
    with pytest.raises(HistoryPruned):
        record_json(store, view, 6)
    shown = stated_json(store, view, 6)
    assert shown is not None
    assert (shown["partial"], shown["summary"]["updated"]) == (f"What record 6 changed is not proven: {MISSING}.", 1)
    [operation] = shown["operations"]
    assert (operation["change"], operation["before"], operation["partial"]) == ("updated", None, True)
    assert operation["after"]["title"] == "A four"
    assert stated_json(store, view, 4) is None
    proven = read_at(store, "3", lambda at, seq: record_json(store, at, seq))
    assert proven["operations"][0]["fields"]["title"] == {"before": "Title of A", "after": "A two"}
    assert not_listed(view).sentences() == [f"R{MISSING[1:]}."]


@pytest.mark.sliced
def test_an_edge_that_a_missing_record_may_have_confirmed_is_suspect_until_it_is_confirmed(salvaged: Project) -> None:
    found = {(one.from_id, one.to_id): one.unproven for one in suspect_edges(salvaged.view().rows)}
    assert found == {("B", "A"): MISSING}
    assert [one.from_id for one in suspect_edges(salvaged.view().rows, ends={"A"})] == ["B"]
    salvaged.apply(edges=[{"type": "depends_on", "from": "B", "to": "A"}])
    assert suspect_edges(salvaged.view().rows) == []


def damage(project: Project, inside: bytes) -> None:
    """Damage the record that holds a text, wherever it is, and salvage the store."""
    for path in project.workspace().folders.directory_of("main").glob("journal-*.jsonl"):
        flip(path, inside)
    forget(project)
    salvage(project.workspace(), "main", AUTHOR)


@pytest.mark.sliced
def test_an_edge_that_is_suspect_names_the_gap_after_its_last_confirmation(salvaged: Project) -> None:
    salvaged.apply(edges=[{"type": "depends_on", "from": "B", "to": "A"}])
    salvaged.apply(entities=[{"id": "A", "title": "A five"}])
    salvaged.apply(entities=[{"id": "A", "title": "A six"}])
    compact(salvaged.workspace(), "main")
    salvaged.apply(entities=[entity("E")])
    damage(salvaged, b"A five")
    view = salvaged.view()
    assert [(gap.first, gap.last) for gap in not_listed(view).gaps] == [(4, 4), (11, 11)]
    found = {(one.from_id, one.to_id): (one.confirmed_seq, one.unproven) for one in suspect_edges(view.rows)}
    assert found["B", "A"] == (10, "record 11 is missing since the salvage that record 14 documents")


# How a store came to be: W is a record, X one that is lost, C compacts, P compacts and prunes all before the next one.
STORES = (
    "WWWPWWXW",
    "WWXWCWW",
    "WXWCWXWCW",
    "WPWXWCWXWW",
    "WWPXWCWXW",
    "XWWCW",
    "WWXWWXWW",
    "WWCWXWWCWXW",
    "WWW",
    "WWPW",
)


@pytest.mark.parametrize("steps", STORES)
def build(project: Project, steps: str) -> tuple[int, list[int]]:
    """Make a store; return the first record that was not pruned, and those that are lost."""
    seq, first, lost = 0, 1, list[int]()
    for step in steps:
        if step in "PC":
            compact(project.workspace(), "main")
            if step == "P":
                first = seq + 1
                compact(project.workspace(), "main", prune_before=first)
            continue
        seq += 1
        lost += [seq] if step == "X" else []
        project.apply(entities=[entity(f"K{seq}", **({"owner": f"LOST{seq}"} if step == "X" else {}))])
    for one in lost:
        for path in project.workspace().folders.directory_of("main").glob("journal-*.jsonl"):
            flip(path, b"LOST%d" % one)
    if lost:
        forget(project)
        salvage(project.workspace(), "main", AUTHOR)
    return first, [one for one in lost if one >= first]


@pytest.mark.sliced(4)
@pytest.mark.parametrize("steps", STORES)
def test_each_message_about_a_seq_says_what_the_journal_really_has(steps: str, project: Project) -> None:
    first, lost = build(project, steps)
    store, view = project.workspace().store("main"), project.view()
    listed = {row["seq"] for row in log(view)}
    assert [row for gap in not_listed(view).gaps for row in range(gap.first, gap.last + 1)] == lost
    assert max(not_listed(view).pruned_before, 1) == first
    assert listed == {*range(first, view.seq + 1)}.difference(lost)
    for at in range(view.seq + 1):
        readable = _try(lambda at=at: read_at(store, str(at), lambda one, seq: len(state_at(one, seq).nodes)))
        state = _try(lambda at=at: seq_at(view, str(at)))
        shown = _try(lambda at=at: record_json(store, view, at)) if at else None
        is_readable = not isinstance(readable, HistoryPruned)
        for error in (readable, state, shown):
            if isinstance(error, HistoryPruned):
                assert_true(error, at, listed, first, is_readable=is_readable)
        assert is_readable or "What changed after" not in readable.message, "the state was asked for"
        if isinstance(shown, HistoryPruned):
            assert (stated_json(store, view, at) is not None) == (at in listed)
            assert (at < first) == ("were pruned" in shown.message)
            assert (at in lost) == bool(re.match(r"^Records? .* (is|are) missing since", shown.message))


def _try(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except HistoryPruned as error:
        return error


def assert_true(error: HistoryPruned, at: int, listed: set[int], first_kept: int, *, is_readable: bool) -> None:
    """Compare what a message and its hint say with what there is."""
    said = f"{error.message} {error.hint}"
    if "were pruned" in said:
        assert at < first_kept
    if f"`kb show {at}`" in said:
        assert at in listed
    if f"--at {at}" in said:
        assert is_readable
    if "The state at" in error.message:
        assert not is_readable or at >= min(gap["first"] for gap in error.data["missing"])
    if "documents" in error.message:
        gap = re.search(r"records? (\d+)(?: to (\d+))? (?:is|are) missing", error.message, re.IGNORECASE)
        assert gap
        first, last = int(gap[1]), int(gap[2] or gap[1])
        assert {"first": first, "last": last} in [
            {key: one[key] for key in ("first", "last")} for one in error.data["missing"]
        ]
        if "What changed after" in said or "What became of" in said:
            assert first > at
        elif "is not proven" in said:
            assert first <= at
        else:
            assert first <= at <= last


def test_what_is_pruned_after_a_salvage_is_said_to_be_pruned(salvaged: Project) -> None:
    compact(salvaged.workspace(), "main")
    compact(salvaged.workspace(), "main", prune_before=10)
    view = salvaged.view()
    assert not_listed(view).sentences() == ["Records before seq 10 were pruned."]
    with pytest.raises(HistoryPruned, match="Records before seq 10 were pruned"):
        diff(view, 2, 9)


def test_a_gap_that_a_later_salvage_finds_larger_is_named_once(salvaged: Project) -> None:
    damage(salvaged, b"A two")
    damage(salvaged, b"B two")
    assert not_listed(salvaged.view()).gaps == (Gap(3, 5, 11),)
