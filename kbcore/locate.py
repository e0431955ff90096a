"""The line of a file that states a fact: read only when a refusal has to name it."""

from __future__ import annotations

import msgspec

from kbcore.changeset import Changeset
from kbcore.errors import DerivedFact, Problem
from kbcore.extract.facts import Facts, StatedEntity
from kbcore.sync.pending import wanted
from kbcore.sync.scan import read_named
from kbcore.workspace import Workspace


def with_lines(workspace: Workspace, changeset: Changeset, refused: DerivedFact, *, branch: str) -> DerivedFact:
    """Return a refusal whose problems name file and line, as far as the branch's files can be read now.

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
        if problem.source and problem.source not in facts:
            facts[problem.source] = read_named(workspace.repo.worktree, wanted(workspace), problem.source)
        details.append(_located(problem, facts.get(problem.source, Facts()), ids))
    message = refused.message.replace(refused.details[0].message, details[0].message) if details else refused.message
    return DerivedFact(message, hint=refused.hint, details=details, data=refused.data)


def _located(problem: Problem, facts: Facts, ids: dict[str, str]) -> Problem:
    item, _, field = problem.path.partition("].")
    key = ids.get(f"{item}]" if field else problem.path)
    for entity in facts.entities:
        if entity.id == key:
            place = f"{problem.source}:{_line(entity, field)}"
            message = problem.message.replace(problem.source, place)
            return msgspec.structs.replace(problem, message=message, source=place)
    return problem


def _line(entity: StatedEntity, field: str) -> int:
    return entity.lines.get(field, entity.line)
