"""The entity at a line of a file, as the file is now: lines of symbols are not recorded."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbcore.errors import NotFound
from kbcore.extract.code import extractor as code
from kbcore.extract.facts import Facts
from kbcore.git import worktree_content
from kbcore.git.worktree_content import Unfit
from kbcore.query.at_path import PlaceInFile, entities_of, near_paths, place_in
from kbcore.query.subject import Subject, find
from kbcore.remedies import kb
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import wanted
from kbcore.sync.scan import found_at
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it
from kbcore.view.view import View


class AtPath(msgspec.Struct, frozen=True):
    """The entities of a file, or the one that is at a line of it."""

    place: PlaceInFile
    subjects: tuple[Subject, ...]


def at_path(workspace: Workspace, view: View, text: str, seq: int | None, start: str = "") -> AtPath | None:
    """Return the entities of the file that a text names, None where nothing is known of it, as of a seq (None: now).

    A path is taken from ``start``, a folder of the worktree, where something is known of it there, else from the top.
    """
    root = str(workspace.repo.worktree)
    for folder in dict.fromkeys((start, "")):
        place = place_in(text, root, folder)
        found = entities_of(view.rows, place.path, seq)
        if found and place.line and seq is None:
            found = _at_line(workspace, view, place, found)
        if found:
            return AtPath(place, tuple(found))
    return None


def looks_like_path(text: str) -> bool:
    """Tell whether a text that is no id may be meant as a path."""
    return "/" in text or "." in text.strip(".")


def unknown_path(view: View, text: str) -> NotFound:
    """Return the error for a path of which nothing is known, with the nearest ones."""
    near = near_paths(view.rows, place_in(text, "").path)
    hint = is_it(near) if near else f"{kb('status')} counts the files that are read."
    return NotFound(f"Nothing is known of {in_quotes(text)}: it is no id, and no entity is of such a file.", hint=hint)


def _at_line(workspace: Workspace, view: View, place: PlaceInFile, found: list[Subject]) -> list[Subject]:
    """Return the innermost symbol around a line, else the entity that begins last before it; all where none does."""
    wants = wanted(workspace)
    read = found_at(workspace.repo.worktree, wants, place.path)
    if read is None:
        return found
    key = _symbol_at(workspace.repo.worktree, place, read.wanted.settings) if _is_code(read.wanted.extractor) else ""
    if not key:
        begun = [one for one in (read.facts or Facts()).entities if one.line <= place.line]
        key = max(begun, key=lambda one: one.line).id if begun and not _is_code(read.wanted.extractor) else place.path
    subject = find(view.rows, key, None)
    return [subject] if subject else found


def _is_code(extractor: object) -> bool:
    return extractor is code.EXTRACTOR


def _symbol_at(root: Path, place: PlaceInFile, settings: object) -> str:
    try:
        data, _ = worktree_content.read(str(root / place.path))
    except (OSError, Unfit):
        return ""
    return code.symbol_around(place.path, data, place.line, settings if isinstance(settings, dict) else {})
