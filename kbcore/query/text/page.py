"""One page of what a text finds: from the statement that ranks to entities with their scores and snippets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from kbcore.errors import ViewDamaged
from kbcore.model import Node
from kbcore.query import asof
from kbcore.query.known import Rows
from kbcore.query.request import Query
from kbcore.query.sql import narrow
from kbcore.query.text import snippets
from kbcore.query.text.found import Found, Hits, find
from kbcore.query.text.reading import Index, understand, widened
from kbcore.view.tables import NODE, node_of
from kbcore.visible import in_quotes

Nodes = Callable[[Sequence[str]], list[Node]]
"""Returns the entities with these ids at the head; a look-up by ids alone then needs no statement."""


class Texts(Protocol):
    """Where text is searched: an index, made ready for a seq, and the documents that are at hand."""

    def index(self, at: int | None) -> Index:
        """Return an index of the entities as of a seq, None for the head."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        """Return the text of the documents that state these entities as of a seq, by id, as far as it is at hand."""


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
        wider = widened(index, asked)
        if wider is not asked and (again := find(rows, query, index, wider, last)).is_whole and again.total:
            asked, hits = wider, again
    ids = list(hits.scores)[: query.limit]
    entities = _entities(ids, query.at, rows, nodes)
    around = snippets.snippets(asked, entities, texts.bodies(entities, query.at))
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
    if missing := [id_ for id_ in ids if id_ not in by_id]:
        raise ViewDamaged(f"the text index holds {in_quotes(missing[0])}, which the view does not")
    return [by_id[id_] for id_ in ids]
