"""Find the entities that hold a text, of those that pass the other filters, and answer one page of them, best first.

An entity is found when it holds every word that is known at all, or a form of it. Those that hold a name of several
parts, such as ``read-only``, as it was typed come before those that hold its parts alone. Only where none of those that
pass does, the best of those are found that hold some of them, and that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from kbcore.errors import ViewDamaged
from kbcore.model.graph import Node
from kbcore.query import sql
from kbcore.query.request import Query
from kbcore.query.text import snippets
from kbcore.query.text.parse_query import Index, understand, widened
from kbcore.query.text.results import Hits, TextMatch
from kbcore.text import terms
from kbcore.text.escaping import in_quotes
from kbcore.view import as_of
from kbcore.view.tables import NODE, Rows, node_of
from kbcore.view.text_query import (
    LOOSE_SHARE,
    PARTIAL_SHARE,
    Alternative,
    Match,
    Ranking,
    TextSearch,
    Word,
    all_of,
    any_of,
    best_of,
    first_of,
    worth,
)

Nodes = Callable[[Sequence[str]], list[Node]]
"""Returns the entities with these ids at the head; a look-up by ids alone then needs no statement."""


class Texts(Protocol):
    """The input of a text search: an index, made ready for a seq, and the available documents."""

    def index(self, at: int | None) -> Index:
        """Return an index of the entities as of a seq, None for the head."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        """Return the text of the documents that state these entities as of a seq, by id, as far as it is available."""


def page_found(
    query: Query, last: str, rows: Rows, texts: Texts, nodes: Nodes | None
) -> tuple[TextMatch, list[Node], int, bool]:
    """Return what was found, the entities of the page after ``last``, how many there are, and if it is the last page.

    Raises: ``InvalidQuery`` for a text without a word, or with too many.
    """
    index = texts.index(query.at)
    asked = understand(rows, index, query.text)
    # Only once: with words a typo away each counts less, and the same text would be hopeless.
    hits = Hits({}, 0) if asked.cannot_match else _find(rows, query, index, asked, last)
    if not (hits.total and hits.is_whole) and len(asked.known) > 1 and not asked.cannot_match:
        wider = widened(index, asked)
        if wider is not asked and (again := _find(rows, query, index, wider, last)).is_whole and again.total:
            asked, hits = wider, again
    ids = list(hits.scores)[: query.limit]
    entities = _entities(ids, query.at, rows, nodes)
    around = snippets.snippets(asked, entities, texts.bodies(entities, query.at))
    scores = {id_: hits.scores[id_] for id_ in ids}
    is_narrowed = bool(sql.narrow(query).conditions)
    found = TextMatch(asked, hits.is_whole, is_narrowed, scores, around)
    return found, entities, hits.total, len(hits.scores) <= query.limit


def _find(rows: Rows, query: Query, index: Index, asked: TextSearch, after: str = "") -> Hits:
    """Return the first entities that a checked query's text and its other filters find, from after one on."""
    exact = index.numbers_of([terms.normal(terms.read(asked.text))], len(asked.text))
    exact += index.numbers_of(asked.names) if asked.names else []
    best = best_of(asked.known, asked.entities)
    for matches, least_share in _tries(index, asked):
        found, total = _found(
            rows, query, index, Ranking(tuple(matches), tuple(exact), first_of(asked.joined), least_share, best), after
        )
        if total:
            return Hits(dict(found), total, is_whole=not least_share)
    return Hits({}, 0)


def _tries(index: Index, asked: TextSearch) -> Iterator[tuple[list[Match], float]]:
    """Yield what to look for, one after the other until something is found, each with the least share of the best."""
    known = asked.known
    yield _whole(index, asked, known), 0
    heavy = tuple(word for word in known if not word.is_light)
    if heavy and heavy != known:
        yield _whole(index, asked, heavy), 0
    if len(known) > 1:
        yield [Match(any_of(one for word in asked.rare_words for one in word.loose))], PARTIAL_SHARE


