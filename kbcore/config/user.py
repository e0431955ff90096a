"""The settings of the user, ``kb/config.json`` in the user's own folder for configuration, and the environment. Pure.

A repository is not always the user's own. Invariant: what a repository asks for is never more than what is said here,
and the place of stores is decided here alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.config.settings import Config, KipLimits
from kbcore.errors import Problem
from kbcore.storage.files import below
from kbcore.storage.scratch import user_folder
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.validator import ConfigNode, number_hint, read_json, refuse

Store = Literal["git", "worktree"]
STORES: Final[tuple[Store, ...]] = ("git", "worktree")


class UserLimits(msgspec.Struct, frozen=True):
    """The most that a repository's settings and rules may ask for; ``rules_time_s`` is of all project rules of a check.

    ``memory_bytes`` is what one database of KB may hold in memory.
    """

    rule_time_s: float = limits.RULE_TIME_S
    rules_time_s: float = limits.RULES_TIME_S
    kip_time_s: float = limits.KIP_TIME_S
    kip_rows: int = limits.KIP_ROWS
    logic_time_s: float = limits.LOGIC_TIME_S
    lock_wait_s: float = limits.USER_LOCK_WAIT_S
    memory_bytes: int = limits.VIEW_MEMORY_BYTES
    from_environment: frozenset[str] = frozenset()
    """The members that the environment sets."""

    def name_of(self, member: str) -> str:
        """Return how a user finds the setting of a member."""
        [limit] = [one for one in LIMITS if one.member == member]
        if member in self.from_environment:
            return f"`{limit.variable}` in the environment"
        return f"`limits.{limit.key}` in your own kb/config.json"


class UserSettings(msgspec.Struct, frozen=True):
    """The settings of a user. ``store`` says where stores lie: in the git directory, or in ``.kb`` of the worktree."""

    limits: UserLimits = UserLimits()
    store: Store = "git"
    notice: str = ""
    """The reason there can be no file of them, where the environment names a folder that is none; "" as a rule."""


class Limit(msgspec.Struct, frozen=True):
    """A limit: its key in the file, its variable in the environment, the member of ``UserLimits``, and its range."""

    key: str
    variable: str
    member: str
    low: float
    high: float
    unit: int = 1
    is_whole: bool = False

    @property
    def range(self) -> str:
        """Say which values there are."""
        what = "a whole number" if self.is_whole else "a number of seconds"
        return f"{what} from {self.low:g} to {self.high:.0f}"

    def value(self, given: Any) -> float | int | None:
        """Return what is meant, in the unit of the member; None for what cannot be meant."""
        is_number = type(given) is int or (type(given) is float and math.isfinite(given) and not self.is_whole)
        if not is_number or not self.low <= given <= self.high:
            return None
        return int(given) * self.unit if self.is_whole else float(given)


LIMITS: Final = (
    Limit("ruleTimeSeconds", "KB_RULE_TIME_SECONDS", "rule_time_s", limits.MIN_RULE_TIME_S, limits.MAX_RULE_TIME_S),
    Limit("rulesTimeSeconds", "KB_RULES_TIME_SECONDS", "rules_time_s", limits.MIN_RULE_TIME_S, limits.MAX_RULE_TIME_S),
    Limit("kipTimeSeconds", "KB_KIP_TIME_SECONDS", "kip_time_s", 0, limits.MAX_KIP_TIME_S),
    Limit("kipRows", "KB_KIP_ROWS", "kip_rows", 1, limits.MAX_KIP_ROWS, is_whole=True),
    Limit("logicTimeSeconds", "KB_LOGIC_TIME_SECONDS", "logic_time_s", 0, limits.MAX_LOGIC_TIME_S),
    Limit("lockWaitSeconds", "KB_LOCK_WAIT_SECONDS", "lock_wait_s", 0, limits.MAX_LOCK_WAIT_S),
    Limit("memoryMiB", "KB_MEMORY_MIB", "memory_bytes", 64, 1024 * 1024, limits.MIB, is_whole=True),
)
_KEYS: Final = ("limits", "store")


def user_settings_path(env: Mapping[str, str]) -> Path | None:
    """Return where the settings of a user are: below XDG_CONFIG_HOME, else ``~/.config``; None where there is no home.

    What is not an absolute path is as good as not set: a repository could hold what it names.
    """
    folder = user_folder(env, "XDG_CONFIG_HOME", ".config")
    return below(below(folder, "kb"), "config.json") if folder else None


def read_settings(text: str | None, path: str, env: Mapping[str, str]) -> UserSettings:
    """Return the settings in a text that was read from ``path``, None for none; the environment goes before it.

    Raises: ``InvalidConfig`` with every problem of both, each with its place.
    """
    problems: list[Problem] = []
    root = read_json(text, path, problems) if text is not None else None
    found = root.known_members(_KEYS, "setting of a user") if root else {}
    values = _limits_in(found.get("limits"))
    from_environment: set[str] = set()
    for one in LIMITS:
        if env.get(one.variable):
            value = one.value(_number(env[one.variable]))
            if value is None:
                message = f"It must be {one.range}, not {in_quotes(env[one.variable])}."
                problems.append(
                    Problem("$", "wrong_type", message, "Set it to such a number, or unset it.", one.variable)
                )
            else:
                values[one.member] = value
                from_environment.add(one.member)
    store = _store(found.get("store"))
    refuse(problems)
    return UserSettings(UserLimits(**values, from_environment=frozenset(from_environment)), store)


def bounded(config: Config, most: UserLimits) -> Config:
    """Return the settings of a repository, none of them above what the user allows."""
    kip, logic = config.kip, config.logic
    return msgspec.structs.replace(
        config,
        rule_time_s=min(config.rule_time_s, most.rule_time_s),
        lock_wait_s=min(config.lock_wait_s, most.lock_wait_s),
        kip=KipLimits(
            min(kip.rows, most.kip_rows),
            min(kip.time_s, most.kip_time_s),
            _deciding(kip.rows, kip.rows_by, most.kip_rows, most.name_of("kip_rows")),
            _deciding(kip.time_s, kip.time_by, most.kip_time_s, most.name_of("kip_time_s")),
        ),
        logic=msgspec.structs.replace(
            logic,
            time_s=min(logic.time_s, most.logic_time_s),
            time_by=_deciding(logic.time_s, logic.time_by, most.logic_time_s, most.name_of("logic_time_s")),
        ),
    )


def _deciding(asked: float, asked_by: str, most: float, most_by: str) -> str:
    """Return the name of the lower one of two limits; of both where they are the same."""
    if asked == most:
        return f"{asked_by} (and {most_by}, which is the same)"
    return asked_by if asked < most else most_by


def _limits_in(spot: ConfigNode | None) -> dict[str, Any]:
    found = spot.known_members([one.key for one in LIMITS], "limit") if spot else {}
    values: dict[str, Any] = {}
    for one in LIMITS:
        if one.key in found:
            value = one.value(found[one.key].value)
            if value is None:
                found[one.key].must_be(one.range, number_hint(found[one.key].value))
            else:
                values[one.member] = value
    return values


def _store(spot: ConfigNode | None) -> Store:
    if spot is None:
        return "git"
    if spot.value not in STORES:
        hint = did_you_mean(spot.value, STORES) if isinstance(spot.value, str) else ""
        spot.must_be("git or worktree", hint or 'Write "git" or "worktree".')
    return "worktree" if spot.value == "worktree" else "git"


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
