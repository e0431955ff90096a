"""The result of a text search, as data, and its sentences. The search is not imported: most queries have no text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore.query.keys import SNIPPET
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it
from kbcore.text.wording import one_of, pluralize

if TYPE_CHECKING:
    from kbcore.view.text_query import TextSearch

_MARKS: Final = re.compile("[«»]")
_FEW: Final = 5


class Snippet(msgspec.Struct, frozen=True):
    """A piece of an entity's text around what was found; ``spans`` are begin and end of each hit in it.

    ``field`` is the field it is in, ``body`` for the document. ``is_cut`` tells for the beginning and the end
    whether the text continues there.
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
        """Return the text with every hit between ``«`` and ``»``, which mean nothing else in it."""
        return "".join(f"«{text}»" if is_hit else _MARKS.sub('"', text) for text, is_hit in self.segments())


class Hits(msgspec.Struct, frozen=True):
    """A part of what was found: ids, best first, each with its score; one more than the limit where there are more.

    ``is_whole`` tells whether they hold all words that are known; ``total`` counts all that were found.
    A score is a share of the best that the words can have, from 0 to 1 (``kbcore.view.text_query``). Where meaning was
    searched as well it is a share of the best that two ranks can count, and ``ranks`` has those of each entity.
    """

    scores: dict[str, float]
    total: int
    is_whole: bool = True
    ranks: Mapping[str, Mapping[str, int]] = {}


class TextMatch(msgspec.Struct, frozen=True):
    """The facts of a page that a text found: how the text was understood, and how well each entity fits.

    ``is_narrowed`` tells that other filters left out some entities. ``ranks`` has the places of an entity in the orders
    that became one, by ``words`` and by ``meaning``; nothing where the words alone were searched.
    """

    search: TextSearch
    is_whole: bool
    is_narrowed: bool
    scores: Mapping[str, float]
    snippets: Mapping[str, Snippet]
    ranks: Mapping[str, Mapping[str, int]] = {}
    hint: str = ""
    """The reason why meaning was not searched although it should be, and what to do."""
    remark: str = ""
    """A sentence on the time that it took to make the meaning ready, "" where it was."""

    @property
    def is_partial(self) -> bool:
        """Return whether what was found lacks some of the words that were asked for."""
        return not self.is_whole or bool(self.search.unknown)

    def shown(self, id_: str, fields: Collection[str] = ()) -> dict[str, Any]:
        """Return what is added to an entity in JSON; where fields are asked for, the snippet only if it is one."""
        snippet = self.snippets.get(id_) if SNIPPET in fields or not fields else None
        found = {"field": snippet.field, "text": snippet.marked()} if snippet else None
        ranks = {"ranks": dict(self.ranks[id_])} if id_ in self.ranks else {}
        return {"score": round(self.scores[id_], 4)} | ranks | ({"snippet": found} if found else {})

    def document(self, total: int) -> dict[str, Any]:
        """Return what is said of the search in JSON."""
        is_question = self.search.is_question and total > 0
        members: dict[str, Any] = {} if is_question else {"words": [word.shown for word in self.search.asked]}
        corrected = {word.shown: list(word.corrected) for word in self.search.words if word.corrected}
        members |= {"corrected": corrected} if corrected else {}
        also = {word.shown: list(word.also) for word in self.search.words if word.also}
        members |= {"also": also} if also else {}
        members |= {"unknown": list(self.search.unknown)} if self.search.unknown else {}
        members |= {"is_partial": True} if self.is_partial and total else {}
        members |= {"bodies_missing": self.search.lacking} if self.search.lacking else {}
        # What it would say of a question, the other members say in fewer words.
        notes = self.remark if is_question else " ".join(self.sentences(total))
        return members | ({"note": notes} if notes else {}) | ({"hint": self.hint} if self.hint else {})

    def sentences(self, total: int) -> Iterator[str]:
        """Yield what a person should know of the answer."""
        for word in self.search.words:
            if word.corrected:
                yield f"No entity contains {in_quotes(word.shown)}; looked for {_listed(word.corrected)} instead."
        unknown = self.search.unknown
        also = tuple(term for word in self.search.words for term in word.also)
        if not total:
            yield self._nothing()
        elif unknown:
            yield f"No entity contains {_listed(unknown)}; this is what the other words find."
        if near := is_it(tuple(dict.fromkeys(id_ for word in self.search.words for id_ in word.near))):
            yield near
        if total and also:
            yield f"No entity contains all of the words as they are; looked for {_listed(also)} as well."
        if total and not self.is_whole:
            yield "No entity contains all of the words; these are the best partial matches."
        if self.search.lacking:
            count = self.search.lacking
            whose, are = ("its", "document {} is") if count == 1 else ("their", "documents {} are")
            said = are.format(f"of {pluralize(count, 'entity')}")
            yield f"The {said} not available: only {whose} fields were searched."
        yield from filter(None, (self.remark, self.hint))

    def _nothing(self) -> str:
        if not self.search.entities:
            return "Nothing relevant: there is no entity yet."
        if not self.search.known:
            return f"Nothing relevant: no entity contains {_listed(self.search.unknown)}."
        held = [f"{in_quotes(word.shown)} is in {word.held_by or 'none'}" for word in self.search.asked[:_FEW]]
        held += ["…"] if len(self.search.asked) > _FEW else []
        what = "nothing that passes the other filters" if self.is_narrowed else "no entity"
        return f"Nothing relevant: {what} contains enough of the words. Of all entities, {', '.join(held)}."


def _listed(names: tuple[str, ...]) -> str:
    few = [in_quotes(name) for name in names[:_FEW]]
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    return one_of([*few, *more])
