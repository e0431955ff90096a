"""Which entities a text finds, best first, of those that pass the other filters, and what is said of that.

An entity is found when it holds every word that is known at all, or a form of it. Only where none of those that pass
does, the best of those are found that hold some of them, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.phrases import counted, one_of
from kbcore.query import sql
from kbcore.query.known import Rows
from kbcore.query.request import Query
from kbcore.query.text import words
from kbcore.query.text.reading import Index
from kbcore.query.text.scoring import (
    LOOSE_SHARE,
    PARTIAL_SHARE,
    Alternative,
    Match,
    Ranking,
    Search,
    Word,
    all_of,
    any_of,
    best_of,
    worth,
)
from kbcore.suggest import is_it
from kbcore.visible import in_quotes

_MARKS: Final = re.compile("[«»]")
_FEW: Final = 5


class Snippet(msgspec.Struct, frozen=True):
    """A piece of an entity's text around what was found; ``spans`` are begin and end of each hit in it.

    ``field`` is the field it stands in, ``body`` for the document. ``is_cut`` tells for the beginning and the end
    whether the text goes on there.
    """

    field: str
    text: str
    spans: tuple[tuple[int, int], ...]
    is_cut: tuple[bool, bool]

    def segments(self) -> Iterator[tuple[str, bool]]:
        """Yield the text piece by piece, each with whether it is a hit; where it was cut, an ellipsis says so."""
        at = 0
        yield ("… " if self.is_cut[0] else ""), False
        for begin, end in self.spans:
            yield self.text[at:begin], False
            yield self.text[begin:end], True
            at = end
        yield self.text[at:] + (" …" if self.is_cut[1] else ""), False

    def marked(self) -> str:
        """Return the text with every hit between ``«`` and ``»``, which stand for nothing else in it."""
        return "".join(f"«{text}»" if is_hit else _MARKS.sub('"', text) for text, is_hit in self.segments())


class Hits(msgspec.Struct, frozen=True):
    """A part of what was found: ids, best first, each with its score; one more than the limit where there are more.

    ``is_whole`` tells whether they hold all words that are known; ``total`` counts all that were found.
    A score is a share of the best that the words can have, from 0 to 1 (``kbcore.query.text.scoring``).
    """

    scores: dict[str, float]
    total: int
    is_whole: bool = True


class Found(msgspec.Struct, frozen=True):
    """What there is to say of a page that a text found: how the text was understood, and how well each entity fits.

    ``is_narrowed`` tells that other filters left out some entities.
    """

    search: Search
    is_whole: bool
    is_narrowed: bool
    scores: Mapping[str, float]
    snippets: Mapping[str, Snippet]

    @property
    def is_partial(self) -> bool:
        """Tell whether what was found lacks some of the words that were asked for."""
        return not self.is_whole or bool(self.search.unknown)

    def shown(self, id_: str) -> dict[str, Any]:
        """Return what is added to an entity in JSON."""
        snippet = self.snippets.get(id_)
        found = {"field": snippet.field, "text": snippet.marked()} if snippet else None
        return {"score": round(self.scores[id_], 4)} | ({"snippet": found} if found else {})

    def document(self, total: int) -> dict[str, Any]:
        """Return what is said of the search in JSON."""
        told: dict[str, Any] = {"words": [word.text for word in self.search.asked]}
        corrected = {word.text: list(word.corrected) for word in self.search.words if word.corrected}
        told |= {"corrected": corrected} if corrected else {}
        also = {word.text: list(word.also) for word in self.search.words if word.also}
        told |= {"also": also} if also else {}
        told |= {"unknown": list(self.search.unknown)} if self.search.unknown else {}
        told |= {"is_partial": True} if self.is_partial and total else {}
        told |= {"bodies_missing": self.search.lacking} if self.search.lacking else {}
        notes = " ".join(self.sentences(total))
        return told | ({"note": notes} if notes else {})

    def sentences(self, total: int) -> Iterator[str]:
        """Yield what a person should know of the answer."""
        for word in self.search.words:
            if word.corrected:
                yield f"No entity holds {in_quotes(word.text)}; looked for {_listed(word.corrected)} instead."
        unknown = self.search.unknown
        also = tuple(term for word in self.search.words for term in word.also)
        if not total:
            yield self._nothing()
        elif unknown:
            yield f"No entity holds {_listed(unknown)}; this is what the other words find."
        if near := is_it(tuple(dict.fromkeys(id_ for word in self.search.words for id_ in word.near))):
            yield near
        if total and also:
            yield f"No entity holds all of the words as they are; looked for {_listed(also)} as well."
        if total and not self.is_whole:
            yield "No entity holds all of the words; these are the best partial matches."
        if self.search.lacking:
            count = self.search.lacking
            whose, are = ("its", "document {} is") if count == 1 else ("their", "documents {} are")
            said = are.format(f"of {counted(count, 'entity')}")
            yield f"The {said} not at hand: only {whose} fields were searched."

    def _nothing(self) -> str:
        if not self.search.entities:
            return "Nothing relevant: there is no entity yet."
        if not self.search.known:
            return f"Nothing relevant: no entity holds {_listed(self.search.unknown)}."
        held = [f"{in_quotes(word.text)} is in {word.held_by or 'none'}" for word in self.search.asked[:_FEW]]
        held += ["…"] if len(self.search.asked) > _FEW else []
        what = "nothing that passes the other filters" if self.is_narrowed else "no entity"
        return f"Nothing relevant: {what} holds enough of the words. Of all entities, {', '.join(held)}."


def find(rows: Rows, query: Query, index: Index, asked: Search, after: str = "") -> Hits:
    """Return the first entities that a checked query's text and its other filters find, from after one on."""
    exact = index.numbers_of([words.normal(words.read(asked.text))], len(asked.text))
    exact += index.numbers_of(asked.names) if asked.names else []
    best = best_of(asked.known, asked.entities)
    for matches, least_share in _tries(index, asked):
        found, total = _found(rows, query, index, Ranking(tuple(matches), tuple(exact), least_share, best), after)
        if total:
            return Hits(dict(found), total, is_whole=not least_share)
    return Hits({}, 0)


