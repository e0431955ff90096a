"""Fixtures of a repository with violations, and of two clones."""

from __future__ import annotations

import pytest

from tests.cli.check.clones import Clones, two_clones
from tests.cli.check.violations import COUNT, document
from tests.support.processes.cli import refresh_view, write


@pytest.fixture
def crowded(grown):
    """Twelve requirements linked to nothing, two links to what is not there, and a requirement without scenario."""
    return grown(sixteen_violations)


def sixteen_violations(root, kb):
    alone = {f"docs/requirements/m{at:02}.md": document(f"M-{at:02}") for at in range(COUNT)}
    broken = {f"docs/requirements/b{at}.md": document(f"B-{at}", f"links: [REQ-1, GONE-{at}]\n") for at in (1, 2)}
    write(root, alone | broken | {"docs/requirements/must.md": document("MUST", "priority: must\nlinks: [REQ-1]\n")})
    kb("sync")
    refresh_view(root, kb)


@pytest.fixture
def clones(kb, ready) -> Clones:
    """Two clones of a bare upstream."""
    return two_clones(kb, ready)
