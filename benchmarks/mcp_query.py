"""The time of a query for one entity over MCP, against the SDK's own call of a tool that does nothing."""

from __future__ import annotations

import sys

from benchmarks import generate
from benchmarks.measure import ProcessFailed, Sample, in_turns
from benchmarks.pipe import EMPTY_TOOL, Pipe, answer
from benchmarks.place import Place
from benchmarks.table import FLAT, Row


def run(place: Place) -> list[Row]:
    """Measure both servers over real pipes, call by call alternately, after both have warmed up."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    key = generate.document_id(count)
    kb = Pipe(place.kb_mcp(root), cwd=root, env=place.env)
    empty = Pipe([sys.executable, "-m", "benchmarks.empty_server"], cwd=root, env=place.env)

    def query() -> Sample:
        sample, result = kb.call("kb_query", {"ids": [key]})
        if [one["id"] for one in answer(result)["entities"]] != [key]:
            raise ProcessFailed(f"kb_query did not find {key}")
        return sample

    def nothing() -> Sample:
        return empty.call(EMPTY_TOOL, {})[0]

    asked, below = in_turns(query, nothing, rounds=place.sizes.calls, warm_ups=max(1, place.sizes.calls // 10))
    peak = kb.close().peak_bytes
    empty.close()
    return Row(
        name="kb_query by id over MCP",
        against="empty tool of the SDK",
        count=count,
        unit="documents",
        kb=asked,
        floor=below,
        peak_bytes=peak,
        at_most=4.0,
        grows_at_most=FLAT,
    )
