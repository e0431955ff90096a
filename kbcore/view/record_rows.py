"""Fold journal records into rows: the current ones, the superseded ones and the log. No database here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from kbcore.model.canonical import KnownChangeset
from kbcore.model.folding import apply
from kbcore.model.record import ChangeOperation, DropNode, EdgeOperation, PutNode, Record
from kbcore.model.renames import joined, moved_in, renamed_in
from kbcore.model.state import Changes, ElementChange, EncodedChanges, Stamp, State
from kbcore.view.tables import RECORD, link_row, node_row, source_row

CHUNK_RECORDS: Final = 10_000
"""Records that are folded before their rows are loaded, which bounds the memory."""

ROW_OF: Final[dict[str, Any]] = {"node": node_row, "link": link_row, "source": source_row}


class FoldedRecord(msgspec.Struct, frozen=True):
    """A record of the journal and the place of its line: file name, offset and length in bytes."""

    seq: int
    sum: str
    record: Record
    file: str
    offset_bytes: int
    length_bytes: int


class FoldStart(msgspec.Struct, frozen=True):
    """The state before the first record that is folded: record ``seq``, whose chain hash is ``sum``."""

    seq: int
    sum: str
    state: State
    known: list[KnownChangeset]
    earlier: Iterable[tuple[FoldedRecord, Changes | None]] = ()
    """Records up to ``seq`` that the journal still has although some between them are missing: for the log alone.

    Each has what it changed, None where no state before it is proven.
    """


class RowBatch:
    """Rows that records bring, gathered until they are loaded. One element is current at most once."""

    def __init__(self) -> None:
        self.current: dict[str, dict[str, Any]] = {"node": {}, "link": {}, "source": {}}
        self.ended: dict[str, list[dict[str, Any]]] = {"node": [], "link": [], "source": []}
        self.older: dict[str, set[str]] = {"node": set(), "link": set(), "source": set()}
        """Keys of elements from before these records: only such an element can have a row in the base."""
        self.records: list[dict[str, Any]] = []

    def __len__(self) -> int:
        """Return how many rows wait to be loaded."""
        return len(self.records) + sum(map(len, self.current.values())) + sum(map(len, self.ended.values()))

    def add(self, entry: FoldedRecord, changes: Changes) -> None:
        """Take in what one record changed. A removed element stays listed, with the value None."""
        for table, changed in self._by_table(changes):
            for change in changed:
                if change.before is not None:
                    if change.key not in self.current[table]:
                        self.older[table].add(change.key)
                    self.ended[table].append({**ROW_OF[table](change.before), "ended": entry.seq})
                self.current[table][change.key] = change.after
        self.records.append(record_row(entry, changes))

    def add_past(self, entry: FoldedRecord, changes: Changes) -> None:
        """Add a record and what it ended, where the present state is loaded as a whole afterwards."""
        for table, changed in self._by_table(changes):
            for change in changed:
                if change.before is not None:
                    self.ended[table].append({**ROW_OF[table](change.before), "ended": entry.seq})
        self.records.append(record_row(entry, changes))

    @staticmethod
    def _by_table(changes: Changes) -> Iterable[tuple[str, Iterable[ElementChange[Any]]]]:
        return (("node", changes.nodes), ("link", changes.links), ("source", changes.sources))


def fold(state: State, entry: FoldedRecord) -> Changes:
    """Apply one record to the state and return what changed."""
    record = entry.record
    return apply(state, Stamp(entry.seq, record.at, record.actor, record.source), record.ops)


def pruned_rows(start: FoldStart) -> Iterator[dict[str, Any]]:
    """Yield the log's rows of records up to the start: where the line is missing, only the changeset is still known."""
    there = set[int]()
    for entry, changes in start.earlier:
        there.add(entry.seq)
        row = record_row(entry, changes or Changes())
        if changes is None:
            row |= _counts(entry.record)
        yield {**row, "stated": _stated(entry.record) if changes is None else _changed(changes)}
    for known in start.known:
        if known.seq in there:
            continue
        row = dict.fromkeys(RECORD)
        known_of_it = {"seq": known.seq, "changeset_id": known.changeset_id, "digest": known.digest, "file": ""}
        yield {**row, **known_of_it, "sum": start.sum if known.seq == start.seq else ""}


