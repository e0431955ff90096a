"""The audit trail: which records there are, and what one record changed, before and after.

Answered from the view's history; only the lines of pruned records are out of reach, and that is said.
"""

from __future__ import annotations

from typing import Any

from kbcore.errors import InvalidQuery, NotFound
from kbcore.history import shown
from kbcore.ids import is_link_id
from kbcore.store import BranchStore
from kbcore.values import normal_time
from kbcore.view.past import changes_at, pruned, seqs_of
from kbcore.view.view import View
from kbcore.writes import nearest_id

_COLUMNS = "seq, changeset_id, written_at, actor, source, message, repair, created, updated, deleted, edges"


def log(
    view: View,
    *,
    id: str = "",  # noqa: A002 - the word of the contract
    limit: int | None = None,
    actor: str = "",
    source: str = "",
    since: str = "",
    before_seq: int | None = None,
) -> list[dict[str, Any]]:
    """Return the records of a branch, newest first, in the shape of the contract.

    Args:
        view: the branch.
        id: only records that changed this entity or an edge of it, or this edge; it may be gone by now.
        limit: at most so many.
        actor: only records of this actor.
        source: only records that came through this source; ``mcp`` stands for every ``mcp:…``.
        since: only records written at or after this time.
        before_seq: only records before this one, to go on from an earlier page.

    Raises: ``NotFound`` for an id that was never in this branch; ``InvalidQuery`` for a time that is none.
    """
    conditions, params = ["file <> ''"], list[Any]()
    if id:
        seqs = _seqs(view, id)
        conditions.append("seq in (select unnest(?::bigint[]))")
        params.append(seqs)
    if actor:
        conditions.append("actor = ?")
        params.append(actor)
    if source:
        conditions.append("(source = ? or starts_with(source, ?))")
        params += [source, f"{source}:"]
    if since:
        conditions.append("written_at >= ?")
        params.append(_time(since))
    if before_seq is not None:
        conditions.append("seq < ?")
        params.append(before_seq)
    sql = f"select {_COLUMNS} from record where {' and '.join(conditions)} order by seq desc"  # noqa: S608 - constants
    if limit is not None:
        sql += " limit ?"
        params.append(limit)
    return [_record(row) for row in view.rows(sql, params)]


def _seqs(view: View, key: str) -> list[int]:
    seqs = seqs_of(view, key)
    if not seqs:
        near = "" if is_link_id(key) else nearest_id(view, key)
        hint = f"Did you mean {near!r}?" if near else ""
        raise NotFound(f"No entity {key!r} was ever in this branch.", hint=hint)
    return seqs


def _time(text: str) -> str:
    time = normal_time(text)
    if time is None:
        raise InvalidQuery(f"{text!r} is no time.", hint="For example 2026-01-31 or 2026-01-31T12:00:00Z.")
    return time


def _record(row: tuple[Any, ...]) -> dict[str, Any]:
    seq, changeset_id, at, actor, source, message, repair, created, updated, deleted, edges = row
    found = {
        "seq": seq,
        "changeset_id": changeset_id,
        "at": at,
        "actor": actor,
        "source": source,
        "message": message,
        "summary": {"created": created, "updated": updated, "deleted": deleted, "edges": edges},
    }
    return {**found, "repair": repair} if repair else found


def record_json(store: BranchStore, view: View, seq: int) -> dict[str, Any]:
    """Return one record with its operations, each with the element before and after, and the fields that differ.

    Raises: ``NotFound`` when there is no such record; ``HistoryPruned`` when its line was given up; what reading
    the journal raises.
    """
    check_record(view, seq)
    row = view.rows(f"select {_COLUMNS}, tool, sum from record where seq = ?", [seq])[0]  # noqa: S608 - constants
    changes = changes_at(view, seq)
    operations = [
        *({"element": "entity", **shown.entity_change(change)} for change in changes.nodes),
        *({"element": "edge", **shown.edge_change(change)} for change in changes.links),
        *({"element": "file", **shown.file_change(change)} for change in changes.sources),
    ]
    found = {**_record(row[:-2]), "tool": row[-2], "hash": row[-1], "operations": operations}
    record = store.record_at(view, seq)
    if record and record.warnings:
        found["warnings"] = list(record.warnings)
    if record and record.clock:
        found["clock"] = record.clock
    return found


def check_record(view: View, seq: int) -> None:
    """Refuse a seq that no record has, or whose record was given up.

    Raises: ``NotFound``, ``HistoryPruned``.
    """
    if not 1 <= seq <= view.seq:
        raise NotFound(f"There is no record {seq}.", hint=f"The records are 1 to {view.seq}; see `kb log`.")
    if seq <= view.basis.history_from:
        raise pruned(seq, view.basis.history_from + 1)
