"""Fixtures of answers that have what files say."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbcore.sync.overlay import WorktreeFiles
from kbcore.watch.changed_paths import listen


@pytest.fixture(params=["listening", "looking"])
def files(request: pytest.FixtureRequest) -> Iterator[WorktreeFiles]:
    """The files of a worktree, with and without the system's notices of changes."""
    found = WorktreeFiles(listen if request.param == "listening" else None)
    yield found
    found.close()
