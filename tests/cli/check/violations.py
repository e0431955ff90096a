"""Documents in which ``kb check`` finds violations."""

from __future__ import annotations

from kbcore.rules import RULES

RAN = f"({len(RULES)} rules ran)"
"""The end of a report where all rules of KB ran."""
UNRESOLVED = {"docs/tests/b.md": "---\nid: T-2\nstatus: active\nlinks: [REQ-77]\n---\n# B\n"}
COUNT = 12
"""So many requirements of the fixture ``crowded`` are linked to nothing."""


def document(key: str, more: str = "") -> str:
    """Return the document of a requirement, with more lines of front matter."""
    return f"---\nid: {key}\ntitle: Title of {key}\nstatus: open\n{more}---\n"
