"""All rules, in the order in which they are listed, and how they are run together.

A rule that could not run is reported as not run and never counts as passed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec

from kbcore import progress
from kbcore.errors import KBError, NotFound, Problem, ViewDamaged
from kbcore.errors.remedies import for_shell
from kbcore.process.system_limits import exhausted
from kbcore.rules import (
    acyclic,
    against,
    conflict,
    duplicate_title,
    endpoint_types,
    event_flow,
    failing_test,
    idle_flag,
    missing_file,
    must_coverage,
    orphans,
    required_fields,
    secret,
    similar_ids,
    staged_symbol,
    stale_decision,
    stale_index,
    suspect_edge,
    unknown_status,
    unknown_type,
    unreadable_source,
    unresolved_reference,
)
from kbcore.rules.look_ups import Look
from kbcore.rules.rule import Finding, NotApplicable, OtherSide, Rule, RuleContext, Severity, numeric_order
from kbcore.secrets import mask_fields, masked
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean

RULES: Final = (
    required_fields.RULE,
    conflict.RULE,
    unresolved_reference.RULE,
    endpoint_types.RULE,
    unknown_type.RULE,
    unknown_status.RULE,
    must_coverage.RULE,
    failing_test.RULE,
    acyclic.RULE,
    orphans.RULE,
    idle_flag.RULE,
    event_flow.RULE,
    stale_decision.RULE,
    suspect_edge.RULE,
    missing_file.RULE,
    similar_ids.RULE,
    duplicate_title.RULE,
    unreadable_source.RULE,
    stale_index.RULE,
    secret.RULE,
)
ON_DEMAND: Final = (staged_symbol.RULE, *against.RULES)
"""Rules that run only where they are named: a state alone gives them nothing to look at."""
NAMES: Final = tuple(rule.id for rule in (*RULES, *ON_DEMAND))
"""The names of KB's own rules, as the configuration may use them."""

Level = Literal["error", "warning", "off"]
FailOn = Literal["error", "warning", "never"]

_SLOW_S: Final = 3.0
"""A rule that takes as long is named with its time."""


