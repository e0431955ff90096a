"""The history of a repository: what a revision means, ancestors, times, and which commits changed or added a file."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from kbcore.errors import GitUnusable
from kbcore.git.commands import LONG_TIMEOUT_S, run_git
from kbcore.git.files import BRANCH_PREFIX, encode_name
from kbcore.git.repository import Repository
from kbcore.ids import path_text

_FEW: Final = 1_000
_MOST: Final = 1_000_000


def once_added(repo: Repository, env: Mapping[str, str], paths: Sequence[str]) -> set[str]:
    """Return those of these paths at which a commit of the history of HEAD added a file, there still or not.

    Raises: ``GitUnusable``.
    """
    look = ["--literal-pathspecs", "log", "--format=", "--name-only", "-z", "--no-renames", "--diff-filter=A", "HEAD"]
    answer = run_git(repo, env, [*look, "--", *paths], allowed=(0, 128), timeout_s=LONG_TIMEOUT_S)  # 128: no commit yet
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
        names = run_git(repo, env, listed, timeout_s=LONG_TIMEOUT_S).output.decode("ascii", "replace").split()
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


def merge_bases(repo: Repository, env: Mapping[str, str], a: str, b: str) -> list[str]:
    """Return the best common ancestors of two commits: none, one, or several where branches were merged crosswise.

    Raises: ``GitUnusable``.
    """
    answer = run_git(repo, env, ["merge-base", "--all", a, b], allowed=(0, 1), timeout_s=LONG_TIMEOUT_S)
    return answer.output.decode("ascii", "replace").split()


def is_cut_off(repo: Repository, env: Mapping[str, str], tips: Sequence[str], bases: Sequence[str]) -> bool:
    """Tell whether the history of a shallow clone ends between these commits and their common ancestors.

    A later common ancestor may then be missing. Raises: ``GitUnusable``.
    """
    try:
        ends = {line.strip() for line in (repo.common_dir / "shallow").read_text("ascii").splitlines()}
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError) as error:
        raise GitUnusable(f"the file {repo.common_dir / 'shallow'} cannot be read: {error}") from error
    asked = "".join(f"{name}\n" for name in (*tips, *(f"^{base}" for base in bases))).encode("ascii")
    listed = run_git(repo, env, ["rev-list", "--stdin"], asked=asked, timeout_s=LONG_TIMEOUT_S).output
    return not ends.isdisjoint(listed.decode("ascii", "replace").split())


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


def commits_changing(repo: Repository, env: Mapping[str, str], path: str) -> list[str] | None:
    """Return the commits at which a file was changed, of all that refs and reflogs lead to in this clone.

    None where git cannot tell, since a part of the history is not in this clone. Raises: ``GitUnusable``.
    """
    asked = ["rev-list", "--all", "--reflog", "--full-history", "--", path]
    answer = run_git(repo, env, asked, allowed=(0, 128), timeout_s=LONG_TIMEOUT_S)
    return None if answer.status else answer.output.decode("ascii", "replace").split()


def authors_of_addition(repo: Repository, env: Mapping[str, str], paths: Collection[str]) -> dict[str, str]:
    """Return the author of the last commit of HEAD that added each file, by path; files of no commit are left out.

    Raises: ``GitUnusable``.
    """
    if not paths:
        return {}
    form = ["--format=%x01%an", "--no-show-signature", "--diff-filter=A", "--no-renames", "--name-only", "-z"]
    words = ["--literal-pathspecs", "log", *form, "HEAD", "--", *paths]
    answer = run_git(repo, env, words, allowed=(0, 128), timeout_s=LONG_TIMEOUT_S)  # 128: no commit yet
    found, author = dict[str, str](), ""
    for part in answer.output.split(b"\0"):
        text = part.lstrip(b"\n")
        if text.startswith(b"\x01"):
            author = text[1:].decode("utf-8", "replace").strip()
        elif text:
            found.setdefault(path_text(text), author)
    return found
