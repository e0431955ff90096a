"""The trash of the stores of branches that exist nowhere, and how they are restored.

Nothing that stays in the trash is ever changed by KB, but for the name of its folder, and nothing is deleted but what a
person asked for by ``empty``. A store goes there only under its own lock, after git was asked once more, and comes back
at once if its branch came alive meanwhile. It comes out again only when it proves, or when a person says that it need
not.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec

from kbcore import clock, git, ids
from kbcore.errors import Damaged, Incompatible, JournalCorrupt, UnknownBranch
from kbcore.errors.remedies import shell
from kbcore.storage import branchdir, files, gitref, verify
from kbcore.storage.fs import Fs
from kbcore.storage.trashed import TrashedStore, aside_of
from kbcore.store import relocation
from kbcore.store.branches import lost, store_moves
from kbcore.store.branches.origins import renamed_over
from kbcore.store.branches.own_content import Counted, counted_facts, own_records, seq_of
from kbcore.store.branches.stores import discard_cache, in_git, living, note_gone, repository_lock, store_lock, stores
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean

_ALIVE: Final = "its branch exists again"
_CHANGING: Final = "git keeps changing its refs, and it is not known whether its branch exists; run it again"
_ASKED: Final = 3
"""Attempts to ask git whether a branch is in use: each change of a ref meanwhile may be that of this branch."""
KEPT_DAYS: Final = 90
"""A store stays in the trash for so many days at least, unless a person says otherwise."""
_LACKING: Final = "acknowledged records are missing from it"
_NAMELESS: Final = "its branch is not known"


class Trashed(msgspec.Struct, frozen=True):
    """A store that ``collect`` moved, or would move: ``records`` counts those that no remaining store has.

    ``facts`` counts what clients wrote on it and the default branch has not. Both are None when that is not known,
    because a store is damaged or was written to meanwhile. ``unshared`` counts the changes that no committed file held
    and the default branch has not, where changes are shared or merged. ``place`` is where it lies, empty on a dry run.
    ``renamed_to`` is the branch that git made of this one, if that had a store of its own and did not take this one.
    """

    name: str
    records: int | None
    facts: int | None = None
    unshared: int = 0
    place: str = ""
    renamed_to: str = ""


_NOT_COUNTED: Final = Counted()


class CollectedStores(msgspec.Struct, frozen=True):
    """Stores that ``collect`` moved to the trash, and that it kept; ``reasons`` says why, by name."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    dry_run: bool
    trash: tuple[Trashed, ...] = ()
    """The removed ones again, with what is lost sight of by their going."""
    reasons: dict[str, str] = {}


class Restored(msgspec.Struct, frozen=True):
    """A store that is back in its place; ``replaced`` tells where the one went that was there.

    ``is_damaged`` tells that it does not prove; ``seq`` is None where its head cannot be read.
    """

    branch: str
    seq: int | None
    exists_in_git: bool
    replaced: str = ""
    is_damaged: bool = False


class Discarded(msgspec.Struct, frozen=True):
    """A store that ``empty`` deleted or kept: when it came to the trash, in words, and where its head was.

    ``until`` is the day on which it has been there for as long as was asked for; "" where it has.
    """

    branch: str
    moved_at: str
    seq: int | None
    place: str
    until: str = ""


class Emptied(msgspec.Struct, frozen=True):
    """Stores that ``empty`` deleted, that it kept because a branch lacks records, and the number left in the trash.

    ``waiting`` are those that have not been there for so many days.
    """

    deleted: tuple[Discarded, ...]
    kept: tuple[Discarded, ...]
    left: int
    waiting: tuple[Discarded, ...] = ()


class Held(msgspec.Struct, frozen=True):
    """A store in the trash, and what proving it came to.

    ``damage`` says what is wrong with it, "" when it proves, None when it was not proven. ``is_newest`` tells that
    ``kb branch restore`` would bring this one back.
    """

    branch: str
    seq: int | None
    entry: TrashedStore
    damage: str | None
    is_newest: bool
    size_bytes: int | None


