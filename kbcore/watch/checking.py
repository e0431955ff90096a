"""The checks of a watcher: when they run, and the events of new and fixed violations.

What a sync touched is looked at once; everything, when it is quiet, and in no more than a share of the time. Both give
way to what changes meanwhile, and forget nothing because of that.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from kbcore.checks import run_checks
from kbcore.clock import Clock
from kbcore.errors import InvalidConfig, NotFound, Unavailable, UnknownBranch
from kbcore.rules import CheckReport, RuleRun
from kbcore.store.workspace import Workspace
from kbcore.view.database import among
from kbcore.view.view import View
from kbcore.watch.events import Checked, Tell
from kbcore.watch.open_errors import OpenErrors
from kbcore.watch.pauses import Retry
from kbcore.watch.violations import Ledger

_QUIET_S: Final = 0.3
_SHARE: Final = 10
"""Checks of everything take at most one part in so many of the time."""

_CHANGED_LONGEST_S: Final = 2.0
_ALL_LONGEST_S: Final = 10.0
"""The most that changes delay a check of the changed part, and one of everything."""

_NOTHING: Final = CheckReport(ok=True, violations=[], rules=[])

_CHANGED: Final = """
with file as (select path from source where version > $1 union select path from source_history where ended > $1)
select id, true as is_entity from node where version > $1
union select id, true from node_history where ended > $1
union select unnest([from_id, to_id]), false from link where version > $1
union select unnest([from_id, to_id]), false from link_history where ended > $1
union select path, false from file
union select min(id), true from node where path in (from file) group by path having count(*) = 1
"""
"""A document of one entity is about it also where no field changed: edges to it may be suspect since, or confirmed."""


class Checking:
    """The checks of one watcher. Times are of the clock's monotonic seconds.

    A check yields to changes: it is stopped before the next rule, and what it was to look at is looked at later.
    """

    def __init__(self, clock: Clock, tell: Tell, open_errors: OpenErrors) -> None:
        self._clock = clock
        self._tell = tell
        self._open_errors = open_errors
        self._ledger = Ledger()
        self._until_s = 0.0
        self._retry = Retry()
        self._not_run: tuple[RuleRun, ...] = ()
        self._is_first = False
        self._seen_seq = 0
        """Up to where what changed was looked at."""
        self._touched_s: float | None = None
        """Since when something changed that was not; None: there is no such thing, or everything is to be checked."""
        self._all_s: float | None = None
        """The time to check everything; None: there is no reason to."""
        self._all_since_s: float | None = None
        """Since when there is a reason to."""

    def begin(self) -> None:
        """Forget the violations of another branch; the first check tells how many this one has."""
        self._ledger.clear()
        self._not_run = ()
        self._is_first = True
        self._touched_s = None
        self._all_s = self._all_since_s = self._clock.monotonic_s()

    def note_change(self) -> None:
        """Look at once at what a changeset touched, and plan to check the rest."""
        self.plan()
        if self._touched_s is None and not self._is_first:  # then everything is about to be looked at
            self._touched_s = self._clock.monotonic_s()

    def plan(self, quiet_s: float = _QUIET_S, *, is_asked: bool = False) -> None:
        """Check everything after such a quiet time and when it is due, at once if a person waits for it."""
        now_s = self._clock.monotonic_s()
        if self._all_since_s is None:
            self._all_since_s = now_s
        at_s = min(now_s + quiet_s, max(now_s, self._all_since_s + _ALL_LONGEST_S))
        self._all_s = at_s if is_asked else max(at_s, self._until_s)

    def put_off(self) -> None:
        """Check later, and then everything: something keeps it from that now."""
        self._touched_s = None
        self._all_since_s = None
        self.plan()

    @property
    def due_s(self) -> float | None:
        """The time to check; None: there is no reason to."""
        return self._all_s if self._touched_s is None else self._touched_s

    @property
    def is_due(self) -> bool:
        """Return whether to check now."""
        return self.due_s is not None and self._clock.monotonic_s() >= self.due_s

    @property
    def may_wait(self) -> bool:
        """Return whether what is due may wait for changes: only for a while, so that it is done."""
        if self._touched_s is None:
            return not self._has_waited
        return self._clock.monotonic_s() < self._touched_s + _CHANGED_LONGEST_S

    @property
    def _has_waited(self) -> bool:
        """Return whether there is a reason to check everything for so long that nothing else may come first."""
        return self._all_since_s is not None and self._clock.monotonic_s() >= self._all_since_s + _ALL_LONGEST_S

    @property
    def _is_for_all(self) -> bool:
        """Return whether everything is next, with what was touched: nothing less is due, or its own time has come."""
        is_due = self._all_s is not None and self._clock.monotonic_s() >= self._all_s
        return self._touched_s is None or (is_due and self._has_waited)

    def check(self, workspace: Workspace, branch: str, has_news: Callable[[], bool]) -> None:
        """Run every rule over what was touched or, where nothing was, over everything, unless there is news.

        Where something changes again and again, everything is checked all the same.
        """

        def give_way(_: str) -> str:
            if self.may_wait and has_news():
                raise _GivenUp
            return ""

        with contextlib.suppress(_GivenUp):
            (self._check_all if self._is_for_all else self._check_touched)(workspace, branch, give_way)

    def _check_all(self, workspace: Workspace, branch: str, give_way: Callable[[str], str]) -> None:
        def look(view: View) -> tuple[int, CheckReport, None, Mapping[str, str]]:
            report = run_checks(workspace, view, branch=branch, idle=give_way)
            return view.seq, report, None, self._renamed(view, report)

        self._all_s = self._touched_s = None
        begun_s = self._clock.monotonic_s()
        try:
            with self._reporting_errors():
                read = workspace.store(branch).read
                self._report(branch, *read(look))
        except BaseException:  # given up, or on the way to another place: it is still to be done
            self.plan()
            raise
        end_s = self._clock.monotonic_s()
        self._until_s = end_s + _SHARE * (end_s - begun_s)
        self._all_since_s = None if self._all_s is None else end_s

    def _check_touched(self, workspace: Workspace, branch: str, give_way: Callable[[str], str]) -> None:
        def look(view: View) -> tuple[int, CheckReport, frozenset[str], Mapping[str, str]]:
            ids, known = _affected_since(view, self._seen_seq)
            report = run_checks(workspace, view, branch=branch, ids=known, idle=give_way) if known else _NOTHING
            return view.seq, report, ids, self._renamed(view, report, ids)

        with self._reporting_errors():
            self._report(branch, *workspace.store(branch).read(look))
        self._touched_s = None

    def _renamed(self, view: View, report: CheckReport, ids: frozenset[str] | None = None) -> Mapping[str, str]:
        """Return the present ids of what was renamed, as far as violations that a report lacks are about it."""
        names = self._ledger.names_not_found(report.violations, ids)
        return view.renamed(names) if names else {}

    def _report(
        self, branch: str, seq: int, report: CheckReport, ids: frozenset[str] | None, renamed: Mapping[str, str]
    ) -> None:
        """Report new and fixed violations; a report is complete for ``ids``, or of everything (None)."""
        self._seen_seq = seq
        not_run = tuple(run for run in report.rules if run.status == "not_run")
        changes = self._ledger.update(report.violations, ids, {run.id for run in not_run}, renamed)
        is_other = ids is None and not_run != self._not_run
        run_again: tuple[str, ...] = ()
        if ids is None:
            could_not = {run.id for run in self._not_run}
            run_again = tuple(run.id for run in report.rules if run.id in could_not and run.status != "not_run")
            self._not_run = not_run
        is_first, self._is_first = self._is_first, False
        if changes.new or changes.fixed or is_first or is_other:
            present = self._ledger.violations
            at = self._clock.now()
            self._tell(
                Checked(at, branch, seq, changes.new, changes.fixed, present, is_first, self._not_run, run_again)
            )

    @contextlib.contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Report an error of this block, and plan another try."""
        try:
            yield
        except (InvalidConfig, NotFound, Unavailable, UnknownBranch) as error:
            self._open_errors.begin("checking", error)
            self._all_s = self._clock.monotonic_s() + self._retry.take_s()
        else:
            self._retry.end()
            self._open_errors.end("checking")


class _GivenUp(Exception):
    """There is something to do that comes first."""


def _affected_since(view: View, seq: int) -> tuple[frozenset[str], list[str]]:
    """Return what may have other violations than at a seq, and those of it that are entities or files now.

    These are the ids of what changed, with what it is linked to, the ends of edges that changed, and paths of files.
    """
    changed = view.rows(_CHANGED, [seq])
    near = {key for key, _ in changed}
    if entities := [key for key, is_entity in changed if is_entity]:
        these, params = among(entities)
        ends = f"select to_id from link where from_id {these} union select from_id from link where to_id {these}"  # noqa: S608 - parameters
        near.update(row[0] for row in view.rows(ends, [*params, *params]))
    wanted = sorted(near)
    there = {*(node.id for node in view.nodes(wanted)), *(source.path for source in view.sources(wanted))}
    return frozenset(near), sorted(there)
