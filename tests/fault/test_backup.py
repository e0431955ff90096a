"""D3: backups are consistent while others write, proven when they are written and read, and never half restored."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import itertools
import os
import shutil
import socket
import stat
import tarfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import (
    BackupDamaged,
    CommitUncertain,
    Damaged,
    FormatTooNew,
    InvalidQuery,
    KBError,
    NotFound,
    StorageError,
    StoreWentBack,
    UnknownBranch,
)
from kbcore.maintenance import epochs
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.compacting import compact
from kbcore.storage import archive, head, layout
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.branches.stores import repository_lock
from kbcore.store.history.log import log
from tests.support.disk.damage import entities, is_proven, put, put_back, reset
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

KEYS = "ABCDE"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a repository with two branches, one of which was compacted."""
    project = Project(tmp_path / "repo")
    put(project, KEYS[:3])
    compact(project.workspace(), "main")
    put(project, KEYS[3:])
    git(project.root, "branch", "side/one")
    branches.ensure(project.workspace(), "side/one")
    put(project, "S", "side/one")
    return project


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kb.backup"


def backed_up(project: Project, file: Path, *names: str, **options: bool) -> None:
    back_up(project.workspace(), file, names, tool="kb/test", **options)


def restored(project: Project, file: Path, *names: str, **options: bool):
    project.pool.close()
    return restore(project.workspace(), file, AUTHOR, names, **options)


def leftovers(project: Project, file: Path) -> list[str]:
    parent = project.workspace().folders.directory_of("main").parent
    building = [path.name for path in parent.iterdir() if path.name.startswith(layout.BUILDING_PREFIX)]
    return building + [path.name for path in file.parent.iterdir() if path.name.endswith(layout.TMP_SUFFIX)]


