"""The request for a page and its content, and how a request names parts of a state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kbcore.model.schema import Schema
from kbcore.store.history.when import When, point_in
from kbcore.view.branch_definitions import schema_at
from kbweb.links import ServerLinks
from kbweb.server.reading import Branch, BranchState, Reader
from kbweb.server.request_values import RequestValues

PAGE_ROWS: Final = 100
MAX_EXPORT_ROWS: Final = 1_000_000
"""Rows of an export, which has all that the filters of a page leave; a sheet of a workbook has a few more."""
MAX_OFFSET: Final = 100_000_000


class PageRequest(msgspec.Struct, frozen=True):
    """One request for a page. ``key`` is what its address names, ``limit`` how many rows are shown."""

    parameters: RequestValues
    links: ServerLinks
    reader: Reader
    key: str = ""
    limit: int = PAGE_ROWS

    @property
    def offset(self) -> int:
        """Return how many rows come before the page."""
        return self.parameters.number("offset", 0, MAX_OFFSET)


class ExportTable(msgspec.Struct, frozen=True):
    """The content of a page, as rows for an export. A row has a value for each name."""

    names: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


class HtmlPage(msgspec.Struct, frozen=True):
    """The content of a page: a template with its values, a title, and the same as a table where there is one."""

    template: str
    title: str
    values: dict[str, Any]
    table: ExportTable | None = None
    picture: str = ""
    """An SVG that can be exported."""


PageOf = Callable[[PageRequest, BranchState], HtmlPage]


def point_of(branch: Branch, text: str) -> When | None:
    """Return the point that a text of the user means, None for "". Raises: as ``point_in``."""
    return point_in(branch.workspace, branch.name, text, is_local=True) if text else None


def schema_of(state: BranchState) -> Schema:
    """Return the types of entities and edges of a state."""
    declared = state.branch.workspace.schema
    return schema_at(state.recorded.rows, declared, state.at) if state.at is not None else state.view.schema(declared)


def root_of(state: BranchState) -> str:
    """Return the folder of the worktree, "" where there is none."""
    repo = state.branch.workspace.repo
    return str(repo.worktree) if repo.has_worktree else ""
