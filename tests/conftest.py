"""Fixtures that many tests share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Rewriting the assertions of all tests takes longer than collecting them: pytest keeps what it has made of them, for
# this run's other workers and the next run, even where Python is told to keep nothing.
sys.dont_write_bytecode = False

from hypothesis import settings  # noqa: E402 - it is kept as well

from tests.support.gits import use_hooks_in_files  # noqa: E402 - likewise
from tests.support.project import Project  # noqa: E402 - likewise
from tests.support.scale import tries  # noqa: E402 - likewise

settings.register_profile("scaled", max_examples=tries(30, 100), deadline=None)
settings.load_profile("scaled")
use_hooks_in_files()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each worker tests that follow one another, where ``-n`` alone would deal them out.

    What the tests of a module share is then made once, not once in each worker.
    """
    if config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository on branch main with an empty KB; its path holds a space."""
    made = Project(tmp_path / "a project")
    yield made
    made.close()
