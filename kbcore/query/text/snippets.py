"""The piece of an entity's text that shows why it was found, with the hits in it.

Where a hit may be is found by a quick look; what counts as one is decided where words are split.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise, zip_longest
from typing import Any, Final

from kbcore.model.graph import OBJECT_FIELDS, Node
from kbcore.query.text.results import Snippet
from kbcore.text import terms
from kbcore.text.normalize import NormalizedText, composed, is_added, is_edge, letter_begin, letter_end
from kbcore.text.terms import unhyphenated
from kbcore.view.text_query import Alternative, TextSearch, Word

_BEFORE_CHARS: Final = 60
_CHARS: Final = 180
"""The length of a shown part of a long text, and of its part before the first hit."""
_MAX_LOOKED_AT_CHARS: Final = 200_000
_FIELDS: Final = ("title", "tags", "status", "owner", "priority", "severity", "links", "text_ref", "name")
_JOINTS: Final = frozenset("-_.:@\uff0d\uff3f\uff0e\uff1a\uff20")
_OF_WIDE: Final = frozenset({"Lo", "Lm", "Nl", "So", "Sm", "Sk"})
"""The categories of what is a word of its own in a wide script, or a symbol."""
_SPACE: Final = re.compile(r"\s+")
_WORD_BEGIN: Final = r"(?<![^\W_])"
_WORD_END: Final = r"(?![^\W_])"
_MOST_TRIED: Final = 200
"""The most searches for a word within others, such as names."""


Hit = tuple[tuple[int, int], set[int]]
"""The place of a hit in a text, and which of the words it is a hit of."""


class _Sought:
    """A word's form in folded text."""

    def __init__(self, word: Word) -> None:
        terms = {one.term: one.is_beginning for one in (*word.exact, *word.loose)}
        anywhere = "|".join(map(re.escape, terms))
        as_word = "|".join(re.escape(term) + ("" if begins else _WORD_END) for term, begins in terms.items())
        self._name = _pattern(word.alternatives) if word.is_numbered else None
        self._anywhere = re.compile(anywhere)
        self._as_word = re.compile(f"{_WORD_BEGIN}(?:{as_word})")
        self._at_begin = re.compile(f"{_WORD_BEGIN}(?:{anywhere})")
        self._hyphenated = _hyphenated(terms)

    def place(self, whole: str, folded: NormalizedText) -> int | None:
        """Return where in a text a hit seems to be: a word first, part of a name, then within other words."""
        if self._name:
            match = self._name.search(folded.text)
            return match and folded.place(match.start())
        first = self._anywhere.search(folded.text)
        if first is None:
            match = self._hyphenated.search(folded.text)
            return match and folded.place(match.start())
        if not (match := self._as_word.search(folded.text)):
            for one in islice(self._anywhere.finditer(folded.text), _MOST_TRIED):
                begin, end = folded.place(one.start()), folded.place(one.end() - 1) + 1
                if is_edge(whole, begin) and is_edge(whole, end):
                    return begin
            match = self._at_begin.search(folded.text) or first
        return folded.place(match.start())


def snippets(asked: TextSearch, entities: Sequence[Node], bodies: Mapping[str, str]) -> dict[str, Snippet]:
    """Return a snippet for each entity that has one, by id: from the text that holds most of the words.

    Of two that hold as many, the document comes first, because the rest is available anyway.
    """
    sought = [*map(_Sought, asked.known)]
    all_terms = [one.term for word in asked.known for one in (*word.exact, *word.loose)]
    any_of = re.compile("|".join(map(re.escape, all_terms))), _hyphenated(all_terms)
    windows = [
        (node.id, field, text, cut)
        for node in entities
        for field, whole in _texts(node, bodies.get(node.id, ""))
        for text, cut in _window(sought, any_of, whole)
    ]
    if not windows:
        return {}
    shown = [_Shown(text) for _, _, text, _ in windows]
    pieces, pairs, named = (
        {*chain(*each)} for each in zip(*((o.pieces, o.pairs, o.names) for o in shown), strict=True)
    )
    of_word = _hits(asked, pieces, pairs - {""}, named - {""})
    names = {at: _pattern(several) for at, word in enumerate(asked.known) if (several := _names(word))}
    joined = [_joined(term, asked.known) for term in asked.joined]
    best: dict[str, tuple[int, Snippet]] = {}
    for (id_, field, text, cut), own in zip(windows, shown, strict=True):
        found = list(own.spans(of_word))
        folded = NormalizedText(text) if names or joined else None
        found += [(span, {at}) for at, name in names.items() if folded for span in folded.spans(name)]
        for name, its_words in joined:
            found = _whole_first(found, list(folded.spans(name)) if folded else [], its_words)
        spans, held = _merged(found, text), set().union(*(hit for _, hit in found))
        if held and (id_ not in best or len(held) > best[id_][0]):
            best[id_] = len(held), Snippet(field, text, spans, cut)
    return {id_: snippet for id_, (_, snippet) in best.items()}


