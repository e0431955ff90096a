"""The ids that renamed entities had or have: what an id of one means now, and what it meant as of an earlier seq.

Every reader resolves ids here, so that a former id answers as the present one does, and says so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from kbcore.model.graph import FORMER_IDS, FORMER_KEY, former_ids_of
from kbcore.model.renames import Moved
from kbcore.query.conditions import Condition
from kbcore.query.request import Pattern, Query
from kbcore.text.escaping import in_quotes
from kbcore.view.as_of import nodes as nodes_at
from kbcore.view.tables import WHOLE

_RENAMED: Final = """
select id, attributes from any_node where contains(attributes, $1)
union select id, attributes from any_node_history where contains(attributes, $1)
"""
_AMONG: Final = "select id from {} where id in (select unnest($1::varchar[]))"

_GAVE_UP: Final = "select attributes from any_node_history where id = ? and ended = ?"
_CREATED: Final = """
select id from (select id, created_seq from any_node union all select id, created_seq from any_node_history)
where id in (select unnest($1::varchar[])) and created_seq = $2 order by id limit 1
"""
_MOVED: Final = "select seq, moved from record where renamed > 0 and seq between ? and ? order by seq"
_LOST_BY_RENAME: Final = """
with was as (select seq, unnest(json_extract_string(moved, '$[*].was')) as id from record where renamed > 0),
last as (select id, max(ended) as seq from any_node_history where id in (select unnest($1::varchar[])) group by id)
select id, seq from last where (id, seq) in (select id, seq from was)
"""
_SINCE: Final = "select id, created_seq from any_node where id in (select unnest($1::varchar[]))"
_TAKEN: Final = """
select seq from record where renamed > 0 and seq <= $2
and list_contains(json_extract_string(moved, '$[*].was'), $1) order by seq desc
"""
_THERE: Final = """
select count(*) > 0 from (select id, created_seq, version, null as ended from any_node
  union all select id, created_seq, version, ended from any_node_history)
where id = $1 and created_seq = $2 and version <= $3 and (ended is null or ended > $3)
"""
_ENDED: Final = "select max(ended) from any_node_history where id = ? and created_seq = ? and ended <= ?"


class BranchView(Protocol):
    """A view of a branch."""

    @property
    def seq(self) -> int:
        """Return the seq that is answered for."""

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""

    def renamed(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the present id of each of these ids that an entity had before and none has now."""


def called(view: BranchView, keys: Iterable[str], at: int | None = None) -> dict[str, str]:
    """Return what each of these ids, where it names no entity, is called: now, or as of a seq.

    As of a seq that is what the same entity was called then, whether it was renamed before or after.
    """
    wanted = {key for key in keys if key}
    if at is None or at >= view.seq or not wanted:
        return view.renamed(wanted)
    there = _among(view, wanted, at)
    families = _families(view) if wanted - there else []
    found: dict[str, str] = {}
    for key in wanted - there:
        ids = set[str]().union(*(family for family in families if key in family)) - {key}
        then = _among(view, ids, at) if ids else set()
        if len(then) == 1:
            found[key] = then.pop()
    return found


def called_again(view: BranchView, key: str, gone: int) -> str:
    """Return what an entity is called whose rename to this id the record at a seq undid; "" where it did not."""
    rows = view.rows(_GAVE_UP, [key, gone])
    former = former_ids_of({FORMER_IDS: msgspec.json.decode(rows[0][0]).get(FORMER_KEY)}) if rows else ()
    created = [row[0] for row in view.rows(_CREATED, [list(former), gone])]
    now = {row[0] for row in view.rows(_AMONG.format(WHOLE["node"]), [created])}
    return next((one for one in [*now, *view.renamed(created).values()] if one != key), "")


class Successor(NamedTuple):
    """The last id of an entity that was renamed, and the seq that removed it, 0 where it is there."""

    id: str
    removed: int


