"""Creation of a branch's store: on first use, and copied on demand.

A copy holds one head of what it was copied from. A renamed branch takes its store along: a commit under the former
name is in the new store, or finds the branch moved.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import shell
from kbcore.storage import branchdir, gitref
from kbcore.storage.gitref import Verdict
from kbcore.store import pointer, unread_stores
from kbcore.store.branch_store import BranchStore
from kbcore.store.branches import lost, settling, store_moves, trash
from kbcore.store.branches.choosing import Choice, choose, insist, no_branch
from kbcore.store.branches.origins import BranchOrigin, find_origin, find_renamed, left_over
from kbcore.store.branches.stores import discard_cache, note_gone, repository_lock, store_lock, stores
from kbcore.store.workspace import Workspace
from kbcore.text.escaping import in_quotes
from kbcore.view.cache_files import CacheFiles


class Ensured(msgspec.Struct, frozen=True):
    """The result of ``ensure``: whether the store is new, and what it was copied from ("": it starts empty).

    ``notice`` says what a person would not expect; with ``is_warning`` something may be lost, and nobody's wish for
    fewer words keeps it back. ``is_doubted`` tells that the store may be of an earlier branch of this name.
    """

    branch: str
    is_new: bool
    copied_from: str = ""
    notice: str = ""
    is_warning: bool = False
    is_doubted: bool = False


def ensure(
    workspace: Workspace,
    branch: str,
    *,
    follows_head: bool = False,
    accepts_loss: bool = False,
) -> Ensured:
    """Make sure that a branch has a store; a new one is a copy, history included, of what ``find_origin`` names.

    With ``follows_head`` the branch was read from HEAD. No store is made for one that git has renamed or deleted since,
    nor for one whose store is missing, unless ``accepts_loss``. The store of an earlier branch of this name, which git
    has deleted since, makes room for a new one.

    Raises: ``BranchMoved`` or ``UnknownBranch`` in the first case, ``StoreWentBack`` in the second; ``LockTimeout``,
    ``ReadOnlyStore``, ``StorageFull`` and what reading the store that is copied raises.
    """
    if workspace.unmovable is not None:
        raise workspace.unmovable
    workspace.read_on.pop(branch, None)
    if workspace.folders.has_store(branch) and (verdict := workspace.verdict_on(branch)) != "made_again":
        return existing(workspace, branch, verdict)
    note_gone(workspace)
    with repository_lock(workspace, accepts_loss=accepts_loss):
        has_former = workspace.folders.has_store(branch)
        if has_former and (verdict := workspace.verdict_on(branch)) != "made_again":
            return existing(workspace, branch, verdict)
        if not accepts_loss or has_former:
            lost.refuse(workspace, branch)
        seen = workspace.ref_seen(branch)
        if has_former:
            made = _made_again(workspace, branch, follows_head=follows_head)
        else:
            made = _made(workspace, branch, follows_head=follows_head, accepts_loss=accepts_loss)
        gitref.write(workspace.machine.fs, workspace.folders.directory_of(branch), seen)
    if not pointer.is_up_to_date(workspace.folders):  # else git, which ``point`` asks, has nothing to add
        pointer.point(workspace.folders, workspace.pool)
    return made


def keep(workspace: Workspace, branch: str) -> None:
    """Note that the store that a branch has is its own, whatever git says of an earlier branch of this name.

    Raises: ``UnknownBranch`` when it has none; ``GitUnusable``; ``ReadOnlyStore``, ``LockTimeout``.
    """
    with repository_lock(workspace):
        if not workspace.folders.has_store(branch):
            raise no_branch(workspace, branch, f"{in_quotes(branch)} has no store.")
        note_ref(workspace, branch)


def note_ref(workspace: Workspace, branch: str) -> None:
    """Note in the store of a branch what git has of it now. Raises: ``GitUnusable``."""
    gitref.write(workspace.machine.fs, workspace.folders.directory_of(branch), workspace.ref_seen(branch))


def existing(workspace: Workspace, branch: str, verdict: Verdict, *, notes_ref: bool = True) -> Ensured:
    """Return what to say of a store that is there; with ``notes_ref`` note what git has of its branch."""
    if verdict == "same":
        return Ensured(branch, is_new=False)
    is_doubted = verdict == "doubtful"
    if notes_ref:
        _note_found(workspace, branch, is_doubted=is_doubted)
    if not is_doubted:
        return Ensured(branch, is_new=False)
    return Ensured(branch, is_new=False, notice=str(_doubt(workspace, branch)), is_warning=True, is_doubted=True)


def _note_found(workspace: Workspace, branch: str, *, is_doubted: bool) -> None:
    """Note what git has of a branch; a doubt keeps the note that it comes from until a person settles it."""
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    seen = gitref.read(fs, directory)
    if not is_doubted or seen is None:
        gitref.write(fs, directory, workspace.ref_seen(branch, is_doubted=is_doubted))
    elif seen.is_gone and not seen.is_doubted:
        # A branch that is only checked out gets a ref with its first commit, and what is written until then stays.
        gitref.write(fs, directory, msgspec.structs.replace(seen, is_doubted=True))


class Suspicion(msgspec.Struct, frozen=True):
    """The note about a store that is, or may be (``is_doubted``), of an earlier branch of its name."""

    message: str
    remedy: str
    is_doubted: bool

    def __str__(self) -> str:
        return f"{self.message} {self.remedy}"


def suspicion(workspace: Workspace, branch: str) -> Suspicion | None:
    """Return what ``ensure`` would say or do because git has made a branch after its store; None as a rule.

    Raises: ``GitUnusable``.
    """
    verdict = workspace.verdict_on(branch)
    if verdict == "made_again" and (heir := find_renamed(workspace, branch)):
        message = f"git renamed {branch} to {heir} and made {branch} again since its store was last used."
        remedy = f"The next command that writes, or a hook of git, gives this store to {heir}, and {branch} a new one."
        return Suspicion(message, remedy, is_doubted=False)
    if verdict == "made_again":
        message = f"git deleted {branch} and made it again since its store was last used."
        remedy = (
            f"The next command that writes, or a hook of git, gives {branch} a new store, and puts this one in the "
            "trash."
        )
        return Suspicion(message, remedy, is_doubted=False)
    return _doubt(workspace, branch) if verdict == "doubtful" else None


def _doubt(workspace: Workspace, branch: str) -> Suspicion:
    name, seen = shlex.quote(branch), gitref.read(workspace.machine.fs, workspace.folders.directory_of(branch))
    if seen is not None and seen.is_gone:
        reason = f"git had no branch {branch} at a time after its store was last used, and has one again"
    else:
        reason = f"git may have made {branch} again since its store was last used"
    remedy = (
        f"If so, {shell('branch', 'ensure', name, '--from', workspace.default_branch, '--replace')} puts it in the "
        f"trash and copies that of {workspace.default_branch}; if it is right, "
        f"{shell('branch', 'ensure', name, '--keep')}."
    )
    return Suspicion(f"{reason}: the store may be that of an earlier branch of this name.", remedy, is_doubted=True)


def _made_again(workspace: Workspace, branch: str, *, follows_head: bool) -> Ensured:
    """Put the store of an earlier branch of this name in the trash, and make a new one in its place.

    Where git renamed the earlier branch, its store goes to that one instead. The caller holds the repository lock. The
    new store is whole before the other one is moved.
    """
    if heir := find_renamed(workspace, branch):
        seen = workspace.ref_seen(heir)
        moved = _made(workspace, heir, follows_head=False, accepts_loss=False)
        gitref.write(workspace.machine.fs, workspace.folders.directory_of(heir), seen)
        made = _made(workspace, branch, follows_head=follows_head, accepts_loss=False, is_in_place=True)
        return msgspec.structs.replace(made, notice=f"{moved.notice} {_begins(made)} {made.notice}".rstrip())
    origin = origin_of(workspace, branch, follows_head=follows_head)
    if origin is None:
        lost.refuse(workspace, workspace.default_branch)
        made = _empty(workspace, branch)
    else:
        _copy(workspace, workspace.folders.directory_of(origin.branch), branch, view_of=origin.branch)
        made = Ensured(branch, is_new=True, copied_from=origin.branch, notice=origin.notice)
    lost.note_store(workspace, branch)
    said = (
        f"git deleted {branch} and made it again since its store was last used: that store is in the trash. "
        f"{_begins(made)} {shell('branch', 'restore', branch)} brings the other back."
    )
    notice = f"{said} {origin.notice if origin else ''}".rstrip()
    return msgspec.structs.replace(made, notice=notice, is_warning=True)


def _begins(made: Ensured) -> str:
    """Return what the new store of a branch holds, where there was another one before."""
    contents = f"copied from {made.copied_from}" if made.copied_from else "which is empty"
    return f"{made.branch} has a new store, {contents}."


def _made(
    workspace: Workspace, branch: str, *, follows_head: bool, accepts_loss: bool, is_in_place: bool = False
) -> Ensured:
    """Make the store of a branch that has none. The caller holds the repository lock.

    With ``is_in_place`` it takes the place of one that went to another branch, and the caller says so.
    """
    origin = origin_of(workspace, branch, follows_head=follows_head)
    if origin is None:
        if not accepts_loss:
            lost.refuse(workspace, workspace.default_branch)
        return _empty(workspace, branch)
    source = workspace.folders.directory_of(origin.branch)
    if origin.is_former:
        # Who is committing under the former name either ends before the copy is made, or is refused after it.
        with store_lock(workspace, source):
            _copy(workspace, source, branch, view_of=origin.branch)
            # Noted before the other one goes: from then on nothing else says that the records were acknowledged.
            lost.note_store(workspace, branch)
            store_moves.throw_away(workspace, source)
        discard_cache(workspace, origin.branch)
        workspace.place.forget(source.name)
        notice = origin.notice
    else:
        _copy(workspace, source, branch, view_of=origin.branch)
        notice = origin.notice
        if not is_in_place and (said := " ".join(filter(None, [notice, trash.remembered(workspace, branch)]))):
            notice = f"{branch} has a store now, copied from {origin.branch}. {said}"
    return Ensured(branch, is_new=True, copied_from=origin.branch, notice=notice)


def copy_from(workspace: Workspace, branch: str, source: str, *, replaces: bool = False) -> Ensured:
    """Make the store of a branch a copy of a named one: of another branch's, or of the last one in the trash.

    With ``replaces`` a store that the branch has already goes to the trash, once the copy is whole.

    Raises: ``InvalidQuery`` when it has one and is to keep it; ``UnknownBranch`` for a source that there is not;
    ``StoreWentBack`` when acknowledged records of the branch are missing; ``JournalCorrupt`` for a store in the trash
    that does not prove; as ``ensure``.
    """
    if branch == source:
        raise InvalidQuery(f"{branch} cannot be copied from itself.", hint="Name another branch with --from.")
    note_gone(workspace)
    with repository_lock(workspace):
        is_in_use = workspace.folders.has_store(source)
        found = None if is_in_use else trash.find(workspace, source)
        directory = found.path if found else workspace.folders.directory_of(source)
        if not is_in_use and found is None:
            raise no_branch(workspace, source, f"{in_quotes(source)} has no store, neither in use nor in the trash.")
        if workspace.folders.has_store(branch) and not replaces:
            raise InvalidQuery(
                f"{branch} has a store already.",
                hint=f"With --replace, that store goes to the trash; {shell('branch', 'restore')} brings it back.",
            )
        lost.refuse(workspace, branch)
        if found:
            trash.insist_sound(workspace, source, found)
        seen = workspace.ref_seen(branch)
        _copy(workspace, directory, branch, view_of=source if is_in_use else "")
        gitref.write(workspace.machine.fs, workspace.folders.directory_of(branch), seen)
        lost.note_store(workspace, branch)
    return Ensured(branch, is_new=True, copied_from=source)


def open_branch(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return the store of the branch that a request means, made on first use.

    Raises: as ``choose`` and ``ensure``.
    """
    choice = choose(workspace, named)
    ensured = ensure(workspace, choice.branch, follows_head=choice.follows_head)
    return workspace.store(choice.branch), choice, with_left_over(workspace, ensured)


