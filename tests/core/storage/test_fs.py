"""The system calls, and how their failures are told."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from kbcore.errors import KBError, ReadOnlyStore, StorageError, StorageFull
from kbcore.storage import files
from kbcore.storage.fs import RealFs
from tests.core.storage.making import FS
from tests.support.faultfs import FailingFs, LoggingFs


class SyncFails(RealFs):
    """A file system where the sync itself answers with an error."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code

    def fsync(self, fd: int) -> None:
        raise OSError(self.code, os.strerror(self.code))


def test_directory_sync_tolerates_only_invalid(tmp_path: Path) -> None:
    SyncFails(errno.EINVAL).fsync_dir(tmp_path)
    for code in (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EACCES):
        with pytest.raises(OSError, match=os.strerror(code)):
            SyncFails(code).fsync_dir(tmp_path)


def test_directory_sync_refuses_what_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        FS.fsync_dir(tmp_path / "file")


def test_full_sync_is_used_where_there_is_one_and_alone() -> None:
    # A pipe takes any fcntl command and cannot be synced: so it shows which of the two was called.
    pipe = os.pipe()
    try:
        RealFs(full_sync=fcntl.F_GETFD).fsync(pipe[0])
        with pytest.raises(OSError, match="Invalid argument"):
            RealFs(full_sync=None).fsync(pipe[0])
    finally:
        for fd in pipe:
            os.close(fd)


def test_full_sync_falls_back_only_where_there_is_none(tmp_path: Path) -> None:
    unknown_to_linux = 9999
    with files.opened(FS, tmp_path / "file", os.O_RDWR | os.O_CREAT) as fd:
        RealFs(full_sync=unknown_to_linux).fsync(fd)
        # Refused on a file that is open for writing, and not because there were no such command.
        with pytest.raises(OSError, match="temporarily unavailable"):
            RealFs(full_sync=fcntl.F_SETLEASE).fsync(fd)


def test_descriptors_are_not_inherited_and_links_not_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with files.opened(FS, tmp_path / "file", os.O_RDWR | os.O_CREAT) as fd:
        assert not os.get_inheritable(fd)
    with pytest.raises(OSError, match="symbolic links"):
        FS.open(tmp_path / "link", os.O_RDONLY)
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        FS.fsync_dir(tmp_path / "link")


@pytest.mark.parametrize(
    ("code", "reading", "kind"),
    [
        (errno.ENOSPC, False, StorageFull),
        (errno.EDQUOT, False, StorageFull),
        (errno.EFBIG, False, StorageFull),
        (errno.EROFS, False, ReadOnlyStore),
        (errno.EACCES, False, ReadOnlyStore),
        (errno.EPERM, False, ReadOnlyStore),
        (errno.EACCES, True, StorageError),
        (errno.EIO, False, StorageError),
        (errno.ENOENT, False, StorageError),
        (errno.EINTR, False, StorageError),
    ],
)
def test_system_errors_become_errors_that_name_the_file(code: int, reading: bool, kind: type[KBError]) -> None:
    error = files.explain(OSError(code, "x"), Path("/store/head.json"), "write", reading=reading)
    assert type(error) is kind
    assert error.message == f"cannot write /store/head.json: {os.strerror(code)}"
    assert error.data == {"file": "/store/head.json"}


def test_a_link_is_explained_as_one() -> None:
    error = files.explain(OSError(errno.ELOOP, "x"), Path("/store/lock"), "open")
    assert error.message == ("cannot open /store/lock: it is a symbolic link, and KB follows none inside a store")
    assert error.hint == "Replace the link with the file itself."


def test_a_published_file_is_whole_or_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "file"
    probe = LoggingFs()
    files.publish_file(probe, path, b"old")
    assert [kind for kind, _ in probe.calls] == ["open", "write", "fsync", "close", "replace", "fsync_dir"]
    for at in range(len(probe.calls)):
        for when in ("before", "half", "after"):
            path.write_bytes(b"old")
            fs = FailingFs(at, when=when)
            try:
                files.publish_file(fs, path, b"newer")
            except StorageError as error:
                assert str(tmp_path) in error.message  # noqa: PT017 - a failed close is no failure
            assert path.read_bytes() in (b"old", b"newer")
            assert path.read_bytes() == b"newer" or at <= 4


def test_a_write_that_takes_nothing_does_not_loop(tmp_path: Path) -> None:
    class Stuck(LoggingFs):
        def _run(self, kind, method, args):
            return 0 if kind in {"write", "pwrite"} else super()._run(kind, method, args)

    fs = Stuck()
    with files.opened(fs, tmp_path / "file", os.O_RDWR | os.O_CREAT) as fd:
        with pytest.raises(OSError, match="took no bytes"):
            files.write_all(fs, fd, b"x")
        with pytest.raises(OSError, match="took no bytes"):
            files.pwrite_all(fs, fd, b"x", 0)


def test_a_copy_that_ends_early_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert files.copy_range(FS, tmp_path / "file", tmp_path / "part", 1, 3)
    assert (tmp_path / "part").read_bytes() == b"234"
    with pytest.raises(StorageError, match=r"cannot copy .*file: it ends at byte 5, 2 bytes early"):
        files.copy_range(FS, tmp_path / "file", tmp_path / "part", 1, 6)


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="it is not a file"):
        files.read_size(FS, tmp_path)
    with pytest.raises(StorageError, match="symbolic link"):
        files.read_size(FS, tmp_path / "link")
    with pytest.raises(StorageError, match="symbolic link"):
        files.is_directory(FS, tmp_path / "link")
    with pytest.raises(StorageError, match="it is not a directory"):
        files.is_directory(FS, tmp_path / "file")
    assert files.read_size(FS, tmp_path / "nothing") is None
    assert files.read_file(FS, tmp_path / "nothing", 10) is None


def test_removing_a_tree_does_not_follow_links(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    tree = tmp_path / "tree"
    (tree / "inner").mkdir(parents=True)
    (tree / "inner" / "file").touch()
    (tree / "link").symlink_to(kept)
    files.remove_tree(FS, tree)
    assert not tree.exists()
    assert (kept / "file").exists()


def test_a_directory_sync_leaves_no_descriptor_open(tmp_path: Path) -> None:
    free = os.dup(0)
    os.close(free)
    FS.fsync_dir(tmp_path)
    with files.opened(FS, tmp_path / "file", os.O_RDWR | os.O_CREAT) as fd:
        assert fd == free


def test_an_interrupted_close_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    def close(fd: int) -> None:
        closed.append(fd)
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr(os, "close", close)
        FS.close(99)
    assert closed == [99]


def test_what_may_be_written_to_is_not_refused(tmp_path: Path) -> None:
    assert FS.refusal_to_write(tmp_path) == 0
