"""Files as git keeps them: the tree of a commit, what is staged, and the content of both. Nothing is checked out.

Paths are text, with ``/`` between parts; bytes of a name that are no UTF-8 are written out as escapes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import GitUnusable, InvalidQuery
from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, encode_name
from kbcore.git.repository import Repository
from kbcore.ids import path_text

LINK: Final = "120000"
"""The mode of a symbolic link: its content is where it leads."""

SUBMODULE: Final = "160000"
"""The mode of a submodule: it names a commit of another repository."""

_FILES: Final = frozenset({"100644", "100755", "100664", LINK, SUBMODULE})
_EMPTY_BLOBS: Final = frozenset(
    {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"}
)
_AT_ONCE: Final = 2_000
_TIMEOUT_S: Final = 120.0
_SHOWN: Final = 3
_FEW: Final = 1_000
_MOST: Final = 1_000_000


class Blob(msgspec.Struct, frozen=True):
    """A file as git keeps it: its mode and the name of its content; with the mode of a submodule, of its commit."""

    mode: str
    id: str


Tree = dict[str, Blob]
"""Files by path, in order."""


def once_added(repo: Repository, env: Mapping[str, str], paths: Sequence[str]) -> set[str]:
    """Return those of these paths at which a commit of the history of HEAD added a file, there still or not.

    Raises: ``GitUnusable``.
    """
    look = ["--literal-pathspecs", "log", "--format=", "--name-only", "-z", "--no-renames", "--diff-filter=A", "HEAD"]
    answer = run_git(repo, env, [*look, "--", *paths], allowed=(0, 128), timeout_s=_TIMEOUT_S)  # 128: no commit yet
    return {path_text(name) for name in answer.output.split(b"\0") if name} & {*paths}


def commit_of(repo: Repository, env: Mapping[str, str], rev: str) -> str | None:
    """Return the commit that a revision means, None when it means none. Raises: ``GitUnusable``."""
    if rev.startswith("-"):
        return None
    named = ["rev-parse", "--verify", "--quiet", f"{rev}^{{commit}}"]
    answer = run_git(repo, env, named, allowed=(0, 1, 128))
    return answer.output.decode("ascii", "replace").strip() if answer.status == 0 else None


def ancestors(repo: Repository, env: Mapping[str, str], commit: str) -> Iterator[str]:
    """Yield a commit and its ancestors in this clone, the newest first, at most a million. Raises: ``GitUnusable``."""
    seen = 0
    for count in (_FEW, _MOST):  # what is looked for is near the top as a rule
        listed = ["rev-list", f"--max-count={count}", f"--skip={seen}", "--end-of-options", commit]
        names = run_git(repo, env, listed, timeout_s=_TIMEOUT_S).output.decode("ascii", "replace").split()
        yield from names
        seen += len(names)
        if len(names) < count:
            return


def tip_of(repo: Repository, env: Mapping[str, str], branch: str) -> str | None:
    """Return the last commit of a branch, None where git has no such branch. Raises: ``GitUnusable``."""
    return commit_of(repo, env, os.fsdecode(BRANCH_PREFIX + encode_name(branch)))


def shared_commit(repo: Repository, env: Mapping[str, str], a: str, b: str) -> str | None:
    """Return the last commit that the histories of two commits share, None when there is none here.

    Raises: ``GitUnusable``.
    """
    answer = run_git(repo, env, ["merge-base", a, b], allowed=(0, 1))
    return answer.output.decode("ascii", "replace").split("\n")[0] if answer.status == 0 else None


def commit_time(repo: Repository, env: Mapping[str, str], commit: str) -> str:
    """Return when a commit was made, as RFC 3339 text in UTC; it sorts as the times of records do.

    Raises: ``GitUnusable``.
    """
    header, _, _ = run_git(repo, env, ["cat-file", "commit", commit]).output.partition(b"\n\n")
    for line in header.split(b"\n"):
        words = line.split(b" ")
        if words[0] == b"committer" and words[-2].isdigit():
            try:
                return datetime.fromtimestamp(int(words[-2]), UTC).strftime("%Y-%m-%dT%H:%M:%S.999999Z")
            except (ValueError, OverflowError, OSError):
                break
    raise GitUnusable(f"the commit {commit} does not say when it was made", hint="Run `git fsck`, or give a seq.")


def tree_of(repo: Repository, env: Mapping[str, str], commit: str) -> Tree:
    """Return the files of a commit. Raises: ``GitUnusable``."""
    answer = run_git(repo, env, ["ls-tree", "-r", "-z", "--full-tree", commit], timeout_s=_TIMEOUT_S)
    found = ((path, mode, name) for path, (mode, _, name) in _entries(answer.output))
    return {path: Blob(mode, name) for path, mode, name in found if mode in _FILES}


def staged_tree(repo: Repository, env: Mapping[str, str], before: Tree) -> Tree:
    """Return the files that a commit of the index would hold; ``before`` is what HEAD holds.

    The index is the one that git names to its hooks, else the worktree's own.

    Raises: ``GitUnusable``; ``InvalidQuery`` while a merge is not resolved.
    """
    index = _index(repo, env)
    answer = run_git(repo, env, ["ls-files", "--stage", "-z"], timeout_s=_TIMEOUT_S, index=index)
    found: Tree = {}
    unmerged: list[str] = []
    for path, (mode, name, stage) in _entries(answer.output):
        if stage != "0":
            unmerged.append(path)
        elif mode in _FILES:
            found[path] = Blob(mode, name)
    if unmerged:
        names = ", ".join(dict.fromkeys(unmerged[: 3 * _SHOWN]))
        raise InvalidQuery(
            f"The index holds conflicts that are not resolved: {names}.", hint="Resolve and `git add` them."
        )
    doubtful = [path for path, blob in found.items() if blob.id in _EMPTY_BLOBS and path not in before]
    if doubtful:
        # `git add -N` leaves an empty entry that no commit takes in.
        named = ["diff", "--cached", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv"]
        staged = run_git(repo, env, named, index=index).output.split(b"\0")
        for path in set(doubtful) - {path_text(name) for name in staged}:
            del found[path]
    return found


def is_anything_staged(repo: Repository, env: Mapping[str, str], commit: str) -> bool:
    """Tell whether the index may hold anything else than a commit; an unresolved merge and ``git add -N`` count.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    asked = ["diff-index", "--cached", "--quiet", "--ignore-submodules=none", commit, "--"]
    return run_git(repo, env, asked, allowed=(0, 1), timeout_s=_TIMEOUT_S, index=_index(repo, env)).status == 1


