"""Elements as they stood: at one seq, between two, and each change after one. From the view's history, no replay.

A seq before the first that the history is whole for is refused, never answered from what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from kbcore.errors import HistoryPruned
from kbcore.model import Link, Node, SourceFile
from kbcore.record import SYNC
from kbcore.state import Change, Changes, State
from kbcore.view.database import among
from kbcore.view.tables import ELEMENTS, link_of, node_of, source_of
from kbcore.view.view import View

E = TypeVar("E", bound=Node | Link | SourceFile)


class Table(msgspec.Struct, Generic[E], frozen=True):
    """A table of elements: its name, its key, its columns as SQL, and how a row becomes an element."""

    name: str
    key: str
    columns: str
    element: Callable[[Sequence[Any]], E]

    def current(self, view: View, keys: Sequence[str]) -> list[E]:
        """Return the elements with these keys, as far as they exist now."""
        if not keys:
            return []
        condition, keyed = among(keys)
        rows = view.rows(f"select {self.columns} from {self.name} where {self.key} {condition}", keyed)
        return [self.element(row) for row in rows]


def _table(name: str, element: Callable[[Sequence[Any]], E]) -> Table[E]:
    key, columns = ELEMENTS[name]
    return Table(name, key, ", ".join(columns), element)


NODES: Table[Node] = _table("node", node_of)
LINKS: Table[Link] = _table("link", link_of)
SOURCES: Table[SourceFile] = _table("source", source_of)


class Later(msgspec.Struct, Generic[E], frozen=True):
    """A change of one element: the record that made it, and the element before and after."""

    seq: int
    key: str
    before: E | None
    after: E | None


def pruned(seq: int, history_from: int) -> HistoryPruned:
    """Return the error for a seq before the first at which it is known how everything stood."""
    return HistoryPruned.before(history_from + 1, f"seq {seq}")


def check_reach(view: View, seq: int) -> None:
    """Refuse a seq whose history was given up. Raises: ``HistoryPruned``."""
    if seq < view.basis.history_from:
        raise pruned(seq, view.basis.history_from)


def state_at(view: View, seq: int) -> State:
    """Return the whole state as it stood at a seq. Raises: ``HistoryPruned``."""
    check_reach(view, seq)
    return State(_all_at(view, NODES, seq), _all_at(view, LINKS, seq), _all_at(view, SOURCES, seq))


def _all_at(view: View, table: Table[E], seq: int) -> list[E]:
    name, columns = table.name, table.columns
    sql = (
        f"select {columns} from {name} where version <= ? union all "
        f"select {columns} from {name}_history where version <= ? and ended > ?"
    )
    return [table.element(row) for row in view.rows(sql, [seq, seq, seq])]


def changes_at(view: View, seq: int) -> Changes:
    """Return what the record at a seq changed, each element before and after. Raises: ``HistoryPruned``."""
    return changes_between(view, seq - 1, seq)


def changes_between(view: View, low: int, high: int) -> Changes:
    """Return every element that differs at two seqs in anything, if only in its version; ``low`` is the earlier.

    Raises: ``HistoryPruned``.
    """
    check_reach(view, low)
    return Changes(
        _between(view, NODES, low, high), _between(view, LINKS, low, high), _between(view, SOURCES, low, high)
    )


def _between(view: View, table: Table[E], low: int, high: int) -> tuple[Change[E], ...]:
    """Return the changes of one table; what came and went in between is none."""
    name, columns = table.name, table.columns
    before = view.rows(
        f"select {columns} from {name}_history where version <= ? and ended > ? and ended <= ?", [low, low, high]
    )
    after = view.rows(
        f"select {columns} from {name} where version > ? and version <= ? union all "
        f"select {columns} from {name}_history where version > ? and version <= ? and ended > ?",
        [low, high, low, high, high],
    )
    was = {row[0]: table.element(row) for row in before}
    now = {row[0]: table.element(row) for row in after}
    return tuple(Change(key, was.get(key), now.get(key)) for key in sorted(was.keys() | now.keys()))


def later_changes(view: View, table: Table[E], keys: Iterable[str], after: int) -> dict[str, list[Later[E]]]:
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
    ended = [(row[-1], table.element(row)) for row in past]
    ends = {(_key(element), seq): element for seq, element in ended}
    elements = [*(element for _, element in ended), *map(table.element, current)]
    begins = {(_key(element), element.version): element for element in elements}
    found: dict[str, list[Later[E]]] = {}
    for key, seq in sorted(ends.keys() | begins.keys(), key=lambda one: one[1]):
        if seq > after:
            found.setdefault(key, []).append(Later(seq, key, ends.get((key, seq)), begins.get((key, seq))))
    return found


def _key(element: Node | Link | SourceFile) -> str:
    return element.path if isinstance(element, SourceFile) else element.id


def gone_with_files(view: View, keys: Iterable[str]) -> dict[str, Node]:
    """Return the entities with these ids that do not exist now because a sync found their file gone, as they were."""
    wanted = sorted(set(keys))
    if not wanted or not view.seq:
        return {}
    condition, keyed = among(wanted)
    columns = ", ".join(ELEMENTS["node"][1])
    rows = view.rows(
        f"select {columns} from (select * from node_history where id {condition} "
        "qualify row_number() over (partition by id order by ended desc) = 1) "
        "where id not in (select id from node) and ended in (select seq from record where source = ?)",
        [*keyed, SYNC],
    )
    return {row[0]: node_of(row) for row in rows}


def seqs_of(view: View, key: str) -> list[int]:
    """Return the seq of every record that changed an entity, an edge of it, or the edge with this id, in order."""
    places = [("node", "id"), ("link", "id"), ("link", "from_id"), ("link", "to_id")]
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
    return [row[0] for row in view.rows(sql, [key] * len(parts))]
