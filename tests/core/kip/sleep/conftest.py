"""A repository that remembers and sleeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository.sleeping import TYPES, Sleeper


@pytest.fixture
def kip(tmp_path: Path) -> Iterator[Sleeper]:
    """Return a new project with a type and a predicate of its own."""
    made = Sleeper(tmp_path / "repo")
    made(TYPES)
    yield made
    made.project.close()
