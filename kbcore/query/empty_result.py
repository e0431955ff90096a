"""Reasons why nothing matches: the count that each filter keeps out, and values like one that nothing has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from kbcore import ids
from kbcore.model.graph import OBJECT_FIELDS
from kbcore.query import conditions
from kbcore.query.data_names import near_ids, pointer
from kbcore.query.former_ids import called_again, successor
from kbcore.query.keys import RESOLVED, Key, key_of
from kbcore.query.paging import PageSource, page
from kbcore.query.request import Query
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it, near_ones
from kbcore.text.wording import is_or_are, it_or_them, pluralize
from kbcore.view import as_of

_MAX_VALUES: Final = 1000
_SEPARATOR: Final = re.compile(r"[,|]")
"""Separators of several values in queries of other tools."""
_KEY_END: Final = re.compile(r"[=!<>~^]")
_KEYS: Final = {"status": "status", "tags": "tag"}
"""The key of a condition on what a filter limits."""
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

_UNRESOLVED: Final = conditions.Condition("resolved", "false")
_LACKING: Final = {"status": "Nothing has the status", "tags": "Nothing has the tag"}


class _Unknown(NamedTuple):
    """A value, or an id, that nothing has, "" for none; values like it that there are; the condition that was meant."""

    value: str = ""
    near: tuple[str, ...] = ()
    instead: str = ""
    field: str = ""
    """The field, where nothing has it with any value; then those that are near are fields."""


class Filter(msgspec.Struct, frozen=True):
    """One filter of a query that nothing matches. ``total`` is how many match without it.

    ``unknown`` is a value, or an id, that nothing has at all, and ``near`` are some like it that there are. ``against``
    is how many match when a walk goes the other way along its edges. ``gone`` is the seq at which the id was removed;
    ``called`` is what the entity is called if that undid its rename, ``last`` what it was called last if not so:
    without ``gone`` it is there under that id.
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
    instead: str = ""
    """The condition that was meant, as it is written."""
    is_withdrawn: bool = False
    """No file states the entity any more, which is not recorded yet."""
    lacking_field: str = ""
    """The field that is compared, where nothing has it at all; ``near`` are fields then."""
    unresolved: int = 0
    """The number of unresolved edges that match: a query of edges leaves them out unless it names them."""

    def lacking(self) -> str:
        """Return in words what nothing has, with what may have been meant; "" where it is no such filter."""
        if self.unresolved:
            verb, them = is_or_are(self.unresolved), it_or_them(self.unresolved)
            found = f"{pluralize(self.unresolved, 'edge')} that would match {verb} unresolved"
            return f"{found}: the condition `{_UNRESOLVED.as_text()}` finds {them}."
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
        if self.last:
            was = f"{in_quotes(self.unknown)} was renamed to {in_quotes(self.last)}"
            return f"{was}, and is no former id of it any more."
        meant = f"Did you mean the condition `{self.instead}`?" if self.instead else is_it(self.near)
        key = _KEY_END.split(self.value, maxsplit=1)[0] if self.name == "where" else ""
        if self.lacking_field:
            what = f"Nothing has the field {in_quotes(self.lacking_field)}."
        elif key and key not in {"from", "to", "id"}:
            what = f"Nothing has the {in_quotes(key)} {in_quotes(self.unknown)}."
        else:
            what = f"{_LACKING.get(self.name, 'There is no')} {in_quotes(self.unknown)}."
        return f"{what} {meant}".rstrip()


def filters_of(view: PageSource, query: Query) -> list[Filter]:
    """Return each filter of a checked query that nothing matches, in the order of its arguments.

    Of one with a text only those that name what nothing has; their totals are 0.
    """
    if query.text:
        named = ((name, value, _unknown(view, query, name, value)) for name, value, _ in _each(query))
        return [
            _said_gone(view, query, _filter(name, value, 0, unknown)) for name, value, unknown in named if unknown.value
        ]
    found = []
    for name, value, without in _each(query):
        against = _total(view, msgspec.structs.replace(query, reverse=not query.reverse)) if name == "from" else 0
        one = _filter(name, value, _total(view, without), _unknown(view, query, name, value), against)
        found.append(_said_gone(view, query, one))
    unresolved = _total_unresolved(view, query)
    return [*found, Filter("resolved", "", 0, unresolved=unresolved)] if unresolved else found


