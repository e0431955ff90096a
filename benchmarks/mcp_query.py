"""How long does a query for one entity take over MCP, against the SDK's own call of a tool that does nothing?"""

from __future__ import annotations

import json
import sys

from benchmarks import generate
from benchmarks.measure import ProcessFailed, Sample, in_turns
from benchmarks.pipe import Pipe
from benchmarks.place import Place
from benchmarks.table import Row


def run(place: Place) -> list[Row]:
    """Measure both servers over real pipes, call by call in turns, after both have warmed up."""
    root = place.synced_documents()
    key = generate.document_id(place.sizes.documents)
    kb = Pipe(place.kb_mcp(root), cwd=root, env=place.env)
    empty = Pipe([sys.executable, "-m", "benchmarks.empty_server"], cwd=root, env=place.env)

    def query() -> Sample:
        sample, result = kb.call("kb_query", {"ids": [key]})
        if [one["id"] for one in json.loads(result["content"][0]["text"])["entities"]] != [key]:
            raise ProcessFailed(f"kb_query did not find {key}")
        return sample

    def nothing() -> Sample:
        return empty.call("nothing", {})[0]

    asked, below = in_turns(query, nothing, rounds=place.sizes.calls, warm_ups=max(1, place.sizes.calls // 10))
    peak = kb.close().peak_bytes
    empty.close()
    size = f"{place.sizes.documents:,} documents"
    return [Row("kb_query by id over MCP / empty tool of the SDK", size, asked, below, 4.0, peak)]
