"""A store with a few records, and what is in it."""

from __future__ import annotations

from typing import Any

from kbcore.model.record import DropNode, PutNode, StateLink
from kbcore.view.cache_files import VIEW
from kbcore.view.history import state_at
from tests.support.generators.histories import lines_of
from tests.support.repository.stores import Stored, view_of

SEGMENT = "journal-0000000001.jsonl"


def put(key: str, **values: Any) -> PutNode:
    return PutNode(id=key, base=0, set={"type": "req", "title": key, **values})


def state_of(made: Stored) -> list[bytes]:
    return made.store.read(lambda view: lines_of(state_at(view, view.seq)))


def published(made: Stored, nodes: int = 30) -> list[bytes]:
    """Fill the store with a graph and its history, publish its view, and return the state."""
    made.commit([put(f"N{number}", **{"attributes.n": number}) for number in range(nodes)])
    edges = [StateLink(type="depends_on", from_id=f"N{number}", to_id="N0", base=0) for number in range(1, nodes)]
    made.commit(edges)
    made.commit([put(f"N{number}", status="done") for number in range(0, nodes, 3)])
    made.commit([DropNode(id="N5", base=0)])
    view_of(made.reopen())
    made.store.close()
    assert (made.cache_dir / VIEW).stat().st_size > 0
    made.reopen()
    return state_of(made)
