"""Entities and edges that records changed, by name and a few of each record, as a log shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from kbcore.model.graph import FORMER_KEY, Node, former_ids
from kbcore.model.renames import earlier_id, joined, renamed_in
from kbcore.model.state import Changes, ElementChange
from kbcore.view import history
from kbcore.view.database import among
from kbcore.view.history import NODES, Later, later_changes, named_ids, stated
from kbcore.view.view import View

Word = Literal["created", "updated", "deleted", "renamed"]

_NODE: Final = "id as key, id, '' as type, '' as kind, '' as other"
_LINK: Final = "id as key, from_id as id, type, kind, to_id as other"
_ELEMENTS: Final = """
with asked as (select unnest(?::bigint[]) as seq), side as ({sides}),
element as (select seq, rank, key, any_value(id) as id, any_value(type) as type, any_value(kind) as kind,
  any_value(other) as other, bool_or(is_before) as is_before, bool_or(not is_before) as is_after
  from side group by seq, rank, key)
select seq, is_before, is_after, id, type, kind, other from element
qualify row_number() over (partition by seq order by rank, id, type, other, kind) <= ?
order by seq, rank, id, type, other, kind
"""
"""Some of the elements on either side of each asked record."""
_SAID: Final = """row(is_resolved, confidence, attributes, metadata, json_extract_string(statements, '$[*].src'),
  json_extract_string(statements, '$[*].via')) as said"""
_RENAMING: Final = """
with asked as (select unnest(?::bigint[]) as seq),
name as (select unnest(?::varchar[]) as old, unnest(?::varchar[]) as new), side as ({sides}),
element as (select key, any_value(id) as id, any_value(type) as type, any_value(kind) as kind,
  any_value(other) as other, any_value(said) as said, bool_or(is_before) as is_before,
  bool_or(not is_before) as is_after from side group by key),
moved as (select gone.key as old, came.key as new, gone.said is not distinct from came.said as is_alone
  from element as gone left join name as a on a.old = gone.id left join name as b on b.old = gone.other
  join element as came on came.type = gone.type and came.kind = gone.kind
    and came.id = coalesce(a.new, gone.id) and came.other = coalesce(b.new, gone.other)
  where not gone.is_after and not came.is_before)
