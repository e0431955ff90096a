"""When a watcher checks, and what it tells of that: the violations that came and went.

What a sync touched is looked at once; everything, when it is quiet, and in no more than a share of the time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from kbcore.answers import Outcome
from kbcore.checks import run_checks
from kbcore.clock import Clock
from kbcore.errors import InvalidConfig, NotFound, Unavailable, UnknownBranch
from kbcore.rules import Report, RuleRun
from kbcore.view.view import View
from kbcore.watch.affected import affected_by
from kbcore.watch.events import Checked, Tell
from kbcore.watch.pauses import Retry
from kbcore.watch.troubles import Troubles
from kbcore.watch.violations import Ledger
from kbcore.workspace import Workspace

_QUIET_S: Final = 0.3
_SHARE: Final = 10
"""Checks of everything take at most one part in so many of the time."""

_NOTHING: Final = Report(ok=True, violations=[], rules=[])


class Checking:
    """The checks of one watcher. Times are of the clock's monotonic seconds."""

    def __init__(self, clock: Clock, tell: Tell, troubles: Troubles) -> None:
        self._clock = clock
        self._tell = tell
        self._troubles = troubles
        self._ledger = Ledger()
        self._until_s = 0.0
        self._retry = Retry()
        self._not_run: tuple[RuleRun, ...] = ()
        self.due_s: float | None = None
        """When to check everything; None: there is no reason to."""

    def plan(self, quiet_s: float = _QUIET_S, *, is_asked: bool = False) -> None:
        """Check everything when it has been quiet for so long, and its turn has come unless a person waits for it."""
        due_s = self._clock.monotonic_s() + quiet_s
        self.due_s = due_s if is_asked else max(due_s, self._until_s)

    @property
    def is_due(self) -> bool:
        """Tell whether to check everything now."""
        return self.due_s is not None and self._clock.monotonic_s() >= self.due_s

    def begin(self, workspace: Workspace, branch: str) -> None:
        """Forget the violations of another branch, and tell how many this one has."""
        self._ledger.clear()
        self._not_run = ()
        self.check_all(workspace, branch, is_first=True)

    def check_all(self, workspace: Workspace, branch: str, *, is_first: bool = False) -> None:
        """Run every rule over a branch."""
        self.due_s = None
        begun_s = self._clock.monotonic_s()
        with self._told():
            read = workspace.store(branch).read
            seq, report = read(lambda view: (view.seq, run_checks(workspace, view, branch=branch)))
            self._report(branch, seq, report, is_first=is_first)
        end_s = self._clock.monotonic_s()
        self._until_s = end_s + _SHARE * (end_s - begun_s)

    def check_changed(self, workspace: Workspace, branch: str, outcome: Outcome) -> None:
        """Run every rule over what a changeset touched, and plan to check the rest."""
        self.plan()

        def look(view: View) -> tuple[int, frozenset[str], Report]:
            ids, known = affected_by(view, outcome)
            return view.seq, ids, run_checks(workspace, view, branch=branch, ids=known) if known else _NOTHING

        with self._told():
            seq, ids, report = workspace.store(branch).read(look)
            self._report(branch, seq, report, ids)

    def _report(
        self, branch: str, seq: int, report: Report, ids: frozenset[str] | None = None, *, is_first: bool = False
    ) -> None:
        """Tell which violations came and went; a report is all there is to say of ``ids``, or of everything (None)."""
        not_run = tuple(run for run in report.rules if run.status == "not_run")
        turn = self._ledger.update(report.violations, ids, {run.id for run in not_run})
        is_other = ids is None and not_run != self._not_run
        run_again: tuple[str, ...] = ()
        if ids is None:
            could_not = {run.id for run in self._not_run}
            run_again = tuple(run.id for run in report.rules if run.id in could_not and run.status != "not_run")
            self._not_run = not_run
        if turn.new or turn.mended or is_first or is_other:
            standing = self._ledger.standing
            at = self._clock.now()
            self._tell(Checked(at, branch, seq, turn.new, turn.mended, standing, is_first, self._not_run, run_again))

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Tell what keeps this block from checking, and plan another try."""
        try:
            yield
        except (InvalidConfig, NotFound, Unavailable, UnknownBranch) as error:
            self._troubles.begin("checking", error)
            self.due_s = self._clock.monotonic_s() + self._retry.take_s()
        else:
            self._retry.end()
            self._troubles.end("checking")
