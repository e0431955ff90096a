"""Violations that a project accepts: suppressions with a reason, and the baseline. Pure.

Both go by the rule, the code, the id, the field and the values of a violation, never by its message: other words in a
message, or a line that moves, change nothing.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kbcore.errors import InvalidConfig
from kbcore.errors.remedies import kb
from kbcore.model.graph import UNKNOWN_STATUS, Node
from kbcore.model.rule_settings import Suppression
from kbcore.rules import CheckReport, Violation, unresolved_reference
from kbcore.rules.elsewhere import KnownReferences
from kbcore.rules.registry import RULES, is_ok
from kbcore.secrets import mask_fields, masked
from kbcore.text.escaping import in_quotes
from kbcore.text.globs import matches
from kbcore.text.suggest import did_you_mean

ATTRIBUTE: Final = "suppress"
"""The attribute of an entity that holds a reason for each rule that it need not keep."""
FORMAT: Final = 1
_EXAMPLE: Final = f"`{ATTRIBUTE}: {{RULE: why}}`"
_SORT_IDS: Final = {rule.id: rule.sort_ids for rule in RULES if rule.sort_ids}


class StatedReasons(msgspec.Struct, frozen=True):
    """The value of that attribute, and the file that states it; "" where a client wrote it."""

    value: Any
    file: str

    @property
    def reasons(self) -> Mapping[str, Any]:
        """Return what counts: the reasons in a file. A client cannot take what it wrote out of the reports."""
        return self.value if self.file and isinstance(self.value, dict) else {}


Reasons = Mapping[str, StatedReasons]
"""Values of that attribute, by entity id."""


def stated_reasons(node: Node) -> StatedReasons | None:
    """Return the value of that attribute of an entity."""
    name = f"attributes.{ATTRIBUTE}"
    return StatedReasons(node.fields[name], node.owners.get(name, "")) if name in node.fields else None


class BaselineEntry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A violation as the baseline has it, and how many there are of it. What looks like a secret is masked.

    A digest in its place would let whoever has the file try out secrets; two of one kind in one place count as one.
    """

    rule: str
    id: str = ""
    code: str = ""
    field: str = ""
    values: tuple[str, ...] = ()
    count: int = 1

    def __post_init__(self) -> None:
        """Mask what looks like a secret."""
        mask_fields(self, "id", "field", "values")


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    violations: tuple[BaselineEntry, ...]


Baseline = Counter[BaselineEntry]
"""The number of accepted violations of each key; every key has the count 1."""


def key_of(violation: Violation) -> BaselineEntry:
    """Return what a violation is known by, in the baseline and wherever two reports are compared."""
    return BaselineEntry(violation.rule, violation.id, violation.code, violation.field, violation.values)


def read_baseline(text: str | None, file: str) -> Baseline:
    """Return the baseline in the text of a file. Raises: ``InvalidConfig``."""
    if text is None:
        return Counter()
    try:
        found = msgspec.json.decode(text, type=_File)
    except (msgspec.MsgspecError, UnicodeError) as error:
        hint = f"Restore it with git, or write it again: {kb('check', '--write-baseline')}."
        raise InvalidConfig(f"{file} is no baseline: {error}", hint=hint) from error
    if found.format != FORMAT:
        raise InvalidConfig(f"{file} has the format {found.format}; this KB reads {FORMAT}.", hint="Update KB.")
    kept: Baseline = Counter()
    for entry in found.violations:
        kept[msgspec.structs.replace(entry, count=1)] += max(entry.count, 0)
    return kept


def with_present_ids(baseline: Baseline, present: Mapping[str, str]) -> Baseline:
    """Return a baseline with the present ids of what was renamed since it was written."""
    if not present:
        return baseline
    kept: Baseline = Counter()
    for entry, count in baseline.items():
        kept[with_present_id(entry, present)] += count
    return kept


def with_present_id(entry: BaselineEntry, present: Mapping[str, str]) -> BaselineEntry:
    """Return an entry with the present ids of what was renamed, in the order in which the rule has them."""
    ids = tuple(present.get(one, one) for one in (entry.id, *entry.values))
    if ids == (entry.id, *entry.values):
        return entry
    sort_ids = _SORT_IDS.get(entry.rule)
    first, *values = sort_ids(ids) if sort_ids else ids
    return msgspec.structs.replace(entry, id=first, values=tuple(values))


def of_rules(baseline: Baseline, rules: Collection[str]) -> Baseline:
    """Return what a baseline holds of these rules."""
    return Counter({entry: count for entry, count in baseline.items() if entry.rule in rules})


def baseline_text(baseline: Baseline) -> str:
    """Return the text of a baseline: in a fixed order, one entry on each line, as git merges it best."""
    entries = [msgspec.structs.replace(entry, count=count) for entry, count in baseline.items()]
    entries.sort(key=lambda one: (one.rule, one.id, one.code, one.field, one.values))
    lines = ",\n".join("  " + json.dumps(msgspec.to_builtins(one), ensure_ascii=False) for one in entries)
    return (
        f'{{"format": {FORMAT}, "violations": [\n{lines}\n]}}\n'
        if lines
        else f'{{"format": {FORMAT}, "violations": []}}\n'
    )


