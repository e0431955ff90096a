"""The part of a branch that a check is limited to: ids, and the ids that given files or folders state.

A file that is gone means what it stated last: its entities, and both ends of its edges. What its removal breaks is at
entities that other files state. A folder with files that are there means what is in them, and of its files that are
gone only what nothing states any more, so that what has moved to another folder is judged there. A glob means the
files from which facts come, or came.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kbcore.checks import MAX_GUESSED
from kbcore.errors import InvalidQuery, NotFound, Problem
from kbcore.git.revisions import once_added
from kbcore.query.data_names import PRESENT_PATHS, nearest_id
from kbcore.query.sql import is_of_files
from kbcore.rules.registry import CheckReport, is_ok
from kbcore.store.workspace import Workspace
from kbcore.sync.paths import normal_paths
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import glob_fault, has_signs, matches
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import some_of
from kbcore.view.view import View

LAST_STATED: Final = "Checked by what it stated last, as no fact comes from it any more"
NOT_CHECKED: Final = "Not checked, as no fact comes from it"
_NAMED: Final = 5
"""The number of paths that are named in a note."""
_GLOB_HINT: Final = "For example `services/pay/**`, or a folder such as `services/pay`."
_NAME_FILES: Final = "Name files from which facts come, or a folder of them."
_IDS: Final = """
select a.id from unnest($1::varchar[]) as a(id)
where a.id in (select id from node union all select id from link union all select from_id from link
  union all select to_id from link)
"""
_OF_FILES: Final = f"select id from node n where {is_of_files('$1::varchar[]')}"  # noqa: S608 - no text from outside
_LINKED_FROM: Final = "select from_id from link where list_has_any(files, $1::varchar[])"
_GONE: Final = """
select path, max(ended) from source_history where path not in (select path from source) group by path order by path
"""
_STATED_LAST: Final = """
with gone as (select unnest($1::varchar[]) as path, unnest($2::bigint[]) as ended, unnest($3::boolean[]) as is_whole)
select n.id from node_history n join gone g on n.path = g.path and n.ended = g.ended
  where g.is_whole or n.id not in (select id from node)
union select unnest([l.from_id, l.to_id]) from link_history l join gone g
  on list_contains(l.files, g.path) and l.ended = g.ended
  where g.is_whole or l.id not in (select id from link)
