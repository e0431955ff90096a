"""The source of one request of a workspace: the clauses and the graph of a branch, and the settings in force."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec

from kbcore.logic.clauses import ClauseStore
from kbcore.store.workspace import Workspace
from kbcore.view.view import View

T = TypeVar("T")


class BranchSource(msgspec.Struct, frozen=True):
    """A branch as one request sees it.

    ``clauses`` are those of the branch, or of the process; ``read_view`` returns what a function makes of a view of the
    branch, with or without what the files say; ``at`` is the seq that is asked about, None for now.
    """

    workspace: Workspace
    branch: str
    clauses: ClauseStore
    read_view: Callable[[Callable[[View], Any]], Any]
    at: int | None = None

    @property
    def key(self) -> str:
        """Name the state that an engine follows: a branch, or one seq of it."""
        directory = self.workspace.folders.directory_of(self.branch)
        return f"{directory}" if self.at is None else f"{directory}@{self.at}"

    @property
    def edge_types(self) -> Sequence[str]:
        """Return the names of the types of edges."""
        return [*self.workspace.schema.edges]

    @property
    def time_limit_s(self) -> float:
        """Return the longest that a step of a query may take, in seconds."""
        return self.workspace.config.logic.time_s

    @property
    def time_limit_by(self) -> str:
        """Return the setting that this time comes from, as a message names it."""
        return self.workspace.config.logic.time_by

    def read(self, use: Callable[[View], T]) -> T:
        """Return what a function makes of a view of the branch."""
        found: T = self.read_view(use)
        return found