def collect(workspace: Workspace, *, dry_run: bool = False) -> CollectedStores:
    """Move the stores of branches that exist nowhere any more to the trash.

    ``living`` says which branches exist. A store that cannot be named is kept.

    Raises: ``GitUnusable`` when git cannot list its branches; ``LockTimeout`` while a store is written to.
    """
    fs = workspace.machine.fs
    # Whoever makes a store waits for the lock of the repository, and counting may take a while.
    alive = living(workspace)
    absent = {loss.branch for loss in lost.losses(workspace)}
    unused = {name: place for name, place in stores(workspace) if name not in alive}
    if unused:
        # Those that are kept, for now or on a dry run, may outlast the next branch of their name.
        note_gone(workspace)
    counted = counted_facts(workspace, {name: place for name, place in unused.items() if name not in absent})
    with contextlib.nullcontext() if dry_run else repository_lock(workspace):
        if not dry_run:
            branchdir.clear_unfinished(workspace.machine.fs, workspace.folders.branches_dir)
        needed = living(workspace)
        there = list(stores(workspace))
        lacking = {loss.branch for loss in lost.losses(workspace)}
        unneeded = [one for one in there if one[0] not in needed and workspace.folders.directory_of(one[0]) == one[1]]
        gone = [one for one in unneeded if one[0] not in lacking]
        kept = {name: directory for name, directory in there if (name, directory) not in gone}
        trashed, why = list[Trashed](), dict.fromkeys(lacking, _LACKING) | needed
        # git is asked for renames only when that has to be said of something.
        takers = {old: new for new in sorted(in_git(workspace)) for old in renamed_over(workspace, new)} if gone else {}
        for name, directory in gone:
            others = [*kept.values()]
            found: Trashed | str
            if dry_run:
                found = Trashed(name, own_records(fs, directory, others))
            else:
                found = _remove(workspace, name, directory, others)
            if isinstance(found, str):
                kept[name], why[name] = directory, found
            else:
                seq, facts, unshared = counted.get(name, _NOT_COUNTED)
                if seq is None or seq_of(fs, Path(found.place or directory)) != seq:
                    _, facts, unshared = _NOT_COUNTED
                found = msgspec.structs.replace(found, facts=facts, unshared=unshared)
                trashed.append(msgspec.structs.replace(found, renamed_to=takers.get(name, "")))
    removed = tuple(one.name for one in trashed)
    names = sorted(kept)
    lives = {name: _life_of(workspace, name) for name in names if name in needed}
    reasons = {name: why.get(name, _NAMELESS) + lives.get(name, "") for name in names}
    return CollectedStores(removed, tuple(names), dry_run, tuple(trashed), reasons)


def _life_of(workspace: Workspace, name: str) -> str:
    """Return what to add to the reason for which a store is kept, where that is of an earlier branch, or may be."""
    verdict = workspace.verdict_on(name)
    if verdict == "made_again":
        return ", which git made again since: the store is that of an earlier branch of this name"
    return "; the store may be that of an earlier branch of this name" if verdict == "doubtful" else ""


def restore(workspace: Workspace, branch: str, *, even_damaged: bool = False) -> Restored:
    """Bring the store of a branch back that came to the trash last, once it is proven; one that is there goes there.

    With ``even_damaged`` also one that does not prove comes back, as it is, to be repaired in its place.

    Raises: ``UnknownBranch`` when the trash has none of that name; ``JournalCorrupt`` when it does not prove, and
    nothing was changed then; what moving stores raises.
    """
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    # A large store takes a while, and whoever makes a store waits for the lock of the repository.
    expected = find(workspace, branch)
    damage = _damage_of(fs, expected)
    with repository_lock(workspace):
        entry = find(workspace, branch)
        if entry is None:
            known = sorted({ids.decode_branch(one.name) or one.name for one in store_moves.in_trash(workspace)})
            hint = did_you_mean(branch, known) or "The trash is empty."
            raise UnknownBranch(f"The trash holds no store of {in_quotes(branch)}.", hint=hint)
        if entry != expected:
            damage = _damage_of(fs, entry)
        if damage and not even_damaged:
            raise _refused(workspace, branch, entry, damage)
        seq, seen = seq_of(fs, entry.path), workspace.ref_seen(branch)
        replaced = replace(workspace, entry.path, directory)
        gitref.write(fs, directory, seen)
        discard_cache(workspace, branch)
        lost.note_store(workspace, branch)
    is_alive = git.is_in_use(workspace.repo, workspace.machine.env, branch)
    return Restored(branch, seq, is_alive, str(replaced) if replaced else "", bool(damage))


