"""At rest: nothing has changed since a sync found nothing to do, and that is known without a view."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from kbcore import errors
from kbcore.store.pool import Machine
from kbcore.sync import noop_cache
from tests.support.disk.faultfs import LoggingFs, NoSyncFs
from tests.support.repository.clocks import PatientClock
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git

DOCUMENT = "docs/requirements/1.md"


@pytest.fixture
def idle(project: Project) -> Project:
    """A project ten seconds after its files were written, synced until nothing was left to do."""
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({DOCUMENT: req("REQ-1")})
    project.sync()
    return project


def is_unchanged(project: Project, branch: str = "main") -> bool:
    return noop_cache.lookup(project.workspace(), branch) is not None


def test_after_a_sync_with_nothing_to_do_nothing_is_read_but_the_head(idle: Project) -> None:
    fs = LoggingFs(NoSyncFs())
    idle.machine = Machine(fs, idle.machine.clock, idle.machine.env)
    assert is_unchanged(idle)
    assert not {path for kind, path in fs.calls if kind != "lstat" and str(path).endswith((".duckdb", "lock"))}


def test_a_sync_that_took_something_in_is_not_at_rest_yet(project: Project) -> None:
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({DOCUMENT: req("REQ-1")})
    assert not is_unchanged(project)


CHANGES: dict[str, Callable[[Project], object]] = {
    "a file changed": lambda one: one.write({DOCUMENT: req("REQ-1", owner="ann")}),
    "a file was touched": lambda one: os.utime(one.root / DOCUMENT),
    "a file came": lambda one: one.write({"docs/requirements/2.md": req("REQ-2")}),
    "a file went": lambda one: one.write({DOCUMENT: None}),
    "a client wrote": lambda one: one.apply(entities=[{"id": "T-1", "type": "test", "title": "T", "status": "open"}]),
    "a type came": lambda one: one.write({".kb/schema/x.yaml": "entities: {fact: {description: A fact.}}\n"}),
    "a comment cut a value of a rules file": lambda one: one.write(
        {".kb/rules/own.yaml": "rules:\n- id: no-x\n  description: See #12\n  sql: select 1\n"}
    ),
    "a glob came": lambda one: one.write(
        {".kb/config.json": json.dumps({"extractors": {"manifest": {"paths": ["other.yaml"]}}})}
    ),
    "its cache went": lambda one: [path.unlink() for path in (caches_at(one.root) / "main").glob("*.rest")],
    "its cache is damaged": lambda one: [
        path.write_bytes(path.read_bytes()[:-9]) for path in (caches_at(one.root) / "main").glob("*.rest")
    ],
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_whatever_changes_ends_it(idle: Project, change: Callable[[Project], object]) -> None:
    change(idle)
    assert not is_unchanged(idle)


def test_a_damaged_journal_is_reported_and_not_passed_over(idle: Project) -> None:
    [segment] = (stores_at(idle.root) / "main").glob("*.jsonl")
    segment.write_bytes(segment.read_bytes()[:-1])
    with pytest.raises(errors.Damaged):
        is_unchanged(idle)


@pytest.mark.parametrize(
    "text",
    [
        req("REQ-1"),
        "no front matter\n",
        req("REQ-1", links="[REQ-9]"),
        "---\nid: REQ-1\ntitle: no status\n---\n",
        "---\nid: REQ-1\ntitle: [\nstatus: open\n---\n",
    ],
)
def test_what_stays_wrong_is_reported_at_rest_as_a_whole_sync_reports_it(idle: Project, text: str) -> None:
    idle.sync({DOCUMENT: text})
    reported = idle.sync()
    assert noop_cache.lookup(idle.workspace(), "main") == reported == idle.sync()


@pytest.mark.parametrize(
    "make",
    [
        lambda one: (one.root / "docs/requirements/2.md").symlink_to("nowhere.md"),
        lambda one: (one.root / "docs/requirements/there").symlink_to(one.root / "docs"),
        lambda one: os.mkfifo(one.root / "docs/requirements/2.md"),
        lambda one: (one.root / os.fsdecode(b"docs/requirements/\xff.md")).write_text(req("REQ-2")),
    ],
    ids=["a link to nothing", "a link to a folder", "a pipe", "a name that is not UTF-8"],
)
def test_what_looks_do_not_tell_is_never_at_rest(idle: Project, make: Callable[[Project], object]) -> None:
    make(idle)
    idle.sync()
    idle.sync()
    assert not is_unchanged(idle)


def test_a_file_that_has_just_been_changed_is_not_at_rest(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1")})
    project.sync()
    assert not is_unchanged(project)


def test_another_branch_is_unchanged_only_after_a_sync_of_its_own(idle: Project) -> None:
    git(idle.root, "switch", "-q", "-c", "feature")
    assert not is_unchanged(idle, "main")
    assert not is_unchanged(idle, "feature")
    idle.sync()
    assert is_unchanged(idle, "feature")


def test_a_sync_that_is_limited_or_tried_out_notes_nothing(idle: Project) -> None:
    idle.sync({DOCUMENT: req("REQ-1", owner="ann")})
    idle.sync(paths=(DOCUMENT,))
    idle.sync(dry_run=True)
    assert not is_unchanged(idle)
    idle.sync()
    assert is_unchanged(idle)


@pytest.fixture
def tracked(idle: Project) -> Project:
    """A project at rest whose documents git tracks."""
    git(idle.root, "add", "docs")
    git(idle.root, "commit", "--quiet", "-m", "documents")
    idle.sync({DOCUMENT: req("REQ-1", owner="ann")})
    git(idle.root, "commit", "--quiet", "-am", "an owner")
    idle.sync()
    return idle


def is_unchanged_for_a_hook(project: Project, branch: str = "main", many_files: int = 0) -> bool:
    return noop_cache.lookup(project.workspace(), branch, is_hook=True, many_files=many_files) is not None


def test_above_many_files_a_hook_believes_git_that_it_wrote_none_of_them(tracked: Project) -> None:
    git(tracked.root, "switch", "--quiet", "-c", "other")
    git(tracked.root, "switch", "--quiet", "main")
    tracked.write({DOCUMENT: req("REQ-1", owner="bea")})
    assert is_unchanged_for_a_hook(tracked)
    assert not is_unchanged_for_a_hook(tracked, many_files=1)
    assert not is_unchanged(tracked)


WRITES: dict[str, Callable[[Project], object]] = {
    "a checkout there and back": lambda one: [
        git(one.root, "checkout", "--quiet", commit) for commit in ("HEAD~1", "main")
    ],
    "a restored file": lambda one: [
        one.write({DOCUMENT: "x"}),
        git(one.root, "checkout", "HEAD~1", "--", DOCUMENT),
    ],
    "a reset": lambda one: git(one.root, "reset", "--quiet", "--hard", "HEAD~1"),
    "a stash": lambda one: [one.write({DOCUMENT: "x"}), git(one.root, "stash"), git(one.root, "stash", "pop")],
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_whatever_git_writes_is_looked_at(tracked: Project, write: Callable[[Project], object]) -> None:
    write(tracked)
    assert not is_unchanged_for_a_hook(tracked)


def test_settings_and_the_store_are_looked_at_all_the_same(tracked: Project) -> None:
    assert is_unchanged_for_a_hook(tracked)
    tracked.write({".kb/config.json": json.dumps({"extractors": {"manifest": {"paths": ["other.yaml"]}}})})
    assert not is_unchanged_for_a_hook(tracked)
    tracked.write({".kb/config.json": None})
    tracked.apply(entities=[{"id": "T-1", "type": "test", "title": "T", "status": "open"}])
    assert not is_unchanged_for_a_hook(tracked)


def test_an_index_that_changed_while_no_document_did_is_believed_from_then_on(tracked: Project) -> None:
    (tracked.root / "other.txt").write_text("1")
    git(tracked.root, "add", "other.txt")
    tracked.write({DOCUMENT: req("REQ-1", owner="bea")})
    assert not is_unchanged_for_a_hook(tracked)
    tracked.sync()
    tracked.sync()
    git(tracked.root, "rm", "--quiet", "--force", "other.txt")
    assert is_unchanged_for_a_hook(tracked)
    tracked.write({DOCUMENT: req("REQ-1", owner="cem")})
    assert is_unchanged_for_a_hook(tracked)


@pytest.mark.parametrize("spoil", ["no index", "a short index", "no checksum"])
def test_without_a_checksum_of_the_index_every_file_is_looked_at(tracked: Project, spoil: str) -> None:
    index = tracked.root / ".git/index"
    content = {"no index": None, "a short index": b"DIRC", "no checksum": index.read_bytes()[:-20] + bytes(20)}[spoil]
    index.unlink()
    if content is not None:
        index.write_bytes(content)
    assert is_unchanged_for_a_hook(tracked)
    tracked.write({DOCUMENT: req("REQ-1", owner="bea")})
    assert not is_unchanged_for_a_hook(tracked)
