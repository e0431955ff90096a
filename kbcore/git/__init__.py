"""Owns the access to git: where the repository is, which branch is checked out, which branches exist.

Offers the repository, its HEAD, refs, reflogs and files, and the hooks that the user asked for (``hookconfig``).
Never runs what a repository configures, and writes nothing else to it but its id (``identity``).
"""

from __future__ import annotations

from kbcore.git.blobs import Blob, Tree
from kbcore.git.commands import LOCAL_ENV_VARS, hooks_dir
from kbcore.git.head import HeadCache, HeadState, MustAskGit, needs_git_each_time, read_branch, read_head
from kbcore.git.identity import IdCache, remove_id, write_id
from kbcore.git.ownership import SharedModes, check_owner, find_own_repository
from kbcore.git.reflog import BirthCache, birth_of, former_names, has_reflog, was_moved
from kbcore.git.refs import (
    BranchUse,
    WorktreeHead,
    default_branch,
    is_branch,
    is_in_use,
    local_branches,
    merged_since,
    previous_head,
    tips,
    worktree_heads,
)
from kbcore.git.repository import Repository, RepositoryCache, find_repository

__all__ = [
    "LOCAL_ENV_VARS",
    "BirthCache",
    "Blob",
    "BranchUse",
    "HeadCache",
    "HeadState",
    "IdCache",
    "MustAskGit",
    "Repository",
    "RepositoryCache",
    "SharedModes",
    "Tree",
    "WorktreeHead",
    "birth_of",
    "check_owner",
    "default_branch",
    "find_own_repository",
    "find_repository",
    "former_names",
    "has_reflog",
    "hooks_dir",
    "is_branch",
    "is_in_use",
    "local_branches",
    "merged_since",
    "needs_git_each_time",
    "previous_head",
    "read_branch",
    "read_head",
    "remove_id",
    "tips",
    "was_moved",
    "worktree_heads",
    "write_id",
]
