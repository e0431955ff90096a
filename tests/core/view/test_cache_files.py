"""Cached files: written under another name, used, and renamed; one that cannot be written leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import ResourceLimit, ViewDamaged
from kbcore.storage.fs import RealFs
from kbcore.view.cache_files import VIEW, CacheFiles


@pytest.fixture
def files(tmp_path: Path) -> CacheFiles:
    return CacheFiles(RealFs(), tmp_path / "cache" / "main")


def names(files: CacheFiles) -> list[str]:
    return sorted(path.name for path in files.directory.iterdir())


def write(path: Path) -> None:
    path.write_text("new")


def test_a_file_is_used_before_it_has_its_name(files: CacheFiles) -> None:
    used = files.publish(files.path, write, lambda path: (path.name, path.read_text(), files.path.exists()))
    assert used is not None
    assert used[1:] == ("new", False)
    assert names(files) == [VIEW] != [used[0]]


@pytest.mark.parametrize("error", [ViewDamaged("full"), ResourceLimit("full")])
def test_a_disk_without_room_is_written_once_for_each_kind_of_file(files: CacheFiles, error: Exception) -> None:
    def fail(path: Path) -> None:
        write(path)
        raise error

    other = files.for_other_files()
    assert files.written(fail) is None
    assert names(files) == []
    assert (files.is_writable(), files.written(write)) == (False, None)
    assert other.publish(other.path, write, lambda _: True)
    assert other.notices is files.notices


@pytest.mark.parametrize("is_written", [False, True])
def test_a_file_of_which_the_writing_or_the_use_fails_is_deleted(files: CacheFiles, is_written: bool) -> None:
    def fail(path: Path) -> None:
        assert path.exists() == is_written
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        files.publish(files.path, write if is_written else fail, fail)
    assert names(files) == []
    assert files.is_writable()


def test_a_file_with_a_log_of_another_program_is_deleted_and_counts_as_none(files: CacheFiles) -> None:
    files.publish(files.path, write, lambda _: True)
    assert files.usable_size(files.path) == 3
    files.path.with_name(f"{VIEW}.wal").write_text("")
    assert files.usable_size(files.path) is None
    assert names(files) == []
