"""An answer has what the files of the worktree say beside the records, and nothing is written for it."""

from __future__ import annotations

import itertools
import json
import shutil
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.model.graph import Link, Node
from kbcore.store.history.undo import rollback
from kbcore.store.pool import Machine
from kbcore.sync import noop_cache
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from kbcore.watch.changed_paths import listen
from tests.core.sync.overlays import FIRST, SECOND, ask, titles
from tests.support.disk.faultfs import NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import AUTHOR, Project, req
from tests.support.repository.repos import git, run_git


def test_files_that_were_never_recorded_are_in_the_answer_and_nothing_is_written(project, files):
    project.workspace()
    project.sync()
    project.write({FIRST: req("REQ-1", title="One")})
    before = sorted(map(str, (project.root / ".git" / "kb" / "branches").rglob("*")))
    assert titles(project, files) == ({"REQ-1": "One"}, "overlay", 1)
    assert titles(project, files) == ({"REQ-1": "One"}, "overlay", 1)
    assert sorted(map(str, (project.root / ".git" / "kb" / "branches").rglob("*"))) == before
    assert project.seq() == 0


@pytest.mark.sliced(1)
def test_each_change_is_in_the_next_answer(project, files):
    project.sync({FIRST: req("REQ-1", title="One"), SECOND: req("REQ-2", title="Two")})
    assert titles(project, files) == ({"REQ-1": "One", "REQ-2": "Two"}, "current", 0)
    project.write({FIRST: req("REQ-1", title="Eins")})
    assert titles(project, files) == ({"REQ-1": "Eins", "REQ-2": "Two"}, "overlay", 1)
    project.write({SECOND: None})
    assert titles(project, files) == ({"REQ-1": "Eins"}, "overlay", 2)
    project.write({"docs/requirements/new/3.md": req("REQ-3", title="Three")})
    assert titles(project, files) == ({"REQ-1": "Eins", "REQ-3": "Three"}, "overlay", 3)
    shutil.move(project.root / "docs/requirements/new", project.root / "docs/requirements/moved")
    assert titles(project, files) == ({"REQ-1": "Eins", "REQ-3": "Three"}, "overlay", 3)
    project.sync()
    assert titles(project, files) == ({"REQ-1": "Eins", "REQ-3": "Three"}, "current", 0)
    project.write({FIRST: req("REQ-1", title="One"), "docs/requirements/moved/3.md": None})
    project.sync()
    assert titles(project, files) == ({"REQ-1": "One"}, "current", 0)


def test_where_a_sync_found_nothing_to_do_a_change_is_seen_all_the_same(project, files):
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({FIRST: req("REQ-1", title="One")})
    assert project.sync().is_idle
    workspace = project.workspace()
    assert noop_cache.is_unchanged(workspace, "main", workspace.store("main").head())
    assert titles(project, files) == ({"REQ-1": "One"}, "current", 0)
    project.write({FIRST: req("REQ-1", title="Six")})
    assert titles(project, files) == ({"REQ-1": "Six"}, "overlay", 1)
    project.write({FIRST: None})
    assert titles(project, files) == ({}, "overlay", 1)


def test_a_file_that_is_put_back_is_pending_no_more(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})
    assert titles(project, files)[1:] == ("overlay", 1)
    project.write({FIRST: req("REQ-1", title="One")})
    assert titles(project, files) == ({"REQ-1": "One"}, "current", 0)


def test_what_clients_write_meanwhile_is_in_the_answer_too(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})
    assert titles(project, files)[1] == "overlay"
    project.apply(entities=[{"id": "T-1", "type": "test", "title": "Test", "status": "open"}])
    assert titles(project, files) == ({"REQ-1": "Eins", "T-1": "Test"}, "overlay", 1)


