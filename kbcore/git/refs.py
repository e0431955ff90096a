"""Lists the branches and worktrees of a repository, for choosing a default branch and for gc.

A list is complete or an error is raised: gc removes stores of branches that are not in it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kbcore.errors import GitUnusable, InvalidConfig, NotARepository
from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, decode_name, encode_name, read_commit, read_small, refused
from kbcore.git.head import HeadState, read_head, tables_stamp, uses_reftable
from kbcore.git.repository import Repository, admin_worktree
from kbcore.ids import check_branch_name

_ORIGIN_HEAD = "refs/remotes/origin/HEAD"
_ORIGIN_PREFIX = b"refs/remotes/origin/"


class WorktreeHead(msgspec.Struct, frozen=True):
    """One worktree and what it has checked out; the folder may be gone or on a disk that is not mounted."""

    path: Path
    head: HeadState


def default_branch(repo: Repository, env: Mapping[str, str], configured: str | None = None) -> str:
    """Return the branch that new stores are copied from: configured, else origin's HEAD, else ``main``.

    Raises:
        InvalidConfig: the configured name is none that git would take.
        GitUnusable: origin's HEAD cannot be read.
    """
    if configured is not None:
        if (reason := check_branch_name(configured)) is not None:
            raise InvalidConfig(f"defaultBranch {configured!a}: {reason}")
        return configured
    if uses_reftable(repo.git_dir):
        answer = run_git(repo, env, ["symbolic-ref", "-q", _ORIGIN_HEAD], allowed=(0, 1))
        target = answer.output.strip()
    else:
        target = _read_symbolic_ref(repo.common_dir / _ORIGIN_HEAD)
    name = decode_name(target.removeprefix(_ORIGIN_PREFIX))
    if target.startswith(_ORIGIN_PREFIX) and b"\\" not in target and check_branch_name(name) is None:
        return name
    return "main"


def local_branches(repo: Repository, env: Mapping[str, str]) -> set[str]:
    """Return the names of all local branches, loose and packed, also of those whose ref is damaged.

    Raises:
        GitUnusable: git or the file system refuses; never an incomplete answer.
    """
    refs = run_git(repo, env, ["for-each-ref", "--format=%(refname)", "refs/heads/"]).output.splitlines()
    names = {decode_name(ref.removeprefix(BRANCH_PREFIX)) for ref in refs if ref.startswith(BRANCH_PREFIX)}
    return names | _loose_names(repo.common_dir / "refs" / "heads")


def tips(repo: Repository, env: Mapping[str, str]) -> dict[str, str]:
    """Return the commit of each local and each remote-tracking branch, by the whole name of its ref.

    Raises: ``GitUnusable``.
    """
    asked = ["for-each-ref", "--format=%(objecttype) %(objectname) %(refname)", "refs/heads/", "refs/remotes/"]
    lines = (line.split(b" ", 2) for line in run_git(repo, env, asked).output.splitlines())
    return {decode_name(ref): commit.decode("ascii") for kind, commit, ref in lines if kind == b"commit"}


def merged_since(repo: Repository, env: Mapping[str, str], before: str) -> list[str]:
    """Return the local branches whose commits HEAD of this worktree has all, and had not at the commit ``before``.

    Empty where there is no such commit. Raises: ``GitUnusable``.
    """
    asked = ["for-each-ref", "--format=%(refname)", "--merged=HEAD", f"--no-merged={before}", "refs/heads/"]
    refs = run_git(repo, env, asked, allowed=(0, 128, 129)).output.splitlines()
    return [decode_name(ref.removeprefix(BRANCH_PREFIX)) for ref in refs if ref.startswith(BRANCH_PREFIX)]


def previous_head(repo: Repository, env: Mapping[str, str]) -> str:
    """Return the commit that HEAD of this worktree named before the present one, "" where git does not know it.

    Raises: ``GitUnusable``.
    """
    asked = ["rev-parse", "--verify", "--quiet", "HEAD@{1}"]
    return run_git(repo, env, asked, allowed=(0, 1, 128)).output.decode("ascii", "replace").strip()


def is_branch(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether git has a ref for a branch; one with damaged content counts. Raises: ``GitUnusable``."""
    return check_branch_name(branch) is None and _is_branch(repo, env, BRANCH_PREFIX + encode_name(branch))