@pytest.mark.fault("D3")
def test_a_backup_holds_every_branch_and_brings_it_back(project: Project, file: Path, tally) -> None:
    backed_up(project, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    tally.tried()
    heads = {name: head.read(RealFs(), directory) for name, directory in branches.stores(project.workspace())}
    project.pool.close()
    for _, directory in list(branches.stores(project.workspace())):
        shutil.rmtree(directory)
    done = restored(project, file)
    assert [(one.branch, one.seq) for one in done.branches] == [("main", 5), ("side/one", 6)]
    for name, old in heads.items():
        new = head.read(RealFs(), project.workspace().folders.directory_of(name))
        assert (new.lineage, new.seq) == (old.lineage, old.seq + 1)
        assert new.store_id != old.store_id, "references to records that came later must not find other ones"
        assert new.epoch_of(old.store_id)
        assert is_proven(project, name)
    assert (entities(project), entities(project, "side/one")) == (set("ABCDE"), set("ABCDES"))
    assert "restored from a backup of seq 5" in log(project.view(), limit=1)[0]["repair"]
    tally.done()


@pytest.mark.fault("D3")
def test_a_present_store_is_kept_unless_it_may_be_replaced_and_then_in_the_trash(project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "FG")
    before = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    tally.tried()
    with pytest.raises(InvalidQuery, match="main has a store"):
        restored(project, file)
    assert head.read(RealFs(), project.workspace().folders.directory_of("main")) == before
    dry = restored(project, file, dry_run=True)
    assert (dry.branches[0].present_seq, dry.branches[0].is_new_epoch) == (7, True)
    assert head.read(RealFs(), project.workspace().folders.directory_of("main")) == before
    (one,) = restored(project, file, replaces=True).branches
    assert head.read(RealFs(), Path(one.replaced)) == before
    assert entities(project) == set("ABCDE")
    of = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    assert of.epochs[-1].seen == 7
    assert "2 records are lost: 6 to 7" in log(project.view(), limit=1)[0]["repair"]
    branches.restore(project.workspace(), "main")
    project.pool.close()
    assert entities(project) == set("ABCDEFG")
    tally.done()


@pytest.mark.fault("D3")
def test_a_store_that_is_restored_at_its_own_head_keeps_its_id(project, file, tally) -> None:
    backed_up(project, file, "main")
    directory = project.workspace().folders.directory_of("main")
    before = head.read(RealFs(), directory)
    (directory / before.segments[0].file).unlink()
    tally.tried()
    restored(project, file, replaces=True)
    assert head.read(RealFs(), directory) == before
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D3")
@pytest.mark.parametrize("is_gone", [False, True], ids=["went back", "gone"])
def test_a_backup_that_ends_where_a_store_went_back_to_settles_the_loss(is_gone, project, file, tally) -> None:
    directory = project.workspace().folders.directory_of("main")
    backed_up(project, file, "main")
    older, before = shutil.copytree(directory, file.with_name("older")), head.read(RealFs(), directory)
    put(project, "FG")
    put_back(project, older, directory)
    if is_gone:
        shutil.rmtree(directory)
    tally.tried()
    with pytest.raises(StoreWentBack):
        put(project, "H")
    (dry,) = restored(project, file, dry_run=True, replaces=True).branches
    (one,) = restored(project, file, replaces=True).branches
    assert dry.is_new_epoch, "a dry run says what would be done"
    assert [(row.store_id, row.first, row.last) for row in one.given_up] == [(before.store_id, 6, 7)]
    assert dry.given_up == one.given_up
    of = head.read(RealFs(), directory)
    assert of.store_id != before.store_id, "records 6 and 7 of the old id are other records"
    assert (of.epochs[-1].seq, of.epochs[-1].seen) == (5, 7)
    assert "2 records are lost: 6 to 7. Their changeset ids" in log(project.view(), limit=1)[0]["repair"]
    assert lost.loss_of(Project(project.root, is_new=False).workspace(), "main") is None
    put(project, "H")
    assert entities(project) == set("ABCDEH")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D3")
def test_a_backup_from_before_a_new_epoch_ends_the_later_id_too(project, file, tally) -> None:
    directory = project.workspace().folders.directory_of("main")
    backed_up(project, file, "main")
    older = shutil.copytree(directory, file.with_name("older"))
    put(project, "FG")
    put_back(project, older, directory)
    epochs.accept(project.workspace(), "main", AUTHOR)
    put(project, "H")
    later = head.read(RealFs(), directory)
    shutil.rmtree(directory)
    tally.tried()
    restored(project, file)
    of = head.read(RealFs(), directory)
    assert of.epoch_of(later.store_id), "another user's note of the later id is settled as well"
    put(project, "I")
    assert is_proven(project)
    tally.done()


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


@pytest.mark.fault("D3")
def test_every_cut_and_every_flipped_byte_of_a_backup_is_noticed(project, file, tally) -> None:
    backed_up(project, file)
    good = file.read_bytes()
    harmed = file.with_name("harmed")
    bounds = {0, 1, 511, 512, 513, 1024, len(good) - 1, len(good) - 512, len(good) - 1024, len(good) - 1025}
    for length in sorted(bounds | {*range(0, len(good), tries(997, 61))}):
        harmed.write_bytes(good[:length])
        check_refused(harmed, ("cut", length), tally)
    parts = one_of_each_part(good)
    assert len(parts) == 9 * PARTS, "there are nine members"
    for at in sorted({*range(0, len(good), tries(211, 13)), *parts}):
        harmed.write_bytes(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
        check_refused(harmed, ("flip", at), tally)
    harmed.write_bytes(good + b"x")
    check_refused(harmed, "longer", tally)
    harmed.write_bytes(good + bytes(512))
    check_refused(harmed, "longer by zeros", tally)
    tally.done(at_least=50)


PARTS = 19
"""Of each member: the 17 fields of a tar header, its content, and what fills its last block."""


def one_of_each_part(data: bytes) -> list[int]:
    """Return the last byte of each field of each header, of each content, and of what fills each last block."""
    fields = (100, 108, 116, 124, 136, 148, 156, 157, 257, 263, 265, 297, 329, 337, 345, 500, 512)
    found, start = list[int](), 0
    while data[start : start + 512] != bytes(512):
        size = tarfile.TarInfo.frombuf(data[start : start + 512], "ascii", "strict").size
        end = start + 512 + size
        found += [*(start + field - 1 for field in fields), end - 1, end + -size % 512 - 1]
        start = end + -size % 512
    return found


def check_refused(path: Path, point: object, tally) -> None:
    tally.tried()
    try:
        with archive.opened(RealFs(), path) as backup:
            backup.check()
    except (BackupDamaged, FormatTooNew):
        return
    tally.violated(point, "it was taken for a sound backup")


def packed(members: list[tuple[tarfile.TarInfo, bytes]]) -> bytes:
    """Return a tar of these members, as KB would write it."""
    out = io.BytesIO()
    for about, data in members:
        about.size = about.size or len(data)
        out.write(about.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512))
    return out.getvalue() + bytes(1024)


def members_of(path: Path) -> list[tuple[tarfile.TarInfo, bytes]]:
    with tarfile.open(path) as tar:
        return [(about, tar.extractfile(about).read()) for about in tar]  # type: ignore[union-attr]


def named(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", size: int = 0, **fields: int | str):
    """Return a header as KB writes it, but for what is given."""
    about = tarfile.TarInfo(name)
    about.type, about.linkname, about.size, about.mode = kind, link, size, 0o600
    for field, value in fields.items():
        setattr(about, field, value)
    return about


def summed(line: bytes) -> bytes:
    """Return an object with its checksum, as docs/journal-format.md says."""
    body = line.removesuffix(b"}")
    return body + b',"sum":"%s"}\n' % hashlib.sha256(body).hexdigest().encode()


Members = list[tuple[tarfile.TarInfo, bytes]]


def with_member(about: tarfile.TarInfo, data: bytes = b"") -> Callable[[Members], Members]:
    return lambda members: [(about, data), *members]


def after_first(about: tarfile.TarInfo, data: bytes = b"") -> Callable[[Members], Members]:
    """Add a member where a reader still takes the file for a backup."""
    return lambda members: [members[0], (about, data), *members[1:]]


def with_list(change: Callable[[dict], object]) -> Callable[[Members], Members]:
    def changed(members: Members) -> Members:
        said = msgspec.json.decode(members[-1][1])
        del said["sum"]
        assert summed(msgspec.json.encode(said)) == members[-1][1]
        change(said)
        return [*members[:-1], (named("manifest.json"), summed(msgspec.json.encode(said)))]

    return changed


def swapped(members: Members) -> Members:
    """Replace a journal, and state the right digest of it."""
    (about, data) = members[1]
    forged = data.replace(b'"B"', b'"X"', 1)
    digest = hashlib.sha256(forged).hexdigest()

    def change(said: dict) -> None:
        said["branches"][0]["files"][1]["sha256"] = digest
        said["branches"][0]["files"][1]["length"] = len(forged)

    return with_list(change)([members[0], (named(about.name), forged), *members[2:]])


def with_header(**fields: int | str) -> Callable[[Members], Members]:
    return lambda members: [members[0], (named(members[1][0].name, **fields), members[1][1]), *members[2:]]


NAME, HEADER = "a name that KB puts into no backup", "no file header as KB writes it"
JOURNAL = "0/journal-0000000009.jsonl"
HOSTILE: dict[str, tuple[Callable[[Members], Members], str]] = {
    "a path upwards": (with_member(named("../../evil"), b"x"), "does not begin as one"),
    "a path upwards in a branch": (after_first(named("0/../../evil"), b"x"), NAME),
    "an absolute path": (after_first(named("/etc/evil"), b"x"), NAME),
    "a strange name": (after_first(named("0/evil.sh"), b"x"), NAME),
    "a lock": (after_first(named("0/lock"), b"x"), NAME),
    "a symbolic link": (after_first(named(JOURNAL, tarfile.SYMTYPE, "/etc/passwd")), HEADER),
    "a hard link": (after_first(named(JOURNAL, tarfile.LNKTYPE, "0/head.json")), HEADER),
    "a link's target in a plain file": (after_first(named(JOURNAL, link="/etc/passwd")), HEADER),
    "a device": (after_first(named(JOURNAL, tarfile.CHRTYPE)), HEADER),
    "a pipe": (after_first(named(JOURNAL, tarfile.FIFOTYPE)), HEADER),
    "a directory": (after_first(named(JOURNAL, tarfile.DIRTYPE)), HEADER),
    "a long name": (after_first(named("././@LongLink", tarfile.GNUTYPE_LONGNAME), b"0/head.json\0"), HEADER),
    "a sparse file": (after_first(named(JOURNAL, tarfile.GNUTYPE_SPARSE), b"x"), HEADER),
    "a size beyond the file": (after_first(named(JOURNAL, size=1 << 50)), "was cut short"),
    "another mode": (with_header(mode=0o4777), HEADER),
    "another owner": (with_header(uid=1), HEADER),
    "the name of an owner": (with_header(uname="root"), HEADER),
    "another time": (with_header(mtime=1), HEADER),
    "a file that is not listed": (after_first(named(JOURNAL), b"x"), "and its content differ"),
    "a branch that is not listed": (after_first(named("7/head.json"), b"x"), "and its content differ"),
    "a file twice": (lambda members: [members[0], *members], "where it should not"),
    "a file after the list": (lambda members: [*members, members[1]], "where it should not"),
    "no list": (lambda members: members[:-1], "its list of files is missing"),
    "a file too few": (lambda members: [members[0], *members[2:]], "and its content differ"),
    "a wrong digest": (with_list(lambda said: said["branches"][0]["files"][0].update(sha256="0" * 64)), "not what was"),
    "a wrong length": (with_list(lambda said: said["branches"][0]["files"][0].update(length=1)), "content differ"),
    "a wrong branch": (with_list(lambda said: said["branches"][0].update(branch="../evil")), "than the head does"),
    "a branch twice": (with_list(lambda said: said["branches"][1].update(branch="main")), "a branch twice"),
    "a wrong seq": (with_list(lambda said: said["branches"][0].update(seq=99)), "than the head does"),
    "a newer format": (with_list(lambda said: said.update(format=2)), "has backup format 2"),
    "a member of the list that is not known": (with_list(lambda said: said.update(more=1)), "cannot be read"),
    "a list that is none": (
        lambda members: [*members[:-1], (named("manifest.json"), summed(b"[" * 100_000))], "cannot be read"
    ),
    "a list without a checksum": (
        lambda members: [*members[:-1], (named("manifest.json"), members[-1][1][:-75] + b"}\n")], "its checksum"
    ),
    "a forged journal with its digest": (swapped, "is not sound"),
}  # fmt: skip


@pytest.mark.sliced(10)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_backup_is_refused_and_nothing_is_written(name: str, project, file, tmp_path, tally) -> None:
    backed_up(project, file)
    hostile, (change, words) = tmp_path / "hostile", HOSTILE[name]
    assert packed(members_of(file)) == file.read_bytes()
    hostile.write_bytes(packed(change(members_of(file))))
    before = {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")}
    tally.tried()
    with pytest.raises(FormatTooNew if name == "a newer format" else BackupDamaged, match=words):
        restored(project, hostile, replaces=True)
    assert {path: path.lstat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    tally.done()


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


@pytest.mark.fault("D3")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_restore_that_ends_at_any_call_leaves_the_old_store_or_the_new_one(when, project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "FG")
    project.pool.close()
    parent = project.workspace().folders.directory_of("main").parent
    saved = file.with_name("saved")
    shutil.copytree(parent, saved)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    restored(project, file, replaces=True)
    for at in range(0, len(probe.calls), tries(40, 1)):
        reset(project, saved, parent)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            restored(project, file, replaces=True)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        project.pool.close()
        with repository_lock(project.workspace()):
            pass  # whoever takes the lock next puts a store back that made room
        found = "".join(sorted(entities(project)))
        if found not in {"ABCDE", "ABCDEFG"} or not is_proven(project):
            tally.violated((when, at, probe.calls[at]), found)
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D3")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_restore_in_which_a_call_fails_leaves_the_old_store_or_the_new_one(code, project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "FG")
    project.pool.close()
    parent = project.workspace().folders.directory_of("main").parent
    saved = file.with_name("saved")
    shutil.copytree(parent, saved)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    restored(project, file, replaces=True)
    for at in range(0, len(probe.calls), tries(40, 1)):
        reset(project, saved, parent)
        project.machine.fs = failing = FailingFs(at, code, when="half", inner=NoSyncFs())
        tally.tried()
        says_no = False
        try:
            restored(project, file, replaces=True)
        except KBError as error:
            says_no = error.applied == "no"
        failing.close_all()
        project.machine.fs = NoSyncFs()
        project.pool.close()
        with repository_lock(project.workspace()):
            pass  # whoever takes the lock next puts a store back that made room
        found = "".join(sorted(entities(project)))
        if found not in ({"ABCDEFG"} if says_no else {"ABCDE", "ABCDEFG"}) or not is_proven(project):
            tally.violated((code, at, probe.calls[at]), (found, says_no))
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D3")
def test_a_store_that_took_its_place_is_said_to_although_the_other_could_not_be_moved(project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "FG")
    project.pool.close()
    parent = project.workspace().folders.directory_of("main").parent
    saved = file.with_name("saved")
    shutil.copytree(parent, saved)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    restored(project, file, replaces=True)
    reset(project, saved, parent)
    project.machine.fs = FailingFs(probe.calls.index(("mkdir", ".trash")), errno.EIO, inner=NoSyncFs())
    tally.tried()
    with pytest.raises(CommitUncertain, match="is in place, but the store that was there"):
        restored(project, file, replaces=True)
    project.machine.fs = NoSyncFs()
    project.pool.close()
    with repository_lock(project.workspace()):
        assert (parent / ".trash").is_dir()
    assert entities(project) == set("ABCDE")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D3")
def test_two_restores_at_once_leave_one_whole_store(project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "F")
    both = [Project(project.root, is_new=False) for _ in range(2)]
    tally.tried()
    threads = [threading.Thread(target=restored, args=(one, file), kwargs={"replaces": True}) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    project.pool.close()
    assert entities(project) == set("ABCDE")
    assert is_proven(project)
    tally.done()


class WritingMeanwhile(NoSyncFs):
    """Has another process write a record while the store from the backup is being built."""

    def __init__(self, write: Callable[[], object]) -> None:
        super().__init__()
        self._write: list[Callable[[], object]] = [write]

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        super().mkdir(path, mode)
        if path.name.startswith(layout.BUILDING_PREFIX) and self._write:
            self._write.pop()()


@pytest.mark.fault("D3")
def test_a_record_that_is_written_while_a_restore_works_is_known_to_be_gone(project, file, tally) -> None:
    backed_up(project, file, "main")
    before = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    other = Project(project.root, is_new=False)
    project.machine.fs = WritingMeanwhile(lambda: put(other, "H"))
    tally.tried()
    (one,) = restored(project, file, replaces=True).branches
    other.close()
    of = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    assert (one.present_seq, one.is_new_epoch) == (6, True)
    assert of.store_id != before.store_id, "record 6 of the old id is not record 6 of the new one"
    assert of.epochs[-1].seen == 6
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D3")
def test_a_backup_that_replaces_an_unrelated_store_says_nothing_of_lost_records(project, file, tmp_path, tally) -> None:
    backed_up(project, file, "main")
    other = Project(tmp_path / "other")
    put(other, "QRSTUVWX")
    assert restored(other, file, dry_run=True).branches[0].present_seq == 8
    tally.tried()
    (one,) = restored(other, file, replaces=True).branches
    assert (one.is_same_store, one.is_new_epoch) == (False, True)
    of = head.read(RealFs(), other.workspace().folders.directory_of("main"))
    assert of.epochs[-1].seen == 5
    assert "lost" not in log(other.view(), limit=1)[0]["repair"]
    assert is_proven(other)
    other.close()
    tally.done()