def _damage_of(fs: Fs, entry: TrashedStore | None) -> str:
    return verify.prove(fs, entry.path).damage if entry else ""


def insist_sound(workspace: Workspace, branch: str, entry: TrashedStore) -> None:
    """Refuse a store in the trash that does not prove. Raises: ``JournalCorrupt``."""
    damage = _damage_of(workspace.machine.fs, entry)
    if damage:
        message = f"The store of {branch} in the trash does not prove: {damage}. Nothing was copied."
        hint = f"{shell('branch', 'restore', branch, '--even-damaged')} brings it back as it is, to be repaired."
        raise JournalCorrupt(message, hint=hint, data={"file": str(entry.path)})


def _refused(workspace: Workspace, branch: str, entry: TrashedStore, damage: str) -> JournalCorrupt:
    present = "; the present store goes to the trash" if workspace.folders.has_store(branch) else ""
    command = f"{shell('branch', 'restore', branch, '--even-damaged')}"
    hint = f"{command} brings it back as it is{present}. Then {shell('doctor')} says what can be repaired."
    if any(one.name == entry.name and one != entry for one in store_moves.in_trash(workspace)):
        hint += f" To bring back the one before it, move {entry.path} out of the trash, and run this again."
    message = f"The store of {branch} in the trash does not prove: {damage}. Nothing was brought back."
    return JournalCorrupt(message, hint=hint, data={"file": str(entry.path)})


def held(workspace: Workspace, *, max_proven: int, max_bytes: int = sys.maxsize) -> Iterator[Held]:
    """Yield the stores in the trash, the newest first, each with its proof as far as the bounds go.

    So many are proven at most, and together no more than so many bytes; the rest is only named.

    Raises: ``StorageError`` when the trash cannot be listed.
    """
    fs, named, left = workspace.machine.fs, set[str](), max_bytes
    for number, entry in enumerate(reversed(store_moves.in_trash(workspace))):
        branch, is_newest = ids.decode_branch(entry.name) or entry.name, entry.name not in named
        named.add(entry.name)
        size, damage = _size_of(fs, entry.path), None
        # Another process may bring it back at this moment.
        with contextlib.suppress(UnknownBranch):
            if number < max_proven and size is not None and size <= left:
                left -= size
                damage = _damage_of(fs, entry)
        yield Held(branch, seq_of(fs, entry.path), entry, damage, is_newest, size)


def empty(workspace: Workspace, *, older_than_days: int = KEPT_DAYS, dry_run: bool = False) -> Emptied:
    """Delete for good the stores that came to the trash so many days ago, or earlier.

    One of a branch that lacks acknowledged records stays: it may have them. What a crash leaves of a store that is
    being deleted is no store in the trash any more, and is cleared by the next `kb gc`.

    Raises: ``LockTimeout``; ``StorageError`` and its kin when the trash cannot be listed or a store not be deleted.
    """
    fs = workspace.machine.fs
    limit = _compact(clock.days_before(workspace.machine.clock.now(), older_than_days))
    deleted, kept, waiting = list[Discarded](), list[Discarded](), list[Discarded]()
    with contextlib.nullcontext() if dry_run else repository_lock(workspace):
        lacking = {loss.directory.name: loss.branch for loss in lost.losses(workspace)}
        for entry in store_moves.in_trash(workspace):
            branch = ids.decode_branch(entry.name) or entry.name
            one = Discarded(branch, moment_of(entry), seq_of(fs, entry.path), str(entry.path))
            if entry.when > limit:
                waiting.append(msgspec.structs.replace(one, until=kept_until(entry, older_than_days)))
                continue
            if entry.name in lacking:
                kept.append(one)
                continue
            if not dry_run:
                _delete(workspace, entry)
            deleted.append(one)
        left = len(store_moves.in_trash(workspace)) - (len(deleted) if dry_run else 0)
    return Emptied(tuple(deleted), tuple(kept), left, tuple(waiting))


