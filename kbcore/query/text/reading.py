"""How the words of a text are read: what each stands for, and what may have been meant where nothing holds it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.query.known import Rows, near_ids
from kbcore.query.text import words
from kbcore.query.text.scoring import EXACT, NEAR, WHOLE, Alternative, Search, Word, held_by, worth
from kbcore.query.text.tables import Index
from kbcore.query.text.typos import is_a_typo, is_long_enough

_MOST_NEAR: Final = 12
"""So many words a typo away are looked for, those that most entities hold."""
_MOST_WIDENED: Final = 8
"""Of more words it hardly matters how each is spelled."""
_TYPO_BYTES: Final = 8
"""No typo changes more: two letters that changed places, each as long as a letter can be."""
_FEW_BEGIN: Final = 10
"""If no more entities than these hold a word that begins with the last one, that one may as well be mistyped."""
_MOST_DIGITS: Final = 8
"""With up to so many digits a number is looked for whatever its zeros in front."""


def understand(rows: Rows, index: Index, text: str) -> Search:
    """Return what a text asks for.

    Raises: ``InvalidQuery`` for one without a word, or with too many.
    """
    found = _read(rows, index, text)
    [(entities, length, lacking, which)] = rows(
        "select count(*), coalesce(sum(length), 0)::bigint, count(*) filter (lacks_body), "  # noqa: S608 - fixed names
        f"coalesce(bit_xor(hash(id)) filter (lacks_body), 0) from {index['entity']}",
        (),
    )
    counts = held_by(rows, index, found)
    settled = [
        _doubted(rows, index, word, count) if count else _second_try(rows, index, word, is_last=word is found[-1])
        for word, count in zip(found, counts, strict=True)
    ]
    basis = f"{entities}.{length}.{lacking}.{which:x}"
    weighed = tuple(_weighed(_with_near(rows, word, count), count, entities) for word, count in settled)
    return Search(text.strip(), weighed, entities, length / entities if length else 1.0, lacking, basis)


def widened(rows: Rows, index: Index, asked: Search) -> Search:
    """Return the same search with words that are a typo away besides each word: for when nothing holds all of them.

    A plural is a typo away. The search itself is returned where there is no such word, or where it has so many words
    that each one's spelling hardly matters.
    """
    if len(asked.words) > _MOST_WIDENED:
        return asked
    wider = [_widened(rows, index, word) for word in asked.words]
    if wider == list(asked.words):
        return asked
    counts = zip(wider, held_by(rows, index, wider), strict=True)
    return msgspec.structs.replace(asked, words=tuple(_weighed(*one, asked.entities) for one in counts))


def problem(message: str, hint: str) -> InvalidQuery:
    """Return the error for a text that cannot be searched for."""
    return InvalidQuery(message, hint=hint, details=[Problem("$.text", "bad_text", message, hint)])


def _weighed(word: Word, count: int, entities: int) -> Word:
    return msgspec.structs.replace(word, held_by=count, worth=worth(count, entities))


def _widened(rows: Rows, index: Index, word: Word) -> Word:
    if word.corrected or word.also or not word.held_by or not _has_spelling(word.text):
        return word
    near = _a_typo_away(rows, index, word.text)
    alternatives = (*word.alternatives, *(Alternative(term, NEAR) for term in near))
    return msgspec.structs.replace(word, alternatives=alternatives, also=near)


def _with_near(rows: Rows, word: Word, count: int) -> Word:
    """Return a word with the ids that may have been meant, if it is one that nothing holds."""
    return word if count or not word.is_numbered else msgspec.structs.replace(word, near=near_ids(rows, word.text))


def _has_spelling(text: str) -> bool:
    """Tell whether a typo in a word can be told: a number is a name, and a short word has too many neighbours."""
    return is_long_enough(text) and not _has_digit(text)


def _read(rows: Rows, index: Index, text: str) -> list[Word]:
    """Return the words of a text, each once; the last one also stands for all that begin with it."""
    text = words.read(text)
    plain = text.split()
    if all(map(words.PLAIN.fullmatch, plain)):
        return _listed({word.lower(): {word.lower(): EXACT} for word in plain}, plain[-1].lower() if plain else "")
    run = f"{{'whole': {words.whole('run')}, 'parts': {words.parts('run')}}}"
    found = rows(
        f"select {words.whole('piece')}, list_transform({words.runs('piece')}, lambda run: {run}) "  # noqa: S608
        f"from (select unnest(p) as piece, generate_subscripts(p, 1) as place from (select {words.pieces('$1')} as p)) "
        "order by place",
        [text],
    )
    asked: dict[str, dict[str, int]] = {}
    last = ""
    for whole, its_runs in found:
        if spelled := _as_name(rows, index, whole):
            [last] = whole
            asked.setdefault(last, spelled)
            continue
        for run in its_runs:
            for part in run["parts"]:
                terms = asked.setdefault(part, {part: EXACT})
                wholes = {term: WHOLE for term in (*whole, *run["whole"]) if term != part}
                asked[part] = terms | wholes
                last = part
    return _listed(asked, last)


def _as_name(rows: Rows, index: Index, whole: Sequence[str]) -> dict[str, int]:
    """Return what stands for a numbered name where there are such ids; zeros before its number do not count.

    Its parts alone say nothing then: each ``REQ-1`` holds the one, and every other number the other. They are all that
    a name has of which there is no id, such as ``ISO-8601``.
    """
    match = words.NUMBERED.fullmatch(whole[0]) if whole else None
    if match is None:
        return {}
    kind, bare = match[1], match[2].lstrip("0") or "0"
    ids = f"select 1 from {index['entity']} where {words.is_numbered('id', '$1')} limit 1"  # noqa: S608 - fixed names
    if not rows(ids, [kind]):
        return {}
    others = (f"{kind}{bare.zfill(digits)}" for digits in range(len(bare), _MOST_DIGITS + 1))
    return {**dict.fromkeys(others, EXACT), whole[0]: WHOLE}


def _listed(asked: Mapping[str, Mapping[str, int]], last: str) -> list[Word]:
    """Return words, given with the terms that stand for each and how much these count."""
    if not asked:
        raise problem("`text` holds no word.", "Words are made of letters, digits or symbols such as emoji.")
    if len(asked) > limits.MAX_QUERY_WORDS:
        hint = "Ask for the few words that tell most."
        raise problem(f"`text` holds {len(asked)} different words; the limit is {limits.MAX_QUERY_WORDS}.", hint)
    listed = []
    for part, terms in asked.items():
        alternatives = [Alternative(term, factor) for term, factor in terms.items()]
        if part == last and len(part) > 1 and not _has_digit(part):
            alternatives.append(Alternative(part, NEAR, is_beginning=True))
        listed.append(Word(part, tuple(alternatives)))
    return listed


def _doubted(rows: Rows, index: Index, word: Word, count: int) -> tuple[Word, int]:
    """Return a word that some entities hold, and how many: with words a typo away if it only begins a few others."""
    exact = tuple(one for one in word.alternatives if not one.is_beginning)
    if count > _FEW_BEGIN or len(exact) == len(word.alternatives) or not _has_spelling(word.text):
        return word, count
    if held_by(rows, index, [msgspec.structs.replace(word, alternatives=exact)])[0]:
        return word, count
    near = tuple(term for term in _a_typo_away(rows, index, word.text) if not term.startswith(word.text))
    if not near:
        return word, count
    alternatives = (*word.alternatives, *(Alternative(term, NEAR) for term in near))
    other = msgspec.structs.replace(word, alternatives=alternatives, also=near)
    return other, held_by(rows, index, [other])[0]


def _second_try(rows: Rows, index: Index, word: Word, *, is_last: bool) -> tuple[Word, int]:
    """Return a word that nothing holds with what may have been meant, and how many entities hold that.

    A number is a name, not a spelling: it is completed where it comes last, and never corrected.
    """
    if is_last and _has_digit(word.text):
        other = msgspec.structs.replace(word, alternatives=(Alternative(word.text, NEAR, is_beginning=True),))
    elif _has_spelling(word.text) and (near := _a_typo_away(rows, index, word.text)):
        other = msgspec.structs.replace(
            word, alternatives=tuple(Alternative(term, NEAR) for term in near), corrected=near
        )
    else:
        return word, 0
    return other, held_by(rows, index, [other])[0]


def _a_typo_away(rows: Rows, index: Index, text: str) -> tuple[str, ...]:
    """Return the words that some entity holds and that are a typo away.

    One typo leaves the beginning or the end as it was, which is quick to look at. The database measures in bytes: what
    it lets through is looked at letter by letter.
    """
    half = max((len(text) - 1) // 2, 1)
    found = rows(
        f"select distinct term from {index['term']} where length(term) between $2 and $3 "  # noqa: S608 - fixed names
        "and (starts_with(term, $4) or ends_with(term, $5)) and damerau_levenshtein(term, $1) between 1 and "
        "least(1 + 2 * (strlen(term) - length(term) + $6), $7) order by term",
        [text, len(text) - 1, len(text) + 1, text[:half], text[-half:], len(text.encode()) - len(text), _TYPO_BYTES],
    )
    near = [Word(term, (Alternative(term, NEAR),)) for (term,) in found if is_a_typo(term, text)]
    # The list of terms outlives the entities that held them.
    held = zip(held_by(rows, index, near), (word.text for word in near), strict=True)
    most = sorted((-count, term) for count, term in held if count)
    return tuple(sorted(term for _, term in most[:_MOST_NEAR]))


def _has_digit(text: str) -> bool:
    return any(one in "0123456789" for one in text)
