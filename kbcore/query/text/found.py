"""Which entities a text finds, best first, of those that pass the other filters: one statement, and words about it.

An entity is found when it holds every word that is known at all. Only where none of those that pass does, the ones are
found that hold most of what was asked for, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.phrases import counted, one_of
from kbcore.query import sql
from kbcore.query.known import Rows
from kbcore.query.request import Query
from kbcore.query.text import words
from kbcore.query.text.scoring import EXACT_ID, SCALE, Search, scored
from kbcore.query.text.tables import Index
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

    def shown(self, id_: str) -> dict[str, Any]:
        """Return what is added to an entity in JSON."""
        snippet = self.snippets.get(id_)
        found = {"field": snippet.field, "text": snippet.marked()} if snippet else None
        return {"score": self.scores[id_]} | ({"snippet": found} if found else {})

    def document(self, total: int) -> dict[str, Any]:
        """Return what is said of the search in JSON."""
        told: dict[str, Any] = {"words": [word.text for word in self.search.words]}
        corrected = {word.text: list(word.corrected) for word in self.search.words if word.corrected}
        told |= {"corrected": corrected} if corrected else {}
        also = {word.text: list(word.also) for word in self.search.words if word.also}
        told |= {"also": also} if also else {}
        told |= {"unknown": list(self.search.unknown)} if self.search.unknown else {}
        told |= {} if self.is_whole else {"is_partial": True}
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
            yield "No entity holds all of the words; this is what holds most of them."
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
        held = [f"{in_quotes(word.text)} is in {word.held_by or 'none'}" for word in self.search.words[:_FEW]]
        held += ["…"] if len(self.search.words) > _FEW else []
        what = "nothing that passes the other filters" if self.is_narrowed else "no entity"
        return f"Nothing relevant: {what} holds enough of the words. Of all entities, {', '.join(held)}."


def find(rows: Rows, query: Query, index: Index, asked: Search, after: str = "") -> Hits:
    """Return the first entities that a checked query's text and its other filters find, from behind one on."""
    for is_whole in (True, False) if len(asked.known) > 1 else (True,):
        statement, params = compile_text(query, index, asked, after, is_whole=is_whole)
        found = rows(statement, params)
        if found:
            scores = {id_: score % EXACT_ID / SCALE for id_, score, _ in found}
            return Hits(scores, found[0][2], is_whole=is_whole)
    return Hits({}, 0)


def compile_text(
    query: Query, index: Index, asked: Search, after: str = "", *, is_whole: bool
) -> tuple[str, list[Any]]:
    """Return the statement that finds entities: rows of id, score and how many are found.

    With ``is_whole`` they hold all words that are known, else two thirds of what these count.
    """
    narrow = sql.narrow(query)
    is_narrowed = bool(narrow.conditions or narrow.order)
    params = narrow.params if is_narrowed else []  # every parameter must stand in the statement

    def bind(value: Any) -> str:
        params.append(value)
        return f"${len(params)}"

    keys = "".join(f", {term.expression} as k{at}" for at, term in enumerate(narrow.order))
    source = f"{scored(index, asked, params)} s"
    if is_narrowed:
        source += f" join {narrow.node} n on n.id = s.id"
    least = bind(len(asked.known) if is_whole else 2 * sum(word.worth for word in asked.known))
    conditions = [f"s.words = {least}" if is_whole else f"3 * s.held >= {least}", *narrow.conditions]
    is_id = f"length(s.id) = {len(asked.text)} and {words.normal('s.id')} = {words.normal(bind(asked.text))}"
    if asked.names:
        is_id = f"({is_id} or {words.normal('s.id')} in ({', '.join(map(bind, asked.names))}))"
    order = [sql.Term(f"n.k{at}", term.is_descending) for at, term in enumerate(narrow.order)]
    order = order or [sql.Term("n.score", is_descending=True), sql.Term("n.id")]
    listed = ", ".join(f"{term.expression} {'desc' if term.is_descending else 'asc'} nulls last" for term in order)
    behind, last = "", ""
    if after:
        taken = ", ".join(f"{term.expression} as k{at}" for at, term in enumerate(order))
        last = f", (select {taken} from kept n where n.id = {bind(after)}) last"  # noqa: S608 - fixed names
        behind = f" where {sql.is_behind(order)}"
    return (
        f"{narrow.ctes[:-1] + ', ' if narrow.ctes else 'with '}"  # noqa: S608 - fixed names
        f"kept as materialized (select s.id, s.score + case when {is_id} then {EXACT_ID} else 0 end as score{keys} "
        f"from {source} where {' and '.join(conditions)}) "
        f"select n.id, n.score, (select count(*) from kept) from kept n{last}{behind} "
        f"order by {listed} limit {bind(query.limit + 1)}"
    ), params


def _listed(names: tuple[str, ...]) -> str:
    few = [in_quotes(name) for name in names[:_FEW]]
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    return one_of([*few, *more])
