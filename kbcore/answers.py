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
    """Return the counts of edges that came, changed and went; a link that does not stand is no edge yet."""
    turns = [(_stands(change.before), _stands(change.after)) for change in links]
    return EdgeCounts(
        created=turns.count((False, True)),
        updated=turns.count((True, True)),
        unchanged=unchanged,
        deleted=turns.count((True, False)),
    )


def _stands(link: Link | None) -> bool:
    return link is not None and link.stands


def changed_at(view: View, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], EdgeCounts]:
    """Return what the record at a seq made, changed and removed, out of the view's history."""
    entities = _turned_at(view, "node", "true", seq)
    edges = _turned_at(view, "link", "stands", seq)
    return *entities, EdgeCounts(len(edges[0]), len(edges[1]), 0, len(edges[2]))


def _turned_at(
    view: View, table: str, condition: str, seq: int
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the ids of elements that came, changed and went at a seq, as far as they meet a condition."""
    rows = view.rows(
        f"select coalesce(old.id, new.id), old.id is not null, new.id is not null from "  # noqa: S608
        f"(select id from {table}_history where ended = ? and {condition}) old full join "
        f"(select id from {table} where version = ? and {condition} union all "
        f"select id from {table}_history where version = ? and {condition}) new on old.id = new.id order by 1",
        [seq, seq, seq],
    )
    return (
        tuple(key for key, was, now in rows if now and not was),
        tuple(key for key, was, now in rows if now and was),
        tuple(key for key, was, now in rows if was and not now),
    )