def ignored(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> set[str]:
    """Return those of these paths that git ignores: it is set to, and does not keep them. Raises: ``GitUnusable``."""
    if not paths or not repo.has_worktree:
        return set()
    asked = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    answer = run_git(repo, env, ["check-ignore", "-z", "--stdin"], allowed=(0, 1), asked=asked)
    return {path_text(name) for name in answer.output.split(b"\0") if name}


def contents(repo: Repository, env: Mapping[str, str], names: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
    """Yield the content of blobs by their names, each once; None for one that is larger than a document may be.

    Raises: ``GitUnusable`` when one is not in this clone.
    """
    listed = list(dict.fromkeys(names))
    for start in range(0, len(listed), _AT_ONCE):
        chunk = listed[start : start + _AT_ONCE]
        small = [name for name, size in zip(chunk, _sizes(repo, env, chunk), strict=True) if _fits(size)]
        yield from _read(repo, env, small)
        yield from ((name, None) for name in set(chunk) - set(small))


def _fits(size: int) -> bool:
    return size <= limits.MAX_SOURCE_FILE_BYTES


def _sizes(repo: Repository, env: Mapping[str, str], names: Sequence[str]) -> list[int]:
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    answer = run_git(repo, env, ["cat-file", "--batch-check=%(objectname) %(objectsize)"], asked=asked)
    sizes = []
    for line in answer.output.decode("ascii", "replace").splitlines():
        name, _, size = line.partition(" ")
        if not size.isdecimal():
            hint = "Fetch all of it (`git fetch --refetch`, without a filter), and try again."
            raise GitUnusable(f"the object {name} is not in this clone", hint=hint)
        sizes.append(int(size))
    return sizes


def _read(repo: Repository, env: Mapping[str, str], names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    if not names:
        return
    asked = "".join(f"{name}\n" for name in names).encode("ascii")
    output = run_git(repo, env, ["cat-file", "--batch"], asked=asked, timeout_s=_TIMEOUT_S).output
    at = 0
    for name in names:
        end = output.index(b"\n", at)
        length = int(output[at:end].rpartition(b" ")[2])
        yield name, output[end + 1 : end + 1 + length]
        at = end + length + 2


def _entries(output: bytes) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the path of each entry of a listing, and the three words before it."""
    for entry in output.split(b"\0"):
        words, tab, name = entry.partition(b"\t")
        if tab:
            first, second, third = words.decode("ascii").split(" ")
            yield path_text(name), (first, second, third)


def _index(repo: Repository, env: Mapping[str, str]) -> Path | None:
    """Return the index that git, or a user, means by GIT_INDEX_FILE; None for the worktree's own.

    That of another repository, whose hook asks about this one, is not meant.
    """
    named = env.get("GIT_INDEX_FILE")
    if not named:
        return None
    index = repo.worktree / named
    folder = Path(os.path.realpath(index.parent))
    marks = (folder / name for name in ("objects", "commondir"))
    is_foreign = folder != repo.git_dir and (folder / "HEAD").exists() and any(mark.exists() for mark in marks)
    return None if is_foreign else index
