"""A disk in memory, and the states in which a loss of power may leave it.

The model is harsher than any file system: what was not synced may survive or not, piece by piece and in any
combination. Pieces are sectors of 512 bytes, each change of a file's size, and each change of names in a directory
(a rename within one directory is one piece). A sync of a file saves its data and its size, and not its name; a sync
of a directory saves the names in it, and not what they name. A sector is written whole or not at all.
"""

from __future__ import annotations

import copy
import errno
import itertools
import os
import random
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from kbcore.storage.fs import LOCK_RELEASE

SECTOR_BYTES = 512
EXHAUSTIVE_PIECES = 12
UNIMPORTANT = "lock"
"""A file whose text is only for people: no state of it is worth a try of its own."""


class PowerLoss(BaseException):
    """The power went. Not an ``Exception``, so nothing in the code under test can go on after it."""


def _failed(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class File:
    """A file's bytes as programs see them (``data``), as they are safe (``safe``), and the pieces in between."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.safe = b""
        self.pieces: list[tuple[int, bytes | None]] = []
        """(offset, bytes of one sector), or (size, None)."""

    def put(self, data: bytes, offset: int) -> None:
        if len(self.data) < offset:
            self.data.extend(bytes(offset - len(self.data)))
        grows = offset + len(data) > next((at for at, piece in reversed(self.pieces) if piece is None), len(self.safe))
        self.data[offset : offset + len(data)] = data
        at, end = offset, offset + len(data)
        while at < end:
            until = min(end, (at // SECTOR_BYTES + 1) * SECTOR_BYTES)
            self.pieces.append((at, data[at - offset : until - offset]))
            at = until
        if grows:
            self.pieces.append((end, None))

    def cut(self, size: int) -> None:
        if size < len(self.data):
            del self.data[size:]
        else:
            self.data.extend(bytes(size - len(self.data)))
        self.pieces.append((size, None))

    def sync(self) -> None:
        self.safe = self.after(lambda: True)
        self.pieces = []

    def lose(self) -> None:
        """Forget what is to be written, as a failed sync does: programs still read it, and no later sync saves it."""
        self.pieces = []

    def after(self, chosen: Callable[[], bool]) -> bytes:
        """Return the bytes after a loss of power that saved the pieces chosen."""
        found, size = bytearray(self.safe), len(self.safe)
        for at, piece in self.pieces:
            if not chosen():
                continue
            if piece is None:
                if at < len(found):
                    # What lay beyond the new end is gone, and reads as zeros should the file grow again.
                    del found[at:]
                size = at
                continue
            found.extend(bytes(max(0, at + len(piece) - len(found))))
            found[at : at + len(piece)] = piece
        found.extend(bytes(max(0, size - len(found))))
        return bytes(found[:size])


class Folder:
    """A directory's names as programs see them, as they are safe, and the changes in between."""

    def __init__(self) -> None:
        self.names: dict[str, File | Folder] = {}
        self.safe: dict[str, File | Folder] = {}
        self.pieces: list[dict[str, File | Folder | None]] = []

    def change(self, **names: File | Folder | None) -> None:
        """Set or remove names, all or none of them."""
        self.pieces.append(names)
        _renamed(self.names, names)

    def sync(self) -> None:
        self.safe = dict(self.names)
        self.pieces = []

    def after(self, chosen: Callable[[], bool]) -> dict[str, File | Folder]:
        """Return the names after a loss of power that saved the pieces chosen."""
        found = dict(self.safe)
        for piece in self.pieces:
            if chosen():
                _renamed(found, piece)
        return found


def _renamed(names: dict[str, File | Folder], piece: dict[str, File | Folder | None]) -> None:
    for name, node in piece.items():
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class MemoryDisk:
    """An ``Fs`` in memory. ``log`` holds each call that changes something, as (kind, name of its file)."""

    def __init__(self, root: Folder | None = None) -> None:
        self.root = root or Folder()
        self.log: list[tuple[str, str]] = []
        self.on_change: Callable[[], None] = lambda: None
        """Called before each call that changes something or syncs."""
        self.is_left_out: Callable[[MemoryDisk], bool] = lambda disk: False
        """Says of each call that syncs, when it is made, whether to leave it out: for the control of the tests."""
        self.coming: tuple[Path, int, bytes] | None = None
        """The write that is about to be made: path, offset and bytes."""
        self._open: dict[int, tuple[File, list[int], int, Path]] = {}
        self._locked: dict[int, File] = {}
        self._numbers = itertools.count(100)

    def _note(self, kind: str, name: str) -> None:
        self.on_change()
        self.log.append((kind, name))

    def _find(self, path: Path) -> File | Folder:
        node: File | Folder = self.root
        for part in path.parts[1:]:
            if not isinstance(node, Folder):
                raise _failed(errno.ENOTDIR)
            if part not in node.names:
                raise _failed(errno.ENOENT)
            node = node.names[part]
        return node

    def _folder(self, path: Path) -> Folder:
        node = self._find(path)
        if not isinstance(node, Folder):
            raise _failed(errno.ENOTDIR)
        return node

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        folder = self._folder(path.parent)
        node = folder.names.get(path.name)
        if node is None:
            if not flags & os.O_CREAT:
                raise _failed(errno.ENOENT)
            self._note("create", path.name)
            node = File()
            folder.change(**{path.name: node})
        elif flags & os.O_CREAT and flags & os.O_EXCL:
            raise _failed(errno.EEXIST)
        if isinstance(node, Folder):
            raise _failed(errno.EISDIR)
        if flags & os.O_TRUNC and node.data:
            self._note("truncate", path.name)
            node.cut(0)
        fd = next(self._numbers)
        self._open[fd] = (node, [0], flags, path)
        return fd

    def close(self, fd: int) -> None:
        self._open.pop(fd)
        self._locked.pop(fd, None)

    def read(self, fd: int, length: int) -> bytes:
        file, position, _, _ = self._open[fd]
        data = bytes(file.data[position[0] : position[0] + length])
        position[0] += len(data)
        return data

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        return bytes(self._open[fd][0].data[offset : offset + length])

    def write(self, fd: int, data: bytes | memoryview) -> int:
        file, position, flags, _ = self._open[fd]
        offset = len(file.data) if flags & os.O_APPEND else position[0]
        position[0] = offset + len(data)
        return self._write("write", fd, bytes(data), offset)

    def _write(self, kind: str, fd: int, data: bytes, offset: int) -> int:
        file, _, _, path = self._open[fd]
        self.coming = (path, offset, data)
        self._note(kind, path.name)
        self.coming = None
        file.put(data, offset)
        if path.name == UNIMPORTANT:
            file.sync()
        return len(data)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        return self._write("pwrite", fd, bytes(data), offset)

    def fsync(self, fd: int) -> None:
        file, _, _, path = self._open[fd]
        self._note("fsync", path.name)
        if not self.is_left_out(self):
            file.sync()

    def ftruncate(self, fd: int, length: int) -> None:
        file, _, _, path = self._open[fd]
        self._note("ftruncate", path.name)
        file.cut(length)
        if path.name == UNIMPORTANT:
            file.sync()

    def fstat(self, fd: int) -> os.stat_result:
        return _status(self._open[fd][0])

    def lstat(self, path: Path) -> os.stat_result:
        return _status(self._find(path))

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        before, after = self._folder(source.parent), self._folder(target.parent)
        node, there = self._find(source), after.names.get(target.name)
        if isinstance(there, Folder) and there.names:
            raise _failed(errno.ENOTEMPTY)
        self._note("replace", target.name)
        if before is after:
            before.change(**{source.name: None, target.name: node})
        else:
            after.change(**{target.name: node})
            before.change(**{source.name: None})

    def link(self, source: Path, target: Path) -> None:
        node, folder = self._find(source), self._folder(target.parent)
        if target.name in folder.names:
            raise _failed(errno.EEXIST)
        self._note("link", target.name)
        folder.change(**{target.name: node})

    def symlink(self, target: str, path: Path) -> None:
        raise _failed(errno.EPERM)

    def readlink(self, path: Path) -> str:
        self._find(path)
        raise _failed(errno.EINVAL)

    def unlink(self, path: Path) -> None:
        folder = self._folder(path.parent)
        if isinstance(self._find(path), Folder):
            raise _failed(errno.EISDIR)
        self._note("unlink", path.name)
        folder.change(**{path.name: None})

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        folder = self._folder(path.parent)
        if path.name in folder.names:
            raise _failed(errno.EEXIST)
        self._note("mkdir", path.name)
        folder.change(**{path.name: Folder()})

    def rmdir(self, path: Path) -> None:
        folder = self._folder(path.parent)
        if self._folder(path).names:
            raise _failed(errno.ENOTEMPTY)
        self._note("rmdir", path.name)
        folder.change(**{path.name: None})

    def listdir(self, path: Path) -> list[str]:
        return list(self._folder(path).names)

    def fsync_dir(self, path: Path) -> None:
        folder = self._folder(path)
        self._note("fsync_dir", path.name)
        if not self.is_left_out(self):
            folder.sync()

    def flock(self, fd: int, operation: int) -> None:
        if operation == LOCK_RELEASE:
            self._locked.pop(fd, None)
        elif any(held is self._open[fd][0] for other, held in self._locked.items() if other != fd):
            raise _failed(errno.EWOULDBLOCK)
        else:
            self._locked[fd] = self._open[fd][0]

    def fail_sync(self, path: Path) -> None:
        """Leave a file as a failed sync does."""
        node = self._find(path)
        assert isinstance(node, File)
        node.lose()


def _status(node: File | Folder) -> os.stat_result:
    is_folder = isinstance(node, Folder)
    size = 0 if is_folder else len(node.data)
    kind = stat.S_IFDIR if is_folder else stat.S_IFREG
    return os.stat_result((kind | 0o755, id(node), 1, 1, os.geteuid(), 0, size, 0, 0, 0))


def pieces(disk: MemoryDisk) -> int:
    """Return how many pieces a loss of power now would save or lose, each on its own."""
    count, seen, waiting = 0, set[int](), [disk.root]
    while waiting:
        folder = waiting.pop()
        if id(folder) in seen:
            continue
        seen.add(id(folder))
        count += len(folder.pieces)
        reachable = [*folder.safe.values(), *(node for piece in folder.pieces for node in piece.values() if node)]
        for node in reachable:
            if isinstance(node, Folder):
                waiting.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                count += len(node.pieces)
    return count


def after_loss(disk: MemoryDisk, chosen: Callable[[], bool]) -> MemoryDisk:
    """Return the disk after a loss of power; ``chosen`` says of each piece, in a fixed order, whether it was saved."""
    known: dict[int, File | Folder] = {}

    def survivor(node: File | Folder) -> File | Folder:
        if id(node) in known:
            return known[id(node)]
        if isinstance(node, File):
            left = known[id(node)] = File()
            left.safe = node.after(chosen)
            left.data = bytearray(left.safe)
            return left
        folder = known[id(node)] = Folder()
        folder.names = {name: survivor(child) for name, child in node.after(chosen).items()}
        folder.sync()
        return folder

    root = survivor(disk.root)
    assert isinstance(root, Folder)
    return MemoryDisk(root)


def copy_of(disk: MemoryDisk) -> MemoryDisk:
    """Return the disk as it is, with what is safe and what is not, and nothing open."""
    return MemoryDisk(copy.deepcopy(disk.root))


def written_in_part(disk: MemoryDisk, path: Path, offset: int, data: bytes) -> MemoryDisk:
    """Return the disk after a write of which only these bytes were made."""
    left = copy_of(disk)
    node = left._find(path)
    assert isinstance(node, File)
    node.put(data, offset)
    return left


def losses(disk: MemoryDisk, samples: int, seed: int) -> Iterator[tuple[str, MemoryDisk]]:
    """Yield disks that a loss of power may leave, each with a text that makes it again (``replayed``).

    All of them while there are few pieces; otherwise ``samples`` drawn from the seed, after the two extremes.
    """
    count = pieces(disk)
    if count <= EXHAUSTIVE_PIECES and 2**count <= samples:
        names = [format(number, "b").zfill(count) if count else "" for number in range(2**count)]
    else:
        drawn = random.Random(seed)
        names = ["1" * count, "0" * count]
        names += ["".join("1" if drawn.random() < share else "0" for _ in range(count)) for share in _shares(samples)]
    for name in dict.fromkeys(names):
        yield name, replayed(disk, name)


def _shares(samples: int) -> Iterator[float]:
    """Yield how likely a piece is saved, from rarely to nearly always."""
    for number in range(samples - 2):
        yield (0.1, 0.5, 0.9)[number % 3]


def replayed(disk: MemoryDisk, name: str) -> MemoryDisk:
    """Return the disk of one loss by its text: a digit for each piece, 1 where it was saved."""
    digits = iter(name)
    return after_loss(disk, lambda: next(digits, "1") == "1")


def content(disk: MemoryDisk) -> tuple[Any, ...]:
    """Return everything on a disk that matters, as a value."""

    def of(node: File | Folder) -> Any:
        if isinstance(node, File):
            return bytes(node.data)
        return tuple((name, of(child)) for name, child in sorted(node.names.items()) if name != UNIMPORTANT)

    return (of(disk.root),)