def origin_of(workspace: Workspace, branch: str, *, follows_head: bool) -> BranchOrigin | None:
    """Return what the store of a branch is made from, once git is not about to call it otherwise.

    Raises: ``BranchMoved`` or ``UnknownBranch`` when there is no such branch any more.
    """

    def ask() -> BranchOrigin | None:
        insist(workspace, branch, follows_head=follows_head)
        return find_origin(workspace, branch)

    def is_doubtful(origin: BranchOrigin | None) -> bool:
        is_own = origin is not None and origin.is_former
        return not is_own and settling.may_be_former(workspace, branch)

    return settling.settled(workspace, ask, is_doubtful)[0]


def with_left_over(workspace: Workspace, ensured: Ensured) -> Ensured:
    """Return the same with what git has left next to a store that was there before."""
    if ensured.is_new or ensured.notice:
        return ensured
    return msgspec.structs.replace(ensured, notice=left_over(workspace, ensured.branch))


def _copy(workspace: Workspace, source: Path, branch: str, *, view_of: str) -> None:
    """Copy a store's directory, and let the branch begin with the view of the branch ``view_of``, if any.

    What the branch has already is moved away only when the copy is whole.
    """
    fs = workspace.machine.fs
    if workspace.folders.has_store(branch):
        discard_cache(workspace, branch)
    if view_of:
        CacheFiles(fs, workspace.folders.cache_of(branch)).begin_with(
            CacheFiles(fs, workspace.folders.cache_of(view_of))
        )
    _put(workspace, branch, lambda place: branchdir.copy(fs, source, place, branch=branch))


