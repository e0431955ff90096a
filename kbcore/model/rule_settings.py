"""Settings of rules of the project's own: values of their parameters, each with its place. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.text.globs import globs_in
from kbcore.text.validator import ConfigNode, shown

Parameters = Mapping[str, Mapping[str, Any]]
"""The defaults of the parameters of each rule of the project, by the rule and by their names."""

_SCALARS: Final = (str, int, float)


class RuleSetting(msgspec.Struct, frozen=True):
    """The value that the settings give to a parameter, and where: file and line."""

    value: Any
    source: str


class Suppression(msgspec.Struct, frozen=True):
    """An exemption from the reports of a rule: an entity or file by its id, or files by globs; and why."""

    rule: str
    reason: str
    id: str = ""
    paths: tuple[str, ...] = ()


_SUPPRESSION_KEYS: Final = ("rule", "id", "paths", "reason")


def read_suppressions(spot: ConfigNode | None) -> list[tuple[Suppression, ConfigNode]]:
    """Return the suppressions of a list, each with the place of the name of its rule; what is none is a problem."""
    found = []
    for one in spot.items() if spot else ():
        members = one.known_members(_SUPPRESSION_KEYS, "part of a suppression")
        if len(members) < len(one.value if isinstance(one.value, dict) else ()):
            continue
        texts = {name: members[name].value for name in ("rule", "id", "reason") if name in members}
        lacking = [name for name in ("rule", "reason") if name not in texts]
        if lacking or ("id" in texts) == ("paths" in members):
            hint = 'Write {"rule": …, "id": … or "paths": […], "reason": "why"}.'
            one.wrong("bad_suppression", "A suppression has a rule, a reason, and an id or paths.", hint)
            continue
        wrong = [name for name, value in texts.items() if not isinstance(value, str) or not value.strip()]
        for name in wrong:
            members[name].must_be("text that is not empty")
        paths = globs_in(members["paths"]) if "paths" in members else ()
        if not wrong and (paths or "id" in texts):
            found.append((Suppression(**texts, paths=paths), members["rule"]))
    return found


def read_params(spot: ConfigNode | None) -> dict[str, dict[str, RuleSetting]]:
    """Return the values that the settings give, by rule and parameter; what is no value is a problem."""
    found: dict[str, dict[str, RuleSetting]] = {}
    for rule, params in spot.members().items() if spot else ():
        found[rule] = {}
        for name, member in params.members().items():
            if _is_value(member.value):
                found[rule][name] = RuleSetting(member.value, member.source)
            else:
                member.must_be(f"text, a number, true or false, or a list of at most {limits.MAX_TAGS} of these")
    return found


def check_params(rule: str, spot: ConfigNode, known: Parameters, own_rules: frozenset[str]) -> None:
    """Keep what is wrong with the values for one rule: a name that is none, or a value of another kind."""
    if rule in own_rules:
        spot.wrong("unknown_parameter", f"The rule {shown(rule)} of KB has no parameters.", "Remove it.")
        return
    if rule not in known:
        spot.unknown("unknown_rule", "rule", rule, known)
        return
    for name, member in spot.members().items():
        if name not in known[rule]:
            member.unknown("unknown_parameter", f"parameter of {rule} that is called", name, known[rule])
        elif _is_value(member.value) and _kind(member.value) != _kind(known[rule][name]):
            member.must_be(f"{_kind(known[rule][name])}, as the default of the rule is")


def _is_value(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) <= limits.MAX_TAGS and all(isinstance(one, _SCALARS) for one in value)
    return isinstance(value, _SCALARS) and (not isinstance(value, str) or len(value) <= limits.MAX_TEXT_BYTES)


def _kind(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true or false"
    return "text" if isinstance(value, str) else "a number"
