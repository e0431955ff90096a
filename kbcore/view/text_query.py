"""The query of a text search, as matches of FTS5. Pure.

The score is FTS5's bm25 with a weight for each column: a word counts the more the fewer entities hold it. Where an
entity need not hold all of the words, the score counts the less the more of them it lacks, a rare word more than a
common one. It is given as a share of the best that the words of a text can have, each by one term; where an entity
scores more than that, because it holds several terms for a word or a rare one, as a share of the highest score of all
that are found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from kbcore.text.terms import NUMBERED, token

SATURATION: Final = 1.2
"""The constant k1 of FTS5's bm25: a word counts at most one and this many times what it is worth."""
_LEAST_WORTH: Final = 1e-6
"""The weight in FTS5 of a word in more than half of the entities."""
LOOSE_SHARE: Final = 0.8
"""The score of an entity that holds other forms of the words, or words that begin with the last one, is at most such a
share of its score with the words themselves."""
FILLERS: Final = 50
FILLER_TERMS: Final = 30
"""An index has so many more rows than entities, of so many terms that cannot be searched. They keep the statistics of a
small store from taking whatever half of its few entities hold for worthless."""
PARTIAL_SHARE: Final = 0.5
"""An entity with only some of the words is found when it scores at least such a share of the best."""
LEAST_PART: Final = 0.4
"""An entity that holds hardly any of the words keeps such a share of its score."""
SYMBOL_SHARE: Final = 0.7
"""A symbol of code keeps such a share of its score for a question: its text is so short that one word of its name makes
it score more than a document about the matter. Who looks for a symbol types a name, which is no question."""
LEAST_ASKED: Final = 4
"""A text of so many words that tell something is a question: few entities hold all of its words, and those are long."""
_ENOUGH_KNOWN: Final = 3
_RARE_SHARE: Final = 0.5
_COMMON_SHARE: Final = 5


class Alternative(msgspec.Struct, frozen=True):
    """A term for a word: that very term, or all that begin with it."""

    term: str
    is_beginning: bool = False

    @property
    def expression(self) -> str:
        """Return it as an expression of FTS5. Only a term from a damaged index can hold a quote."""
        quoted = token(self.term).replace('"', '""')
        return f'"{quoted}"{" *" if self.is_beginning else ""}'


class MatchExpression(msgspec.Struct, frozen=True):
    """An expression of FTS5, and what the scores of what it finds are multiplied by.

    ``worth`` is that of the word that it looks for, of matches that are added up.
    """

    expression: str
    factor: float = 1.0
    worth: float = 0.0


class Ranking(msgspec.Struct, frozen=True):
    """The search: whatever any of the matches finds, by the best of its scores, or by their sum (``is_summed``).

    ``exact`` are the numbers, within the index, of the entities that come first whatever their score, and ``first`` is
    the expression of FTS5 for those that come next; "" for none. What scores less than ``least_share`` of the best is
    left out. A score is given as a share of ``best``, or of the highest score where
    that is more. A symbol of code has ``symbol_share`` of its sum.
    """

    matches: tuple[MatchExpression, ...]
    is_summed: bool = False
    symbol_share: float = 1.0
    exact: tuple[int, ...] = ()
    first: str = ""
    least_share: float = 0
    best: float = 0


class Word(msgspec.Struct, frozen=True):
    """A word that was asked for. ``held_by`` counts the entities that hold it or a form of it.

    ``text`` is its term, and ``typed`` what was typed where that is something else, as ``größe`` for ``grosse``.
    ``forms`` are other forms of it. ``corrected`` names what was looked for in its place, a typo away, because nothing
    holds it as it is; ``also`` what was looked for besides it. ``near`` are ids like a numbered name that nothing has.
    A stop word (``is_stop``) is not looked for, and a light one is left out where nothing holds all of the words.
    """

    text: str
    alternatives: tuple[Alternative, ...]
    held_by: int = 0
    forms: tuple[str, ...] = ()
    corrected: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    is_stop: bool = False
    is_light: bool = False
    typed: str = ""

    @property
    def shown(self) -> str:
        """The word as an answer names it."""
        return self.typed or self.text

    @property
    def is_numbered(self) -> bool:
        """Tell whether it is a numbered name that was taken as one word."""
        return NUMBERED.fullmatch(self.text) is not None

    @property
    def is_loose(self) -> bool:
        """Tell whether it has more than the very terms."""
        return bool(self.forms) or any(one.is_beginning for one in self.alternatives)

    @property
    def exact(self) -> tuple[Alternative, ...]:
        """The terms for it, without those that only begin with it and without its other forms."""
        return tuple(one for one in self.alternatives if not one.is_beginning)

    @property
    def loose(self) -> tuple[Alternative, ...]:
        """The terms for it, other forms among them; none that the beginning finds anyway."""
        begins = tuple(one.term for one in self.alternatives if one.is_beginning)
        listed = (*self.alternatives, *map(Alternative, self.forms))
        return tuple(one for one in listed if one.is_beginning or not (begins and one.term.startswith(begins)))


