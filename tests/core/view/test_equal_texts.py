"""Nodes with a text in common are found in the base and in what came after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kbcore.model.record import PutNode
from kbcore.view.equal_texts import EqualTexts
from kbcore.view.tables import ALIASES
from tests.support.repository.stores import Stored


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
