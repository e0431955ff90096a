"""The settings of an extractor: names and shapes, checked once before files are read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kbcore import limits
from kbcore.errors import InvalidConfig
from kbcore.extract.globs import glob_fault
from kbcore.suggest import did_you_mean

EDGE_NAMES: Final = "edgeNames"
"""The names of the edges in force: not written by users, but added by the caller from the schema."""


def check_keys(name: str, settings: Mapping[str, Any], known: Mapping[str, type]) -> None:
    """Refuse unknown keys and values of the wrong type. ``known`` maps each key to its type.

    Raises:
        InvalidConfig: names the key and what it should be.
    """
    for key, value in settings.items():
        if key == EDGE_NAMES:
            continue
        expected = known.get(key)
        place = f"`extractors.{name}.{key}` in .kb/config.json"
        if expected is None:
            raise InvalidConfig(f"{place} is no setting", hint=did_you_mean(key, known))
        if not isinstance(value, expected):
            words = {bool: "true or false", list: "a list of text", dict: "an object"}
            raise InvalidConfig(f"{place} must be {words[expected]}")


def globs_of(name: str, key: str, value: Any) -> tuple[str, ...]:
    """Return a list of globs, or the one that stands alone.

    Raises:
        InvalidConfig: names the glob that cannot be used.
    """
    globs = [value] if isinstance(value, str) else value
    place = f"`extractors.{name}.{key}` in .kb/config.json"
    if not isinstance(globs, list):
        raise InvalidConfig(f"{place} must be a list of globs", hint='For example ["docs/adr/**/*.md"].')
    for glob in globs:
        fault = glob_fault(glob)
        if fault:
            raise InvalidConfig(f"{place} holds a glob that cannot be used, {glob!r}: {fault}")
    return tuple(globs)


def check_name(name: str, key: str, text: Any) -> None:
    """Refuse what cannot be the name of a type, a field or an attribute.

    Raises:
        InvalidConfig: names the place.
    """
    if not isinstance(text, str) or not text.strip() or len(text) > limits.MAX_NAME_CHARS:
        place = f"`extractors.{name}.{key}` in .kb/config.json"
        raise InvalidConfig(f"{place} holds {text!r}, which is no name")
