"""What a write answers, in the shape that the contract fixes; the same for every front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kbcore.model import Link
from kbcore.state import Change, Changes
from kbcore.view.view import View


class EdgeCounts(msgspec.Struct, frozen=True):
    """How many edges a changeset made, changed, left as they were, and removed."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """The answer to a changeset. ``seq`` is the head after it; ``recovery`` says what was mended on the way."""

    branch: str
    seq: int
    changeset_id: str
    applied: bool
    duplicate: bool
    dry_run: bool
    created: tuple[str, ...]
    updated: tuple[str, ...]
    unchanged: tuple[str, ...]
    deleted: tuple[str, ...]
    edges: EdgeCounts
    warnings: tuple[str, ...]

    @classmethod
    def unchanged_at(cls, branch: str, seq: int, *, dry_run: bool) -> Outcome:
        """Return the answer of a write that found nothing to do."""
        return cls(branch, seq, "", False, False, dry_run, (), (), (), (), EdgeCounts(), ())

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def sorted_out(changes: Changes) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the entities that changes made, changed and removed, each in order."""

    def ids(wanted: Sequence[Change[Any]]) -> tuple[str, ...]:
        return tuple(sorted(change.key for change in wanted))

    return (
        ids([change for change in changes.nodes if change.before is None]),
        ids([change for change in changes.nodes if change.before is not None and change.after is not None]),
        ids([change for change in changes.nodes if change.after is None]),
    )


def counted(links: Sequence[Change[Link]], unchanged: int = 0) -> EdgeCounts:
    """Return the counts of changed edges."""
    return EdgeCounts(
        created=sum(change.before is None for change in links),
        updated=sum(change.before is not None and change.after is not None for change in links),
        unchanged=unchanged,
        deleted=sum(change.after is None for change in links),
    )


def changed_at(view: View, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], EdgeCounts]:
    """Return what the record at a seq made, changed and removed, out of the view's history."""
    entities = _sorted_by_change(view, "node", seq)
    edges = _sorted_by_change(view, "link", seq)
    return *entities, EdgeCounts(len(edges[0]), len(edges[1]), 0, len(edges[2]))


def _sorted_by_change(view: View, table: str, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    rows = view.rows(
        f"with made as (select id, created_seq from {table} where version = ? union all "  # noqa: S608
        f"select id, created_seq from {table}_history where version = ?), "
        f"ended as (select id from {table}_history where ended = ?) "
        "select id, created_seq from made union all select id, null from ended where id not in (select id from made) "
        "order by id",
        [seq, seq, seq],
    )
    return (
        tuple(key for key, created in rows if created == seq),
        tuple(key for key, created in rows if created is not None and created != seq),
        tuple(key for key, created in rows if created is None),
    )