def without_accepted(
    report: CheckReport,
    suppressions: Sequence[Suppression],
    reasons_of: Callable[[list[str]], Reasons],
    baseline: Baseline,
    names: Collection[str],
) -> CheckReport:
    """Return a report without what is suppressed or in the baseline, both counted.

    ``reasons_of`` returns what the entities of these ids say in their attribute ``suppress``; ``names`` are those of
    all rules.
    """
    if not report.violations:
        return report
    reasons = reasons_of(sorted({one.id for one in report.violations}))
    left = [_hinted(one, reasons, names) for one in report.violations if not _is_suppressed(one, suppressions, reasons)]
    suppressed = len(report.violations) - len(left)
    accepted = Counter(baseline)
    new = [] if accepted else left
    for one in left if accepted else ():
        key = key_of(one)
        if accepted[key] > 0:
            accepted[key] -= 1
        else:
            new.append(one)
    in_baseline, is_good = len(left) - len(new), is_ok(new, report.rules)
    return msgspec.structs.replace(report, ok=is_good, violations=new, suppressed=suppressed, in_baseline=in_baseline)


class AcceptedFaults:
    """Faults reported by a sync that settings, documents and the baseline accept; it knows no edge types.

    ``reasons`` are those of the entities that the faults are about, and ``statuses`` has the status of each of which a
    sync says that it is not listed.
    """

    def __init__(
        self,
        suppressions: Sequence[Suppression],
        baseline: Baseline,
        reasons: Reasons = MappingProxyType({}),
        statuses: Mapping[str, str] = MappingProxyType({}),
        elsewhere: KnownReferences | None = None,
    ) -> None:
        self._suppressions = suppressions
        self._reasons = reasons
        self._statuses = statuses
        self._elsewhere = elsewhere
        self._left: Counter[tuple[str, str, str, tuple[str, ...]]] = Counter()
        for entry, count in baseline.items():
            self._left[entry.rule, entry.id, entry.code, entry.values[-1:]] += count

    def accepts(self, rule: str, key: str, source: str, *, code: str = "", target: str = "") -> bool:
        """Return whether this is accepted; each entry of the baseline accepts as many as it counts."""
        if rule == unresolved_reference.RULE.id and self._elsewhere and self._elsewhere.has(target):
            return True
        if _has_reason(rule, key, self._reasons) or _is_in_settings(rule, key, source, self._suppressions):
            return True
        entry = (rule, masked(key), code, (masked(target),) if target else ())
        self._left[entry] -= 1
        return self._left[entry] >= 0

    def accepts_status(self, path: str, key: str) -> bool:
        """Return whether it is accepted that a file states a status of this entity that is not listed."""
        return key in self._statuses and self.accepts(UNKNOWN_STATUS, key, path, target=self._statuses[key])


def _is_in_settings(rule: str, key: str, source: str, suppressions: Sequence[Suppression]) -> bool:
    return any(one.rule == rule and (one.id == key if one.id else matches(source, one.paths)) for one in suppressions)


def _is_suppressed(one: Violation, suppressions: Sequence[Suppression], reasons: Reasons) -> bool:
    return _has_reason(one.rule, one.id, reasons) or _is_in_settings(one.rule, one.id, one.source, suppressions)


def _has_reason(rule: str, id_: str, reasons: Reasons) -> bool:
    """Return whether an entity says in its document why it need not keep a rule."""
    said = reasons[id_].reasons.get(rule) if id_ in reasons else None
    return isinstance(said, str) and bool(said.strip())


def _hinted(one: Violation, reasons: Reasons, names: Collection[str]) -> Violation:
    """Return a violation that says why a suppression of its entity does not count, where one may be meant for it."""
    said = reasons.get(one.id)
    if said is None:
        return one
    named = said.value if isinstance(said.value, dict) else (one.rule,)
    for rule, code, fault, remedy in faults_of(said, names):
        is_its_own = one.rule in named and rule in ("", one.rule)
        if is_its_own or (code == "unknown_rule" and one.rule not in named):
            parts = (f"`{ATTRIBUTE}` {fault}.", remedy, one.remedy)
            return msgspec.structs.replace(one, remedy=" ".join(part for part in parts if part))
    return one


def faults_of(said: StatedReasons, names: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    """Yield each part of an attribute that can suppress nothing.

    That is the rule, "" for all of them; the code; what is wrong, as the end of a sentence about the attribute; the
    remedy.
    """
    if not isinstance(said.value, dict):
        yield "", "wrong_type", "is ignored: it is no mapping", f"It takes a reason for each rule, as in {_EXAMPLE}."
    elif not said.file:
        yield "", "client", "is ignored: a client wrote it", "It counts only in a document."
    else:
        for name, reason in said.value.items():
            if name not in names:
                yield (
                    name,
                    "unknown_rule",
                    f"names {in_quotes(name)}, and there is no such rule",
                    did_you_mean(name, names),
                )
            elif not isinstance(reason, str) or not reason.strip():
                yield name, "no_reason", f"names {name} without a reason", "Write why."