def _total_unresolved(view: PageSource, query: Query) -> int:
    """Return how many unresolved edges match a query that leaves them out."""
    if not query.is_edge or any(key_of(one.key, is_edge=True) is RESOLVED for any_of in query.where for one in any_of):
        return 0
    return _total(view, msgspec.structs.replace(query, where=(*query.where, (_UNRESOLVED,))))


def _filter(name: str, value: str, total: int, unknown: _Unknown, against: int = 0) -> Filter:
    return Filter(
        name,
        value,
        total,
        unknown.value,
        unknown.near,
        against,
        instead=unknown.instead,
        lacking_field=unknown.field,
    )


def unknown_ids(view: PageSource, query: Query) -> list[str]:
    """Return a sentence for each id of a query that nothing has, the first few of many.

    Those are ids that were asked for, and ends to which an edge is to be lacking: everything lacks it.
    """
    table = as_of.links(query.at) if query.is_edge else as_of.nodes(query.at, is_whole=query.names_hidden)
    sql = f"select id from {table} where id in (select unnest($1::varchar[]))"  # noqa: S608 - names are fixed
    there = {row[0] for row in view.rows(sql, [list(query.ids)])}
    missing = [id_ for id_ in dict.fromkeys(query.ids) if id_ not in there]
    found = [
        _said_gone(view, query, _filter("ids", id_, 0, _unknown_id(view, query, id_))).lacking()
        for id_ in missing[:_MOST_UNKNOWN]
    ]
    if missing[_MOST_UNKNOWN:]:
        found.append(f"Nothing has {len(missing)} of the {len({*query.ids})} ids.")
    for value in map(_words, query.lacks):
        one = _said_gone(view, query, _filter("lacks", value, 0, _unknown(view, query, "lacks", value)))
        found += [one.lacking()] * bool(one.unknown)
    return found


def _said_gone(view: PageSource, query: Query, one: Filter) -> Filter:
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
    later = None if again else successor(view, one.unknown, gone, min(until, view.recorded_seq))
    last, removed = later or ("", gone)
    return msgspec.structs.replace(one, near=(), gone=removed, called=again, last=last)


def _total(view: PageSource, query: Query) -> int:
    asked = msgspec.structs.replace(query, limit=1, cursor="", edges=False)
    return page(asked, view.rows, view.seq, history_from=view.basis.history_from).total


def _each(query: Query) -> Iterator[tuple[str, str, Query]]:
    """Yield name and value of each filter, and the query without it."""
    for name in ("type", "status"):
        if getattr(query, name) and not (name == "type" and query.is_edge):
            yield name, getattr(query, name), msgspec.structs.replace(query, **{name: ""})
    if query.ids:
        yield "ids", ", ".join(query.ids), msgspec.structs.replace(query, ids=())
    if query.path:
        yield "path", ", ".join(query.path), msgspec.structs.replace(query, path=(), paths=())
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


def _unknown(view: PageSource, query: Query, name: str, value: str) -> _Unknown:
    """Return what of a filter nothing has at the seq that is asked about, values like it, and what was meant."""
    entities = as_of.nodes(query.at, is_whole=query.names_hidden)
    if name in _VALUES and not query.is_edge:
        values = [row[0] for row in view.rows(f"{_VALUES[name].format(entities)} limit {_MAX_VALUES + 1}")]
        if len(values) > _MAX_VALUES or value in values:
            return _Unknown()
        return _among(_KEYS[name], value, values)
    if name == "where" and (found := _unknown_value(view, query, value)):
        return found
    is_link = query.is_edge and name == "ids"
    table = as_of.links(query.at) if is_link else entities
    for key in _ids_in(query, name, value):
        if not view.rows(f"select 1 from {table} where id = ?", [key]):  # noqa: S608 - names are fixed
            return _Unknown(key) if is_link else _unknown_id(view, query, key)
    return _Unknown()


def _unknown_id(view: PageSource, query: Query, key: str) -> _Unknown:
    """Return an id that nothing has with those that are near; several in one, with the condition for either."""
    if query.is_edge and key in query.ids:
        return _Unknown(key)
    entities = as_of.nodes(query.at, is_whole=query.names_hidden)
    parts = [part for one in _SEPARATOR.split(key) if (part := one.strip())]
    if len(parts) > 1:
        sql = f"select id from {entities} where id in (select unnest($1::varchar[]))"  # noqa: S608 - names are fixed
        found = _among("id", key, sorted(row[0] for row in view.rows(sql, [parts])))
        if found.instead:
            return found
    return _Unknown(key, near_ids(view.rows, key, entities=entities))


