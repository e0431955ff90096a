"""Replacing a file of somebody else: whole, on the disk, and nothing is left beside it."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from kbcore.storage.replacing import create_file, remove_leftovers, replace_file


def test_a_file_and_then_its_folder_are_synced(tmp_path, monkeypatch):
    path, synced = tmp_path / "made" / "file", []
    sync = os.fsync

    def watched(descriptor: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(descriptor).st_mode), path.exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    replace_file(path, b"new", 0o640)
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert synced == [(False, False), (True, True)]


def test_where_it_cannot_be_replaced_nothing_is_left_beside_it(tmp_path):
    (tmp_path / "file" / "kept").mkdir(parents=True)
    with pytest.raises(OSError, match="file"):
        replace_file(tmp_path / "file", b"new", 0o644)
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_what_another_process_of_the_same_id_left_or_is_writing_is_in_nobodys_way(tmp_path):
    other = tmp_path / f".file.kb-{os.getpid()}"
    other.write_bytes(b"half")
    replace_file(tmp_path / "file", b"new", 0o644)
    assert (tmp_path / "file").read_bytes() == b"new"
    assert other.read_bytes() == b"half"


def test_leftovers_of_the_named_files_are_removed_and_no_other_file(tmp_path):
    kept = ["a.md", ".b.md.kb-0123abcd", ".a.md.kb-0123abc", ".a.md.kb-0123abcg", "a.md.kb-0123abcd", ".a.md"]
    for name in [*kept, ".a.md.kb-0123abcd", ".c.md.kb-00000000"]:
        (tmp_path / name).write_bytes(b"")
    remove_leftovers([tmp_path / "a.md", tmp_path / "c.md", tmp_path / "absent" / "d.md"])
    assert {one.name for one in tmp_path.iterdir()} == {*kept}


@pytest.mark.parametrize("number", [None, errno.EPERM, errno.EOPNOTSUPP])
def test_a_new_file_is_made_with_and_without_hard_links_and_replaces_none(tmp_path, monkeypatch, number):
    if number is not None:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "link", refuse)
    create_file(tmp_path / "made" / "file", b"new")
    assert (tmp_path / "made" / "file").read_bytes() == b"new"
    with pytest.raises(FileExistsError):
        create_file(tmp_path / "made" / "file", b"newer")
    assert (tmp_path / "made" / "file").read_bytes() == b"new"
    assert [one.name for one in (tmp_path / "made").iterdir()] == ["file"]


def test_a_new_file_that_the_system_refuses_for_another_reason_is_not_made(tmp_path, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(OSError, match="error"):
        create_file(tmp_path / "file", b"new")
    assert list(tmp_path.iterdir()) == []
