"""Find the entities that hold a text, of those that pass the other filters, and answer one page of them, best first.

An entity is found when it holds every word that is known at all, or a form of it. Those that hold a name of several
parts, such as ``read-only``, as it was typed come before those that hold its parts alone. Only where none of those that
pass does, and for a question, the best of those are found that hold some of them.

Then what means about the same is found as well, where the meaning of texts is searched: the two orders are made one by
reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

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
from kbcore.view.tables import Rows, node_of
from kbcore.view.text_query import (
    LOOSE_SHARE,
    PARTIAL_SHARE,
    SYMBOL_SHARE,
    Alternative,
    MatchExpression,
    Ranking,
    TextSearch,
    Word,
    all_of,
    any_of,
    best_of,
    each_of,
    first_of,
    worth,
)

_RANK_OFFSET: Final = 10
"""The constant k of the fusion: a rank counts 1 / (k + rank). With the usual 60 what both orders have somewhere among
the first hundred came before what one of them has first."""
_MEANING_SHARE: Final = 0.7
"""A rank by meaning counts so much of one by words."""
_WORDS_ENOUGH: Final = 0.2
"""The score by words below which the entities have few of them, and a rank by words counts the less."""

Nodes = Callable[[Sequence[str]], list[Node]]
"""Returns the entities with these ids at the head; a look-up by ids alone then needs no statement."""


class MeaningSource(Protocol):
    """The meaning of the entities of a branch as of one seq."""

    @property
    def mark(self) -> str:
        """Return what is the same for the same entities with the same texts, by the same model."""

    def nearest(self, text: str, among: Collection[str] | None, *, is_alone: bool) -> list[str]:
        """Return the ids of the entities that mean most nearly the same as a text, best first; none that is far away.

        ``among`` are the ids of those that may be found, None for all. With ``is_alone`` nothing else was found.
        """


class SearchInput(Protocol):
    """The input of a text search: an index, made ready for a seq, and the available documents."""

    def index(self, at: int | None) -> Index:
        """Return an index of the entities as of a seq, None for the head."""

    def meanings(self, at: int | None) -> MeaningSource | None:
        """Return the meaning of the entities as of a seq; None where it is not searched."""

    @property
    def remark(self) -> str:
        """Return what making the meaning ready took; "" for nothing worth a word."""

    @property
    def hint(self) -> str:
        """Return why meaning is not searched although it should be, and what to do; "" for nothing."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> Mapping[str, str]:
        """Return the text of the documents that state these entities as of a seq, by id, as far as it is available."""


def page_found(
    query: Query, last: str, rows: Rows, texts: SearchInput, nodes: Nodes | None
) -> tuple[TextMatch, list[Node], int, bool]:
    """Return what was found, the entities of the page after ``last``, how many there are, and if it is the last page.

    Raises: ``InvalidQuery`` for a text without a word, or with too many.
    """
    index = texts.index(query.at)
    asked = understand(rows, index, query.text)
    # Only once: with words a typo away each counts less, and the same text would be hopeless.
    hits = Hits({}, 0) if asked.cannot_match else _find(rows, query, index, asked, last)
    is_widened = asked.is_question or (hits.total and hits.is_whole) or len(asked.known) < 2  # noqa: PLR2004 - one word
    if not (is_widened or asked.cannot_match):
        wider = widened(index, asked)
        if wider is not asked and (again := _find(rows, query, index, wider, last)).is_whole and again.total:
            asked, hits = wider, again
    is_open = asked.is_question or not (hits.total and hits.is_whole)
    if is_open and not query.sort and (meanings := texts.meanings(query.at)):
        hits = _fused(rows, query, index, asked, meanings, after=last)
        asked = msgspec.structs.replace(asked, basis=f"{asked.basis}.{meanings.mark}")
    ids = list(hits.scores)[: query.limit]
    entities = _entities(query, ids, rows, nodes)
    bodies = texts.bodies(entities, query.at)
    around = snippets.snippets(asked, entities, bodies)
    scores = {id_: hits.scores[id_] for id_ in ids}
    is_narrowed = bool(sql.narrow(query).conditions)
    ranks = {id_: hits.ranks[id_] for id_ in ids if id_ in hits.ranks}
    by_meaning = [node for node in entities if node.id in ranks and node.id not in around]
    around |= {node.id: snippets.beginning(node, bodies.get(node.id, "")) for node in by_meaning}
    found = TextMatch(asked, hits.is_whole, is_narrowed, scores, around, ranks, texts.hint, texts.remark)
    return found, entities, hits.total, len(hits.scores) <= query.limit


def _fused(rows: Rows, query: Query, index: Index, asked: TextSearch, meanings: MeaningSource, *, after: str) -> Hits:
    """Return the same of what words and meaning find, in one order."""
    by_words = Hits({}, 0) if asked.cannot_match else _find(rows, query, index, asked, is_all=True)
    passing = _passing(rows, query)
    # What the filters leave out counts: its words show that the branch knows of the matter.
    everywhere = by_words
    if not by_words.total and passing is not None and not asked.cannot_match:
        everywhere = _find(rows, Query(text=query.text, at=query.at, limit=1), index, asked)
    near = meanings.nearest(asked.text, passing, is_alone=not everywhere.total)
    by_words_share = min(1.0, max(by_words.scores.values(), default=0.0) / _WORDS_ENOUGH)
    best = (by_words_share + _MEANING_SHARE) / (_RANK_OFFSET + 1)
    scores: dict[str, float] = {}
    ranks: dict[str, dict[str, int]] = {}
    for name, share, ids in (("words", by_words_share, by_words.scores), ("meaning", _MEANING_SHARE, near)):
        for rank, id_ in enumerate(ids, 1):
            scores[id_] = scores.get(id_, 0) + share / (_RANK_OFFSET + rank) / best
            ranks.setdefault(id_, {})[name] = rank
    if asked.is_question:
        for id_ in index.symbols_among([*scores]):
            scores[id_] *= SYMBOL_SHARE
    order = sorted(scores, key=lambda id_: (-scores[id_], id_))
    begin = order.index(after) + 1 if after in scores else 0
    page = order[begin : begin + query.limit + 1]
    return Hits({id_: scores[id_] for id_ in page}, len(order), by_words.is_whole, ranks)


