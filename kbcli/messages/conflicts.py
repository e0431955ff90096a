"""Contested fields, in words: each field with its values, numbered, and how to decide it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.wording import shortened

if TYPE_CHECKING:
    from kbcore.query.conflicts import ContestedValue

_DELETED: Final = "deleted"
_ID: Final = "id"
_VALUE_CHARS: Final = 100
_CHANGE_CHARS: Final = 12


def lines(found: Iterable[ContestedValue]) -> Iterator[str]:
    """Yield the lines of a list of conflicts."""
    for one in found:
        yield from map(escape_controls, _lines_of(one))


def creation_lines(found: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    """Yield which ids several changes gave to entities, and what gives one of these another id."""
    for key, made in found.items():
        by = "; ".join(f"{name} by {actor}" for name, actor in made)
        command = f"kb rename {shlex.quote(made[-1][0])} NEW"
        yield escape_controls(f"{key} was made more than once: {by}. If these are several things: `{command}`.")


def value_lines(field: str, values: Iterable[Mapping[str, Any]], *, names_change: bool = False) -> Iterator[str]:
    """Yield a line for each value of a contested field, by its number, and who stated it; for each deletion of one.

    With ``names_change`` the changes that state it are named too.
    """
    if field == _DELETED:
        yield from (f"   {_by(change, names_change)}" for change in values)
        return
    for number, value in enumerate(values, start=1):
        shown = shortened(json_text(value["value"]), _VALUE_CHARS) if "value" in value else "(no value)"
        yield f"{number}  {shown}  {'; '.join(_by(change, names_change) for change in value['changes'])}"


def _lines_of(one: ContestedValue) -> Iterator[str]:
    command = f"kb resolve {shlex.quote(one.id)} {shlex.quote(one.field)} --take"
    is_deleted = one.field == _DELETED
    yield f"{one.name}: deleted, although it was changed" if is_deleted else f"{one.name}: {one.field}"
    yield from (f"  {line}" for line in value_lines(one.field, one.values))
    if is_deleted:
        yield f"  {command} keep, or kb delete {shlex.quote(one.id)}"
    else:
        yield f"  {command} N" + (" (keeps this id, or renames to it)" if one.field == _ID else "")


def _by(change: Mapping[str, Any], names_change: bool) -> str:
    file = f" in {change['file']}" if "file" in change else ""
    named = f" (change {change['change'][:_CHANGE_CHARS]})" if names_change else ""
    return f"by {change['actor']}, {str(change['at'])[:10]}{file}{named}"
