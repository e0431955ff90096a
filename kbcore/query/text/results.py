"""The result of a text search, as data, and its sentences. The search is not imported: most queries have no text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

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
    A score is a share of the best that the words can have, from 0 to 1 (``kbcore.view.text_query``).
    """

    scores: dict[str, float]
    total: int
    is_whole: bool = True


class TextMatch(msgspec.Struct, frozen=True):
    """The facts of a page that a text found: how the text was understood, and how well each entity fits.

    ``is_narrowed`` tells that other filters left out some entities.
    """

    search: TextSearch
    is_whole: bool
    is_narrowed: bool
    scores: Mapping[str, float]
    snippets: Mapping[str, Snippet]

    @property
    def is_partial(self) -> bool:
        """Return whether what was found lacks some of the words that were asked for."""
        return not self.is_whole or bool(self.search.unknown)

    def shown(self, id_: str) -> dict[str, Any]:
        """Return what is added to an entity in JSON."""
        snippet = self.snippets.get(id_)
        found = {"field": snippet.field, "text": snippet.marked()} if snippet else None
        return {"score": round(self.scores[id_], 4)} | ({"snippet": found} if found else {})

    def document(self, total: int) -> dict[str, Any]:
        """Return what is said of the search in JSON."""
        members: dict[str, Any] = {"words": [word.shown for word in self.search.asked]}
        corrected = {word.shown: list(word.corrected) for word in self.search.words if word.corrected}
        members |= {"corrected": corrected} if corrected else {}
        also = {word.shown: list(word.also) for word in self.search.words if word.also}
        members |= {"also": also} if also else {}
        members |= {"unknown": list(self.search.unknown)} if self.search.unknown else {}
        members |= {"is_partial": True} if self.is_partial and total else {}
        members |= {"bodies_missing": self.search.lacking} if self.search.lacking else {}
        notes = " ".join(self.sentences(total))
        return members | ({"note": notes} if notes else {})

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