def test_a_record_that_undoes_a_sync_leaves_its_file_pending(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.sync({SECOND: req("REQ-2", title="Two")})
    assert titles(project, files)[1:] == ("current", 0)
    rollback(project.workspace(), "main", AUTHOR, 1, follows_head=True)
    assert titles(project, files) == ({"REQ-1": "One", "REQ-2": "Two"}, "overlay", 1)


def test_a_type_that_a_record_defines_has_the_files_read_by_it(project, files):
    project.sync({FIRST: req("REQ-1", title="One", feeds="[REQ-2]"), SECOND: req("REQ-2", title="Two")})
    ends = "select from_id, to_id from link where type = 'feeds'"
    assert ask(project, files, lambda view: view.rows(ends))[0] == []
    project.apply(
        entities=[{"id": "$PropositionType:feeds", "type": "$PropositionType", "name": "feeds", "title": "feeds"}]
    )
    found, state = ask(project, files, lambda view: view.rows(ends))
    again, alone = ask(project, WorktreeFiles(), lambda view: view.rows(ends))
    assert (found, state.freshness) == (again, alone.freshness)
    assert state.freshness == "overlay"


def test_files_that_say_the_same_after_a_record_defines_a_type_do_not_count_as_pending(project, files):
    third = "docs/requirements/3.md"
    project.sync({FIRST: req("REQ-1", title="One", links="[REQ-3]"), SECOND: req("REQ-2", depends_on="[REQ-3]")})
    project.apply(entities=[{"id": "$ConceptType:Idea", "type": "$ConceptType", "name": "Idea", "title": "Idea"}])
    assert ask(project, files)[1].pending_files == 0
    project.write({third: req("REQ-3", title="Three")})
    for one in (files, WorktreeFiles()):
        found, state = ask(project, one, lambda view: view.rows("select count(*) from link where is_resolved"))
        assert (found, state.freshness, state.pending_files) == ([(2,)], "overlay", 1)


def test_a_file_that_says_something_else_after_a_record_defines_a_type_counts_as_pending(project, files):
    project.sync({FIRST: req("REQ-1", title="One", feeds="[REQ-2]"), SECOND: req("REQ-2", title="Two")})
    project.apply(
        entities=[{"id": "$PropositionType:feeds", "type": "$PropositionType", "name": "feeds", "title": "feeds"}]
    )
    assert ask(project, files)[1].pending_files == 1
    project.write({SECOND: req("REQ-2", title="Other")})
    assert ask(project, files)[1].pending_files == 2


def test_a_file_of_which_an_entity_of_a_client_keeps_a_part_back_is_read_again_without_it(project, files):
    project.apply(entities=[{"id": "T-1", "type": "req", "title": "Test", "status": "open"}])
    project.sync({FIRST: req("REQ-1", title="One", former_ids="[T-1]")})
    assert titles(project, files)[1:] == ("current", 0)
    project.delete(entities=[{"id": "T-1"}])
    assert titles(project, files) == titles(project, WorktreeFiles()) == ({"REQ-1": "One"}, "overlay", 1)


def test_the_folder_of_the_documents_comes_and_goes(project, files):
    project.sync()
    assert titles(project, files) == ({}, "current", 0)
    project.write({FIRST: req("REQ-1", title="One")})
    assert titles(project, files) == ({"REQ-1": "One"}, "overlay", 1)
    shutil.rmtree(project.root / "docs")
    assert titles(project, files) == ({}, "current", 0)
    project.write({FIRST: req("REQ-1", title="Again")})
    assert titles(project, files) == ({"REQ-1": "Again"}, "overlay", 1)


def test_what_a_link_leads_to_is_looked_at_each_time(project, files):
    project.write({"elsewhere/1.md": req("REQ-1", title="One"), "docs/requirements/keep.txt": ""})
    (project.root / FIRST).symlink_to("../../elsewhere/1.md")
    project.sync()
    assert titles(project, files) == ({"REQ-1": "One"}, "current", 0)
    project.write({"elsewhere/1.md": req("REQ-1", title="Eins")})
    assert titles(project, files) == ({"REQ-1": "Eins"}, "overlay", 1)


def test_other_settings_and_types_count_at_once(project, files):
    project.sync({FIRST: req("REQ-1", title="One"), "notes/n.md": req("REQ-9", title="Nine")})
    assert titles(project, files)[0] == {"REQ-1": "One"}
    paths = {"req": ["notes/*.md", "docs/requirements/**/*.md"]}
    project.write({".kb/config.json": json.dumps({"extractors": {"markdown": {"paths": paths}}})})
    assert titles(project, files)[0] == {"REQ-1": "One", "REQ-9": "Nine"}


def test_the_seq_and_the_versions_are_those_of_records(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})

    def look(view: View) -> tuple[int, list[int]]:
        return view.recorded_seq, [node.version for node in view.as_recorded(view.nodes(["REQ-1"]))]

    found, state = ask(project, files, look)
    assert (found, state.seq) == ((1, [1]), 1)


