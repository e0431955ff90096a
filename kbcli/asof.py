"""Reads a branch, and an entity of it, as it stood at the moment that ``--at`` names, or as it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kbcore.query import moment_problem, refuse
from kbcore.visible import in_quotes

if TYPE_CHECKING:
    from kbcli.context import Opened
    from kbcore.analysis.subject import Subject
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

T = TypeVar("T")


def read_as_of(opened: Opened, at: str | None, use: Callable[[View, int], T]) -> tuple[T, FileState]:
    """Return ``use(view, seq)`` for the seq that is meant, and how the answer relates to the files.

    Raises: ``InvalidQuery`` for what is neither a seq nor a time; as ``moment.read_at``.
    """
    if at is None:
        return opened.read(lambda view: use(view, view.seq))
    from kbcore.history.moment import read_at
    from kbcore.sync.overlay import as_of

    wrong = moment_problem(at)
    refuse([wrong] if wrong else [])
    now = opened.workspace.machine.clock.now()

    def answer(view: View, seq: int) -> tuple[T, FileState]:
        return use(view, seq), as_of(seq)

    return read_at(opened.store, at, answer, now=now, notes=opened.session.notes)


def entity_at(view: View, seq: int, id_: str) -> Subject:
    """Return an entity as of a seq. Raises: ``NotFound`` with the nearest id, or what became of it."""
    from kbcore.analysis.subject import find
    from kbcore.errors import NotFound
    from kbcore.query.known import nearest_id

    found = find(view.rows, id_, None if seq == view.seq else seq)
    if found:
        return found
    if seq == view.seq:
        from kbcore.history.log import missing

        raise missing(view, id_)
    near = nearest_id(view.rows, id_)
    hint = (
        f"Did you mean {in_quotes(near)}?" if near not in {"", id_} else f"`kb log {id_}` shows when it came and went."
    )
    raise NotFound(f"There was no entity {in_quotes(id_)} at seq {seq}.", hint=hint)
