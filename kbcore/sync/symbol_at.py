"""The entity at a line of a file, as the file is now: lines of symbols are not recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.errors import NotFound
from kbcore.errors.remedies import kb
from kbcore.extract.code import extractor as code
from kbcore.extract.facts import Facts
from kbcore.git import worktree_content
from kbcore.git.worktree_content import Unfit
from kbcore.model.graph import Node
from kbcore.query import sql
from kbcore.query.known import known_paths
from kbcore.query.meaning import path_of
from kbcore.query.subject import COLUMNS, Subject, find, subject_of
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import wanted
from kbcore.sync.scan import found_at
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.view.tables import IS_TEXT_OF, Rows
from kbcore.view.view import View

_OF_FILE: Final = "json_extract_string(n.attributes, '$.file')"


class AtPath(msgspec.Struct, frozen=True):
    """The entities of a file, or the one that is at a line of it."""

    place: PlaceInFile
    subjects: tuple[Subject, ...]


def at_path(
    workspace: Workspace, view: View, text: str, seq: int | None, *, branch: str, start: str = ""
) -> AtPath | None:
    """Return the entities of the file that a text names, None where nothing is known of it, as of a seq (None: now).

    Of a branch that is not checked out, and of an earlier state, lines are not known: all of the file is meant then. A
    path is taken from ``start``, a folder of the worktree, where something is known of it there, else from the top.
    """
    root = str(workspace.repo.worktree)
    for folder in dict.fromkeys((start, "")):
        place = place_in(text, root, folder)
        found = entities_of(view.rows, place.path, seq)
        if found and place.line and seq is None and _is_here(workspace, branch):
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
    if read.wanted.extractor is code.EXTRACTOR:
        lines = _lines(workspace.repo.worktree, place.path, read.wanted.settings)
        around = [one for one, (first, last) in lines.items() if first <= place.line <= last]
        key = around[-1] if around else place.path
    else:
        begun = [one for one in (read.facts or Facts()).entities if one.line <= place.line]
        key = max(begun, key=lambda one: one.line).id if begun else place.path
    subject = find(view.rows, key, None)
    return [subject] if subject else found


def lines_of(workspace: Workspace, branch: str, node: Node) -> tuple[int, int] | None:
    """Return the first and the last line of a symbol of source code, as its file is now; None where it is not there."""
    if not node.is_of_code or not _is_here(workspace, branch):
        return None
    return lines_of_file(workspace, branch, node.path).get(node.id)


def lines_of_file(workspace: Workspace, branch: str, path: str) -> dict[str, tuple[int, int]]:
    """Return the first and the last line of each symbol of a file, as it is now; none where it is not checked out."""
    want = next((one for one in wanted(workspace) if one.extractor is code.EXTRACTOR), None)
    if want is None or not _is_here(workspace, branch):
        return {}
    return _lines(workspace.repo.worktree, path, want.settings)


def _is_here(workspace: Workspace, branch: str) -> bool:
    return workspace.repo.has_worktree and workspace.head().branch == branch


def _lines(root: Path, path: str, settings: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    try:
        data, _ = worktree_content.read(str(root / path))
    except (OSError, Unfit):
        return {}
    return code.lines_of_symbols(path, data, settings)


class PlaceInFile(msgspec.Struct, frozen=True):
    """A file, and a line of it; 0 is the whole file."""

    path: str
    line: int = 0

    def as_text(self) -> str:
        """Return it as it is typed."""
        return f"{self.path}:{self.line}" if self.line else self.path


def place_in(text: str, root: str, start: str = "") -> PlaceInFile:
    """Return the file that a text names, as ``PATH`` or ``PATH:LINE``; it is relative to ``start`` or to the root."""
    path, colon, line = text.rpartition(":")
    is_line = bool(colon and path) and line.isascii() and line.isdigit() and int(line) > 0
    return PlaceInFile(path_of(path if is_line else text, root, start), int(line) if is_line else 0)


def entities_of(rows: Rows, path: str, at: int | None) -> list[Subject]:
    """Return the entities of a file as of a seq (None: the head), in the order of their ids; none of no file."""
    if not path:
        return []
    statement = sql.statement(at)
    bound = statement.bind(path)
    of_path = f"(n.path = {bound} or {IS_TEXT_OF} = {bound} or n.type = 'symbol' and {_OF_FILE} = {bound})"
    sql_text = f"select {COLUMNS} from {statement.node} n where {of_path} order by n.id"  # noqa: S608 - fixed names
    return [subject_of(row) for row in rows(sql_text, statement.params)]


def near_paths(rows: Rows, path: str) -> tuple[str, ...]:
    """Return the known files that are most like one of which nothing is known: those of the same name first."""
    known = [one for one in known_paths(rows) if one != path]
    name = path.rpartition("/")[2]
    same = [one for one in known if one.rpartition("/")[2] == name][:3]
    return tuple(same or near_ones(path, known))
