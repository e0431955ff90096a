"""Messages for empty results: the reason, and the next step. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kbcli.messages.options import OPTIONS
from kbcore.text.escaping import escape_controls, in_quotes

if TYPE_CHECKING:
    from kbcore.query import Query
    from kbcore.query.empty_result import Filter


def nothing_matches(query: Query, seq: int, at: str | None, filters: Sequence[Filter], sync: str) -> list[str]:
    """Return why a query has no answer: there was nothing then, or which filters exclude everything.

    ``seq`` is that of the answer, ``at`` the point that was asked for, and ``sync`` the command that reads the files.
    """
    if not seq:
        return [no_content_message(at, sync)]
    if query.text:
        return [escape_controls(one.lacking()) for one in filters]
    if not filters:
        return [f"There is no {'edge' if query.is_edge else 'entity'}."]
    return [f"No {'edge' if query.is_edge else 'entity'} matches.", *map(escape_controls, _reasons(query, filters))]


def no_content_message(at: str | None, sync: str) -> str:
    """Return why there is nothing at seq 0. ``at`` is the point that was asked for, None for the head.

    ``sync`` is the command that reads the files.
    """
    if at is None:
        return f"The branch is empty: {sync} reads documents, and `kb apply` a changeset."
    return "Seq 0 is before the first record; there was nothing."


def _reasons(query: Query, filters: Sequence[Filter]) -> Iterator[str]:
    named = [one for one in filters if not one.unresolved]
    for one in filters:
        if said := one.lacking():
            yield f"  {said}"
        if one.against:
            is_reversed = any(name.startswith("^") for name in query.follow)
            way = "Leave out `^`." if is_reversed else "Add `--reverse`, or `^` to a --follow."
            way = "Leave out `--reverse`." if query.reverse else way
            yield f"  Against the direction of the edges: {one.against:,}. {way}"
    if len(named) > 1:
        for one in named:
            if one.total:
                yield f"  Without {_option(one)}: {one.total:,}."
    elif named and named[0].name == "type":
        yield f"  There is no {named[0].value} yet; of all other types there are {named[0].total:,}."
    elif named and named[0].name == "where" and not named[0].unknown and (named[0].total or named == [*filters]):
        yield f"  Without {_option(named[0])}: {named[0].total:,}."
    elif named and named[0].name == "from" and not named[0].against:
        followed = " of those to follow" if query.follow else ""
        known = f"`kb show {shlex.quote(query.from_id)}` shows all it has"
        yield f"  No edge{followed} leads from or to {in_quotes(query.from_id)}: {known}."


def _option(one: Filter) -> str:
    value = one.value if one.name == "type" else f"{OPTIONS[one.name]} {shlex.quote(one.value)}"
    return f"`{value}`"
