"""A process of its own that writes to a project: ``python -m tests.support.processes.worker ROOT WHAT NAME COUNT``."""

from __future__ import annotations

import sys
from pathlib import Path

from kbcore.errors import BranchMoved, LockTimeout
from kbcore.logic.clauses import ClauseChange, NewClause
from kbcore.storage.fs import RealFs
from tests.support.repository.clauses import clause_store
from tests.support.repository.project import Project, req


def apply(project: Project, name: str, count: int) -> int:
    """Apply ``count`` changesets; prints the ids that were acknowledged."""
    for number in range(count):
        key = f"{name}-{number}"
        project.apply(entities=[{"id": key, "type": "req", "title": key, "status": "open"}], changeset_id=key)
        print(key, flush=True)
    return 0


def sync(project: Project, name: str, count: int) -> int:
    """Sync ``count`` times, adding a document of its own each time, whole: other workers may read it at any moment."""
    for number in range(count):
        key = f"{name}-{number}"
        project.write({f"{key}.new": req(key)})
        place = project.root / f"docs/requirements/{key}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        (project.root / f"{key}.new").rename(place)
        answer = project.sync()
        assert answer.bad == 0
        print(key, flush=True)
    return 0


def clauses(project: Project, name: str, count: int) -> int:
    """Add ``count`` clauses to the workspace, one record each; prints the ids that were acknowledged."""
    for number in range(count):
        added = NewClause(f"{name}({number}).", f"{name}-{number}", f"{name}/1")
        [key] = clause_store(project).change(lambda _, added=added: ClauseChange([added])).ids
        print(key, flush=True)
    return 0


def main() -> int:
    root, what, name, count = sys.argv[1:]
    project = Project(Path(root), fs=RealFs(), is_new=False)
    try:
        return {"apply": apply, "sync": sync, "clauses": clauses}[what](project, name, int(count))
    except (LockTimeout, BranchMoved) as refused:
        print(refused.code, file=sys.stderr)
        return 3
    finally:
        project.close()


if __name__ == "__main__":
    sys.exit(main())
