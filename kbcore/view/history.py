"""Elements of the past: at one seq, between two, and each change after one. From the view's history, no replay.

A seq before the first that the history is whole for is refused, never answered from what is left.

The order is by seq; a wrong clock is on record, and nothing depends on it. A record flags the earlier ones with later
times, by having its own although the clock was behind (``clock.Moment``). Without these, times never go back, so that
each of them means one seq, whatever comes later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, TypeVar

import msgspec

from kbcore.ids import LINK_ID_PREFIX, is_link_id, link_id
from kbcore.model.graph import FORMER_KEY, Link, Node, SyncedFile, former_ids
from kbcore.model.renames import joined, moved_links, renamed_in
from kbcore.model.state import Changes, ElementChange, State
from kbcore.view.database import among
from kbcore.view.gaps import out_of_reach
from kbcore.view.tables import ELEMENTS, WHOLE, link_of, node_of, source_of
from kbcore.view.view import View

E = TypeVar("E", bound=Node | Link | SyncedFile)

_CHANGED: Final = """
select distinct {columns} from (select {columns}, version as seq from {table}
  union all select {columns}, version from {table}_history union all select {columns}, ended from {table}_history)
where seq in (select unnest(?::bigint[]))
"""
_RESETS: Final = "select seq, written_at from record where clock <> '' and clock = written_at order by seq"
_FORMER: Final = f'"{FORMER_KEY}"'


class ElementTable(msgspec.Struct, Generic[E], frozen=True):
    """A table of elements: its name, its key, its columns as SQL, and how a row becomes an element.

    ``order`` names the columns, and the members of an element, that say its place among the others.
    """

    name: str
    key: str
    columns: str
    order: tuple[str, ...]
    element: Callable[[Sequence[Any]], E]

    def place(self, element: E) -> tuple[str, ...]:
        """Return what an element is sorted by."""
        return tuple(getattr(element, name) for name in self.order)

    def current(self, view: View, keys: Sequence[str]) -> list[E]:
        """Return the elements with these keys, as far as they exist now."""
        if not keys:
            return []
        condition, keyed = among(keys)
        rows = view.rows(f"select {self.columns} from {self.name} where {self.key} {condition}", keyed)
        return [self.element(row) for row in rows]


def _table(name: str, order: tuple[str, ...], element: Callable[[Sequence[Any]], E]) -> ElementTable[E]:
    key, columns = ELEMENTS[name]
    return ElementTable(WHOLE.get(name, name), key, ", ".join(columns), order, element)


NODES: ElementTable[Node] = _table("node", ("id",), node_of)
LINKS: ElementTable[Link] = _table("link", ("from_id", "type", "to_id", "kind"), link_of)
SOURCES: ElementTable[SyncedFile] = _table("source", ("path",), source_of)


class Later(msgspec.Struct, Generic[E], frozen=True):
    """A change of one element: the record that made it, and the element before and after."""

    seq: int
    key: str
    before: E | None
    after: E | None


def check_reach(view: View, seq: int) -> None:
    """Refuse a seq whose history was given up, or is missing. Raises: ``HistoryPruned``."""
    if seq < view.basis.history_from:
        raise out_of_reach(view.rows, view.basis.history_from, seq)


def state_at(view: View, seq: int) -> State:
    """Return the whole state at a seq. Raises: ``HistoryPruned``."""
    check_reach(view, seq)
    return State(_all_at(view, NODES, seq), _all_at(view, LINKS, seq), _all_at(view, SOURCES, seq))


def _all_at(view: View, table: ElementTable[E], seq: int) -> list[E]:
    name, columns = table.name, table.columns
    sql = (
        f"select {columns} from {name} where version <= ? union all "
        f"select {columns} from {name}_history where version <= ? and ended > ?"
    )
    return [table.element(row) for row in view.rows(sql, [seq, seq, seq])]


def changes_at(view: View, seq: int) -> Changes:
    """Return what the record at a seq changed, each element before and after. Raises: ``HistoryPruned``."""
    return changes_between(view, seq - 1, seq)


def changes_of(view: View, seqs: Sequence[int]) -> dict[int, Changes]:
    """Return what each of these records changed, in their order. Raises: ``HistoryPruned``."""
    nodes = nodes_changed(view, seqs)
    links, sources = _by_seq(view, LINKS, seqs), _by_seq(view, SOURCES, seqs)
    return {seq: Changes(nodes[seq], links[seq], sources[seq]) for seq in seqs}


def nodes_changed(view: View, seqs: Sequence[int]) -> dict[int, tuple[ElementChange[Node], ...]]:
    """Return the entities that each of these records changed. Raises: ``HistoryPruned``."""
    check_reach(view, min(seqs) - 1)
    return _by_seq(view, NODES, seqs)


def moved_ends(view: View, seq: int, renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the later id by the earlier one of each entity, and of each edge that others are about, as of a record.

    ``renamed`` has the earlier ids of the entities that it renamed by the later ones.
    """
    sql = f"select {LINKS.columns} from link_history where ended = ? and "
    prefix = "(starts_with(from_id, $2) or starts_with(to_id, $2))"
    found, rows = dict[str, Link](), view.rows(sql.replace("?", "$1") + prefix, [seq, LINK_ID_PREFIX])
    while rows:
        links = [link_of(row) for row in rows]
        found |= {link.id: link for link in links}
        ends = {end for link in links for end in (link.from_id, link.to_id) if is_link_id(end)} - found.keys()
        condition, keyed = among(sorted(ends))
        rows = view.rows(f"{sql} id {condition}", [seq, *keyed]) if ends else []
    return {old: new for new, old in renamed.items()} | moved_links(found.values(), renamed)


