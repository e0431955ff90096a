"""The line of a file that states a fact: read only when a refusal has to name it."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.changeset import Changeset
from kbcore.errors import DerivedFact, Problem, Rejected
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.sync.pending import wanted
from kbcore.sync.scan import read_named
from kbcore.visible import in_quotes
from kbcore.workspace import Workspace

DERIVED: Final = DerivedFact.code
"""The code of a problem with a fact that a file states."""


def with_lines(workspace: Workspace, changeset: Changeset, refused: Rejected, *, branch: str) -> Rejected:
    """Return a refusal whose problems with facts of files name file and line, as far as these can be read now.

    A branch that is not checked out has no files here: its refusals name the file alone.
    """
    if not workspace.repo.has_worktree or workspace.head().branch != branch:
        return refused
    ids = {item.path: item.id for item in changeset.entities} | {
        item.path: item.id for item in changeset.entity_deletes
    }
    facts: dict[str, Facts] = {}
    details = []
    for problem in refused.details:
        is_derived = problem.code == DERIVED
        if is_derived and problem.source not in facts:
            facts[problem.source] = read_named(workspace.repo.worktree, wanted(workspace), problem.source)
        details.append(_located(problem, facts[problem.source], ids) if is_derived else problem)
    message = refused.message.replace(refused.details[0].message, details[0].message) if details else refused.message
    return type(refused)(message, hint=refused.hint, details=details, data=refused.data)


def _located(problem: Problem, facts: Facts, ids: dict[str, str]) -> Problem:
    item, _, field = problem.path.partition("].")
    key = ids.get(f"{item}]" if field else problem.path)
    for entity in facts.entities:
        if entity.id == key:
            place = f"{problem.source}:{_line(entity, field)}"
            message = problem.message.replace(in_quotes(problem.source), in_quotes(place))
            return msgspec.structs.replace(problem, message=message, source=place)
    return problem


def _line(entity: StatedEntity, field: str) -> int:
    return entity.lines.get(field, entity.line)
