"""What a sync answers: what it did, what its authors should know, and what stays wrong in files it did not read.

All of it speaks of the named paths only; of the rest it says how much there is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.answers import Outcome
from kbcore.extract.facts import FileProblem, Severity
from kbcore.model import NoteOnFile, Statement
from kbcore.sync.paths import is_named
from kbcore.view.database import among
from kbcore.view.tables import SOURCE, source_of
from kbcore.view.view import View

Located = tuple[str, FileProblem]
"""A problem with the path of its file."""

COUNTED: Final = "default_status"
"""The code of notes that JSON counts and does not list: one for every entity of a set that states no status."""

_statements: Final = msgspec.json.Decoder(tuple[Statement, ...])
_STATES_STATUS: Final = frozenset({"markdown", "manifest"})
_NO_PLACE: Final = (
    "Where its files have no place for one, set `status` with a changeset, "
    "or another `statusDefault` of the type in .kb/schema/."
)


class CountedNote(msgspec.Struct, frozen=True):
    """Notes of one code from files of one extractor: how many there are, and the first one."""

    code: str
    extractor: str
    count: int
    path: str
    line: int
    message: str
    hint: str


class Remains(msgspec.Struct, frozen=True):
    """What the state says of files: what is wrong in them, which could not be read whole, and open links."""

    problems: tuple[Located, ...]
    stale: tuple[str, ...]
    unresolved: tuple[tuple[str, str, str], ...]


class SyncAnswer(msgspec.Struct, frozen=True):
    """What a sync came to, among the named paths.

    ``changed`` counts the files whose content or extractor is not what the state had taken in, and ``unread`` those
    of them that could not be read whole; ``bad`` counts every file that could not be when it was last read.
    """

    outcome: Outcome
    scanned: int
    changed: int
    removed: int
    unread: int
    bad: int
    problems: tuple[Located, ...]
    notes: tuple[CountedNote, ...]
    unresolved: tuple[tuple[str, str, str], ...]
    problems_elsewhere: int
    unresolved_elsewhere: int

    @property
    def is_quiet(self) -> bool:
        """Tell whether there was nothing to do, and nothing needs to be said."""
        is_idle = not (self.changed or self.removed or self.outcome.applied or self.outcome.warnings)
        return is_idle and not (self.bad or self.problems or self.notes or self.unresolved)

    def as_json(self) -> dict[str, Any]:
        """Return the answer in the shape of the contract."""
        outcome = self.outcome
        listed = [one for one in self.problems if one[1].code != COUNTED]
        return {
            "branch": outcome.branch,
            "seq": outcome.seq,
            "dry_run": outcome.dry_run,
            "files": {"scanned": self.scanned, "changed": self.changed, "removed": self.removed, "bad": self.bad},
            "created": len(outcome.created),
            "updated": len(outcome.updated),
            "deleted": len(outcome.deleted),
            "edges": msgspec.to_builtins(outcome.edges),
            "unresolved": [dict(zip(("from", "target", "source"), one, strict=True)) for one in self.unresolved],
            "problems": [{"path": path, **msgspec.to_builtins(problem)} for path, problem in listed],
            "notes": msgspec.to_builtins(self.notes),
            "elsewhere": {"problems": self.problems_elsewhere, "unresolved": self.unresolved_elsewhere},
            "warnings": list(outcome.warnings),
        }


def counted_notes(problems: Iterable[Located], extractors: Mapping[str, str]) -> tuple[CountedNote, ...]:
    """Return the notes among problems, counted by code and extractor, in the order of the first of each.

    ``extractors`` maps the path of a file to the name of the extractor that reads it.
    """
    groups: dict[tuple[str, str], list[Located]] = {}
    for path, problem in problems:
        if problem.severity == "note":
            groups.setdefault((problem.code, extractors.get(path, "")), []).append((path, problem))
    counted = []
    for (code, extractor), found in groups.items():
        path, first = found[0]
        hint = first.hint if code != COUNTED or extractor in _STATES_STATUS else _NO_PLACE
        counted.append(CountedNote(code, extractor, len(found), path, first.line, first.message, hint))
    return tuple(counted)


def remains(view: View, paths: Collection[str] | None = None) -> Remains:
    """Return what a state says of the files that it has taken in, or of those at these paths."""
    return Remains(_known_problems(view, paths), stale_sources(view, paths), unresolved_links(view, paths))


def divided(found: Iterable[Located], named: Sequence[str]) -> tuple[tuple[Located, ...], int]:
    """Return the problems of named files, and how many there are of other files."""
    kept, others = [], 0
    for path, problem in found:
        # A folder that could not be listed matters to what is named below it.
        if is_named(path, named) or any(is_named(one, [path]) for one in named):
            kept.append((path, problem))
        else:
            others += 1
    return tuple(kept), others


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
