"""The questions in their order, and a run of some of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Sequence

from benchmarks import peers
from benchmarks.place import Place
from benchmarks.table import HEADINGS, PEER_HEADINGS, Absent, Figure, Row, Versus, markdown

QUESTIONS = (
    "cold_sync",
    "symbol_sync",
    "code_sync",
    "unchanged_sync",
    "one_file_sync",
    "watch_save",
    "idle_hook",
    "prime",
    "point_query",
    "filtered_query",
    "text_query",
    "kip_read",
    "full_check",
    "entity_log",
    "explorer",
    "mcp_query",
    "mcp_upsert",
    "many_writers",
    "merge_changes",
    "check_against",
    "shared_commit",
    "change_files",
    "kip_write",
    "prolog",
    "dml",
    "open_store",
    "full_replay",
    "new_branch",
)
"""Against floors."""
PEERS = ("peer_memory", "peer_doorstop", "peer_strictdoc", "peer_ripgrep")
"""Against other tools, where they are installed."""


def measured(names: Iterable[str], place: Place) -> list[Figure]:
    """Run these questions one after the other; say on standard error what each has found."""
    figures: list[Figure] = []
    for name in names:
        print(f"{name} ...", file=sys.stderr, flush=True)
        found = _run(name, place)
        print(tables(found), file=sys.stderr, flush=True)
        figures += found
    return figures


def tables(figures: Sequence[Figure]) -> str:
    """Return the figures in Markdown: one table for floors, one for peers, as far as there are any."""
    rows = [one.cells() for one in figures if isinstance(one, Row)]
    beside = [one.cells() for one in figures if isinstance(one, Versus | Absent)]
    parts = [markdown(HEADINGS, rows)] if rows else []
    parts += [markdown(PEER_HEADINGS, beside)] if beside else []
    return "\n".join(parts)


def _run(name: str, place: Place) -> list[Figure]:
    module = importlib.import_module(f"benchmarks.{name}")
    if name not in PEERS:
        rows: list[Figure] = module.run(place)
        return rows
    tool = place.peers.find(module.TOOL)
    if tool is None:
        return [Absent(module.TOOL.package, peers.SET_UP)]
    beside: list[Figure] = module.run(place, tool)
    return beside
