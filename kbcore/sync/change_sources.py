"""The change files of a worktree as a sync finds and records them, without what reads files: a commit waits for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from kbcore.extract.changes import EXTRACTOR, FOLDER, GLOB
from kbcore.extract.facts import mark_of
from kbcore.extract.settings import EDGE_NAMES
from kbcore.sync.walk import FolderWalk
from kbcore.text.globs import glob_set

CHANGE_SETTINGS: Final[dict[str, Any]] = {EDGE_NAMES: []}
"""Those of the extractor of change files: it has none, and reads files the same whatever the schema is."""


def change_paths(root: Path) -> set[str]:
    """Return the paths of the change files of a worktree that a sync reads."""
    globs = glob_set((GLOB,))
    walk = FolderWalk(root, (), {FOLDER}, lambda path: globs.first(path) is not None)
    return {path for path, *_ in walk.files(FOLDER, globs, None)}


def change_mark() -> str:
    """Return the mark of the extractor of change files in the row of a source (``mark_of``)."""
    globs = [(rule.glob, rule.type) for rule in EXTRACTOR.path_rules(CHANGE_SETTINGS)]
    return mark_of(EXTRACTOR, CHANGE_SETTINGS, globs)
