"""One page of what a text finds: from the statement that ranks to entities with their scores and snippets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from kbcore.model import Node
from kbcore.query import asof
from kbcore.query.known import Rows
from kbcore.query.request import Query
from kbcore.query.sql import narrow
from kbcore.query.text import snippets, tables
from kbcore.query.text.found import Found, Hits, find
from kbcore.query.text.reading import understand, widened
from kbcore.query.text.tables import Index
from kbcore.view.tables import NODE, node_of

Nodes = Callable[[Sequence[str]], list[Node]]
"""Returns the entities with these ids at the head; a look-up by ids alone then needs no statement."""

_PASSING: Final = Index("text_passing_")


class Texts(Protocol):
    """Where text is searched: an index, made ready for a seq, and the documents that are at hand."""

    def index(self, at: int | None) -> Index:
        """Return an index of the entities as of a seq, None for the head."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        """Return the text of the documents that state these entities as of a seq, by id, as far as it is at hand."""


class Fields:
    """The words of the entities themselves, gathered for one answer; no documents."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def index(self, at: int | None) -> Index:
        """Return an index that was filled just now."""
        tables.create(self._rows, _PASSING)
        tables.fill(self._rows, _PASSING, asof.nodes(at))
        return _PASSING

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:  # noqa: ARG002 - as ``Texts`` has it
        """Return nothing."""
        return {}


def page_found(
    query: Query, last: str, rows: Rows, texts: Texts, nodes: Nodes | None
) -> tuple[Found, list[Node], int, bool]:
    """Return what was found, the entities of the page behind ``last``, how many there are, and if it is the last page.

    Raises: ``InvalidQuery`` for a text without a word, or with too many.
    """
    index = texts.index(query.at)
    asked = understand(rows, index, query.text)
    # Only once: with words a typo away each counts less, and the same text would be hopeless.
    hits = Hits({}, 0) if asked.is_hopeless else find(rows, query, index, asked, last)
    if not (hits.total and hits.is_whole) and len(asked.known) > 1 and not asked.is_hopeless:
        wider = widened(rows, index, asked)
        if wider is not asked and (again := find(rows, query, index, wider, last)).is_whole and again.total:
            asked, hits = wider, again
    ids = list(hits.scores)[: query.limit]
    entities = _entities(ids, query.at, rows, nodes)
    around = snippets.snippets(rows, asked, entities, texts.bodies(entities, query.at))
    scores = {id_: hits.scores[id_] for id_ in ids}
    is_narrowed = bool(narrow(query).conditions)
    found = Found(asked, hits.is_whole, is_narrowed, scores, around)
    return found, entities, hits.total, len(hits.scores) <= query.limit


def _entities(ids: Sequence[str], at: int | None, rows: Rows, nodes: Nodes | None) -> list[Node]:
    """Return the entities with these ids as of a seq, in this order."""
    if not ids:
        return []
    if nodes and at is None:
        found = nodes(ids)
    else:
        columns = ", ".join(f"n.{name}" for name in NODE)
        statement = f"select {columns} from {asof.nodes(at)} n where n.id in (select unnest($1::varchar[]))"  # noqa: S608
        found = [node_of(row) for row in rows(statement, [list(ids)])]
    by_id = {node.id: node for node in found}
    return [by_id[id_] for id_ in ids]
