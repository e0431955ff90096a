"""The entities of a file or of the files of a glob: those that it states, and symbols that are said to be in it."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.query import sql
from kbcore.query.known import known_paths
from kbcore.query.meaning import path_of
from kbcore.query.subject import COLUMNS, Subject, subject_of
from kbcore.text.suggest import near_ones
from kbcore.view.tables import IS_TEXT_OF, Rows

_OF_FILE: Final = "json_extract_string(n.attributes, '$.file')"


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
