"""Small repositories in the forms of public tools, each with what KB is to read of it.

A folder of ``fixtures`` has the files of a repository and ``expected.json``: ``sources``, the only setting,
``entities`` by id, ``edges`` as [from, edge, kind, to], ``unresolved`` edges likewise, ``problems`` with the number of
each code, and ``not_read``, the same of files that state no entity.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

from kbcore.sync.run import SyncAnswer
from tests.support.repository.project import Project

FIXTURES: Final = Path(__file__).parent / "fixtures"
SHAPES: Final = tuple(sorted(one.name for one in FIXTURES.iterdir()))


def files_of(shape: str) -> dict[str, bytes]:
    """Return the files of a shape by their paths."""
    folder = FIXTURES / shape
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / "expected.json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def expected_of(shape: str) -> dict[str, Any]:
    """Return what KB is to read of a shape."""
    found: dict[str, Any] = json.loads((FIXTURES / shape / "expected.json").read_text())
    return found


def settings(sources: list[Any]) -> str:
    """Return a settings file that has these sources alone."""
    return json.dumps({"sources": sources})


def state_of(project: Project, answer: SyncAnswer) -> dict[str, Any]:
    """Return what a repository states after a first sync, in the form of ``expected.json``, without ``sources``."""
    view = project.view()
    nodes = view.nodes([key for (key,) in view.cells("node", ["id"], ("true", []), lambda _: True)])
    ends = ["id", "from_id", "type", "kind", "to_id", "is_resolved"]
    links = sorted(row[1:] for row in view.cells("link", ends, ("true", []), lambda _: True))
    stating = {node.path for node in nodes}
    codes = [(path in stating, one.code) for path, one in answer.problems]
    return {
        "entities": {
            one.id: {"type": one.type, "title": one.fields["title"], "status": one.fields["status"]}
            for one in sorted(nodes, key=lambda node: node.id)
        },
        "edges": [[begin, edge, kind or "", end] for begin, edge, kind, end, is_resolved in links if is_resolved],
        "unresolved": [
            [begin, edge, kind or "", end] for begin, edge, kind, end, is_resolved in links if not is_resolved
        ],
        "problems": dict(sorted(Counter(code for is_read, code in codes if is_read).items())),
        "not_read": dict(sorted(Counter(code for is_read, code in codes if not is_read).items())),
    }
