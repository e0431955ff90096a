"""Scan stamps: what spares reading a file, and when it must not."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from kbcore.store.pool import Machine
from kbcore.sync.pending import PendingFiles, find_pending, place_of
from kbcore.sync.scan import FileStamp
from kbcore.sync.stamps import read_stamps, stamps_file, write_stamps
from tests.support.disk.faultfs import FailingFs, LoggingFs, NoSyncFs
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import Project, req

DOCUMENT = "docs/requirements/1.md"
STAMPS = {"a.md": FileStamp(1, 2, 3, 4, "5")}


@pytest.fixture
def later(project: Project) -> Project:
    """The project ten seconds later, when files that were written now can be trusted."""
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    return project


def looked(project: Project) -> PendingFiles:
    workspace = project.workspace()
    stamps = read_stamps(project.machine.fs, stamps_file(workspace.folders.cache_dir, project.root))
    return find_pending(project.view(), place_of(workspace), stamps, project.machine.clock.epoch_ns())


def test_a_file_with_a_stamp_is_not_read(later: Project) -> None:
    later.sync({DOCUMENT: req("REQ-1")})
    assert (looked(later).scan.read, looked(later).changed) == (0, ())


def test_a_file_that_changed_a_moment_ago_gets_no_stamp(project: Project) -> None:
    project.sync({DOCUMENT: req("REQ-1")})
    assert looked(project).scan.stamps == {}


def test_a_change_whose_time_was_set_back_is_seen(later: Project) -> None:
    later.sync({DOCUMENT: req("REQ-1", status="open")})
    path = later.root / DOCUMENT
    before = path.stat()
    path.write_text(req("REQ-1", status="done"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = path.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert later.sync().outcome.updated == ("REQ-1",)


def test_a_file_with_a_time_in_the_future_gets_no_stamp(later: Project) -> None:
    later.write({DOCUMENT: req("REQ-1")})
    far = later.machine.clock.epoch_ns() + 10**15
    os.utime(later.root / DOCUMENT, ns=(far, far))
    later.sync()
    assert looked(later).scan.stamps == {}


def test_stamps_are_written_beside_under_a_name_of_their_own_and_not_synced(tmp_path: Path) -> None:
    fs, path = LoggingFs(), tmp_path / "cache" / "stamps.json"
    assert write_stamps(fs, path, STAMPS)
    assert write_stamps(fs, path, STAMPS)
    opened = [name for kind, name in fs.calls if kind == "open"]
    assert len(set(opened)) == len(opened) == 2
    assert not {kind for kind, _ in fs.calls} & {"fsync", "fsync_dir"}
    assert read_stamps(fs, path) == STAMPS
    assert [entry.name for entry in path.parent.iterdir()] == ["stamps.json"]


@pytest.mark.parametrize("call", ["open", "write", "replace"])
def test_a_cache_that_cannot_be_written_costs_nothing_but_the_stamps(tmp_path: Path, call: str) -> None:
    names = LoggingFs()
    path = tmp_path / "stamps.json"
    assert write_stamps(names, path, STAMPS)
    at = [kind for kind, _ in names.calls].index(call)
    assert not write_stamps(FailingFs(at), path, {})
    assert read_stamps(names, path) == STAMPS
    assert [entry.name for entry in tmp_path.iterdir()] == ["stamps.json"]


@pytest.mark.parametrize(
    "content",
    [
        {"a.md": [1, 2, 3, "the hash"]},
        {"format": 1, "stamps": {"a.md": [1, 2, 3, 4, "5"]}},
        {"format": 2, "stamps": {"a.md": [1, 2, 3, "5"]}},
    ],
    ids=["of the first version", "of another format", "of another shape"],
)
def test_stamps_that_another_version_wrote_are_not_used(tmp_path: Path, content: object) -> None:
    path = tmp_path / "stamps.json"
    path.write_bytes(msgspec.json.encode(content))
    assert read_stamps(NoSyncFs(), path) == {}


def test_a_file_that_says_the_same_by_other_settings_is_read_once_more(later: Project) -> None:
    other = "docs/requirements/other.md"
    later.sync({DOCUMENT: req("REQ-1"), other: req("REQ-2")})
    later.write({".kb/config.json": '{"extractors": {"markdown": {"titleFromHeading": false}}}'})
    answer = later.sync()
    assert (answer.is_idle, answer.outcome.seq) == (True, 1)
    assert (looked(later).scan.read, looked(later).changed) == (0, ())
    answer = later.sync({other: req("REQ-2", title="Other")})
    assert (answer.changed, answer.outcome.updated) == (1, ("REQ-2",))
    later.write({".kb/config.json": '{"extractors": {"markdown": {"keys": {"headline": "title"}}}}'})
    assert {one.path for one in looked(later).changed} == {DOCUMENT, other}
