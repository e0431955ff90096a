"""Compaction keeps every answer; pruning gives up history and nothing else."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import ChangesetIdReused, HistoryPruned, InvalidQuery, NotFound, StaleBase
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.proof import verify_branch
from kbcore.model import canonical
from kbcore.model.schema import CORE
from kbcore.storage import compaction
from kbcore.store import branches
from kbcore.store.branch_store import BranchStore
from kbcore.store.history import undo
from kbcore.store.history.compare import diff, diff_branches
from kbcore.store.history.log import log, record_json
from kbcore.store.history.moment import read_at, seq_at
from kbcore.store.history.undo import UndoOptions, revert_planner
from kbcore.store.write_request import Request
from kbcore.view import replay
from kbcore.view.history import state_at
from tests.support.generators.histories import laws, lines_of, records
from tests.support.repository.places import caches_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.stores import Stored, view_of


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def filled(project: Project, *, compact_at: tuple[int, ...] = ()) -> list[list[bytes]]:
    """Write five records, compacting after some; return the state at every seq."""
    project.apply(changeset_id="cs-1", entities=[entity("N1")])
    for number in range(2, 6):
        entities = [entity(f"N{number}"), entity("N1", owner=str(number))]
        edges = [{"type": "depends_on", "from": f"N{number}", "to": "N1"}]
        project.apply(changeset_id=f"cs-{number}", entities=entities, edges=edges)
        if number in compact_at:
            compact(project.workspace(), "main")
    return [lines_of(state_at(project.view(), seq)) for seq in range(6)]


def fresh(project: Project) -> BranchStore:
    """Return the store as a process sees it that has just begun."""
    project.pool.close()
    store, _, _ = branches.open_branch(project.workspace(), "main")
    return store


def without_cache(project: Project) -> BranchStore:
    (caches_at(project.root) / "main/view.duckdb").unlink(missing_ok=True)
    return fresh(project)


def test_compaction_writes_the_state_and_changes_no_answer(project: Project) -> None:
    states = filled(project)
    before = log(project.view())
    answer = compact(project.workspace(), "main")
    assert (answer.seq, answer.history_from, answer.snapshot) == (5, 0, "snapshot-0000000005.jsonl")
    assert answer.sealed == "journal-0000000001.jsonl"
    for store in (project.workspace().store("main"), fresh(project), without_cache(project)):
        assert log(view_of(store)) == before
        assert [lines_of(state_at(view_of(store), seq)) for seq in range(6)] == states
    again = compact(project.workspace(), "main")
    assert (again.sealed, again.pruned) == ("", ())
    assert project.apply(entities=[entity("N6")]).seq == 6


def test_the_snapshot_holds_what_full_replay_comes_to(project: Project) -> None:
    filled(project)
    answer = compact(project.workspace(), "main")
    directory = project.workspace().folders.directory_of("main")
    lines = (directory / answer.snapshot).read_bytes().splitlines()
    store = project.workspace().store("main")
    folded = replay.folded(project.machine.fs, directory, store.head())
    facts = list(canonical.lines(folded.state, folded.known))
    assert [line[len(b'{"crc":"00000000","fact":') : -1] for line in lines[1:-1]] == facts
    assert lines_of(state_at(view_of(store), 5)) == list(canonical.lines(folded.state))
    assert [known.changeset_id for known in folded.known] == [f"cs-{number}" for number in range(1, 6)]


def test_what_cannot_be_given_up_is_said_with_the_seq_that_can(project: Project) -> None:
    filled(project)
    first = compact(project.workspace(), "main", prune_before=3)
    assert first.pruned == ()
    assert first.not_pruned.startswith("records 1 to 5 are one part of the journal")
    assert first.not_pruned.endswith("--prune-before 6 gives it up.")
    project.apply(entities=[entity("N6")])
    at_once = compact(project.workspace(), "main", prune_before=7)
    assert (at_once.history_from, at_once.not_pruned) == (6, "")
    assert compact(project.workspace(), "main", prune_before=7).not_pruned == ""


@pytest.mark.sliced
def test_a_pruned_store_opens_from_its_snapshot_and_answers_from_there_on(project: Project) -> None:
    states = filled(project, compact_at=(2, 3))
    answer = compact(project.workspace(), "main", prune_before=4)
    assert answer.history_from == 3
    assert answer.pruned == ("journal-0000000001.jsonl", "journal-0000000003.jsonl", "snapshot-0000000002.jsonl")
    for store in (project.workspace().store("main"), fresh(project), without_cache(project)):
        view = view_of(store)
        assert view.basis.history_from == 3
        assert [lines_of(state_at(view, seq)) for seq in (3, 4, 5)] == states[3:]
        assert [one["seq"] for one in log(view)] == [5, 4]
        assert [one["seq"] for one in log(view, id="N1")] == [5, 4]
    assert project.apply(entities=[entity("N6")]).seq == 6
    assert verify_branch(project.workspace(), "main", with_view=True).is_sound


def test_a_question_about_pruned_history_is_refused_with_where_history_begins(project: Project) -> None:
    filled(project, compact_at=(3,))
    compact(project.workspace(), "main", prune_before=4)
    store = fresh(project)
    view = view_of(store)
    asked = [
        lambda: state_at(view, 2),
        lambda: seq_at(view, "2"),
        lambda: seq_at(view, "2020-01-01"),
        lambda: read_at(store, "2", lambda _, seq: seq),
        lambda: store.view_until(2),
        lambda: diff(view, 2, 5),
        lambda: diff(view, 5, 2),
        lambda: record_json(store, view, 3),
        lambda: undo.revert(project.workspace(), "main", AUTHOR, [3], follows_head=True),
        lambda: undo.rollback(project.workspace(), "main", AUTHOR, 2, follows_head=True),
    ]
    for ask in asked:
        with pytest.raises(HistoryPruned) as refused:
            ask()
        assert refused.value.data["history_from"] in {3, 4}
    assert diff(view, 3, 5)["entities"]
    assert record_json(store, view, 4)["seq"] == 4


@pytest.mark.sliced
def test_a_changeset_takes_effect_at_most_once_even_after_its_record_was_pruned(project: Project) -> None:
    filled(project)
    compact(project.workspace(), "main", prune_before=6)
    fresh(project)
    again = project.apply(changeset_id="cs-1", entities=[entity("N1")])
    assert (again.seq, again.duplicate) == (1, True)
    assert "pruned" in again.warnings[0]
    with pytest.raises(ChangesetIdReused):
        project.apply(changeset_id="cs-1", entities=[entity("N9")])
    assert project.seq() == 5
    compact(project.workspace(), "main")
    without_cache(project)
    assert project.apply(changeset_id="cs-1", entities=[entity("N1")]).duplicate


def test_a_pruned_changeset_stays_known_where_nothing_of_it_is_left_and_a_new_view_is_published(
    project: Project,
) -> None:
    project.apply(changeset_id="once", entities=[entity("A")])
    project.delete(entities=[{"id": "A"}])
    compact(project.workspace(), "main", prune_before=3)
    without_cache(project)
    project.apply(entities=[entity(f"B{number}") for number in range(2100)])
    assert (caches_at(project.root) / "main/view.duckdb").exists()
    assert project.apply(changeset_id="once", entities=[entity("A")]).duplicate
    fresh(project)
    assert project.apply(changeset_id="once", entities=[entity("A")]).duplicate


def test_what_was_read_before_pruned_history_is_no_guard_for_what_is_absent_now(project: Project) -> None:
    filled(project)
    project.delete(entities=[{"id": "N5"}])
    compact(project.workspace(), "main", prune_before=7)
    fresh(project)
    with pytest.raises(StaleBase) as refused:
        project.apply(expected_seq=5, entities=[entity("N5")])
    assert "cannot be determined" in refused.value.message
    assert project.apply(expected_seq=6, entities=[entity("N5")]).applied


@pytest.mark.sliced
def test_a_branch_is_copied_from_a_pruned_store_and_parts_from_it(project: Project) -> None:
    filled(project)
    compact(project.workspace(), "main", prune_before=6)
    project.switch("feature", create=True)
    project.apply(entities=[entity("F")])
    assert verify_branch(project.workspace(), "feature", with_view=True).is_sound
    found = diff_branches(project.view("main"), project.view("feature"))
    assert (found["base"], [one["id"] for one in found["entities"]]) == (5, ["F"])


@pytest.mark.sliced
def test_branches_whose_common_history_was_pruned_on_one_side_are_compared_whole(project: Project) -> None:
    filled(project)
    project.switch("feature", create=True)
    project.apply(entities=[entity("F")])
    project.apply(branch="main", entities=[entity("M")])
    compact(project.workspace(), "feature", prune_before=7)
    found = diff_branches(project.view("main"), project.view("feature"))
    assert found["base"] is None
    assert [(one["id"], one["change"]) for one in found["entities"]] == [("F", "created"), ("M", "deleted")]


def test_pruning_beyond_the_head_is_refused(project: Project) -> None:
    filled(project)
    with pytest.raises(InvalidQuery):
        compact(project.workspace(), "main", prune_before=7)


def test_an_empty_store_is_compacted_into_nothing(project: Project) -> None:
    project.view()
    answer = compact(project.workspace(), "main")
    assert (answer.snapshot, answer.sealed, answer.seq) == ("", "", 0)
    assert answer.as_json()["history_from"] == 0


STEPS = st.lists(st.sampled_from(["commit", "commit", "commit", "compact", "prune", "reopen", "lose"]), max_size=10)


@laws(8)
@given(records(max_size=6), STEPS, st.data())
def test_compaction_pruning_and_lost_caches_change_no_answer(history, steps, data) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = Stored(Path(folder))
        waiting, states = list(history), [[]]
        for step in [*steps, "commit"]:
            if step == "commit" and waiting:
                made.commit(waiting.pop(0))
            elif step in {"compact", "prune"}:
                seq = made.view().seq
                before = data.draw(st.integers(1, seq + 1)) if step == "prune" else None
                compact_store(made, before)
            elif step in {"reopen", "lose"}:
                if step == "lose":
                    (made.cache_dir / "view.duckdb").unlink(missing_ok=True)
                made.reopen()
            view = made.view()
            del states[view.seq :]
            states.append(lines_of(state_at(view, view.seq)))
            first = replay.history_from(made.store.head())
            assert view.basis.history_from == first
            assert [lines_of(state_at(view, seq)) for seq in range(first, view.seq + 1)] == states[first:]
        folded = replay.folded(made.fs, made.directory, made.store.head())
        assert lines_of(folded.state) == states[-1]
        assert [one.seq for one in folded.known] == list(range(1, view.seq + 1))
        known = view.rows("select seq, changeset_id, digest from record order by seq")
        assert known == [(one.seq, one.changeset_id, one.digest) for one in folded.known]
        if view.seq > first:
            planner = revert_planner([view.seq], CORE, UndoOptions(force=True))
            changed = set(states[-1]) ^ set(states[-2])
            has_only_files = bool(changed) and all(line.startswith(b'{"source":') for line in changed)
            with pytest.raises(NotFound) if has_only_files else nullcontext():
                made.store.commit(AUTHOR, Request(), planner, branch="main")
        made.close()


def compact_store(made: Stored, prune_before: int | None) -> None:
    def fold(head):
        folded = replay.folded(made.fs, made.directory, head)
        return canonical.lines(folded.state, folded.known)

    compaction.compact(made.fs, made.directory, made.clock, fold, prune_before=prune_before, wait_s=0)