def changed_in(view: View, seqs: Sequence[int]) -> tuple[set[str], dict[str, tuple[str, str]]]:
    """Return the ids of the entities that records changed, and both ends of each edge that they changed, by its id.

    Raises: ``HistoryPruned``.
    """
    if not seqs:
        return set(), {}
    check_reach(view, min(seqs) - 1)
    nodes = view.rows(_CHANGED.format(columns="id", table=NODES.name), [list(seqs)])
    links = view.rows(_CHANGED.format(columns="id, from_id, to_id", table="link"), [list(seqs)])
    return {row[0] for row in nodes}, {key: (begin, end) for key, begin, end in links}


def _by_seq(view: View, table: ElementTable[E], seqs: Sequence[int]) -> dict[int, tuple[ElementChange[E], ...]]:
    """Return the changes of one table that these records made, each in the table's order."""
    wanted = list(seqs)
    version, ended = (f"list_contains($1::bigint[], {column})" for column in ("version", "ended"))
    past = view.rows(f"select {table.columns}, ended from {table.name}_history where {version} or {ended}", [wanted])
    current = view.rows(f"select {table.columns} from {table.name} where {version}", [wanted])
    ends, begins = _ends_and_begins(table, past, current)
    found: dict[int, list[ElementChange[E]]] = {seq: [] for seq in seqs}
    each = begins | ends
    for seq, key in sorted(each, key=lambda one: table.place(each[one])):
        if seq in found:
            found[seq].append(ElementChange(key, ends.get((seq, key)), begins.get((seq, key))))
    return {seq: tuple(changes) for seq, changes in found.items()}


def _ends_and_begins(
    table: ElementTable[E], past: Iterable[Sequence[Any]], current: Iterable[Sequence[Any]]
) -> tuple[dict[tuple[int, str], E], dict[tuple[int, str], E]]:
    """Return the elements of these rows by where they ended, and by where they began: a seq and their key."""
    ended = [(row[-1], table.element(row)) for row in past]
    ends = {(seq, _key(element)): element for seq, element in ended}
    elements = [*(element for _, element in ended), *map(table.element, current)]
    return ends, {(element.version, _key(element)): element for element in elements}


def changes_between(view: View, low: int, high: int) -> Changes:
    """Return every element that differs at two seqs in anything, if only in its version; ``low`` is the earlier.

    What came and went in between does not differ. The changes are in the order of each table.

    Raises: ``HistoryPruned``.
    """
    check_reach(view, low)
    return Changes(
        _between(view, NODES, low, high), _between(view, LINKS, low, high), _between(view, SOURCES, low, high)
    )


def changes_from(
    view: View, tables: Sequence[ElementTable[Any]], low: int, high: int, *, place: int = 0, at_once: int
) -> Iterator[tuple[int, ElementTable[Any], ElementChange[Any]]]:
    """Yield the changes of ``changes_between`` table by table, renames ``joined``, each with the place after it.

    A place is how many changes come before it, with those of both sides of a rename; ``at_once`` are read at a time.

    Raises: ``HistoryPruned``.
    """
    check_reach(view, low)
    renames = renames_between(view, low, high)
    begin = 0
    for table in tables:
        end = begin + sum(count_changed(view, table, low, high))
        while begin <= place < end:
            keys = _changed_keys(view, table, low, high, (at_once, place - begin))
            for change in _between(view, table, low, high, keys):
                place += 1
                if (table.name, change.key) not in renames.left_out:
                    yield place, table, renames.joined.get((table.name, change.key), change)
        begin = end


