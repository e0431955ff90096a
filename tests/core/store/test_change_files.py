"""The files of shared changes: one is written whole, and another content in its place is never taken for it."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from kbcore.errors import StorageError, StorageFull
from kbcore.storage.fs import RealFs
from kbcore.store.change_files import write_file

PATH = ".kb/changes/2026-11/a.jsonl"
CONTENT = b"one\ntwo\n"


def test_a_file_is_written_and_its_folders_are_made(tmp_path: Path) -> None:
    write_file(RealFs(), tmp_path, PATH, CONTENT)
    assert (tmp_path / PATH).read_bytes() == CONTENT


@pytest.mark.parametrize("there", [CONTENT, CONTENT.replace(b"\n", b"\r\n")])
def test_a_file_that_is_there_as_it_is_to_be_stays(tmp_path: Path, there: bytes) -> None:
    write_file(RealFs(), tmp_path, PATH, there)
    write_file(RealFs(), tmp_path, PATH, CONTENT)
    assert (tmp_path / PATH).read_bytes() == there


@pytest.mark.parametrize("there", [b"", b"one\n", CONTENT + b"three\n"])
def test_another_content_in_its_place_is_refused_and_stays(tmp_path: Path, there: bytes) -> None:
    write_file(RealFs(), tmp_path, PATH, there)
    with pytest.raises(StorageError, match="another content") as refused:
        write_file(RealFs(), tmp_path, PATH, CONTENT)
    assert PATH in refused.value.message
    assert "Remove it" in refused.value.hint
    assert (tmp_path / PATH).read_bytes() == there


@pytest.mark.parametrize("kind", ["folder", "dangling link"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    place = tmp_path / PATH
    place.parent.mkdir(parents=True)
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("absent")
    with pytest.raises(StorageError, match=r"cannot read|another content"):
        write_file(RealFs(), tmp_path, PATH, CONTENT)


def test_a_file_that_the_system_does_not_let_grow_is_a_full_disk_and_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4, hard))  # Python ignores SIGXFSZ
    try:
        with pytest.raises(StorageFull, match=f"{PATH} cannot be written"):
            write_file(RealFs(), tmp_path, PATH, CONTENT)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not [*(tmp_path / PATH).parent.iterdir()]
