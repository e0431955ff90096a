"""The second witness of a store: the last acknowledged record of each branch, noted outside the store.

It lies in the user's state folder, in one folder for each place where a repository is. It is written after a record is
durable and is not synced, so it may be behind the store, and is never ahead of it: a store that lacks what was noted
has lost it. It is written in place. One that is not whole proves nothing: it is named, and only a commit replaces it,
by a rename. Failing to write it never fails a commit. Under the branch lock no process is started for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import shlex
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore import ids
from kbcore.errors import Damaged, HistoryPruned, KBError, StoreWentBack, UnknownBranch
from kbcore.remedies import kb, typed
from kbcore.storage import files, frame, head, layout, recovery, scan, trashed
from kbcore.storage.fs import LOCK_EXCLUSIVE, Fs
from kbcore.storage.head import Epoch, Head, Tip
from kbcore.storage.places import record_range
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
_REPOSITORY: Final = re.compile(r"[0-9a-f]{32}", re.ASCII)
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


class Note(msgspec.Struct, frozen=True):
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
            f"Look with {kb('log')} whether the last records are there; the next write to the branch makes a new note. "
            "Where that fails, as in the place of a folder, remove what is there."
        )

    def was_replaced(self) -> str:
        """Say that a write replaced this note."""
        return (
            f"The note of the last acknowledged record of {self.branch} was damaged, and this write replaced it: "
            f"{self.path} {self.damage}. Look with {kb('log')} whether the records before this one are there."
        )


NOT_WRITTEN: Final = "Nothing is written until that is settled."


class LostRecords(msgspec.Struct, frozen=True):
    """Records that are missing, all written under one store id: the first and the last."""

    store_id: str
    first: int
    last: int


class Loss(msgspec.Struct, frozen=True):
    """Acknowledged records that are missing from the store of a branch.

    ``now`` is the seq that the store ends at, None where there is no store.
    """

    kind: Literal["went_back", "differs", "gone", "replaced"]
    branch: str
    directory: Path
    store_id: str
    """Under which the records were acknowledged."""
    seen: int
    hash: str
    now: int | None
    kept: int | None = 0
    """The last record that the store has in common with the one that was seen, where it has another id now; 0 where it
    has none of them, None where that cannot be known."""
    epochs: tuple[Epoch, ...] = ()
    """Those that the store that was seen had ended."""

    @property
    def first(self) -> int:
        """The first record that is missing, as far as that is known; see ``is_first_known``."""
        if self.kind == "went_back":
            return (self.now or 0) + 1
        return self.kept + 1 if self.is_first_known and self.kept is not None else self.seen

    @property
    def is_first_known(self) -> bool:
        """Tell whether no record before the first is missing."""
        return self.kind != "differs" and (self.kind != "replaced" or self.kept is not None)

    @property
    def is_of_one(self) -> bool:
        """Tell whether a single record is missing, and no other can be."""
        return self.first == self.seen and self.is_first_known

    @property
    def by_id(self) -> tuple[LostRecords, ...]:
        """The missing records by the store id under which they were written, oldest first."""
        found, after = [], self.first - 1
        for one in self.epochs:
            if self.is_first_known and one.store_id != self.store_id and one.seq > after:
                found.append(LostRecords(one.store_id, after + 1, one.seq))
                after = one.seq
        return (*found, LostRecords(self.store_id, after + 1, self.seen))

    def sentence(self) -> str:
        """Return what is wrong, with the seqs."""
        seqs = f"seen: {self.seen}, now: {'no store' if self.now is None else self.now}"
        rows = record_range(self.first, self.seen)
        verb = "is" if self.first == self.seen else "are"
        if self.kind == "went_back":
            return f"The store of {self.branch} went back to an earlier state. {seqs}; {rows} {verb} missing."
        if self.kind == "differs":
            return (
                f"The store of {self.branch} has another record {self.seen} than the one that was acknowledged "
                f"({self.hash[:12]}). {seqs}; record {self.seen} and some before it may be missing."
            )
        if self.kind == "gone":
            return f"The store of {self.branch} is missing. {seqs}; {rows} {verb} missing."
        begins = f"Another store has the place of the one of {self.branch}. {seqs};"
        if not self.is_first_known:
            return f"{begins} {rows} of the store {self.store_id[:12]} and some before it may be missing."
        named = [f"{record_range(one.first, one.last)} of the store {one.store_id[:12]}" for one in self.by_id]
        return f"{begins} {' and '.join(named)} {'is' if self.is_of_one else 'are'} missing."

    def remedy(self) -> str:
        """Return what a person can do, in commands that mean this branch whatever is checked out."""
        name = shlex.quote(self.branch)
        return (
            f"If there is a backup, {layout.restore_command(self.directory, self.branch)} brings the store back as it "
            "was then. To go on without the missing records, a person runs "
            f"{typed('doctor', '--new-epoch', '--branch', name)}, "
            f"or, where the journal is damaged as well, {layout.salvage_command(self.branch, '--yes')}."
        )

    def warning(self, remedy: str = "") -> str:
        """Return what to say to who does not write: what is wrong, what that means, and what can be done.

        ``remedy`` is used instead of its own.
        """
        return f"{self.sentence()} {NOT_WRITTEN} {remedy or self.remedy()}"

    def error(self) -> StoreWentBack:
        """Return the error that refuses a write."""
        data = {"branch": self.branch, "file": str(self.directory), "seen": self.seen, "now": self.now}
        return StoreWentBack(self.sentence(), hint=self.remedy(), data=data)


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


def missing(fs: Fs, directory: Path, seen: Seen, of: Head | None, is_put_away: Callable[[Seen], bool]) -> Loss | None:
    """Return what a store lacks of what was acknowledged, None when nothing is missing.

    Args:
        fs: the file system.
        directory: of the store.
        seen: what was noted; read before ``of`` was.
        of: the head of the store now, None where there is no store.
        is_put_away: tells whether KB itself moved the store that was seen, and what it put there since is there.

    Raises: ``StorageError`` when the journal cannot be read.
    """

    def lost(kind: Literal["went_back", "differs", "gone", "replaced"], kept: int | None = 0) -> Loss:
        now = of.seq if of else None
        return Loss(kind, seen.branch, directory, seen.store_id, seen.seq, seen.hash, now, kept, seen.epochs)

    if of is None:
        return None if is_put_away(seen) else lost("gone")
    if of.store_id == seen.store_id:
        if of.seq < seen.seq:
            return None if _follows_head(fs, directory, of, seen) else lost("went_back")
        return None if holds(fs, directory, of, seen) else lost("differs")
    ended = of.epoch_of(seen.store_id)
    if (ended and seen.seq <= ended.seen) or is_put_away(seen):
        return None
    has_all = of.lineage == seen.lineage and of.seq >= seen.seq and holds(fs, directory, of, seen)
    return None if has_all else lost("replaced", _kept(fs, directory, of, seen))


def _kept(fs: Fs, directory: Path, of: Head, seen: Seen) -> int | None:
    """Return the last record that a store has in common with one that was seen, by their ids; see ``Loss.kept``."""
    if of.lineage != seen.lineage:
        return 0
    ours = {one.store_id: one.seq for one in of.epochs} | {of.store_id: of.seq}
    theirs = {one.store_id: Tip(one.seq, one.hash, "", 0, one.at) for one in seen.epochs}
    theirs[seen.store_id] = Tip(seen.seq, seen.hash, seen.file, seen.length, seen.at)
    common = {one: min(ours[one], theirs[one].seq) for one in ours.keys() & theirs.keys()}
    kept = max(common.values(), default=0)
    ends = [tip for tip in theirs.values() if tip.seq == kept]
    # Where one was copied from the other and both went on, they differ before the last record of a common id.
    is_known = all(holds(fs, directory, of, tip) for tip in ends) if ends else of.seq == kept
    return kept or None if is_known else None


def contradiction(fs: Fs, directory: Path, of: Head, other: Seen) -> str:
    """Return how a copy of this store elsewhere contradicts it, "" where it does not.

    Both have the same id and other records: one was copied from the other, and both went on. A copy that is merely
    behind is none.
    """
    other_directory = Path(other.directory)
    if not other.directory or other_directory == directory:
        return ""
    try:
        there = head.read(fs, other_directory)
        if there.store_id != of.store_id:
            return ""
        if there.seq <= of.seq:
            is_one = holds(fs, directory, of, seen_of(there, other_directory))
        else:
            is_one = holds(fs, other_directory, there, seen_of(of, directory))
    except KBError:
        # It is gone or damaged: it proves nothing against this store.
        return ""
    if is_one:
        return ""
    return (
        f"{directory} and {other_directory} have the same store id and other records up to seq "
        f"{min(of.seq, there.seq)}: one is a copy of the other, and both were written to since. A reference "
        f"to a record can mean either; {kb('doctor', '--new-epoch')} gives one of them an id of its own."
    )


def holds(fs: Fs, directory: Path, of: Head, seen: Seen | Tip) -> bool:
    """Tell whether a store that ends at the seen record or later has that record, as far as it can still be known."""
    if of.seq == seen.seq:
        return of.hash == seen.hash
    for part in of.segments:
        if part.first_seq == seen.seq + 1:
            return part.base_hash == seen.hash
        if part.sealed and part.sealed.last_seq == seen.seq:
            return part.sealed.hash == seen.hash
    if seen.seq < of.first_seq:
        return True  # pruned
    part = next(one for one in reversed(of.segments) if one.first_seq <= seen.seq)
    if part.file == seen.file and _is_followed(fs, directory / part.file, seen):
        return True
    try:
        for entry in scan.scan(fs, directory, of, after=part.start, until=seen.seq):
            if entry.frame.seq == seen.seq:
                return entry.frame.sum == seen.hash
    except (Damaged, HistoryPruned):
        # Damage is no proof of a loss; whoever reads the record reports it.
        return True
    return True


def _is_followed(fs: Fs, path: Path, seen: Seen | Tip) -> bool:
    """Tell whether the record after the seen one begins where that one ended, and names its hash."""
    begins = frame.beginning(seen.seq + 1, seen.hash)
    with contextlib.suppress(OSError), files.opened(fs, path, os.O_RDONLY) as fd:
        return fs.pread(fd, len(begins), seen.length) == begins
    return False


def _follows_head(fs: Fs, directory: Path, of: Head, seen: Seen) -> bool:
    """Tell whether the seen record lies complete after the head: the head file is an older one, and nothing is lost."""
    if seen.file != of.head.file:
        return False
    found = recovery.survey(fs, directory, of)
    return found.damage is None and any((one.end.seq, one.end.hash) == (seen.seq, seen.hash) for one in found.whole)


def is_put_away(fs: Fs, directory: Path, seen: Seen, of: Head | None) -> bool:
    """Tell whether KB itself moved the store that was seen, and what it put there since is there.

    ``of`` is the store that the directory has now, None for none.
    """

    def has_it(place: Path, there: Head) -> bool:
        with contextlib.suppress(KBError):
            return there.store_id == seen.store_id and there.seq >= seen.seq and holds(fs, place, there, seen)
        return False

    with contextlib.suppress(KBError):
        return trashed.accounts_for(fs, directory, of, has_it)
    return False


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
        self._root = state / "kb" / "witness" if state else None
        self._name = hashlib.sha256(os.fsencode(repository.git_dir)).hexdigest()[:16]
        self.unavailable = "" if state else "The environment names no home folder."
        """The reason nothing can be noted, if known; "" while nothing is known to be wrong."""
        self._folders: dict[str, Path] = {}
        """The folder of this place by the id of the repository: it is asked for many times in one request."""
        self._ready: Path | None = None
        """The folder of this place, once it was made or found, and is the user's own."""

    def obstacle(self) -> str:
        """Return what keeps the branches from being noted, as far as that can be determined without writing."""
        root = self._root
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
        repository_id = self._repository.read_id(self._repository.git_dir) if self._root else ""
        if self._root is None or not repository_id:
            return None
        return self._folders.get(repository_id) or self._folders.setdefault(
            repository_id, self._root / repository_id / self._name
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
                yield DamagedNote(name, folder / f"{name}{_SUFFIX}", damage)

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

    def look(self, directory_name: str, folder: Path | None = None) -> Note:
        """Return what the file of a branch holds."""
        folder = folder or self.folder()
        if folder is None:
            return Note(None)
        found: set[bytes] = set()
        for _ in range(_READS):
            path = folder / f"{directory_name}{_SUFFIX}"
            try:
                data = files.read_file(self._fs, path, MAX_BYTES)
            except KBError as error:
                # What cannot even be looked at, as in a home folder that is shut, counts as absent.
                return Note(None, f"({error.message})" if files.is_there(self._fs, path) else "")
            seen = None if data is None else decode(data)
            if seen or data is None:
                return Note(seen)
            found.add(data)
        # While another process writes it, no two readings need be the same.
        return Note(None, "is not what KB wrote") if len(found) == 1 else Note(None, is_changing=True)

    def prepare(self) -> None:
        """Give a repository without an id one, so that it can be noted; ``unavailable`` says why that failed.

        For before a branch is locked: git is started for it.
        """
        if self._root is None or self.folder() is not None:
            return
        try:
            make_private(self._fs, self._root)
            with self._repository_lock() as is_alone:
                # Else another process is about to give it one.
                if is_alone and self.folder() is None:
                    self._identify(self._root)
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
                self._write(folder / f"{directory_name}{_SUFFIX}", encode(seen), replaces=replaces)
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
            files.remove_quietly(self._fs, folder / f"{directory_name}{_SUFFIX}")

    def gone(self) -> list[Path]:
        """Return the other places of the repository where it is no more."""
        return [folder for folder in self.others() if self.git_dir_of(folder) is None]

    def sweep(self, now_ns: int, *, dry_run: bool = False) -> SweptNotes:
        """Remove what is noted of repositories that are gone for long.

        A place whose repository is there, or cannot be looked for, is never removed: neither is one that does not say
        where its repository is. ``now_ns`` is the time.
        """
        root, own = self._root, self.folder()
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
        for folder in self._listed(root, _REPOSITORY, problems)[:_MAX_SWEPT]:
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
        if self._root is None or own is None or own == self._ready:
            return own
        path = os.fsencode(self._repository.git_dir) + b"\0"
        if files.is_there(self._fs, own) and is_private(self._fs, self._root):
            if self._stated(own) + b"\0" != path:
                self._write(own / _GIT_DIR, path)
            self._ready = own
            return own
        make_private(self._fs, self._root)
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


class BranchWitness:
    """The witness of one branch's store, for all threads of a process.

    Made once and kept. The file is read each time: two notes of one length that follow each other within a tick of the
    file system's clock leave the same times.
    """

    def __init__(self, fs: Fs, directory: Path, place: NotesFolder) -> None:
        self._fs = fs
        self._directory = directory
        self._name = directory.name
        self._place = place
        self._gate = threading.Lock()
        self._remembered: Seen | None = None
        """States seen by this process, for a repository of which nothing can be noted."""
        self._last: Note | None = None
        """The notes as last read, or written since."""
        self.loss: Loss | None = None
        """Losses that the last check found."""
        self.copies: tuple[str, ...] = ()
        """How the first copy of the store elsewhere that contradicts it does so, as of the last check; else empty."""
        self.damaged: DamagedNote | None = None
        """The file of the branch, as of the last check, where it cannot be used."""

    def check(self, of: Head | None) -> Loss | None:
        """Compare a head with what was noted, and return what is missing; note it, if nothing is.

        ``of`` is None where there is no store. A head that lacks something is read again: what was noted may be of a
        commit that came after it was read.

        Raises: what reading a head raises.
        """
        with self._gate:
            loss = self._compare(of)
            if of is not None and loss is None:
                self.copies = self._contradictions(of)
            return loss

    def prepare(self) -> None:
        """Do before the branch is locked what has git started: see ``Place.prepare``."""
        with self._gate:
            self._place.prepare()

    def note(self, of: Head) -> DamagedNote | None:
        """Note a head that is durable. Return the damaged note that this replaced, None where there was none.

        In a repository without an id nothing is noted. The caller has checked the head before this call, under the same
        lock: the note that it read is not read again.
        """
        with self._gate:
            before = self.damaged
            self._advance(of, self._last or self._look())
            return before if self.damaged is None else None

    def would_lack(self, fs: Fs, directory: Path, of: Head) -> Loss | None:
        """Return what another store, which lies elsewhere, would lack in the place of this one; nothing is noted."""
        with self._gate:
            seen = self._look().seen
        if seen is None:
            return None

        def is_kept(one: Seen) -> bool:
            """Tell whether nothing is missing now: what is in the place is compared by its own head then."""
            with contextlib.suppress(KBError):
                return self._lacking(one, self._now()) is None
            return False

        return missing(fs, directory, seen, of, is_kept)

    def refuse(self, of: Head) -> None:
        """Refuse to write to a store that lacks acknowledged records. Raises: ``StoreWentBack``."""
        with self._gate:
            loss = self._compare(of)
        if loss is not None:
            raise loss.error()

    def accept(self, of: Head) -> None:
        """Note a head whatever was noted before: a person accepted the loss, or KB put another store in its place."""
        with self._gate:
            self._remembered = seen_of(of, self._directory)
            self._place.write(self._name, self._remembered, replaces=bool(self._look().damage))
            self._last = None
            self.loss = None

    def _compare(self, of: Head | None) -> Loss | None:
        note = self._look()
        seen = note.seen
        folder = self._place.folder() if note.damage else None
        self.damaged = DamagedNote(self._name, folder / f"{self._name}{_SUFFIX}", note.damage) if folder else None
        is_known = seen is None or (of is not None and _is_same(seen, of))
        self.loss = None if seen is None or is_known else self._missing(seen, of)
        if of is not None and self.loss is None and note.is_usable:  # only a commit says again what is the last record
            if seen is None and of.seq:
                self._adopt()
            self._advance(of, note)
        return self.loss

    def _look(self) -> Note:
        """Return what is noted of the branch; where that cannot be read, what this process remembers."""
        note = self._place.look(self._name)
        if note.seen is None and (not note.is_usable or self._place.unavailable or self._place.folder() is None):
            note = msgspec.structs.replace(note, seen=self._remembered)
        self._last = note
        return note

    def _missing(self, seen: Seen, of: Head | None) -> Loss | None:
        if of is not None and of.store_id == seen.store_id and of.seq < seen.seq:
            # Usually another writer committed since this head was read. To prove that takes the whole active segment.
            of = self._now()
        if self._lacking(seen, of) is None:
            return None
        # It was noted before the head of this moment is read, so no commit can come between the two.
        seen = self._look().seen or seen
        loss, of = None, self._now()
        for _ in range(_READS):
            loss, before = self._lacking(seen, of), of
            of = self._now()
            if loss is None or of == before:
                break
            # KB put another store in the place meanwhile: this one was not the one that the trash speaks of.
        return loss

    def _lacking(self, seen: Seen, of: Head | None) -> Loss | None:
        fs, directory = self._fs, self._directory
        return missing(fs, directory, seen, of, lambda one: is_put_away(fs, directory, one, of))

    def _now(self) -> Head | None:
        try:
            return head.read(self._fs, self._directory)
        except UnknownBranch:
            return None

    def _advance(self, of: Head, note: Note) -> None:
        """Note a head, if it is a later one than what is noted: under the same id never an earlier one.

        A damaged file is replaced even if this process remembers what it was to say.
        """
        seen = note.seen
        is_noted = seen is not None and seen.store_id == of.store_id and seen.seq >= of.seq
        if not of.seq or (is_noted and note.is_usable):
            return
        self._remembered = seen_of(of, self._directory)
        is_written = self._place.write(self._name, self._remembered, replaces=bool(note.damage))
        self._last = Note(self._remembered) if is_written else None
        if is_written:
            self.damaged = None

    def _adopt(self) -> None:
        parent = self._directory.parent

        def is_whole(one: Seen) -> bool:
            directory = parent / ids.encode_branch(one.branch)
            with contextlib.suppress(KBError):
                return missing(self._fs, directory, one, head.read(self._fs, directory), lambda _: False) is None
            return False

        self._place.adopt(is_whole)

    def _contradictions(self, of: Head) -> tuple[str, ...]:
        for folder in self._place.others():
            other = self._place.read(self._name, folder)
            if other is not None and other.store_id == of.store_id and self._place.git_dir_of(folder):
                said = contradiction(self._fs, self._directory, of, other)
                if said:
                    return (said,)
        return ()


def _is_same(seen: Seen, of: Head) -> bool:
    return (seen.store_id, seen.seq, seen.hash) == (of.store_id, of.seq, of.hash)
