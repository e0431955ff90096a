"""One table for all fault tests: what was tried, how often, and what went wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.crowd.crowd import Crowd, crowded
from tests.support.effort.scale import SCALE, SEED
from tests.support.effort.tally import Rows, add, keep, table
from tests.support.repository.project import Project

LONGEST = (
    "test_guards.py",
    "test_kip.py",
    "test_watch.py",
    "test_view_cache.py",
    "test_equivalence.py",
    "test_kip_writes.py",
    "test_agents.py",
)
"""The files whose single tests take half a minute or more on a merge, the longest first."""


class Tally:
    """Counts the points that a test tries and the violations that it finds, under the name of the fault test."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.points = 0
        self.violations: list[str] = []

    def tried(self, count: int = 1) -> None:
        """Count points at which nothing went wrong, or not yet."""
        self.points += count

    def violated(self, point: object, what: object) -> None:
        """Note a violation, with what replays it alone."""
        self.violations.append(f"{self.name} at {point}: {what}")

    def done(self, at_least: int = 1) -> None:
        """End the test: fail when anything was violated, or when too little was tried to say so."""
        assert not self.violations, "\n".join(
            [f"{len(self.violations)} violations, seed {SEED}", *self.violations[:10]]
        )
        assert self.points >= at_least, f"only {self.points} points were tried"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A new project without records, for the files that have no other one."""
    return Project(tmp_path / "repo")


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Return the tally of a test marked ``fault("F4")``."""
    mark = request.node.get_closest_marker("fault")
    assert mark, "give the test the mark fault(NAME)"
    found = Tally(mark.args[0])
    yield found
    request.node.user_properties.append(("fault", [found.name, found.points, len(found.violations)]))


@pytest.fixture(scope="module")
def crowds() -> Iterator[Callable[[], Crowd]]:
    """Return what makes crowds of processes for the tests of a module."""
    with crowded() as made:
        yield made


@pytest.fixture
def crowd(crowds: Callable[[], Crowd]) -> Iterator[Crowd]:
    """Return a crowd of a test's own; whoever is left in it is ended."""
    one = crowds()
    yield one
    one.clear()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take longest, so that no worker waits for one of them at the end.

    A soak begins with other tests each round: it may have no time for those that would be the last.
    """
    if SCALE == "soak":
        random.Random(SEED).shuffle(items)
        return
    places = {Path(__file__).with_name(name): place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table; a worker of xdist has only a part of it."""
    if hasattr(terminalreporter.config, "workerinput"):
        return
    rows: Rows = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "teardown":
                for key, value in report.user_properties:
                    if key == "fault":
                        add(rows, value[0], 1, *value[1:])
    if rows:
        keep(rows)
        terminalreporter.section(f"faults ({SCALE}, seed {SEED})")
        terminalreporter.write_line("\n".join(table(rows)))