"""


class Targets(NamedTuple):
    """Targets of a check: ids, with those of files and of what they state, and the paths and globs that were named.

    ``inside`` are the ids without those at which an edge begins that a file states, and of which no file states more.
    ``gone`` are those of the paths from which facts came and none come now, ``unknown`` those from which nothing is
    known. ``called`` has the present id of each former one.
    """

    ids: list[str]
    inside: list[str]
    paths: list[str]
    globs: list[str]
    gone: list[str]
    unknown: list[str]
    called: dict[str, str]

    def notes(self) -> list[str]:
        """Return sentences on the paths that are gone, and on those from which nothing is known."""
        said = {LAST_STATED: self.gone, NOT_CHECKED: self.unknown}
        return [f"{what}: {some_of(list(map(in_quotes, paths)), _NAMED)}." for what, paths in said.items() if paths]


def targets_of(
    view: View,
    names: Sequence[str],
    start: Path,
    root: Path,
    files_among: Callable[[list[str]], Collection[str]],
    *,
    argument: str = "targets",
    may_be_ids: bool = True,
) -> Targets:
    """Return what is meant: a name is an id, or a former one, else the path of something from ``start``, or a glob.

    ``files_among`` returns those of some paths, from the root, that are or were files or folders of the repository:
    they may be named although nothing is known from them, as scripts name whatever a commit touches.
    ``argument`` is the name of the argument that has the names, for problems. Without ``may_be_ids`` none is an id.

    Raises: ``NotFound`` with each name that is nothing; ``InvalidQuery`` with those, each path outside the repository,
    and each glob that cannot be used.
    """
    present = view.renamed(names) if may_be_ids else {}
    names = [present.get(name, name) for name in names]
    known = {row[0] for row in view.rows(_IDS, [names])} if may_be_ids else set[str]()
    named, refused = _paths(names, known, start, root, argument)
    files = sorted(row[0] for row in view.rows(PRESENT_PATHS, [])) if named else []
    removed: dict[str, int] = dict(view.rows(_GONE, [])) if named else {}
    within = {path: _within(path, files) for path in named.values()}
    gone_within = {path: _within(path, removed) for path in within}
    globs = [path for path, found in within.items() if has_signs(path) and not (found or gone_within[path])]
    within |= {glob: [one for one in files if matches(one, [glob])] for glob in globs}
    gone_within |= {glob: [one for one in removed if matches(one, [glob])] for glob in globs}
    gone = sorted(path for path, found in within.items() if not found and gone_within[path])
    unknown = sorted(path for path, found in within.items() if not found and not gone_within[path])
    there = files_among(unknown) if unknown else ()
    lacking = {*unknown} - {*there}
    faults = {glob: fault for glob in globs if (fault := glob_fault(glob))}
    wrong = [(at, name) for at, name in enumerate(names) if named.get(name) in lacking - faults.keys()]
    problems = [
        _unknown(view, f"$.{argument}[{at}]", name, files, may_guess=number < MAX_GUESSED, may_be_ids=may_be_ids)
        for number, (at, name) in enumerate(wrong)
    ]
    refused += [
        Problem(f"$.{argument}[{at}]", "bad_glob", f"{in_quotes(name)} cannot be used as a glob: {fault}.", _GLOB_HINT)
        for at, name in enumerate(names)
        if (fault := faults.get(named.get(name, ""), ""))
    ]
    if refused:
        raise InvalidQuery(refused[0].message, hint=refused[0].remedy, details=[*refused, *problems], says_first=True)
    if problems:
        raise NotFound(
            problems[0].message, hint=problems[0].remedy, details=problems if len(problems) > 1 else (), says_first=True
        )
    paths = sorted({path for found in within.values() for path in found})
    of_files, linked = ({row[0] for row in view.rows(asked, [paths])} for asked in (_OF_FILES, _LINKED_FROM))
    inside = {*known, *paths, *of_files, *_stated_last(view, within, gone_within, removed)}
    plain = sorted({*named.values()} - {*globs})
    return Targets(sorted(inside | linked), sorted(inside), plain, globs, gone, unknown, present)


def _paths(
    names: Sequence[str], known: Collection[str], start: Path, root: Path, argument: str
) -> tuple[dict[str, str], list[Problem]]:
    """Return the paths from the root of the names that are no known ids, and the problems of names that are no path."""
    named: dict[str, str] = {}
    refused: list[Problem] = []
    for at, name in enumerate(names):
        if not name:
            hint = "Leave it out to check everything, or give it a value."
            refused.append(Problem(f"$.{argument}[{at}]", "empty", "The name is empty.", hint))
        elif name not in known:
            try:
                named[name] = normal_paths([name], start, root)[0]
            except InvalidQuery as error:
                refused += [
                    msgspec.structs.replace(one, path=f"$.{argument}[{at}]", remedy=error.remedy)
                    for one in error.details
                ]
    return named, refused


def _stated_last(
    view: View,
    within: Mapping[str, Sequence[str]],
    gone_within: Mapping[str, Sequence[str]],
    removed: Mapping[str, int],
) -> set[str]:
    """Return the ids that files stated which are gone, under their present ids as well."""
    lost = sorted({path for found in gone_within.values() for path in found})
    if not lost:
        return set()
    whole = {one for path, found in within.items() if not found for one in gone_within[path]}
    asked = [lost, [removed[path] for path in lost], [path in whole for path in lost]]
    last = {row[0] for row in view.rows(_STATED_LAST, asked)}
    return last | {*view.renamed(last).values()}


def concerning(
    report: CheckReport, ids: Collection[str], paths: Collection[str], globs: Collection[str] = ()
) -> CheckReport:
    """Return what of a report concerns these ids, or what files say at or below these paths, or that are like globs."""
    ids = frozenset(ids)
    kept = [
        one
        for one in report.violations
        if not ids.isdisjoint((one.id, *one.values))
        or any(not path or one.source == path or one.source.startswith(f"{path}/") for path in paths)
        or (globs and one.source and matches(one.source, globs))
    ]
    return msgspec.structs.replace(report, violations=kept, ok=is_ok(kept, report.rules))


def _within(path: str, files: Iterable[str]) -> list[str]:
    """Return those of these files that are at a path, or below it."""
    return [one for one in files if not path or one == path or one.startswith(f"{path}/")]


def files_of_repository(workspace: Workspace, paths: list[str]) -> Collection[str]:
    """Return those of these paths, from the root, that are or were files or folders. Raises: ``GitUnusable``."""
    root = workspace.repo.worktree
    there = {path for path in paths if workspace.repo.has_worktree and os.path.lexists(root / path)}
    gone = [path for path in paths if path not in there]
    return there | (once_added(workspace.repo, workspace.machine.env, gone) if gone else set())


def _unknown(view: View, at: str, name: str, files: Sequence[str], *, may_guess: bool, may_be_ids: bool) -> Problem:
    near = nearest_id(view.rows, name) if may_guess and may_be_ids else ""
    hint = is_it([near]) if near else is_it(near_ones(name, files)) if may_guess else ""
    if not may_be_ids:
        hint = hint or _NAME_FILES
    if has_signs(name):
        message = f"No file from which facts come is like {in_quotes(name)}."
    elif may_be_ids:
        message = f"{in_quotes(name)} is no id, and neither a file nor a folder of the repository."
    else:
        message = f"{in_quotes(name)} is neither a file nor a folder of the repository."
    return Problem(at, "unknown_id" if may_be_ids else "unknown_path", message, hint)
