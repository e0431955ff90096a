"""The index of a worktree: what is staged, changes of it, and what git leaves out of the worktree or ignores.

The index is the one that git names to its hooks (``named_index``), else the worktree's own.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from kbcore.errors import InvalidQuery
from kbcore.git.blobs import FILES, LINK, SUBMODULE, Blob, Tree, entries, write_blob
from kbcore.git.commands import LONG_TIMEOUT_S, run_git
from kbcore.git.files import is_true, read_settings
from kbcore.git.repository import Repository
from kbcore.ids import path_text

_EMPTY_BLOBS: Final = frozenset(
    {"e69de29bb2d1d6434b8b29ae775ad8c2e48c5391", "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"}
)
_SHOWN: Final = 3
_NO_HEAD: Final = 128
"""The status of git where HEAD names no commit yet."""


def staged_below(repo: Repository, env: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return the names of the contents that the index has below a folder, by path; of no file with a conflict.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    return in_index(repo, env, [folder], named_index(repo, env))


def in_index(
    repo: Repository, env: Mapping[str, str], paths: Sequence[str], index: Path | None = None
) -> dict[str, str]:
    """Return the names of the contents that an index has at or below paths, by path; of no file with a conflict.

    Without ``index`` it is the worktree's own. Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "--stage", "-z", "--full-name", "--", *(f":(top,literal){path}" for path in paths)]
    answer = run_git(repo, env, asked, timeout_s=LONG_TIMEOUT_S, index=index)
    return {path: name for path, (_, name, stage) in entries(answer.output) if stage == "0"}


def stage(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> None:
    """Have the index say of these paths what the worktree says: new content, or that there is no file.

    Files that git ignores are taken in. The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    asked = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    words = ["update-index", "--add", "--remove", "-z", "--stdin"]
    if paths:
        run_git(repo, env, words, asked=asked, timeout_s=LONG_TIMEOUT_S, index=named_index(repo, env))


def replace_staged(repo: Repository, env: Mapping[str, str], new: Mapping[str, bytes], gone: Collection[str]) -> None:
    """Have the index hold these contents, and these paths no more, in one step, whatever the worktree has.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    names = {path: write_blob(repo, env, data) for path, data in new.items()}
    listed = [b"100644 %b\t%b\0" % (name.encode(), os.fsencode(path)) for path, name in names.items()]
    none = b"0" * max(map(len, names.values()), default=0)
    listed += [b"0 %b\t%b\0" % (none, os.fsencode(path)) for path in sorted(gone)]
    words = ["update-index", "-z", "--index-info"]
    run_git(repo, env, words, asked=b"".join(listed), timeout_s=LONG_TIMEOUT_S, index=named_index(repo, env))


def not_checked_out(repo: Repository, env: Mapping[str, str], folder: str) -> set[str]:
    """Return the paths below a folder that the index has and that git is set to leave out of the worktree.

    That is so in a sparse checkout, and for what a user marks (``update-index --skip-worktree``).

    Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "-t", "-z", "--full-name", "--", f":(top){folder}"]
    listed = run_git(repo, env, asked, timeout_s=LONG_TIMEOUT_S).output.split(b"\0")
    return {path_text(entry[2:]) for entry in listed if entry.startswith(b"S ")}


def missing_below(repo: Repository, env: Mapping[str, str], folder: str) -> Tree:
    """Return the regular files below a folder that the worktree's index has, and that the worktree lacks.

    Not those of ``not_checked_out``. Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "--deleted", "--stage", "-z", "--full-name", "--", f":(top,literal){folder}"]
    answer = run_git(repo, env, asked, timeout_s=LONG_TIMEOUT_S)
    found = ((path, mode, name) for path, (mode, name, stage) in entries(answer.output) if stage == "0")
    return {path: Blob(mode, name) for path, mode, name in found if mode in FILES - {LINK, SUBMODULE}}


def is_sparse(repo: Repository) -> bool:
    """Tell whether git is set to leave files of the index out of the worktree. No process is started for it.

    Raises: ``GitUnusable``.
    """
    return is_true(read_settings(repo.common_dir, repo.git_dir).get("core.sparsecheckout", "false"))


def staged_tree(repo: Repository, env: Mapping[str, str], before: Tree) -> Tree:
    """Return the files that a commit of the index would hold; ``before`` is what HEAD holds.

    The index is the one that git names to its hooks, else the worktree's own.

    Raises: ``GitUnusable``; ``InvalidQuery`` while a merge is not resolved.
    """
    index = named_index(repo, env)
    answer = run_git(repo, env, ["ls-files", "--stage", "-z"], timeout_s=LONG_TIMEOUT_S, index=index)
    found: Tree = {}
    unmerged: list[str] = []
    for path, (mode, name, stage) in entries(answer.output):
        if stage != "0":
            unmerged.append(path)
        elif mode in FILES:
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
    return run_git(repo, env, asked, allowed=(0, 1), timeout_s=LONG_TIMEOUT_S, index=named_index(repo, env)).status == 1


def would_commit_differ(repo: Repository, env: Mapping[str, str]) -> bool:
    """Return whether a commit of the index would differ from HEAD; before the first commit, whether it has files.

    An entry of ``git add -N`` is none that a commit takes in.

    The index is that of ``staged_tree``. Raises: ``GitUnusable``.
    """
    index = named_index(repo, env)
    asked = ["diff-index", "--cached", "--quiet", "--ita-invisible-in-index", "HEAD", "--"]
    answer = run_git(repo, env, asked, allowed=(0, 1, _NO_HEAD), timeout_s=LONG_TIMEOUT_S, index=index)
    if answer.status != _NO_HEAD:
        return answer.status == 1
    return bool(run_git(repo, env, ["ls-files", "-z"], timeout_s=LONG_TIMEOUT_S, index=index).output)


def staged_with(repo: Repository, env: Mapping[str, str], pattern: str) -> set[str]:
    """Return the text files of the index of which a line matches a pattern (``grep -iE``). Raises: ``GitUnusable``."""
    asked = ["grep", "--cached", "-I", "-l", "-z", "-i", "-E", "--full-name", "-e", pattern, "--", ":/"]
    answer = run_git(repo, env, asked, allowed=(0, 1), timeout_s=LONG_TIMEOUT_S, index=named_index(repo, env))
    return {path_text(name) for name in answer.output.split(b"\0") if name}


def ignored(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> set[str]:
    """Return those of these paths that git ignores: it is set to, and does not keep them. Raises: ``GitUnusable``."""
    if not paths or not repo.has_worktree:
        return set()
    asked = b"".join(os.fsencode(path) + b"\0" for path in sorted(paths))
    answer = run_git(repo, env, ["check-ignore", "-z", "--stdin"], allowed=(0, 1), asked=asked)
    return {path_text(name) for name in answer.output.split(b"\0") if name}


def named_index(repo: Repository, env: Mapping[str, str]) -> Path | None:
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
