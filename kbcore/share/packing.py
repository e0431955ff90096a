"""Packing: old change files are replaced by a pack for each month, which holds the same changes.

A pack is written and staged whole before the first file goes. So a kill at any moment leaves each change in a file at
least, and the next call removes what packs hold already. No pack is ever changed.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.extract.changes import FOLDER, is_change_file, is_pack_file
from kbcore.git import blobs, staging
from kbcore.git.operations import operation_of
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, union
from kbcore.share.worktree_changes import changes_in, content_of
from kbcore.storage.replacing import not_written, remove_files
from kbcore.store.change_files import locked, write_companion_files, write_file
from kbcore.store.history.when import when_of
from kbcore.store.workspace import Workspace
from kbcore.sync.change_sources import change_paths
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import is_or_are, some_of

_AGE: Final = re.compile(r"([0-9]{1,6}) ?([dw])")
_UNITS: Final = {"d": "days", "w": "weeks"}
_SHOWN: Final = 3
_PIECE_BYTES: Final = 64
"""git compares files in lines, and long lines in pieces of this size."""
_MOST_ALIKE: Final = 0.4
"""git takes a file for one that was renamed where half of it is the same: less than that is left to chance."""


class Packed(msgspec.Struct, frozen=True):
    """The packs that were written, or would be, with the numbers of their changes, and the files that went for them.

    ``left`` are old files that stay, because git would take them for renamed to their pack.
    """

    packs: dict[str, int]
    removed: tuple[str, ...]
    left: tuple[str, ...]


class _Plan(msgspec.Struct, frozen=True):
    """The plan of a packing: contents of packs by path, packs that are there and not staged, and the files that go."""

    packs: dict[str, bytes]
    unstaged: tuple[str, ...]
    removed: tuple[str, ...]
    left: tuple[str, ...]


def time_of(workspace: Workspace, text: str) -> str:
    """Return the time that ``--before`` names: ``90d``, ``12w``, or a time as other commands take it, in local time.

    Raises: ``InvalidQuery``.
    """
    age = _AGE.fullmatch(text.strip().lower())
    words = f"{age[1]} {_UNITS[age[2]]} ago" if age else text
    point = when_of(words, now=workspace.machine.clock.now(), is_local=True)
    if point is None or point.seq is not None:
        hint = "Give an age such as 90d or 12w, or a time such as 2026-01-31, yesterday or `2 months ago`."
        raise InvalidQuery(f"{in_quotes(text)} is no time.", hint=hint)
    return point.begin


def pack(workspace: Workspace, branch: str, before: str, *, dry_run: bool = False) -> Packed:
    """Replace the change files that HEAD has, and whose changes are all older than a time, by packs; stage both.

    Files of which packs hold all changes already are removed as well, however old they are; with "" for the time only
    these are.

    Raises: ``InvalidQuery`` where the branch is not checked out, an operation of git is not finished, or a file to be
    packed is not in index and worktree as HEAD has it; ``StorageError``, ``GitUnusable``.
    """
    _check(workspace, branch)
    with contextlib.nullcontext() if dry_run else locked(workspace):
        plan = _plan(workspace, before)
        if not dry_run:
            _carry_out(workspace, plan)
    return Packed({path: data.count(b"\n") for path, data in plan.packs.items()}, plan.removed, plan.left)


def find_doubled(workspace: Workspace) -> list[str]:
    """Return the change files of the worktree, packs aside, of which packs that HEAD has hold all changes.

    Raises: ``GitUnusable``.
    """
    commit = workspace.head().commit
    paths = change_paths(workspace.repo.worktree)
    packs = {path for path in paths if is_pack_file(path)}
    if not commit or not packs:
        return []
    there = blobs.paths_below(workspace.repo, workspace.machine.env, commit, FOLDER)
    held = _held(workspace, sorted(packs & there))
    return sorted(path for path in paths - packs if _is_held(changes_in(path, content_of(workspace, path)), held))


def _check(workspace: Workspace, branch: str) -> None:
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files.", hint="Run it in one of its worktrees.")
    if branch != workspace.head().branch:
        raise InvalidQuery(f"{branch} is not checked out, so its files cannot be packed.", hint="Switch to it before.")
    operation = operation_of(workspace.repo)
    if operation:
        hint = "Finish it, or give it up: `git status` says how. Then try again."
        raise InvalidQuery(f"A {operation} of git is not finished here, so nothing was packed.", hint=hint)


def _plan(workspace: Workspace, before: str) -> _Plan:
    repo, env, commit = workspace.repo, workspace.machine.env, workspace.head().commit
    if commit is None:
        return _Plan({}, (), (), ())
    tree = blobs.tree_below(repo, env, commit, FOLDER)
    absent = staging.not_checked_out(repo, env, FOLDER)
    loose = {path: blob for path, blob in tree.items() if is_change_file(path) and not is_pack_file(path)}
    loose = {path: blob for path, blob in loose.items() if path not in absent}
    texts = dict(blobs.contents(repo, env, [blob.id for blob in loose.values()]))
    contents = {path: texts[blob.id] or b"" for path, blob in loose.items()}
    read = {path: changes_in(path, data) for path, data in contents.items()}
    there = change_paths(workspace.repo.worktree)
    packs = sorted(path for path in there if is_pack_file(path))
    held = _held(workspace, packs)
    doubled = {path for path, changes in read.items() if _is_held(changes, held)}
    old = {
        path: changes
        for path, changes in sorted(read.items())
        if path not in doubled and changes and all(change.at < before for change in changes)
    }
    staged = staging.staged_below(repo, env, FOLDER)
    changed = [
        path
        for path in old
        if staged.get(path) != tree[path].id or content_of(workspace, path) not in _spellings(contents[path])
    ]
    if changed:  # who changed them means something by it
        message = f"{some_of(changed, _SHOWN)} {is_or_are(len(changed))} not as HEAD has it, so nothing was packed."
        raise InvalidQuery(message, hint="Commit that, or take it back: `git status` says how. Then try again.")
    made, left = _packs(old, contents)
    # One that was edited is not the file that the packs hold: it stays, and a sync names it.
    gone = {
        path
        for path in doubled
        if (content_of(workspace, path) in _spellings(contents[path]) if path in there else path in staged)
    }
    others = there - tree.keys() - {*packs}
    gone |= {path for path in others if _is_held(changes_in(path, content_of(workspace, path)), held)}
    unstaged = tuple(path for path in packs if path not in staged)
    return _Plan(made, unstaged, tuple(sorted(gone | (old.keys() - left))), tuple(sorted(left)))


def _packs(old: dict[str, Sequence[Change]], contents: Mapping[str, bytes]) -> tuple[dict[str, bytes], set[str]]:
    """Return the packs of files, by path, and those of the files that are left out, since they look like a pack."""
    left = set[str]()
    while True:
        kept = {path: changes for path, changes in old.items() if path not in left}
        found = change_file.encode_packs(change for changes in kept.values() for change in changes)
        more = {path for path in kept for data in found.values() if _is_like(contents[path], data)}
        if not more:
            return {f"{FOLDER}/{path}": data for path, data in found.items()}, left
        left |= more


def _is_like(one: bytes, other: bytes) -> bool:
    """Tell whether git may take one file for the other one under a new name (``diffcore-delta.c``)."""
    if 2 * min(len(one), len(other)) < max(len(one), len(other)):
        return False
    same = Counter(_pieces(one)) & Counter(_pieces(other))
    return sum(len(piece) * number for piece, number in same.items()) >= _MOST_ALIKE * max(len(one), len(other))


def _pieces(data: bytes) -> Iterator[bytes]:
    for line in data.splitlines(keepends=True):
        yield from (line[at : at + _PIECE_BYTES] for at in range(0, len(line), _PIECE_BYTES))


def _carry_out(workspace: Workspace, plan: _Plan) -> None:
    repo, env = workspace.repo, workspace.machine.env
    for path, data in plan.packs.items():
        write_file(workspace.machine.fs, repo.worktree, path, data)
    others = write_companion_files(repo, env, plan.removed) if plan.removed else []
    staging.stage(repo, env, [*plan.packs, *plan.unstaged, *others])
    try:
        remove_files(repo.worktree / path for path in plan.removed)
    except OSError as error:
        raise not_written(FOLDER, error) from error
    staging.stage(repo, env, plan.removed)


def _held(workspace: Workspace, packs: Sequence[str]) -> dict[str, Change]:
    """Return the changes that packs of the worktree hold, by id."""
    return union(change for path in packs for change in changes_in(path, content_of(workspace, path)))


def _is_held(changes: Sequence[Change], held: Mapping[str, Change]) -> bool:
    """Tell whether each of some changes is held, and nothing is redacted in it that is not so there."""
    known = [held[one.id] for one in changes if one.id in held]
    return bool(changes) and len(known) == len(changes) and union([*known, *changes]) == union(known)


def _spellings(data: bytes) -> tuple[bytes, bytes]:
    """Return the content of a file as it may be checked out."""
    return data, data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
