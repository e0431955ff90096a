"""The notes of the second witness: one file for each branch, in one folder for each place where a repository is.

They lie in the user's state folder. A note is written in place, and not synced. One that is not whole proves nothing:
it is named, and only a commit replaces it, by a rename. Under the branch lock no process is started for a note.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from kbcore import ids
from kbcore.errors import KBError
from kbcore.errors.remedies import kb
from kbcore.storage import files, head, layout
from kbcore.storage.fs import LOCK_EXCLUSIVE, Fs
from kbcore.storage.head import Epoch, Head
from kbcore.storage.scratch import is_private, make_private, user_folder

FORMAT: Final = 1
MAX_BYTES: Final = 16 * 1024
_MAX_EPOCHS: Final = 16
"""Epochs that are noted; each takes some 250 bytes of each note."""
MAX_PLACES: Final = 8
"""Other places of one repository that are read; more copies of one repository are rare."""
_SUFFIX: Final = ".json"
_GIT_DIR: Final = "git-dir"
"""The file of a place that holds the path of the common git directory."""
_PADDED: Final = 512
_ABSENT: Final = "absent"
"""The file of a place whose repository was not found when it was looked for: how often, and when last."""
_LOOKED: Final = re.compile(rb"(\d{1,9}) (\d{1,20})\s*")
LOOKS: Final = 12
LOOKS_APART_NS: Final = 30 * 24 * 3600 * 10**9
"""A place is removed when its repository was not found so often, with such intervals.

That is about a year in which notes of a few KiB are kept for a disk that is not mounted. Looks are counted instead of
days, so that one look with a wrong clock, or long after the last one, removes nothing.
"""
_MAX_SWEPT: Final = 1000
"""Places that one sweep reads. Where there are more, they are chosen at random, so that each has its
turn."""
_PLACE: Final = re.compile(r"[0-9a-f]{16}", re.ASCII)
_READS: Final = 3
"""Attempts to read a file that is not whole: another process may be writing it."""


class Seen(msgspec.Struct, frozen=True):
    """The last acknowledged record of a branch that was noted, and where its line ends."""

    format: int
    branch: str
    directory: str
    """Of the store; "" where the path is no UTF-8."""
    store_id: str
    lineage: str
    seq: int
    hash: str
    file: str
    length: int
    """The line of the record ends at this byte of ``file``."""
    at: str
    epochs: tuple[Epoch, ...] = ()
    """The newest epochs that the store had ended then: they tell which records another state of it lacks."""


class BranchNote(msgspec.Struct, frozen=True):
    """The content of a branch's file: what was noted, None where there is no such file or it is damaged."""

    seen: Seen | None
    damage: str = ""
    """The reason it is unusable; "" where it is whole, or absent."""
    is_changing: bool = False
    """Another process writes it at this moment."""

    @property
    def is_usable(self) -> bool:
        """Tell whether it says what was noted last, which may be nothing."""
        return not self.damage and not self.is_changing


class SweptNotes(msgspec.Struct, frozen=True):
    """The result of a sweep: places of repositories whose notes were removed, and those not decided, and why."""

    gone: tuple[str, ...]
    problems: tuple[str, ...]


class DamagedNote(msgspec.Struct, frozen=True):
    """A witness file that cannot be used: of which branch, as far as its name says, and why."""

    directory_name: str
    path: Path
    damage: str

    @property
    def branch(self) -> str:
        """Return the name of the branch, or of its directory where that says no more."""
        return ids.decode_branch(self.directory_name) or self.directory_name

    def sentence(self) -> str:
        """Say what is wrong, and what to do."""
        return f"{self.message()} {self.remedy()}"

    def message(self) -> str:
        """Say what is wrong, with the file."""
        return (
            f"The note of the last acknowledged record of {self.branch} is damaged: {self.path} {self.damage}. "
            "It counts as none: a store that went back is not noticed."
        )

    def remedy(self) -> str:
        """Say what to do."""
        return (
            f"Look with {self._log_command()} whether the last records are there; the next write to the branch makes "
            "a new note. Where that fails, as in the place of a folder, remove what is there."
        )

    def _log_command(self) -> str:
        return kb("log", "--branch", self.branch)

    def was_replaced(self) -> str:
        """Say that a write replaced this note."""
        return (
            f"The note of the last acknowledged record of {self.branch} was damaged, and this write replaced it: "
            f"{self.path} {self.damage}. Look with {self._log_command()} whether the records before this one are there."
        )


