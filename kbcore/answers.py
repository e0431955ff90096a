"""What a write answers, in the shape that the contract fixes; the same for every front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kbcore.model import Link
from kbcore.state import Change, Changes

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and an answer needs none


class EdgeCounts(msgspec.Struct, frozen=True):
    """How many edges a changeset made, changed, left as they were, and removed.

    An edge counts as soon as somebody states it, also while it waits for an end; to come to stand, or to lose an
    end, is to be changed.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """The answer to a changeset. ``seq`` is the head after it; ``warnings`` also say what was mended on the way."""

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
    ids: dict[str, str] = {}
    """The ids that were allocated, by what the request wrote in their place; shown only where there are any."""

    @classmethod
    def unchanged_at(cls, branch: str, seq: int, *, dry_run: bool) -> Outcome:
        """Return the answer of a write that found nothing to do."""
        return cls(branch, seq, "", False, False, dry_run, (), (), (), (), EdgeCounts(), ())

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown if self.ids else {name: value for name, value in shown.items() if name != "ids"}


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
    """Return the counts of edges that came, changed and went."""
    created = sum(change.before is None for change in links)
    deleted = sum(change.after is None for change in links)
    return EdgeCounts(created, len(links) - created - deleted, unchanged, deleted)


def changed_at(view: View, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], EdgeCounts]:
    """Return what the record at a seq made, changed and removed, out of the view's history."""
    created, updated, deleted = (len(ids) for ids in _turned_at(view, "link", seq))
    return *_turned_at(view, "node", seq), EdgeCounts(created, updated, 0, deleted)


def _turned_at(view: View, table: str, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the ids of elements that came, changed and went at a seq."""
    rows = view.rows(
        f"select coalesce(old.id, new.id), old.id is not null, new.id is not null from "  # noqa: S608 - constants
        f"(select id from {table}_history where ended = ?) old full join "
        f"(select id from {table} where version = ? union all "
        f"select id from {table}_history where version = ?) new on old.id = new.id order by 1",
        [seq, seq, seq],
    )
    return (
        tuple(key for key, was, now in rows if now and not was),
        tuple(key for key, was, now in rows if now and was),
        tuple(key for key, was, now in rows if was and not now),
    )