def test_while_git_is_in_the_middle_of_something_the_records_answer_alone(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    git(project.root, "add", ".")
    git(project.root, "commit", "-qm", "one")
    project.switch("other", create=True)
    project.write({FIRST: req("REQ-1", title="Other")})
    git(project.root, "commit", "-qam", "other")
    project.switch("main")
    project.write({FIRST: req("REQ-1", title="Main")})
    git(project.root, "commit", "-qam", "main")
    project.sync()
    run_git(project.root, "merge", "-q", "other")
    found, state = ask(project, files, lambda view: view.nodes(["REQ-1"])[0].fields["title"])
    assert (found, state.freshness, state.pending_files) == ("Main", "unknown", None)
    assert state.reason == "A merge of git is not finished."
    assert state.is_retryable
    git(project.root, "merge", "--abort")
    assert titles(project, files) == ({"REQ-1": "Main"}, "current", 0)


def test_another_branch_is_answered_from_its_records(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    git(project.root, "add", ".")
    git(project.root, "commit", "-qm", "one")
    project.switch("other", create=True)
    project.sync({FIRST: req("REQ-1", title="Other")})
    found, state = ask(project, files, lambda view: view.nodes(["REQ-1"])[0].fields["title"])
    assert (found, state.freshness, state.is_retryable) == ("One", "unknown", False)
    assert "other is checked out" in state.reason


def test_files_that_take_too_long_leave_the_records(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})
    found, state = files.read(
        project.workspace(), "main", lambda view, state: (view.nodes(["REQ-1"])[0].fields["title"], state), time_s=0.0
    )
    assert (found, state.freshness) == ("One", "unknown")
    assert "takes longer than 0 s" in state.reason


def test_a_longer_time_is_tried_although_a_shorter_one_was_too_short(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})
    for _ in range(2):
        assert files.read(project.workspace(), "main", lambda _, state: state, time_s=0.0).freshness == "unknown"
    assert titles(project, files) == ({"REQ-1": "Eins"}, "overlay", 1)