def _counts(record: Record) -> dict[str, int]:
    """Return what a record says that it changes, for one that cannot be folded."""
    put = {op.id: op.base == 0 for op in record.ops if isinstance(op, PutNode)}
    links = {(op.type, op.kind, op.from_id, op.to_id) for op in record.ops if isinstance(op, EdgeOperation)}
    created = sum(put.values())
    deleted = sum(isinstance(op, DropNode) for op in record.ops)
    return {"created": created, "updated": len(put) - created, "deleted": deleted, "renamed": 0, "edges": len(links)}


def _stated(record: Record) -> str:
    """Return what a record names, as JSON rows: what became of it, by the version that it was made on; what it is.

    The last member of a row is the id before a rename, which only ``_changed`` has.
    """
    nodes: dict[str, tuple[str, ...]] = {}
    links: dict[tuple[str, ...], tuple[str, ...]] = {}
    for op in record.ops:
        if isinstance(op, PutNode | DropNode):
            is_new = op.base == 0 and isinstance(op, PutNode)
            word = "created" if is_new else "deleted" if isinstance(op, DropNode) else "updated"
            nodes.setdefault(op.id, (word, op.id, "", "", "", ""))
        elif isinstance(op, EdgeOperation):
            word = "created" if op.base == 0 else "updated"
            ends = (op.from_id, op.type, op.kind, op.to_id)
            links.setdefault(ends, (word, *ends, ""))
    return msgspec.json.encode([*map(nodes.get, sorted(nodes)), *map(links.get, sorted(links))]).decode()


def _changed(changes: Changes) -> str:
    """Return what a record changed, as the JSON rows of ``_stated``: "" became of an edge that a rename only moved."""
    whole = joined(changes)
    nodes = []
    for node in whole.nodes:
        was = node.before.id if node.before and node.after and node.before.id != node.key else ""
        nodes.append(("renamed" if was else _word(node), node.key, "", "", "", was))
    words = {link.key: _word(link) for link in whole.links}
    links = []
    for link in changes.links:
        one = link.after or link.before
        if one is not None:
            links.append((words.get(link.key, ""), one.from_id, one.type, one.kind, one.to_id, ""))
    return msgspec.json.encode([*sorted(nodes, key=_ends), *sorted(links, key=_ends)]).decode()


def _word(change: ElementChange[Any]) -> str:
    return "created" if change.before is None else "deleted" if change.after is None else "updated"


def _ends(row: tuple[str, ...]) -> tuple[str, ...]:
    return row[1:]


def record_row(entry: FoldedRecord, changes: Changes) -> dict[str, Any]:
    """Return the log's row of a record."""
    record, created, deleted, renamed = entry.record, 0, 0, 0
    for change in changes.nodes:
        created += change.before is None
        deleted += change.after is None
    edges, moved = len(changes.links), ""
    if created and deleted and (names := renamed_in(changes.nodes)):
        renamed = len(names)
        created, deleted = created - renamed, deleted - renamed
        edges = len(joined(changes).links)
        moved = msgspec.json.encode(moved_in(changes, names)).decode()
    return {
        "seq": entry.seq,
        "changeset_id": record.changeset_id,
        "digest": record.digest,
        "written_at": record.at,
        "clock": record.clock,
        "actor": record.actor,
        "source": record.source,
        "tool": record.tool,
        "message": record.message,
        "repair": record.repair,
        "commit": record.commit,
        "session": record.session,
        "epoch": record.epoch,
        "holes": msgspec.json.encode(record.holes).decode() if record.holes else "",
        "stated": None,
        "sum": entry.sum,
        "file": entry.file,
        "offset_bytes": entry.offset_bytes,
        "length_bytes": entry.length_bytes,
        "created": created,
        "updated": len(changes.nodes) - created - deleted - 2 * renamed,
        "deleted": deleted,
        "renamed": renamed,
        "moved": moved,
        "edges": edges,
        "changes": sum(isinstance(op, ChangeOperation) for op in record.ops),
    }


def first_record_row(entry: FoldedRecord, encoded: EncodedChanges) -> dict[str, Any]:
    """Return the log's row of the first record of a branch, whose operations are not available as values."""
    return {**record_row(entry, Changes()), "created": len(encoded.created), "edges": encoded.edges}
