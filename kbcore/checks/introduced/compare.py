"""Two reports compared: what the later one holds and the earlier one does not, and what was corrected. Pure.

Two violations are the same one where their keys are (``rules.accepted.key_of``): rule, id, code, field and values,
never the message. A rule that could not run over either state is reported as not run: nothing can be said of what it
would have found. What a rule found before is not fixed where it was not run afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

import msgspec

from kbcore.rules import CheckReport, RuleRun, Violation
from kbcore.rules.accepted import key_of, with_present_id
from kbcore.rules.registry import is_ok

K = TypeVar("K")


class Introduced(msgspec.Struct, frozen=True):
    """New violations, as a report, and the violations that no longer exist."""

    report: CheckReport
    fixed: tuple[Violation, ...] = ()


def of_entities(found: Introduced, ids: Collection[str]) -> Introduced:
    """Return what is new, and what was fixed, of these entities alone."""
    new = [one for one in found.report.violations if one.id in ids]
    report = CheckReport(is_ok(new, found.report.rules), new, found.report.rules)
    return Introduced(report, tuple(one for one in found.fixed if one.id in ids))


def introduced(
    before: CheckReport, after: CheckReport, renamed: Callable[[Collection[str]], Mapping[str, str]] = lambda _: {}
) -> Introduced:
    """Return what ``after`` reports and ``before`` does not.

    ``renamed`` returns the later id of each of these ids that was renamed between the two. Matched one for one are
    first the violations of one key in the same line, then those of one key, then those whose keys differ by the renames
    alone.
    """
    broken = {run.id: run.reason for run in before.rules if run.status == "not_run"}
    runs = [_run_on_both(run, broken.get(run.id)) for run in after.rules]
    compared = {run.id for run in runs if run.status == "ran"}
    old = [one for one in before.violations if one.rule in compared]
    new = [one for one in after.violations if one.rule in compared]
    old, new = _subtracted(old, new, [(key_of(one), one.line) for one in old], [(key_of(one), one.line) for one in new])
    old, new = _subtracted(old, new, [key_of(one) for one in old], [key_of(one) for one in new])
    ids = {id_ for one in old for id_ in (one.id, *one.values)}
    present = renamed(ids) if ids else {}
    if present:
        is_named = [bool(present.keys() & {one.id, *one.values}) for one in old]
        named = [one for one, it_is in zip(old, is_named, strict=True) if it_is]
        others = [one for one, it_is in zip(old, is_named, strict=True) if not it_is]
        later = [with_present_id(key_of(one), present) for one in named]
        named, new = _subtracted(named, new, later, [key_of(one) for one in new])
        old = [*others, *named]
    return Introduced(CheckReport(is_ok(new, runs), new, runs), tuple(old))


def _run_on_both(run: RuleRun, reason: str | None) -> RuleRun:
    if reason is None or run.status == "not_run":
        return run
    return msgspec.structs.replace(run, status="not_run", reason=f"over the state before the change: {reason}")


def _subtracted(
    old: list[Violation], new: list[Violation], old_keys: list[K], new_keys: list[K]
) -> tuple[list[Violation], list[Violation]]:
    """Return what is left of both when those of one key were taken away in pairs."""
    return _unmatched(old, old_keys, Counter(new_keys)), _unmatched(new, new_keys, Counter(old_keys))


def _unmatched(violations: list[Violation], keys: list[K], matched: Counter[K]) -> list[Violation]:
    left = []
    for one, key in zip(violations, keys, strict=True):
        if matched[key]:
            matched[key] -= 1
        else:
            left.append(one)
    return left