def _tries(index: Index, asked: Search) -> Iterator[tuple[list[Match], float]]:
    """Yield what to look for, one after the other until something is found, each with the least share of the best."""
    known = asked.known
    yield _whole(index, asked, known), 0
    heavy = tuple(word for word in known if not word.is_light)
    if heavy and heavy != known:
        yield _whole(index, asked, heavy), 0
    if len(known) > 1:
        yield [Match(any_of(one for word in asked.telling for one in word.loose))], PARTIAL_SHARE


def _whole(index: Index, asked: Search, words_: Sequence[Word]) -> list[Match]:
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
    behind, last = "", ""
    if after:
        taken = ", ".join(f"{term.expression} as k{at}" for at, term in enumerate(order))
        last = f", (select {taken} from kept n where n.id = {bind(after)}) last"  # noqa: S608 - fixed names
        behind = f" where {sql.is_behind(order)}"
    return (
        f"{narrow.ctes[:-1] + ', ' if narrow.ctes else 'with '}"  # noqa: S608 - fixed names
        f"passing as materialized (select s.id, s.score, s.place{keys} from {source} s join {narrow.node} n "
        f"on n.id = s.id where {passing}), "
        f"kept as materialized (from passing where score >= {bind(least_share)}::double "
        "* (select max(score) from passing)) "
        f"select n.id, n.score, (select count(*) from kept) from kept n{last}{behind} "
        f"order by {listed} limit {bind(query.limit + 1)}"
    ), params


def _listed(names: tuple[str, ...]) -> str:
    few = [in_quotes(name) for name in names[:_FEW]]
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    return one_of([*few, *more])
