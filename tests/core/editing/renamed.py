"""Documents and edges of an entity that is renamed."""

from __future__ import annotations

from typing import Any

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.editing.setting import SetResult
from kbcore.store.write_request import Author
from tests.support.repository.project import Project

LOGIN = "---\nid: REQ-1  # never reused\ntitle: Log in\nstatus: open\n---\n# Log in\n\nSince REQ-1 was split.\n"


LOGOUT = "---\nid: REQ-2\ntitle: Log out\nstatus: open\ndepends_on:\n  - REQ-1 # first\n---\nsee REQ-1\n"


CHECK = "---\nid: TEST-1\ntitle: T\nstatus: active\nlinks: [REQ-1, REQ-10]\n---\n"


SYMBOLS = "symbols:\n- title: login\n  id: S-1\n  links:\n  - REQ-1\n"


FILES = {
    "docs/requirements/login.md": LOGIN,
    "docs/requirements/logout.md": LOGOUT,
    "docs/tests/t.md": CHECK,
    "docs/symbols.yaml": SYMBOLS,
}


EDGE = {"type": "relates_to", "kind": "example", "from": "REQ-1", "to": "REQ-2", "confidence": 0.5}


def target(project: Project) -> WriteTarget:
    branch = project.workspace().head().branch
    read = project.workspace().store(branch).read
    return WriteTarget(project.workspace(), branch, Author("ann", "cli", "kb/test"), read, follows_head=True)


def renamed(project: Project, old: str = "REQ-1", new: str = "REQ-7", **options: Any) -> SetResult:
    return rename(target(project), old, new, **options)


def texts(project: Project) -> dict[str, str]:
    return {path: (project.root / path).read_text() for path in FILES}


def facts(project: Project) -> tuple[dict[str, Any], set[tuple[Any, ...]]]:
    """Return what is stated now, by whom and when it was made, without seqs and times of updates."""
    view = project.view()
    nodes = {
        row[0]: row[1:]
        for row in view.rows("select id, type, title, status, priority, attributes, owners, path, created_at from node")
    }
    columns = "type, kind, from_id, to_id, is_resolved, confidence, statements, created_at, created_by"
    return nodes, set(view.rows(f"select {columns} from link"))


def files_after(project: Project, old: str = "REQ-1", new: str = "REQ-7") -> dict[str, str | bytes | None]:
    """Return what a rename writes into the files, without writing it."""
    return {one.path: one.after for one in renamed(project, old, new, dry_run=True).edits}