def _compact(at: str) -> str:
    """Return a time as the name of a store in the trash has it."""
    return at.replace(":", "").replace("-", "")


def _delete(workspace: Workspace, entry: TrashedStore) -> None:
    """Delete one store in the trash; the caller holds the repository lock, and has found no loss of its branch."""
    fs, directory = workspace.machine.fs, workspace.folders.branches_dir / entry.name
    if not files.is_directory(fs, directory):
        # Only the store in the trash shows that KB itself moved it there.
        workspace.place.forget(entry.name)
    place = branchdir.building_place(directory)
    with files.explained(entry.path, "delete"):
        fs.replace(entry.path, place)
        for folder in (place.parent, entry.path.parent):
            fs.fsync_dir(folder)
        files.remove_tree(fs, place)


def _size_of(fs: Fs, place: Path) -> int | None:
    """Return how many bytes the files of a store have; None where that cannot be determined."""
    try:
        return sum(fs.lstat(place / name).st_size for name in fs.listdir(place))
    except OSError:
        return None


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

    The new store gets the marks of its place: it may come from a backup, an older layout or an older KB. What it saw
    last of its branch in git is of the time before, and is removed.

    Raises: as ``store_moves.put_in_place``.
    """
    gitref.forget(workspace.machine.fs, new)
    with contextlib.suppress(Damaged, Incompatible):  # a head that cannot be read cannot be marked
        relocation.mark(workspace.machine.fs, new, workspace.folders.store_features)
    return store_moves.put_in_place(workspace, new, directory)


def find(workspace: Workspace, branch: str) -> TrashedStore | None:
    """Return the store of a branch that came to the trash last, None when there is none."""
    name = ids.encode_branch(branch)
    return max(
        (one for one in store_moves.in_trash(workspace) if one.name == name), key=lambda one: one.when, default=None
    )


def moment_of(entry: TrashedStore) -> str:
    """Return when a store came to the trash, in words."""
    when = entry.when
    return f"{when[:4]}-{when[4:6]}-{when[6:8]} at {when[9:11]}:{when[11:13]}:{when[13:15]} UTC"


def kept_until(entry: TrashedStore, days: int = KEPT_DAYS) -> str:
    """Return the day after which ``empty`` deletes a store that stays for so many days."""
    when = entry.when
    moved = f"{when[:4]}-{when[4:6]}-{when[6:11]}:{when[11:13]}:{when[13:]}"
    return clock.days_before(moved, -days)[:10]


def remembered(workspace: Workspace, branch: str) -> str:
    """Return what to say of earlier stores of a branch that has none: where they are, and how one comes back.

    Empty when there are none, which is the rule.
    """
    directory = workspace.folders.directory_of(branch)
    if store_moves.is_aside(workspace, directory):
        return f"The store of {branch} was being replaced; the next command that may write puts it back."
    found = find(workspace, branch)
    if found is None:
        return ""
    return (
        f"The trash holds a store of {branch}, moved there on {moment_of(found)}; "
        f"{shell('branch', 'restore', branch)} brings it back."
    )


def _remove(workspace: Workspace, name: str, directory: Path, others: Sequence[Path]) -> Trashed | str:
    """Move one store to the trash, unless its branch came alive since the living were listed; return why it stays.

    Looked at once more when it is moved: whoever uses the branch from then on waits for the repository lock. While the
    store is locked, no process is started: where only git can say that nothing changed, it is asked again without the
    lock, a few times at most.
    """
    repo, env = workspace.repo, workspace.machine.env
    for _ in range(_ASKED):
        usage = git.BranchUse(repo, env, name)
        if usage.is_in_use:
            return _ALIVE
        with store_lock(workspace, directory):
            if usage.has_begun():
                continue
            found = Trashed(name, own_records(workspace.machine.fs, directory, others))
            store_moves.set_aside(workspace, directory)
            if usage.has_begun():
                store_moves.bring_back(workspace, directory)
                continue
            place = store_moves.throw_away(workspace, aside_of(directory))
        discard_cache(workspace, name)
        workspace.place.forget(directory.name)
        return msgspec.structs.replace(found, place=str(place))
    return _CHANGING
