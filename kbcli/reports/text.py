"""A report for people: rules with errors first, of each a few violations, the place first as compilers write it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Literal, NamedTuple

from kbcli.render import Output
from kbcli.reports.told import Told, summary
from kbcli.words.violations import short_line
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.phrases import counted
from kbcore.rules import Violation
from kbcore.visible import problem_line, visible

FEW: Final = 5
"""So many violations of a rule are shown where no limit is given; more of them if they are of one kind."""
_INDENT: Final = "  "
_NAMED: Final = 3
"""So many others are named of those that are alike."""


class _Alike(NamedTuple):
    """A violation, and those of the same kind that are shown in its line."""

    first: Violation
    others: Sequence[Violation] = ()


class _Group(NamedTuple):
    """What is shown of one rule, and how many violations it has in all."""

    rule: str
    severity: Literal["error", "warning"]
    shown: list[_Alike]
    total: int


def shown(violations: Sequence[Violation], limit: int | None) -> list[Violation]:
    """Return the violations that a text has a line for; only their lines in files are of use."""
    return [one.first for group in _groups(violations, limit) for one in group.shown]


def tell(output: Output, told: Told) -> None:
    """Write the report; rules that could not run are warnings on standard error."""
    output.is_paged = True
    for group in _groups(told.report.violations, told.limit):
        colour: Literal["red", "yellow"] = "red" if group.severity == "error" else "yellow"
        output.data(f"{output.styled(group.severity, colour)} {visible(group.rule)}: {group.total}\n")
        for one in group.shown:
            line = 0 if one.first.message.startswith(one.first.source) else told.lines.get(one.first, 0)
            said = problem_line(one.first.source, line, one.first.sentence, one.first.hint) + visible(
                _alike(one.others)
            )
            output.data("".join(f"{part}\n" for part in output.wrapped(said, _INDENT)))
        if rest := _rest(group, told.command):
            output.data("".join(f"{part}\n" for part in output.wrapped(visible(rest), _INDENT)))
    warn_of_rules(output, told)
    output.say(visible(summary(told)))


def tell_short(output: Output, told: Told) -> None:
    """Write one line for each violation."""
    output.is_paged = True
    violations = told.report.violations
    if told.limit is not None:
        violations = [one for found in _by_rule(violations).values() for one in found[: told.limit]]
    elif output.is_terminal:
        violations = violations[: FEW * FEW]
    output.stream(f"{short_line(one, told.lines.get(one, 0))}\n" for one in violations)
    warn_of_rules(output, told)
    output.note(visible(summary(told)))
    if len(violations) < len(told.report.violations):
        output.note_always(f"{len(violations)} of {len(told.report.violations)} shown; for more: --limit N")


def statistics(violations: Sequence[Violation]) -> list[tuple[str, str, int]]:
    """Return each rule that was broken with its severity and how often, errors first, then the most frequent."""
    groups = _by_rule(violations)
    rows = [(rule, severity, len(found)) for (severity, rule), found in groups.items()]
    return sorted(rows, key=lambda row: (row[1], -row[2], row[0]))


def _by_rule(violations: Sequence[Violation]) -> dict[tuple[Literal["error", "warning"], str], list[Violation]]:
    groups: dict[tuple[Literal["error", "warning"], str], list[Violation]] = {}
    for one in violations:
        groups.setdefault((one.severity, one.rule), []).append(one)
    return groups


def _groups(violations: Sequence[Violation], limit: int | None) -> Iterator[_Group]:
    """Yield what to show of each rule. Without a limit those of one kind share a line where there are many."""
    for (severity, rule), found in _by_rule(violations).items():
        if limit is not None:
            alike = [_Alike(one) for one in found[:limit]]
        elif len(found) <= FEW:
            alike = [_Alike(one) for one in found]
        else:
            kinds: dict[tuple[str, ...], list[Violation]] = {}
            for one in found:
                kinds.setdefault(one.kind, []).append(one)
            alike = [_Alike(first, others) for first, *others in kinds.values()][:FEW]
        yield _Group(rule, severity, alike, len(found))


def _alike(others: Sequence[Violation]) -> str:
    """Return how many violations of the same kind there are, with some of their ids."""
    if not others:
        return ""
    names = list(dict.fromkeys(one.id for one in others))
    return f" And {len(others):,} more like it: {', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else '.'}"


def _rest(group: _Group, command: str) -> str:
    """Return how to see each violation of a rule, where some have no line of their own."""
    if len(group.shown) == group.total:
        return ""
    hidden = group.total - sum(1 + len(one.others) for one in group.shown)
    every = f"--limit {group.total}" if group.total <= MAX_PAGE_ROWS else "--format short"
    return f"{f'{hidden:,} more; ' if hidden else ''}each one: {command} --rule {group.rule} {every}"


def warn_of_rules(output: Output, told: Told) -> None:
    """Warn of each rule that could not run; note which took long, and which had nothing to look at, by reason."""
    idle: dict[str, list[str]] = {}
    for run in told.report.rules:
        if run.status == "not_run":
            output.warn(visible(f"the rule {run.id} could not run: {run.reason}"))
        elif run.status == "not_applicable":
            idle.setdefault(run.reason, []).append(run.id)
    slow = sorted((run for run in told.report.rules if run.is_slow), key=lambda run: -run.seconds)
    if slow:
        output.note(visible(f"Rules that took longest: {', '.join(f'{run.id} {run.seconds:.1f} s' for run in slow)}."))
    for reason, names in idle.items():
        which = f"The rule {names[0]} was" if len(names) == 1 else f"{counted(len(names), 'rule')} were"
        output.note(visible(f"{which} not run: {reason}"))
