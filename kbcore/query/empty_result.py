"""Reasons why nothing matches: the count that each filter keeps out, and values like one that nothing has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from kbcore import ids
from kbcore.query import conditions
from kbcore.query.former import called_again, removed_as
from kbcore.query.keys import Key, key_of
from kbcore.query.known import near_ids, pointer
from kbcore.query.paging import Viewed, page
from kbcore.query.request import Query
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.view import as_of

_MAX_VALUES: Final = 1000
_SEPARATOR: Final = re.compile(r"[,|]")
"""Separators of several values in queries of other tools."""
_MOST_NEAR: Final = 3
_MOST_UNKNOWN: Final = 5
"""The most unknown ids that are named where others match."""
_VALUES: Final = {
    "status": "select distinct status from {} where status is not null order by status",
    "tags": "select distinct unnest(tags) as tag from {} order by tag",
}
"""The values that entities of a relation have, for filters that take any text."""
_WITHDRAWN: Final = "select coalesce(max(ended) > $2, false) from node_history where id = $1"
_GONE: Final = "select max(ended) from node_history where id = $1 and ended <= $2"

_LACKING: Final = {"status": "Nothing has the status", "tags": "Nothing has the tag"}


class Filter(msgspec.Struct, frozen=True):
    """One filter of a query that nothing matches. ``total`` is how many match without it.

    ``unknown`` is a value, or an id, that nothing has at all, and ``near`` are some like it that there are. ``against``
    is how many match when a walk goes the other way along its edges. ``gone`` is the seq at which the id was removed;
    ``called`` is what the entity is called if that undid its rename, ``last`` what it was called last if not so.
    """

    name: str
    value: str
    total: int
    unknown: str = ""
    near: tuple[str, ...] = ()
    against: int = 0
    gone: int = 0
    called: str = ""
    last: str = ""
    is_withdrawn: bool = False
    """No file states the entity any more, which is not recorded yet."""

    def lacking(self) -> str:
        """Return in words what nothing has, with what may have been meant; "" where it is no such filter."""
        if not self.unknown:
            return ""
        if self.is_withdrawn:
            return f"{in_quotes(self.unknown)} is gone: no file states it any more, which is not recorded yet."
        if self.called:
            was = f"{in_quotes(self.unknown)} is called {in_quotes(self.called)} since seq {self.gone}"
            return f"{was}, which undid its rename."
        if self.gone:
            was = f"{in_quotes(self.unknown)} was renamed to {in_quotes(self.last)}, which" if self.last else ""
            return f"{was or in_quotes(self.unknown)} is gone since seq {self.gone}."
        key = self.value.partition("=")[0] if self.name == "where" else ""
        if key and key not in {"from", "to"}:
            return f"Nothing has the {in_quotes(key)} {in_quotes(self.unknown)}. {is_it(self.near)}".rstrip()
        return f"{_LACKING.get(self.name, 'There is no')} {in_quotes(self.unknown)}. {is_it(self.near)}".rstrip()


def filters_of(view: Viewed, query: Query) -> list[Filter]:
    """Return each filter of a checked query that nothing matches, in the order of its arguments.

    Of one with a text only those that name what nothing has; their totals are 0.
    """
    if query.text:
        named = ((name, value, _unknown(view, query, name, value)) for name, value, _ in _each(query))
        return [
            _said_gone(view, query, Filter(name, value, 0, *unknown)) for name, value, unknown in named if unknown[0]
        ]
    found = []
    for name, value, without in _each(query):
        against = _total(view, msgspec.structs.replace(query, reverse=not query.reverse)) if name == "from" else 0
        one = Filter(name, value, _total(view, without), *_unknown(view, query, name, value), against)
        found.append(_said_gone(view, query, one))
    return found


def unknown_ids(view: Viewed, query: Query) -> list[str]:
    """Return a sentence for each id of a query that nothing has, the first few of many.

    Those are ids that were asked for, and ends to which an edge is to be lacking: everything lacks it.
    """
    table = as_of.links(query.at) if query.is_edge else as_of.nodes(query.at)
    sql = f"select id from {table} where id in (select unnest($1::varchar[]))"  # noqa: S608 - names are fixed
    there = {row[0] for row in view.rows(sql, [list(query.ids)])}
    missing = [id_ for id_ in dict.fromkeys(query.ids) if id_ not in there]
    found = []
    for id_ in missing[:_MOST_UNKNOWN]:
        near = () if query.is_edge else near_ids(view.rows, id_, entities=as_of.nodes(query.at))
        found.append(_said_gone(view, query, Filter("ids", id_, 0, id_, near)).lacking())
    if missing[_MOST_UNKNOWN:]:
        found.append(f"Nothing has {len(missing)} of the {len({*query.ids})} ids.")
    for value in map(_words, query.lacks):
        one = _said_gone(view, query, Filter("lacks", value, 0, *_unknown(view, query, "lacks", value)))
        found += [one.lacking()] * bool(one.unknown)
    return found


def _said_gone(view: Viewed, query: Query, one: Filter) -> Filter:
    """Return a filter with the seq at which the entity that it names was removed; no other id is near to its id."""
    if one.unknown not in _ids_in(query, one.name, one.value):
        return one
    until = view.seq if query.at is None else query.at
    if query.at is None and view.rows(_WITHDRAWN, [one.unknown, view.recorded_seq]) == [(True,)]:
        return msgspec.structs.replace(one, near=(), is_withdrawn=True)
    [(gone,)] = view.rows(_GONE, [one.unknown, min(until, view.recorded_seq)])
    again = called_again(view, one.unknown, gone) if gone and query.at is None else ""
    if not gone:
        return one
    last, removed = ("", gone) if again else removed_as(view, one.unknown, gone, min(until, view.recorded_seq))
    return msgspec.structs.replace(one, near=(), gone=removed, called=again, last=last)


def _total(view: Viewed, query: Query) -> int:
    asked = msgspec.structs.replace(query, limit=1, cursor="", edges=False)
    return page(asked, view.rows, view.seq, history_from=view.basis.history_from).total


def _each(query: Query) -> Iterator[tuple[str, str, Query]]:
    """Yield name and value of each filter, and the query without it."""
    for name in ("type", "status"):
        if getattr(query, name) and not (name == "type" and query.is_edge):
            yield name, getattr(query, name), msgspec.structs.replace(query, **{name: ""})
    if query.ids:
        yield "ids", ", ".join(query.ids), msgspec.structs.replace(query, ids=())
    for name in ("tags", "where", "has", "lacks"):
        values: tuple[Any, ...] = getattr(query, name)
        for at, value in enumerate(values):
            without: dict[str, Any] = {name: values[:at] + values[at + 1 :]}
            yield name, _words(value), msgspec.structs.replace(query, **without)
    if query.from_id:
        yield "from", query.from_id, msgspec.structs.replace(query, from_id="", follow=(), depth=1, reverse=False)


def _words(value: Any) -> str:
    """Return a value as it was asked for."""
    if isinstance(value, tuple):
        return conditions.text_of(value)
    if isinstance(value, str):
        return value
    return f"{'^' if value.inverse else ''}{value.edge}{f':{value.id}' if value.id else ''}"


def _unknown(view: Viewed, query: Query, name: str, value: str) -> tuple[str, tuple[str, ...]]:
    """Return what of a filter nothing has at the seq that is asked about, and values like it that there are."""
    entities = as_of.nodes(query.at)
    if name in _VALUES and not query.is_edge:
        values = [row[0] for row in view.rows(f"{_VALUES[name].format(entities)} limit {_MAX_VALUES + 1}")]
        if len(values) > _MAX_VALUES or value in values:
            return "", ()
        return value, near_ones(value, values)
    if name == "where" and (found := _unknown_value(view, query, value)):
        return found
    is_link = query.is_edge and name == "ids"
    table = as_of.links(query.at) if is_link else entities
    for key in _ids_in(query, name, value):
        if not view.rows(f"select 1 from {table} where id = ?", [key]):  # noqa: S608 - names are fixed
            return key, () if is_link else near_ids(view.rows, key, entities=entities)
    return "", ()


def _unknown_value(view: Viewed, query: Query, words: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the value of a comparison that holds for nothing at all, and values like it that there are."""
    any_of = next(one for one in query.where if conditions.text_of(one) == words)
    if len(any_of) != 1 or any_of[0].operator != "=":
        return None
    key, value = key_of(any_of[0].key, is_edge=query.is_edge), any_of[0].value
    if key is None or key.kind not in {"text", "member", "stated_by"} or key.column in {"from_id", "to_id", "id"}:
        return None
    table = as_of.links(query.at) if query.is_edge else as_of.nodes(query.at)
    values = _values_of(view, key, table)
    alone = Query(type=query.type if query.is_edge else "", where=(any_of,), at=query.at)
    if not values or _total(view, alone):
        return None
    if len(values) > _MAX_VALUES:
        return value, ()
    parts = [part.strip() for part in _SEPARATOR.split(value)]
    listed = tuple(part for part in parts if part in values) if len(parts) > 1 else ()
    return value, listed or _near_values(value, values)