def seen_of(of: Head, directory: Path) -> Seen:
    """Return what is noted of a head."""
    tip = of.head
    path = str(directory)
    stated = path if path.isprintable() and path.encode("utf-8", "ignore").decode() == path else ""
    return Seen(
        FORMAT,
        of.branch,
        stated,
        of.store_id,
        of.lineage,
        tip.seq,
        tip.hash,
        tip.file,
        tip.length,
        tip.at,
        of.epochs[-_MAX_EPOCHS:],
    )


def encode(seen: Seen) -> bytes:
    """Return the bytes of a witness file: a JSON object whose last key is the SHA-256 of all bytes before it.

    Padded, so that as a rule a shorter one replaces a longer one as a whole.
    """
    line = head.with_sum(msgspec.json.encode(seen))
    return line.ljust(-len(line) % _PADDED + len(line), b" ")


@lru_cache(maxsize=16)
def decode(data: bytes) -> Seen | None:
    """Return what a witness file says; None for anything that is not whole: it is not synced, and may be cut off."""
    stated = head.without_sum(data[: data.find(b"\n") + 1])
    if stated is None:
        return None
    try:
        seen = msgspec.json.decode(stated, type=Seen)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    is_sane = seen.format == FORMAT and seen.seq > 0 and seen.length >= 0 and layout.segment_first_seq(seen.file)
    return seen if is_sane else None


def file_of(folder: Path, directory_name: str) -> Path:
    """Return the file of a branch in the folder of a place."""
    return folder / f"{directory_name}{_SUFFIX}"


class NotedRepository(msgspec.Struct, frozen=True):
    """The data of a repository for the witness.

    ``git_dir`` is the common git directory; ``read_id`` returns the id of the repository with a git directory, "" for
    none; ``write_id`` gives this one an id.
    """

    git_dir: Path
    read_id: Callable[[Path], str]
    write_id: Callable[[str], None]


