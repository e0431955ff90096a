"""Rows of a base are read once, and never hide what came after it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kbcore.model.graph import Node
from kbcore.model.record import PutNode
from kbcore.view import node_lookups
from kbcore.view.equal_texts import EqualTexts
from kbcore.view.node_lookups import RowCache
from kbcore.view.tables import ALIASES
from kbcore.view.tail import Tail
from tests.support.repository.stores import Stored


def node(key: str) -> Node:
    return Node(key, {}, {}, "", "", "", 1, 1)


def test_only_what_is_not_known_is_read(monkeypatch) -> None:
    monkeypatch.setattr(node_lookups, "_MOST", 3)
    asked: list[list[str]] = []

    def read(keys: Sequence[str]) -> list[Node]:
        asked.append(list(keys))
        return [node(key) for key in keys if key != "absent"]

    found = RowCache()
    for keys in (["A", "absent"], ["A", "B", "absent"], ["C", "A"], ["A", "B", "C", "D"]):
        assert [one.id for one in found.get(keys, read)] == [key for key in keys if key != "absent"]
    found.rebase(Tail(is_base_empty=True, is_own=True))
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


def test_a_node_is_found_by_each_of_its_aliases_wherever_it_is_held(tmp_path: Path) -> None:
    stored = Stored(tmp_path)
    aliases = {"type": "req", "title": "A", "attributes.aliases": ["Al", "Ally", 7]}
    stored.commit([PutNode(id="A", base=0, set=aliases)])
    stored.commit([PutNode(id="B", base=0, set={"type": "req", "title": "B", "attributes.aliases": "Al"})])
    stored.reopen()  # both are in the base
    view = stored.view()
    wanted = ["Ally", "Al", "7", "", "nobody"]
    for _ in range(3):  # the second question reads where the aliases of the base are
        assert [(name, one.id) for name, one in view.with_aliases(wanted)] == [("Ally", "A"), ("Al", "A")]
    stored.commit([PutNode(id="C", base=0, set={"type": "req", "title": "C", "attributes.aliases": ["Al"]})])
    stored.commit([PutNode(id="A", base=1, set={"attributes.aliases": ["Ally"]})])
    for _ in range(3):
        found = stored.view().with_aliases(["Ally", "Al"])
        assert sorted((name, one.id) for name, one in found) == [("Al", "C"), ("Ally", "A")]
    stored.close()


def test_aliases_are_looked_for_in_the_whole_base_twice_at_most() -> None:
    asked: list[str] = []

    def ask(sql: str, *_: Any) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return []

    known = EqualTexts(ask)
    for _ in range(4):
        assert known.in_base(ALIASES, ["nobody"]) == []
    assert len(asked) == 2
