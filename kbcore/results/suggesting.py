"""Edges that reports make likely: proposed with the command that states them, and never stated.

A property of a test in a report may name the requirement that the test verifies.

That lines of a symbol ran shows that some test runs it, not which one and not what for. A test is taken for the one
that ran it where the report names the test, where the same command has the results of a single test, or where the
symbol implements a requirement that the test verifies.
"""

from __future__ import annotations

import os
import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.errors import Problem
from kbcore.errors.remedies import kb
from kbcore.model.verdict import REQUIREMENT, TEST, VERIFIED_BY
from kbcore.results.reported import CoveredLines
from kbcore.view.tables import IS_OF_CODE, Rows

COVERED_BY: Final = "covered_by"
IMPLEMENTS: Final = "implements"
MAX_SUGGESTIONS: Final = 200
"""Suggestions of one answer; the rest is counted."""
MAX_UNKNOWN: Final = 10
"""Names of no requirement that an answer has."""
_REQUIREMENTS: Final = f"select id from node where type = '{REQUIREMENT}'"  # noqa: S608 - a constant
_SYMBOLS: Final = f"""
select path, id from node where type = 'symbol' and {IS_OF_CODE}
  and json_extract_string(attributes, '$.kind') in ('function', 'method') order by id
"""  # noqa: S608 - constants
_EDGES: Final = f"""
select l.type, l.from_id, l.to_id from link l join node a on a.id = l.from_id join node b on b.id = l.to_id
where l.is_resolved and (l.type = '{COVERED_BY}' and b.type = '{TEST}'
  or l.type = '{IMPLEMENTS}' and b.type = '{REQUIREMENT}'
  or l.type = '{VERIFIED_BY}' and a.type = '{REQUIREMENT}' and b.type = '{TEST}')
order by 1, 2, 3
"""  # noqa: S608 - constants

Lines = Mapping[str, tuple[int, int]]
"""The first and the last line of each symbol of a file, by its id; an outer one is before those in it."""


class Suggestion(msgspec.Struct, frozen=True):
    """An edge that may hold, and the reason."""

    type: str
    from_id: str
    to_id: str
    reason: str

    @property
    def command(self) -> str:
        """Return the command that states the edge, as a remedy has it."""
        return kb("link", self.from_id, self.type, self.to_id)


class Suggestions(msgspec.Struct, frozen=True):
    """The first suggestions, how many there are, the symbols that ran, and the files that no symbol is known of.

    ``unknown`` are the first names in reports that are meant as requirements and are none; ``fault`` says why no source
    file can be read.
    """

    first: tuple[Suggestion, ...] = ()
    count: int = 0
    symbols: int = 0
    unknown_files: int = 0
    unknown: tuple[str, ...] = ()
    fault: Problem | None = None

    def __add__(self, other: Suggestions) -> Suggestions:
        """Return both, these first."""
        return Suggestions(
            (*self.first, *other.first)[:MAX_SUGGESTIONS],
            self.count + other.count,
            self.symbols + other.symbols,
            self.unknown_files + other.unknown_files,
            (*self.unknown, *other.unknown),
            self.fault or other.fault,
        )


class _Graph:
    """The edges between symbols, requirements and tests."""

    def __init__(self, rows: Rows) -> None:
        self.tests_of_symbol: dict[str, set[str]] = defaultdict(set)
        self.requirements_of_symbol: dict[str, set[str]] = defaultdict(set)
        self.tests_of_requirement: dict[str, set[str]] = defaultdict(set)
        self.requirements_of_test: dict[str, set[str]] = defaultdict(set)
        for type_, from_id, to_id in rows(_EDGES, []):
            if type_ == COVERED_BY:
                self.tests_of_symbol[from_id].add(to_id)
            elif type_ == IMPLEMENTS:
                self.requirements_of_symbol[from_id].add(to_id)
            else:
                self.tests_of_requirement[from_id].add(to_id)
                self.requirements_of_test[to_id].add(from_id)


def suggest_verified(rows: Rows, named: Collection[tuple[str, str]]) -> Suggestions:
    """Return the edges from requirements to the tests whose reports name them, those that there are left out."""
    known = {id_ for (id_,) in rows(_REQUIREMENTS, [])}
    tests_of = _Graph(rows).tests_of_requirement
    reason = "a property in the report names it"
    found = [
        Suggestion(VERIFIED_BY, key, test, reason)
        for key, test in sorted(named)
        if key in known and test not in tests_of[key]
    ]
    unknown = sorted({key for key, _ in named} - known)
    return Suggestions(tuple(found[:MAX_SUGGESTIONS]), len(found), unknown=tuple(unknown[:MAX_UNKNOWN]))


