"""The entities of a file or of the files of a glob: those that it states, and symbols that are said to be in it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kbcore.query import sql
from kbcore.query.meaning import path_of
from kbcore.query.subject import COLUMNS, Subject, subject_of
from kbcore.text.globs import glob_set
from kbcore.text.suggest import near_ones
from kbcore.view.tables import Rows

_SIGNS: Final = frozenset("*?[")
_OF_FILE: Final = "json_extract_string(n.attributes, '$.file')"
_PATHS: Final = """
select path from node where path <> '' union select path from node_history where path <> ''
union select json_extract_string(attributes, '$.file') from node where type = 'symbol'
  and json_type(attributes, '$.file') = 'VARCHAR'
union select path from source
"""


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
    """Return the entities of a file as of a seq (None: the head), in the order of their ids."""
    statement = sql.statement(at)
    of_path = f"(n.path = {statement.bind(path)} or n.type = 'symbol' and {_OF_FILE} = {statement.bind(path)})"
    sql_text = f"select {COLUMNS} from {statement.node} n where {of_path} order by n.id"  # noqa: S608 - fixed names
    return [subject_of(row) for row in rows(sql_text, statement.params)]


def known_paths(rows: Rows) -> list[str]:
    """Return the files that entities are of or were of, in order."""
    return sorted(path for (path,) in rows(_PATHS, []))


def near_paths(rows: Rows, path: str) -> tuple[str, ...]:
    """Return the known files that are most like one of which nothing is known: those of the same name first."""
    known = known_paths(rows)
    name = path.rpartition("/")[2]
    same = [one for one in known if one.rpartition("/")[2] == name][:3]
    return tuple(same or near_ones(path, known))


def paths_like(rows: Rows, globs: Sequence[str]) -> tuple[str, ...]:
    """Return the known files that globs mean; a glob without signs means a file, or all below a folder."""
    wanted = [one for glob in globs for one in _with_folders(glob)]
    found = glob_set(tuple(wanted))
    return tuple(path for path in known_paths(rows) if found.first(path) is not None)


def _with_folders(glob: str) -> list[str]:
    plain = glob.removeprefix("./").rstrip("/")
    if not plain or plain == ".":
        return ["**"]
    return [plain] if not _SIGNS.isdisjoint(plain) else [plain, f"{plain}/**"]