def is_in_use(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether a name is that of a local branch, or what some worktree has checked out or is rebasing.

    Cheaper than listing all: nothing is spawned, except where git keeps its refs as reftable.

    Raises:
        GitUnusable: it cannot be determined.
    """
    if is_branch(repo, env, branch):
        return True
    return any(one.head.branch == branch for one in worktree_heads(repo, env))


class BranchUse:
    """The use of a branch, as ``is_in_use`` says, and later whether that may have changed."""

    def __init__(self, repo: Repository, env: Mapping[str, str], branch: str) -> None:
        """Ask git, where only git can say. Raises: ``GitUnusable``."""
        self._repo, self._env, self._branch = repo, env, branch
        self._stamp = self._tables()
        self.is_in_use = is_in_use(repo, env, branch)

    def has_begun(self) -> bool:
        """Tell whether a branch that was in no use is in use now, or may be; no process is started for it.

        Raises: ``GitUnusable``.
        """
        if uses_reftable(self._repo.common_dir):
            return self._stamp is None or self._tables() != self._stamp
        return is_in_use(self._repo, self._env, self._branch)

    def _tables(self) -> object:
        """Return what changes with every change of a ref or of a HEAD where those are reftables; else None."""
        folder = self._repo.common_dir / "worktrees"
        return tables_stamp([self._repo.common_dir, *(folder / name for name in _worktree_names(folder))])


def _is_branch(repo: Repository, env: Mapping[str, str], ref: bytes) -> bool:
    """Tell whether there is a ref of this name; one with damaged content counts."""
    if uses_reftable(repo.git_dir):
        named = ["show-ref", "--verify", "--quiet", os.fsdecode(ref)]
        return run_git(repo, env, named, allowed=(0, 1)).status == 0
    return read_small(repo.common_dir / os.fsdecode(ref)) is not None or bool(read_commit(repo.common_dir, ref))


def worktree_heads(repo: Repository, env: Mapping[str, str]) -> list[WorktreeHead]:
    """Return every worktree of the repository with its HEAD, the main one (or the bare repository) first.

    Locked worktrees and those whose folder is missing are included: their HEAD is in the common directory.

    Raises:
        GitUnusable: a HEAD cannot be read; never an incomplete answer.
    """
    main = msgspec.structs.replace(repo, git_dir=repo.common_dir, worktree=repo.kb_root)
    found = [WorktreeHead(path=main.worktree, head=read_head(main, env))]
    folder = repo.common_dir / "worktrees"
    for entry in (folder / name for name in _worktree_names(folder)):
        path = admin_worktree(entry) or entry
        linked = msgspec.structs.replace(repo, git_dir=entry, worktree=path)
        try:
            found.append(WorktreeHead(path=path, head=read_head(linked, env)))
        except NotARepository as error:
            raise GitUnusable(
                f"the worktree entry {entry} has no HEAD", hint="Run `git worktree prune`, then try again."
            ) from error
    return found


def _worktree_names(folder: Path) -> list[str]:
    """Return the names of the linked worktrees. Raises: ``GitUnusable``."""
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    except OSError as error:
        raise refused("list the worktrees in", folder, error) from error


def _read_symbolic_ref(path: Path) -> bytes:
    """Return the ref that a symbolic ref file (or, of old, a symlink) points at; empty when it is none."""
    try:
        return os.fsencode(path.readlink())
    except OSError:  # not a symlink, or absent: reading tells
        content = read_small(path) or b""
    return content.removeprefix(b"ref:").strip() if content.startswith(b"ref:") else b""


def _loose_names(folder: Path) -> set[str]:
    """Return the branches that have a file of their own. git leaves those out whose content is damaged."""
    if not folder.is_dir():
        return set()

    def refuse(error: OSError) -> None:
        raise refused("list the branches in", Path(error.filename), error) from error

    names = set()
    for directory, _, files in os.walk(folder, onerror=refuse):
        inside = Path(directory).relative_to(folder)
        names |= {decode_name(os.fsencode((inside / file).as_posix())) for file in files}
    return names
