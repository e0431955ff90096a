"""The answer of a sync: what it did, warnings for its authors, and the problems left in files it did not read.

All of it is about the named paths only; of the rest it says how much there is. Plain data, which needs no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors.remedies import for_shell
from kbcore.secrets import masked
from kbcore.store.answers import Outcome
from kbcore.sync.paths import is_named
from kbcore.text.globs import parents
from kbcore.text.problems import FileProblem
from kbcore.text.wording import is_or_are, pluralize, shortened, some_of

Located = tuple[str, FileProblem]
"""A problem with the path of its file."""

COUNTED: Final = "default_status"
"""The code of notes that JSON counts and does not list: one for every entity of a set that states no status."""

_STATES_STATUS: Final = frozenset({"markdown", "manifest"})
_ENDINGS: Final = 5
_GLOBS: Final = 12
_ENDING_CHARS: Final = 20
_NO_PLACE: Final = (
    "Where its files have no place for one, set `status` with a changeset, "
    "or another `statusDefault` of the type in .kb/schema/."
)


class UnresolvedLink(msgspec.Struct, frozen=True):
    """An unresolved edge as it is recorded, and what states it; its type is "" while that is not decided."""

    from_id: str
    type: str
    kind: str
    target: str
    source: str
    id: str
    """The end that `kb check` reports: the one that exists, else the first one."""

    @property
    def other_end(self) -> str:
        """Return the end that `kb check` does not report."""
        return self.target if self.id == self.from_id else self.from_id

    def as_json(self) -> dict[str, str]:
        """Return it in the shape of the contract; what looks like a secret is masked."""
        kind = {"kind": self.kind} if self.kind else {}
        shown = {"from": self.from_id, "type": self.type, **kind, "target": self.target}
        return {**{name: masked(one) for name, one in shown.items()}, "source": self.source}


def unresolved_words(link: Mapping[str, str]) -> str:
    """Return an unresolved link, in the shape of the contract, as a person reads it, with what states it."""
    name = ":".join(filter(None, (link["type"], link.get("kind")))) or "links to"
    return f"{link['from']} {name} {link['target']} (stated in {link['source']})"


class CountedNote(msgspec.Struct, frozen=True):
    """Notes of one code from files of one extractor: how many there are, and the first one."""

    code: str
    extractor: str
    count: int
    path: str
    line: int
    message: str
    hint: str


class SyncAnswer(msgspec.Struct, frozen=True):
    """The result of a sync, among the named paths.

    ``changed`` counts the files whose content or extractor is not what the state had recorded, and ``unread`` those
    of them that could not be read whole; ``bad`` counts every file that could not be when it was last read.
    ``doubted`` are gone or empty and were left alone, as they may be being saved; ``noted`` those whose content, or
    what was wrong with them, was noted in the record.
    """

    outcome: Outcome
    scanned: int
    changed: int
    removed: int
    unread: int
    bad: int
    problems: tuple[Located, ...]
    notes: tuple[CountedNote, ...]
    unresolved: tuple[UnresolvedLink, ...]
    problems_elsewhere: int
    unresolved_elsewhere: int
    doubted: tuple[str, ...] = ()
    noted: tuple[str, ...] = ()
    not_read: dict[str, int] = {}
    """Numbers of files in document folders that no extractor wants, by ending; of a sync of all files."""
    waiting_mentions: int = 0
    """Of the edges that it created, unresolved ones with which nothing is wrong (``tables.MAY_LACK_AN_END``)."""
    unresolved_created: int = 0
    """Of the edges that it created, the others that are unresolved."""

    @property
    def is_idle(self) -> bool:
        """Return whether there was nothing to do."""
        return not (self.changed or self.removed or self.outcome.applied or self.outcome.warnings or self.doubted)

    def as_json(self) -> dict[str, Any]:
        """Return the answer in the shape of the contract."""
        outcome = self.outcome
        listed = [one for one in self.problems if one[1].code != COUNTED]
        return {
            "branch": outcome.branch,
            "seq": outcome.seq,
            "dry_run": outcome.dry_run,
            "files": {
                "scanned": self.scanned,
                "changed": self.changed,
                "removed": self.removed,
                "bad": self.bad,
                "not_read": self.not_read,
            },
            "created": len(outcome.created),
            "updated": len(outcome.updated),
            "deleted": len(outcome.deleted),
            **({"renamed": outcome.renamed} if outcome.renamed else {}),
            "edges": msgspec.to_builtins(outcome.edges),
            "waiting_mentions": self.waiting_mentions,
            "unresolved": [one.as_json() for one in self.unresolved],
            "problems": [{"path": path, **msgspec.to_builtins(problem)} for path, problem in listed],
            "notes": msgspec.to_builtins(self.notes),
            "elsewhere": {"problems": self.problems_elsewhere, "unresolved": self.unresolved_elsewhere},
            "warnings": [for_shell(one) for one in outcome.warnings],
        }


def not_read_line(not_read: Mapping[str, int]) -> str:
    """Return how many files are among documents and are not read, with the most frequent endings; "" without any."""
    total = sum(not_read.values())
    if not total:
        return ""
    most = sorted(not_read.items(), key=lambda one: (-one[1], one[0]))
    named = some_of(
        [f"{number} {shortened(ending, _ENDING_CHARS) or 'without an ending'}" for ending, number in most], _ENDINGS
    )
    return f"{pluralize(total, 'file')} in the folders of documents {is_or_are(total)} not read: {named}."


def counted_notes(problems: Iterable[Located], extractors: Mapping[str, str]) -> tuple[CountedNote, ...]:
    """Return the notes among problems, counted by code and extractor, in the order of the first of each.

    ``extractors`` maps the path of a file to the name of the extractor that reads it.
    """
    groups: dict[tuple[str, str], list[Located]] = {}
    for path, problem in problems:
        if problem.severity == "note":
            groups.setdefault((problem.code, extractors.get(path, "")), []).append((path, problem))
    notes = []
    for (code, extractor), found in groups.items():
        path, first = found[0]
        hint = first.hint if code != COUNTED or extractor in _STATES_STATUS else _NO_PLACE
        notes.append(CountedNote(code, extractor, len(found), path, first.line, first.message, hint))
    return tuple(notes)


def divided(found: Iterable[Located], named: frozenset[str]) -> tuple[tuple[Located, ...], int]:
    """Return the problems of named files, and how many there are of other files."""
    kept, others = [], 0
    above = {folder for path in named for folder in parents(path)}
    for path, problem in found:
        # A folder that could not be listed matters to what is named below it.
        if is_named(path, named) or path in above:
            kept.append((path, problem))
        else:
            others += 1
    return tuple(kept), others


def globs_line(globs: Sequence[str]) -> str:
    """Return the globs of the files that the extractors read, as far as one line holds them."""
    if not globs:
        return "nowhere, as .kb/config.json says"
    more = f" and {len(globs) - _GLOBS} more, as .kb/config.json says" if len(globs) > _GLOBS else ""
    return ", ".join(globs[:_GLOBS]) + more
