"""An entity as far as analyses show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore.model.graph import Node, is_proposed
from kbcore.model.proposals import of_node
from kbcore.model.schema import is_hidden_id
from kbcore.query import sql
from kbcore.view.tables import Rows

_NAMES: Final = ("id", "type", "title", "status", "owner")
COLUMNS: Final = ", ".join([*(f"coalesce(n.{name}, '')" for name in _NAMES), of_node("n")])
"""The columns of a node ``n`` for one subject."""
WIDTH: Final = len(_NAMES) + 1
"""The number of these."""


class Subject(msgspec.Struct, frozen=True):
    """The name of an entity for a reader; a field that is not set is ""."""

    id: str
    type: str
    title: str
    status: str
    owner: str
    proposed: bool = False
    """Nobody has accepted it."""

    def as_json(self) -> dict[str, Any]:
        """Return the fields that are set."""
        return {name: value for name, value in msgspec.to_builtins(self).items() if value}


def subject_of(cells: Sequence[Any]) -> Subject:
    """Return the subject of a row that begins with ``COLUMNS``."""
    return Subject(*cells[:WIDTH])


def subject_of_node(node: Node) -> Subject:
    """Return the subject of an entity."""
    title, status, owner = (str(node.fields.get(name) or "") for name in ("title", "status", "owner"))
    return Subject(node.id, node.type, title, status, owner, is_proposed(node))


def find(rows: Rows, id_: str, at: int | None) -> Subject | None:
    """Return the entity with this id as of a seq (None: the head), or None when there was none."""
    statement = sql.statement(at, is_whole=is_hidden_id(id_))
    found = rows(f"select {COLUMNS} from {statement.node} n where n.id = {statement.bind(id_)}", statement.params)  # noqa: S608 - fixed names
    return subject_of(found[0]) if found else None


def read_subjects(rows: Rows, ids: Sequence[str], at: int | None = None) -> dict[str, Subject]:
    """Return those of these entities that exist as of a seq (None: the head), by their ids. One statement."""
    if not ids:
        return {}
    statement = sql.statement(at)
    among = statement.among(ids)
    found = rows(f"select {COLUMNS} from {statement.node} n where n.id {among}", statement.params)  # noqa: S608 - fixed names
    return {row[0]: subject_of(row) for row in found}