def test_a_lock_of_git_leaves_the_records_at_once(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    project.write({FIRST: req("REQ-1", title="Eins")})
    lock = project.root / ".git" / "index.lock"
    lock.touch()
    found, state = ask(project, files, lambda view: view.nodes(["REQ-1"])[0].fields["title"])
    assert (found, state.freshness) == ("One", "unknown")
    assert "index.lock" in state.reason
    lock.unlink()
    assert titles(project, files)[0] == {"REQ-1": "Eins"}


def test_a_link_that_comes_later_is_looked_through_each_time_as_well(project, files):
    project.sync({FIRST: req("REQ-1", title="One")})
    assert titles(project, files)[1] == "current"
    project.write({"elsewhere/2.md": req("REQ-2", title="Two")})
    (project.root / SECOND).symlink_to("../../elsewhere/2.md")
    assert titles(project, files)[0] == {"REQ-1": "One", "REQ-2": "Two"}
    project.write({"elsewhere/2.md": req("REQ-2", title="Zwei")})
    assert titles(project, files)[0] == {"REQ-1": "One", "REQ-2": "Zwei"}


def test_readers_in_many_threads_see_each_change_that_was_saved_before_they_asked(project, files):
    project.sync({FIRST: req("REQ-1", title="0")})
    wrong: list[str] = []
    saved = itertools.count(1)
    last = 0
    end = threading.Event()

    def read() -> None:
        while not end.is_set():
            before = last
            found = titles(project, files)[0]["REQ-1"]
            if int(found) < before:
                wrong.append(f"{found} after {before} was saved")

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in itertools.islice(saved, 15):
        fresh = project.root / "docs/requirements/.1.tmp"
        fresh.write_text(req("REQ-1", title=f'"{number}"'))
        fresh.replace(project.root / FIRST)
        last = number
    end.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def plain(element: Node | Link) -> tuple[object, ...]:
    """Return what is the same of an element whether a record holds it or a file alone says it."""
    if isinstance(element, Node):
        return (element.id, dict(element.fields), dict(element.owners), element.source)
    return (element.id, element.type, element.from_id, element.to_id, element.is_resolved, dict(element.fields))


def all_of(view: View) -> list[tuple[object, ...]]:
    ids = [row[0] for row in view.rows("select id from node order by id")]
    links = [row[0] for row in view.rows("select id from link order by id")]
    nodes = sorted(view.nodes(ids), key=lambda one: one.id)
    return [plain(one) for one in (*nodes, *sorted(view.links(links), key=lambda one: one.id))]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["write", "delete", "link", "sync", "client", "read"]), st.integers(1, 5), st.integers(0, 5)
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.sliced
@settings(max_examples=tries(8, 100))
@given(STEPS)
def test_an_answer_with_the_files_is_that_of_the_records_after_a_sync(tmp_path_factory, steps):
    project = Project(tmp_path_factory.mktemp("law") / "repo")
    files = WorktreeFiles(listen)
    try:
        project.sync()
        for step, which, other in steps:
            name = f"docs/requirements/{which}.md"
            if step == "write":
                project.write({name: req(f"REQ-{which}", title=f"Title {other}")})
            elif step == "link" and other:
                project.write({name: req(f"REQ-{which}", links=f"[REQ-{other}]")})
            elif step == "delete" and (project.root / name).exists():
                project.write({name: None})
            elif step == "sync":
                project.sync()
            elif step == "client":
                project.apply(entities=[{"id": f"T-{which}", "type": "test", "title": str(other), "status": "open"}])
            elif step == "read":
                ask(project, files)
        found, state = ask(project, files, all_of)
        fresh, _ = ask(project, WorktreeFiles(), all_of)
        answer = project.sync()
        assert found == fresh == all_of(project.view())
        assert state.freshness == ("overlay" if answer.outcome.applied else "current")
    finally:
        files.close()
        project.close()
        shutil.rmtree(project.root.parent, ignore_errors=True)


def test_a_setting_that_changes_nothing_in_the_files_is_no_difference(project, files):
    project.sync({FIRST: req("REQ-1", title="One"), SECOND: req("REQ-2", title="Two")})
    project.write({".kb/config.json": '{"extractors": {"markdown": {"titleFromHeading": false}}}'})
    expected = {"REQ-1": "One", "REQ-2": "Two"}, "current", 0
    assert titles(project, files) == expected
    for _ in range(2):
        answer = project.sync()
        assert (answer.is_idle, answer.outcome.applied, answer.outcome.seq) == (True, False, 1)
        assert titles(project, files) == expected


def test_a_setting_by_which_files_say_something_else_is_a_difference(project, files):
    text = "---\nid: REQ-1\nstatus: open\n---\n# From the heading\n"
    project.sync({FIRST: text, SECOND: req("REQ-2", title="Two")})
    project.write({".kb/config.json": '{"extractors": {"markdown": {"titleFromHeading": false}}}'})
    assert titles(project, files)[1] == "overlay"
    assert project.sync().outcome.seq == 2
    assert titles(project, files)[1:] == ("current", 0)