def suggest(
    rows: Rows,
    covered: Iterable[CoveredLines],
    lines_of: Callable[[str], Lines],
    *,
    root: str,
    tests_named: Callable[[str], Collection[str]],
    run: Collection[str],
) -> Suggestions:
    """Return the edges that reports of coverage make likely, those that there are already left out.

    ``lines_of`` returns the lines of the symbols of a file as it is now; ``tests_named`` the tests that a name in a
    report means; ``run`` are the tests of which the same command has results.
    """
    symbols: dict[str, set[str]] = defaultdict(set)
    for path, id_ in rows(_SYMBOLS, []):
        symbols[path].add(id_)
    known, graph = _KnownFiles(symbols), _Graph(rows)
    ran_by: dict[str, set[str]] = defaultdict(set)
    unknown: set[str] = set()
    lines_in: dict[str, Lines] = {}
    only = set(run) if len(run) == 1 else set()
    for one in covered:
        path = known.path_of(one, root)
        if not path:
            unknown.add(one.file)
            continue
        if path not in lines_in:
            lines_in[path] = lines_of(path)
        tests = set(tests_named(one.test)) if one.test else only
        for id_ in _running(lines_in[path], one.lines):
            if id_ in symbols[path]:
                ran_by[id_] |= tests
    found = [one for id_ in sorted(ran_by) for one in _of_symbol(id_, ran_by[id_], graph, run)]
    return Suggestions(tuple(found[:MAX_SUGGESTIONS]), len(found), len(ran_by), len(unknown))


def _of_symbol(id_: str, tests: Collection[str], graph: _Graph, run: Collection[str]) -> Iterator[Suggestion]:
    """Yield the edges of a symbol that ran."""
    covered_by, implements = graph.tests_of_symbol[id_], graph.requirements_of_symbol[id_]
    for test in sorted({*tests} - covered_by):
        yield Suggestion(COVERED_BY, id_, test, f"{test} ran it")
    if not tests:
        for requirement in sorted(implements):
            for test in sorted(graph.tests_of_requirement[requirement] - covered_by):
                if not run or test in run:
                    yield Suggestion(COVERED_BY, id_, test, f"it ran, and {test} verifies {requirement}")
    for test in sorted({*tests} | covered_by):
        for requirement in sorted(graph.requirements_of_test[test] - implements):
            yield Suggestion(IMPLEMENTS, id_, requirement, f"{test}, which ran it, verifies {requirement}")


def _running(lines: Lines, ran: Collection[int]) -> Iterator[str]:
    """Yield the symbols of whose own body a line ran; the first line of a definition runs where it is defined."""
    innermost: dict[int, str] = {}
    for id_, (first, last) in lines.items():  # an outer one comes before those in it
        innermost |= dict.fromkeys(range(first, last + 1), id_)
    begins = {first for first, _ in lines.values()}
    yield from sorted({innermost[line] for line in ran if line in innermost and line not in begins})


class _KnownFiles:
    """The files whose symbols are known, also by the ends of their paths."""

    def __init__(self, paths: Collection[str]) -> None:
        self._paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            self._by_name[posixpath.basename(path)].append(path)

    def path_of(self, one: CoveredLines, root: str) -> str:
        """Return the file that a report means, "" where none is known by that path, or several are."""
        named = one.file.replace("\\", "/")
        for folder in ("", *one.folders):
            path = posixpath.normpath(posixpath.join(folder.replace("\\", "/"), named))
            path = os.path.relpath(path, root) if path.startswith(f"{root}/") else path
            if path in self._paths:
                return path
        name = posixpath.normpath(named).lstrip("/")
        ending = [path for path in self._by_name[posixpath.basename(name)] if path.endswith(f"/{name}")]
        return ending[0] if len(ending) == 1 else ""


def as_json(found: Suggestions, words: Callable[[str], str]) -> dict[str, Any]:
    """Return suggestions as JSON; ``words`` puts a command into those of the front end."""
    shown = [
        {"type": one.type, "from": one.from_id, "to": one.to_id, "reason": one.reason, "command": words(one.command)}
        for one in found.first
    ]
    return {
        "count": found.count,
        "symbols": found.symbols,
        "unknown_files": found.unknown_files,
        "unknown_requirements": list(found.unknown),
        "fault": found.fault and {**found.fault.as_json(), "hint": words(found.fault.hint)},
        "first": shown,
    }
