"""The disk below the stores: how quick it is, and whether other machines reach it too.

Its speed is that of a file of its own in the cache, written, synced, read and removed again. The quickest of a few
tries counts, so that other work of the machine does not count. Of the kind of file system only a warning is made:
locks are tried in any case, and a file system that has none refuses them.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kbcore.clock import Clock
from kbcore.errors import KBError
from kbcore.maintenance.findings import DoctorFinding
from kbcore.storage import files
from kbcore.storage.fs import Fs

SLOW_SYNC_S: Final = 0.2
"""A spinning disk syncs within a tenth of this."""
SLOW_READ_S: Final = 0.02
"""A local disk opens and reads a file within a hundredth of this."""

_ROUNDS: Final = 5
_DATA: Final = b"\0" * 4096
_MS: Final = 1000
MOUNTS: Final = Path("/proc/mounts")
NETWORK: Final = frozenset(
    {"9p", "afs", "ceph", "cifs", "coda", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "lustre", "ncpfs", "nfs"}
    | {"nfs4", "orangefs", "smb3", "smbfs", "virtiofs", "beegfs", "drvfs", "fakeowner", "fuse.gcsfuse", "fuse.juicefs"}
    | {"fuse.rclone", "fuse.s3fs", "fuse.vmhgfs-fuse", "gpfs", "prl_fs", "vboxsf", "vmhgfs"}
)
"""File systems of other machines, of clouds, and of what a virtual machine shares with its host."""
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


class Speed(msgspec.Struct, frozen=True):
    """Seconds for syncing one written block, and for opening, reading and closing a file of that size."""

    sync_s: float
    read_s: float


def measure(fs: Fs, folder: Path, clock: Clock) -> Speed:
    """Return how quick the disk is that a folder is on; what is written there is removed.

    Raises: ``StorageError`` and its kin when the folder cannot be written.
    """
    path = folder / f"probe-{os.getpid()}-{secrets.token_hex(4)}.tmp"
    try:
        with files.opened(fs, path, os.O_RDWR | os.O_CREAT | os.O_EXCL) as fd:
            sync_s = _quickest(partial(_write, fs, fd, path), clock)
        return Speed(sync_s, _quickest(partial(files.read_file, fs, path, len(_DATA)), clock))
    finally:
        files.remove_quietly(fs, path)


def speed_findings(fs: Fs, folder: Path, clock: Clock) -> Iterator[DoctorFinding]:
    """Time the disk below a cache, where there is one that can be written; name a link in its place."""
    if folder.is_symlink():
        message = f"{folder} is a symbolic link, and KB follows none there: nothing is cached."
        remedy = "Delete the link: KB makes the folder, and what was cached can always be made again."
        yield DoctorFinding("disk", "warning", "cache_link", message, remedy, file=str(folder))
        return
    if not files.is_directory(fs, folder) or fs.refusal_to_write(folder):
        return  # what is said of that, other checks say
    try:
        speed = measure(fs, folder, clock)
    except KBError as error:
        yield DoctorFinding("disk", "warning", error.code, f"The disk could not be timed: {error.message}", error.hint)
        return
    measured = f"Syncing to the disk takes {speed.sync_s * _MS:.3g} ms, and reading a file {speed.read_s * _MS:.3g} ms"
    if speed.sync_s <= SLOW_SYNC_S and speed.read_s <= SLOW_READ_S:
        yield DoctorFinding("disk", "ok", "speed", f"{measured}.")
        return
    worse = "every write waits for several syncs" if speed.sync_s > SLOW_SYNC_S else "every command reads several files"
    remedy = "Keep the repository on a local disk, and look for what else keeps this one busy."
    yield DoctorFinding("disk", "warning", "slow_disk", f"{measured}: {worse}.", remedy, file=str(folder))


def _quickest(act: Callable[[], object], clock: Clock) -> float:
    """Return the shortest of a few durations in seconds."""
    shortest_s = float("inf")
    for _ in range(_ROUNDS):
        began_s = clock.monotonic_s()
        act()
        shortest_s = min(shortest_s, clock.monotonic_s() - began_s)
    return shortest_s


def _write(fs: Fs, fd: int, path: Path) -> None:
    with files.explained(path, "write"):
        files.pwrite_all(fs, fd, _DATA, 0)
        fs.fsync(fd)


def mount_findings(root: Path, mounts: Path = MOUNTS) -> Iterator[DoctorFinding]:
    """Say so where other machines reach the file system of a folder as well."""
    try:
        mount = network_mount(root, mounts)
    except OSError:
        yield DoctorFinding(
            "disk", "note", "mounts_unknown", "This system does not say what kind of file system this is."
        )
        return
    if mount:
        message = f"{root} is on {mount[0]}, which other machines reach as well ({mount[1]}): locks may not work."
        remedy = "Keep the repository on a local disk, or write to it from one machine only."
        yield DoctorFinding("disk", "warning", "network_file_system", message, remedy)


def network_mount(path: Path, mounts: Path = MOUNTS) -> tuple[str, str] | None:
    """Return mount point and type of the file system that others reach as well; None when the path is on a local one.

    Raises: ``OSError`` where there is no such list, as on macOS.
    """
    found = ("", "")
    inside = Path(os.path.realpath(path))
    for line in mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        words = line.split(" ")
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), words[1]) if len(words) > 2 else ""  # noqa: PLR2004
        # Of two mounts on one place, the later one hides the earlier.
        if point and inside.is_relative_to(point) and len(point) >= len(found[0]):
            found = (point, words[2])
    return found if found[1] in NETWORK else None
