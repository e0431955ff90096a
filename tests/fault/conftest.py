"""One table for all fault tests: what was tried, how often, and what went wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.scale import SCALE, SEED


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
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Return the tally of a test marked ``fault("F4")``."""
    mark = request.node.get_closest_marker("fault")
    assert mark, "give the test the mark fault(NAME)"
    found = Tally(mark.args[0])
    yield found
    request.node.user_properties.append(("fault", [found.name, found.points, len(found.violations)]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table."""
    rows: dict[str, list[int]] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") != "teardown":
                continue
            for key, value in report.user_properties:
                if key == "fault":
                    row = rows.setdefault(value[0], [0, 0, 0])
                    for at, number in enumerate((1, *value[1:])):
                        row[at] += number
    if not rows:
        return
    terminalreporter.section(f"faults ({SCALE}, seed {SEED})")
    terminalreporter.write_line(f"{'test':<8}{'cases':>8}{'points':>12}{'violations':>12}")
    for name in sorted(rows, key=lambda one: (len(one.rstrip("m")), one)):
        cases, points, violations = rows[name]
        terminalreporter.write_line(f"{name:<8}{cases:>8}{points:>12,}{violations:>12}")
    total = [sum(row[at] for row in rows.values()) for at in range(3)]
    terminalreporter.write_line(f"{'all':<8}{total[0]:>8}{total[1]:>12,}{total[2]:>12}")
