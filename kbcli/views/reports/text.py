"""A report for people: rules with errors first, of each a few violations, the place first as compilers write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal

from kbcli.messages.violations import placed_line, short_line
from kbcli.terminal.output import Output
from kbcli.views.reports.report_content import ReportContent, summary
from kbcore.checks.grouping import FEW, Alike, RuleGroup, by_rule, grouped
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.rules import Violation
from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

_INDENT: Final = "  "
_NAMED: Final = 3
"""The number of others that are named of similar ones."""


_SCREEN_LINES: Final = 22
"""Lines of a report without a limit, where one violation of each rule leaves room for them; the summary comes after."""


def shown(violations: Sequence[Violation], limit: int | None) -> list[Violation]:
    """Return the violations that a text may have a line for; only their lines in files are of use."""
    return [one.first for group in grouped(violations, limit) for one in group.shown]


def show(output: Output, content: ReportContent) -> None:
    """Write the report; rules that could not run are warnings on standard error.

    Without a limit it shows as many violations of each rule as a screen has room for, at least one and at most ``FEW``.
    """
    output.is_paged = True
    lines: list[str] = []
    for few in range(FEW, 0, -1):
        groups = grouped(content.report.violations, content.limit, few=few)
        lines = [line for group in groups for line in _lines(output, group, content.command)]
        if content.limit is not None or len(lines) <= _SCREEN_LINES:
            break
    output.stream(f"{line}\n" for line in lines)
    warn_of_rules(output, content)
    output.say(escape_controls(summary(content)))


def _lines(output: Output, group: RuleGroup, command: str) -> Iterator[str]:
    """Yield the lines of one rule: how many violations there are, some of them, and how to see the others."""
    colour: Literal["red", "yellow"] = "red" if group.severity == "error" else "yellow"
    count = f"{'at least ' * group.is_cut}{group.total}"
    yield f"{output.styled(group.severity, colour)} {escape_controls(group.rule)}: {count}"
    for one in group.shown:
        yield from output.wrapped(placed_line(one.first) + escape_controls(_alike(one)), _INDENT)
    if rest := _rest(group, command):
        yield from output.wrapped(escape_controls(rest), _INDENT)


def show_short(output: Output, content: ReportContent) -> None:
    """Write one line for each violation."""
    output.is_paged = True
    violations = content.report.violations
    if content.limit is not None:
        violations = [one for found in by_rule(violations).values() for one in found[: content.limit]]
    elif output.is_terminal:
        violations = violations[: FEW * FEW]
    output.stream(f"{short_line(one)}\n" for one in violations)
    warn_of_rules(output, content)
    output.note(escape_controls(summary(content)))
    if len(violations) < len(content.report.violations):
        output.note_always(f"{len(violations)} of {len(content.report.violations)} shown; for more: --limit N")


def _alike(alike: Alike) -> str:
    """Return how many violations of the same kind there are, with some of their ids."""
    if not alike.others:
        return ""
    names = [one for one in dict.fromkeys(one.subject for one in alike.elsewhere) if one != alike.first.subject]
    listed = (
        f": {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else '.'}"
        if names
        else f" about {alike.first.subject}."
    )
    shared = f" ({alike.shared})" if alike.shared else ""
    return f" {len(alike.others):,} more of this kind{shared}{listed}"


def _rest(group: RuleGroup, command: str) -> str:
    """Return how to see each violation of a rule, where some have no line of their own."""
    if len(group.shown) == group.total:
        return ""
    hidden = group.hidden
    every = f"--limit {group.total}" if group.total <= MAX_PAGE_ROWS else "--format short"
    return f"{f'{hidden:,} more; ' if hidden else ''}each one: {command} --rule {group.rule} {every}"


def warn_of_rules(output: Output, content: ReportContent) -> None:
    """Warn of each rule that could not run; note which took long, and which had nothing to look at, by reason."""
    idle: dict[str, list[str]] = {}
    for run in content.report.rules:
        if run.status == "not_run":
            output.warn(escape_controls(f"the rule {run.id} could not run: {run.reason}"))
        elif run.status == "not_applicable":
            idle.setdefault(run.reason, []).append(run.id)
    slow = sorted((run for run in content.report.rules if run.is_slow), key=lambda run: -run.seconds)
    if slow:
        output.note(
            escape_controls(f"Rules that took longest: {', '.join(f'{run.id} {run.seconds:.1f} s' for run in slow)}.")
        )
    for reason, names in idle.items():
        which = f"The rule {names[0]} was" if len(names) == 1 else f"{pluralize(len(names), 'rule')} were"
        output.note(escape_controls(f"{which} not run: {reason}"))
