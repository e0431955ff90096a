"""An engine holds what the store has, whoever changed it and in whatever order."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from kbcore.logic.clauses import ClauseChange, Clauses, NewClause
from kbcore.logic.pool import ClausePool
from kbcore.logic.source import BranchSource
from kbcore.logic.workspace import PrologWorkspace
from tests.core.store.history.undoing import revert
from tests.support.repository.clauses import clause_store, new
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git_env

STEPS = 25


@pytest.fixture
def prolog(engine: dict[str, str]) -> Iterator[PrologWorkspace]:
    made = PrologWorkspace(git_env(engine))
    yield made
    made.close()


def source(project: Project, pool: ClausePool) -> BranchSource:
    workspace = project.workspace()
    clauses = pool.store(workspace, "main", AUTHOR, follows_head=True)
    return BranchSource(workspace, "main", clauses, lambda use: workspace.store("main").read(use))


def clause(number: int) -> NewClause:
    return new(f"p({number}).", key=str(number), name="p/1")


def held(prolog: PrologWorkspace, asked: BranchSource) -> str:
    """Return the numbers that the engine has, in their order."""
    prolog.start_query(asked, "findall(X, p(X), Xs)", "engine")
    answer = prolog.next_answer(asked)
    return str(answer["bindings"]["Xs"]).replace(" ", "")


def stored(clauses: Clauses) -> str:
    return f"[{','.join(one.key for one in clauses.clauses)}]"


@pytest.mark.sliced
def test_an_engine_follows_changes_at_every_place_of_the_workspace(project: Project, prolog: PrologWorkspace) -> None:
    chance, pool, other = random.Random(7), ClausePool(), clause_store(project)
    other.change(lambda _: ClauseChange([clause(1000), clause(1001), clause(1002)]))
    for number in range(STEPS):

        def plan(clauses: Clauses, number: int = number) -> ClauseChange:
            ids = [one.id for one in clauses.clauses]
            gone = chance.sample(ids, chance.choice([0, 0, 1, min(3, len(ids) - 1)]))
            return ClauseChange([clause(10 * number + one) for one in range(chance.choice([0, 1, 4]))], gone)

        other.change(plan)
        asked = source(project, pool)
        assert held(prolog, asked) == stored(asked.clauses.read())


@pytest.mark.sliced
def test_an_engine_follows_a_clause_that_an_undo_brings_back(project: Project, prolog: PrologWorkspace) -> None:
    pool, other = ClausePool(), clause_store(project)
    ids = other.change(lambda _: ClauseChange([clause(1), clause(2), clause(3)])).ids
    held(prolog, source(project, pool))
    removed = other.change(lambda _: ClauseChange(removed=[ids[1]])).seq
    assert held(prolog, source(project, pool)) == "[1,3]"
    revert(project, removed)
    assert held(prolog, source(project, pool)) == "[1,2,3]"


@pytest.mark.sliced
def test_many_clauses_are_removed_at_once(project: Project, prolog: PrologWorkspace) -> None:
    pool, other = ClausePool(), clause_store(project)
    ids = other.change(lambda _: ClauseChange([clause(number) for number in range(3000)])).ids
    held(prolog, source(project, pool))
    other.change(lambda _: ClauseChange(removed=ids[5:2995]))
    assert held(prolog, source(project, pool)) == "[0,1,2,3,4,2995,2996,2997,2998,2999]"
