"""The change files of a worktree by path, found as a sync finds them: without what reads files, for a commit waits."""

from __future__ import annotations

from pathlib import Path

from kbcore.extract.changes import FOLDER, GLOB
from kbcore.sync.walk import FolderWalk
from kbcore.text.globs import glob_set


def change_paths(root: Path) -> set[str]:
    """Return the paths of the change files of a worktree that a sync reads."""
    globs = glob_set((GLOB,))
    walk = FolderWalk(root, (), {FOLDER}, lambda path: globs.first(path) is not None)
    return {path for path, *_ in walk.files(FOLDER, globs, None)}
