"""How well an entity fits the words that were asked for. SQL alone, all of it exact.

A score is a whole number and a sum, so that no order of adding changes it: the same words find the same entities in the
same order, in every process. The formula is BM25F (Robertson, Zaragoza and Taylor, 2004): fields count by their weight,
and a word counts the more the fewer entities hold it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore.query.known import Rows
from kbcore.query.text.tables import Index
from kbcore.query.text.words import NUMBERED

SCALE: Final = 1_000_000
"""A score is kept in millionths."""
SATURATION: Final = 1.2
LENGTHS_COUNT: Final = 0.75
"""The two constants of BM25, k1 and b, with the values that are usual."""
WHOLE: Final = 4
EXACT: Final = 2
NEAR: Final = 1
"""How much an alternative of a word counts: the piece that it was asked in, the word itself, one that begins with it or
is a typo away."""
EXACT_ID: Final = 10**12
"""What the entity whose very id was asked for has on top."""
_FEW: Final = 8
"""So many terms are looked up one by one."""


class Alternative(msgspec.Struct, frozen=True):
    """A term that stands for a word: that very term, or all that begin with it; ``factor`` is how much it counts."""

    term: str
    factor: int
    is_beginning: bool = False


class Word(msgspec.Struct, frozen=True):
    """A word that was asked for. ``held_by`` counts the entities that hold it, ``worth`` is what it counts.

    ``corrected`` names what was looked for in its place, a typo away, because nothing holds it as it is; ``also`` what
    was looked for besides it. ``near`` are ids like a numbered name that nothing holds.
    """

    text: str
    alternatives: tuple[Alternative, ...]
    held_by: int = 0
    worth: int = 0
    corrected: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def is_numbered(self) -> bool:
        """Tell whether it is a numbered name that was taken as one word."""
        return NUMBERED.fullmatch(self.text) is not None


class Search(msgspec.Struct, frozen=True):
    """A text as it was understood: its words, and the entities of the whole branch.

    ``lacking`` counts those of which the documents are not at hand, so that only their fields can be searched.
    ``basis`` is the same for the same entities with the same documents: only then are two answers in one order.
    """

    text: str
    words: tuple[Word, ...]
    entities: int
    mean_length: float
    lacking: int = 0
    basis: str = ""

    @property
    def known(self) -> tuple[Word, ...]:
        """The words that some entity holds."""
        return tuple(word for word in self.words if word.held_by)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The words that nothing holds."""
        return tuple(word.text for word in self.words if not word.held_by)

    @property
    def is_hopeless(self) -> bool:
        """Tell whether too little of the text is known for anything to be relevant.

        That is less than half of its words, or less than a third of what they count; one that nothing holds counts as
        one that a single entity holds.
        """
        counted = sum(word.worth for word in self.known)
        lost = len(self.unknown) * worth(1, self.entities)
        return 2 * len(self.known) < len(self.words) or not self.known or 2 * counted < lost

    @property
    def names(self) -> tuple[str, ...]:
        """The ids that the whole text is, apart from its own spelling: a numbered name whatever its zeros in front."""
        if len(self.words) != 1 or not self.words[0].is_numbered:
            return ()
        return tuple(one.term for one in self.words[0].alternatives if not one.is_beginning)


def worth(held_by: int, entities: int) -> int:
    """Return what a word counts that so many of the entities hold."""
    return math.floor(SCALE * math.log(1 + (entities - held_by + 0.5) / (held_by + 0.5)))


def held_by(rows: Rows, index: Index, asked: Sequence[Word]) -> list[int]:
    """Return for each word how many entities hold one of its alternatives."""
    params: list[Any] = []
    parts: dict[str, list[tuple[int, Word]]] = {"count(*)": [], "count(distinct doc)": []}
    for at, word in enumerate(asked):
        # An entity has a term once, so that only several of them need a look at which entities have them.
        is_one = len(word.alternatives) == 1 and not word.alternatives[0].is_beginning
        parts["count(*)" if is_one else "count(distinct doc)"].append((at, word))
    counts = [
        f"select word, {count} from {_postings(index, listed, params)} group by word"  # noqa: S608 - fixed names
        for count, listed in parts.items()
        if listed
    ]
    found: dict[int, int] = dict(rows(" union all ".join(counts), params)) if counts else {}
    return [found.get(at, 0) for at in range(len(asked))]


def _postings(index: Index, asked: Sequence[tuple[int, Word]], params: list[Any]) -> str:
    """Return a relation of ``word`` (its place), ``doc`` and ``weight``, a row for each alternative that is held.

    What it is given is added to ``params``. A few terms are looked up one by one, many in one go: a statement with many
    parts takes long to plan.
    """
    is_short = sum(len(word.alternatives) for _, word in asked) <= _FEW
    exact, parts = [], []
    for at, word in asked:
        for one in word.alternatives:
            params.append(one.term)
            bound = f"${len(params)}"
            condition = f"term = {bound}"
            if one.is_beginning:
                params.append(one.term + chr(0x10FFFF))
                condition = f"term >= {bound} and term < ${len(params)}"
            elif not is_short:
                exact.append((bound, f"({bound}, {at}, {one.factor})"))
                continue
            weighed = f"select {at} as word, doc, {one.factor} * weight as weight"
            parts.append(f"{weighed} from {index['posting']} where {condition}")
    if exact:
        terms, values = zip(*exact, strict=True)
        parts.append(
            f"select v.word, p.doc, v.factor * p.weight from {index['posting']} p "  # noqa: S608 - fixed names
            f"join (values {', '.join(values)}) v(term, word, factor) on v.term = p.term "
            f"where p.term in ({', '.join(terms)})"
        )
    return f"({' union all '.join(parts)}) held(word, doc, weight)"


def scored(index: Index, asked: Search, params: list[Any]) -> str:
    """Return a relation of ``doc``, ``words`` (how many it holds), ``held`` (what they count) and ``score``.

    What it is given is added to ``params``.
    """
    known = list(enumerate(asked.known))
    held = _postings(index, known, params)
    params += [SATURATION, LENGTHS_COUNT, asked.mean_length, 1.0]
    k1, b, mean, one = (f"${len(params) - 3 + i}::double" for i in range(4))
    most = ", ".join(f"max(case when word = {at} then weight end) as w{at}" for at, _ in known)
    scores = " + ".join(
        f"case when w{at} is null then 0 else floor({word.worth} * (w{at} * ({k1} + {one}) "
        f"/ (w{at} + {k1} * ({one} - {b} + {b} * d.length / {mean}))))::bigint end"
        for at, word in known
    )
    words = " + ".join(f"(w{at} is not null)::integer" for at, _ in known)
    worths = " + ".join(f"case when w{at} is null then 0 else {word.worth} end" for at, word in known)
    return (
        f"(select h.doc, d.id, {words} as words, {worths} as held, {scores} as score "  # noqa: S608 - fixed names
        f"from (select doc, {most} from {held} group by doc) h "
        f"join {index['entity']} d on d.doc = h.doc)"
    )
