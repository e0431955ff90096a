"""The settings of a fleet: the place to which the repository exports, and its name there. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from kbcore.text.validator import ConfigNode

OBJECT_STORES: Final = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az"})
"""Protocols of object stores: they have no folders, and a bucket is not made by writing to it."""
KEYS: Final = ("place", "repo")
MAX_NAME_CHARS: Final = 200
"""The most characters of a name, percent-encoded as it is in names of files: these have at most 255 bytes."""
NAME_RULE: Final = (
    f"1 to {MAX_NAME_CHARS} printable characters; each byte but ASCII letters, digits and `_.-~` counts as three"
)
_ONE_SLASH: Final = re.compile(r"[A-Za-z][A-Za-z0-9+]+:/?(?![/:])")
_ENCODED: Final = re.compile(rb"[^A-Za-z0-9_.~-]")
_PASSWORD: Final = re.compile(r"://[^/?#]*:[^/?#]*@")


class FleetSettings(msgspec.Struct, frozen=True):
    """The place to which ``kb export --fleet`` exports, a folder from the root or a URL, and the name there.

    Each is None where the file does not state it.
    """

    place: str | None = None
    repo: str | None = None


def read_fleet(spot: ConfigNode | None) -> FleetSettings:
    """Return the settings that a file states, and add what is wrong with them to its problems."""
    found = spot.known_members(KEYS, "setting of fleet") if spot else {}
    return FleetSettings(
        _text(found.get("place"), "a folder or a URL, or null", setting_fault),
        _text(found.get("repo"), "a name such as acme/pay, or null", name_fault),
    )


def place_fault(text: str) -> str:
    """Return why a text names no place, as the end of a sentence; "" where it may be one."""
    if _PASSWORD.search(text):
        return "has a password, which everybody can read: give it as the protocol takes it, such as by variables"
    if _ONE_SLASH.match(text):
        return "is no URL: `//` has to follow the colon"
    protocol, mark, rest = text.partition("://")
    if mark and protocol.lower() in OBJECT_STORES and not rest.partition("/")[0]:
        return "names no bucket"
    if text.strip() != text:
        return "begins or ends with a space"
    if not text.isprintable():
        return "has a character that cannot be printed"
    return "" if text else "is no folder and no URL"


def setting_fault(text: str) -> str:
    """Return why a text is no place for the settings of a repository, as ``place_fault``.

    Whoever writes the settings chooses which server is asked: so only object stores can be named there.
    """
    protocol, mark, _ = text.lower().partition("://")
    if mark and protocol not in OBJECT_STORES:
        known = ", ".join(sorted(OBJECT_STORES))
        return f"is a URL that settings may not have ({known}): name it by `--parquet`, `--place` or KB_FLEET"
    return place_fault(text)


def name_fault(text: str) -> str:
    """Return why a text is no name of a repository or a branch, as the end of a sentence; "" where it may be one."""
    if text and text.isprintable() and text == text.strip() and _encoded_chars(text) <= MAX_NAME_CHARS:
        return ""
    return f"is no name: it has {NAME_RULE}"


def _encoded_chars(text: str) -> int:
    """Return how long a text is when each byte of UTF-8 but some is a percent sign and two digits."""
    return len(_ENCODED.sub(b"%xx", text.encode()))


def _text(spot: ConfigNode | None, what: str, fault_of: Callable[[str], str]) -> str | None:
    if spot is None or spot.value is None:
        return None
    if not isinstance(spot.value, str):
        spot.must_be(what)
    elif fault := fault_of(spot.value):
        spot.wrong("bad_fleet", f"`{spot.path.removeprefix('$.')}` {fault}.")
    else:
        return spot.value
    return None
