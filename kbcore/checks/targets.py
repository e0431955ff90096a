"""What of a branch a check is asked to look at: ids, and files or folders that stand for what they state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kbcore.errors import NotFound, Problem
from kbcore.suggest import did_you_mean
from kbcore.sync.paths import normal_paths
from kbcore.view.view import View
from kbcore.visible import in_quotes
from kbcore.writes import nearest_id

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


def targets_of(
    view: View, names: Sequence[str], start: Path, root: Path, *, may_be_new: bool = False
) -> tuple[list[str], list[str]]:
    """Return the ids to look at, those of files and of what they state among them, and the paths that were named.

    A name is an id where there is such an id, else the path of a file or folder, from the folder ``start``; with
    ``may_be_new`` of one from which nothing is known, too.

    Raises: ``NotFound`` with each name that is neither; ``InvalidQuery`` for a path outside the repository.
    """
    known = {row[0] for row in view.rows(_IDS, [list(names)])}
    named = {name: normal_paths([name], start, root)[0] for name in names if name not in known}
    files = sorted(row[0] for row in view.rows(_FILES, [])) if named else []
    within = {
        name: [one for one in files if not path or one == path or one.startswith(f"{path}/")]
        for name, path in named.items()
    }
    problems = [_unknown(view, name, files) for name, found in within.items() if not (found or may_be_new)]
    if problems:
        raise NotFound(problems[0].message, hint=problems[0].hint, details=problems if len(problems) > 1 else ())
    paths = sorted({path for found in within.values() for path in found})
    stated = [row[0] for row in view.rows(_STATED, [paths])] if paths else []
    return sorted({*known, *paths, *stated}), sorted(named.values())


def _unknown(view: View, name: str, files: Sequence[str]) -> Problem:
    near = nearest_id(view, name)
    hint = f"Did you mean {in_quotes(near)}?" if near else did_you_mean(name, files)
    message = f"{in_quotes(name)} is no id, and no file or folder from which anything is known."
    return Problem("$.targets", "unknown_id", message, hint)
