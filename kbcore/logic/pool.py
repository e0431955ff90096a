"""The workspaces of one process: by the settings in force, the clauses of a branch or those of the process."""

from __future__ import annotations

import threading

from kbcore.logic.branch_clauses import BranchClauses, ClauseCache
from kbcore.logic.clauses import ClauseStore
from kbcore.logic.unrecorded_clauses import SessionClauses
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author


class ClausePool:
    """All that outlives one request: what was read of branches, and the clauses of the process."""

    def __init__(self) -> None:
        self._cache = ClauseCache()
        self._lock = threading.Lock()
        self._session: SessionClauses | None = None

    @property
    def session_seq(self) -> int:
        """Return how often the clauses of the process were changed."""
        return self._session.read().seq if self._session else 0

    def store(self, workspace: Workspace, branch: str, author: Author, *, follows_head: bool) -> ClauseStore:
        """Return the clauses of a workspace, for one request; the arguments are those of ``BranchClauses``."""
        settings = workspace.config.logic
        if settings.workspace == "branch":
            return BranchClauses(workspace, branch, author, follows_head=follows_head, cache=self._cache)
        with self._lock:
            if self._session is None:
                self._session = SessionClauses(workspace.machine.clock, settings.clauses)
            self._session.most = settings.clauses
            return self._session
