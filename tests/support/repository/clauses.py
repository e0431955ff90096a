"""Clauses of the workspace of a project, as the front ends read and change them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from kbcore.logic.branch_clauses import BranchClauses, ClauseCache
from kbcore.logic.clauses import ChangedClauses, ClauseChange, Clauses, ClauseStore, NewClause
from kbcore.store import branches
from tests.support.repository.project import AUTHOR, Project


def clause_store(project: Project, cache: ClauseCache | None = None, *, branch: str | None = None) -> BranchClauses:
    """Return the clauses of a branch, for one request; without a cache everything is read again."""
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, branch)
    return BranchClauses(
        workspace, choice.branch, AUTHOR, follows_head=choice.follows_head, cache=cache or ClauseCache()
    )


def new(text: str, **members: object) -> NewClause:
    """Return a clause; its digest is that of the text where none is given."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return NewClause(text, **{"key": digest, "name": "p/1", **members})  # type: ignore[arg-type]


def change(store: ClauseStore, *texts: str, removed: Sequence[str] = (), message: str = "") -> ChangedClauses:
    """Add clauses with these texts and remove those with these ids."""
    return store.change(lambda _: ClauseChange([new(text) for text in texts], removed), message=message)


def texts(clauses: Clauses) -> list[str]:
    """Return the texts of clauses, in their order."""
    return [one.text for one in clauses.clauses]
