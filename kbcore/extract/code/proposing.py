"""Proposed globs of the source code of a repository and of its tests, by the names of its files. Pure."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore.extract.code.languages import language_of
from kbcore.text.globs import common_folder, parents

_TEST_FOLDERS: Final = ("tests", "test", "__tests__", "spec")
_TEST_NAMES: Final = (
    (re.compile(r"test_.+"), "test_*{ending}"),
    (re.compile(r".+_test"), "*_test{ending}"),
    (re.compile(r".+\.test"), "*.test{ending}"),
    (re.compile(r".+\.spec"), "*.spec{ending}"),
    (re.compile(r".+Test"), "*Test{ending}"),
)
"""Names of files of tests without their endings, and the globs that mean them."""
_LEAST: Final = 2
"""Of fewer files, no settings are proposed."""
_MOST: Final = 20
"""Instead of more globs than these, there is one for each of the folders above."""


class CodeGlobs(msgspec.Struct, frozen=True):
    """The source files of a repository: globs of those without tests and of those with tests, and how many there are.

    ``languages`` has the names of the languages, the one with the most files first.
    """

    paths: tuple[str, ...]
    tests: tuple[str, ...]
    files: int
    languages: tuple[str, ...]


def globs_of_code(paths: Iterable[str]) -> CodeGlobs | None:
    """Return the globs that mean source files, by their folders and endings; None where too few are there.

    They begin as deep as the files lie: what a build or a package manager writes beside them is not meant.
    """
    languages: Counter[str] = Counter()
    plain, tests = set[_Found](), set[_Found]()
    for path in paths:
        language = language_of(path)
        if language is None:
            continue
        languages[language.name] += 1
        ending = posixpath.splitext(path)[1].lower()
        test = _of_tests(path, ending)
        if test:
            tests.add(test)
        else:
            plain.add((posixpath.dirname(path), f"*{ending}"))
    if languages.total() < _LEAST:
        return None
    names = tuple(name for name, _ in languages.most_common())
    return CodeGlobs(_globs(plain), _globs(tests), languages.total(), names)


_Found = tuple[str, str]
"""A folder, and the glob below it."""


def _of_tests(path: str, ending: str) -> _Found | None:
    """Return what means a file of tests, None for any other file."""
    *folders, name = path.split("/")
    for at, folder in enumerate(folders):
        if folder in _TEST_FOLDERS:
            return "/".join(folders[:at]), f"{folder}/**/*{ending}"
    stem = name[: len(name) - len(ending)]
    tail = next((glob.format(ending=ending) for pattern, glob in _TEST_NAMES if pattern.fullmatch(stem)), "")
    return ("/".join(folders), tail) if tail else None


def _globs(found: Iterable[_Found]) -> tuple[str, ...]:
    """Return the globs of what was found: one for two levels of folders, of too many one for the first level."""
    found = sorted(found)
    for depth in (2, 1, 0):
        groups: dict[tuple[str, ...], list[str]] = {}
        for folder, tail in found:
            groups.setdefault((tail, *folder.split("/")[:depth]), []).append(folder)
        if len(groups) <= _MOST or not depth:
            break
    bases = {(common_folder(folders), tail): folders for (tail, *_), folders in groups.items()}
    return tuple(
        sorted(
            _glob(folder, tail, is_top=not any(folders))
            for (folder, tail), folders in bases.items()
            if not any((above, tail) in bases for above in parents(folder) if above)
        )
    )


def _glob(folder: str, tail: str, *, is_top: bool) -> str:
    if folder:
        return f"{folder}/**/{tail}"
    return tail if is_top else f"**/{tail}"