def beginning(node: Node, body: str) -> Snippet:
    """Return the beginning of the text of an entity, for one that holds none of the words."""
    field, whole = next(_texts(node, body))
    text = _SPACE.sub(" ", whole[: letter_begin(whole, _CHARS)]).strip()
    return Snippet(field, text, (), (False, len(whole) > _CHARS))


def _texts(node: Node, body: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of an entity by field, the one that is shown first in front."""
    if body:
        yield "body", body[:_MAX_LOOKED_AT_CHARS]
    members = [field for field in node.fields if field.startswith(f"{OBJECT_FIELDS[0]}.")]
    for field in (*members, *_FIELDS):
        text = "\n".join(_leaves(node.fields.get(field)))
        if text and not (field == "text_ref" and text == node.path):
            yield field, text
    yield "id", node.id


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, list | tuple | dict):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _leaves(one)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield str(value)


def _window(
    sought: Sequence[_Sought], any_of: Sequence[re.Pattern[str]], whole: str
) -> Iterator[tuple[str, tuple[bool, bool]]]:
    """Yield the piece of a text around its hits, if it seems to hold one, on one line; and where it was cut."""
    whole = composed(whole)
    folded = NormalizedText(whole)
    if not any(one.search(folded.text) for one in any_of):
        return
    places = [at for word in sought if (at := word.place(whole, folded)) is not None]
    if not places:
        return
    start = _densest(sorted(places))
    begin = 0 if len(whole) <= _CHARS else max(0, min(start - _BEFORE_CHARS, len(whole) - _CHARS))
    begin, end = letter_begin(whole, begin), letter_begin(whole, begin + _CHARS)
    if begin and (gap := _SPACE.search(whole, begin, start)):
        begin = gap.end()
    if end < len(whole) and (space := whole.rfind(" ", start, end)) > start:
        end = space
    text = _SPACE.sub(" ", whole[begin:end]).strip()
    yield text, (begin > 0, end < len(whole))


def _densest(places: Sequence[int]) -> int:
    """Return the place from which on most of them fit into one piece."""
    room = _CHARS - _BEFORE_CHARS
    return max(places, key=lambda start: (sum(start <= place < start + room for place in places), -start))


def _hits(asked: TextSearch, pieces: set[str], pairs: set[str], names: set[str]) -> dict[str, set[int]]:
    """Return which of the words each of these pieces is a hit of, each pair of them, and each name with a hyphen."""
    # A character of a pair is a piece itself.
    terms = [
        (piece, [one for one in _terms(piece) if len(one) > 1] if piece in pairs else _terms(piece))
        for piece in pieces | pairs
    ]
    terms += [(name, unhyphenated(name)) for name in names]
    found: dict[str, set[int]] = {}
    for at, word in enumerate(asked.known):
        exact = {one.term for one in (*word.exact, *word.loose) if not one.is_beginning}
        begins = tuple(one.term for one in (*word.exact, *word.loose) if one.is_beginning)
        for piece, its_terms in terms:
            if any(term in exact or (begins and term.startswith(begins)) for term in its_terms):
                found.setdefault(piece, set()).add(at)
    return found


def _terms(piece: str) -> list[str]:
    if piece.isascii() and piece.isalnum():
        return terms.all_terms(piece)
    return [term for one in terms.pieces(terms.read(piece)) for term in terms.all_terms(one)]


def _letters(text: str) -> list[str]:
    """Return what a text is made of, each mark in one with its letter."""
    found: list[str] = []
    for piece in terms.shown(text):
        if found and is_added(piece[0]):
            found[-1] += piece
        else:
            found.append(piece)
    return found


def _is_wide(piece: str) -> bool:
    is_one = not piece.isascii() and letter_end(piece, 1) == len(piece)
    return is_one and unicodedata.category(piece[0]) in _OF_WIDE


class _Shown:
    """A piece of text as its words and what is between them."""

    def __init__(self, text: str) -> None:
        self.pieces: list[str] = terms.shown(text) if text.isascii() else _letters(text)
        self.pairs: list[str] = []
        """Each two characters of a wide script that are side by side, empty text for all other neighbours."""
        if not text.isascii():
            is_wide = [*map(_is_wide, self.pieces)]
            self.pairs = [
                one + other if both == (True, True) else ""
                for (one, other), both in zip(pairwise(self.pieces), pairwise(is_wide), strict=True)
            ]
        self.names: list[str] = [
            one + hyphen + other if hyphen == "-" and unhyphenated(one + hyphen + other) else ""
            for one, hyphen, other in zip(self.pieces, self.pieces[1:], self.pieces[2:], strict=False)
        ]
        """The two words with a hyphen that begin at a piece, empty text where none do."""

    def spans(self, of_word: Mapping[str, set[int]]) -> Iterator[Hit]:
        """Yield where the hits are in the text, and which words each is one of."""
        at = 0
        for piece, pair, name in zip_longest(self.pieces, self.pairs, self.names, fillvalue=""):
            for hit in (piece, pair, name):
                if hit in of_word:
                    yield (at, at + len(hit)), of_word[hit]
            at += len(piece)


def _merged(found: Sequence[Hit], text: str) -> tuple[tuple[int, int], ...]:
    """Return where the hits are in a text, in order and in whole letters; touching or joined ones are one."""
    spans: list[tuple[int, int]] = []
    for begin, end in sorted((letter_begin(text, begin), letter_end(text, end)) for (begin, end), _ in found):
        if spans and (begin <= spans[-1][1] or (begin == spans[-1][1] + 1 and text[begin - 1] in _JOINTS)):
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((begin, end))
    return tuple(spans)


def _hyphenated(found: Iterable[str]) -> re.Pattern[str]:
    """Return what matches these terms, of letters alone, with a hyphen in them: nothing where there is none."""
    spelled = [f"(?={term[0]}[a-z]*-){'-?'.join(term)}" for term in found if term.isascii() and term.isalpha()]
    return re.compile(f"{_WORD_BEGIN}(?:{'|'.join(spelled)})" if spelled else "(?!)")


def _names(word: Word) -> list[Alternative]:
    """Return the terms for a word that are several words in a text: all of a numbered name, else such as `node.js`."""
    return [one for one in word.alternatives if word.is_numbered or len(terms.runs(one.term)) > 1]


def _pattern(names: Iterable[Alternative]) -> re.Pattern[str]:
    """Return what names of several words look like in folded text, as a piece or at the beginning of one."""
    found = "|".join(re.escape(one.term) + ("" if one.is_beginning else r"(?!\w)") for one in names)
    return re.compile(rf"(?<!\w)(?:{found})")


def _joined(term: str, words: Sequence[Word]) -> tuple[re.Pattern[str], set[int]]:
    """Return what a name that was asked for looks like in folded text, and which of the words are its parts."""
    parts = terms.parts(term)
    return _pattern([Alternative(term)]), {at for at, word in enumerate(words) if word.text in parts}


def _whole_first(found: list[Hit], whole: Sequence[tuple[int, int]], its_words: set[int]) -> list[Hit]:
    """Return hits without those of a name's parts alone, where the text has the name as it was asked for."""
    if not whole:
        return found
    kept = [
        (span, words)
        for span, words in found
        if words - its_words or any(begin <= span[0] and span[1] <= end for begin, end in whole)
    ]
    return [*kept, *((span, its_words) for span in whole)]