class Renames(msgspec.Struct, frozen=True):
    """The renames between two seqs. Each change is named by its table and its key."""

    joined: dict[tuple[str, str], ElementChange[Any]] = {}
    """The results of ``renames.joined`` for two changes, by the later key."""
    left_out: frozenset[tuple[str, str]] = frozenset()
    """The changes that it leaves out."""


def renames_between(view: View, low: int, high: int) -> Renames:
    """Return the renames between two seqs; only what they concern is read. Raises: ``HistoryPruned``."""
    if view.rows("select count(*) from record where seq > ? and seq <= ? and renamed > 0", [low, high]) == [(0,)]:
        return Renames()
    keys = set[str]()
    for sql, params in (_was(NODES, NODES.columns, low, high), _is_now(NODES, NODES.columns, low, high)):
        for row in view.rows(f"select {NODES.columns} from ({sql}) where contains(attributes, ?)", [*params, _FORMER]):
            node = node_of(row)
            keys |= {node.id, *former_ids(node)}
    nodes = _between(view, NODES, low, high, sorted(keys)) if keys else ()
    renamed = renamed_in(nodes)
    ends, before = sorted(renamed.values()), dict[str, Link]()
    sql, params = _was(LINKS, LINKS.columns, low, high)
    while ends:  # an edge about an edge has another id as well
        condition, keyed = among(ends)
        either = f"from_id {condition} or to_id {condition}"
        rows = view.rows(f"select {LINKS.columns} from ({sql}) where {either}", [*params, *keyed, *keyed])
        found = {link.id: link for link in map(link_of, rows) if link.id not in before}
        before |= found
        ends = sorted(found)
    moved = moved_links(before.values(), renamed)
    links = _between(view, LINKS, low, high, sorted({*moved, *moved.values()})) if moved else ()
    raw = Changes(nodes, links)
    whole = joined(raw)
    by_name = {(NODES.name, one.key): one for one in whole.nodes} | {(LINKS.name, one.key): one for one in whole.links}
    names = {*((NODES.name, one.key) for one in raw.nodes), *((LINKS.name, one.key) for one in raw.links)}
    return Renames(by_name, frozenset(names - by_name.keys()))


def kept_changes(
    view: View, table: ElementTable[E], low: int, high: int, *, at_once: int = 10_000
) -> Iterator[tuple[ElementChange[E], ...]]:
    """Yield, some at a time, the changes of elements that existed at both seqs. Raises: ``HistoryPruned``."""
    check_reach(view, low)
    for place in range(0, count_changed(view, table, low, high)[1], at_once):
        keys = _changed_keys(view, table, low, high, (at_once, place), is_kept=True)
        yield _between(view, table, low, high, keys)


def count_changed(view: View, table: ElementTable[E], low: int, high: int) -> tuple[int, int]:
    """Return how many elements differ at two seqs: those that existed at one of them only, and those at both."""
    changed, params = _changed(table, low, high)
    sql = f"select count(*) filter (sides = 1), count(*) filter (sides = 2) from ({changed})"
    [(alone, kept)] = view.rows(sql, params)
    return alone, kept


def _changed_keys(
    view: View, table: ElementTable[E], low: int, high: int, part: tuple[int, int], *, is_kept: bool = False
) -> list[str]:
    """Return a part of the keys of the elements that differ at two seqs: how many, and how many come before."""
    changed, params = _changed(table, low, high)
    kept = " where sides = 2" if is_kept else ""
    sql = f"select {table.key} from ({changed}){kept} order by {', '.join(table.order)} limit ? offset ?"
    return [row[0] for row in view.rows(sql, [*params, *part])]


def _changed(table: ElementTable[E], low: int, high: int) -> tuple[str, list[Any]]:
    """Return SQL for each element that differs at two seqs, and at how many of them it existed; and its parameters."""
    named = ", ".join(dict.fromkeys((table.key, *table.order)))
    before, was = _was(table, named, low, high)
    after, now = _is_now(table, named, low, high)
    return f"select {named}, count(*) as sides from ({before} union all {after}) group by {named}", [*was, *now]


def _between(
    view: View, table: ElementTable[E], low: int, high: int, keys: Sequence[str] | None = None
) -> tuple[ElementChange[E], ...]:
    """Return the changes of one table, of all elements or of those with these keys, in its order."""
    condition, keyed = among(keys) if keys is not None else ("", [])
    condition = f" where {table.key} {condition}" if condition else ""
    elements = []
    for sql, params in (_was(table, table.columns, low, high), _is_now(table, table.columns, low, high)):
        rows = view.rows(f"select {table.columns} from ({sql}){condition}", [*params, *keyed])
        elements.append({row[0]: table.element(row) for row in rows})
    was, now = elements
    found = was | now
    return tuple(
        ElementChange(key, was.get(key), now.get(key)) for key in sorted(found, key=lambda key: table.place(found[key]))
    )


