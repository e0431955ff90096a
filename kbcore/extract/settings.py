"""The settings of KB's own extractors: which keys there are, and what each of them may hold. Pure.

Whatever is wrong is kept with its file and line, so that all of it is shown before a file is read; the extractors rely
on settings that passed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kbcore import limits
from kbcore.model.graph import INDEX_SUFFIX
from kbcore.text.globs import check_number, placed_globs
from kbcore.text.validator import ConfigNode, shown

EDGE_NAMES: Final = "edgeNames"
"""The names of the edges in force: not written by users, but added by the caller from the schema."""

PATHS: Final = "paths"
"""The key that says which files an extractor reads."""

_NAME_HINT: Final = f"A name has 1 to {limits.MAX_NAME_CHARS} characters."


def check(name: str, settings: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Keep every problem of the settings of one of KB's own extractors.

    Returns the entity types that they name, each with its place: whether there are such types is the schema's to say.
    """
    known = BUILT_IN[name]
    types: list[tuple[str, ConfigNode]] = []
    for key, spot in settings.known_members(known, f"setting of {name}").items():
        types += known[key](spot)
    return types


def globs_of(value: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """Return the globs of a setting, which may be a single one."""
    return (value,) if isinstance(value, str) else tuple(value)


def _check_flag(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    if not isinstance(spot.value, bool):
        spot.must_be("true or false", "Write `true` or `false`, without quotes.")
    return []


def _check_globs(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    placed_globs(spot)
    return []


def _check_indexes(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Check globs of indexes: by the ending of the name it is known how large a file may be."""
    for glob, place in placed_globs(spot):
        if not glob.endswith(INDEX_SUFFIX):
            message = f"The glob {shown(glob)} means files that do not end in {INDEX_SUFFIX}."
            place.wrong("bad_value", message, f'For example "index{INDEX_SUFFIX}".')
    return []


def _check_folder(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    if not isinstance(spot.value, str) or {".", ".."} & {*spot.value.split("/")} or spot.value.startswith("/"):
        spot.must_be("a folder from the top of the repository", 'For example "services/pay", or "" for the top.')
    return []


def _check_flag_or_globs(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    if not isinstance(spot.value, bool | str | list):
        spot.must_be("true, false or a list of globs", "Write `false`, or the globs of the documents that count.")
        return []
    return [] if isinstance(spot.value, bool) else _check_globs(spot)


def _check_beginnings(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Check a list of what ids begin with, or a single one."""
    if not isinstance(spot.value, str | list):
        spot.must_be("a list of what ids begin with", 'For example ["REQ-", "ADR-"].')
    elif isinstance(spot.value, list) and len(spot.value) > limits.MAX_GLOBS:
        check_number(spot, spot.value)
    else:
        for place in [spot] if isinstance(spot.value, str) else spot.items():
            _is_name(place.value, place)
    return []


def _check_paths_of_types(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Check an object of globs by entity type; a repeated glob would give its files two types."""
    types = []
    seen: dict[str, str] = {}
    for name, listed in spot.members().items():
        if _is_name(name, listed):
            types.append((name, listed))
        for glob, place in placed_globs(listed):
            if glob in seen:
                message = f"The glob {shown(glob)} is at {seen[glob]} already."
                place.wrong("repeated_glob", message, "Give each glob one type.")
            seen.setdefault(glob, place.source)
    return types


def _check_names(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Check an object of other names for keys of front matter."""
    for key, member in spot.members().items():
        if _is_name(key, member):
            _is_name(member.value, member)
    return []


def _is_name(text: Any, spot: ConfigNode) -> bool:
    """Tell whether this can name a type, a field or an attribute; what cannot is a problem."""
    is_name = isinstance(text, str) and bool(text.strip()) and len(text) <= limits.MAX_NAME_CHARS
    if not is_name:
        spot.wrong("bad_name", f"{shown(text)} is no name.", _NAME_HINT)
    return is_name


BUILT_IN: Final[Mapping[str, Mapping[str, Callable[[ConfigNode], list[tuple[str, ConfigNode]]]]]] = {
    "markdown": {
        PATHS: _check_paths_of_types,
        "idFromFilename": _check_flag,
        "titleFromHeading": _check_flag,
        "ignore": _check_globs,
        "keys": _check_names,
        "mentions": _check_flag_or_globs,
        "mentionIds": _check_beginnings,
    },
    "manifest": {PATHS: _check_globs},
    "gherkin": {PATHS: _check_globs},
    "code": {PATHS: _check_globs, "tests": _check_globs, "ignore": _check_globs},
    "scip": {PATHS: _check_indexes, "root": _check_folder, "ignore": _check_globs},
}
"""KB's own extractors, in the order in which they are asked, and their keys."""
