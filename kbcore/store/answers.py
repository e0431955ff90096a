"""The answer of a write, in the shape that the contract fixes; the same for every front end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kbcore.errors.remedies import for_shell
from kbcore.model.renames import joined
from kbcore.model.state import Changes, Draft, ElementChange
from kbcore.secrets import mask_fields
from kbcore.view.tables import WHOLE

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and an answer needs none


class EdgeCounts(msgspec.Struct, frozen=True):
    """Counts of edges that a changeset made, changed, left as they were, and removed.

    An edge counts as soon as a source states it, also while it is unresolved; to come to stand, or to lose an
    end, is to be changed.
    """

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    deleted: int = 0


class Outcome(msgspec.Struct, frozen=True):
    """The answer to a changeset. ``seq`` is the head after it; ``warnings`` also say what was fixed on the way."""

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
    renamed: dict[str, str] = {}
    """The new id of each entity that was renamed, by its earlier one; shown only where there are any.

    Such an entity is not among the others, and an edge is not counted where it only names the new id.
    """

    def __post_init__(self) -> None:
        """Mask what looks like a secret in the warnings."""
        mask_fields(self, "warnings")

    @classmethod
    def unchanged_at(cls, branch: str, seq: int, *, dry_run: bool) -> Outcome:
        """Return the answer of a write that found nothing to do."""
        return cls(branch, seq, "", False, False, dry_run, (), (), (), (), EdgeCounts(), ())

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self) | {"warnings": [for_shell(one) for one in self.warnings]}
        return {name: value for name, value in found.items() if value or name not in {"ids", "renamed"}}


class ChangeSummary(msgspec.Struct, frozen=True):
    """Elements made, changed, removed and renamed: ids in order, the present id by the earlier one, and edges."""

    created: tuple[str, ...]
    updated: tuple[str, ...]
    deleted: tuple[str, ...]
    edges: EdgeCounts
    renamed: dict[str, str] = {}


def summary_of(draft: Draft) -> ChangeSummary:
    """Return what a plan makes, changes, removes and renames."""
    encoded = draft.encoded
    if encoded is None:
        return summarize(draft.changes, draft.edges_unchanged)
    return ChangeSummary(encoded.created, (), (), EdgeCounts(created=encoded.edges))


def summarize(changes: Changes, unchanged: int = 0) -> ChangeSummary:
    """Return what changes made, changed, removed and renamed. An edge that only a rename gave another id is none."""
    changes = joined(changes)

    def ids(wanted: Sequence[ElementChange[Any]]) -> tuple[str, ...]:
        return tuple(sorted(change.key for change in wanted))

    kept = [(one.before.id, one) for one in changes.nodes if one.before is not None and one.after is not None]
    renamed = {was: change.key for was, change in kept if was != change.key}
    links = changes.links
    created = sum(change.before is None for change in links)
    deleted = sum(change.after is None for change in links)
    return ChangeSummary(
        ids([change for change in changes.nodes if change.before is None]),
        ids([change for was, change in kept if was == change.key]),
        ids([change for change in changes.nodes if change.after is None]),
        EdgeCounts(created, len(links) - created - deleted, unchanged, deleted),
        dict(sorted(renamed.items())),
    )


def summarize_at(view: View, seq: int) -> ChangeSummary:
    """Return what the record at a seq made, changed, removed and renamed, out of the view's history."""
    if view.rows("select 1 from record where seq = ? and renamed > 0", [seq]):
        from kbcore.view.history import changes_at  # noqa: PLC0415 - it imports duckdb, and an answer needs none

        return summarize(changes_at(view, seq))
    created, updated, deleted = (len(ids) for ids in _ids_changed_at(view, "link", seq))
    return ChangeSummary(*_ids_changed_at(view, WHOLE["node"], seq), EdgeCounts(created, updated, 0, deleted))


def _ids_changed_at(view: View, table: str, seq: int) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
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
