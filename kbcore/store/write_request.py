"""A write before it is planned: who writes, through what, under which id, and within which limits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore import limits
from kbcore.model.state import Draft, Stamp
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcore.view.view import View  # it imports duckdb, and a name of an author needs none

_MAX_SESSION_CHARS: Final = 100


class Author(msgspec.Struct, frozen=True):
    """The writer (``actor``), its channel (``source``), and the program and version (``tool``).

    ``session`` is the same for all writes that belong together, "" where nothing says so.
    """

    actor: str
    source: str
    tool: str
    session: str = ""


def session_name(text: str) -> str:
    """Return the name of a session as records have it: on one line, with whole escapes, cut to 100 characters."""
    shown = ""
    for one in map(escape_controls, text.strip()[:_MAX_SESSION_CHARS]):
        if len(shown) + len(one) > _MAX_SESSION_CHARS:
            break
        shown += one
    return shown


class Request(msgspec.Struct, frozen=True):
    """The frame of a write: the client's id for retries, the digest of its content, and why."""

    changeset_id: str = ""
    digest: str = ""
    message: str = ""
    dry_run: bool = False
    limit_bytes: int = limits.MAX_CHANGESET_BYTES
    lock_wait_s: float = limits.LOCK_WAIT_S
    """Time to wait for other writers, by the configuration in force."""

    restores: bool = False
    """The write puts back what earlier records had (``Record.restores``)."""

    plans_ahead: bool = False
    """Planning may take long: it is done before the branch is locked, and again when what it read changes."""


Planner = Callable[["View", Stamp], Draft]
"""Returns what a write changes in the state that a view is of; the stamp is that of the record that it would become."""
