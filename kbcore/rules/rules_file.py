"""Reads the files of a project's own rules, ``.kb/rules/*.yaml`` and ``.kb/rules/*.pl``. Pure.

Every problem of every file is reported at once, with file and line. Whether the SQL can run shows when it is run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import Problem
from kbcore.model.rule_settings import RuleSetting
from kbcore.rules.project import (
    NO_RULE_ID,
    RULE_ID_HINT,
    Parameter,
    ProjectRule,
    RuleTest,
    Scalar,
    TextPlace,
    Value,
    is_rule_id,
    sql_rule,
)
from kbcore.rules.prolog_file import SUFFIX, ReportProblem, read_prolog_rules
from kbcore.rules.registry import NAMES
from kbcore.rules.rule import Severity
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.validator import ConfigNode, read_yaml, refuse, shown

_PARAM: Final = re.compile(r"[a-z][a-z0-9_]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?")
_LITERAL: Final = re.compile(r":[ \t]+\|[-+\d]*[ \t]*(?:#.*)?$")
"""The end of a line below which a text is given line by line."""
_KEYS: Final = ("id", "severity", "description", "remedy", "params", "timeLimitSeconds", "sql", "tests")
_TRIAL_KEYS: Final = ("name", "entities", "edges", "reports", "passes")
_ENTITY_KEYS: Final = (
    *("id", "type", "title", "status", "owner", "priority", "severity", "tags", "links", "text_ref", "file"),
    *("attributes", "metadata"),
)
_EDGE_KEYS: Final = ("type", "kind", "from", "to", "confidence", "attributes", "metadata")
_LISTS: Final = frozenset({"tags", "links"})
_OBJECTS: Final = frozenset({"attributes", "metadata"})
EXAMPLE: Final = (
    "For example `rules: [{id: has-owner, sql: "
    "\"select id, 'has no owner' as message from entity where owner is null\"}]`, or line by line as in "
    "docs/rules.md of KB."
)
_SEVERITIES: Final[Mapping[str, Severity]] = {"error": "error", "warning": "warning"}


def load_rules(
    files: Mapping[str, str], settings: Mapping[str, Mapping[str, RuleSetting]] = MappingProxyType({})
) -> list[ProjectRule]:
    """Return the rules that the files define, in the order of files; ``files`` maps paths to texts.

    ``settings`` holds what the configuration says to parameters, by rule; that there are such was seen as it was read.

    Raises: ``InvalidConfig`` with every problem of every file, each with file and line.
    """
    problems: list[Problem] = []
    rules: list[ProjectRule] = []
    tests: list[_Tests] = []
    taken = dict.fromkeys(NAMES, "KB has a rule")
    for path in sorted(files):
        read = read_prolog_rules if path.endswith(SUFFIX) else partial(_read_yaml_rules, settings, tests)
        for rule, report in read(path, files[path], problems):
            if rule.id in taken:
                message = f"{taken[rule.id]} {in_quotes(rule.id)} already."
                report("defined_twice", message, "Give this one another id.")
            else:
                rules.append(rule)
                taken[rule.id] = f"{path} has a rule"
    found = [_with_tests(rule, tests) for rule in rules]
    in_prolog = [rule.id for rule in rules if rule.prolog]
    for one in tests:
        if one.rule not in in_prolog:
            message = f"`sql` of a rule is missing, and no file of rules in Prolog states {in_quotes(one.rule)}."
            one.report("missing_field", message, did_you_mean(one.rule, in_prolog))
    refuse(problems)
    return found


class _Tests(msgspec.Struct, frozen=True):
    """The tests that a file of YAML has for a rule in Prolog, and what reports a problem of their rule."""

    rule: str
    trials: tuple[RuleTest, ...]
    report: ReportProblem


def _with_tests(rule: ProjectRule, tests: Sequence[_Tests]) -> ProjectRule:
    own = [trial for one in tests if rule.prolog and one.rule == rule.id for trial in one.trials]
    return msgspec.structs.replace(rule, trials=tuple(own)) if own else rule


def _read_yaml_rules(
    settings: Mapping[str, Mapping[str, RuleSetting]],
    tests: list[_Tests],
    path: str,
    text: str,
    problems: list[Problem],
) -> Iterator[tuple[ProjectRule, ReportProblem]]:
    """Yield the rules of a file of YAML, each with what reports a problem of its id.

    What has an id and tests alone goes to ``tests``.
    """
    root = read_yaml(text, path, problems)
    for spot in _listed(root) if root and root.value is not None else ():
        members = spot.members()
        if members.keys() == {"id", "tests"}:
            tests.append(_Tests(_text(members["id"]), _trials(members["tests"]), members["id"].wrong))
            continue
        rule = _rule(spot, text.splitlines(), settings)
        if rule:
            yield rule, spot.members()["id"].wrong


def _listed(root: ConfigNode) -> list[ConfigNode]:
    """Return the rules that a file lists; what else it holds is a problem, reported with an example."""
    if not isinstance(root.value, dict):
        root.must_be("an object with the member `rules`", EXAMPLE)
        return []
    listed = root.known_members(("rules",), "part of a rules file").get("rules")
    if listed is None:
        return []
    if not isinstance(listed.value, list):
        listed.must_be("a list", EXAMPLE)
        return []
    for spot in listed.items():
        if not isinstance(spot.value, dict):
            spot.must_be("an object", EXAMPLE)
    return [spot for spot in listed.items() if isinstance(spot.value, dict)]


def _rule(
    spot: ConfigNode, lines: Sequence[str], settings: Mapping[str, Mapping[str, RuleSetting]]
) -> ProjectRule | None:
    found = spot.known_members(_KEYS, "key of a rule")
    texts = {key: _text(found[key]) for key in ("id", "severity", "description", "remedy", "sql") if key in found}
    for key, example in (("id", "id: no-empty-title"), ("sql", "sql: select id, 'has no owner' from …")):
        if key not in found:
            spot.wrong("missing_field", f"`{key}` of a rule is missing.", f"For example `{example}`.")
    name = texts.get("id", "")
    if name and not is_rule_id(name):
        found["id"].wrong("bad_name", f"{shown(name)} {NO_RULE_ID}", RULE_ID_HINT)
    level = texts.get("severity") or "error"
    if level not in _SEVERITIES:
        found["severity"].wrong("wrong_type", f"{shown(level)} is no severity.", did_you_mean(level, _SEVERITIES))
    more: dict[str, Any] = {
        "params": _params(found.get("params"), settings.get(name, {})),
        "trials": _trials(found.get("tests")),
        "time_s": _seconds(found.get("timeLimitSeconds")),
    }
    if not name or not texts.get("sql") or level not in _SEVERITIES:
        return None
    description = texts.get("description") or f"Defined in {spot.file}."
    at = found["sql"].line
    is_literal = _LITERAL.search(lines[at - 1]) is not None
    place = TextPlace(spot.file, at + 1 if is_literal else at, is_literal)
    more |= {"source": spot.source, "remedy": texts.get("remedy", "")}
    for key, known in (("severity_at", "severity"), ("time_at", "timeLimitSeconds")):
        more[key] = found[known].source if known in found else spot.source
    return sql_rule(name, _SEVERITIES[level], description, texts["sql"], place, **more)


def _text(spot: ConfigNode) -> str:
    if not isinstance(spot.value, str) or not spot.value.strip():
        spot.must_be("text")
        return ""
    return spot.value


def scalar(text: str) -> Scalar:
    """Return what a plain text of YAML means: a number, true or false, else the text itself."""
    number = _NUMBER.fullmatch(text)
    if number and len(text) <= limits.MAX_NAME_CHARS:
        value = float(text) if number[1] or number[2] else int(text)
        return value if math.isfinite(value) and abs(value) < 2**63 else text
    return text == "true" if text in {"true", "false"} else text


def _seconds(spot: ConfigNode | None) -> float | None:
    if spot is None:
        return None
    value = scalar(spot.value) if isinstance(spot.value, str) else None
    low, high = limits.MIN_RULE_TIME_S, limits.MAX_RULE_TIME_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        spot.must_be(f"a number of seconds from {low:g} to {high:g}")
        return None
    return float(value)


def _params(spot: ConfigNode | None, settings: Mapping[str, RuleSetting]) -> tuple[Parameter, ...]:
    found = []
    for name, member in spot.members().items() if spot else ():
        if not _PARAM.fullmatch(name) or len(name) > limits.MAX_NAME_CHARS:
            hint = "Use small letters, digits and _; the SQL names it with a $ before it."
            member.wrong("bad_name", f"{shown(name)} cannot be a parameter.", hint)
        value = _value(member)
        if value is not None:
            said = settings.get(name, RuleSetting(value, member.source))
            found.append(Parameter(name, value, said.value, said.source))
    if spot and len(found) > limits.MAX_RULE_PARAMS:
        spot.wrong("too_many", f"A rule has at most {limits.MAX_RULE_PARAMS} parameters.", "Make two rules of it.")
    return tuple(found)


def _value(spot: ConfigNode) -> Value | None:
    """Return the value of a parameter: a text, a number, true or false, or a list of these."""
    if isinstance(spot.value, list):
        if len(spot.value) > limits.MAX_TAGS:
            message = f"A list has at most {limits.MAX_TAGS} values, and this one {len(spot.value)}."
            spot.wrong("too_many", message, "Take fewer, or select them in the SQL by what they have in common.")
            return None
        return [scalar(_text(member)) for member in spot.items()]
    text = _text(spot)
    return scalar(text) if text else None


def _trials(spot: ConfigNode | None) -> tuple[RuleTest, ...]:
    listed = spot.items() if spot else []
    if spot and len(listed) > limits.MAX_RULE_TESTS:
        spot.wrong("too_many", f"A rule has at most {limits.MAX_RULE_TESTS} tests.", "Leave some out.")
    return tuple(_trial(member, number) for number, member in enumerate(listed[: limits.MAX_RULE_TESTS], 1))


def _trial(spot: ConfigNode, number: int) -> RuleTest:
    found = spot.known_members(_TRIAL_KEYS, "key of a test")
    reports, passes = (_texts(found.get(key)) for key in ("reports", "passes"))
    if isinstance(spot.value, dict) and not reports and not passes:
        hint = "List ids below `reports:`, which the rule must report, or below `passes:`, which it must not."
        spot.wrong("missing_field", "The test does not state what the rule reports.", hint)
    return RuleTest(
        _text(found["name"]) if "name" in found else f"test {number}",
        spot.source,
        tuple(_element(one, _ENTITY_KEYS, ("id", "type")) for one in _items(found.get("entities"))),
        tuple(_element(one, _EDGE_KEYS, ("type", "from", "to")) for one in _items(found.get("edges"))),
        reports,
        passes,
    )


def _items(spot: ConfigNode | None) -> list[ConfigNode]:
    items = spot.items() if spot else []
    if spot and len(items) > limits.MAX_RULE_TEST_ITEMS:
        spot.wrong("too_many", f"A test has at most {limits.MAX_RULE_TEST_ITEMS} of them.", "A few are enough.")
    return items[: limits.MAX_RULE_TEST_ITEMS]


def _texts(spot: ConfigNode | None) -> tuple[str, ...]:
    return tuple(_text(one) for one in _items(spot))


def _element(spot: ConfigNode, allowed: Sequence[str], needed: Sequence[str]) -> dict[str, Any]:
    """Return an entity or an edge of a test as it is written; a number is one in objects and as a confidence."""
    found = spot.known_members(allowed, "field in a test")
    for key in [key for key in needed if key not in found and isinstance(spot.value, dict)]:
        spot.wrong("missing_field", f"`{key}` is missing.", "Everything else may be left out.")
    values: dict[str, Any] = {}
    for key, member in found.items():
        if key in _OBJECTS:
            values[key] = _typed(member.value) if member.members() else {}
        elif key in _LISTS:
            values[key] = list(_texts(member))
        elif key == "confidence":
            confidence = scalar(_text(member))
            if isinstance(confidence, bool | str) or not 0 <= confidence <= 1:
                member.must_be("a number from 0 to 1")
            values[key] = confidence
        else:
            values[key] = _text(member)
    return values


def _typed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _typed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_typed(member) for member in value]
    return scalar(value) if isinstance(value, str) else value
