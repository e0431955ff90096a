"""Fixtures that many tests share."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

# Rewriting the assertions of all tests takes longer than collecting them: pytest keeps what it has made of them, for
# this run's other workers and the next run, even where Python is told to keep nothing.
sys.dont_write_bytecode = False

from hypothesis import settings  # noqa: E402 - it is kept as well

from tests.support.effort.scale import SCALE, UNTIL_S, each_value_once, spread, tries  # noqa: E402 - likewise
from tests.support.repository.gits import use_hooks_in_files  # noqa: E402 - likewise
from tests.support.repository.older import older_repository  # noqa: E402 - likewise
from tests.support.repository.project import Project  # noqa: E402 - likewise
from tests.support.repository.repos import use_empty_home  # noqa: E402 - likewise

settings.register_profile("scaled", max_examples=tries(15, 100), deadline=None)
settings.load_profile("scaled")
use_empty_home()
HOME = os.environ["HOME"]
use_hooks_in_files()

SLOW_FOLDERS = ("core/checks/introduced", "core/kip/sleep", "core/watch", "docs", "fault")
SLOW_FILES = {
    ".": "benchmarks",
    "cli": (
        "branches check check_reports demo editing former_ids gc git_commands git_setups hook impact kip "
        "lost_stores new permissions points program renaming signals sleep startup terminal undo upkeep "
        "watch"
    ),
    "core/editing": "renamed_suspects",
    "core/kip": "unrecorded",
    "core/kip/kml": "dry_run export export_laws",
    "core/maintenance": "compacting",
    "core/query": "query_laws search_laws",
    "core/rules": "limited suspect_edge",
    "core/storage": "processes scratch",
    "core/store": "branch_store concurrency facts_export_missing plans_ahead publishing readers",
    "core/store/branches": "moves slow_git trash views",
    "core/store/history": "reach undo_laws",
    "core/sync": "file_status overlay touched",
    "core/view": "equivalence key_filter large sandbox scratch_copy time_bounds",
    "mcp": (
        "branches call_queue check concurrency conformance damage extras former_ids history interruption listing "
        "messages_not_read planted prompts query sleeping startup streams subscriptions telling "
        "writing"
    ),
}
"""A quarter of the tests and most of the time: they start programs, wait or hurt a store. ``test_`` is left out."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make quick` leaves out, and leave out the cases that a slice has not."""
    if SCALE == "slice":
        _keep_slices(config, items)
    files = [f"{folder}/test_{name}.py" for folder, names in SLOW_FILES.items() for name in names.split()]
    slow = [Path(__file__).parent / name for name in (*SLOW_FOLDERS, *files)]
    assert all(place.exists() for place in slow)
    is_slow = cache(lambda path: any(path.is_relative_to(place) for place in slow))
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")


def _keep_slices(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep of each test with the mark ``sliced`` the cases that run every day; ``make fault`` runs all."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sliced") and hasattr(item, "callspec"):
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out: set[pytest.Item] = set()
    for cases in tests.values():
        most = cases[0].get_closest_marker("sliced").args
        values = [{name: repr(value) for name, value in case.callspec.params.items()} for case in cases]
        kept = [cases[at] for at in each_value_once(values)]
        left_out |= {*cases} - {*(spread(kept, *most) if most else kept)}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Give each test a home of its own: KB notes there which records it has seen of which repository.

    Two tests that copy one repository would meet as two copies of it that both went on.
    """
    if time.time() > UNTIL_S:
        pytest.skip("the time that a soak has for this file is over")
    name = hashlib.sha256(item.nodeid.encode()).hexdigest()[:16]
    os.environ["HOME"] = f"{HOME}/{os.getpid()}-{name}"


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


@pytest.fixture(scope="session")
def older_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of the older layout, to be copied."""
    return older_repository(tmp_path_factory.mktemp("older") / "repo")


@pytest.fixture
def older(older_model: Path, tmp_path: Path) -> Iterator[Project]:
    """A repository of the older layout, which no KB of today has opened."""
    made = Project(shutil.copytree(older_model, tmp_path / "repo", symlinks=True), is_new=False)
    yield made
    made.close()
