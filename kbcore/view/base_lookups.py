"""Look-ups in the base of a view: its elements as values, by key, without those that came after it.

Filters and a cache spare most statements: a base never changes. Whoever asks leaves out what the tail knows.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import Any, Final

from kbcore.model.graph import Link, Node, SyncedFile
from kbcore.view.database import among
from kbcore.view.key_filter import CHANGESETS, LINK_ENDS, LINK_IDS, NODE_IDS, KeyFilter
from kbcore.view.tables import LINK, NODE, SOURCE, AskBase, Columns, link_of, node_of, source_of
from kbcore.view.tail import Tail

_MOST: Final = 2000
"""Nodes that are remembered; one takes a kibibyte or two."""


class BaseLookups:
    """The elements of one base. ``ask`` answers SQL over the base alone."""

    def __init__(self, ask: AskBase) -> None:
        self._ask = ask
        self.filter = KeyFilter(ask)
        self._read = RowCache()
        self._unread: dict[str, SyncedFile] | None = None

    def nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return the nodes with these ids, as far as they exist."""
        possible = self.filter.possible(NODE_IDS, ids)
        return self._read.get(possible, lambda keys: map(node_of, self._rows("node", NODE, "id", keys)))

    def named(self, names: Sequence[str]) -> list[Node]:
        """Return the nodes that are called by one of these names."""
        return [*map(node_of, self._rows("node", NODE, "name", names))]

    def sources(self, paths: Sequence[str]) -> list[SyncedFile]:
        """Return the source files with these paths, as far as they were read."""
        return [*map(source_of, self._rows("source", SOURCE, "path", paths))]

    def unread(self) -> Mapping[str, SyncedFile]:
        """Return the files that could not be read whole, by path; one statement for all of them."""
        if self._unread is None:
            rows = self._ask(f"select {', '.join(SOURCE)} from base.source where not is_ok")
            self._unread = {one.path: one for one in map(source_of, rows)}
        return self._unread

    def links(self, ids: Sequence[str], ends: Sequence[str], known: Container[str]) -> list[Link]:
        """Return the links with one of these ids, or with one of these ends, but for those whose ids are ``known``.

        With ends the base is first asked which there are, because most that a write names are new.
        """
        ids, ends = self.filter.possible(LINK_IDS, ids), self.filter.possible(LINK_ENDS, ends)
        if ends:
            parts, params = [], list[str]()
            for column, keys in (("id", ids), ("from_id", ends), ("to_id", ends)):
                if keys:
                    condition, values = among(keys)
                    parts.append(f"select id from base.link where {column} {condition}")
                    params += values
            there = {row[0] for row in self._ask(" union all ".join(parts), *params)}
            ids = sorted(id_ for id_ in there if id_ not in known)
        return [*map(link_of, self._rows("link", LINK, "id", ids))]

    def stated_by(self, table: str, paths: Sequence[str]) -> set[str]:
        """Return the ids of the nodes or links of which one of these files states something."""
        condition, params = among(paths)
        return {row[0] for row in self._ask(f"select id from base.{table}_src where src {condition}", *params)}

    def changeset(self, changeset_id: str) -> tuple[int, str] | None:
        """Return the seq and the digest of a changeset that took effect; None for one that is not known."""
        if not self.filter.possible(CHANGESETS, [changeset_id]):
            return None
        rows = self._ask("select seq, digest from base.record where changeset_id = ?", changeset_id)
        return rows[0] if rows else None

    def rebase(self, tail: Tail) -> None:
        """Go on with a base that holds the tail as well."""
        self.filter.rebase(tail)
        self._read.clear()
        self._unread = None

    def _rows(self, table: str, columns: Columns, key: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        if not values:
            return []
        condition, params = among(values)
        return self._ask(f"select {', '.join(columns)} from base.{table} where {key} {condition}", *params)


class RowCache:
    """The nodes of one base that were read last, and ids that it does not have."""

    def __init__(self) -> None:
        self._known: dict[str, Node | None] = {}

    def get(self, keys: Sequence[str], read: Callable[[Sequence[str]], Iterable[Node]]) -> list[Node]:
        """Return the nodes with these ids, as far as they exist; ``read`` is asked for those not known yet."""
        missing = [key for key in keys if key not in self._known]
        if len(keys) > _MOST:
            return list(read(keys))
        if missing:
            if len(self._known) + len(missing) > _MOST:
                self._known = {key: self._known[key] for key in keys if key in self._known}
            self._known |= dict.fromkeys(missing)
            self._known |= {node.id: node for node in read(missing)}
        return [node for key in keys if (node := self._known[key]) is not None]

    def clear(self) -> None:
        """Forget everything: there is another base."""
        self._known.clear()
