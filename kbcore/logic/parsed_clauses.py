"""Clauses as an engine has read them out of a text, and the outcome of adding or removing each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kbcore.limits import MAX_CLAUSE_CHARS
from kbcore.logic.clauses import ChangedClauses, Clause, NewClause
from kbcore.logic.findings import reason
from kbcore.logic.source import BranchSource
from kbcore.model.request_reader import kind_of

_SHOWN: Final = 50
_CUT_OFF: Final = "end_of_file"
"""Begins the names of the syntax errors of a text that ends too early."""


class ClauseOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one clause. ``line`` counts from 1 in the text that it came with."""

    status: Literal["success", "error"]
    clause: str
    id: str = ""
    message: str = ""
    line: int = 0


class ClauseOutcomes(msgspec.Struct, frozen=True):
    """The outcome of each clause of a request, in the order of the input, and the record of it."""

    outcomes: tuple[ClauseOutcome, ...]
    changed: ChangedClauses

    @property
    def succeeded(self) -> int:
        """Count those that succeeded."""
        return sum(one.status == "success" for one in self.outcomes)


class ParsedClause(msgspec.Struct, frozen=True):
    """A clause or a goal as the engine read it: its text, line and key, or what is wrong with it.

    ``is_open``: the text that it was read from ends without its full stop.
    """

    text: str
    line: int
    key: str = ""
    kind: str = ""
    name: str = ""
    error: str = ""
    is_open: bool = False


def unusable(text: Any) -> list[ParsedClause]:
    """Return an item with an error for what is no clause; none for a text that may hold one."""
    if not isinstance(text, str):
        error = f"A clause is a text, not {kind_of(text)}."
        return [ParsedClause(msgspec.json.encode(text).decode()[:_SHOWN], 1, error=error)]
    return [] if text.strip() else [no_clause(text)]


def no_clause(text: str) -> ParsedClause:
    """Return the item of a text that holds no clause."""
    return ParsedClause(text, 1, error="There is no clause in this text.")


def digest_of_text(text: str) -> str:
    """Return the digest of a text: a file, of which a change is noticed by it, or a term, which it is the key of."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def parsed_clause(text: str, found: Mapping[str, Any]) -> ParsedClause:
    """Return a clause of a text as an engine has read it, by the reply of the engine."""
    piece, line = text[found["start"] : found["end"]], found["line"]
    if not found.get("stop"):  # the layout after the full stop may be among it
        piece = piece.strip()
    if "message" in found:
        return ParsedClause(piece, line, error=reason(found), is_open=found.get("name", "").startswith(_CUT_OFF))
    if len(piece) > MAX_CLAUSE_CHARS:
        return ParsedClause(
            piece, line, error=f"The clause has {len(piece):,} characters; {MAX_CLAUSE_CHARS:,} are allowed."
        )
    if "\0" in piece:
        return ParsedClause(piece, line, error="The clause holds a NUL character, which no record keeps.")
    stop = found["stop"]
    return ParsedClause(
        piece + stop, line, digest_of_text(found["key"]), found["kind"], found["name"], is_open=bool(stop)
    )


def new_clause(item: ParsedClause, *, file: str = "") -> NewClause:
    """Return the clause to be recorded; ``file`` is the one that it was imported from, "" for none."""
    kind: Any = item.kind
    return NewClause(text=item.text, key=item.key, kind=kind, name=item.name, file=file, line=item.line if file else 0)


def first_variants(
    items: Sequence[ParsedClause], clauses: Sequence[Clause], keys: Mapping[str, str]
) -> list[Clause | None]:
    """Return for each item the first clause that is a variant of it, each clause once; None where there is none.

    ``keys`` has by id the keys of clauses whose record has another one than their text.
    """
    by_key: dict[str, list[Clause]] = {one.key: [] for one in items}
    for one in clauses:
        key = keys.get(one.id, one.key)
        if key in by_key:
            by_key[key].append(one)
    left = {key: iter(found) for key, found in by_key.items()}
    return [next(left[one.key], None) if one.key else None for one in items]


def added_before(items: Sequence[ParsedClause], source: BranchSource, changed: ChangedClauses) -> ClauseOutcomes:
    """Return the outcome of each clause of a change that was made before: those of its record were added."""
    added = frozenset(changed.ids)
    left = [one for one in source.clauses.read(changed.seq).clauses if one.id in added]
    outcomes = []
    for item in items:
        if left and left[0].text == item.text:
            outcomes.append(ClauseOutcome("success", item.text, id=left.pop(0).id, line=item.line))
        else:
            message = item.error or "It was not added when this change was made."
            outcomes.append(ClauseOutcome("error", item.text, message=message, line=item.line))
    return ClauseOutcomes(tuple(outcomes), changed)


def failed(item: ParsedClause) -> ClauseOutcome:
    """Return the outcome of a clause that cannot be added."""
    return ClauseOutcome("error", item.text, message=item.error, line=item.line)


def retracted(item: ParsedClause, found: Clause | None) -> ClauseOutcome:
    """Return the outcome of the removal of a clause; ``found`` is the one that was removed, None for none."""
    if found is not None:
        return ClauseOutcome("success", item.text, id=found.id, line=item.line)
    message = item.error or "No clause of the workspace is a variant of this one."
    return ClauseOutcome("error", item.text, message=message, line=item.line)
