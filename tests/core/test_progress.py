"""Progress: reported to the listener of the work, in whatever thread it runs, and to no other."""

from __future__ import annotations

import contextvars
import threading

from hypothesis import given
from hypothesis import strategies as st

from kbcore import progress
from kbcore.checks import run_checks
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project


def test_work_that_nobody_listens_to_is_left_as_it_is():
    items = [1, 2, 3]
    assert progress.track(items, 3, "things done") is items


@given(st.integers(0, 40), st.integers(1, 9))
def test_progress_begins_at_nothing_grows_and_ends_with_all(count, every):
    reported: list[tuple[int, int, str]] = []
    with progress.listener(lambda *note: reported.append(note)):
        assert list(progress.track(iter(range(count)), count, "things done", every=every)) == list(range(count))
    done = [one[0] for one in reported]
    assert done == sorted(done)
    assert done[-1] == count
    assert set(reported) == {(at, count, "things done") for at in {*range(0, count, every), count}}


def test_a_thread_that_is_handed_the_context_is_heard_too():
    reported: list[int] = []
    with progress.listener(lambda done, *_: reported.append(done)):
        context = contextvars.copy_context()
        work = threading.Thread(target=lambda: context.run(lambda: list(progress.track([1], 1, "x"))))
        other = threading.Thread(target=lambda: list(progress.track([1], 1, "y")))
        for thread in (work, other):
            thread.start()
            thread.join()
    assert reported == [0, 1]


def test_a_first_fold_and_the_rules_report_progress(tmp_path):
    project = Project(tmp_path / "project")
    for at in range(3):
        project.apply(entities=[{"id": f"R{at}", "type": "req", "title": "t", "status": "open"}])
    project.pool.close()
    reported: list[tuple[int, int, str]] = []
    with progress.listener(lambda *note: reported.append(note)):
        fresh = Project(project.root, is_new=False)
        caches_at(project.root).rename(project.root / ".kb" / "old-cache")
        workspace = fresh.workspace()
        workspace.store("main").read(lambda view: run_checks(workspace, view, branch="main"))
    assert (3, 3, "records read") in reported
    assert (3, 3, "entities loaded") in reported
    assert [done for done, _, what in reported if what == "rules run"] == list(range(reported[-1][1] + 1))
    fresh.close()
