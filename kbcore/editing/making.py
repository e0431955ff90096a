"""Makes new entities: takes the next free id of a type, and writes the document or the record of the entity."""

from __future__ import annotations

from kbcore import allocation, numbering
from kbcore.editing.documents import Target
from kbcore.errors import InvalidQuery
from kbcore.schema import EntityType
from kbcore.suggest import did_you_mean
from kbcore.view.view import View
from kbcore.visible import in_quotes
from kbcore.workspace import Workspace


def type_named(view: View, workspace: Workspace, kind: str) -> EntityType:
    """Return the definition of a type. Raises ``InvalidQuery`` with the nearest name."""
    known = view.schema(workspace.schema).entities
    if kind not in known:
        raise InvalidQuery(f"There is no entity type {in_quotes(kind)}.", hint=did_you_mean(kind, known))
    return known[kind]


def take_id(target: Target, kind: str, prefix: str = "", *, dry_run: bool = False) -> str:
    """Return the next free id of a type, reserved for an hour unless it is a dry run.

    Without ``prefix`` it is that of most entities of the type.

    Raises: ``InvalidQuery`` for an unknown type; as ``allocation.reserved``.
    """
    workspace = target.workspace

    def series(view: View) -> tuple[str, str]:
        type_named(view, workspace, kind)
        begin = prefix or numbering.prefix_of(view.rows, kind)
        return begin, numbering.highest(view.rows, begin)

    begin, last = target.read(series)
    if dry_run:
        return allocation.known_next(workspace, begin, [last])
    with allocation.reserved(workspace, [(begin, [last])]) as [key]:
        return key
