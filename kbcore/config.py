"""The settings of a project, ``.kb/config.json``: read from its text, complete with KB's defaults. Pure.

Every key is optional; a key, a type or a value that KB does not know is refused, all of them at once.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, cast

import msgspec

from kbcore import limits
from kbcore.errors import Problem
from kbcore.ids import check_branch_name
from kbcore.shape import Spot, read_json, refuse
from kbcore.suggest import did_you_mean

RuleLevel = Literal["error", "warning", "off"]

RULE_LEVELS: Final[tuple[RuleLevel, ...]] = ("error", "warning", "off")
MAX_LOCK_WAIT_S: Final = 3600.0
MAX_KIP_ROWS: Final = 1_000_000
MAX_KIP_TIME_S: Final = 3600.0


class KipLimits(msgspec.Struct, frozen=True):
    """How much one KIP command may take: solutions held at once, and seconds."""

    rows: int = 100_000
    time_s: float = 10.0


class Config(msgspec.Struct, frozen=True):
    """The settings in force.

    ``extractors`` holds what the file says to each extractor, by its name; what that means, and what holds
    where it says nothing, is the extractor's. ``switched_off`` names the extractors that shall not run.
    ``rules`` holds only the rules whose level the project changes.
    """

    default_branch: str | None = None
    extractors: dict[str, dict[str, Any]] = {}
    switched_off: tuple[str, ...] = ()
    rules: dict[str, RuleLevel] = {}
    lock_wait_s: float = limits.LOCK_WAIT_S
    kip: KipLimits = KipLimits()


DEFAULT: Final = Config()
"""The settings of a project that has no file, or an empty one."""

_KEYS: Final = ("defaultBranch", "extractors", "rules", "lockWaitSeconds", "kip")
_LINE_CHARS: Final = 80
_KIP_KEYS: Final = ("rowLimit", "timeLimitSeconds")


def parse_config(text: str, path: str, rules: Collection[str] = (), extractors: Collection[str] = ()) -> Config:
    """Return the settings in a text that was read from ``path``, as messages shall name it.

    Where ``rules`` or ``extractors`` are given, names that are not among them are refused.

    Raises:
        InvalidConfig: with every problem, each with file, line and JSON path.
    """
    problems: list[Problem] = []
    root = read_json(text, path, problems)
    found = root.known_members(_KEYS, "setting") if root else {}
    settings = _extractors(found.get("extractors"), extractors)
    config = Config(
        default_branch=_branch(found.get("defaultBranch")),
        extractors={name: members for name, members in settings.items() if members is not None},
        switched_off=tuple(sorted(name for name, members in settings.items() if members is None)),
        rules=_rules(found.get("rules"), rules),
        lock_wait_s=_seconds(found.get("lockWaitSeconds"), DEFAULT.lock_wait_s, MAX_LOCK_WAIT_S),
        kip=_kip(found.get("kip")),
    )
    refuse(problems)
    return config


def default_config_text(default_branch: str | None = None) -> str:
    """Return the file that ``kb init`` writes: every setting with its default, one member to a line."""
    from kbcore.extract import gherkin, manifest, markdown  # noqa: PLC0415 - they import yaml, and only `kb init` writes

    documents = {"paths": markdown.DEFAULT_PATHS, "idFromFilename": False, "titleFromHeading": True}
    extractors = {
        markdown.NAME: documents,
        manifest.NAME: {"paths": manifest.DEFAULT_PATHS},
        gherkin.NAME: {"paths": []},
    }
    kip = {"rowLimit": DEFAULT.kip.rows, "timeLimitSeconds": _short(DEFAULT.kip.time_s)}
    settings = {
        "defaultBranch": default_branch,
        "extractors": extractors,
        "rules": DEFAULT.rules,
        "lockWaitSeconds": _short(DEFAULT.lock_wait_s),
        "kip": kip,
    }
    return _indented(settings, "") + "\n"


def _indented(value: Any, indent: str) -> str:
    inner = indent + "  "
    line = json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping) and value:
        opener, closer = "{}"
        members = [f"{json.dumps(key)}: {_indented(member, inner)}" for key, member in value.items()]
    elif isinstance(value, list | tuple) and len(line) > _LINE_CHARS:
        opener, closer = "[]"
        members = [_indented(member, inner) for member in value]
    else:
        return line
    listed = ",\n".join(inner + member for member in members)
    return f"{opener}\n{listed}\n{indent}{closer}"


def _short(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _branch(spot: Spot | None) -> str | None:
    if spot is None or spot.value is None:
        return None
    if not isinstance(spot.value, str):
        spot.must_be("the name of a branch, or null", "With null, origin's HEAD decides, else `main`.")
        return None
    reason = check_branch_name(spot.value)
    if reason:
        spot.wrong(
            "bad_branch",
            f"`defaultBranch` cannot name a branch: {reason}.",
            "Name it as `git branch` shows it.",
        )
    return spot.value


def _extractors(spot: Spot | None, known: Collection[str]) -> dict[str, dict[str, Any] | None]:
    """Return what is said to each extractor; None to one that is switched off."""
    found: dict[str, dict[str, Any] | None] = {}
    for name, settings in spot.members().items() if spot else ():
        if known and name not in known:
            settings.unknown("unknown_extractor", "extractor", name, known)
        elif settings.value is False:
            found[name] = None
        elif not isinstance(settings.value, dict):
            settings.must_be("an object with its settings, or false to switch it off")
        else:
            found[name] = {key: member.value for key, member in settings.members().items()}
    return found


def _rules(spot: Spot | None, known: Collection[str]) -> dict[str, RuleLevel]:
    found: dict[str, RuleLevel] = {}
    for name, level in spot.members().items() if spot else ():
        if known and name not in known:
            level.unknown("unknown_rule", "rule", name, known)
        elif level.value not in RULE_LEVELS:
            hint = did_you_mean(level.value, RULE_LEVELS) if isinstance(level.value, str) else ""
            level.must_be("error, warning or off", hint or 'Write it in quotes, e.g. "warning".')
        else:
            found[name] = cast("RuleLevel", level.value)
    return found


def _kip(spot: Spot | None) -> KipLimits:
    found = spot.known_members(_KIP_KEYS, "setting of KIP") if spot else {}
    rows = found.get("rowLimit")
    if rows and not (type(rows.value) is int and 1 <= rows.value <= MAX_KIP_ROWS):
        rows.must_be(f"a whole number from 1 to {MAX_KIP_ROWS}")
        rows = None
    time = _seconds(found.get("timeLimitSeconds"), DEFAULT.kip.time_s, MAX_KIP_TIME_S)
    return KipLimits(rows.value if rows else DEFAULT.kip.rows, time)


def _seconds(spot: Spot | None, default: float, maximum: float) -> float:
    if spot is None:
        return default
    value = spot.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= maximum:
        spot.must_be(f"a number of seconds from 0 to {maximum:g}", "Write a number without quotes.")
        return default
    return float(value)
