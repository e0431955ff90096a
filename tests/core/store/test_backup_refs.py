"""The note of the refs that hold changes of this clone: kept by each writer, and never taken for empty."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.store import backup_refs
from kbcore.store.backup_refs import NOTED, UNKNOWN, BackupRef
from kbcore.store.branches.stores import repository_lock
from tests.support.repository.project import Project

REF = BackupRef("origin", "main", "refs/kb/main")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path / "project")
    yield made
    made.close()


def note(project: Project) -> None:
    backup_refs.note(project.workspace(), REF.remote, REF.branch, REF.ref)


@pytest.mark.parametrize("content", [b"", b"[", b'{"kb": 1}', b"\xff"])
def test_a_damaged_note_counts_as_refs_that_are_not_known_also_after_the_next_note(
    project: Project, content: bytes
) -> None:
    workspace = project.workspace()
    note(project)
    (workspace.folders.data_dir / NOTED).write_bytes(content)
    assert backup_refs.noted(workspace) == (UNKNOWN,)
    note(project)
    assert backup_refs.noted(workspace) == (UNKNOWN, REF)


def test_two_that_note_one_ref_at_once_note_it_once(project: Project) -> None:
    workspace = project.workspace()
    with ThreadPoolExecutor(2) as pool:
        with repository_lock(workspace):
            begun = [pool.submit(note, project) for _ in range(2)]
            time.sleep(0.3)  # both wait for the lock then
        for one in begun:
            one.result()
    assert backup_refs.noted(workspace) == (REF,)
