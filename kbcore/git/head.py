"""Reads which branch is checked out, afresh each time and in this process.

git is asked only where HEAD is not a file: repositories that keep their refs as reftable.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from kbcore.errors import GitUnusable, NotARepository
from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, COMMIT, branch_of_ref, decode_name, read_commit, read_small
from kbcore.git.repository import Repository
from kbcore.ids import detached_name
from kbcore.storage.files import below

_REFTABLE_STUB = b"refs/heads/.invalid"

_TablesKey = tuple[tuple[int, int, int], ...]


class HeadState(msgspec.Struct, frozen=True):
    """The branch or the commit that HEAD of one worktree names."""

    branch: str
    """Name of the store: the branch, the branch being rebased, or ``detached:<commit>``."""
    kind: Literal["branch", "unborn", "detached", "rebasing"]
    """``unborn``: the branch has no commit yet."""
    commit: str | None
    """The commit that is checked out, 40 or 64 hex digits; None on an unborn branch."""
    bisect_from: str | None = None
    """While bisecting: the branch or commit that the search began on, to be shown only."""


class HeadAnswer(msgspec.Struct, frozen=True):
    """The answer of git about a HEAD: its ref or, if detached, its commit; and the commit of that ref, if any."""

    target: bytes
    commit: str | None


class HeadCache(msgspec.Struct):
    """Answers of git about reftable HEADs, by git directory; valid until git rewrites its list of tables."""

    entries: dict[Path, tuple[_TablesKey, HeadAnswer]] = msgspec.field(default_factory=dict)


class MustAskGit(Exception):
    """Only git can say what HEAD names, and it is not to be started now: call ``ask`` when it may be."""

    def __init__(self, ask: Callable[[], object]) -> None:
        super().__init__()
        self.ask = ask


def read_head(
    repo: Repository, env: Mapping[str, str], *, cache: HeadCache | None = None, starts_git: bool = True
) -> HeadState:
    """Return what HEAD of this worktree names at this moment.

    ``env`` is the environment for git and ``cache`` saves asking it twice; both matter for reftable alone. Without
    ``starts_git`` the answer comes from files, or is one that git gave when its tables were as they are now; git is
    started all the same where nothing tells whether they changed: asking before would not help.

    Raises:
        MustAskGit: git would have to be started.
        NotARepository: HEAD is gone.
        GitUnusable: HEAD holds what git would not write, or git cannot read this repository.
    """
    target, answered = _target(repo, env, cache, starts_git=starts_git)
    if not target.startswith(b"refs/"):
        return _off_branch(repo.git_dir, target.decode("ascii"))
    branch = branch_of_ref(target, below(repo.git_dir, "HEAD"))
    commit = read_commit(repo.common_dir, target) if answered is None else answered.commit
    return HeadState(branch=branch, kind="branch" if commit else "unborn", commit=commit)


def read_branch(repo: Repository, env: Mapping[str, str], *, cache: HeadCache | None = None) -> str:
    """Return the branch of ``read_head``, without a look at its commit. Raises: as ``read_head``."""
    target, _ = _target(repo, env, cache, starts_git=True)
    if not target.startswith(b"refs/"):
        return _off_branch(repo.git_dir, target.decode("ascii")).branch
    return branch_of_ref(target, below(repo.git_dir, "HEAD"))


def _target(
    repo: Repository, env: Mapping[str, str], cache: HeadCache | None, *, starts_git: bool
) -> tuple[bytes, HeadAnswer | None]:
    """Return the full ref name in HEAD, or the commit, and the answer of git where it was asked."""
    target = _head_target(repo.git_dir)
    if target != _REFTABLE_STUB:
        return target, None
    if cache is not None and not starts_git and _is_outdated(repo, cache):
        raise MustAskGit(lambda: _ask_git(repo, env, cache))
    answered = _ask_git(repo, env, cache)
    return answered.target, answered


def uses_reftable(git_dir: Path) -> bool:
    """Tell whether the refs are where only git can read them; it leaves a stub in HEAD then."""
    return _head_target(git_dir) == _REFTABLE_STUB


def needs_git_each_time(repo: Repository) -> bool:
    """Tell whether git is started for each reading of HEAD: nothing shows whether its refs have changed."""
    return uses_reftable(repo.git_dir) and _tables_key(repo) is None


def _head_target(git_dir: Path) -> bytes:
    """Return the full ref name in HEAD, or the commit."""
    path = below(git_dir, "HEAD")
    link = ""
    with contextlib.suppress(OSError):  # what is wrong with it, reading will tell
        link = os.readlink(path) if os.path.islink(path) else ""  # noqa: PTH114, PTH115 - see `files.below`
    if link.startswith("refs/"):
        return os.fsencode(link)
    content = read_small(path)
    if content is None:
        raise NotARepository(f"{path} is missing", hint="Run `git worktree prune` or `git fsck`.")
    if content.startswith(b"ref:"):
        target = content.removeprefix(b"ref:").strip()
        if not target.startswith(b"refs/"):
            raise GitUnusable(f"{path} points at {decode_name(target)!a}, which is not a ref")
        return target
    commit = content.strip().lower()
    if COMMIT.fullmatch(commit):
        return commit
    raise GitUnusable(
        f"{path} holds neither a branch nor a commit",
        hint="Write `ref: refs/heads/NAME` into it, NAME being what was checked out; before, git sees no repository.",
    )


def _off_branch(git_dir: Path, commit: str) -> HeadState:
    """Return the state of a HEAD that holds a commit: rebasing a branch, or detached."""
    for folder in ("rebase-merge", "rebase-apply"):
        place = git_dir / folder / "head-name"
        name = (read_small(place) or b"").strip()
        if name.startswith(BRANCH_PREFIX):
            branch = branch_of_ref(name, place)
            return HeadState(branch=branch, kind="rebasing", commit=commit)
    began = read_small(git_dir / "BISECT_START")
    return HeadState(
        branch=detached_name(commit),
        kind="detached",
        commit=commit,
        bisect_from=decode_name(began.strip()) if began else None,
    )


def _ask_git(repo: Repository, env: Mapping[str, str], cache: HeadCache | None) -> HeadAnswer:
    """Return what git says of HEAD, or said when its tables were as they are now."""
    key = _tables_key(repo)
    known = cache.entries.get(repo.git_dir) if cache is not None else None
    if known is not None and known[0] == key:
        return known[1]
    symbolic = run_git(repo, env, ["symbolic-ref", "-q", "HEAD"], allowed=(0, 1))
    target = symbolic.output.strip() if symbolic.status == 0 else b"HEAD"
    named = ["rev-parse", "--verify", "-q", "--end-of-options", os.fsdecode(target)]
    commit = run_git(repo, env, named, allowed=(0, 1)).output.strip().lower()
    if target == _REFTABLE_STUB or (target == b"HEAD" and not COMMIT.fullmatch(commit)):
        raise GitUnusable(f"git does not know what {repo.git_dir / 'HEAD'} names")
    answer = HeadAnswer(target=commit if target == b"HEAD" else target, commit=commit.decode("ascii") or None)
    if cache is not None and key is not None:
        cache.entries[repo.git_dir] = (key, answer)
    return answer


def _is_outdated(repo: Repository, cache: HeadCache) -> bool:
    """Tell whether git's tables are not those of its last answer; False where that cannot be determined."""
    key, known = _tables_key(repo), cache.entries.get(repo.git_dir)
    return key is not None and (known is None or known[0] != key)


def _tables_key(repo: Repository) -> _TablesKey | None:
    """Return what changes with every change of a ref of this worktree, or None when it cannot be determined.

    HEAD is in the worktree's own tables, its branch in the common ones.
    """
    return tables_stamp((repo.git_dir, repo.common_dir))


def tables_stamp(directories: Iterable[Path]) -> _TablesKey | None:
    """Return what changes with every change of a reftable in one of these directories; None where one has none."""
    stamps = []
    for directory in directories:
        try:
            found = (directory / "reftable" / "tables.list").stat()
        except OSError:  # refs are kept elsewhere: git is asked each time
            return None
        stamps.append((found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(stamps)