class TextSearch(msgspec.Struct, frozen=True):
    """A text as it was understood: its words, and the entities of the whole branch.

    ``joined`` are the terms of names such as ``read-only`` and ``1.10.2``: what holds one comes before what holds its
    parts alone. ``is_question`` tells that it has too many words for all of them to be required. ``lacking`` counts
    those of which the documents are not available, so that only their fields can be searched. ``basis`` is the same for
    the same entities with the same documents: only then are two answers in one order.
    """

    text: str
    words: tuple[Word, ...]
    entities: int
    joined: tuple[str, ...] = ()
    is_question: bool = False
    lacking: int = 0
    basis: str = ""

    @property
    def asked(self) -> tuple[Word, ...]:
        """The words that are looked for."""
        return tuple(word for word in self.words if not word.is_stop and (word.held_by or not word.is_light))

    @property
    def known(self) -> tuple[Word, ...]:
        """The words that some entity holds."""
        return tuple(word for word in self.asked if word.held_by)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words that nothing holds."""
        return tuple(word.shown for word in self.asked if not word.held_by)

    @property
    def cannot_match(self) -> bool:
        """Tell whether too little of the text is known for anything to be relevant.

        That is less than half of its words, or less than a third of what they count, one that nothing holds counting as
        one that a single entity holds; unless one that is known tells much by itself, or a few are known that are not
        light: of a long question these find the best partial matches.
        """
        if sum(not word.is_light for word in self.known) >= _ENOUGH_KNOWN:
            return False
        rarest = rarity(1, self.entities)
        counts = [rarity(word.held_by, self.entities) for word in self.known]
        is_little = 2 * len(counts) < len(self.asked) or 2 * sum(counts) < len(self.unknown) * rarest
        return not counts or (is_little and max(counts) < _RARE_SHARE * rarest)

    @property
    def rare_words(self) -> tuple[Word, ...]:
        """The known words, where others are left without light ones and those that a fifth of all entities hold."""
        heavy = tuple(word for word in self.known if not word.is_light)
        rare = tuple(word for word in heavy if _COMMON_SHARE * word.held_by <= self.entities)
        return rare or heavy or self.known

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that the whole text is, besides its own spelling: a numbered name whatever its zeros in front."""
        if len(self.words) != 1 or not self.words[0].is_numbered:
            return ()
        return tuple(one.term for one in self.words[0].alternatives if not one.is_beginning)


def first_of(joined: Iterable[str]) -> str:
    """Return the expression for what holds one of these names; "" without any."""
    return " OR ".join(Alternative(term).expression for term in joined)


def rarity(held_by: int, entities: int) -> float:
    """Return how much a word tells that so many of the entities hold."""
    return math.log(1 + (entities - held_by + 0.5) / (held_by + 0.5))


def worth(held_by: int, entities: int) -> float:
    """Return what FTS5 lets a term count that so many of the entities hold."""
    return max(_LEAST_WORTH, math.log((entities + FILLERS - held_by + 0.5) / (held_by + 0.5)))


def best_of(words: Iterable[Word], entities: int) -> float:
    """Return the best that words can count, each by one term that is as common as the word itself."""
    return (1 + SATURATION) * sum(worth(word.held_by, entities) for word in words)


def each_of(words: Sequence[Word], term_counts: Sequence[Sequence[int]], entities: int) -> tuple[MatchExpression, ...]:
    """Return a match for each word, to be added up; ``term_counts`` has how many entities hold each of its terms.

    FTS5 takes each term of a word for a word of its own: a rare one must not count more than the word itself.
    """
    found = []
    for word, counts in zip(words, term_counts, strict=True):
        own = worth(word.held_by, entities)
        rarest = max(worth(count, entities) for count in (*counts, word.held_by))
        found.append(MatchExpression(any_of(word.loose), min(1.0, own / rarest), own))
    return tuple(found)


def any_of(alternatives: Iterable[Alternative]) -> str:
    """Return the expression for what holds one of these terms."""
    return f"({' OR '.join(one.expression for one in alternatives)})"


def all_of(words: Iterable[Word], *, is_loose: bool) -> str:
    """Return the expression for what holds all words."""
    return " AND ".join(any_of(word.loose if is_loose else word.exact) for word in words)