class Violation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that breaks a rule: what, how bad, what to do, and the file to edit ("" for a client's facts).

    ``code``, ``field``, ``values``, ``names_id`` and ``other`` are those of ``Finding``; with the rule and the id the
    first three are the same as long as the same thing is wrong, whatever the message says of it. ``line`` is the line
    of ``source``, 0 while it is unknown. What looks like a secret is masked; ``subject`` is the id as it is shown.
    """

    rule: str
    severity: Severity
    id: str
    message: str
    remedy: str
    source: str
    code: str = ""
    field: str = ""
    values: tuple[str, ...] = ()
    line: int = 0
    names_id: bool = True
    other: OtherSide | None = None

    def __post_init__(self) -> None:
        """Mask what looks like a secret, but in the id, by which the entity is found."""
        mask_fields(self, "message", "remedy", "field", "values")

    @property
    def subject(self) -> str:
        """Return the id as it is shown."""
        return masked(self.id)

    @property
    def hint(self) -> str:
        """Return the remedy in the words of the command line."""
        return for_shell(self.remedy)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values; what is empty is left out, but for the hint and the source."""
        found: dict[str, Any] = msgspec.to_builtins(self) | {"id": self.subject, "remedy": self.hint}
        found.pop("names_id", None)
        return {("hint" if name == "remedy" else name): value for name, value in found.items()}

    @property
    def kind(self) -> tuple[str, ...]:
        """Return what it has in common with the same fault of another entity."""
        return self.rule, self.code, self.field, *self.values

    @property
    def sentence(self) -> str:
        """Return the message, with the id that it is about before it unless it names that."""
        return self.message if self.names_id or not self.id else f"{self.subject}: {self.message}"

    @property
    def beside_file(self) -> str:
        """Return ``sentence`` for a line that begins with the file: an id that is the file's path is not repeated."""
        return self.message if self.id == self.source else self.sentence


class RuleRun(msgspec.Struct, frozen=True):
    """The run of one rule; ``reason`` says why it did not run.

    One that is not applicable had nothing to look at, and fails nothing. ``seconds`` is how long it took.
    """

    id: str
    severity: Severity
    status: Literal["ran", "not_run", "not_applicable", "off"]
    reason: str = ""
    seconds: float = 0.0

    @property
    def is_slow(self) -> bool:
        """Return whether it took so long that it should be reported."""
        return self.seconds >= _SLOW_S


class CheckReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of ``kb check``. ``ok``: no violation is an error, and every rule that is not off could run.

    ``suppressed``, ``in_baseline`` and ``of_other_severity`` count the violations that are not among these: those for
    which there is a reason, those that the baseline holds, and those of another severity than the one asked for.
    """

    ok: bool
    violations: list[Violation]
    rules: list[RuleRun]
    suppressed: int = 0
    in_baseline: int = 0
    of_other_severity: int = 0
    proposed: int = 0
    """Entities and edges that were left out because nobody has accepted them."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"violations": [one.as_json() for one in self.violations]}

    def passes(self, fail_on: FailOn) -> bool:
        """Return whether the command succeeds; a rule that could not run fails it whatever counts as a failure."""
        failing = {"error": {"error"}, "warning": {"error", "warning"}, "never": set[str]()}[fail_on]
        has_failed = any(violation.severity in failing for violation in self.violations)
        return not has_failed and all(run.status != "not_run" for run in self.rules)


def check(
    context: RuleContext,
    levels: Mapping[str, Level],
    *,
    only: Sequence[str] = (),
    project: Iterable[Rule] = (),
    idle: Callable[[str], str] = lambda _: "",
) -> CheckReport:
    """Run the rules and return everything they found, errors first, then in the order of rules and ids.

    ``levels`` holds what the configuration changes; that there are such rules was seen when it was read. ``only``
    names the rules to run, even those that are off; none means all. ``project`` are rules of the project's own, whose
    names are no others' (``load_rules`` sees to that). ``idle`` is asked by the name of a rule, right before it is run,
    why it has nothing to look at; such a rule is not applicable, and is not run.

    Raises: ``NotFound`` with every unknown rule in ``only``; what ``idle`` raises, by which a check is given up.
    """
    named = [rule for rule in ON_DEMAND if rule.id in only]
    rules = {rule.id: rule for rule in (*RULES, *named, *project)}
    check_names(only, rules)
    violations: list[Violation] = []
    runs = []
    for name, rule in progress.track(rules.items(), len(rules), "rules run", every=1):
        level = levels.get(name, rule.severity)
        severity: Severity = rule.severity if level == "off" else level
        if only and name not in only:
            continue
        if level == "off" and not only:
            runs.append(RuleRun(name, severity, "off", "The configuration turns it off."))
            continue
        reason = idle(name)
        if reason:
            runs.append(RuleRun(name, severity, "not_applicable", reason))
            continue
        begun_s = context.now_s()
        seen = context.with_proposals if rule.sees_proposals else None
        findings, run = _run(rule, severity, seen or context)
        runs.append(msgspec.structs.replace(run, seconds=round(context.now_s() - begun_s, 3)))
        violations += [_violation(name, severity, one) for one in findings]
    violations.sort(key=lambda violation: violation.severity)
    return CheckReport(is_ok(violations, runs), violations, runs)


def look(at: Look, levels: Mapping[str, Level], only: Collection[str]) -> CheckReport:
    """Return what those of KB's own rules that are named, and not off, find by look-ups of what a change may break."""
    violations: list[Violation] = []
    runs = []
    for rule in RULES:
        level = levels.get(rule.id, rule.severity)
        if rule.look is None or rule.id not in only or level == "off":
            continue
        findings, run = _run_rule(rule, level, partial(rule.look, at))
        findings.sort(key=place_of)
        runs.append(run)
        violations += [_violation(rule.id, level, one) for one in findings]
    violations.sort(key=lambda violation: violation.severity)
    return CheckReport(is_ok(violations, runs), violations, runs)


def is_ok(violations: Iterable[Violation], runs: Iterable[RuleRun]) -> bool:
    """Return whether no violation is an error, and every rule that is not off could run."""
    return all(run.status != "not_run" for run in runs) and all(one.severity != "error" for one in violations)


def of_severity(report: CheckReport, severity: Severity) -> CheckReport:
    """Return a report with its violations of one severity alone."""
    kept = [one for one in report.violations if one.severity == severity]
    left = len(report.violations) - len(kept)
    return msgspec.structs.replace(report, violations=kept, ok=is_ok(kept, report.rules), of_other_severity=left)


def _violation(rule: str, severity: Severity, one: Finding) -> Violation:
    what = (one.code, one.field, one.values, one.line, one.names_id, one.other)
    return Violation(rule, "warning" if one.is_minor else severity, one.id, one.message, one.remedy, one.source, *what)


def check_names(only: Sequence[str], rules: Collection[str]) -> None:
    """Refuse the names of rules that there are not. Raises: ``NotFound`` with every one of them."""
    known = dict.fromkeys([*NAMES, *rules])
    problems = [
        Problem(f"$.rules[{at}]", "unknown_rule", f"There is no rule {in_quotes(name)}.", did_you_mean(name, known))
        for at, name in enumerate(only)
        if name not in rules
    ]
    if problems:
        raise NotFound(
            problems[0].message, hint=problems[0].remedy, details=problems if len(problems) > 1 else (), says_first=True
        )


def _run(rule: Rule, severity: Severity, context: RuleContext) -> tuple[list[Finding], RuleRun]:
    found, run = _run_rule(rule, severity, partial(rule.run, context))
    if context.ids is not None:
        wanted = context.ids
        found = [one for one in found if one.id in wanted or one.concerns & wanted]
    found.sort(key=place_of)
    return found, run


def place_of(one: Finding | Violation) -> tuple[Any, ...]:
    """Return by what the findings of a rule are sorted."""
    return one.id, one.line, one.code, one.field, tuple(map(numeric_order, one.values)), one.source


def _run_rule(rule: Rule, severity: Severity, find: Callable[[], list[Finding]]) -> tuple[list[Finding], RuleRun]:
    try:
        return find(), RuleRun(rule.id, severity, "ran")
    except ViewDamaged:
        raise
    except NotApplicable as error:
        return [], RuleRun(rule.id, severity, "not_applicable", str(error))
    except KBError as error:
        return [], RuleRun(rule.id, severity, "not_run", error.message)
    except Exception as error:  # whatever stops one rule is reported as such, and fails the command
        refused = exhausted(error, may_be_written=False)
        if refused:  # no other rule would run either
            raise refused from error
        words = " ".join(str(error).split()) or "no reason given"
        return [], RuleRun(rule.id, severity, "not_run", f"{type(error).__name__}: {words}")
