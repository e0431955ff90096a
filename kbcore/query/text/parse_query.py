"""The words of a query text: the terms of each, and similar terms where no entity contains it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.query.data_names import near_ids
from kbcore.text import terms
from kbcore.text.terms import has_digit
from kbcore.text.typos import is_a_typo, is_long_enough
from kbcore.text.word_forms import LIGHT_WORDS, STOP_WORDS, are_forms, common_beginning
from kbcore.view.tables import Rows
from kbcore.view.text_query import LEAST_ASKED, Alternative, MatchExpression, Ranking, TextSearch, Word, any_of

_MOST_NEAR: Final = 12
"""The most words a typo away that are searched: the most frequent ones."""
_MOST_WIDENED: Final = 8
"""Of more words it hardly matters how each is spelled."""
_FEW_BEGIN: Final = 10
"""If no more entities than these hold a word that begins with the last one, that one may as well be mistyped."""
_MOST_DIGITS: Final = 8
"""With up to so many digits a number is looked for whatever its zeros in front."""


class Index(Protocol):
    """The searched entities of a branch as of one seq, with their documents."""

    def counts(self) -> tuple[int, int, str]:
        """Return how many entities there are, how many lack their document, and a mark of which those are."""

    def held_by(self, match: MatchExpression) -> int:
        """Return how many entities a match finds."""

    def holds(self, id_: str, match: MatchExpression) -> bool:
        """Return whether a match finds this entity."""

    def beginning_with(self, beginning: str) -> list[str]:
        """Return the terms that begin so."""

    def spelled_like(self, text: str) -> list[str]:
        """Return the terms of about the same length that have the first half of a word, or its last one."""

    def has_numbered(self, kind: str) -> bool:
        """Return whether there are ids that are numbered names with ``kind`` before their number."""

    def numbers_of(self, names: Sequence[str], length: int = 0) -> list[int]:
        """Return the numbers, within the index, of the entities with these ids as terms have them, of this length."""

    def symbols_among(self, ids: Sequence[str]) -> set[str]:
        """Return those of these ids that are ids of symbols of code."""

    def ranked(self, wanted: Ranking, limit: int | None, after: str = "") -> tuple[list[tuple[str, float]], int]:
        """Return the entities that are wanted, best first, with their scores from 0 to 1, and how many they are.

        Up to ``limit`` come after the one with the id ``after``; without a limit all of them.
        """


def understand(rows: Rows, index: Index, text: str) -> TextSearch:
    """Return what a text asks for.

    Raises: ``InvalidQuery`` for one without a word, or with too many.
    """
    found, joined = _read(index, text)
    entities, lacking, basis = index.counts()
    settled = tuple(_settled(rows, index, word, is_last=word is found[-1]) for word in found)
    is_question = _count_telling(text) >= LEAST_ASKED
    return TextSearch(text.strip(), settled, entities, joined, is_question, lacking, basis)


def _count_telling(text: str) -> int:
    """Return how many of the words of a text tell something, a name of several parts being one."""
    common = STOP_WORDS | LIGHT_WORDS
    pieces = {piece.lower(): terms.parts(piece) for piece in terms.pieces(terms.read(text))}
    return sum(any(part not in common for part in parts) for parts in pieces.values())


def widened(index: Index, asked: TextSearch) -> TextSearch:
    """Return the same search with words that are a typo away besides each word: for when nothing holds all of them.

    The search itself is returned where there is no such word, or where it has so many words that each one's spelling
    hardly matters.
    """
    if len(asked.asked) > _MOST_WIDENED:
        return asked
    wider = tuple(_widened(index, word) for word in asked.words)
    return asked if wider == asked.words else msgspec.structs.replace(asked, words=wider)


def problem(message: str, hint: str) -> InvalidQuery:
    """Return the error for a text that cannot be searched for."""
    return InvalidQuery(message, hint=hint, details=[Problem("$.text", "bad_text", message, hint)], says_first=True)


def _settled(rows: Rows, index: Index, word: Word, *, is_last: bool) -> Word:
    """Return a word with how many entities hold it, and with what may have been meant where hardly any does."""
    if word.is_stop:
        return word
    forms = () if has_digit(word.text) else _forms(index, word)
    found = _counted(index, msgspec.structs.replace(word, forms=forms))
    if found.held_by:
        return _doubted(index, found)
    other = _second_try(index, word, is_last=is_last)
    if other.held_by or not other.is_numbered:
        return other
    return msgspec.structs.replace(other, near=near_ids(rows, other.text))


def _counted(index: Index, word: Word) -> Word:
    return msgspec.structs.replace(word, held_by=index.held_by(MatchExpression(any_of(word.loose))))


def _forms(index: Index, word: Word) -> tuple[str, ...]:
    """Return the other forms of a word that entities hold; those that its beginning finds anyway are left out."""
    begins = tuple(one.term for one in word.alternatives if one.is_beginning)
    found = (term for term in index.beginning_with(common_beginning(word.text)) if are_forms(term, word.text))
    return tuple(term for term in found if not (begins and term.startswith(begins)))


def _widened(index: Index, word: Word) -> Word:
    if word.corrected or word.also or not word.held_by or not _has_spelling(word.text):
        return word
    near = tuple(term for term in _a_typo_away(index, word.text) if term not in word.forms)
    if not near:
        return word
    alternatives = (*word.alternatives, *map(Alternative, near))
    return _counted(index, msgspec.structs.replace(word, alternatives=alternatives, also=near))


def _has_spelling(text: str) -> bool:
    """Return whether typos in a word can be found: numbers are names, and short words have too many neighbours."""
    return is_long_enough(text) and not has_digit(text)


def _read(index: Index, text: str) -> tuple[list[Word], tuple[str, ...]]:
    """Return the words of a text, each once, and its names of several parts; the last word means beginnings as well.

    A version is the same with ``v`` before it as without, and two words with a hyphen are the same as one word.
    """
    asked: dict[str, dict[str, None]] = {}
    typed: dict[str, str] = {}
    joined: dict[str, None] = {}
    last = ""
    for piece in terms.pieces(terms.read(text)):
        typed = terms.spellings(piece) | typed
        version = terms.version(piece)
        whole = terms.whole(version or piece)
        if spelled := _as_name(index, whole):
            [last] = whole
            asked.setdefault(last, dict.fromkeys(spelled))
            continue
        runs = terms.runs(version or piece)
        joined |= dict.fromkeys(whole if len(runs) > 1 else ())
        for at, run in enumerate(runs):
            others = [f"v{run}"] if version and not at else terms.unhyphenated(piece)
            wholes = dict.fromkeys((*whole, *terms.whole(run), *others))
            for part in terms.parts(run):
                asked[part] = asked.setdefault(part, {part: None}) | wholes
                last = part
    words = [msgspec.structs.replace(word, typed=typed.get(word.text, "")) for word in _listed(asked, last)]
    return words, tuple(joined)


def _as_name(index: Index, whole: Sequence[str]) -> list[str]:
    """Return the terms of a numbered name where there are such ids; zeros before its number do not count.

    Its parts alone say nothing then: each ``REQ-1`` holds the one, and every other number the other. They are all that
    a name has of which there is no id, such as ``ISO-8601``.
    """
    match = terms.NUMBERED.fullmatch(whole[0]) if whole else None
    if match is None or not index.has_numbered(match[1]):
        return []
    kind, bare = match[1], match[2].lstrip("0") or "0"
    others = (f"{kind}{bare.zfill(digits)}" for digits in range(len(bare), _MOST_DIGITS + 1))
    return [*dict.fromkeys((whole[0], *others))]


def _listed(asked: Mapping[str, Mapping[str, None]], last: str) -> list[Word]:
    """Return words, given with the terms of each."""
    if not asked:
        raise problem("The text contains no word.", "Words are made of letters, digits or symbols such as emoji.")
    if len(asked) > limits.MAX_QUERY_WORDS:
        hint = "Ask for the few most specific words."
        raise problem(f"The text contains {len(asked)} different words; the limit is {limits.MAX_QUERY_WORDS}.", hint)
    has_others = any(part not in STOP_WORDS | LIGHT_WORDS for part in asked)
    listed = []
    for part, its_terms in asked.items():
        alternatives = [*map(Alternative, its_terms)]
        if part == last and len(part) > 1 and not has_digit(part):
            alternatives.append(Alternative(part, is_beginning=True))
        is_stop, is_light = (has_others and part in common for common in (STOP_WORDS, LIGHT_WORDS))
        listed.append(Word(part, tuple(alternatives), is_stop=is_stop, is_light=is_light))
    return listed


def _doubted(index: Index, word: Word) -> Word:
    """Return a word that some entities hold, with words a typo away if it only begins a few others."""
    is_sure = word.held_by > _FEW_BEGIN or len(word.exact) == len(word.alternatives) or not _has_spelling(word.text)
    if is_sure or word.forms or index.held_by(MatchExpression(any_of(word.exact))):
        return word
    near = tuple(term for term in _a_typo_away(index, word.text) if not term.startswith(word.text))
    if not near:
        return word
    alternatives = (*word.alternatives, *map(Alternative, near))
    return _counted(index, msgspec.structs.replace(word, alternatives=alternatives, also=near))


def _second_try(index: Index, word: Word, *, is_last: bool) -> Word:
    """Return a word that nothing holds with what may have been meant, and how many entities hold that.

    A number is a name, not a spelling: it is completed where it comes last, and never corrected.
    """
    if is_last and has_digit(word.text):
        return _counted(index, msgspec.structs.replace(word, alternatives=(Alternative(word.text, is_beginning=True),)))
    if _has_spelling(word.text) and (near := _a_typo_away(index, word.text)):
        return _counted(
            index, msgspec.structs.replace(word, alternatives=tuple(map(Alternative, near)), corrected=near)
        )
    return word


def _a_typo_away(index: Index, text: str) -> tuple[str, ...]:
    """Return the words that some entity holds and that are a typo away: those that most entities hold."""
    near = [term for term in index.spelled_like(text) if is_a_typo(term, text)]
    # The list of terms outlives the entities that held them.
    held = ((index.held_by(MatchExpression(Alternative(term).expression)), term) for term in near)
    most = sorted((-count, term) for count, term in held if count)
    return tuple(sorted(term for _, term in most[:_MOST_NEAR]))
