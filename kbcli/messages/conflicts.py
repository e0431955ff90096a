"""What is contested, in words: each field with its values, numbered, and how to decide it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.wording import shortened

if TYPE_CHECKING:
    from kbcore.query.conflicts import Conflict

_DELETED: Final = "deleted"
_ID: Final = "id"
_VALUE_CHARS: Final = 100


def lines(found: Iterable[Conflict]) -> Iterator[str]:
    """Yield the lines of a list of conflicts."""
    for one in found:
        yield from map(escape_controls, _lines_of(one))


def creation_lines(found: Mapping[str, Sequence[tuple[str, str]]]) -> Iterator[str]:
    """Yield which ids several changes gave to entities, and what gives one of these another id."""
    for key, made in found.items():
        by = "; ".join(f"{name} by {actor}" for name, actor in made)
        command = f"kb rename {shlex.quote(made[-1][0])} NEW"
        yield escape_controls(f"{key} was made more than once: {by}. If these are several things: `{command}`.")


def _lines_of(one: Conflict) -> Iterator[str]:
    command = f"kb resolve {shlex.quote(one.id)} {shlex.quote(one.field)} --take"
    if one.field == _DELETED:
        yield f"{one.name}: deleted, although it was changed"
        yield from (f"     {_by(change)}" for change in one.values)
        yield f"  {command} keep, or kb delete {shlex.quote(one.id)}"
        return
    yield f"{one.name}: {one.field}"
    for number, value in enumerate(one.values, start=1):
        shown = shortened(json_text(value["value"]), _VALUE_CHARS) if "value" in value else "(no value)"
        yield f"  {number}  {shown}  {'; '.join(_by(change) for change in value['changes'])}"
    yield f"  {command} N" + (" (keeps this id, or renames to it)" if one.field == _ID else "")


def _by(change: dict[str, Any]) -> str:
    file = f" in {change['file']}" if "file" in change else ""
    return f"by {change['actor']}, {str(change['at'])[:10]}{file}"
