"""The report of a sleep cycle for people: what each phase did, the measures against their targets, and what is left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.kip.sleep.assess import Metric
    from kbcore.kip.sleep.cycle import CycleReport
    from kbcore.kip.sleep.phase import PhaseDone

_MEASURES: Final = {
    "orphans": "concepts without a domain",
    "unsorted": "concepts in Unsorted",
    "stale_events": "old events",
    "average_confidence": "average confidence of links",
    "domains_out_of_bounds": "domains too small or too large",
}
_KINDS: Final = {
    "task": "task",
    "duplicate": "similar pair",
    "event": "old event",
    "unsorted": "concept in Unsorted",
    "domain": "domain",
}
_MANY: Final = {"similar pair": "similar pairs", "concept in Unsorted": "concepts in Unsorted"}


def show(output: Output, report: CycleReport) -> None:
    """Write a report."""
    if report.waits_hours:
        hours = f"{report.waits_hours:g} hours"
        output.say(escape_controls(f"Nothing was done: the last cycle of {report.branch} was at {report.last_cycle}."))
        output.note(f"The next one is due in {hours} (`sleep.intervalHours`); `kb sleep --force` does not wait.")
    else:
        rows = [row for done in report.phases for row in _rows(done)]
        _table(output, ("PHASE", "DONE", "COUNT", "SEQ"), rows)
        _show_issues(output, report)
    head = ("MEASURE", "BEFORE", "AFTER", "TARGET", "")
    _table(output, head, [_measure(*both) for both in zip(report.before.metrics, report.after.metrics, strict=True)])
    _show_work(output, report)
    where = f"{report.branch} at seq {report.seq}"
    output.note(escape_controls("Nothing was written: this was a dry run." if report.dry_run else f"{where}."))


def _table(output: Output, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    output.data("".join(f"{line.rstrip()}\n" for line in output.table(head, rows)) + "\n")


def _rows(done: PhaseDone) -> Iterator[tuple[str, ...]]:
    said = [(what, str(number)) for what, number in done.done.items()]
    said += [(f"left, {why}", str(number)) for why, number in done.left.items()]
    seq = str(done.seq) if done.seq else ""
    for at, (what, count) in enumerate(said or [("-", "")]):
        yield ("" if at else f"{done.phase} {done.name}", what, count, "" if at else seq)


def _show_issues(output: Output, report: CycleReport) -> None:
    """Write sentences uncut: a table would cut them where the terminal is narrow."""
    issues = dict.fromkeys(issue for done in report.phases for issue in done.issues)
    lines = [line for issue in issues for line in output.wrapped(escape_controls(issue))]
    if lines:
        output.data("".join(f"{line}\n" for line in lines) + "\n")


def _measure(before: Metric, after: Metric) -> tuple[str, ...]:
    values = ["-" if one.value is None else f"{one.value:g}" for one in (before, after)]
    return (_MEASURES[after.name], *values, after.target, "" if after.is_met else "not met")


def _show_work(output: Output, report: CycleReport) -> None:
    counts = report.work.counts
    if not counts:
        output.say("Nothing is left for judgement.")
        return
    parts = [_counted(number, _KINDS[kind]) for kind, number in counts.items()]
    output.say(f"Left for judgement: {', '.join(parts)}.")
    output.note(
        "An agent takes these over with `kb_sleep` (`kb mcp --toolsets core,kip`); --json shows the first ones."
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {_MANY[noun]}" if number != 1 and noun in _MANY else pluralize(number, noun)
