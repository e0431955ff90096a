"""At rest: nothing has changed since a sync found nothing to do, and that is known without a view."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from kbcore import errors
from kbcore.sync import rest
from kbcore.workspace import Machine
from tests.support.clocks import PatientClock
from tests.support.faultfs import LoggingFs, NoSyncFs
from tests.support.project import Project, req
from tests.support.repos import git

DOCUMENT = "docs/requirements/1.md"


@pytest.fixture
def idle(project: Project) -> Project:
    """A project ten seconds after its files were written, synced until nothing was left to do."""
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({DOCUMENT: req("REQ-1")})
    project.sync()
    return project


def is_at_rest(project: Project, branch: str = "main") -> bool:
    return rest.is_at_rest(project.workspace(), branch)


def test_after_a_sync_with_nothing_to_do_nothing_is_read_but_the_head(idle: Project) -> None:
    fs = LoggingFs(NoSyncFs())
    idle.machine = Machine(fs, idle.machine.clock, idle.machine.env)
    assert is_at_rest(idle)
    assert not {path for _, path in fs.calls if str(path).endswith((".duckdb", "lock"))}


def test_a_sync_that_took_something_in_is_not_at_rest_yet(project: Project) -> None:
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({DOCUMENT: req("REQ-1")})
    assert not is_at_rest(project)


CHANGES: dict[str, Callable[[Project], object]] = {
    "a file changed": lambda one: one.write({DOCUMENT: req("REQ-1", owner="ann")}),
    "a file was touched": lambda one: os.utime(one.root / DOCUMENT),
    "a file came": lambda one: one.write({"docs/requirements/2.md": req("REQ-2")}),
    "a file went": lambda one: one.write({DOCUMENT: None}),
    "a client wrote": lambda one: one.apply(entities=[{"id": "T-1", "type": "test", "title": "T", "status": "open"}]),
    "a type came": lambda one: one.write({".kb/schema/x.yaml": "entities: {fact: {description: A fact.}}\n"}),
    "a glob came": lambda one: one.write(
        {".kb/config.json": json.dumps({"extractors": {"manifest": {"paths": ["other.yaml"]}}})}
    ),
    "its cache went": lambda one: [path.unlink() for path in (one.root / ".kb/cache/main").glob("*.rest")],
    "its cache is damaged": lambda one: [
        path.write_bytes(path.read_bytes()[:-9]) for path in (one.root / ".kb/cache/main").glob("*.rest")
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_ends_it(idle: Project, change: Callable[[Project], object]) -> None:
    change(idle)
    assert not is_at_rest(idle)


def test_a_damaged_journal_is_told_and_not_passed_over(idle: Project) -> None:
    [segment] = (idle.root / ".kb/branches/main").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(errors.Damaged):
        is_at_rest(idle)


@pytest.mark.parametrize(
    "text", ["no front matter\n", req("REQ-1", links="[REQ-9]"), "---\nid: REQ-1\ntitle: [\nstatus: open\n---\n"]
)
def test_what_has_to_be_told_each_time_is_never_at_rest(idle: Project, text: str) -> None:
    idle.sync({DOCUMENT: text})
    idle.sync()
    assert not is_at_rest(idle)


def test_another_branch_is_at_rest_only_after_a_sync_of_its_own(idle: Project) -> None:
    git(idle.root, "switch", "-q", "-c", "feature")
    assert not is_at_rest(idle, "main")
    assert not is_at_rest(idle, "feature")
    idle.sync()
    assert is_at_rest(idle, "feature")


def test_a_sync_that_is_limited_or_tried_out_notes_nothing(idle: Project) -> None:
    idle.sync({DOCUMENT: req("REQ-1", owner="ann")})
    idle.sync(paths=(DOCUMENT,))
    idle.sync(dry_run=True)
    assert not is_at_rest(idle)
    idle.sync()
    assert is_at_rest(idle)
