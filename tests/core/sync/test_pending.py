"""The files that a sync has to look at; where none has changed, it takes no lock."""

from __future__ import annotations

import json
import os

import pytest

from kbcore.errors import DerivedFact, InvalidQuery
from kbcore.limits import MAX_SOURCE_FILE_BYTES
from kbcore.store.pool import Machine
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.pending import find_pending, place_of
from kbcore.sync.scan import read_named
from tests.support.disk.faultfs import LoggingFs, NoSyncFs
from tests.support.disk.unlistable import refuse_listing
from tests.support.repository.project import Project, req

REQS = "docs/requirements"
WAITING = {
    "a duplicate id": {f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-1", owner="ann")},
    "a document that is not there": {f"{REQS}/1.md": req("REQ-1", links="[2.md]")},
    "an end that does not fit": {
        f"{REQS}/1.md": req("REQ-1", links="[{type: verified_by, target: REQ-2}]"),
        f"{REQS}/2.md": req("REQ-2"),
    },
}


def logged(project: Project) -> LoggingFs:
    """Let the project's calls of the file system be logged from now on."""
    project.close()
    fs = LoggingFs(NoSyncFs())
    project.machine = Machine(fs, project.machine.clock, project.machine.env)
    return fs


@pytest.mark.parametrize("files", WAITING.values(), ids=WAITING)
def test_a_file_that_waits_for_another_is_not_changed_and_takes_no_lock(
    project: Project, files: dict[str, str]
) -> None:
    first = project.sync(files)
    assert first.problems
    fs = logged(project)
    again = project.sync()
    assert (again.changed, again.outcome.applied, again.outcome.seq) == (0, False, 1)
    assert "flock" not in {kind for kind, _ in fs.calls}
    assert again.problems == first.problems
    assert project.sync(dry_run=True).outcome.dry_run


def test_a_file_that_waited_for_a_client_is_taken_in_although_no_file_changed(project: Project) -> None:
    project.apply(entities=[{"id": "T-1", "type": "adr", "title": "T", "status": "open"}])
    link = "[{type: verified_by, target: T-1}]"
    assert [one.code for _, one in project.sync({f"{REQS}/1.md": req("REQ-1", links=link)}).problems] == [
        "endpoint_type"
    ]
    project.apply(entities=[{"id": "T-1", "type": "test"}])
    answer = project.sync()
    assert (answer.changed, answer.outcome.applied, answer.problems) == (0, True, ())
    assert project.edges("REQ-1") == {("REQ-1", "verified_by", "T-1", True)}


def test_a_rebuild_counts_as_changed_only_what_is_not_as_it_was_taken_in(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    answer = project.sync({f"{REQS}/2.md": req("REQ-2", status="done")}, rebuild=True)
    assert (answer.changed, answer.outcome.updated) == (1, ("REQ-2",))
    again = project.sync(rebuild=True)
    assert (again.changed, again.outcome.applied, again.outcome.seq) == (0, False, 2)


def test_files_below_a_folder_that_cannot_be_listed_are_not_removed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.sync({f"{REQS}/deep/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    refuse_listing(monkeypatch, "deep")
    found = find_pending(project.view(), place_of(project.workspace()), {}, 0)
    assert (found.gone, list(found.scan.blind)) == ((), [f"{REQS}/deep"])


def test_a_path_at_which_there_is_nothing_is_refused_by_name(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    with pytest.raises(InvalidQuery) as refused:
        project.sync(paths=(REQS, "docs/nosuch", "nosuch.md"))
    assert [(one.path, one.code) for one in refused.value.details] == [
        ("$.paths[1]", "not_found"),
        ("$.paths[2]", "not_found"),
    ]
    assert "docs/nosuch" in refused.value.message


@pytest.mark.parametrize("named", [f"{REQS}/deep/1.md", f"{REQS}/deep"])
def test_a_removed_path_may_still_be_named(project: Project, named: str) -> None:
    project.sync({f"{REQS}/deep/1.md": req("REQ-1")})
    project.write({f"{REQS}/deep/1.md": None})
    (project.root / REQS / "deep").rmdir()
    assert project.sync(paths=(named,)).outcome.deleted == ("REQ-1",)


def test_a_pipe_in_the_place_of_a_file_does_not_hold_up_a_refusal(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.write({f"{REQS}/1.md": None})
    os.mkfifo(project.root / REQS / "1.md")
    with pytest.raises(DerivedFact) as refused:
        project.apply(entities=[{"id": "REQ-1", "title": "Mine"}])
    assert refused.value.details[0].source == f"{REQS}/1.md"


def test_a_named_file_is_read_only_where_a_scan_would_read_it(project: Project) -> None:
    outside = project.root.parent / "outside"
    outside.mkdir()
    (outside / "1.md").write_text(req("REQ-1"))
    project.write({f"{REQS}/large.md": b" " * (MAX_SOURCE_FILE_BYTES + 1)})
    (project.root / REQS / "link.md").symlink_to(outside / "1.md")
    (project.root / REQS / "folder").symlink_to(outside)
    wants = extractors_of(project.workspace())
    for name in ("large.md", "link.md", "folder/1.md", "absent.md"):
        facts = read_named(project.root, wants, f"{REQS}/{name}")
        assert ([one.code for one in facts.problems], facts.entities) == (["unreadable"], ()), name
    assert not read_named(project.root, wants, "elsewhere.md").problems


def test_what_is_said_of_a_file_over_the_limit_stays_true_while_it_grows(project: Project) -> None:
    first = project.sync({f"{REQS}/1.md": b" " * (MAX_SOURCE_FILE_BYTES + 1)}).problems
    assert [str(MAX_SOURCE_FILE_BYTES) in problem.message for _, problem in first] == [True]
    project.write({f"{REQS}/1.md": b" " * (MAX_SOURCE_FILE_BYTES + 2)})
    assert project.sync().problems == first == project.sync(rebuild=True).problems


def set_paths(project: Project, *globs: str) -> None:
    settings = {"extractors": {"markdown": {"paths": {"req": list(globs)}}}}
    project.write({".kb/config.json": json.dumps(settings)})


def test_a_glob_of_the_project_that_no_file_matches_is_noted_when_others_match(project: Project) -> None:
    files = {f"{REQS}/1.md": req("REQ-1")}
    assert [one.code for one in project.sync(files).notes] == []
    set_paths(project, f"{REQS}/**/*.md", "specs/*.md", f"{REQS}/*.md")
    (note,) = project.sync().notes
    assert (note.code, note.path, note.message) == ("idle_glob", ".kb/config.json", "No file matches specs/*.md.")
    assert project.sync(paths=(REQS,)).notes == ()
    set_paths(project, "specs/*.md")
    assert project.sync().notes == (), "when nothing matches, that is what is said"
