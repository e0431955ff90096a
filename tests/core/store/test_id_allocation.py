"""Ids that were given out and not used: what happens to them where the write that wanted them fails."""

from __future__ import annotations

import shutil

import pytest

from kbcore.errors import CommitUncertain, IntegrityViolation, LockTimeout
from kbcore.storage.lock import held
from kbcore.store import id_allocation
from tests.support.repository.project import Project


def following(project: Project) -> str:
    return id_allocation.known_next(project.workspace(), "REQ-", [])


def test_an_id_is_free_again_where_nothing_was_written(project: Project) -> None:
    with pytest.raises(IntegrityViolation), id_allocation.reserved(project.workspace(), [("REQ-", [])]) as [key]:
        raise IntegrityViolation(key)
    assert following(project) == "REQ-1"


def test_an_id_stays_reserved_where_the_record_may_be_durable(project: Project) -> None:
    with pytest.raises(CommitUncertain), id_allocation.reserved(project.workspace(), [("REQ-", [])]) as [key]:
        raise CommitUncertain(key)
    assert following(project) == "REQ-2"


def test_an_error_is_not_hidden_by_one_of_giving_the_id_back(project: Project) -> None:
    def fail_when_the_id_cannot_be_given_back() -> None:
        with id_allocation.reserved(project.workspace(), [("REQ-", [])]) as [key]:
            lock = project.workspace().folders.lock_path("ids")
            lock.unlink()
            lock.mkdir()  # now the reservations cannot be written
            raise IntegrityViolation(key)

    with pytest.raises(IntegrityViolation):
        fail_when_the_id_cannot_be_given_back()
    assert following(project) == "REQ-2"


def test_one_process_at_a_time_reserves_ids_also_where_the_cache_is_deleted_meanwhile(project: Project) -> None:
    (project.root / ".kb/config.json").write_text('{"lockWaitSeconds": 0}')
    workspace = project.workspace()
    lock = workspace.folders.lock_path("ids")
    with id_allocation.reserved(workspace, [("REQ-", [])]), held(workspace.machine.fs, workspace.machine.clock, lock):
        shutil.rmtree(workspace.folders.cache_dir)
        with pytest.raises(LockTimeout), id_allocation.reserved(workspace, [("REQ-", [])]):
            pass
