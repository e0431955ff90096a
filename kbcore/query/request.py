"""What a query asks for, as plain data: parsed from text, checked against the schema. Pure.

A checked query holds only names that exist, values that can be bound, and numbers within the limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.query.keys import EDGE, field_names, field_of, key_names, key_of
from kbcore.schema import Schema
from kbcore.suggest import did_you_mean
from kbcore.values import text_problem

DEFAULT_LIMIT: Final = 50
"""Rows of a page when nobody says how many."""


class Pattern(msgspec.Struct, frozen=True):
    """An edge that an entity has or lacks: to any entity, or to the one with that id.

    With ``inverse`` the entity is the edge's target, and ``id`` where it comes from.
    """

    edge: str
    id: str = ""
    inverse: bool = False


class Query(msgspec.Struct, frozen=True):
    """What is asked for. Every filter conjoins; what is left empty filters nothing."""

    type: str = ""
    """An entity type, "" for all entities, or "edge" for edges themselves."""
    ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    status: str = ""
    where: tuple[tuple[str, str], ...] = ()
    has: tuple[Pattern, ...] = ()
    lacks: tuple[Pattern, ...] = ()
    text: str = ""
    """Words; each must occur in some text of the entity, whatever its case."""
    from_id: str = ""
    """Only what can be reached from this entity or edge, itself left out."""
    follow: tuple[str, ...] = ()
    """The edge types to go along; none means all."""
    depth: int = 1
    reverse: bool = False
    """Go against the edges."""
    edges: bool = False
    """Also answer the edges that touch the entities of the page."""
    at: int | None = None
    """The seq to answer from; None is the head."""
    sort: str = ""
    """A key, with a leading ``-`` for descending order."""
    fields: tuple[str, ...] = ()
    """The fields to show; none means all. See ``project``."""
    limit: int = DEFAULT_LIMIT
    cursor: str = ""

    @property
    def is_edge(self) -> bool:
        """Tell whether edges are asked for instead of entities."""
        return self.type == EDGE


def parse_pattern(text: str) -> Pattern:
    """Return the pattern that ``verified_by``, ``depends_on:REQ-1`` or ``^implements:SYM-9`` stands for.

    Raises: ``InvalidQuery`` when the edge or, behind a colon, the id is missing.
    """
    body = text.removeprefix("^")
    edge, colon, end = body.partition(":")
    if not edge or (colon and not end):
        hint = "Write EDGE, EDGE:ID or ^EDGE:ID, for example `verified_by` or `^implements:SYM-9`."
        raise InvalidQuery(f"{text!r} names no {'id' if edge else 'edge'}.", hint=hint)
    return Pattern(edge, end, inverse=body != text)


def parse_where(text: str) -> tuple[str, str]:
    """Return key and value of ``status=open``; the value may hold further ``=`` and may be empty.

    Raises: ``InvalidQuery`` when there is no key or no ``=``.
    """
    key, sign, value = text.partition("=")
    if not key or not sign:
        hint = "For example `owner=ann` or `attributes.kind=unit`."
        raise InvalidQuery(f"{text!r} is no KEY=VALUE.", hint=hint)
    return key, value


def check(query: Query, schema: Schema) -> Query:
    """Return the query with every field name in full, ready to be compiled.

    Raises: ``InvalidQuery`` with every problem in its details.
    """
    problems = [
        *_text_problems(query),
        *_number_problems(query),
        *_type_problems(query, schema),
        *_edge_name_problems(query, schema),
        *_key_problems(query),
        *(_combination_problems(query)),
    ]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        first = problems[0]
        raise InvalidQuery(f"{first.message}{more}", hint=first.hint, details=problems[: limits.MAX_PROBLEMS])
    fields = (field_of(name, is_edge=query.is_edge) for name in query.fields)
    return msgspec.structs.replace(
        query,
        ids=tuple(dict.fromkeys(query.ids)),
        fields=tuple(dict.fromkeys(name for name in fields if name)),
    )


def _texts(query: Query) -> Iterable[tuple[str, str]]:
    for name in ("type", "status", "text", "from_id", "sort", "cursor"):
        yield f"$.{name.removesuffix('_id')}", getattr(query, name)
    for name in ("ids", "tags", "follow", "fields"):
        for at, value in enumerate(getattr(query, name)):
            yield f"$.{name}[{at}]", value
    for at, pair in enumerate(query.where):
        for part in pair:
            yield f"$.where[{at}]", part
    for name in ("has", "lacks"):
        for at, pattern in enumerate(getattr(query, name)):
            yield f"$.{name}[{at}]", pattern.edge
            yield f"$.{name}[{at}]", pattern.id


def _text_problems(query: Query) -> Iterable[Problem]:
    for path, text in _texts(query):
        fault = text_problem(text)
        if fault:
            yield Problem(path, "bad_text", f"An argument {fault.message}.", fault.hint)


def _number_problems(query: Query) -> Iterable[Problem]:
    bounds = (("limit", 1, limits.MAX_PAGE_ROWS), ("depth", 1, limits.MAX_TRAVERSAL_DEPTH))
    for name, least, most in bounds:
        value = getattr(query, name)
        if not least <= value <= most:
            message = f"The {name} must be from {least} to {most}, not {value}."
            yield Problem(
                f"$.{name}", "out_of_range", message, "Use `next_cursor` for more." if name == "limit" else ""
            )
    if query.at is not None and query.at < 0:
        yield Problem("$.at", "out_of_range", f"There is no seq {query.at}.", "The first record has seq 1.")
    if len(query.ids) > limits.MAX_QUERY_IDS:
        message = f"{len(query.ids)} ids were given; one query takes {limits.MAX_QUERY_IDS}."
        yield Problem("$.ids", "too_many", message, "Ask for them in several queries.")


def _type_problems(query: Query, schema: Schema) -> Iterable[Problem]:
    if query.type and not query.is_edge and query.type not in schema.entities:
        hint = did_you_mean(query.type, [*schema.entities, EDGE])
        yield Problem("$.type", "unknown_type", f"There is no entity type {query.type!r}.", hint)


def _edge_name_problems(query: Query, schema: Schema) -> Iterable[Problem]:
    named = [(f"$.follow[{at}]", name) for at, name in enumerate(query.follow)]
    for name in ("has", "lacks"):
        named += [(f"$.{name}[{at}]", pattern.edge) for at, pattern in enumerate(getattr(query, name))]
    for path, edge in named:
        if edge not in schema.edges:
            yield Problem(path, "unknown_edge", f"There is no edge type {edge!r}.", did_you_mean(edge, schema.edges))


def _key_problems(query: Query) -> Iterable[Problem]:
    is_edge = query.is_edge
    what = "edges" if is_edge else "entities"
    hints = key_names(is_edge=is_edge)
    for at, (name, value) in enumerate(query.where):
        key, path = key_of(name, is_edge=is_edge), f"$.where[{at}]"
        if key is None:
            yield Problem(path, "unknown_key", f"{what.capitalize()} have no {name!r}.", did_you_mean(name, hints))
        elif key.kind == "flag" and value not in {"true", "false"}:
            yield Problem(path, "bad_value", f"`{name}` is true or false, not {value!r}.", f"Write `{name}=false`.")
        elif key.kind == "number" and not _is_number(value):
            yield Problem(path, "bad_value", f"`{name}` is a number, not {value!r}.", f"For example `{name}=0.5`.")
    name = query.sort.removeprefix("-")
    key = key_of(name, is_edge=is_edge)
    if query.sort and (key is None or key.kind == "list"):
        message = f"{what.capitalize()} cannot be sorted by {name!r}."
        yield Problem("$.sort", "unknown_key", message, did_you_mean(name, [hint for hint in hints if hint != name]))
    for at, field in enumerate(query.fields):
        if field_of(field, is_edge=is_edge) is None:
            message = f"{what.capitalize()} have no field {field!r}."
            hint = did_you_mean(field, field_names(is_edge=is_edge))
            yield Problem(f"$.fields[{at}]", "unknown_field", message, hint)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _combination_problems(query: Query) -> Iterable[Problem]:
    if query.is_edge:
        for name in ("tags", "status", "has", "lacks", "text", "from_id"):
            if getattr(query, name):
                word = name.removesuffix("_id")
                hint = "Use `where` with `type=`, `from=`, `to=` or `source=`, or ask for entities."
                yield Problem(f"$.{word}", "not_for_edges", f"`{word}` does not apply to edges.", hint)
    if not query.from_id:
        for name in ("follow", "reverse"):
            if getattr(query, name):
                message = f"`{name}` needs a place to start."
                yield Problem(f"$.{name}", "needs_from", message, "Name an entity with `from`.")
        if query.depth > 1:
            yield Problem("$.depth", "needs_from", "`depth` needs a place to start.", "Name an entity with `from`.")
