"""The set-up of the tests of branches and their stores, and what they look at."""

from __future__ import annotations

from kbcore.store import branches
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project


def req(key: str) -> dict[str, str]:
    """Return a requirement, as a changeset states it."""
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}


def first_use(project: Project, branch: str | None = None) -> branches.Ensured:
    """Open a branch to write, and return how its store was made."""
    return branches.open_branch(project.workspace(), branch)[2]


def trashed(project: Project) -> list[str]:
    """Return the branches whose stores are in the trash."""
    folder = stores_at(project.root) / ".trash"
    return sorted(path.name.partition("~")[0] for path in folder.iterdir()) if folder.exists() else []
