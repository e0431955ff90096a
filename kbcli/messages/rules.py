"""Rules in words: what ``kb check --explain`` and ``kb check --test-rules`` write for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kbcli.terminal.tables import pairs
from kbcore.text.escaping import escape_controls, escape_lines, json_text
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.checks.explain import Explained
    from kbcore.checks.trials import TrialRun

_INDENT = "  "


def show_rule(output: Output, where: str, rule: Explained) -> None:
    """Write everything about one rule."""
    output.is_paged = True
    lines = [
        output.styled(escape_controls(rule.id), "bold"),
        *output.wrapped(escape_controls(rule.description), _INDENT),
    ]
    lines += ["", *pairs(_facts(rule, where), output.width, _INDENT)]
    for title, text in (("SQL", rule.sql), ("Prolog", rule.prolog)):
        if text:
            lines += ["", title, *(_INDENT + line for line in escape_lines(text).splitlines())]
    for title, text in (("Example", rule.example), ("Remedy", rule.remedy)):
        if text:
            lines += ["", title, *output.wrapped(escape_controls(text), _INDENT)]
    if rule.tests:
        lines += ["", "Tests", *(_INDENT + line for line in _trial_lines(output, rule.tests))]
    output.data("\n".join(lines) + "\n")


def _facts(rule: Explained, where: str) -> Iterator[tuple[str, str]]:
    default = f" (without that: {rule.severity})" if rule.level != rule.severity else ""
    yield "severity", f"{rule.level}, set by {rule.level_source}{default}"
    yield "defined in", rule.source
    for one in rule.params:
        changed = f" (default {json_text(one.default)})" if one.value != one.default else ""
        yield f"${one.name}", f"{json_text(one.value)}, set by {one.source}{changed}"
    if rule.time_limit_seconds:
        yield "time limit", f"{rule.time_limit_seconds:g} s, set by {rule.time_limit_source}"
    found = f"{pluralize(rule.violations, 'violation')} in {where}"
    accepted = f", {rule.in_baseline} in the baseline" if rule.in_baseline else ""
    accepted += f", {rule.suppressed} suppressed" if rule.suppressed else ""
    if rule.status == "not_run":
        found = f"could not run in {where}: {rule.reason}"
    elif rule.status == "not_applicable":
        found = f"does not apply in {where}: {rule.reason}"
    yield "now", f"{found}{accepted}"


def show_trials(output: Output, trials: Sequence[TrialRun]) -> None:
    """Write the tests that failed, and how many there were."""
    failed = [one for one in trials if not one.ok]
    lines = [*_trial_lines(output, failed)]
    if lines:
        output.data("\n".join(lines) + "\n")
    if not trials:
        output.say("No rule of the project has tests; docs/rules.md of KB shows how to write them.")
        return
    output.say(f"{pluralize(len(trials), 'test')} of rules: {len(trials) - len(failed)} passed, {len(failed)} failed")


def _trial_lines(output: Output, trials: Iterable[TrialRun]) -> Iterator[str]:
    for one in trials:
        word = output.styled("passed", "green") if one.ok else output.styled("failed", "red")
        said = f": {one.message}" if one.message else ""
        yield f"{word} " + escape_controls(f"{one.source}: {one.rule}, {one.test}{said}")