def successor(view: BranchView, key: str, gone: int, until: int) -> Successor | None:
    """Return what became, up to a seq, of an entity that the record at a seq renamed from this id; None if it did not.

    That record need not be known from former ids: a file may have stopped stating them.
    """
    name, since = key, 0
    for seq, moved in view.rows(_MOVED, [gone, until]):
        for one in msgspec.json.decode(moved, type=list[Moved]):
            if one.was == name and (one.since == since if since else seq == gone):
                name, since = one.now, seq
                break
    if not since:
        return None
    if view.rows(_THERE, [name, since, until]) == [(True,)]:
        return Successor(name, 0)
    removed = view.rows(_ENDED, [name, since, until])[0][0]
    return None if removed is None else Successor(name, removed)


def created_seqs(view: BranchView, keys: Collection[str]) -> dict[str, int]:
    """Return the seqs at which the entities got these ids that have them now, by id."""
    return dict(view.rows(_SINCE, [sorted(keys)])) if keys else {}


def passed_on(view: BranchView, key: str, since: int, until: int) -> int:
    """Return the last seq at which a rename took this id from an entity that has another one as of ``until``; or 0.

    The entity that has it got it at ``since``: one that was renamed back is the same.
    """
    for (seq,) in view.rows(_TAKEN, [key, since]):
        later = successor(view, key, seq, until)
        if later and not later.removed and later.id != key:
            return int(seq)
    return 0


def successors(view: BranchView, keys: Collection[str], until: int) -> dict[str, Successor]:
    """Return what became of each of these ids that no entity has and whose entity was renamed when it lost it."""
    rows = view.rows(_LOST_BY_RENAME, [sorted(keys)]) if keys else []
    found = {key: successor(view, key, seq, until) for key, seq in rows}
    return {key: later for key, later in found.items() if later}


def said(found: Mapping[str, str], at: int | None = None) -> list[str]:
    """Return a sentence for each id that was resolved."""
    if at is None:
        return [f"{in_quotes(key)} is called {in_quotes(now)} now." for key, now in sorted(found.items())]
    return [f"{in_quotes(key)} was called {in_quotes(then)} at seq {at}." for key, then in sorted(found.items())]


def with_present_ids(view: BranchView, query: Query, at: int | None = None) -> tuple[Query, dict[str, str]]:
    """Return a checked query with the ids that entities have, now or as of a seq, and what was resolved."""
    patterns = (*query.has, *query.lacks)
    compared = [one.value for any_of in query.where for one in any_of if _is_of_id(one, is_edge=query.is_edge)]
    now = called(view, [*query.ids, query.from_id, *(one.id for one in patterns), *compared], at)
    if not now:
        return query, now

    def present(found: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
        return tuple(msgspec.structs.replace(one, id=now.get(one.id, one.id)) for one in found)

    def compares(one: Condition) -> Condition:
        if not _is_of_id(one, is_edge=query.is_edge):
            return one
        return msgspec.structs.replace(one, value=now.get(one.value, one.value))

    resolved = msgspec.structs.replace(
        query,
        ids=tuple(dict.fromkeys(now.get(one, one) for one in query.ids)),
        where=tuple(tuple(map(compares, any_of)) for any_of in query.where),
        from_id=now.get(query.from_id, query.from_id),
        has=present(query.has),
        lacks=present(query.lacks),
    )
    return resolved, now


def _is_of_id(one: Condition, *, is_edge: bool) -> bool:
    """Return whether a condition compares with the whole id of an entity."""
    return one.operator in {"=", "!="} and one.key in ({"from", "to"} if is_edge else {"id"})


def _among(view: BranchView, keys: Iterable[str], at: int) -> set[str]:
    return {row[0] for row in view.rows(_AMONG.format(nodes_at(at)), [sorted(keys)])}


def _families(view: BranchView) -> list[set[str]]:
    """Return the ids that each renamed entity ever had."""
    rows = view.rows(_RENAMED, [f'"{FORMER_KEY}"'])
    former = [(key, {FORMER_IDS: msgspec.json.decode(text).get(FORMER_KEY)}) for key, text in rows]
    return [{key, *former_ids_of(fields)} for key, fields in former]
