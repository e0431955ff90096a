"""The tail of a view: what came after its base, as values for look-ups by key, and as rows for SQL.

Tables and views cost more than most statements, so each is made for the first one that reads it. A base that is the
view's own gets new rows itself; those over a published one go to tail tables. An element that the tail knows is
never read from the base; one that was removed is known as None.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any, Final

from kbcore.ids import is_link_id, link_id
from kbcore.model.concepts import DEFINING
from kbcore.model.graph import FORMER_IDS, Link, Node
from kbcore.model.record import DropNode, EdgeOperation, ForgetSource, Operation, PutNode, ReadSource
from kbcore.model.state import Changes
from kbcore.view import base_rows, database, table_creation
from kbcore.view.record_rows import FoldedRecord, RowBatch
from kbcore.view.tables import ELEMENTS, RECORD, files_of

_RECENT: Final = 256
"""The records of which ``recent`` has the changes."""


class Tail:
    """The elements that records after the base changed, and the changesets of those records.

    Whoever calls a method that takes a connection holds the lock of the view.
    """

    def __init__(self, *, is_base_empty: bool, is_own: bool, is_queryable: bool = False) -> None:
        self.is_base_empty = is_base_empty
        """The base need not be asked: all there is came after."""
        self._is_own = is_own
        self._unloaded = RowBatch()
        self._is_queryable = is_queryable
        self._has_overlay = False
        self._hidden: dict[str, set[str]] = {name: set() for name in ELEMENTS}
        self._loaded: dict[str, set[str]] = {name: set() for name in ELEMENTS}
        self._loaded_rows = 0
        self._clear_values()

    def _clear_values(self) -> None:
        self.elements: dict[str, dict[str, Any]] = {name: {} for name in ELEMENTS}
        self.changesets: dict[str, tuple[int, str]] = {}
        """Seq and digest of each, by its id."""
        self.recent = deque[tuple[int, str, Changes]](maxlen=_RECENT)
        """Seq, sum and changes of the records that were taken in last, not always in their order."""
        self._at_end: dict[str, dict[str, None]] = {}
        self._called: dict[str, dict[str, None]] = {}

    def add(self, entry: FoldedRecord, changes: Changes) -> None:
        """Take in what one record changed."""
        self._unloaded.add(entry, changes)
        for table, changed in (("node", changes.nodes), ("link", changes.links), ("source", changes.sources)):
            self.elements[table].update((change.key, change.after) for change in changed)
        for node_change in changes.nodes:
            if node_change.after is not None and "name" in node_change.after.fields:
                self._called.setdefault(node_change.after.fields["name"], {})[node_change.key] = None
        for change in changes.links:
            link = change.after or change.before
            if link is not None:
                self._at_end.setdefault(link.from_id, {})[link.id] = None
                self._at_end.setdefault(link.to_id, {})[link.id] = None
        self.changesets[entry.record.changeset_id] = (entry.seq, entry.record.digest)
        self.recent.append((entry.seq, entry.sum, changes))

    @property
    def ends(self) -> Collection[str]:
        """Return the ids that are an end of a link here, or were one."""
        return self._at_end.keys()

    def split(self, table: str, keys: Iterable[str]) -> tuple[list[Any], list[str]]:
        """Return the elements that exist among these keys, and the keys that only the base can know."""
        known = self.elements[table]
        wanted = list(keys)
        found = [known[key] for key in wanted if known.get(key) is not None]
        return found, [key for key in wanted if key not in known]

    def named(self, names: Iterable[str]) -> list[Node]:
        """Return the nodes of the tail that have one of these names."""
        wanted = set(names)
        keys = {key: None for name in wanted for key in self._called.get(name, ())}
        return [node for node in self.split("node", keys)[0] if node.fields.get("name") in wanted]

    def touching(self, ends: Iterable[str]) -> list[Link]:
        """Return the links of the tail that have one of these ids as an end."""
        keys = {key: None for end in ends for key in self._at_end.get(end, ())}
        return self.split("link", keys)[0]

    def stated_by(self, table: str, paths: Collection[str]) -> set[str]:
        """Return the ids of the nodes or links of which one of these files states something."""
        wanted = set(paths)
        return {key for key, one in self.elements[table].items() if one is not None and wanted & files_of(one)}

    @property
    def rows(self) -> int:
        """Return how many rows came after the base."""
        return self._loaded_rows + len(self._unloaded)

    @property
    def unloaded(self) -> RowBatch | None:
        """Return all rows that came after the base, as long as no table holds any of them; else None."""
        return None if self._loaded_rows else self._unloaded

    @property
    def all_unloaded(self) -> RowBatch | None:
        """Return the rows that no table holds where the view has no others; None where something is in tables."""
        return self.unloaded if self.is_base_empty else None

    def empty(self, connection: database.Connection) -> None:
        """Forget everything: the base that is attached now holds it."""
        if self._has_overlay:
            tails = [f"{name}_{part}" for name in ELEMENTS for part in ("tail", "history_tail", "touched")]
            for table in [*tails, "record_tail"]:
                connection.execute(f"delete from {table}")
        for keys in (*self._hidden.values(), *self._loaded.values()):
            keys.clear()
        self._unloaded, self._loaded_rows, self.is_base_empty, self._is_own = RowBatch(), 0, False, False
        self._clear_values()

    def load(self, connection: database.Connection) -> None:
        """Make everything visible to SQL."""
        if not (self._is_queryable or (len(self._unloaded) and not self._is_own)):
            # Tables that are not as they should be come to light here.
            with database.transaction(connection), database.explained_all():
                table_creation.create_plain(connection)
            self._is_queryable = True
        if len(self._unloaded):
            self._load_rows(connection)

    def _load_rows(self, connection: database.Connection) -> None:
        """Bring the rows that are not loaded into tables, all or none."""
        batch = self._unloaded
        with database.transaction(connection):
            if not (self._is_own or self._has_overlay):
                with database.explained_all():  # or here
                    table_creation.create_overlay(connection)
            for table in ELEMENTS:
                if self._is_own:
                    into = f"base.{table}", f"base.{table}_history"
                    base_rows.rows_of(connection, table, batch, self._loaded[table] | batch.older[table], into)
                else:
                    base_rows.tail_of(connection, table, batch, self._loaded[table], self._hidden[table])
            database.load(connection, "base.record" if self._is_own else "record_tail", RECORD, batch.records)
        # Only what is committed counts as loaded: whatever ended this early is tried again as a whole.
        self._unloaded, self._is_queryable, self._has_overlay = RowBatch(), True, not self._is_own
        for table in ELEMENTS:
            self._hidden[table] |= batch.older[table]
            self._loaded[table].update(batch.current[table])
        self._loaded_rows += len(batch)


class UnfoldedRecords:
    """Records that were read and not folded yet, and what folding them may change.

    Invariant: an element for which no method of this class answers true is the same before and after they are folded.
    Folding them never depends on records that were taken in before them without being touched by them.
    """

    def __init__(self) -> None:
        self.entries: list[FoldedRecord] = []
        self.changesets: dict[str, tuple[int, str]] = {}
        """Seq and digest of each, by its id."""
        self.rows = 0
        """The most rows that they will add, roughly."""
        self._changed: set[str] = set()
        """Ids of the nodes and links that operations name."""
        self._ends: set[str] = set()
        """Ids of the ends of those links."""
        self._sources: set[str] = set()
        self._defines = False
        self._renames = False

    def add(self, entry: FoldedRecord) -> None:
        """Take in a record."""
        self.entries.append(entry)
        self.changesets[entry.record.changeset_id] = (entry.seq, entry.record.digest)
        self.rows += 1 + len(entry.record.ops)
        changed, ends, sources = _keys(entry.record.ops)
        self._changed |= changed
        self._ends |= ends
        self._sources |= sources
        self._defines = self._defines or any(
            isinstance(op, PutNode) and op.set.get("type") in DEFINING for op in entry.record.ops
        )

        self._renames = self._renames or any(
            isinstance(op, PutNode) and (FORMER_IDS in op.set or FORMER_IDS in op.unset) for op in entry.record.ops
        )

    @property
    def sources(self) -> Collection[str]:
        """Return the paths of the files that may change."""
        return self._sources

    def meets(self, ops: Iterable[Operation], changes: Changes) -> bool:
        """Tell whether a later record might not be folded before these: both touch an element, or an end of an edge."""
        if not self.entries:
            return False
        changed, ends, sources = _keys(ops)
        for change in changes.links:
            link = change.after or change.before
            if link is not None:
                changed.add(link.id)
                ends.update((link.from_id, link.to_id))
        return (
            not self._changed.isdisjoint(changed | ends)
            or not self._ends.isdisjoint(changed)
            or not self._sources.isdisjoint(sources)
            or any(map(is_link_id, ends))
        )

    def changes_nodes(self, ids: Iterable[str]) -> bool:
        """Tell whether one of these nodes may come, change or go."""
        return not self._changed.isdisjoint(ids)

    def changes_sources(self, paths: Iterable[str]) -> bool:
        """Tell whether one of these files may change."""
        return not self._sources.isdisjoint(paths)

    def changes_links_at(self, ids: Collection[str], ends: Collection[str]) -> bool:
        """Tell whether links with these ids, or with these ends, are stated or withdrawn."""
        return not (self._changed.isdisjoint(ids) and self._ends.isdisjoint(ends))

    def changes_resolved(self, links: Iterable[Link]) -> bool:
        """Tell whether one of these links may become resolved or unresolved, because one of its ends comes or goes.

        Whether an end that is a link comes or goes depends on ends of its own, which are not looked at.
        """
        return any(end in self._changed or is_link_id(end) for link in links for end in (link.from_id, link.to_id))

    def changes_definitions(self, ids: Iterable[str]) -> bool:
        """Tell whether what the branch defines may change; ``ids`` are the nodes that define something now."""
        return self._defines or not self._changed.isdisjoint(ids)

    def changes_former_ids(self, ids: Iterable[str]) -> bool:
        """Tell whether former ids may come or go; ``ids`` are the entities that have some now."""
        return self._renames or not self._changed.isdisjoint(ids)


def _keys(ops: Iterable[Operation]) -> tuple[set[str], set[str], set[str]]:
    """Return the ids of nodes and links that operations name, those of the ends of these links, and paths of files."""
    changed, ends, sources = set[str](), set[str](), set[str]()
    for op in ops:
        if isinstance(op, PutNode | DropNode):
            changed.add(op.id)
        elif isinstance(op, ReadSource | ForgetSource):
            sources.add(op.path)
        elif isinstance(op, EdgeOperation):
            changed.add(link_id(op.type, op.kind, op.from_id, op.to_id))
            ends.update((op.from_id, op.to_id))
    return changed, ends, sources
