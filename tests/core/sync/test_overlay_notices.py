"""The system's notices of changes say which files are looked at for an answer."""

from __future__ import annotations

import errno

import pytest

from kbcore.store.pool import Machine
from kbcore.sync import pending
from kbcore.sync.overlay import WorktreeFiles
from kbcore.sync.pending import find_pending
from kbcore.watch import inotify
from kbcore.watch.changed_paths import listen
from tests.core.sync.overlays import FIRST, SECOND, ask, titles
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import req


@pytest.mark.skipif(not inotify.IS_AVAILABLE, reason="this system does not tell of changes")
def test_after_a_record_of_a_client_no_file_is_looked_at_that_the_system_tells_nothing_of(project, monkeypatch):
    project.sync({FIRST: req("REQ-1", title="One")})
    files = WorktreeFiles(listen)
    try:
        ask(project, files)
        looked = []
        monkeypatch.setattr(pending, "find_pending", lambda *given: looked.append(given) or find_pending(*given))
        for number in range(3):
            project.apply(entities=[{"id": f"T-{number}", "type": "test", "title": "Test", "status": "open"}])
            assert titles(project, files)[1:] == ("current", 0)
        assert not looked
        project.write({FIRST: req("REQ-1", title="Eins")})
        assert titles(project, files)[1:] == ("overlay", 1)
        assert len(looked) == 1
    finally:
        files.close()


def test_a_folder_that_cannot_be_listened_to_is_looked_into(project, monkeypatch):
    project.sync({FIRST: req("REQ-1", title="One")})
    files = WorktreeFiles(listen)
    try:
        ask(project, files)

        def refuse(*_: object) -> bool:
            raise OSError(errno.ENOSPC, "no more watches")

        monkeypatch.setattr(inotify.Listener, "_listen_to", refuse)
        project.write({"docs/requirements/new/3.md": req("REQ-3", title="Three")})
        for _ in range(2):
            assert titles(project, files) == ({"REQ-1": "One", "REQ-3": "Three"}, "overlay", 1)
    finally:
        files.close()


def test_what_the_system_does_not_tell_of_is_found_after_a_while(project):
    clock = PatientClock()
    project.machine = Machine(NoSyncFs(), clock, project.machine.env)
    project.sync({FIRST: req("REQ-1", title="One")})
    (project.root / "other").hardlink_to(project.root / FIRST)
    files = WorktreeFiles(listen)
    try:
        ask(project, files)
        (project.root / "other").write_text(req("REQ-1", title="Eins"))
        clock.sleep(90)
        assert titles(project, files)[0] == {"REQ-1": "Eins"}
    finally:
        files.close()


@pytest.mark.skipif(not inotify.IS_AVAILABLE, reason="this system does not tell of changes")
def test_only_files_that_the_system_tells_of_are_looked_at(project):
    project.sync({FIRST: req("REQ-1", title="One"), SECOND: req("REQ-2", title="Two")})
    files = WorktreeFiles(listen)
    try:
        ask(project, files)
        # The system does not tell of a change through another name of a file.
        (project.root / "other").hardlink_to(project.root / SECOND)
        ask(project, files)
        (project.root / "other").write_text(req("REQ-2", title="Six"))
        project.write({FIRST: req("REQ-1", title="Eins")})
        assert titles(project, files) == ({"REQ-1": "Eins", "REQ-2": "Two"}, "overlay", 1)
        assert titles(project, WorktreeFiles()) == ({"REQ-1": "Eins", "REQ-2": "Six"}, "overlay", 2)
    finally:
        files.close()
