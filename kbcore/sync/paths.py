"""The paths that a sync is limited to: what a user names, and what is below it. Pure but for following links."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path

from kbcore.errors import InvalidQuery, Problem
from kbcore.ids import path_text
from kbcore.text.globs import parents


def normal_paths(paths: Sequence[str], start: Path, root: Path) -> tuple[str, ...]:
    """Return the paths that a user named in the folder ``start``, relative to the worktree ``root``; "" is the root.

    A path that is a link stays that link: it is the name that extractors know.

    Raises: ``InvalidQuery`` for a path outside the repository.
    """
    named, problems = [], []
    for number, path in enumerate(paths):
        inside = _inside(start / path, root)
        if inside is None:
            problems.append(Problem(f"$.paths[{number}]", "outside", f"{path} is not inside the repository."))
        else:
            named.append(inside)
    if problems:
        raise InvalidQuery(
            problems[0].message, hint=f"Name files and folders below {root}.", details=problems, says_first=True
        )
    return tuple(named)


def folder_in(start: Path, root: Path) -> str:
    """Return the folder ``start`` from the worktree ``root``; "" where that is the root itself, or outside of it."""
    return _inside(start, root) or ""


def _inside(path: Path, root: Path) -> str | None:
    real = Path(os.path.realpath(path))
    as_named = Path(os.path.realpath(path.parent)) / path.name if path.name not in {"", ".."} else real
    for candidate in (as_named, real):
        if candidate.is_relative_to(root):
            found = path_text(candidate.relative_to(root).as_posix())
            return "" if found == "." else found
    return None


def is_named(path: str, named: Collection[str]) -> bool:
    """Return whether a path is among those named, or below one; without any, all are.

    Of a set only the folders of the path are asked, however many are named.
    """
    if isinstance(named, AbstractSet):
        return not named or path in named or any(one in named for one in parents(path))
    return not named or any(one in {"", path} or path.startswith(one + "/") for one in named)


def check_known(named: Sequence[str], root: Path, known: Collection[str]) -> None:
    """Refuse a named path at which there is nothing, and of which the state knows nothing either.

    Raises: ``InvalidQuery``.
    """
    missing = [number for number, one in enumerate(named) if not os.path.lexists(root / one)]
    there = {*known, *(folder for path in known for folder in parents(path))} if missing else set[str]()
    problems = [
        Problem(f"$.paths[{number}]", "not_found", f"There is no file or folder {named[number]}, and none is known.")
        for number in missing
        if named[number] not in there
    ]
    if problems:
        hint = "Paths are relative to the folder that the command runs in; a removed file is named as it was."
        raise InvalidQuery(problems[0].message, hint=hint, details=problems, says_first=True)
