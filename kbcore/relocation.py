"""What lies at ``.kb/branches``: stores of an older layout, which are moved once, and the pointer to the stores.

An older KB kept its stores in ``.kb/branches``. They are moved into the common git directory by one rename, after every
journal was proven and every head was marked so that an older KB refuses it. Wherever the process ends, the stores are
whole in one of the two places, and the next command finishes.

Afterwards ``.kb/branches`` only points to the stores: a link where git ignores a link of that name, else a guard, which
is a folder that hides itself from git. An older KB begins no second store beside either. Nothing is ever read there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from kbcore.errors import Damaged, GitUnusable, Incompatible, KBError, ReadOnlyStore, StorageError, UnknownBranch
from kbcore.git.commands import run_git
from kbcore.git.files import is_true, read_settings
from kbcore.git.ownership import SharedModes
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.phrases import counted
from kbcore.storage import files, head, layout, lock, untracked, verify

if TYPE_CHECKING:
    from kbcore.git import Repository
    from kbcore.storage.fs import Fs
    from kbcore.workspace import Workspace

OLDER_LOCK: Final = ".lock"
"""The repository lock of the older layout. A guard has a folder of that name, so that an older KB cannot take it."""
README: Final = "README"
_MARKER: Final = "moving"
"""In the folder of the data: a copy over to another file system is complete, and what it was made of can go."""
_BUILDING: Final = ".moving-"
_ASIDE: Final = ".moved-branches"
_GUARD_ASIDE: Final = ".branches.tmp"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_GIT_SAYS_NO: Final = 1
_OTHERS_WRITE: Final = 0o022
_GIT_FAILS: Final = 128

_ORIGIN: Final = 'that an older KB made, or KB itself while your own settings said "store": "worktree"'

Kind = Literal["absent", "link", "file", "guard", "folder", "other"]


class Beside(msgspec.Struct, frozen=True):
    """Something in a worktree that KB does not read: what it is, and what to do about it."""

    code: str
    severity: Literal["error", "warning", "note"]
    path: str
    message: str
    remedy: str

    def __str__(self) -> str:
        """Say both in a line."""
        return f"{self.message} {self.remedy}"


class Fault(msgspec.Struct, frozen=True):
    """What keeps a folder from being taken over."""

    kind: Literal["tracked", "owner", "link", "special"]
    message: str


# ---- The pointer


def settle(workspace: Workspace) -> str:
    """Move the stores of an older layout, if there are any, and bring the pointer to them up to date.

    Costs two or three looks at the disk when there is nothing to do, which is the rule. Returns what to say of a move.

    Raises: ``StorageError`` when there are stores of an older layout that cannot be moved, ``LockTimeout`` while an
    older KB writes; ``Damaged`` errors of their journals; ``GitUnusable``.
    """
    fs, shown = workspace.machine.fs, workspace.shown_branches
    if shown == workspace.usual_branches_dir:
        require_untracked(workspace)
        return ""
    seen = _seen(workspace)
    if seen is not None and workspace.pool.settled.get(shown) == seen:
        return ""
    if _is_up_to_date(workspace):
        if seen is not None:
            workspace.pool.settled[shown] = seen
        return ""
    kind = kind_of(fs, shown)
    has_stores = is_used(fs, workspace.usual_branches_dir)
    if kind == "folder" and not has_stores:
        return _move(workspace)
    if has_stores:
        _finish_copy(workspace)
        point(workspace)
    return ""


def is_unmoved(workspace: Workspace) -> bool:
    """Tell whether the stores are in ``.kb/branches`` and the next request that may write moves them from there.

    Raises: ``GitUnusable``.
    """
    fs, shown = workspace.machine.fs, workspace.shown_branches
    if shown == workspace.usual_branches_dir or kind_of(fs, shown) != "folder":
        return False
    if is_used(fs, workspace.usual_branches_dir):
        return False
    try:
        return fault_of(workspace, workspace.kb_dir, shown) is None
    except StorageError:  # ``beside`` says what cannot be looked at
        return False


def is_used(fs: Fs, branches_dir: Path) -> bool:
    """Tell whether a folder of stores holds anything to keep: a store, one under construction, the trash.

    A process that ended early can leave an empty folder, or one with locks alone. What cannot be listed counts as used.
    """
    try:
        return any(_is_folder(fs, branches_dir / name) for name in fs.listdir(branches_dir))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_own_pointer(workspace: Workspace) -> bool:
    """Tell whether ``.kb/branches`` is what KB makes to point to the git directory: it holds no store.

    A link or a file with another target is not KB's.
    """
    fs, shown = workspace.machine.fs, workspace.shown_branches
    kind = kind_of(fs, shown)
    if kind not in {"link", "file"}:
        return kind == "guard"
    target = _relative(str(workspace.git_branches_dir), str(workspace.kb_dir))
    with contextlib.suppress(KBError, OSError):
        if kind == "link":
            return fs.readlink(shown) == target
        return files.read_file(fs, shown, MAX_CONFIG_BYTES) == _pointer_text(target)
    return False


def make_room(workspace: Workspace) -> None:
    """Remove KB's pointer where the stores are to be in its place; the caller is about to make their folder.

    Another process may do the same at this moment, and have made stores there already: nothing of those is removed.

    Raises: ``StorageError`` and its kin when it cannot be removed; as ``require_untracked``.
    """
    if not workspace.is_in_worktree:
        return
    require_untracked(workspace)
    fs, shown = workspace.machine.fs, workspace.shown_branches
    if not is_own_pointer(workspace):
        return
    with files.explained(shown, "remove"), contextlib.suppress(FileNotFoundError):
        if kind_of(fs, shown) == "guard":
            _open_guard(fs, shown)
            return
        try:
            fs.unlink(shown)
        except OSError:
            if kind_of(fs, shown) != "folder":
                raise


def _open_guard(fs: Fs, folder: Path) -> None:
    """Make a guard a folder that stores can be in; its ignore file stays. One that is a folder already is left alone.

    Raises: ``OSError`` as the calls do.
    """
    # Only a guard has a folder of this name, and only one process succeeds to remove it.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        fs.rmdir(folder / OLDER_LOCK)
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(folder / README)
        fs.fsync_dir(folder)


def require_untracked(workspace: Workspace) -> None:
    """Refuse stores and caches in the worktree that git tracks: whoever made the repository may have made them.

    git is asked again when its index has changed. Raises: ``StorageError``; ``GitUnusable``.
    """
    shown = workspace.shown_branches
    if shown != workspace.usual_branches_dir:
        return
    try:
        index = workspace.machine.fs.lstat(workspace.repo.common_dir / "index")
    except OSError:
        seen = None
    else:
        seen = index.st_ino, index.st_size, index.st_mtime_ns
    if seen is not None and workspace.pool.settled.get(shown) == seen:
        return
    for path in (shown, workspace.shown_cache):
        if found := _tracked(workspace, workspace.kb_dir, path):
            raise StorageError(found.message, hint=found.remedy, data={"file": found.path})
    if seen is not None:
        workspace.pool.settled[shown] = seen


def kind_of(fs: Fs, path: Path) -> Kind:
    """Say what lies at a path."""
    try:
        mode = fs.lstat(path).st_mode
    except OSError:
        return "absent"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISREG(mode):
        return "file"
    if not stat.S_ISDIR(mode):
        return "other"
    return "guard" if _is_folder(fs, path / OLDER_LOCK) else "folder"


def point(workspace: Workspace) -> None:
    """Bring ``.kb/branches`` to what it should be; where nothing can be written there, it stays as it is.

    What git tracks under that name is left alone, and so is a folder of stores.
    """
    memo = (workspace.shown_branches, _signature(workspace))
    if memo in workspace.pool.pointed:
        return
    with contextlib.suppress(KBError, OSError):
        if _is_folder(workspace.machine.fs, workspace.kb_dir):
            _point(workspace)
    workspace.pool.pointed.add((workspace.shown_branches, _signature(workspace)))


def target_of(workspace: Workspace) -> str:
    """Return where the link leads: a relative path, so that it is right after the repository was moved."""
    return _relative(str(workspace.usual_branches_dir), str(workspace.kb_dir))


@lru_cache(maxsize=8)
def _relative(path: str, start: str) -> str:
    return os.path.relpath(path, start)


def _seen(workspace: Workspace) -> tuple[object, ...] | None:
    """Return how the link and the ignore file look from outside, by two looks; None where there is no link."""
    fs = workspace.machine.fs
    try:
        ignore = fs.lstat(files.below(workspace.kb_dir, untracked.IGNORE))
        target = fs.readlink(workspace.shown_branches)
    except OSError:
        return None
    return target, workspace.usual_branches_dir, ignore.st_ino, ignore.st_size, ignore.st_mtime_ns


def _is_up_to_date(workspace: Workspace) -> bool:
    """Tell by looks alone whether the pointer is as it should be, or there is nothing to point to."""
    fs, shown = workspace.machine.fs, workspace.shown_branches
    try:
        target = fs.readlink(shown)
    except FileNotFoundError:
        return not files.is_there(fs, workspace.usual_branches_dir) or not _is_folder(fs, workspace.kb_dir)
    except OSError:
        kind = kind_of(fs, shown)
        return kind == "file" or (kind == "guard" and not _lists_link(workspace))
    return target == target_of(workspace) and (_is_inside_git(workspace) or _lists_link(workspace))


def _signature(workspace: Workspace) -> str:
    """Return what decides about the pointer, as a text: what is there, and what the ignore file beside it says."""
    fs, shown = workspace.machine.fs, workspace.shown_branches
    try:
        found = fs.readlink(shown)
    except OSError:
        found = kind_of(fs, shown)
    return f"{found} {_ignore_text(workspace)!r}"


def _point(workspace: Workspace) -> None:
    fs, shown = workspace.machine.fs, workspace.shown_branches
    kind, target = kind_of(fs, shown), target_of(workspace)
    lists_link = _lists_link(workspace) or _is_inside_git(workspace)
    if kind in {"folder", "file", "other"} or (kind == "guard" and not lists_link):
        return
    if _is_inside_git(workspace):
        _link(workspace, target)
        return
    if _count_tracked(workspace, workspace.kb_dir, shown.name):
        return
    aside = workspace.kb_dir / _GUARD_ASIDE
    if kind == "guard":
        fs.replace(shown, aside)
        if kind_of(fs, aside) != "guard":  # another process replaced the guard at this moment
            fs.replace(aside, shown)
            return
    elif kind == "link" and fs.readlink(shown) != target:
        fs.unlink(shown)
    if lists_link:
        _link(workspace, target)
    if _is_ignored(workspace):
        _link(workspace, target)
        if kind == "guard":
            files.remove_tree(fs, aside)
    else:
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(shown)
        _guard(workspace)


def _link(workspace: Workspace, target: str) -> None:
    """Make the link; where the file system has none, a plain file that names the place."""
    fs, shown = workspace.machine.fs, workspace.shown_branches
    try:
        fs.symlink(target, shown)
    except FileExistsError:  # another process made it at this moment
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        files.publish_file(fs, shown, _pointer_text(target))


def _guard(workspace: Workspace) -> None:
    """Make a folder that git does not show, and in which an older KB can make no store."""
    fs, building = workspace.machine.fs, _built_guard(workspace)
    fs.replace(building, workspace.shown_branches)


def _built_guard(workspace: Workspace) -> Path:
    """Return a guard that is ready to be renamed into its place."""
    fs, building = workspace.machine.fs, workspace.kb_dir / _GUARD_ASIDE
    untracked.make(fs, building)
    files.make_directory(fs, building / OLDER_LOCK)
    text = (
        f"{_where(target_of(workspace))}\n"
        "This folder keeps an older KB from beginning empty stores here. It is no link, because git does not ignore\n"
        f"one of this name: add a line `/{workspace.shown_branches.name}` to .kb/.gitignore and commit it.\n"
    )
    files.write_synced(fs, building / README, text.encode())
    return building


def _pointer_text(target: str) -> bytes:
    return f"{_where(target)}\n".encode()


def _where(target: str) -> str:
    return f"The stores of KB are in {target}, seen from the folder .kb; nothing here is read."


def _is_ignored(workspace: Workspace) -> bool:
    """Ask git whether it ignores a link of this name; while nothing is there, or a link."""
    name = _name_in_worktree(workspace, workspace.kb_dir)
    try:
        asked = ["check-ignore", "--quiet", "--", f"{name}/{workspace.shown_branches.name}"]
        return run_git(_main(workspace), workspace.machine.env, asked, allowed=(0, _GIT_SAYS_NO)).status == 0
    except GitUnusable:
        return False


def _lists_link(workspace: Workspace) -> bool:
    """Tell whether the ignore file in ``.kb`` has the line that matches a link."""
    name = workspace.shown_branches.name
    return not {f"/{name}".encode(), name.encode()}.isdisjoint(_ignore_text(workspace).split())


def _ignore_text(workspace: Workspace) -> bytes:
    try:
        return files.read_file(workspace.machine.fs, workspace.kb_dir / untracked.IGNORE, MAX_CONFIG_BYTES) or b""
    except KBError:
        return b""


def _is_inside_git(workspace: Workspace) -> bool:
    """Tell whether ``.kb`` is in the git directory, as in a bare repository: git shows nothing of it."""
    return workspace.repo.kb_root == workspace.repo.common_dir


# ---- The move


def fault_of(workspace: Workspace, kb_dir: Path, folder: Path) -> Fault | None:
    """Return what keeps a folder in ``.kb`` from being taken over; None when nothing does.

    It is to be untracked in the index and in HEAD, to belong to the user, and to hold files and folders alone.
    """
    if _count_tracked(workspace, kb_dir, folder.name):
        return Fault("tracked", f"git tracks {folder}.")
    return fault_in(workspace, folder)


def fault_in(workspace: Workspace, folder: Path) -> Fault | None:
    """Return what is in a folder that KB takes over from nobody: links, devices, what belongs to somebody else."""
    fs = workspace.machine.fs
    # The members of a group share the files of such a repository.
    is_shared = _is_shared(workspace)
    for path, status in _tree(fs, folder):
        if stat.S_ISLNK(status.st_mode):
            return Fault("link", f"{path} is a symbolic link.")
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return Fault("special", f"{path} is neither a file nor a folder.")
        if status.st_uid != os.geteuid() and not is_shared:
            return Fault("owner", f"{path} belongs to another user (uid {status.st_uid}).")
    return None


def _move(workspace: Workspace) -> str:
    """Move the stores of the older layout; return what to say of it."""
    machine, old = workspace.machine, workspace.shown_branches
    fault = fault_of(workspace, workspace.kb_dir, old)
    if fault is not None and fault.kind == "tracked":
        return ""  # it came with the repository; ``beside`` says so
    if fault is not None:
        raise _immovable(workspace, fault.message)
    wait_s = workspace.config.lock_wait_s
    try:
        files.make_directory(machine.fs, workspace.data_dir)
    except ReadOnlyStore as error:
        why = f"The stores in {old} have to be moved there once: run any `kb` command where that can be written."
        refused = workspace.refused(error)
        raise ReadOnlyStore(error.message, hint=f"{why} {refused.hint}", data=refused.data) from error
    with lock.held(machine.fs, machine.clock, workspace.repository_lock, wait_s=wait_s, command="kb move"):
        if is_used(machine.fs, workspace.usual_branches_dir) or kind_of(machine.fs, old) != "folder":
            return ""  # another process moved them meanwhile
        with lock.held(machine.fs, machine.clock, old / OLDER_LOCK, wait_s=wait_s, command="kb move"):
            return _moved(workspace)


def _moved(workspace: Workspace) -> str:
    """Move what was found fit to be moved. The caller holds both repository locks."""
    fs, clock, old = workspace.machine.fs, workspace.machine.clock, workspace.shown_branches
    if fault := fault_in(workspace, old):  # once more: an older KB wrote until its lock was taken
        raise _immovable(workspace, fault.message)
    stores = list(stores_in(fs, old))
    for store in stores:
        wait_s = workspace.config.lock_wait_s
        with lock.held(fs, clock, store / layout.LOCK, wait_s=wait_s, command="kb move"):
            require_proof(workspace, store)
            mark(fs, store, workspace.store_features)
    new = workspace.usual_branches_dir
    # The guard is ready before the rename: there is no moment for an older KB to begin a store in.
    guard = None if _lists_link(workspace) or _is_inside_git(workspace) else _built_guard(workspace)
    try:
        fs.replace(old, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise files.explain(error, old, "move") from error
        _copy_over(workspace, stores)
    with contextlib.suppress(KBError, OSError):
        if guard is None:
            _link(workspace, target_of(workspace))
        else:
            fs.replace(guard, old)
    point(workspace)
    with files.explained(new, "sync"):
        fs.fsync_dir(new.parent)
        fs.fsync_dir(old.parent)
    _move_cache(workspace)
    return (
        f"The stores were moved from {old} to {new} ({counted(len(stores), 'branch')}), where git's own commands do "
        "not reach them. An older KB refuses them from now on."
    )


def stores_in(fs: Fs, folder: Path) -> Iterator[Path]:
    """Yield the stores in a folder, those that make room included; what holds no file of a store is none.

    Raises: ``StorageError`` when the folder, or one in it, cannot be listed.
    """
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for name in names:
        path = folder / name
        is_hidden = name.startswith(".") and not name.startswith(".aside-")
        if not is_hidden and is_store(fs, path):
            yield path


def is_store(fs: Fs, path: Path) -> bool:
    """Tell whether a folder holds a file of a store, damaged or not.

    Raises: ``StorageError`` when it cannot be listed.
    """
    kinds = {"head", "segment", "snapshot"}
    if not _is_folder(fs, path):
        return False
    with files.explained(path, "list", reading=True):
        return any(layout.kind_of(name) in kinds for name in fs.listdir(path))


def require_proof(workspace: Workspace, store: Path) -> None:
    """Raise ``StorageError`` when a store does not prove; the caller holds its lock."""
    proof = verify.prove(workspace.machine.fs, store)
    if not proof.is_sound:
        raise _immovable(workspace, proof.damage)


def mark(fs: Fs, store: Path, features: tuple[str, ...]) -> None:
    """Say in the head of a store what a reader must know because of where the store is."""
    of = head.read(fs, store)
    wanted = tuple(sorted({*of.features_required, *features} - ({head.GIT_DIRECTORY} - {*features})))
    if wanted != of.features_required:
        head.publish(fs, store, msgspec.structs.replace(of, features_required=wanted))


def _immovable(workspace: Workspace, why: str) -> StorageError:
    old, new = workspace.shown_branches, workspace.usual_branches_dir
    return StorageError(
        f"The stores in {old} have to be moved to {new}, and cannot be: {why}",
        hint=f"Nothing was moved. Correct that, or run `kb doctor --adopt {_name_of(workspace, old)}`.",
        data={"file": str(old)},
    )


def _move_cache(workspace: Workspace) -> None:
    """Move the cache of the older layout as well; it costs time to do without, and nothing else."""
    fs, old, new = workspace.machine.fs, workspace.shown_cache, workspace.usual_cache_dir
    with contextlib.suppress(KBError, OSError):
        if kind_of(fs, old) == "folder" and fault_of(workspace, workspace.kb_dir, old) is None:
            fs.replace(old, new)


# ---- The move to another file system


def _copy_over(workspace: Workspace, stores: list[Path]) -> None:
    """Copy the folder to another file system, prove the copy, and put away what it was made of."""
    fs, old, new = workspace.machine.fs, workspace.shown_branches, workspace.usual_branches_dir
    with files.explained(workspace.data_dir, "clear"):
        for name in fs.listdir(workspace.data_dir):
            if name.startswith(_BUILDING):
                files.remove_tree(fs, workspace.data_dir / name)
    building = workspace.data_dir / f"{_BUILDING}{secrets.token_hex(8)}"
    copy_tree(fs, old, building)
    for store in stores:
        require_proof(workspace, building / store.name)
    files.write_synced(fs, workspace.data_dir / _MARKER, b"")
    with files.explained(new, "make"):
        fs.replace(building, new)
        fs.fsync_dir(workspace.data_dir)
    _put_away(workspace)


def copy_tree(fs: Fs, source: Path, target: Path) -> None:
    """Copy a folder with all in it, durably; hard links within it stay such.

    Raises: ``StorageError`` and its kin; the target may exist in part then.
    """
    seen: dict[tuple[int, int], Path] = {}
    with files.explained(target, "make"):
        fs.mkdir(target)
    for path, status in _tree(fs, source):
        there, identity = target / path.relative_to(source), (status.st_dev, status.st_ino)
        if path == source:
            continue
        if stat.S_ISDIR(status.st_mode):
            with files.explained(there, "make"):
                fs.mkdir(there)
        elif identity in seen:
            with files.explained(there, "make"):
                fs.link(seen[identity], there)
        else:
            files.copy_range(fs, path, there, 0, status.st_size)
            seen[identity] = there
    for path, status in _tree(fs, target):
        if stat.S_ISDIR(status.st_mode):
            with files.explained(path, "sync"):
                fs.fsync_dir(path)


def _finish_copy(workspace: Workspace) -> None:
    """Finish a copy whose process ended before it had put away what it copied."""
    machine = workspace.machine
    if not files.is_there(machine.fs, workspace.data_dir / _MARKER):
        return
    wait_s = workspace.config.lock_wait_s
    with lock.held(machine.fs, machine.clock, workspace.repository_lock, wait_s=wait_s, command="kb move"):
        finish_locked(workspace)


def finish_locked(workspace: Workspace) -> None:
    """Do the same for who holds the repository lock."""
    if files.is_there(workspace.machine.fs, workspace.data_dir / _MARKER):
        _put_away(workspace)


def _put_away(workspace: Workspace) -> None:
    """Remove the folder that was copied, if all of its stores are in the copy; else it stays, and is not read."""
    fs, old, aside = workspace.machine.fs, workspace.shown_branches, workspace.kb_dir / _ASIDE
    if kind_of(fs, old) == "folder" and all(_is_copied(workspace, store) for store in stores_in(fs, old)):
        with files.explained(old, "move"):
            fs.replace(old, aside)
            fs.fsync_dir(workspace.kb_dir)
    with contextlib.suppress(OSError):
        # Its own ignore file goes last: until then git shows nothing of it. A link that came with the repository stays.
        names = fs.listdir(aside) if _is_folder(fs, aside) else []
        for name in sorted(names, key=lambda name: name == untracked.IGNORE):
            if _is_folder(fs, aside / name):
                files.remove_tree(fs, aside / name)
            else:
                fs.unlink(aside / name)
        fs.rmdir(aside)
    if not files.is_there(fs, aside):
        files.remove_quietly(fs, workspace.data_dir / _MARKER)


def _is_copied(workspace: Workspace, store: Path) -> bool:
    """Tell whether a store is a marked one, and its copy goes as far as it does."""
    fs = workspace.machine.fs
    try:
        of, copied = head.read(fs, store), head.read(fs, workspace.usual_branches_dir / store.name)
    except (Damaged, Incompatible, UnknownBranch):
        return False
    return head.GIT_DIRECTORY in of.features_required and (of.store_id == copied.store_id) and of.seq <= copied.seq


# ---- What is not read


def beside(workspace: Workspace, *, asks_git: bool = False) -> Iterator[Beside]:
    """Yield what lies in ``.kb`` where an older KB had stores and caches, and is not read.

    git is asked only about what is neither absent nor KB's own pointer, unless ``asks_git``.

    Raises: ``GitUnusable``.
    """
    for kb_dir in dict.fromkeys([workspace.kb_dir, workspace.repo.worktree / workspace.kb_dir.name]):
        for path in (kb_dir / workspace.shown_branches.name, kb_dir / workspace.shown_cache.name):
            if path in {workspace.usual_branches_dir, workspace.usual_cache_dir}:
                found = _tracked(workspace, kb_dir, path)
            else:
                found = _beside(workspace, kb_dir, path, asks_git=asks_git)
            if found is not None:
                yield found


def tracked_stores(workspace: Workspace) -> str:
    """Say that git tracks stores of an older layout, which are not read, and what to do; "" where it tracks none.

    Raises: ``GitUnusable``.
    """
    name = workspace.shown_branches.name
    return " ".join(
        str(one) for one in beside(workspace) if one.code == "store_tracked" and Path(one.path).name == name
    )


def _beside(workspace: Workspace, kb_dir: Path, path: Path, *, asks_git: bool) -> Beside | None:
    fs, name = workspace.machine.fs, _name_of(workspace, path)
    kind = kind_of(fs, path)
    is_cache = path.name == workspace.shown_cache.name
    is_pointer = kind in {"absent", "file", "guard"} or (
        kind == "link" and not is_cache and Path(os.path.realpath(path)) == workspace.usual_branches_dir
    )
    if (asks_git or not is_pointer) and (found := _tracked(workspace, kb_dir, path)):
        return found
    if is_pointer:
        return None
    if kind == "link":
        remedy = f"Delete {name}."
        return Beside("strange_link", "warning", str(path), f"{name} is a link that KB did not make.", remedy)
    if is_cache:
        message = f"{name} is a cache {_ORIGIN}, or was put there. It is not read."
        moves = path == workspace.shown_cache and is_unmoved(workspace)
        remedy = "It is moved along with the stores." if moves else f"Delete {name}."
        return Beside("older_cache", "note", str(path), message, remedy)
    if is_used(fs, workspace.usual_branches_dir) or path != workspace.shown_branches:
        message = f"{name} is no part of the stores, which are in {workspace.usual_branches_dir}. It is not read."
        remedy = (
            f"`kb doctor --adopt {name}` takes over the stores in it, and `kb doctor --adopt {name} --replace` puts "
            "those that have their places into the trash. Else delete it."
        )
        return Beside("stores_beside", "warning", str(path), message, remedy)
    message = f"{name} holds stores {_ORIGIN}."
    if fault := fault_in(workspace, path):
        remedy = f"Correct that, or run `kb doctor --adopt {name}`."
        return Beside(
            "stores_immovable", "error", str(path), f"{message} They cannot be moved: {fault.message}", remedy
        )
    remedy = f"The next command that may write proves them and moves them to {workspace.usual_branches_dir}."
    return Beside("older_layout", "note", str(path), message, remedy)


def _tracked(workspace: Workspace, kb_dir: Path, path: Path) -> Beside | None:
    """Return what to say of a folder in ``.kb`` that git tracks; None when it tracks nothing there."""
    tracked, name = _count_tracked(workspace, kb_dir, path.name), _name_of(workspace, path)
    if not tracked:
        return None
    untrack = f"`git rm -r --cached {name}`, commit that"
    if kind_of(workspace.machine.fs, path) == "link":
        message = f"git tracks {name}, which is a link. KB reads nothing through it."
        return Beside("store_tracked", "error", str(path), message, f"Run {untrack}, and delete {name}.")
    message = f"git tracks {counted(tracked, 'file')} in {name}. KB reads none of them."
    if path.name == workspace.shown_cache.name:
        remedy = f"Run {untrack}, and delete what is left of it."
    else:
        take = "they are read then" if path == workspace.usual_branches_dir else f"then run `kb doctor --adopt {name}`"
        remedy = f"If these stores are yours: {untrack}; {take}. If not: {untrack}, and delete {name}."
    return Beside("store_tracked", "error", str(path), message, remedy)


# ---- Looks


def _count_tracked(workspace: Workspace, kb_dir: Path, name: str) -> int:
    """Return how many files of ``.kb/NAME`` are in the index or in HEAD of the worktree that has this ``.kb``."""
    repo, env = workspace.repo, workspace.machine.env
    is_main = kb_dir == workspace.kb_dir
    is_bare = is_true(read_settings(repo.common_dir).get("core.bare", "false"))
    if (_is_inside_git(workspace) or is_bare) if is_main else not repo.has_worktree:
        return 0  # no index, and nothing checked out
    asked = _main(workspace) if is_main else repo
    place = f"{kb_dir.name}/{name}"
    in_index = run_git(asked, env, ["ls-files", "-z", "--", f":(top){place}"]).output
    # An unborn branch has no HEAD.
    in_head = run_git(
        asked, env, ["ls-tree", "-r", "-z", "--full-tree", "--name-only", "HEAD", "--", place], allowed=(0, _GIT_FAILS)
    ).output
    return len({*in_index.split(b"\0"), *in_head.split(b"\0")} - {b""})


def _main(workspace: Workspace) -> Repository:
    """Return the repository as it is seen from its main worktree."""
    repo = workspace.repo
    return msgspec.structs.replace(repo, git_dir=repo.common_dir, worktree=repo.kb_root)


def _name_in_worktree(workspace: Workspace, kb_dir: Path) -> str:
    return kb_dir.relative_to(workspace.repo.kb_root).as_posix()


def _name_of(workspace: Workspace, path: Path) -> str:
    """Return how messages name a path: from the top of the worktree, where it is in one."""
    for root in (workspace.repo.worktree, workspace.repo.kb_root):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return str(path)


def _is_shared(workspace: Workspace) -> bool:
    """Tell whether other users than the owner of a file may write to it; a negative mode is the whole mode."""
    return bool(abs(SharedModes(workspace.machine.env)(workspace.repo.common_dir)) & _OTHERS_WRITE)


def _tree(fs: Fs, folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a folder and all in it, with what is known of each; no link is followed. Folders come before their content.

    Raises: ``StorageError`` when something cannot be looked at.
    """
    with files.explained(folder, "look at", reading=True):
        status = fs.lstat(folder)
        names = sorted(fs.listdir(folder)) if stat.S_ISDIR(status.st_mode) else []
    yield folder, status
    for name in names:
        yield from _tree(fs, folder / name)


def _is_folder(fs: Fs, path: Path) -> bool:
    try:
        return stat.S_ISDIR(fs.lstat(path).st_mode)
    except OSError:
        return False
