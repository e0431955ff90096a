"""Violations that a project accepts: suppressions with a reason, and the baseline. Pure.

Both go by the rule, the code, the id, the field and the values of a violation, never by its message: a message that is
worded anew, or a line that moves, changes nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidConfig
from kbcore.extract.globs import matches
from kbcore.rules import Report, Violation
from kbcore.rules.registry import is_ok
from kbcore.rulesettings import Suppression

ATTRIBUTE: Final = "suppress"
"""The attribute of an entity that holds a reason for each rule that it need not keep."""
FORMAT: Final = 1

Reasons = Mapping[str, Mapping[str, Any]]
"""What entities say in that attribute, by their ids."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A violation as the baseline has it, and how many there are of it."""

    rule: str
    id: str = ""
    code: str = ""
    field: str = ""
    values: tuple[str, ...] = ()
    count: int = 1


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    violations: tuple[Entry, ...]


Baseline = Counter[Entry]
"""How many violations of each key are accepted; every key has the count 1."""


def key_of(violation: Violation) -> Entry:
    """Return what the baseline knows a violation by."""
    return Entry(violation.rule, violation.id, violation.code, violation.field, violation.values)


def read_baseline(text: str | None, file: str) -> Baseline:
    """Return the baseline in the text of a file. Raises: ``InvalidConfig``."""
    if text is None:
        return Counter()
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, UnicodeError) as error:
        hint = "Restore it with git, or write it again: `kb check --write-baseline`."
        raise InvalidConfig(f"{file} is no baseline: {error}", hint=hint) from error
    if found.format != FORMAT:
        raise InvalidConfig(f"{file} has the format {found.format}; this KB reads {FORMAT}.", hint="Update KB.")
    kept: Baseline = Counter()
    for entry in found.violations:
        kept[msgspec.structs.replace(entry, count=1)] += max(entry.count, 0)
    return kept


def baseline_text(violations: Iterable[Violation]) -> str:
    """Return the text of a baseline of these violations: in a fixed order, one on each line, as git merges it best."""
    counts = Counter(key_of(one) for one in violations)
    entries = [msgspec.structs.replace(entry, count=count) for entry, count in counts.items()]
    entries.sort(key=lambda one: (one.rule, one.id, one.code, one.field, one.values))
    lines = ",\n".join("  " + json.dumps(msgspec.to_builtins(one), ensure_ascii=False) for one in entries)
    return (
        f'{{"format": {FORMAT}, "violations": [\n{lines}\n]}}\n'
        if lines
        else f'{{"format": {FORMAT}, "violations": []}}\n'
    )


def without_accepted(
    report: Report,
    suppressions: Sequence[Suppression],
    reasons_of: Callable[[list[str]], Reasons],
    baseline: Baseline,
) -> Report:
    """Return a report without what is suppressed or in the baseline, both counted.

    ``reasons_of`` returns what the entities of these ids say in their attribute ``suppress``.
    """
    if not report.violations:
        return report
    reasons = reasons_of(sorted({one.id for one in report.violations}))
    left = [_hinted(one, reasons) for one in report.violations if not _is_suppressed(one, suppressions, reasons)]
    suppressed = len(report.violations) - len(left)
    accepted = Counter(baseline)
    new = []
    for one in left:
        key = key_of(one)
        if accepted[key] > 0:
            accepted[key] -= 1
        else:
            new.append(one)
    return Report(is_ok(new, report.rules), new, report.rules, suppressed, len(left) - len(new))


def _is_suppressed(one: Violation, suppressions: Sequence[Suppression], reasons: Reasons) -> bool:
    said = reasons.get(one.id, {}).get(one.rule)
    if isinstance(said, str) and said.strip():
        return True
    return any(
        rule.rule == one.rule and (rule.id == one.id if rule.id else matches(one.source, rule.paths))
        for rule in suppressions
    )


def _hinted(one: Violation, reasons: Reasons) -> Violation:
    """Return a violation that says why a suppression in its document does not count."""
    if one.rule not in reasons.get(one.id, {}):
        return one
    hint = f"`{ATTRIBUTE}` names {one.rule} without a reason; write why. {one.hint}".rstrip()
    return msgspec.structs.replace(one, hint=hint)
