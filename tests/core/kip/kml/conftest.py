"""A repository that is written to in KIP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.repository.kip_writing import Kip


@pytest.fixture
def kip(tmp_path: Path) -> Iterator[Kip]:
    """Return a new project that speaks KIP."""
    made = Kip(tmp_path / "repo")
    yield made
    made.project.close()