def _passing(rows: Rows, query: Query) -> set[str] | None:
    """Return the ids of what passes the other filters, None where there are none."""
    narrow = sql.narrow(query)
    if not narrow.conditions:
        return None
    statement = f"{narrow.ctes}select n.id from {narrow.node} n where {' and '.join(narrow.conditions)}"  # noqa: S608
    return {id_ for (id_,) in rows(statement, narrow.params)}


def _find(rows: Rows, query: Query, index: Index, asked: TextSearch, after: str = "", *, is_all: bool = False) -> Hits:
    """Return the first entities that a checked query's text and its other filters find, from after one on, or all."""
    exact = index.numbers_of([terms.normal(terms.read(asked.text))], len(asked.text))
    exact += index.numbers_of(asked.names) if asked.names else []
    best = best_of(asked.known, asked.entities)
    for wanted in _tries(index, asked):
        ranking = msgspec.structs.replace(wanted, exact=tuple(exact), best=best)
        found, total = _found(rows, query, index, ranking, after=after, limit=None if is_all else query.limit + 1)
        if total:
            is_whole = not wanted.is_summed or _are_held_together(index, asked)
            return Hits(dict(found), total, is_whole)
    return Hits({}, 0)


def _are_held_together(index: Index, asked: TextSearch) -> bool:
    """Return whether any entity holds all words of a question that tell something."""
    heavy = [word for word in asked.known if not word.is_light]
    return asked.is_question and bool(heavy) and index.held_by(MatchExpression(all_of(heavy, is_loose=True))) > 0


def _tries(index: Index, asked: TextSearch) -> Iterator[Ranking]:
    """Yield what to look for, one after the other until something is found."""
    known = asked.known
    first = first_of(asked.joined)
    if not asked.is_question:
        yield Ranking(_whole(index, asked, known), first=first)
        heavy = tuple(word for word in known if not word.is_light)
        if heavy and heavy != known:
            yield Ranking(_whole(index, asked, heavy), first=first)
    if asked.is_question or len(known) > 1:
        rare = asked.rare_words
        counts = [[_held(index, one) for one in word.loose] for word in rare]
        first = "" if asked.is_question else first
        yield Ranking(
            each_of(rare, counts, asked.entities),
            is_summed=True,
            symbol_share=SYMBOL_SHARE if asked.is_question else 1.0,
            first=first,
            least_share=PARTIAL_SHARE,
        )


def _held(index: Index, term: Alternative) -> int:
    return index.held_by(MatchExpression(term.expression))


def _whole(index: Index, asked: TextSearch, words_: Sequence[Word]) -> tuple[MatchExpression, ...]:
    """Return the matches for what holds all of these words, their other forms among them."""
    exact = [_held_exactly(index, word) if word.is_loose else word.held_by for word in words_]
    loose = MatchExpression(all_of(words_, is_loose=True))
    if not all(exact) or exact == [word.held_by for word in words_]:
        return (loose,)
    # FTS5 takes each form for a word of its own: a rare one must not count more than the word itself.
    rarest = [
        min([count, *(index.held_by(MatchExpression(Alternative(form).expression)) for form in word.forms)])
        for word, count in zip(words_, exact, strict=True)
    ]
    own, most = (sum(worth(count, asked.entities) for count in counts) for counts in (exact, rarest))
    share = LOOSE_SHARE * min(1.0, own / most)
    return MatchExpression(all_of(words_, is_loose=False)), msgspec.structs.replace(loose, factor=share)


def _held_exactly(index: Index, word: Word) -> int:
    return index.held_by(MatchExpression(any_of(word.exact))) if word.exact else 0


def _found(
    rows: Rows, query: Query, index: Index, wanted: Ranking, *, after: str, limit: int | None
) -> tuple[list[tuple[str, float]], int]:
    """Return the page of what a text and the other filters find, with scores, and how many there are."""
    narrow = sql.narrow(query)
    if not (narrow.conditions or narrow.order):
        return index.ranked(wanted, limit, after)
    scores, _ = index.ranked(msgspec.structs.replace(wanted, least_share=0), None)
    if not scores:
        return [], 0
    statement, params = _narrowed(narrow, scores, wanted.least_share, after, limit)
    found = rows(statement, params)
    return [(id_, score) for id_, score, _ in found], found[0][2] if found else 0


def _narrowed(
    narrow: sql.Narrowed, scores: Sequence[tuple[str, float]], least_share: float, after: str, limit: int | None
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
        f"order by {listed}" + (f" limit {bind(limit)}" if limit else "")
    ), params


def _entities(query: Query, ids: Sequence[str], rows: Rows, nodes: Nodes | None) -> list[Node]:
    """Return the entities with these ids as of the seq of a query, in this order."""
    if not ids:
        return []
    found = nodes(ids) if nodes and query.at is None else map(node_of, rows(*sql.elements(query, ids)))
    by_id = {node.id: node for node in found}
    if missing := [id_ for id_ in ids if id_ not in by_id]:
        raise ViewDamaged(f"the text index holds {in_quotes(missing[0])}, which the view does not")
    return [by_id[id_] for id_ in ids]