select is_before or key in (select new from moved), is_after, id, type, kind, other from element
where key not in (select old from moved) and key not in (select new from moved where is_alone)
order by id, type, other, kind limit ?
"""
"""Some of the edges on either side of a record that renamed entities, without those that only have another id."""


class TouchedElement(msgspec.Struct, frozen=True):
    """An entity that a record changed, or with ``type`` an edge from ``id`` to ``to_id``."""

    change: Word
    id: str
    type: str = ""
    kind: str = ""
    to_id: str = ""
    was: str = ""
    """The id that a renamed entity had before."""


def touched(view: View, seqs: Sequence[int], *, limit: int, ids: Sequence[str] = ()) -> dict[int, list[TouchedElement]]:
    """Return what each of these records changed, entities first, at most ``limit`` elements of each record.

    With ``ids``, only these entities and their edges: all ids that one had, for one that was renamed.
    """
    condition, keyed = among(ids) if ids else ("", [])
    conditions = (f"id {condition}", f"(from_id {condition} or to_id {condition})") if ids else ("true", "true")
    parts = [_part(NODES.name, _NODE, conditions[0]), _part("link", _LINK, conditions[1])]
    sql = _ELEMENTS.format(sides=" union all ".join(parts))
    found: dict[int, list[TouchedElement]] = {}
    for seq, rows in stated(view, seqs).items():
        meant = (row for row in rows if row[0] and (not ids or named_ids(row) & {*ids}))
        found[seq] = [TouchedElement(*row) for row in islice(meant, limit)]  # type: ignore[arg-type]
    seqs = [seq for seq in seqs if seq > view.basis.history_from]
    renaming = view.rows("select seq from record where renamed > 0 and seq in (select unnest(?::bigint[]))", [seqs])
    if renaming:
        for seq, nodes in history.nodes_changed(view, [seq for (seq,) in renaming]).items():
            named = [one for one in _of_nodes(nodes) if not ids or {one.id, one.was} & {*ids}][:limit]
            found[seq] = [*named, *_links_of_rename(view, seq, renamed_in(nodes), ids, limit - len(named))]
        seqs = [seq for seq in seqs if seq not in found]
    params: list[Any] = [seqs, *keyed * 9, limit]
    for seq, is_before, is_after, *names in view.rows(sql, params):
        found.setdefault(seq, []).append(TouchedElement(_words(is_before=is_before, is_after=is_after), *names))
    return found


def _of_nodes(nodes: tuple[ElementChange[Node], ...]) -> Iterator[TouchedElement]:
    """Yield the entities that a record changed that renamed one."""
    for node in joined(Changes(nodes)).nodes:
        was = node.before.id if node.before and node.after else ""
        is_renamed = was not in {"", node.key}
        yield TouchedElement("renamed", node.key, was=was) if is_renamed else TouchedElement(_word(node), node.key)


def _links_of_rename(
    view: View, seq: int, renamed: Mapping[str, str], ids: Sequence[str], limit: int
) -> Iterator[TouchedElement]:
    """Yield some edges that such a record changed, as ``renames.joined`` has them; those that only moved are not read.

    ``renamed`` has the earlier ids of entities by the later ones.
    """
    if not limit:
        return
    ends = history.moved_ends(view, seq, renamed)
    condition, keyed = among(ids) if ids else ("", [])
    part = _part("link", f"{_LINK}, {_SAID}", f"(from_id {condition} or to_id {condition})" if ids else "true")
    params = [[seq], list(ends), list(ends.values()), *keyed * 6, limit]
    for is_before, is_after, *names in view.rows(_RENAMING.format(sides=part), params):
        yield TouchedElement(_words(is_before=is_before, is_after=is_after), *names)


def _words(*, is_before: bool, is_after: bool) -> Word:
    return "created" if not is_before else "updated" if is_after else "deleted"


def _word(change: ElementChange[Any]) -> Word:
    return _words(is_before=change.before is not None, is_after=change.after is not None)


def _part(table: str, columns: str, condition: str) -> str:
    """Return SQL for the elements of one table after and before the asked records."""
    rank = int(table == "link")
    return " union all ".join(
        f"select {seq} as seq, {rank} as rank, {columns}, {is_before} as is_before "  # noqa: S608 - constants
        f"from {place} where {seq} in (from asked) and {condition}"
        for place, seq, is_before in (
            (table, "version", False),
            (f"{table}_history", "version", False),
            (f"{table}_history", "ended", True),
        )
    )


def changes_of(view: View, id: str, since: int) -> dict[int, Later[Node]]:  # noqa: A002 - the word of the contract
    """Return each change of an entity by its record, from the record ``since`` on, as far as it is proven.

    Those under the ids that it had before are among them; a rename is one change, from one id to the other.
    """
    after = max(since - 1, view.basis.history_from)
    found: list[Later[Node]] = []
    key, until = id, view.seq + 1
    while True:
        some = [one for one in later_changes(view, NODES, [key], after).get(key, ()) if one.seq < until]
        begin = max((at for at, one in enumerate(some) if one.before is None), default=None)
        before = None if begin is None else _renamed_from(view, some[begin])
        if begin is None or before is None:
            return {one.seq: one for one in (*some, *found)}
        found = [msgspec.structs.replace(some[begin], before=before), *some[begin + 1 :], *found]
        key, until = before.id, some[begin].seq


def _renamed_from(view: View, created: Later[Node]) -> Node | None:
    """Return what an entity was before the record that made it if that renamed it; as ``renames.renamed_in``."""
    ids = former_ids(created.after)
    among_ids = "(id in (select unnest(?::varchar[])) or contains(attributes, ?))"
    sql = f"select {NODES.columns} from {NODES.name}_history where ended = ? and {among_ids}"  # noqa: S608 - constants
    nodes = map(NODES.element, view.rows(sql, [created.seq, list(ids), f'"{FORMER_KEY}"']))
    named = {node.id: node for node in nodes}
    later = later_changes(view, NODES, named, created.seq - 1)
    gone = {key: node for key, node in named.items() if later[key][0].after is None}
    names = [*reversed(ids), *(key for key, node in sorted(gone.items()) if created.key in former_ids(node))]
    return gone.get(earlier_id(names, created.after.path if created.after else "", gone))
