"""Look-ups for rules where few elements changed: by key in the state before or after, without a scan.

A rule answers from these the same as from the whole branch, for what the change may have broken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple, Protocol

import msgspec

from kbcore.model.graph import Link, Node, SyncedFile
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, ElementChange
from kbcore.model.statuses import RETIRED, is_status
from kbcore.rules.edge_confirmation import SuspectEdge
from kbcore.rules.elsewhere import KnownReferences
from kbcore.view.tables import Likeness, files_of, needs_no_end

COLUMNS: Final = ("id", "type", "kind", "from_id", "to_id", "files", "is_resolved", "version")


class Edge(NamedTuple):
    """Fields of a link for rules."""

    id: str
    type: str
    kind: str
    from_id: str
    to_id: str
    files: list[str]
    is_resolved: bool
    version: int


def may_lack_an_end(edge: Edge) -> bool:
    """Return whether nothing is wrong with an edge that is unresolved, as ``tables.MAY_LACK_AN_END`` says."""
    return not edge.is_resolved and needs_no_end(edge.type, edge.to_id, edge.files)


def edge_of(link: Link) -> Edge:
    """Return what rules look at of a link."""
    files = sorted(files_of(link))
    return Edge(link.id, link.type, link.kind, link.from_id, link.to_id, files, link.is_resolved, link.version)


class Side(Protocol):
    """The state before or after a change, asked by key."""

    def nodes(self, ids: Collection[str]) -> dict[str, Node]:
        """Return the nodes with these ids, as far as they exist."""

    def links(self, ids: Collection[str]) -> dict[str, Edge]:
        """Return the links with these ids, as far as they exist."""

    def out_of(self, ids: Collection[str], type_: str = "") -> list[Edge]:
        """Return the links that lead from these ids, resolved or not; of one type, or of any."""

    def into(self, ids: Collection[str], type_: str = "") -> list[Edge]:
        """Return the links that lead to these ids, resolved or not; of one type, or of any."""

    def sources(self, paths: Collection[str]) -> list[SyncedFile]:
        """Return the source files with these paths, as far as they were read."""

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths at which there is no file of the repository, as ``rule.Tree`` does."""

    def alike(self, likeness: Likeness, keys: Collection[str]) -> list[Node]:
        """Return the nodes that have one of these texts in common."""


class Look(msgspec.Struct, frozen=True):
    """A side, what changed between the two sides, and the schema of the branch.

    ``suspect`` returns the edges that the change made suspect: that depends on the history of both sides.
    ``has_or_had_edges`` returns whether the state after the change, or one before it, has an edge that is no link in
    the text of a document.
    """

    side: Side
    changes: Changes
    schema: Schema
    suspect: Callable[[], list[SuspectEdge]]
    has_or_had_edges: Callable[[], bool]
    elsewhere: KnownReferences | None = None
    """The known references of other repositories, None where the repository belongs to no fleet."""

    def came_or_went(self) -> set[str]:
        """Return the ids of the nodes that exist on one side alone."""
        return {one.key for one in self.changes.nodes if one.before is None or one.after is None}

    def nodes_with(self, *fields: str) -> set[str]:
        """Return the ids of the nodes that came, went, or have another value in one of these fields."""
        return {one.key for one in self.changes.nodes if is_changed_in(one, fields)}

    def links_of(self, *types: str) -> list[Link]:
        """Return the changed links of these types, of any where none is named, as they are on one side."""
        ends = (one.after or one.before for one in self.changes.links)
        return [link for link in ends if link is not None and (not types or link.type in types)]


def is_changed_in(change: ElementChange[Node], fields: Iterable[str]) -> bool:
    """Return whether a node came, went, or has another value in one of these fields."""
    before, after = change.before, change.after
    if before is None or after is None:
        return True
    return any(before.fields.get(name) != after.fields.get(name) for name in fields) or before.path != after.path


def text_in(node: Node, field: str) -> str:
    """Return the value of a field of text, "" where there is none."""
    value = node.fields.get(field)
    return value if isinstance(value, str) else ""


def is_retired(node: Node) -> bool:
    """Return whether a node asks for nothing any more."""
    return is_status(text_in(node, "status"), RETIRED)