def _whole(index: Index, asked: TextSearch, words_: Sequence[Word]) -> list[Match]:
    """Return the matches for what holds all of these words, their other forms among them."""
    exact = [_held_exactly(index, word) if word.is_loose else word.held_by for word in words_]
    loose = Match(all_of(words_, is_loose=True))
    if not all(exact) or exact == [word.held_by for word in words_]:
        return [loose]
    # FTS5 takes each form for a word of its own: a rare one must not count more than the word itself.
    rarest = [
        min([count, *(index.held_by(Match(Alternative(form).expression)) for form in word.forms)])
        for word, count in zip(words_, exact, strict=True)
    ]
    own, most = (sum(worth(count, asked.entities) for count in counts) for counts in (exact, rarest))
    share = LOOSE_SHARE * min(1.0, own / most)
    return [Match(all_of(words_, is_loose=False)), msgspec.structs.replace(loose, factor=share)]


def _held_exactly(index: Index, word: Word) -> int:
    return index.held_by(Match(any_of(word.exact))) if word.exact else 0


def _found(rows: Rows, query: Query, index: Index, wanted: Ranking, after: str) -> tuple[list[tuple[str, float]], int]:
    """Return the page of what a text and the other filters find, with scores, and how many there are."""
    narrow = sql.narrow(query)
    if not (narrow.conditions or narrow.order):
        return index.ranked(wanted, query.limit + 1, after)
    scores, _ = index.ranked(msgspec.structs.replace(wanted, least_share=0), None)
    if not scores:
        return [], 0
    statement, params = _narrowed(query, narrow, scores, wanted.least_share, after)
    found = rows(statement, params)
    return [(id_, score) for id_, score, _ in found], found[0][2] if found else 0


def _narrowed(
    query: Query, narrow: sql.Narrowed, scores: Sequence[tuple[str, float]], least_share: float, after: str
) -> tuple[str, list[Any]]:
    """Return the statement that leaves, of what a text finds, what passes the other filters: id, score and how many."""
    params = narrow.params

    def bind(value: Any) -> str:
        params.append(value)
        return f"${len(params)}"

    keys = "".join(f", {term.expression} as k{at}" for at, term in enumerate(narrow.order))
    ids, numbers = zip(*scores, strict=True)
    # By its place what comes first whatever its score does so here too.
    source = (
        f"(select unnest({bind(list(ids))}::varchar[]) as id, unnest({bind(list(numbers))}::double[]) as score, "
        f"generate_subscripts({bind(list(ids))}::varchar[], 1) as place)"
    )
    order = [sql.Term(f"n.k{at}", term.is_descending) for at, term in enumerate(narrow.order)]
    order = order or [sql.Term("n.place")]
    listed = ", ".join(f"{term.expression} {'desc' if term.is_descending else 'asc'} nulls last" for term in order)
    passing = " and ".join(narrow.conditions) or "true"
    later, last = "", ""
    if after:
        taken = ", ".join(f"{term.expression} as k{at}" for at, term in enumerate(order))
        last = f", (select {taken} from kept n where n.id = {bind(after)}) last"  # noqa: S608 - fixed names
        later = f" where {sql.comes_after(order)}"
    return (
        f"{narrow.ctes[:-1] + ', ' if narrow.ctes else 'with '}"  # noqa: S608 - fixed names
        f"passing as materialized (select s.id, s.score, s.place{keys} from {source} s join {narrow.node} n "
        f"on n.id = s.id where {passing}), "
        f"kept as materialized (from passing where score >= {bind(least_share)}::double "
        "* (select max(score) from passing)) "
        f"select n.id, n.score, (select count(*) from kept) from kept n{last}{later} "
        f"order by {listed} limit {bind(query.limit + 1)}"
    ), params


def _entities(ids: Sequence[str], at: int | None, rows: Rows, nodes: Nodes | None) -> list[Node]:
    """Return the entities with these ids as of a seq, in this order."""
    if not ids:
        return []
    if nodes and at is None:
        found = nodes(ids)
    else:
        columns = ", ".join(f"n.{name}" for name in NODE)
        statement = f"select {columns} from {as_of.nodes(at)} n where n.id in (select unnest($1::varchar[]))"  # noqa: S608
        found = [node_of(row) for row in rows(statement, [list(ids)])]
    by_id = {node.id: node for node in found}
    if missing := [id_ for id_ in ids if id_ not in by_id]:
        raise ViewDamaged(f"the text index holds {in_quotes(missing[0])}, which the view does not")
    return [by_id[id_] for id_ in ids]
