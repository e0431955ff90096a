"""The entity at a line of a file, as the file is now: lines of symbols are not recorded."""

from __future__ import annotations

import shlex
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec

from kbcore.errors import NotFound
from kbcore.errors.remedies import by_front_end, kb
from kbcore.extract.code import extractor as code
from kbcore.extract.facts import Facts
from kbcore.git import worktree_content
from kbcore.git.worktree_content import Unfit
from kbcore.ids import worktree_path
from kbcore.model.graph import Node
from kbcore.query import sql
from kbcore.query.data_names import known_paths
from kbcore.query.subject import COLUMNS, Subject, find, subject_of
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.scan import found_at
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import pluralize
from kbcore.view.tables import IS_TEXT_OF, Rows
from kbcore.view.view import View

_OF_FILE: Final = "json_extract_string(n.attributes, '$.file')"
_WAS: Final = (
    "select 1 where exists (select 1 from any_node_history where id = $1) "
    "or exists (select 1 from link where $1 in (from_id, to_id))"
)


class AtPath(msgspec.Struct, frozen=True):
    """The entities of a file, or the one that is at a line of it.

    With ``is_around`` nothing is known of the file itself, and they are the components of the folder around it.
    """

    place: PlaceInFile
    subjects: tuple[Subject, ...]
    is_around: bool = False


def at_path(
    workspace: Workspace, view: View, text: str, seq: int | None, *, branch: str, start: str = "", is_now: bool = True
) -> AtPath | None:
    """Return the entities of the file that a text names, None where nothing is known of it, as of a seq (None: head).

    Lines are known with ``is_now``, and of the branch that is checked out; else all of the file is meant, and the place
    has no line. A path is taken from ``start``, a folder of the worktree, where something is known of it there, else
    from the top.

    Raises: ``NotFound`` for a line that the file does not have.
    """
    root = str(workspace.repo.worktree)
    has_lines = seq is None and is_now and _is_here(workspace, branch)
    for folder in dict.fromkeys((start, "")):
        place = place_in(text, root, folder)
        found = entities_of(view.rows, place.path, seq)
        if found and place.line and has_lines:
            found = _at_line(workspace, view, place, found)
        if found:
            return AtPath(place if has_lines else PlaceInFile(place.path), tuple(found))
    for folder in dict.fromkeys((start, "")):
        path = place_in(text, root, folder).path
        if around := components_around(view.rows, path, seq):
            return AtPath(PlaceInFile(path), tuple(around), is_around=True)
    return None


def no_entity_at(view: View, text: str, seq: int | None, *, start: str = "") -> NotFound | None:
    """Return the error for a folder, or for a path of which nothing is known as of a seq, with the nearest ones.

    None for a text that is or was an id, or that looks like no path.
    """
    if not text or view.rows(_WAS, [text]):
        return None
    known = known_paths(view.rows)
    for place in dict.fromkeys(place_in(text.rstrip("/"), "", folder).path for folder in (start, "")):
        if place in {"", "."} or any(path.startswith(f"{place}/") for path in known):
            return _folder(place, text)
    if not ("/" in text or "." in text.strip(".")):
        return None
    path = place_in(text, "").path
    was = "is" if seq is None else "was"
    at = "" if seq is None else f" at seq {seq}"
    message = f"Nothing {was} known of {in_quotes(text)}{at}: it {was} no id, and no entity {was} of such a file."
    if seq is not None and path in known:
        return NotFound(message, hint=f"{kb('show', path)} shows what is in it now, if it is there.")
    near = near_paths(view.rows, path)
    return NotFound(message, hint=is_it(near) if near else f"{kb('status')} counts the files that are read.")


def _folder(place: str, text: str) -> NotFound:
    glob = f"{place}/**" if place not in {"", "."} else "**"
    shell = f"`kb query --path {shlex.quote(glob)}` lists what is below it"
    tools = f'{{kb_query}} with `where` ["path={glob}"] lists what is below it'
    hint = f"{by_front_end(shell, tools)}. Name one of its files, or an entity."
    return NotFound(f"{in_quotes(text)} is a folder.", hint=hint)


def _at_line(workspace: Workspace, view: View, place: PlaceInFile, found: list[Subject]) -> list[Subject]:
    """Return the innermost symbol around a line, else the entity that begins last before it; all where none does."""
    wants = extractors_of(workspace)
    read = found_at(workspace.repo.worktree, wants, place.path)
    data = _content(workspace.repo.worktree, place.path)
    if read is None or data is None:
        return found
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    if place.line > lines and b"\0" not in data:
        hint = f"{kb('show', place.path)} shows all that is in it."
        has = f"{in_quotes(place.path)} has {pluralize(lines, 'line')}"
        raise NotFound(f"{has}: there is no line {place.line}.", hint=hint)
    if read.wanted.extractor is code.EXTRACTOR:
        symbols = code.lines_of_symbols(place.path, data, read.wanted.settings)
        around = [one for one, (first, last) in symbols.items() if first <= place.line <= last]
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
    want = next((one for one in extractors_of(workspace) if one.extractor is code.EXTRACTOR), None)
    data = _content(workspace.repo.worktree, path) if want and _is_here(workspace, branch) else None
    return code.lines_of_symbols(path, data, want.settings) if want and data is not None else {}


def _is_here(workspace: Workspace, branch: str) -> bool:
    return workspace.repo.has_worktree and workspace.head().branch == branch


def _content(root: Path, path: str) -> bytes | None:
    """Return the content of a file of the worktree, None where it cannot be read."""
    try:
        return worktree_content.read(str(root / path))[0]
    except (OSError, Unfit):
        return None


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
    return PlaceInFile(worktree_path(path if is_line else text, root, start), int(line) if is_line else 0)


def entities_of(rows: Rows, path: str, at: int | None) -> list[Subject]:
    """Return the entities of a file as of a seq (None: the head), in the order of their ids; none of no file."""
    if not path:
        return []
    statement = sql.statement(at)
    bound = statement.bind(path)
    of_path = f"(n.path = {bound} or {IS_TEXT_OF} = {bound} or n.type = 'symbol' and {_OF_FILE} = {bound})"
    sql_text = f"select {COLUMNS} from {statement.node} n where {of_path} order by n.id"  # noqa: S608 - fixed names
    return [subject_of(row) for row in rows(sql_text, statement.params)]


def components_around(rows: Rows, path: str, at: int | None) -> list[Subject]:
    """Return the components whose ``file`` is a path or else the nearest folder around it, in the order of their ids.

    The folder may be written with a slash at its end.
    """
    statement = sql.statement(at)
    folders = [path, *(str(one) for one in PurePosixPath(path).parents if one.name)]
    folder = f"rtrim({_OF_FILE}, '/')"
    has_file = f"n.type = 'component' and {folder} in (select unnest({statement.bind(folders)}))"
    sql_text = (
        f"select {COLUMNS} from {statement.node} n where {has_file} "  # noqa: S608 - fixed names
        f"qualify rank() over (order by length({folder}) desc) = 1 order by n.id"
    )
    return [subject_of(row) for row in rows(sql_text, statement.params)]


def near_paths(rows: Rows, path: str) -> tuple[str, ...]:
    """Return the known files that are most like one of which nothing is known: those of the same name first."""
    known = [one for one in known_paths(rows) if one != path]
    name = path.rpartition("/")[2]
    same = [one for one in known if one.rpartition("/")[2] == name][:3]
    return tuple(same or near_ones(path, known))
