"""D3: a backup is one state of every branch, private, and takes the place of nothing but a backup."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import shutil
import socket
import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.errors import (
    BackupDamaged,
    Damaged,
    InvalidQuery,
    KBError,
    NotFound,
    StorageError,
    StoreWentBack,
    UnknownBranch,
)
from kbcore.maintenance.compacting import compact
from kbcore.storage import archive, head, layout
from kbcore.storage.fs import RealFs
from tests.fault.backups import backed_up, file, project, restored
from tests.support.disk.damage import is_proven, put, put_back
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.project import Project

__all__ = ["file", "project"]


def leftovers(project: Project, file: Path) -> list[str]:
    parent = project.workspace().folders.directory_of("main").parent
    building = [path.name for path in parent.iterdir() if path.name.startswith(layout.BUILDING_PREFIX)]
    return building + [path.name for path in file.parent.iterdir() if path.name.endswith(layout.TMP_SUFFIX)]


@pytest.mark.fault("D3")
def test_a_damaged_store_is_not_backed_up_over_a_good_backup(project, file, tally) -> None:
    backed_up(project, file)
    good = file.read_bytes()
    path = project.workspace().folders.directory_of("main") / "journal-0000000001.jsonl"
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data.replace(b'"B"', b'"X"', 1))
    tally.tried()
    with pytest.raises(Damaged):
        backed_up(project, file, replaces=True)
    assert file.read_bytes() == good
    tally.done()


@pytest.mark.fault("D3")
def test_a_store_that_lost_records_is_not_backed_up_over_a_good_backup(project, file, tally) -> None:
    directory = project.workspace().folders.directory_of("main")
    older = shutil.copytree(directory, file.with_name("older"))
    put(project, "FG")
    backed_up(project, file)
    good = file.read_bytes()
    put_back(project, older, directory)
    tally.tried()
    with pytest.raises(StoreWentBack, match="records 6 to 7 are missing") as refused:
        backed_up(project, file, replaces=True)
    assert "write to another file" in refused.value.hint
    assert file.read_bytes() == good
    backed_up(project, file.with_name("another"))
    tally.done()


@pytest.mark.fault("D3")
def test_a_backup_is_private_whatever_it_replaces_and_wherever_it_is(project, file, tally) -> None:
    project.machine.fs = RealFs(shared=lambda _: 0o660)
    for mode in (0o644, 0o666):
        file.write_bytes(b"an older backup")
        file.chmod(mode)
        tally.tried()
        backed_up(project, file, replaces=True)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        project.machine.fs = RealFs()
    tally.done()


@pytest.mark.fault("D3")
def test_what_does_not_exist_and_what_exists_are_refused(project, file, tally) -> None:
    backed_up(project, file)
    tally.tried()
    with pytest.raises(StorageError, match="exists already"):
        backed_up(project, file)
    backed_up(project, file, replaces=True)
    with pytest.raises(UnknownBranch):
        backed_up(project, file.with_name("other"), "nowhere")
    with pytest.raises(UnknownBranch, match="holds no branch"):
        restored(project, file, "nowhere")
    with pytest.raises(BackupDamaged, match="is not a backup of KB"):
        restored(project, project.root / ".git/config")
    tally.done()


def make_device(path: Path) -> None:
    path.symlink_to("/dev/full")  # a device of its own can be made by root alone


def make_socket(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:
        made.bind(str(path))


OTHER_KINDS: dict[str, tuple[Callable[[Path], object], str]] = {
    "folder": (Path.mkdir, "a folder"),
    "pipe": (os.mkfifo, "a named pipe"),
    "socket": (make_socket, "a socket"),
    "link to a device": (make_device, "a symbolic link"),
}


@pytest.mark.sliced(2)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("name", OTHER_KINDS)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_backup_replaces_nothing_but_a_plain_file(name, dry_run, project, tmp_path, tally) -> None:
    make, word = OTHER_KINDS[name]
    target = tmp_path / "target"
    make(target)
    before = target.lstat()
    for replaces in (True, False):
        tally.tried()
        with pytest.raises(StorageError, match=f"is {word}, and a backup replaces"):
            backed_up(project, target, replaces=replaces, dry_run=dry_run)
    assert (target.lstat().st_ino, target.lstat().st_mode) == (before.st_ino, before.st_mode)
    tally.tried()
    with pytest.raises((StorageError, NotFound)):  # and none of them is waited for
        restored(project, target)
    tally.done()


@pytest.mark.fault("D3")
def test_a_device_is_not_replaced_by_a_backup(tally) -> None:
    tally.tried()
    with pytest.raises(StorageError, match="is a device"):
        archive.check_target(RealFs(), Path("/dev/full"), replaces=True)
    tally.done()


@pytest.mark.fault("D3")
def test_a_backup_is_not_put_where_the_stores_and_caches_are(project, tmp_path, tally) -> None:
    workspace = project.workspace()
    link = tmp_path / "link"
    link.symlink_to(workspace.folders.directory_of("main"))
    for folder in (
        workspace.folders.data_dir,
        workspace.folders.directory_of("main"),
        workspace.folders.cache_dir,
        link,
    ):
        for dry_run in (False, True):
            tally.tried()
            with pytest.raises(InvalidQuery, match="is inside"):
                backed_up(project, folder / "kb.backup", dry_run=dry_run)
        assert not (folder / "kb.backup").exists()
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D3")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a backup of KB: it is empty"),
        (b"# Notes\n", "is not a backup of KB"),
        (b"x" * 5_000, "is not a backup of KB"),
        (b"0/head.json\0", "it was cut short"),
    ],
)
def test_a_file_that_is_no_backup_is_not_called_a_damaged_one(content, said, project, tmp_path, tally) -> None:
    (tmp_path / "notes").write_bytes(content)
    tally.tried()
    with pytest.raises(BackupDamaged, match=said):
        restored(project, tmp_path / "notes")
    tally.done()


@pytest.mark.fault("D3")
def test_a_backup_among_writers_and_compactions_is_one_head(project, file, tally) -> None:
    stop = threading.Event()

    def write() -> None:
        other = Project(project.root, fs=RealFs(), is_new=False)  # its renames are one step: no head is ever missing
        for count in itertools.count(1):
            put(other, [f"W{count}"])
            if count % 5 == 0:
                compact(other.workspace(), "main", prune_before=head_seq(other) if count % 10 == 0 else None)
            if stop.is_set():
                return

    seqs: list[int] = []
    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        try:
            while len({*seqs}) < tries(4, 40) and not writer.done():
                target = file.with_name(f"{len(seqs)}.backup")
                backed_up(Project(project.root, is_new=False), target, "main")
                tally.tried()
                with archive.opened(RealFs(), target) as backup:
                    backup.check()
                    seqs.append(backup.manifest.branches[0].seq)
        finally:
            stop.set()
        writer.result()
    assert seqs == sorted(seqs)
    restored(project, target, replaces=True)
    assert is_proven(project)
    tally.done(at_least=4)


def head_seq(project: Project) -> int:
    return head.read(RealFs(), project.workspace().folders.directory_of("main")).seq


@pytest.mark.sliced(1)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_backup_that_ends_at_any_call_leaves_the_old_one_or_the_new_one(when, project, file, tally) -> None:
    backed_up(project, file)
    old = file.read_bytes()
    put(project, "F")
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    backed_up(project, file, replaces=True)
    for at in range(0, len(probe.calls), tries(40, 1)):
        file.write_bytes(old)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            backed_up(project, file, replaces=True)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        with archive.opened(RealFs(), file) as backup:
            backup.check()
            if backup.manifest.branches[0].seq not in {5, 6}:
                tally.violated((when, at, probe.calls[at]), backup.manifest)
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D3")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_backup_in_which_a_call_fails_leaves_the_old_one_and_nothing_else(code, project, file, tally) -> None:
    backed_up(project, file)
    put(project, "F")
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    backed_up(project, file, replaces=True)
    for at in range(0, len(probe.calls), tries(40, 1)):
        project.machine.fs = failing = FailingFs(at, code, when="half", inner=NoSyncFs())
        tally.tried()
        try:
            backed_up(project, file, replaces=True)
        except KBError as error:
            if error.applied == "yes":
                tally.violated(at, error.message)
        failing.close_all()
        project.machine.fs = NoSyncFs()
        with archive.opened(RealFs(), file) as backup:
            backup.check()
        if probe.calls[at][0] != "unlink" and leftovers(project, file):
            tally.violated((code, at, probe.calls[at]), leftovers(project, file))
    tally.done(at_least=tries(3, 10))
