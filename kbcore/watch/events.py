"""Events of a watcher, one value each. Plain data; front ends render them as text or JSON."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from kbcore.errors import KBError
from kbcore.rules import RuleRun, Violation
from kbcore.sync.answer import SyncAnswer


class Following(msgspec.Struct, frozen=True):
    """From now on the watcher follows this branch: at its beginning, and whenever another one is checked out."""

    at: str
    answer: SyncAnswer
    notice: str = ""


class Synced(msgspec.Struct, frozen=True):
    """Changed files were synced. ``took_ms`` is the time from the first notice of them to the end of the commit."""

    at: str
    answer: SyncAnswer
    took_ms: int


class Checked(msgspec.Struct, frozen=True):
    """Violations are new or fixed; ``present`` are all that there are now.

    ``is_first``: these are the first of the branch that is followed. ``not_run`` are the rules that could not be run,
    with the reason; violations of theirs stay as they were. ``run_again`` are those that could not, and can now.
    """

    at: str
    branch: str
    seq: int
    new: tuple[Violation, ...]
    fixed: tuple[Violation, ...]
    present: tuple[Violation, ...]
    is_first: bool = False
    not_run: tuple[RuleRun, ...] = ()
    run_again: tuple[str, ...] = ()


class Waiting(msgspec.Struct, frozen=True):
    """An error; the watcher tries again by itself. Reported once for as long as it lasts."""

    at: str
    error: KBError


class Resumed(msgspec.Struct, frozen=True):
    """No error is open any more."""

    at: str


class Polling(msgspec.Struct, frozen=True):
    """File notifications are not available, for this reason: the watcher polls the files."""

    at: str
    reason: str


class Listening(msgspec.Struct, frozen=True):
    """File notifications work again: files are no longer polled."""

    at: str


Event = Following | Synced | Checked | Waiting | Resumed | Polling | Listening
Tell = Callable[[Event], None]
