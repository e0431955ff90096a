"""Where the stores of branches go that exist nowhere any more, and how they come back.

Nothing that stays in the trash is ever changed or deleted by KB. A store goes there only under its own lock, after git
was asked once more, and comes back at once if its branch came alive meanwhile.
"""

from __future__ import annotations

import contextlib
import os
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from kbcore import git, ids, relocation
from kbcore.branches import lost, moves
from kbcore.branches.origins import renamed_over
from kbcore.branches.stores import discard_cache, in_git, living, repository_lock, store_lock, stores
from kbcore.errors import Damaged, HistoryPruned, Incompatible, UnknownBranch
from kbcore.storage import branchdir, files, journal
from kbcore.storage.fs import Fs
from kbcore.suggest import did_you_mean
from kbcore.visible import in_quotes
from kbcore.workspace import Workspace

_ALIVE: Final = "its branch came back just now"
_LACKING: Final = "acknowledged records are missing from it"
_NAMELESS: Final = "nobody can tell its branch"
_UNREADABLE: Final = (Damaged, Incompatible, UnknownBranch, HistoryPruned)


class Trashed(msgspec.Struct, frozen=True):
    """A store that ``collect`` moved, or would move: ``records`` counts those that no remaining store has.

    None when that cannot be told, because the store is damaged. ``place`` is where it lies, empty on a dry run.
    ``renamed_to`` is the branch that git made of this one, if that had a store of its own and did not take this one.
    """

    name: str
    records: int | None
    place: str = ""
    renamed_to: str = ""


