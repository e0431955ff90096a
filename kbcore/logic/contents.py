"""The contents of a workspace without an engine: its text, files and predicates, and the removal of whole parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from kbcore.logic.clauses import (
    MARK,
    ChangedClauses,
    Clause,
    ClauseChange,
    Clauses,
    ClauseStore,
    count_clauses,
    declared_by,
)


class ImportedFile(msgspec.Struct, frozen=True):
    """A file of a workspace: its path, its clauses, and when it was imported, in milliseconds since 1970."""

    file: str
    clauses: int
    added_at: int
    digest: str


def snapshot(clauses: Clauses) -> str:
    """Return the text of all clauses in their order, each as it was typed."""
    return "\n".join(one.text for one in clauses.clauses if one.kind != MARK)


def count(clauses: Clauses) -> int:
    """Count the clauses and directives."""
    return count_clauses(clauses.clauses)


class Symbols(msgspec.Struct, frozen=True):
    """The predicates of a workspace as ``name/arity``, sorted; ``declared`` are those that have no clause."""

    names: list[str]
    declared: list[str]


def symbols(clauses: Clauses) -> Symbols:
    """Return the predicates that have clauses or are declared by a directive."""
    defined = {one.name for one in clauses.clauses if one.kind == "clause"}
    declared = {name for one in clauses.clauses for name in declared_by(one)}
    return Symbols(sorted(defined | declared), sorted(declared - defined))


def files(clauses: Clauses) -> list[ImportedFile]:
    """Return the imported files, in the order of their import."""
    found: dict[str, ImportedFile] = {}
    for one in clauses.clauses:
        if not one.file:
            continue
        known = found.get(one.file) or ImportedFile(one.file, 0, one.added_at, "")
        found[one.file] = msgspec.structs.replace(
            known,
            clauses=known.clauses + (one.kind != MARK),
            digest=one.key if one.kind == MARK else known.digest,
        )
    return [*found.values()]


def remove_file(store: ClauseStore, file: str) -> tuple[ChangedClauses, int]:
    """Remove what came from a file, as one record; return it and the number of clauses. Raises: as ``change``."""
    return _remove(store, f"Unimport {file}", lambda clauses: (one for one in clauses.clauses if one.file == file))


def reset(store: ClauseStore) -> tuple[ChangedClauses, int]:
    """Remove everything, as one record; return it and the number of clauses. Raises: as ``change``."""
    return _remove(store, "Reset the workspace", lambda clauses: clauses.clauses)


def _remove(
    store: ClauseStore, message: str, chosen: Callable[[Clauses], Iterable[Clause]]
) -> tuple[ChangedClauses, int]:
    removed = 0

    def plan(clauses: Clauses) -> ClauseChange:
        nonlocal removed
        gone = [*chosen(clauses)]
        removed = count_clauses(gone)
        return ClauseChange(removed=[one.id for one in gone])

    return store.change(plan, message=message), removed
