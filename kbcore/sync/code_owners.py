"""The file ``CODEOWNERS`` of a branch: that of the worktree where it is checked out, else that of its last commit."""

from __future__ import annotations

import os
from typing import Final

from kbcore import limits
from kbcore.git import blobs, revisions, worktree_content
from kbcore.git.worktree_content import FileKind, Unfit
from kbcore.store.workspace import Workspace
from kbcore.text.code_owners import FAULT, NONE, CodeOwners, read
from kbcore.text.escaping import problem_line
from kbcore.text.problems import FileProblem
from kbcore.text.wording import pluralize

PLACES: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
"""The paths at which it is looked for, from the root; the first one counts, and no other."""
_SHOWN: Final = 5
_KIND: Final = FileKind(
    limits.MAX_CODE_OWNERS_BYTES,
    "Write fewer lines.",
    'Remove it, or set "codeowners" to false in .kb/config.json.',
    "Put the file itself here.",
)


def code_owners(workspace: Workspace, branch: str) -> CodeOwners:
    """Return the owners of the files of a branch, none where the settings turn them off or there is no such file.

    A file that cannot be read gives none, and is named in ``problems``. Raises: ``InvalidConfig``, ``GitUnusable``.
    """
    repo = workspace.repo
    if not workspace.config.code_owners or (repo.has_worktree and workspace.head().branch == branch):
        return owners_here(workspace)
    tip = revisions.tip_of(repo, workspace.machine.env, branch)
    for path in PLACES if tip else ():
        blob = blobs.tree_below(repo, workspace.machine.env, tip or "", path).get(path)
        if blob is not None and blob.mode not in {blobs.LINK, blobs.SUBMODULE}:
            [(_, data)] = blobs.contents(repo, workspace.machine.env, [blob.id])
            if data is None or len(data) > _KIND.most_bytes:
                return _unread(path, "it is larger than KB reads", _KIND.if_larger)
            return _read(data, path)
    return NONE


def fault_lines(found: CodeOwners) -> list[str]:
    """Return the first lines that give no owner, each with why, and how many more there are."""
    lines = [problem_line(found.file, one.line, one.message, one.hint) for one in found.problems[:_SHOWN]]
    more = len(found.problems) - _SHOWN
    return [*lines, f"{found.file} has {pluralize(more, 'more problem')}."] if more > 0 else lines


def owners_here(workspace: Workspace) -> CodeOwners:
    """Return the owners of the files of the worktree; as ``code_owners``. Raises: ``InvalidConfig``."""
    if not workspace.config.code_owners:
        return NONE
    root = workspace.repo.worktree
    for path in PLACES:
        place = str(root / path)
        try:
            worktree_content.check(place, os.stat(place), root, is_direct=False, kind=_KIND)  # noqa: PTH116 - as others
            return _read(worktree_content.read(place, _KIND)[0], path)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except Unfit as error:
            reason, remedy = error.args
            return _unread(path, reason[:1].lower() + reason[1:].rstrip("."), remedy)
        except OSError as error:
            return _unread(path, f"it cannot be read: {error.strerror}", "Give yourself permission to read it.")
    return NONE


def _read(data: bytes, path: str) -> CodeOwners:
    return read(data.decode("utf-8", "replace"), path)


def _unread(path: str, reason: str, remedy: str) -> CodeOwners:
    return CodeOwners(
        path, problems=[FileProblem(0, FAULT, f"no owner of a file is known: {reason}", remedy, "warning")]
    )
