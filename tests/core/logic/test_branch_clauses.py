"""Clauses of a branch are facts of it: with history, undo, earlier states, branches and many writers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.errors import BranchMoved, HistoryPruned, InvalidQuery, NotFound
from kbcore.logic.branch_clauses import BranchClauses, ClauseCache
from kbcore.logic.clauses import ClauseChange, Clauses, ClauseStore
from kbcore.logic.pool import ClausePool
from kbcore.storage.fs import RealFs
from kbcore.store.history.log import record_json
from tests.core.store.history.undoing import revert, rollback
from tests.support.repository.clauses import change, clause_store, new, texts
from tests.support.repository.project import AUTHOR, Project, req
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Project]:
    """A project whose file system does each thing in one step, as other processes may rely on."""
    made = Project(tmp_path / "a project", fs=RealFs())
    yield made
    made.close()


def test_a_change_is_one_record_with_author_and_message(project: Project) -> None:
    done = change(clause_store(project), "a.", "b.", message="import facts.pl")
    view = project.view()
    rows = view.rows("select seq, actor, source, message, created, updated, deleted from record")
    assert rows == [(done.seq, "tester", "cli", "import facts.pl", 2, 0, 0)]
    assert {node.type for node in view.nodes([*done.ids])} == {"clause"}


def test_reading_at_an_earlier_seq_gives_the_clauses_of_then(project: Project) -> None:
    store = clause_store(project, ClauseCache())
    done = change(store, "a.", "b.")
    change(store, removed=done.ids[:1])
    change(store, "c.")
    assert [texts(store.read(at)) for at in range(4)] == [[], ["a.", "b."], ["b."], ["b.", "c."]]
    assert (store.read(2).seq, store.read(2).branch) == (2, "main")
    with pytest.raises(NotFound, match="no seq 9"):
        store.read(9)


def test_a_revert_of_an_import_removes_its_clauses_and_no_others(project: Project) -> None:
    store = clause_store(project, ClauseCache())
    change(store, "a.")
    done = change(store, *(f"p({number})." for number in range(300)))
    change(store, "z.")
    assert len(store.read().clauses) == 302
    outcome = revert(project, done.seq)
    assert len(outcome.deleted) == 300
    assert texts(store.read()) == ["a.", "z."]


@pytest.mark.sliced
def test_import_and_reset_are_exempt_from_the_limits_of_a_clients_changeset(project: Project) -> None:
    count = limits.MAX_CHANGESET_ITEMS + 1
    project.write({".kb/config.json": f'{{"logic": {{"maxClauses": {count}}}}}'})
    store = clause_store(project, ClauseCache())
    length = limits.MAX_CHANGESET_BYTES // count
    done = change(store, *(f"p({number}, '{'x' * length}')." for number in range(count)))
    assert (done.seq, len(store.read().clauses)) == (1, count)
    reset = store.change(lambda now: ClauseChange(removed=[one.id for one in now.clauses]), message="reset")
    assert (reset.seq, len(reset.removed), store.read().clauses) == (2, count, ())


def test_a_revert_of_a_retract_brings_the_clause_back_with_id_order_and_time(project: Project) -> None:
    store = clause_store(project, ClauseCache())
    done = change(store, "a.", "b.", "c.")
    before = store.read()
    retracted = change(store, removed=[done.ids[2]])
    change(store, "d.")
    revert(project, retracted.seq)
    found = store.read()
    assert found.clauses[:3] == before.clauses
    assert [(one.text, one.order) for one in found.clauses] == [("a.", 1), ("b.", 2), ("c.", 3), ("d.", 4)]
    assert clause_store(project).read() == found


def test_a_rollback_restores_the_workspace(project: Project) -> None:
    store = clause_store(project, ClauseCache())
    done = change(store, "a.", "b.")
    change(store, "c.", removed=done.ids)
    rollback(project, 1)
    assert texts(store.read()) == ["a.", "b."]
    change(store, "d.")
    assert [one.order for one in store.read().clauses] == [1, 2, 4]


def test_what_was_read_before_is_brought_forward_over_records_of_others(project: Project) -> None:
    cache = ClauseCache()
    kept, other = clause_store(project, cache), clause_store(project)
    change(kept, "a.", "b.")
    first = kept.read()
    assert kept.read() is first
    project.apply(entities=[{"id": "R", "type": "req", "title": "t", "status": "open"}])
    after = kept.read()
    assert (after.seq, after.clauses) == (2, first.clauses)
    change(other, "c.", removed=[first.clauses[0].id])
    assert kept.read() == clause_store(project).read()
    assert texts(kept.read()) == ["b.", "c."]


def test_a_plan_is_made_again_on_what_another_writer_left(project: Project) -> None:
    store, other = clause_store(project, ClauseCache()), clause_store(project)
    seen = list[int]()

    def plan(now: Clauses) -> ClauseChange:
        seen.append(now.seq)
        if len(seen) == 1:
            change(other, "first.")
        return ClauseChange([new(f"second({len(now.clauses)}).")])

    done = store.change(plan)
    assert (seen, done.seq) == ([0, 1], 2)
    assert [(one.text, one.order) for one in store.read().clauses] == [("first.", 1), ("second(1).", 2)]


def test_a_plan_is_not_made_again_for_records_about_other_things(project: Project) -> None:
    store = clause_store(project, ClauseCache())
    change(store, "a.")
    other, seen = Project(project.root, is_new=False), list[int]()

    def plan(now: Clauses) -> ClauseChange:
        seen.append(now.seq)
        other.apply(entities=[{"id": "R", "type": "req", "title": "t", "status": "open"}])
        return ClauseChange([new("b.")], [now.clauses[0].id])

    done = store.change(plan)
    other.close()
    assert (seen, done.seq) == ([1], 3)
    assert store.read() == clause_store(project).read()
    assert [(one.text, one.order) for one in store.read().clauses] == [("b.", 2)]


def test_a_retract_of_what_another_writer_removed_is_planned_without_it(project: Project) -> None:
    store, other = clause_store(project, ClauseCache()), clause_store(project)
    [key] = change(store, "a.").ids
    seen = list[int]()

    def plan(now: Clauses) -> ClauseChange:
        seen.append(len(now.clauses))
        if len(seen) == 1:
            change(other, removed=[key])
        return ClauseChange(removed=[one.id for one in now.clauses])

    done = store.change(plan)
    assert (seen, done.is_written, done.removed) == ([1, 0], False, ())


@pytest.mark.sliced
def test_two_processes_that_add_at_once_lose_nothing_and_share_no_number(shared: Project) -> None:
    change(clause_store(shared), "first.")
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.support.processes.worker", str(shared.root), "clauses", name, "15"],
            cwd=ROOT,
            env=git_env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("p", "q")
    ]
    acknowledged = list[str]()
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err
        acknowledged += out.split()
    shared.close()
    found = clause_store(shared).read()
    assert len(acknowledged) == 30
    assert {*acknowledged} < {one.id for one in found.clauses}
    assert [one.order for one in found.clauses] == list(range(1, 32))
    assert [one for one in texts(found) if one.startswith("p")] == [f"p({number})." for number in range(15)]


def test_branches_have_workspaces_of_their_own(project: Project) -> None:
    cache = ClauseCache()
    change(clause_store(project, cache), "a.")
    project.switch("topic", create=True)
    change(clause_store(project, cache), "b.")
    project.switch("main")
    change(clause_store(project, cache), "c.")
    assert texts(clause_store(project, cache).read()) == ["a.", "c."]
    project.switch("topic")
    assert texts(clause_store(project, cache).read()) == ["a.", "b."]


def test_a_change_is_refused_when_head_moves_meanwhile(project: Project) -> None:
    store = clause_store(project)

    def plan(_: Clauses) -> ClauseChange:
        project.switch("topic", create=True)
        return ClauseChange([new("a.")])

    with pytest.raises(BranchMoved):
        store.change(plan)
    assert project.view("main").seq == 0


def test_a_sync_leaves_clauses_alone_also_where_their_file_is_a_document_of_its_own(project: Project) -> None:
    project.sync({"docs/requirements/1.md": req("A")})
    store = clause_store(project, ClauseCache())
    store.change(lambda _: ClauseChange([new("a.", file="docs/requirements/1.md", line=1)]))
    before = store.read().clauses
    project.sync({"docs/requirements/1.md": None, "docs/requirements/2.md": req("B")}, rebuild=True)
    assert store.read().clauses == before


def test_a_cache_that_is_deleted_changes_nothing(project: Project, tmp_path: Path) -> None:
    done = change(clause_store(project), "a.", "b.")
    change(clause_store(project), removed=done.ids[:1])
    before = clause_store(project).read()
    project.close()
    again = Project(project.root, is_new=False)
    assert clause_store(again).read() == before
    again.close()


def test_a_branch_whose_history_is_pruned_keeps_its_clauses(project: Project) -> None:
    from kbcore.maintenance.compacting import compact

    store = clause_store(project, ClauseCache())
    done = change(store, "a.", "b.")
    change(store, removed=[done.ids[1]])
    before = store.read().clauses
    compact(project.workspace(), "main", prune_before=3)
    assert store.read().clauses == clause_store(project).read().clauses == before
    with pytest.raises(HistoryPruned):
        store.read(at=0)
    change(store, "c.")
    assert texts(clause_store(project).read()) == ["a.", "c."]


def test_an_entity_of_a_projects_own_type_clause_is_no_clause_of_the_workspace(project: Project) -> None:
    project.write({".kb/schema/own.yaml": "entities: {clause: {description: Of a contract.}}\n"})
    project.apply(entities=[{"id": "CL-1", "type": "clause", "title": "t", "status": "open"}])
    change(clause_store(project), "a.")
    assert texts(clause_store(project).read()) == ["a."]
    assert project.view().rows("select id from node") == [("CL-1",)]


def test_the_settings_choose_between_branch_and_session(project: Project) -> None:
    pool = ClausePool()

    def store() -> ClauseStore:
        return pool.store(project.workspace(), "main", AUTHOR, follows_head=True)

    assert isinstance(store(), BranchClauses)
    project.write({".kb/config.json": '{"logic": {"workspace": "session", "maxClauses": 3}}'})
    change(store(), "a.")
    assert texts(store().read()) == ["a."]
    assert project.view().seq == 0
    with pytest.raises(InvalidQuery, match="no history"):
        store().read(at=0)


def test_a_record_of_clauses_can_be_shown(project: Project) -> None:
    done = change(clause_store(project), "a.")
    workspace = project.workspace()
    shown = workspace.store("main").read(lambda view: record_json(workspace.store("main"), view, done.seq))
    assert done.ids[0] in str(shown)
