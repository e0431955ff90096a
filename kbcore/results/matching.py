"""Matching of outcomes with tests: by an id in the report, by what the test says runs it, by its file and name. Pure.

Runners name tests in their own ways: with dots, with the folders of a package, with a sentence for each ``describe``.
Names are therefore compared as the words in them, from the end. A test of source code matches where all words of its
qualified name do, and where what comes before them in the report agrees with the folders and the name of its file. Of
several tests the one with the most words in common is meant; where these are as many, none is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from kbcore.results.reported import ReportedOutcome

AUTOMATED_BY: Final = "automated_by"
"""The attribute of a test that names what runs it: a file, a class or a test, in the words of reports."""

_WORD: Final = re.compile(r"\w+")
_PARAMETERS: Final = re.compile(r"[\[({]")
_FIRST_ID: Final = re.compile(r"[\s\[(]*([^\s:\[\](),]+)")
_BEFORE_NAME: Final = re.compile(r"::|#")
_SCRIPTS: Final = frozenset({"js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx"})
"""Endings of the files whose tests have sentences as names: a bracket in one is a part of it."""
_IN_PACKAGES: Final = frozenset({"go", "rs"})
"""Endings of the files whose reports name a package, which need not be a folder of the repository."""
_NOT_IN_CRATES: Final = frozenset({"src", "lib", "main", "mod"})
"""Words of a path that are not in the names of modules of Rust."""
_FILE: Final = re.compile(r"[^\s]*\.(?:py|go|rs|java|kt|" + "|".join(sorted(_SCRIPTS)) + r")")
_MAX_WORDS: Final = 200
"""The words of a name that are compared, from its end."""


class KnownTest(msgspec.Struct, frozen=True):
    """A test of the branch. ``file`` is that of a test of source code, whose title is its qualified name."""

    id: str
    title: str
    file: str = ""
    automated_by: tuple[str, ...] = ()


class TestMatch(msgspec.Struct, frozen=True):
    """The tests that an outcome is of, or those between which it cannot be decided."""

    ids: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()


class _CodeTest(msgspec.Struct, frozen=True):
    """A test of source code: the words of its folder, and of its file without the ending."""

    id: str
    file: str
    ending: str
    folder: tuple[str, ...]
    module: tuple[str, ...]

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """Return the words that a report may have before its name; outside of Python and scripts, no file is."""
        return (self.module,) if self.ending in _SCRIPTS or self.ending == "py" else (self.module, self.folder)


class KnownTests:
    """The tests of a branch by the words of their names."""

    def __init__(self, tests: Iterable[KnownTest]) -> None:
        self._ids: set[str] = set()
        self._by_name: dict[tuple[str, ...], list[_CodeTest]] = {}
        self._by_title: dict[tuple[str, ...], list[str]] = {}
        self._automated: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for one in tests:
            self._ids.add(one.id)
            if one.file:
                known = _CodeTest(one.id, one.file, _ending(one.file), _folder(one.file), _module(one.file))
                self._by_name.setdefault(_words(one.title), []).append(known)
            else:
                self._by_title.setdefault(_words(one.title), []).append(one.id)
            for text in one.automated_by:
                words = _named_words(text)
                if words:
                    self._automated.setdefault(words[-1], []).append((words, one.id))

    def match(self, reported: ReportedOutcome) -> TestMatch:
        """Return the tests that an outcome is of.

        Those that are named by id or by ``automated_by``, and the one of source code; without any of these, the one
        with the name as its title.
        """
        named = [one for one in reported.ids if one in self._ids]
        first = _FIRST_ID.match(reported.name)
        if first and first[1] in self._ids:
            named.append(first[1])
        if self._automated:
            named += self._run_by(_whole_name(reported))
        of_code = self._of_code(reported)
        ids = tuple(dict.fromkeys([*named, *of_code.ids]))
        if ids or of_code.candidates:
            return TestMatch(ids) if ids else of_code
        return self._titled(reported)

    def unknown_ids(self, reported: ReportedOutcome) -> list[str]:
        """Return the ids that a report gives an outcome and that no test has."""
        return [one for one in reported.ids if one not in self._ids]

    def _run_by(self, words: Sequence[str]) -> list[str]:
        """Return the tests of which what they are automated by is in a name, whole."""
        found = []
        for at, word in enumerate(words, 1):
            for wanted, id_ in self._automated.get(word, ()):
                if tuple(words[max(0, at - len(wanted)) : at]) == wanted:
                    found.append(id_)
        return found

    def _of_code(self, reported: ReportedOutcome) -> TestMatch:
        """Return the test of source code that an outcome is of."""
        file, scope = _place(reported)
        for name, is_part in _names(reported.name):
            for words in _readings(scope, name):
                tests = [one for one in self._best(words, file) if not is_part or _has_parts(one, name)]
                if tests:
                    ids = tuple(sorted({one.id for one in tests}))
                    return TestMatch(ids) if len(ids) == 1 else TestMatch(candidates=ids)
        return TestMatch()

    def _best(self, words: tuple[str, ...], file: str) -> list[_CodeTest]:
        """Return the tests with the longest qualified name, and of these those with the most words in common."""
        for length in range(len(words), 0, -1):
            known = self._by_name.get(words[-length:], ())
            before = words[:-length]
            ranked = [
                (rank, one)
                for one in known
                if (rank := _file_rank(one, file) if file else _rank(one, before)) is not None
            ]
            if ranked:
                most = max(rank for rank, _ in ranked)
                return [one for rank, one in ranked if rank == most]
        return []

    def _titled(self, reported: ReportedOutcome) -> TestMatch:
        """Return the test without source code whose title is the name, alone or with what is around it."""
        for words in (_words(reported.name), _words(f"{reported.scope} {reported.name}")):
            ids = tuple(sorted(self._by_title.get(words, ()))) if words else ()
            if ids:
                return TestMatch(ids) if len(ids) == 1 else TestMatch(candidates=ids)
        return TestMatch()


def _rank(one: _CodeTest, before: tuple[str, ...]) -> int | None:
    """Return how many words before the name are those of the file's place; None where they contradict it."""
    ranks = []
    for place in one.places:
        common = _common_end(before, place)
        is_whole = common == min(len(before), len(place))
        if is_whole or (common and one.ending in _IN_PACKAGES):
            ranks.append(common)
    return max(ranks, default=None)