def _put(workspace: Workspace, branch: str, make: Callable[[Path], object]) -> None:
    """Make the store of a branch; where it has one, the new one is made next to it and takes its place when whole."""
    target = workspace.folders.directory_of(branch)
    if not workspace.folders.has_store(branch):
        make(target)
        return
    place = branchdir.building_place(target)
    make(place)
    try:
        trash.replace(workspace, place, target)
    finally:
        branchdir.clear_unfinished(workspace.machine.fs, target.parent)


def _empty(workspace: Workspace, branch: str) -> Ensured:
    machine = workspace.machine
    notice, is_warning = said_of_empty(workspace, branch)

    def create(place: Path) -> None:
        branchdir.create(machine.fs, place, machine.clock, branch=branch, features=workspace.folders.store_features)

    _put(workspace, branch, create)
    return Ensured(branch, is_new=True, notice=notice, is_warning=is_warning)


def said_of_empty(workspace: Workspace, branch: str) -> tuple[str, bool]:
    """Return what to say of a branch that starts empty, and whether that is a warning.

    Raises: ``GitUnusable``; ``StorageError`` and its kin.
    """
    not_read = unread_stores.tracked_stores(workspace.folders)
    default = workspace.default_branch
    notice = "" if branch == default else f"The default branch {default} has no store yet; {branch} starts empty."
    others = [name for name, _ in stores(workspace) if name != branch]
    if others:
        notice = notice or f"{branch} starts empty."
        notice += (
            f" There are stores of other branches ({', '.join(others[:3])}); if one of them was renamed: "
            f"{shell('branch', 'ensure', branch, '--from', 'NAME', '--replace')}."
        )
    if not_read:
        notice = f"{notice or f'{branch} starts empty.'} {not_read}"
    notice = " ".join(filter(None, [notice, trash.remembered(workspace, branch)]))
    return notice, bool(not_read)
