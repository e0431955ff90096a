"""The part of a branch that a check is limited to: ids, and the ids that given files or folders state."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kbcore.checks import MAX_GUESSED
from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.git.blobs import once_added
from kbcore.store.apply import nearest_id
from kbcore.store.workspace import Workspace
from kbcore.sync.paths import normal_paths
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.view.view import View

_IDS: Final = """
select a.id from unnest($1::varchar[]) as a(id)
where a.id in (select id from node union all select id from link union all select from_id from link
  union all select to_id from link)
"""
_FILES: Final = "select path from source union select path from node where path <> ''"
_STATED: Final = """
select id from node where list_contains($1, path)
union select from_id from link where list_has_any(files, $1)
"""


class Targets(NamedTuple):
    """Targets of a check: ids, with those of files and of what they state, and the paths that were named.

    ``unknown`` are those of the paths from which nothing is known, ``called`` has the present id of each former one.
    """

    ids: list[str]
    paths: list[str]
    unknown: list[str]
    called: dict[str, str]


def targets_of(
    view: View, names: Sequence[str], start: Path, root: Path, files_among: Callable[[list[str]], Collection[str]]
) -> Targets:
    """Return what is meant: a name is an id, or a former one, else the path of something from ``start``.

    ``files_among`` returns those of some paths, from the root, that are or were files or folders of the repository:
    they may be named although nothing is known from them, as scripts name whatever a commit touches.

    Raises: ``NotFound`` with each name that is nothing; ``InvalidQuery`` with those and each path outside
    the repository.
    """
    present = view.renamed(names)
    names = [present.get(name, name) for name in names]
    known = {row[0] for row in view.rows(_IDS, [names])}
    named: dict[str, str] = {}
    outside: list[Problem] = []
    for at, name in enumerate(names):
        if name not in known:
            try:
                named[name] = normal_paths([name], start, root)[0]
            except InvalidQuery as error:
                outside += [
                    msgspec.structs.replace(one, path=f"$.targets[{at}]", remedy=error.remedy) for one in error.details
                ]
    files = sorted(row[0] for row in view.rows(_FILES, [])) if named else []
    within = {
        name: [one for one in files if not path or one == path or one.startswith(f"{path}/")]
        for name, path in named.items()
    }
    unknown = sorted({named[name] for name, found in within.items() if not found})
    there = files_among(unknown) if unknown else ()
    wrong = [
        (at, name) for at, name in enumerate(names) if name in within and not within[name] and named[name] not in there
    ]
    problems = [
        _unknown(view, at, name, files, may_guess=number < MAX_GUESSED) for number, (at, name) in enumerate(wrong)
    ]
    if outside:
        raise InvalidQuery(outside[0].message, hint=outside[0].remedy, details=[*outside, *problems], says_first=True)
    if problems:
        raise NotFound(
            problems[0].message, hint=problems[0].remedy, details=problems if len(problems) > 1 else (), says_first=True
        )
    paths = sorted({path for found in within.values() for path in found})
    stated = [row[0] for row in view.rows(_STATED, [paths])] if paths else []
    return Targets(sorted({*known, *paths, *stated}), sorted(named.values()), unknown, present)


def files_of_repository(workspace: Workspace, paths: list[str]) -> Collection[str]:
    """Return those of these paths, from the root, that are or were files or folders. Raises: ``GitUnusable``."""
    root = workspace.repo.worktree
    there = {path for path in paths if workspace.repo.has_worktree and os.path.lexists(root / path)}
    gone = [path for path in paths if path not in there]
    return there | (once_added(workspace.repo, workspace.machine.env, gone) if gone else set())


def _unknown(view: View, at: int, name: str, files: Sequence[str], *, may_guess: bool) -> Problem:
    near = nearest_id(view, name) if may_guess else ""
    hint = is_it([near]) if near else is_it(near_ones(name, files)) if may_guess else ""
    message = f"{in_quotes(name)} is no id, and neither a file nor a folder of the repository."
    return Problem(f"$.targets[{at}]", "unknown_id", message, hint)