class NotesFolder:
    """The folder in which the branches of one repository at one path are noted."""

    def __init__(self, fs: Fs, env: Mapping[str, str], repository: NotedRepository) -> None:
        self._fs = fs
        self._repository = repository
        state = user_folder(env, "XDG_STATE_HOME", ".local/state")
        self.root = state / "kb" / "witness" if state else None
        """The folder of the notes of all repositories of the user; None where there is no home."""
        self._name = hashlib.sha256(os.fsencode(repository.git_dir)).hexdigest()[:16]
        self.unavailable = "" if state else "The environment names no home folder."
        """The reason nothing can be noted, if known; "" while nothing is known to be wrong."""
        self._folders: dict[str, Path] = {}
        """The folder of this place by the id of the repository: it is asked for many times in one request."""
        self._ready: Path | None = None
        """The folder of this place, once it was made or found, and is the user's own."""

    def obstacle(self) -> str:
        """Return what keeps the branches from being noted, as far as that can be determined without writing."""
        root = self.root
        if root is None:
            return "The environment names no home folder."
        if files.is_there(self._fs, root) and not is_private(self._fs, root):
            return f"{root} is no folder that only this user can write to."
        nearest = next(one for one in (root, *root.parents) if files.is_there(self._fs, one))
        try:
            if self._fs.lstat(nearest).st_uid != os.geteuid():
                return f"{nearest} belongs to another user."
            code = self._fs.refusal_to_write(nearest)
        except OSError as error:
            code = error.errno or 0
        return f"{nearest} cannot be written to: {os.strerror(code)}." if code else ""

    def folder(self) -> Path | None:
        """Return the folder of this place, which may not exist; None where the repository has no id yet."""
        repository_id = self._repository.read_id(self._repository.git_dir) if self.root else ""
        if self.root is None or not repository_id:
            return None
        return self._folders.get(repository_id) or self._folders.setdefault(
            repository_id, self.root / repository_id / self._name
        )

    def others(self) -> list[Path]:
        """Return the folders of other places of a repository with this id: copies, and where it was before."""
        own = self.folder()
        try:
            names = sorted(self._fs.listdir(own.parent)) if own else []
        except OSError:
            return []
        return [own.parent / name for name in names if own and name != own.name and len(name) == len(own.name)][
            :MAX_PLACES
        ]

    def git_dir_of(self, folder: Path) -> Path | None:
        """Return the git directory that a place is of, if a repository with the same id is still there."""
        with contextlib.suppress(KBError):
            path = Path(os.fsdecode(self._stated(folder)))
            if path.is_absolute() and self._repository.read_id(path) == folder.parent.name:
                return path
        return None

    def path_of(self, folder: Path) -> str:
        """Return the git directory that a place names, as text for a message."""
        with contextlib.suppress(KBError):
            return self._stated(folder).decode("utf-8", "backslashreplace")
        return ""

    def _stated(self, folder: Path) -> bytes:
        """Return the path that a place names; nothing for one that was not written to its end."""
        path, end, _ = (files.read_file(self._fs, folder / _GIT_DIR, MAX_BYTES) or b"").partition(b"\0")
        return path if end else b""

    def entries(self, folder: Path | None = None) -> Iterator[Seen]:
        """Yield what is noted of each branch, in order of its directory name."""
        folder = folder or self.folder()
        for name in self._names(folder):
            seen = self.read(name, folder)
            if seen:
                yield seen

    def damaged(self) -> Iterator[DamagedNote]:
        """Yield the files of this place that cannot be used, in order of their names."""
        folder = self.folder()
        for name in self._names(folder):
            damage = self.look(name, folder).damage
            if damage and folder:
                yield DamagedNote(name, file_of(folder, name), damage)

    def _names(self, folder: Path | None) -> list[str]:
        """Return the directory names of the branches that are noted in a folder."""
        try:
            names = sorted(self._fs.listdir(folder)) if folder and is_private(self._fs, folder.parent.parent) else []
        except OSError:
            return []
        return [name.removesuffix(_SUFFIX) for name in names if name.endswith(_SUFFIX)]

    def read(self, directory_name: str, folder: Path | None = None) -> Seen | None:
        """Return what is noted of a branch, None where nothing can be read."""
        return self.look(directory_name, folder).seen

    def look(self, directory_name: str, folder: Path | None = None) -> BranchNote:
        """Return what the file of a branch holds."""
        folder = folder or self.folder()
        if folder is None:
            return BranchNote(None)
        found: set[bytes] = set()
        for _ in range(_READS):
            path = file_of(folder, directory_name)
            try:
                data = files.read_file(self._fs, path, MAX_BYTES)
            except KBError as error:
                # What cannot even be looked at, as in a home folder that is shut, counts as absent.
                return BranchNote(None, f"({error.message})" if files.is_there(self._fs, path) else "")
            seen = None if data is None else decode(data)
            if seen or data is None:
                return BranchNote(seen)
            found.add(data)
        # While another process writes it, no two readings need be the same.
        return BranchNote(None, "is not what KB wrote") if len(found) == 1 else BranchNote(None, is_changing=True)

    def prepare(self) -> None:
        """Give a repository without an id one, so that it can be noted; ``unavailable`` says why that failed.

        For before a branch is locked: git is started for it.
        """
        if self.root is None or self.folder() is not None:
            return
        try:
            make_private(self._fs, self.root)
            with self._repository_lock() as is_alone:
                # Else another process is about to give it one.
                if is_alone and self.folder() is None:
                    self._identify(self.root)
        except (OSError, KBError) as error:
            self.unavailable = str(error)

    @contextlib.contextmanager
    def _repository_lock(self) -> Iterator[bool]:
        """Tell whether no other process gives this repository an id during the block. Raises: ``OSError``."""
        with files.opened(self._fs, self._repository.git_dir, os.O_RDONLY | os.O_DIRECTORY) as fd:
            try:
                self._fs.flock(fd, LOCK_EXCLUSIVE)
            except BlockingIOError:
                yield False
            except OSError:
                yield True  # no such locks here
            else:
                yield True

    def write(self, directory_name: str, seen: Seen, *, replaces: bool = False) -> bool:
        """Note the state of a branch, and return whether that could be done; ``unavailable`` says why not.

        Nothing is noted of a repository without an id, see ``prepare``. With ``replaces`` the file is a new one.
        """
        for is_last in (False, True):
            try:
                folder = self._made()
                if folder is None:
                    return False
                self._write(file_of(folder, directory_name), encode(seen), replaces=replaces)
            except (OSError, KBError) as error:
                self._ready = None  # another process may have removed the folder
                self.unavailable = str(error)
                if is_last:
                    return False
            else:
                break
        self.unavailable = ""
        return True

    def forget(self, directory_name: str) -> None:
        """Remove what is noted of a branch that KB itself put away. What cannot be removed is judged again later."""
        folder = self.folder()
        if folder is not None:
            files.remove_quietly(self._fs, file_of(folder, directory_name))

    def gone(self) -> list[Path]:
        """Return the other places of the repository where it is no more."""
        return [folder for folder in self.others() if self.git_dir_of(folder) is None]

    def sweep(self, now_ns: int, *, dry_run: bool = False) -> SweptNotes:
        """Remove what is noted of repositories that are gone for long.

        A place whose repository is there, or cannot be looked for, is never removed: neither is one that does not say
        where its repository is. ``now_ns`` is the time.
        """
        root, own = self.root, self.folder()
        if root is None or not is_private(self._fs, root):
            return SweptNotes((), ())
        gone, problems = list[str](), list[str]()
        for folder in self._places(root, problems):
            try:
                stated = self._stated(folder)
                path = Path(os.fsdecode(stated))
                if folder == own:
                    is_gone = False
                elif stated:
                    is_gone = self._is_gone(path, folder.parent.name)
                else:
                    problems.append(f"{folder} does not say of which repository it is.")
                    continue
                if not is_gone:
                    if not dry_run and files.is_there(self._fs, folder / _ABSENT):
                        self._fs.unlink(folder / _ABSENT)
                elif self._is_long_gone(folder, now_ns, dry_run=dry_run):
                    gone.append(str(path))
                    if not dry_run:
                        self._remove(folder)
            except (OSError, KBError) as error:
                problems.append(f"{folder}: {error}")
        return SweptNotes(tuple(gone), tuple(problems))

    def _places(self, root: Path, problems: list[str]) -> Iterator[Path]:
        """Yield the folders of places of all repositories, in random order, as many as a sweep looks at.

        What has no name that KB gives is left alone. Folders that cannot be listed are added to ``problems``.
        """
        left = _MAX_SWEPT
        for folder in self._listed(root, ids.REPOSITORY_ID, problems)[:_MAX_SWEPT]:
            for place in self._listed(folder, _PLACE, problems)[:left]:
                yield place
                left -= 1

    def _listed(self, folder: Path, pattern: re.Pattern[str], problems: list[str]) -> list[Path]:
        try:
            names = [name for name in self._fs.listdir(folder) if pattern.fullmatch(name)]
        except OSError as error:
            problems.append(f"{folder}: {error}")
            return []
        secrets.SystemRandom().shuffle(names)
        return [folder / name for name in names]

    def _is_gone(self, git_dir: Path, repository_id: str) -> bool:
        """Tell whether there is no such repository any more; False where that cannot be determined."""
        if not git_dir.is_absolute():
            return False
        try:
            self._fs.lstat(git_dir / "config")
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return self._repository.read_id(git_dir) not in {"", repository_id}

    def _is_long_gone(self, folder: Path, now_ns: int, *, dry_run: bool) -> bool:
        """Count one more look at a place whose repository is gone; tell whether there were enough."""
        said = _LOOKED.fullmatch(files.read_file(self._fs, folder / _ABSENT, MAX_BYTES) or b"")
        looks, last_ns = (int(said[1]), int(said[2])) if said else (0, 0)
        if abs(now_ns - last_ns) < LOOKS_APART_NS:
            return False
        if not dry_run:
            self._write(folder / _ABSENT, f"{looks + 1} {now_ns}".encode().ljust(_PADDED))
        return looks + 1 >= LOOKS

    def _remove(self, folder: Path) -> None:
        for name in self._fs.listdir(folder):
            self._fs.unlink(folder / name)
        self._fs.rmdir(folder)
        with contextlib.suppress(OSError):  # another place of the repository is noted
            self._fs.rmdir(folder.parent)

    def adopt(self, is_whole: Callable[[Seen], bool]) -> bool:
        """Take over what is noted of a place that the repository moved away from; return whether that was done.

        ``is_whole`` tells whether the store of a branch here has what was noted there: a copy of an older state of a
        repository that was deleted since is no move of it.
        """
        own = self.folder()
        if own is None or files.is_there(self._fs, own):
            return False
        for folder in self.gone():
            if all(is_whole(seen) for seen in self.entries(folder)):
                try:
                    self._fs.replace(folder, own)
                    self._write(own / _GIT_DIR, os.fsencode(self._repository.git_dir) + b"\0")
                except OSError as error:
                    self.unavailable = str(error)
                    return False
                return True
        return False

    def _made(self) -> Path | None:
        """Return the folder of this place, made if need be; None where the repository has no id."""
        own = self.folder()
        if self.root is None or own is None or own == self._ready:
            return own
        path = os.fsencode(self._repository.git_dir) + b"\0"
        if files.is_there(self._fs, own) and is_private(self._fs, self.root):
            if self._stated(own) + b"\0" != path:
                self._write(own / _GIT_DIR, path)
            self._ready = own
            return own
        make_private(self._fs, self.root)
        for one in (own.parent, own):
            if not files.is_there(self._fs, one):
                with contextlib.suppress(FileExistsError):
                    self._fs.mkdir(one, 0o700)
        self._write(own / _GIT_DIR, path)
        self._ready = own
        return own

    def _identify(self, root: Path) -> None:
        """Give the repository an id. Raises: ``OSError``; ``GitUnusable``."""
        # The folder first: where nothing can be written, the configuration stays as it is.
        wanted = root / secrets.token_hex(16)
        self._fs.mkdir(wanted, 0o700)
        try:
            self._repository.write_id(wanted.name)
        finally:
            own = self.folder()
            if own is None or own.parent != wanted:  # git refused, or a process that does not lock was faster
                self._fs.rmdir(wanted)

    def _write(self, path: Path, data: bytes, *, replaces: bool = False) -> None:
        """Write a file from its beginning, without a sync. Raises: ``OSError``.

        In place: a rename over a file has ext4 write it to the disk, which takes longer than a hundred such writes.
        A new one, and with ``replaces`` each, gets its name when it is whole, so that an empty one is never read.
        """
        is_in_place = not replaces and files.is_there(self._fs, path)
        place = path if is_in_place else path.with_name(f"{path.name}.{secrets.token_hex(8)}{layout.TMP_SUFFIX}")
        try:
            fd = self._fs.open(place, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                files.pwrite_all(self._fs, fd, data, 0)
            finally:
                files.close(self._fs, fd)
            if not is_in_place:
                self._fs.replace(place, path, is_private=True)
        except OSError:
            if not is_in_place:
                files.remove_quietly(self._fs, place)
            raise
