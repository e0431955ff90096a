"""The floor of a full replay: decode every line of a journal with msgspec and load what it says into DuckDB, in bulk.

Nothing is verified, folded, ordered or indexed: an operation is a row, and a record is one.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb
import msgspec

from kbcore.model.record import PutNode, Record, StateLink

_CHUNK = 5_000
_TABLES: Mapping[str, Mapping[str, str]] = {
    "node": {
        **dict.fromkeys(("id", "type", "title", "status", "owner", "priority", "kind"), "VARCHAR"),
        "tags": "VARCHAR[]",
        "seq": "BIGINT",
    },
    "link": {**dict.fromkeys(("type", "from_id", "to_id"), "VARCHAR"), "seq": "BIGINT"},
    "record": {
        **dict.fromkeys(("changeset_id", "digest", "written_at", "actor", "source", "message", "sum"), "VARCHAR"),
        "seq": "BIGINT",
    },
}


class Line(msgspec.Struct):
    """One line of the journal, decoded as a whole."""

    seq: int
    sum: str
    rec: Record


def main(journal: str) -> None:
    """Load the journal into a database in memory, and insist that all of it arrived."""
    decode = msgspec.json.Decoder(Line).decode
    connection = duckdb.connect(config={"threads": 2})
    for table, columns in _TABLES.items():
        connection.execute(f"create table {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
    count = 0
    with Path(journal).open("rb") as lines, tempfile.TemporaryDirectory() as folder:
        while chunk := [decode(line) for line in islice(lines, _CHUNK)]:
            count += len(chunk)
            for table, rows in _rows(chunk).items():
                _load(connection, table, rows, Path(folder) / f"{table}.json")
    if connection.execute("select count(*) from record").fetchone() != (count,) or not count:
        raise SystemExit(f"only a part of {journal} was loaded")


def _rows(chunk: Iterable[Line]) -> dict[str, list[dict[str, Any]]]:
    nodes, links, records = [], [], []
    for line in chunk:
        records.append({**_named(line.rec), "seq": line.seq, "sum": line.sum})
        for op in line.rec.ops:
            if isinstance(op, PutNode):
                nodes.append({**op.set, "kind": op.set.get("attributes.kind"), "id": op.id, "seq": line.seq})
            elif isinstance(op, StateLink):
                links.append({"type": op.type, "from_id": op.from_id, "to_id": op.to_id, "seq": line.seq})
    return {"node": nodes, "link": links, "record": records}


def _named(one: Record) -> dict[str, Any]:
    return {
        "changeset_id": one.changeset_id,
        "digest": one.digest,
        "written_at": one.at,
        "actor": one.actor,
        "source": one.source,
        "message": one.message,
    }


def _load(connection: duckdb.DuckDBPyConnection, table: str, rows: Iterable[dict[str, Any]], path: Path) -> None:
    path.write_bytes(msgspec.json.Encoder().encode_lines(rows))
    columns = _TABLES[table]
    kinds = ", ".join(f"'{name}': '{kind}'" for name, kind in columns.items())
    connection.execute(
        f"insert into {table} select {', '.join(columns)} "
        f"from read_json('{path}', format = 'newline_delimited', columns = {{{kinds}}})"
    )


if __name__ == "__main__":
    main(sys.argv[1])
