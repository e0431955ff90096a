"""The rows of a view to which others are only added: its records, and its elements as they were.

Nothing is loaded to look them up: as long as no table holds what came after the base, that is looked through here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kbcore.view.database import among
from kbcore.view.record_rows import RowBatch
from kbcore.view.tables import ELEMENTS, WHOLE, AskBase, Rows
from kbcore.view.tail import Tail

IsSo = Callable[[Mapping[str, Any]], bool]


class PastRows:
    """The records and the superseded rows of one view.

    ``fold`` brings into the tail what the view has not folded yet, ``rows`` answers SQL over all that the view holds,
    and ``ask_base`` over its base alone.
    """

    def __init__(self, tail: Tail, fold: Callable[[], None], rows: Rows, ask_base: AskBase) -> None:
        self._tail = tail
        self._fold = fold
        self._rows = rows
        self._ask_base = ask_base

    def records(self, seqs: Iterable[int], columns: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return columns of what the log has of these records, in no order. A record that it does not have is missing.

        Raises: as ``View.rows``.
        """
        wanted = {*seqs}
        condition = "seq in (select unnest(?::bigint[]))", [sorted(wanted)]
        return self._found("record", columns, condition, lambda batch: batch.records, lambda row: row["seq"] in wanted)

    def has_shared_changes(self) -> bool:
        """Tell whether changes came or went with a record: of a change file or a merge. Raises: as ``records``."""
        condition = "changes > 0", list[Any]()
        return bool(self._found("record", ["seq"], condition, lambda batch: batch.records, lambda row: row["changes"]))

    def superseded(
        self, table: str, keys: Iterable[str], columns: Sequence[str], *, since: int = 0
    ) -> list[tuple[Any, ...]]:
        """Return columns of the superseded rows of the nodes, links or sources with these keys, in no order.

        With ``since`` those of versions from this one on.

        Raises: as ``View.rows``.
        """
        key, wanted = ELEMENTS[table][0], {*keys}
        condition, params = among(sorted(wanted))
        where = f"{key} {condition} and version >= ?", [*params, since]
        return self.superseded_where(table, columns, where, lambda row: row[key] in wanted and row["version"] >= since)

    def superseded_where(
        self, table: str, columns: Sequence[str], condition: tuple[str, list[Any]], is_so: IsSo
    ) -> list[tuple[Any, ...]]:
        """Return columns of the superseded rows of a table for which a condition holds, in no order.

        The condition is given as SQL with its parameters, and as a function of a row. Raises: as ``View.rows``.
        """
        return self._found(f"{table}_history", columns, condition, lambda batch: batch.ended[table], is_so)

    def is_known_empty(self, table: str) -> bool:
        """Tell whether no element of a table was ever superseded or removed, as far as that is known without SQL.

        It is known of a branch all of whose records came after an empty base and were not yet asked for by SQL.
        """
        self._fold()
        rows = self._tail.all_unloaded
        return rows is not None and not rows.ended[table]

    def _found(
        self,
        table: str,
        columns: Sequence[str],
        condition: tuple[str, list[Any]],
        rows_in: Callable[[RowBatch], Iterable[Mapping[str, Any]]],
        is_so: IsSo,
    ) -> list[tuple[Any, ...]]:
        self._fold()
        listed, (where, params) = ", ".join(columns), condition
        later = self._tail.unloaded
        if later is None:
            return self._rows(f"select {listed} from {WHOLE.get(table, table)} where {where}", params)
        found = self._ask_base(f"select {listed} from base.{table} where {where}", *params)
        return [*found, *(tuple(row[name] for name in columns) for row in rows_in(later) if is_so(row))]
