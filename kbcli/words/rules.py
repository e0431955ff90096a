"""Rules in words: what ``kb check --explain`` and ``kb check --test-rules`` write for people."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kbcli.words.lines import counted
from kbcore.visible import visible, visible_lines

if TYPE_CHECKING:
    from kbcli.render import Output
    from kbcore.checks.explain import Explained
    from kbcore.checks.trials import TrialRun

_LABEL_CHARS = 11


def tell_rule(output: Output, where: str, rule: Explained) -> None:
    """Write everything about one rule."""
    output.is_paged = True
    width = max(output.width or 100, 40)
    lines = [output.styled(visible(rule.id), "bold"), *_wrapped(visible(rule.description), width, "  ")]
    lines += ["", *_facts(rule, where, width)]
    if rule.sql:
        lines += ["", "SQL", *(f"  {line}" for line in visible_lines(rule.sql).splitlines())]
    for title, text in (("Example", rule.example), ("Remedy", rule.remedy)):
        if text:
            lines += ["", title, *_wrapped(visible(text), width, "  ")]
    if rule.tests:
        lines += ["", "Tests", *(f"  {line}" for line in _trial_lines(output, rule.tests))]
    output.data("\n".join(lines) + "\n")


def _facts(rule: Explained, where: str, width: int) -> Iterator[str]:
    level = "off" if rule.level == "off" else rule.level
    default = f" (without that: {rule.severity})" if rule.level != rule.severity else ""
    found = counted(rule.violations, "violation")
    if rule.status == "not_run":
        found = f"could not run: {rule.reason}"
    elif rule.status == "not_applicable":
        found = f"does not apply: {rule.reason}"
    limits_s = [rule.time_limit_seconds]
    rows = [
        ("severity", f"{level}, set by {rule.level_source}{default}"),
        ("defined in", rule.source),
        *((f"${one.name}", _parameter(one.value, one.source, one.default)) for one in rule.params),
        *(("time limit", f"{limit_s:g} s, set by {rule.time_limit_source}") for limit_s in filter(None, limits_s)),
        ("now", f"{found} in {where}"),
    ]
    label_chars = max(_LABEL_CHARS, *(len(label) for label, _ in rows)) + 2
    for label, text in rows:
        head, *rest = _wrapped(visible(text), width, " " * (label_chars + 2)) or [""]
        yield f"  {visible(label):{label_chars}}{head.strip()}"
        yield from rest


def _parameter(value: object, source: str, default: object) -> str:
    changed = f" (default {_shown(default)})" if value != default else ""
    return f"{_shown(value)}, set by {source}{changed}"


def _shown(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _wrapped(text: str, width: int, indent: str) -> list[str]:
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )


def tell_trials(output: Output, trials: Sequence[TrialRun]) -> None:
    """Write the tests that failed, and how many there were."""
    failed = [one for one in trials if not one.ok]
    lines = [*_trial_lines(output, failed)]
    if lines:
        output.data("\n".join(lines) + "\n")
    if not trials:
        output.say("No rule of the project has tests; docs/rules.md shows how to write them.")
        return
    output.say(f"{counted(len(trials), 'test')} of rules: {len(trials) - len(failed)} passed, {len(failed)} failed")


def _trial_lines(output: Output, trials: Iterable[TrialRun]) -> Iterator[str]:
    for one in trials:
        word = output.styled("passed", "green") if one.ok else output.styled("failed", "red")
        said = f": {one.message}" if one.message else ""
        yield f"{word} " + visible(f"{one.source}: {one.rule}, {one.test}{said}")