def _among(key: str, value: str, values: Sequence[str]) -> _Unknown:
    """Return a value that nothing has with those that are near; several in one, with the condition for either."""
    parts = [part for one in _SEPARATOR.split(value) if (part := one.strip())]
    listed = tuple(part for part in parts if part in values) if len(parts) > 1 else ()
    either = " OR ".join(f"{key}={part}" for part in parts) if listed else ""
    return _Unknown(value, listed or _near_values(value, values), either)


def _unknown_value(view: PageSource, query: Query, words: str) -> _Unknown | None:
    """Return the value of a comparison that holds for nothing at all, and what was meant; None for another one."""
    any_of = next(one for one in query.where if conditions.text_of(one) == words)
    if len(any_of) != 1:
        return None
    if not query.is_edge and any_of[0].key == "file":  # an attribute of symbols: documents are found by their path
        by_path = msgspec.structs.replace(any_of[0], key="path")
        alone = Query(where=(any_of,), at=query.at)
        if not _total(view, alone) and _total(view, msgspec.structs.replace(alone, where=((by_path,),))):
            return _Unknown(any_of[0].value, (), by_path.as_text())
    if any_of[0].operator != "=":
        return None
    key, value = key_of(any_of[0].key, is_edge=query.is_edge), any_of[0].value
    if (
        key is None
        or key.kind not in {"text", "member", "stated_by", "list"}
        or key.column in {"from_id", "to_id", "id"}
    ):
        return None
    table = as_of.links(query.at) if query.is_edge else as_of.nodes(query.at, is_whole=query.names_hidden)
    values = _values_of(view, key, table)
    if key.column == "owner" and not query.is_edge:
        values = sorted({*values, *query.owned.owners})
    alone = Query(type=query.type if query.is_edge else "", where=(any_of,), at=query.at, owned=query.owned)
    if value in values or _total(view, alone):
        return None
    if not values:
        return _Unknown(value, _near_fields(view, key, table), field=any_of[0].key) if value else None
    if len(values) > _MAX_VALUES:
        return _Unknown(value)
    return _among(any_of[0].key, value, values)


def _near_fields(view: PageSource, key: Key, table: str) -> tuple[str, ...]:
    """Return fields that something has, like one that nothing has."""
    name = key.member if key.kind == "member" else key.column
    column = key.column if key.kind == "member" else OBJECT_FIELDS[0]
    sql = f"select distinct unnest(json_keys({column})) as name from {table} order by name limit {_MAX_VALUES}"  # noqa: S608 - names are fixed
    return near_ones(name, [str(row[0]) for row in view.rows(sql)])


def _near_values(value: str, values: Sequence[str]) -> tuple[str, ...]:
    """Return values like one that nothing has; like a path, those in its folder, or of its name in others."""
    folder, is_path, name = value.rpartition("/")
    if not is_path:
        return near_ones(value, values)
    beside = [one.rpartition("/")[2] for one in values if one.rpartition("/")[0] == folder]
    same_name = islice((one for one in values if one.rpartition("/")[2] == name), _MOST_NEAR)
    return tuple(f"{folder}/{one}" for one in near_ones(name, beside)) or tuple(same_name) or near_ones(value, values)


def _values_of(view: PageSource, key: Key, table: str) -> list[str]:
    """Return the values that a key has, in order, one more than the limit at most."""
    found, params = f"n.{key.column}", []
    if key.kind == "member":
        member = f"json_extract(n.{key.column}, $1)"
        found = (
            f"unnest(case json_type({member}) when 'ARRAY' then json_extract_string({member}, '$[*]') "
            f"else [json_extract_string({member}, '$')] end)"
        )
        params = [pointer(key.member)]
    elif key.kind == "list":
        found = f"unnest({found})"
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
    if name == "where":
        any_of = next(one for one in query.where if conditions.text_of(one) == value)
        named = [one.value for one in any_of if one.key == "id" and one.operator == "=" and one.value]
        return tuple(named) if len(named) == len(any_of) else ()
    end = value.partition(":")[2] if name in {"has", "lacks"} else ""
    return (end,) if end and not ids.is_link_id(end) else ()
