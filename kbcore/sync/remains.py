"""What the state of a branch says of files: what is wrong in them, what could not be read whole, and open links."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from kbcore.extract.facts import FileProblem, Severity
from kbcore.model import NoteOnFile, Statement
from kbcore.sync.answer import Located
from kbcore.view.database import among
from kbcore.view.tables import SOURCE, source_of
from kbcore.view.view import View

_statements: Final = msgspec.json.Decoder(tuple[Statement, ...])


class Remains(msgspec.Struct, frozen=True):
    """What the state says of files: what is wrong in them, which could not be read whole, and open links."""

    problems: tuple[Located, ...]
    stale: tuple[str, ...]
    unresolved: tuple[tuple[str, str, str], ...]


def remains(view: View, paths: Collection[str] | None = None) -> Remains:
    """Return what a state says of the files that it has taken in, or of those at these paths."""
    return Remains(_known_problems(view, paths), stale_sources(view, paths), unresolved_links(view, paths))


def stale_sources(view: View, paths: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the files, in order, that could not be read whole the last time: facts known from them may be old.

    ``paths`` limits the question, for example to the owners of the entities that are to be shown.
    """
    condition, params = _at(paths)
    rows = view.rows(f"select path from source where not is_ok and path {condition} order by path", params)  # noqa: S608
    return tuple(row[0] for row in rows)


def unresolved_links(view: View, paths: Collection[str] | None = None) -> tuple[tuple[str, str, str], ...]:
    """Return the links that wait for an end, as (from, target, source), in order; ``paths`` limits their sources."""
    condition, params = _at(paths)
    sql = (
        "select from_id, to_id, source, statements, from_id in (select id from node), to_id in (select id from node) "  # noqa: S608
        f"from link where not stands and source {condition} order by from_id, to_id, type, source"
    )
    found = []
    for from_id, to_id, source, statements, has_from, has_to in view.rows(sql, params):
        # A bare link may stand the other way round than its document says it.
        said = {one.said for one in _statements.decode(statements) if one.source == source}
        is_turned = to_id in said if said - {""} else has_to and not has_from
        found.append((to_id, from_id, source) if is_turned else (from_id, to_id, source))
    return tuple(found)


def _at(paths: Collection[str] | None) -> tuple[str, list[Any]]:
    """Return the condition that a column is one of these paths, or is there at all (None), and its parameters."""
    return ("is not null", []) if paths is None else among(sorted(paths) or [""])


def _known_problems(view: View, paths: Collection[str] | None) -> tuple[Located, ...]:
    """Return what was found wrong in files when they were last read, in order of path."""
    condition, params = _at(paths)
    sql = f"select {', '.join(SOURCE)} from source where problems::varchar <> '[]' and path {condition} order by path"  # noqa: S608
    rows = view.rows(sql, params)
    return tuple(
        (source.path, FileProblem(one.line, one.code, one.message, one.hint, _severity(one)))
        for source in map(source_of, rows)
        for one in source.problems
    )


def _severity(note: NoteOnFile) -> Severity:
    """Return how bad a noted problem is; a word that this version does not know counts as an error."""
    return "warning" if note.severity == "warning" else "error"
