"""D3: a backup that was cut, changed or made up is refused, and nothing is written."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import (
    BackupDamaged,
    FormatTooNew,
)
from kbcore.storage import archive
from kbcore.storage.fs import RealFs
from tests.fault.backups import backed_up, file, project, restored
from tests.support.effort.scale import tries

__all__ = ["file", "project"]


@pytest.mark.sliced
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
    "a wrong branch": (with_list(lambda said: said["branches"][0].update(branch="../evil")), "differs from the head"),
    "a branch twice": (with_list(lambda said: said["branches"][1].update(branch="main")), "a branch twice"),
    "a wrong seq": (with_list(lambda said: said["branches"][0].update(seq=99)), "differs from the head"),
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