class Collected(msgspec.Struct, frozen=True):
    """What ``collect`` moved to the trash, and what it kept; ``reasons`` says why, by name."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    dry_run: bool
    trash: tuple[Trashed, ...] = ()
    """The removed ones again, with what is lost sight of by their going."""
    reasons: dict[str, str] = {}


class Restored(msgspec.Struct, frozen=True):
    """A store that is back in its place; ``replaced`` tells where the one went that was there."""

    branch: str
    seq: int
    exists_in_git: bool
    replaced: str = ""


def collect(workspace: Workspace, *, dry_run: bool = False) -> Collected:
    """Move the stores of branches that exist nowhere any more to the trash.

    ``living`` says which branches exist. A store that cannot be named is kept.

    Raises: ``GitUnusable`` when git cannot list its branches; ``LockTimeout`` while a store is written to.
    """
    with contextlib.nullcontext() if dry_run else repository_lock(workspace):
        if not dry_run:
            branchdir.clear_unfinished(workspace.machine.fs, workspace.branches_dir)
        needed = living(workspace)
        there = list(stores(workspace))
        lacking = {loss.branch for loss in lost.losses(workspace)}
        unneeded = [one for one in there if one[0] not in needed and workspace.directory_of(one[0]) == one[1]]
        gone = [one for one in unneeded if one[0] not in lacking]
        kept = {name: directory for name, directory in there if (name, directory) not in gone}
        trashed = []
        # git is asked for renames only when that has to be said of something.
        takers = {old: new for new in sorted(in_git(workspace)) for old in renamed_over(workspace, new)} if gone else {}
        for name, directory in gone:
            found = (_weigh if dry_run else _remove)(workspace, name, directory, kept.values())
            if found is None:
                kept[name] = directory
            else:
                trashed.append(msgspec.structs.replace(found, renamed_to=takers.get(name, "")))
    removed = tuple(one.name for one in trashed)
    names = sorted(kept)
    why = {name: _ALIVE for name, _ in gone} | dict.fromkeys(lacking, _LACKING) | needed
    reasons = {name: why.get(name, _NAMELESS) for name in names}
    return Collected(removed, tuple(names), dry_run, tuple(trashed), reasons)


def restore(workspace: Workspace, branch: str) -> Restored:
    """Bring the store of a branch back that came to the trash last; one that stands in its place goes there instead.

    Raises: ``UnknownBranch`` when the trash has none of that name; what reading its head raises.
    """
    directory = workspace.directory_of(branch)
    with repository_lock(workspace):
        place = find(workspace, branch)
        if place is None:
            known = sorted({ids.decode_branch(name) or name for name, _ in moves.trashed(workspace)})
            hint = did_you_mean(branch, known) or "The trash is empty."
            raise UnknownBranch(f"The trash holds no store of {in_quotes(branch)}.", hint=hint)
        seq = journal.read_head(workspace.machine.fs, place).seq
        replaced = replace(workspace, place, directory)
        discard_cache(workspace, branch)
        lost.settle(workspace, branch)
    is_alive = git.is_in_use(workspace.repo, workspace.machine.env, branch)
    return Restored(branch, seq, is_alive, str(replaced) if replaced else "")


def replace(workspace: Workspace, new: Path, directory: Path) -> Path | None:
    """Put a whole store in the place of another, if there is one; return where that is in the trash now.

    The caller holds the repository lock. Raises: ``LockTimeout`` while the other is written to; as ``put``.
    """
    with present_lock(workspace, directory):
        return put(workspace, new, directory)


def present_lock(workspace: Workspace, directory: Path) -> AbstractContextManager[None]:
    """Return the lock of the store in a place, not yet taken; an empty one where there is no store.

    The caller holds the repository lock, so no store is made there meanwhile.
    """
    is_there = files.is_directory(workspace.machine.fs, directory)
    return store_lock(workspace, directory) if is_there else contextlib.nullcontext()


def put(workspace: Workspace, new: Path, directory: Path) -> Path | None:
    """Do as ``replace`` does; the caller holds the repository lock and the ``present_lock`` of the place.

    The new store gets the marks of its place: it may come from a backup, an older layout or an older KB.

    Raises: as ``moves.put_in_place``.
    """
    with contextlib.suppress(Damaged, Incompatible):  # a head that cannot be read cannot be marked
        relocation.mark(workspace.machine.fs, new, workspace.store_features)
    return moves.put_in_place(workspace, new, directory)


def find(workspace: Workspace, branch: str) -> Path | None:
    """Return where the store of a branch lies that came to the trash last, None when there is none."""
    name = ids.encode_branch(branch)
    times = [when for its_name, when in moves.trashed(workspace) if its_name == name]
    return moves.place_in_trash(workspace, name, max(times)) if times else None


def remembered(workspace: Workspace, branch: str) -> str:
    """Return what to say of earlier stores of a branch that has none: where they are, and how one comes back.

    Empty when there are none, which is the rule.
    """
    directory = workspace.directory_of(branch)
    if moves.is_aside(workspace, directory):
        return f"The store of {branch} was being replaced; the next command that may write puts it back."
    when = max((when for name, when in moves.trashed(workspace) if name == directory.name), default="")
    if not when:
        return ""
    day, time = f"{when[:4]}-{when[4:6]}-{when[6:8]}", f"{when[9:11]}:{when[11:13]}:{when[13:15]}"
    return (
        f"The trash holds a store of {branch}, moved there on {day} at {time} UTC; "
        f"`kb branch restore {branch}` brings it back."
    )


def _remove(workspace: Workspace, name: str, directory: Path, others: Iterable[Path]) -> Trashed | None:
    """Move one store to the trash, unless its branch came alive since the living were listed; None then.

    Asked once more when it is moved: whoever uses the branch from then on waits for the repository lock.
    """
    repo, env = workspace.repo, workspace.machine.env
    with store_lock(workspace, directory):
        if git.is_in_use(repo, env, name):
            return None
        found = _weigh(workspace, name, directory, others)
        moves.set_aside(workspace, directory)
        if git.is_in_use(repo, env, name):
            moves.bring_back(workspace, directory)
            return None
        place = moves.throw_away(workspace, moves.aside_of(directory))
    discard_cache(workspace, name)
    workspace.place.forget(directory.name)
    return msgspec.structs.replace(found, place=str(place))


def _weigh(workspace: Workspace, name: str, directory: Path, others: Iterable[Path]) -> Trashed:
    """Count the records of a store that none of the others has."""
    fs = workspace.machine.fs
    try:
        head = journal.read_head(fs, directory)
        records = [
            _Placed(one.frame.seq, one.frame.sum, one.file, one.offset, one.length)
            for one in journal.scan(fs, directory, head)
        ]
    except _UNREADABLE:
        return Trashed(name, None)
    shared = max((_count_shared(fs, records, directory, other, head.lineage) for other in others), default=0)
    return Trashed(name, len(records) - shared)


class _Placed(msgspec.Struct, frozen=True, gc=False):
    """One record of a journal, and where its line is."""

    seq: int
    sum: str
    file: str
    offset: int
    length: int

    def read_line(self, fs: Fs, directory: Path) -> bytes:
        """Return what stands in the place of the record, in this store or in a copy of it; empty without a file."""
        path = directory / self.file
        if files.read_size(fs, path) is None:
            return b""
        with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
            return fs.pread(fd, self.length, self.offset)


def _count_shared(fs: Fs, records: Sequence[_Placed], directory: Path, other: Path, lineage: str) -> int:
    """Return how many of a store's records, from the first on, another one has as well.

    A copy has the same bytes in the same places, and a record vouches for all before it: a few looks are enough.
    """
    try:
        there = journal.read_head(fs, other)
    except _UNREADABLE:  # what a damaged store holds does not count
        return 0
    if there.lineage != lineage or not records:
        return 0
    sums = {one.seq: one.sum for one in records}

    def is_missing(one: _Placed) -> bool:
        if one.seq < there.first_seq:
            return sums.get(there.first_seq - 1) != there.segments[0].base_hash
        return one.seq > there.seq or one.read_line(fs, directory) != one.read_line(fs, other)

    return bisect_left(records, True, key=is_missing)