def _near_values(value: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return values like one that nothing has; like a path, those in its folder, or of its name in others."""
    folder, is_path, name = value.rpartition("/")
    if not is_path:
        return near_ones(value, values)
    beside = [one.rpartition("/")[2] for one in values if one.rpartition("/")[0] == folder]
    same_name = islice((one for one in values if one.rpartition("/")[2] == name), _MOST_NEAR)
    return tuple(f"{folder}/{one}" for one in near_ones(name, beside)) or tuple(same_name) or near_ones(value, values)


def _values_of(view: Viewed, key: Key, table: str) -> list[str]:
    """Return the values that a key has, in order, one more than the limit at most."""
    found, params = f"n.{key.column}", []
    if key.kind == "member":
        member = f"json_extract(n.{key.column}, $1)"
        found = (
            f"unnest(case json_type({member}) when 'ARRAY' then json_extract_string({member}, '$[*]') "
            f"else [json_extract_string({member}, '$')] end)"
        )
        params = [pointer(key.member)]
    sql = f"select distinct value from (select {found} as value from {table} n) where value is not null"  # noqa: S608 - names are fixed
    return [str(row[0]) for row in view.rows(f"{sql} order by value limit {_MAX_VALUES + 1}", params)]


def _ids_in(query: Query, name: str, value: str) -> tuple[str, ...]:
    """Return the ids that a filter names. An edge's end may be the id of an edge, to which no other id is near."""
    if name == "ids":
        return query.ids
    if name == "where" and query.is_edge:
        any_of = next(one for one in query.where if conditions.text_of(one) == value)
        ends = [one.value for one in any_of if one.key in {"from", "to"} and one.operator == "="]
        return tuple(end for end in ends if not ids.is_link_id(end)) if len(ends) == len(any_of) else ()
    end = value.partition(":")[2] if name in {"has", "lacks"} else ""
    return (end,) if end and not ids.is_link_id(end) else ()
