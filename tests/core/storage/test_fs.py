"""The system calls, and the errors for their failures."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KBError, ReadOnlyStore, StorageError, StorageFull
from kbcore.storage import files
from kbcore.storage.fs import RealFs, shared_mode
from tests.core.storage.making import FS
from tests.support.disk.faultfs import FailingFs, LoggingFs
from tests.support.processes.second_user import TEAM, needs_root


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
    assert error.message == ("cannot open /store/lock: it is a symbolic link, and KB follows none there")
    assert error.hint == "Remove the link. If it leads to what belongs there, put that in its place."


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
        with pytest.raises(OSError, match="wrote no bytes"):
            files.write_all(fs, fd, b"x")
        with pytest.raises(OSError, match="wrote no bytes"):
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
    tree.symlink_to(kept)
    with pytest.raises(NotADirectoryError):
        files.remove_tree(FS, tree)
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


# What is shared


FILE, FOLDER = stat.S_IFREG, stat.S_IFDIR


@pytest.mark.parametrize(
    ("mode", "share", "shared"),
    [
        (FILE | 0o600, 0, 0o600),
        (FOLDER | 0o755, 0, 0o755),
        (FILE | 0o600, 0o660, 0o660),
        (FILE | 0o644, 0o664, 0o664),
        (FILE | 0o644, -0o640, 0o640),
        (FILE | 0o400, 0o660, 0o440),
        (FILE | 0o700, 0o660, 0o770),
        (FOLDER | 0o700, 0o660, 0o2770),
        (FOLDER | 0o700, 0o664, 0o2775),
        (FOLDER | 0o755, -0o600, 0o700),
    ],
)
def test_a_shared_mode_is_the_one_that_git_would_give(mode: int, share: int, shared: int) -> None:
    assert oct(shared_mode(mode, share)) == oct(shared)


class SharedFs(RealFs):
    """A file system where the group may read and write what is made; keeps the folders that it was asked of."""

    def __init__(self, share: int = 0o660) -> None:
        self.asked: list[Path] = []

        def shared(folder: Path) -> int:
            self.asked.append(folder)
            return share

        super().__init__(shared=shared)

    def make(self, path: Path, flags: int = 0, mode: int = 0o666) -> None:
        self.close(self.open(path, os.O_WRONLY | os.O_CREAT | flags, mode))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def lowest_free_fd() -> int:
    free = os.dup(0)
    os.close(free)
    return free


def test_what_is_made_in_a_shared_repository_gets_the_shared_mode_unless_it_is_private(tmp_path: Path) -> None:
    fs, free = SharedFs(), lowest_free_fd()
    fs.make(tmp_path / "file")
    fs.make(tmp_path / "private", mode=0o600)
    fs.mkdir(tmp_path / "folder")
    fs.mkdir(tmp_path / "private folder", 0o700)
    assert [oct(mode_of(path)) for path in sorted(tmp_path.iterdir())] == ["0o664", "0o2775", "0o600", "0o700"]
    assert lowest_free_fd() == free


def test_a_file_that_is_there_is_opened_and_keeps_its_mode(tmp_path: Path) -> None:
    fs, path = SharedFs(), tmp_path / "file"
    path.touch(0o600)
    fs.make(path)
    assert oct(mode_of(path)) == "0o600"
    with pytest.raises(FileExistsError):
        fs.make(path, os.O_EXCL)
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OSError, match="symbolic links"):
        fs.make(tmp_path / "link")
    fs.asked.clear()
    fs.close(fs.open(path, os.O_RDONLY))
    assert fs.asked == [], "what is only opened gets no mode"


@pytest.mark.parametrize("is_link", [False, True])
def test_what_another_process_makes_at_the_same_moment_is_opened_unless_it_is_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    fs, path, opened = SharedFs(), tmp_path / "file", os.open

    def made_meanwhile(of: Path, flags: int, *mode: int) -> int:
        if flags & os.O_EXCL:
            path.symlink_to(tmp_path / "nowhere") if is_link else path.write_bytes(b"theirs")
        return opened(of, flags, *mode)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", made_meanwhile)
        if is_link:
            with pytest.raises(OSError, match="symbolic links"):
                fs.make(path)
        else:
            fs.make(path)
            assert path.read_bytes() == b"theirs"
    assert not (tmp_path / "nowhere").exists()


def refused(*_: Any, **__: Any) -> None:
    raise PermissionError


@pytest.mark.parametrize("call", ["fchown", "fchmod"])
@needs_root
def test_what_this_user_may_not_give_to_the_group_is_made_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    os.chown(tmp_path, -1, TEAM)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, refused)
        SharedFs().make(tmp_path / "file")
    found = (tmp_path / "file").stat()
    assert (found.st_gid == TEAM, bool(found.st_mode & 0o020)) == (call == "fchmod", call == "fchown")


def test_the_mode_that_is_shared_is_asked_for_what_is_made_and_not_for_what_is_there(tmp_path: Path) -> None:
    asked: list[Path] = []

    def shared(folder: Path) -> int:
        asked.append(folder)
        return 0

    fs, path = RealFs(shared=shared), tmp_path / "file"
    for _ in range(2):
        fs.close(fs.open(path, os.O_RDWR | os.O_CREAT))
    assert asked == [tmp_path]


@needs_root
def test_only_what_is_shared_gets_the_group_of_its_folder(tmp_path: Path) -> None:
    os.chown(tmp_path, -1, TEAM)
    SharedFs().make(tmp_path / "shared")
    SharedFs(0).make(tmp_path / "own")
    assert (tmp_path / "shared").stat().st_gid == TEAM
    assert (tmp_path / "own").stat().st_gid == os.getegid()


def test_a_file_that_already_has_the_shared_mode_is_not_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os, "fchmod", lambda *_: pytest.fail("it has this mode"))
        SharedFs(0o600).make(tmp_path / "file")


def test_a_file_that_replaces_another_gets_its_mode_or_the_shared_one(tmp_path: Path) -> None:
    new, old, free = tmp_path / "new", tmp_path / "old", lowest_free_fd()
    for fs, is_private, wanted in ((FS, False, 0o604), (SharedFs(), False, 0o660), (FS, True, 0o600)):
        old.touch()
        old.chmod(0o604)
        new.touch()
        new.chmod(0o600)
        fs.replace(new, old, is_private=is_private)
        assert oct(mode_of(old)) == oct(wanted)
        assert not new.exists()
    assert lowest_free_fd() == free


@needs_root
def test_a_file_that_replaces_another_gets_its_group(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.touch()
    old.touch()
    os.chown(old, -1, TEAM)
    FS.replace(new, old)
    assert old.stat().st_gid == TEAM


def test_a_mode_that_this_user_may_not_give_stops_no_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    new.write_bytes(b"new")
    old.touch()
    old.chmod(0o604)
    with monkeypatch.context() as patch:
        patch.setattr(os, "chmod", refused)
        FS.replace(new, old)
    assert old.read_bytes() == b"new"


@pytest.mark.parametrize("fs", [FS, SharedFs()], ids=["own", "shared"])
def test_a_link_takes_and_gives_no_mode(tmp_path: Path, fs: RealFs) -> None:
    kept, file, link = tmp_path / "kept", tmp_path / "file", tmp_path / "link"
    for path in (kept, file):
        path.touch()
        path.chmod(0o600)
    fs.symlink("kept", link)
    if fs is FS:
        fs.take_mode(file, link)
        assert oct(mode_of(file)) == "0o600"
    file.chmod(0o644)
    fs.take_mode(link, file)
    assert oct(mode_of(kept)) == "0o600", "the link is renamed, not what it leads to"


# A folder that is made


class Meddling(LoggingFs):
    """Lets something happen before or after a call of one kind."""

    def __init__(self, kind: str, act: Callable[[], object], *, is_before: bool) -> None:
        super().__init__()
        self.kind, self.act, self.is_before = kind, act, is_before

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if kind == self.kind and self.is_before:
            self.act()
        result = super()._run(kind, method, args)
        if kind == self.kind and not self.is_before:
            self.act()
        return result


def test_a_folder_is_made_once_and_durably(tmp_path: Path) -> None:
    fs, folder = LoggingFs(), tmp_path / "folder"
    files.make_directory(fs, folder)
    assert ("fsync_dir", tmp_path.name) in fs.calls
    fs.calls.clear()
    files.make_directory(fs, folder)
    assert [kind for kind, _ in fs.calls] == ["lstat"]


def test_a_folder_that_another_process_makes_at_the_same_moment_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    files.make_directory(Meddling("mkdir", folder.mkdir, is_before=True), folder)
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_or_does_not_stay_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    with pytest.raises(StorageError, match=r"cannot make .*inner: No such file"):
        files.make_directory(FS, folder / "inner")
    with pytest.raises(StorageError, match="was removed at once"):
        files.make_directory(Meddling("fsync_dir", folder.rmdir, is_before=False), folder)


# Whose file it is, and where it can be written


@needs_root
@pytest.mark.parametrize("reading", [False, True])
def test_a_refusal_names_the_other_user_whose_file_it_is(tmp_path: Path, reading: bool) -> None:
    path = tmp_path / "branches" / "file"
    path.parent.mkdir()
    path.touch()
    os.chown(path, 61999, -1)
    denied = OSError(errno.EACCES, "Permission denied")
    error = files.explain(denied, path, "read", reading=reading)
    assert "it belongs to uid 61999" in error.message
    assert error.hint.startswith("Run it as uid 61999")
    os.chown(path, os.geteuid(), -1)
    error = files.explain(denied, path, "read", reading=reading)
    assert "belongs" not in error.message


def test_a_read_only_store_comes_with_the_folder_that_has_to_be_writable(tmp_path: Path) -> None:
    read_only = OSError(errno.EROFS, "Read-only file system")
    inside = files.explain(read_only, tmp_path / "branches" / "main" / "head.json", "write")
    assert inside.hint == files.ways_to_write(tmp_path)
    assert inside.data[files.WRITABLE_ROOT] == str(tmp_path)
    outside = files.explain(read_only, tmp_path / "head.json", "write")
    assert str(tmp_path) not in outside.hint
    assert files.WRITABLE_ROOT not in outside.data