def _file_rank(one: _CodeTest, file: str) -> int | None:
    """Return how many parts of a path a file has in common with another one; None where they are not the same."""
    parts, others = file.split("/"), one.file.split("/")
    common = _common_end(parts, others)
    return common if common == min(len(parts), len(others)) else None


def _common_end(some: Sequence[str], others: Sequence[str]) -> int:
    """Return how many items at the end are the same in both."""
    count = 0
    for one, other in zip(reversed(some), reversed(others), strict=False):
        if one != other:
            break
        count += 1
    return count


def _has_parts(one: _CodeTest, name: str) -> bool:
    """Return whether tests of this kind have parts, or parameters, that a report adds to the name."""
    return one.ending == "go" if "/" in name else one.ending not in _SCRIPTS


def _names(name: str) -> Iterator[tuple[str, bool]]:
    """Yield a name, and without its parameters or parts where it has some: ``test_a[1-2]``, ``adds(int)[1]``, ``A/b``.

    With the second it is said that something was left out; of a name with parts the slash stays at its end.
    """
    yield name, False
    found = _PARAMETERS.search(name)
    if found and found.start():
        yield name[: found.start()], True
    head, slash, _ = name.partition("/")
    if slash and head:
        yield f"{head}/", True


def _readings(scope: str, name: str) -> Iterator[tuple[str, ...]]:
    """Yield the words that a name may be: with what is around it unless it begins with that, a sentence also alone."""
    around, own = _words(scope), _words(name)
    if not own:
        return
    if own[: len(around)] != around:
        yield around + own
    elif around:
        yield own
        return
    if not around or " " in name.strip():
        yield own


def _place(reported: ReportedOutcome) -> tuple[str, str]:
    """Return the file of an outcome and what is around its name: some reports have the file in the place of a class."""
    file, scope = reported.file.replace("\\", "/"), reported.scope
    if _FILE.fullmatch(scope):
        return file or scope.replace("\\", "/"), ""
    return file.removeprefix("./"), scope


def _whole_name(reported: ReportedOutcome) -> tuple[str, ...]:
    file, scope = _place(reported)
    return _module(file) + _words(scope) + _words(reported.name)


def _named_words(text: str) -> tuple[str, ...]:
    """Return the words of ``tests/test_a.py::TestA::test_b``, ``src/a.test.ts#a cart.adds`` or ``com.acme.ATest.b``."""
    head, *rest = _BEFORE_NAME.split(text.strip(), maxsplit=1)
    is_file = bool(rest) or _FILE.fullmatch(head) is not None
    return (_module(head) if is_file else _words(head)) + (_words(rest[0]) if rest else ())


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text)[-_MAX_WORDS:])


def _folder(path: str) -> tuple[str, ...]:
    return _words(path.rpartition("/")[0])


def _module(path: str) -> tuple[str, ...]:
    folder, _, name = path.rpartition("/")
    stem = name.rpartition(".")[0]
    words = _words(f"{folder}/{stem or name}")
    return tuple(one for one in words if one not in _NOT_IN_CRATES) if _ending(path) == "rs" else words


def _ending(path: str) -> str:
    return path.rpartition(".")[2].lower()
