"""The files of reports: those that a command names, by path or by glob, and those that the settings mean."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidReport, LimitExceeded, Problem, of_problems
from kbcore.sync.walk import FolderWalk
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import fixed_part, glob_fault, glob_set

_NOT_FOUND: Final = "not_found"
_SIGNS: Final = frozenset("*?[")
_HINT: Final = "Paths and globs are taken from the folder that the command runs in; run the tests first."


_OF_REPOSITORY: Final = "A glob in quotes means files of the repository; one without quotes is expanded by the shell."


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
