"""Settings of the sleep cycle: its thresholds, each with its bounds. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.limits import MAX_NAME_CHARS, MAX_TAGS
from kbcore.text.validator import ConfigNode


class SleepSettings(msgspec.Struct, frozen=True, rename="camel"):
    """Settings of the sleep cycle: the time it is due, what it changes and what it reports.

    Days and hours are those of the clock.
    """

    interval_hours: float = 24.0
    """No cycle begins earlier than this after the one before, unless it is forced."""
    stale_event_days: float = 7.0
    decay_after_days: float = 7.0
    """The age of a link before its confidence sinks for the first time, and each time after that."""
    decay_factor: float = 0.95
    decay_floor: float = 0.3
    most_orphans: int = 10
    most_unsorted: int = 20
    most_stale_events: int = 30
    least_confidence: float = 0.6
    least_members: int = 5
    most_members: int = 100
    domain_of_type: dict[str, str] = {}
    domain_of_tag: dict[str, str] = {}
    """The domain of elements without one, by KIP's name of its type and by its tags; both name a domain."""


DEFAULT: Final = SleepSettings()

_MANY: Final = 1_000_000
BOUNDS: Final[dict[str, tuple[float, float]]] = {
    "interval_hours": (0, 8760),
    "stale_event_days": (0, 3650),
    "decay_after_days": (1, 3650),
    "decay_factor": (0, 1),
    "decay_floor": (0, 1),
    "most_orphans": (0, _MANY),
    "most_unsorted": (0, _MANY),
    "most_stale_events": (0, _MANY),
    "least_confidence": (0, 1),
    "least_members": (0, _MANY),
    "most_members": (1, _MANY),
}
"""The least and the most of each number."""

_NAMES: Final = dict(zip(SleepSettings.__struct_fields__, SleepSettings.__struct_encode_fields__, strict=True))
"""The members of the file, by those of the struct."""


def read_sleep(spot: ConfigNode | None) -> SleepSettings:
    """Return what the settings say; what cannot be used is a problem, and its default stays."""
    found = spot.known_members(tuple(_NAMES.values()), "setting of sleep") if spot else {}
    given: dict[str, object] = {}
    for field, key in _NAMES.items():
        if key in found:
            value = _number(field, found[key]) if field in BOUNDS else _domains(found[key])
            given |= {} if value is None else {field: value}
    settings = msgspec.structs.replace(DEFAULT, **given)
    if settings.least_members > settings.most_members:
        if "mostMembers" in found:
            found["mostMembers"].must_be(f"at least {settings.least_members}, which is `sleep.leastMembers`")
        else:
            found["leastMembers"].must_be(f"at most {settings.most_members}, which is `sleep.mostMembers`")
    return settings


def _number(field: str, spot: ConfigNode) -> float | None:
    least, most = BOUNDS[field]
    is_whole = isinstance(getattr(DEFAULT, field), int)
    kinds = int if is_whole else int | float
    value = spot.value
    if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
        hint = "Write it without quotes." if isinstance(value, str) else f"Left out, it is {getattr(DEFAULT, field)}."
        spot.must_be(f"a {'whole ' if is_whole else ''}number from {least} to {most}", hint)
        return None
    return value if is_whole else float(value)


def _domains(spot: ConfigNode) -> dict[str, str]:
    found = {}
    for name, domain in list(spot.members().items())[:MAX_TAGS]:
        if isinstance(domain.value, str) and 0 < len(domain.value) <= MAX_NAME_CHARS:
            found[name] = domain.value
        else:
            domain.must_be(f"the name of a domain, of at most {MAX_NAME_CHARS} characters")
    return found