def _was(table: ElementTable[E], columns: str, low: int, high: int) -> tuple[str, list[Any]]:
    """Return SQL for the elements at ``low`` that differ or are missing at ``high``, and its parameters."""
    sql = f"select {columns} from {table.name}_history where version <= ? and ended > ? and ended <= ?"
    return sql, [low, low, high]


def _is_now(table: ElementTable[E], columns: str, low: int, high: int) -> tuple[str, list[Any]]:
    """Return SQL for the elements at ``high`` that differ or are missing at ``low``, and its parameters."""
    sql = (
        f"select {columns} from {table.name} where version > ? and version <= ? union all "
        f"select {columns} from {table.name}_history where version > ? and version <= ? and ended > ?"
    )
    return sql, [low, high, low, high, high]


def later_changes(view: View, table: ElementTable[E], keys: Iterable[str], after: int) -> dict[str, list[Later[E]]]:
    """Return each change that these elements saw after a seq, in order, by key."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    condition, keyed = among(wanted)
    past = view.rows(
        f"select {table.columns}, ended from {table.name}_history where {table.key} {condition} and ended > ?",
        [*keyed, after],
    )
    current = view.rows(
        f"select {table.columns} from {table.name} where {table.key} {condition} and version > ?", [*keyed, after]
    )
    ends, begins = _ends_and_begins(table, past, current)
    found: dict[str, list[Later[E]]] = {}
    for seq, key in sorted(ends.keys() | begins.keys()):
        if seq > after:
            found.setdefault(key, []).append(Later(seq, key, ends.get((seq, key)), begins.get((seq, key))))
    return found


def _key(element: Node | Link | SyncedFile) -> str:
    return element.path if isinstance(element, SyncedFile) else element.id


def seqs_of(view: View, key: str) -> list[int]:
    """Return the seq of every record that changed an entity, an edge of it, or the edge with this id, in order."""
    places = [(NODES.name, "id"), ("link", "id"), ("link", "from_id"), ("link", "to_id")]
    parts = [
        part
        for table, column in places
        for part in (
            f"select version as seq from {table} where {column} = ?",
            f"select version from {table}_history where {column} = ?",
            f"select ended from {table}_history where {column} = ?",
        )
    ]
    sql = f"select distinct seq from ({' union all '.join(parts)}) order by seq"
    found = {row[0] for row in view.rows(sql, [key] * len(parts))}
    if view.basis.listed_from:
        # What a snapshot brings has the seqs of its last changes; the records themselves say what they changed.
        found = {seq for seq in found if seq > view.basis.history_from}
    return sorted(found | {seq for seq, named in stated(view).items() if any(key in named_ids(one) for one in named)})


def stated(view: View, seqs: Sequence[int] | None = None) -> dict[int, list[list[str]]]:
    """Return what records name that the log lists although later ones are missing: rows as ``fold`` makes them."""
    if not view.basis.listed_from:
        return {}
    condition, params = ("", []) if seqs is None else (" and seq in (select unnest(?::bigint[]))", [list(seqs)])
    rows = view.rows(f"select seq, stated from record where stated is not null{condition}", params)
    return {seq: msgspec.json.decode(text) for seq, text in rows}


def named_ids(row: Sequence[str]) -> set[str]:
    """Return the ids that a row of ``stated`` names: of an entity, or of an edge and its ends."""
    _, from_id, type_, kind, to_id, was = row
    if to_id:
        return {from_id, to_id, link_id(type_, kind, from_id, to_id)}
    return {from_id, was} if was else {from_id}


def last_by(view: View, time: str, *, before: bool = False) -> int | None:
    """Return the last record that was written by a time, or before it; None where there is none.

    Times of a clock that was ahead are passed over. Nothing need be asked for it: the record that flags them comes
    after them, and has an earlier time. A record of a clock that was slow counts with the time of the one before.
    Changes that are in no record do not count (``View.overlay``).
    """
    sql = f"select max(seq) from record where seq <= ? and written_at {'<' if before else '<='} ?"
    last: int | None = view.rows(sql, [view.recorded_seq, time])[0][0]
    return last


def counted_times(rows: Callable[[str, list[Any]], list[Any]]) -> Callable[[int, str], str]:
    """Return what gives the time of a record, or of what it wrote, as it is to be counted with.

    One from a clock that was ahead counts as that of the record which says so. ``rows`` asks the view.
    """
    resets: list[tuple[int, str]] = rows(_RESETS, [])

    def time(seq: int, at: str) -> str:
        return min([at, *(reset for later, reset in resets if later > seq)])

    return time
