"""The files of reports: those that a command names, those that the settings mean, and those that nobody names."""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidReport, LimitExceeded, Problem, of_problems
from kbcore.results.reading import report_of
from kbcore.results.reported import ReportFault
from kbcore.store.workspace import Workspace
from kbcore.sync.detecting import reader
from kbcore.sync.walk import FolderWalk
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import fixed_part, glob_fault, glob_set, matches

_NOT_FOUND: Final = "not_found"
_SIGNS: Final = frozenset("*?[")
_HINT: Final = "Paths and globs are taken from the folder that the command runs in; run the tests first."


_OF_REPOSITORY: Final = "A glob in quotes means files of the repository; one without quotes is expanded by the shell."
_ENDINGS: Final = frozenset({".xml", ".tap", ".info", ".lcov"})
_FOR_TESTS: Final = frozenset({"testdata", "test-data", "test_data", "fixtures", "node_modules", "vendor"})
"""Folders whose files are data of tests, or of others."""
_MOST_LOOKED_AT: Final = 200
_BEGINNING_BYTES: Final = 4 * limits.KIB


class ReportFile(msgspec.Struct, frozen=True, order=True):
    """A file: its absolute path, and the words by which answers name it."""

    path: str
    shown: str


def named_reports(texts: Sequence[str], start: Path, root: Path, *, may_lack: bool = False) -> list[ReportFile]:
    """Return the files that paths and globs mean, each once; both are taken from the folder ``start``.

    With ``may_lack`` a file that is not there yet is left out.

    Raises: ``InvalidReport`` for a path where there is nothing and a glob that means nothing; ``LimitExceeded``.
    """
    found: dict[str, ReportFile] = {}
    problems: list[Problem] = []
    for number, text in enumerate(texts):
        place = os.path.normpath(start / text)
        if os.path.lexists(place):
            files = [ReportFile(place, text)]
        elif _SIGNS.isdisjoint(text):
            files = []
            problems.append(_problem(number, _NOT_FOUND, f"There is no file {in_quotes(text)}."))
        else:
            glob = place.removeprefix(f"{root}/")
            fault = glob_fault(glob)
            files = [] if fault else found_reports(root, [glob])
            if fault:
                message = f"{in_quotes(text)} cannot be used as a glob: {fault}."
                problems.append(_problem(number, "bad_glob", message, _OF_REPOSITORY))
            elif not files:
                problems.append(_problem(number, _NOT_FOUND, f"{in_quotes(text)} means no file."))
        found |= {one.path: one for one in files}
    lacking = [one for one in problems if one.code != _NOT_FOUND] if may_lack else problems
    if lacking:
        raise of_problems(InvalidReport, "", lacking)
    return _limited([*found.values()])


def found_reports(root: Path, globs: Sequence[str]) -> list[ReportFile]:
    """Return the files below the worktree that globs mean, by glob and path. Raises: ``LimitExceeded``."""
    found: dict[str, ReportFile] = {}
    for glob in globs:
        for path in _below(root, glob):
            place = str(root / path)
            found.setdefault(place, ReportFile(place, path))
            if len(found) > limits.MAX_REPORTS:
                break
    return _limited([*found.values()])


def watched_folders(
    texts: Sequence[str], start: Path, globs: Sequence[str], root: Path
) -> tuple[list[Path], list[Path]]:
    """Return the folders below which reports may come, and those in which they may: of each the nearest that is there.

    ``texts`` are those of ``named_reports``, ``globs`` those of ``found_reports``.
    """
    below = {root / fixed_part(glob) for glob in globs}
    inside: set[Path] = set()
    for text in texts:
        place = os.path.normpath(start / text)
        glob = place.removeprefix(f"{root}/")
        if _SIGNS.isdisjoint(text) or os.path.lexists(place) or glob == place:
            inside.add(Path(place).parent)
        else:
            below.add(root / fixed_part(glob))
    return sorted({one for one in below if one.is_dir()}), sorted({_there(one) for one in inside | below})


def _there(folder: Path) -> Path:
    """Return a folder, or the nearest one above that is there."""
    return next(one for one in (folder, *folder.parents) if one.is_dir())


def _below(root: Path, glob: str) -> Iterator[str]:
    folder = fixed_part(glob)
    walk = FolderWalk(root, (), {folder}, lambda _: True)
    return (path for path, _, _ in walk.files(folder, glob_set((glob,)), None))


def _limited(files: list[ReportFile]) -> list[ReportFile]:
    if len(files) > limits.MAX_REPORTS:
        message = f"More than {limits.MAX_REPORTS} reports are named in one command."
        raise LimitExceeded(message, hint="Name some of them at a time.")
    return files


def _problem(number: int, code: str, message: str, remedy: str = _HINT) -> Problem:
    return Problem(f"$.files[{number}]", code, message, remedy)


def find_reports(workspace: Workspace, paths: Iterable[str]) -> list[str]:
    """Return those of some files that are reports of test runs and that no setting means, of the first that may be.

    Raises: ``InvalidConfig``.
    """
    read, globs = reader(workspace), workspace.config.results
    candidates = [path for path in paths if _may_be(path) and not matches(path, globs)]
    return [path for path in candidates[:_MOST_LOOKED_AT] if _is_report(read(path, _BEGINNING_BYTES))]


def _may_be(path: str) -> bool:
    return posixpath.splitext(path)[1].lower() in _ENDINGS and _FOR_TESTS.isdisjoint(path.split("/"))


def _is_report(beginning: bytes | None) -> bool:
    try:
        return beginning is not None and bool(report_of(io.BytesIO(beginning)).format)
    except ReportFault:
        return False
