"""Files as the state of a branch has them: their problems, those not read completely, and unresolved links."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import msgspec

from kbcore.model.graph import Link, NoteOnFile, SyncedFile
from kbcore.sync.answer import Located, UnresolvedLink
from kbcore.text.problems import FileProblem, Severity
from kbcore.view.database import among
from kbcore.view.tables import MAY_LACK_AN_END, SOURCE, may_lack_an_end, source_of
from kbcore.view.view import View


class FileStatus(msgspec.Struct, frozen=True):
    """Files in the state: their problems, those not read completely, and unresolved links."""

    problems: tuple[Located, ...]
    stale: tuple[str, ...]
    unresolved: tuple[UnresolvedLink, ...]


NOTHING_KNOWN: Final = FileStatus((), (), ())
"""The status of an unread state."""


def file_status(view: View, paths: Collection[str] | None = None) -> FileStatus:
    """Return what a state has of the files that it has recorded, or of those at these paths."""
    return FileStatus(_known_problems(view, paths), stale_sources(view, paths), unresolved_links(view, paths))


def stale_sources(view: View, paths: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the files, in order, that could not be read whole the last time: facts known from them may be old.

    ``paths`` limits the question, for example to the owners of the entities that are to be shown.
    """

    def is_stale(source: SyncedFile) -> bool:
        return not source.is_ok and (paths is None or source.path in paths)

    return tuple(sorted(path for (path,) in view.cells("source", ["path"], _at("not is_ok and path", paths), is_stale)))


def unresolved_links(view: View, paths: Collection[str] | None = None) -> tuple[UnresolvedLink, ...]:
    """Return the unresolved links in order; ``paths`` limits their sources.

    A link in a text to a page that is no entity is none of them.
    """

    def waits(link: Link) -> bool:
        return (
            not link.is_resolved and not may_lack_an_end(link) and (paths is None or link.statements[0].source in paths)
        )

    columns = ("id", "from_id", "type", "kind", "to_id", "source")
    links = view.cells("link", columns, _at(f"not is_resolved and not {MAY_LACK_AN_END} and source", paths), waits)
    there = _existing(view, {end for _, from_id, _, _, to_id, _ in links for end in (from_id, to_id)})
    return tuple(
        UnresolvedLink(
            from_id, type_, kind, to_id, source, to_id if to_id in there and from_id not in there else from_id
        )
        for _, from_id, type_, kind, to_id, source in sorted(links, key=lambda link: (link[1], link[4], *link[2:]))
    )


def _existing(view: View, ids: Collection[str]) -> set[str]:
    """Return those of these ids that entities have."""
    condition, params = among(sorted(ids))
    return {key for (key,) in view.cells("node", ["id"], (f"id {condition}", params), lambda node: node.id in ids)}


def _at(column: str, paths: Collection[str] | None) -> tuple[str, list[Any]]:
    """Return the condition that a column is one of these paths, or is there at all (None), and its parameters."""
    condition, params = ("is not null", []) if paths is None else among(sorted(paths) or [""])
    return f"{column} {condition}", params


def _known_problems(view: View, paths: Collection[str] | None) -> tuple[Located, ...]:
    """Return what was found wrong in files when they were last read, in order of path."""

    def has_some(source: SyncedFile) -> bool:
        return bool(source.problems) and (paths is None or source.path in paths)

    rows = view.cells("source", list(SOURCE), _at("problems::varchar <> '[]' and path", paths), has_some)
    return tuple(
        (source.path, FileProblem(one.line, one.code, one.message, one.hint, _severity(one), id=one.id))
        for source in sorted(map(source_of, rows), key=lambda source: source.path)
        for one in source.problems
    )


def _severity(note: NoteOnFile) -> Severity:
    """Return how bad a noted problem is; a word that this version does not know counts as an error."""
    return "warning" if note.severity == "warning" else "error"
