"""The time of a sync of one changed document, against `git add` of the same and starting DuckDB."""

from __future__ import annotations

from benchmarks import generate
from benchmarks.edited import Edited
from benchmarks.measure import Sample, in_turns, process, together
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import FLAT, Row


def run(place: Place) -> list[Row]:
    """Measure ``kb sync PATH`` after a document got another title."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    rounds = place.sizes.rounds_of(count)
    with Edited(root, generate.document_path(count)) as document:

        def sync() -> Sample:
            document.edit()
            return place.kb(root, "sync", document.name)

        def add() -> Sample:
            document.edit()
            added = process(["git", "add", document.name], cwd=root, env=place.env)
            return together(added, place.python("-c", DUCKDB_START))

        kb, floor = in_turns(sync, add, rounds=rounds)
        document.must_have_records(rounds + 1)
    place.settle(root)
    return Row(
        name="sync of one changed file",
        against="git add + duckdb.connect()",
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        grows_at_most=FLAT,
    )
