"""Notices in the answers of one connection, most of them given once."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from kbcore.errors import KBError

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore
    from kbcore.store.branches import Ensured
    from kbmcp.tools.call import Call

_ADVICE: Final = (
    "Before you edit a file, ask {kb_query} with context.paths. Remember by {kb_upsert}; a note or task needs type and "
    "title. Then {kb_check}. {kb_history} with revert and since undoes your own."
)
_READING_ADVICE: Final = (
    "Before you edit a file, ask {kb_query} with context.paths. {kb_check} says what is broken, {kb_history} who "
    "changed what."
)
"""The standing advice for clients that show no instructions of servers: at most 60 tokens."""


class ConnectionNotices:
    """The notices of a connection. With ``has_core`` the tools of the toolset core are offered, and may be named."""

    def __init__(self, *, has_core: bool, is_read_only: bool, is_dotted: bool) -> None:
        self._has_core = has_core
        self._is_read_only = is_read_only
        self._is_dotted = is_dotted
        self._lock = threading.Lock()
        self._moved: list[str] = []
        """On stores of an older layout that this process moved."""
        self._has_said_sharing = False
        self.has_advised = False
        """The client was given the standing advice."""
        self._reported_doubts: set[str] = set()
        """Those that were sent on stores that may be of an earlier branch."""
        self._sent: WeakKeyDictionary[BranchStore, int] = WeakKeyDictionary()

    def add_moved(self, notice: str) -> None:
        """Keep what is to be said of stores that were moved."""
        with self._lock:
            self._moved.append(notice)

    def news(self, call: Call) -> str:
        """Return the notices to the answer of a call.

        They say how the branch got its store, what this answer depends on, and which problems were found while reading
        the store; each is said once. What is missing from the store is said with every answer.
        """
        sharing = self._sharing_of(call)
        with self._lock:
            store = call.store
            notices = store.notices
            first = self._sent.get(store, 0)
            # While records are missing there are no notices: those of before are not said again.
            self._sent[store] = max(first, len(notices))
            moved, self._moved = self._moved, []
            from kbmcp.tools.hints import in_tool_words

            of_engine = call.prolog.taken_notices() if call.prolog else []
            own = [
                *call.notes,
                *(
                    in_tool_words(one, is_dotted=call.is_dotted, has_core=call.has_core)
                    for one in (*sharing, *of_engine)
                ),
            ]
            return " ".join(
                [*moved, call.notice, *store.warnings, *notices[first:], *dict.fromkeys(filter(None, own))]
            ).strip()

    def take_advice(self) -> str:
        """Return the advice for the first answer of the connection, "" for all others, and where it has no tool."""
        with self._lock:
            is_first, self.has_advised = not self.has_advised, True
        if not is_first or not self._has_core:
            return ""
        from kbmcp.tools.hints import in_words

        said = _READING_ADVICE if self._is_read_only else _ADVICE
        return in_words(said, is_dotted=self._is_dotted)

    def _sharing_of(self, call: Call) -> list[str]:
        """Return what is not shared or contested, for the first answer of the connection."""
        if self._has_said_sharing:
            return []
        from kbcore.share.state import find_state

        with suppress(KBError):  # what is wrong with the store or the files, the answer itself says
            state = call.store.read(partial(find_state, call.workspace, call.branch), publishes=False)
            self._has_said_sharing = True
            return state.sentences(with_actors=False) if state else []
        return []

    def first_use(self, ensured: Ensured) -> str:
        """Return what is to be said of a branch whose store was looked for; of one that is doubted only once."""
        if ensured.is_doubted:
            with self._lock:
                is_said = ensured.notice in self._reported_doubts
                self._reported_doubts.add(ensured.notice)
            return "" if is_said else ensured.notice
        if ensured.is_new and ensured.copied_from and not ensured.notice:
            return f"This is the first use of {ensured.branch}: its store is a copy of that of {ensured.copied_from}."
        return ensured.notice
