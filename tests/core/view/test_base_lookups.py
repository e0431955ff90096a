"""Rows of a base are read once, and never hide what came after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbcore.model.graph import Node
from kbcore.model.record import PutNode
from kbcore.view import base_lookups
from kbcore.view.base_lookups import RowCache
from tests.support.repository.stores import Stored


def node(key: str) -> Node:
    return Node(key, {}, {}, "", "", "", 1, 1)


def test_only_what_is_not_known_is_read(monkeypatch) -> None:
    monkeypatch.setattr(base_lookups, "_MOST", 3)
    asked: list[list[str]] = []

    def read(keys: Sequence[str]) -> list[Node]:
        asked.append(list(keys))
        return [node(key) for key in keys if key != "absent"]

    found = RowCache()
    for keys in (["A", "absent"], ["A", "B", "absent"], ["C", "A"], ["A", "B", "C", "D"]):
        assert [one.id for one in found.get(keys, read)] == [key for key in keys if key != "absent"]
    found.clear()
    found.get(["A"], read)
    assert asked == [["A", "absent"], ["B"], ["C"], ["A", "B", "C", "D"], ["A"]]


def test_what_a_record_changed_is_seen_at_once_and_in_the_next_base(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.put("A")
    stored.reopen()  # A is in its base
    for _ in range(2):
        assert [one.id for one in stored.view().nodes(["A", "B"])] == ["A"]
    stored.put("B")
    assert {one.id for one in stored.view().nodes(["A", "B"])} == {"A", "B"}
    view = stored.view()
    base = str(stored.cache_dir / "base.duckdb")
    view.write_base(base)
    view.rebase(base)
    assert {one.id for one in view.nodes(["A", "B"])} == {"A", "B"}


def test_a_node_is_found_by_the_name_that_somebody_gave_it(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    stored.put("A")
    stored.reopen()
    stored.commit([PutNode(id="B", base=0, set={"type": "req", "title": "B", "name": "called"})])
    assert [one.id for one in stored.view().named(["called", "A"])] == ["B", "A"]
    stored.commit([PutNode(id="B", base=0, set={"name": "otherwise"})])
    assert stored.view().named(["called"]) == []
    stored.reopen()
    assert [one.id for one in stored.view().named(["otherwise"])] == ["B"]
    stored.close()
