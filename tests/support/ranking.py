"""What a text search should find and in what order, read slowly off plain values: BM25F as the books have it."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbcore.model import Node

WEIGHTS = {"id": 8, "title": 5, "tags": 4, "attributes": 2, "body": 1}
JOINTS = "-_.:@"
DIGITS = "0123456789"
SATURATION, LENGTHS = 1.2, 0.75


def is_letter(one: str) -> bool:
    """Tell whether a character is part of a word, by its Unicode category."""
    return unicodedata.category(one)[0] in "LNM" or unicodedata.category(one) == "So"


def is_wide(one: str) -> bool:
    """Tell whether a character belongs to a script without spaces, or is a symbol: enough for what tests write."""
    return (
        unicodedata.category(one) == "So"
        or "CJK" in unicodedata.name(one, "")
        or any(name in unicodedata.name(one, "") for name in ("HIRAGANA", "THAI CHARACTER"))
    )


def normal(text: str) -> str:
    """Return text in small letters without accents, and with two letters for a sharp s."""
    plain = "".join(one for one in unicodedata.normalize("NFD", text) if unicodedata.category(one)[0] != "M")
    return unicodedata.normalize("NFC", plain).lower().replace("ß", "ss")


def pieces(text: str) -> Iterator[str]:
    """Yield what stands together: letters, single joints between them, and ``+`` or ``#`` behind."""
    at = 0
    while at < len(text):
        if not is_letter(text[at]):
            at += 1
            continue
        end = at
        while end < len(text) and (
            is_letter(text[end])
            or (text[end] in JOINTS and end + 1 < len(text) and is_letter(text[end + 1]) and is_letter(text[end - 1]))
        ):
            end += 1
        while end < len(text) and text[end] in "+#":
            end += 1
        yield text[at:end]
        at = end


def runs(piece: str) -> list[str]:
    """Return the parts of a piece between joints."""
    return "".join(one if is_letter(one) else " " for one in piece).split()


def parts(run: str) -> list[str]:
    """Return what a reader sees in a run: humps, and pairs of characters of wide scripts."""
    cut = ""
    for at, one in enumerate(run):
        before, after = run[at - 1 : at], run[at + 1 : at + 2]
        is_hump = (
            one.isascii()
            and one.isupper()
            and (
                (before.isascii() and before.islower())
                or (before.isascii() and before.isupper() and after.isascii() and after.islower())
            )
        )
        is_edge = before and is_wide(one) != is_wide(before)
        cut += (" " if is_hump or is_edge else "") + one
    found = []
    for part in cut.split():
        plain = normal(part) if is_wide(part[0]) else ""
        if len(plain) > 1:
            found += [plain[i : i + 2] for i in range(len(plain) - 1)]
        else:
            found.append(part)
    return [term for term in map(normal, found) if term]


def wholes(piece: str) -> list[str]:
    """Return the term of a whole piece or run; none for one with characters of a wide script."""
    return [] if any(map(is_wide, piece)) or not normal(piece) else [normal(piece)]


def terms(piece: str) -> set[str]:
    """Return all terms by which a piece is found."""
    found = {*wholes(piece), *(normal(one) for one in piece if is_wide(one)), *name_in_front(piece)}
    for run in runs(piece):
        found |= {*wholes(run), *parts(run)}
    return found - {""}


def name_of(piece: str) -> tuple[str, str] | None:
    """Return a numbered name in two: what stands before its number, and the number; None for another piece."""
    digits = len(piece) - len(piece.rstrip(DIGITS))
    kind = piece[: len(piece) - digits]
    is_one = digits and len(kind) > 1 and kind[-1] in JOINTS and not any(one in DIGITS for one in kind)
    return (kind, piece[len(kind) :]) if is_one else None


def name_in_front(piece: str) -> list[str]:
    """Return the numbered name that a longer piece begins with, as a term."""
    cuts = (piece[:at] for at, one in enumerate(piece) if one in JOINTS)
    return [term for cut in cuts if name_of(cut) for term in wholes(cut)]


def leaves(value: Any) -> Iterator[str]:
    """Yield every plain value in a JSON value, as text."""
    if isinstance(value, list | dict):
        for member in value if isinstance(value, list) else value.values():
            yield from leaves(member)
    elif isinstance(value, bool):
        yield "true" if value else "false"
    elif value is not None:
        yield value if isinstance(value, str) else repr(value)


def texts(node: Node, body: str = "") -> Mapping[str, list[str]]:
    """Return the texts of an entity by the field that they count as."""
    get = node.fields.get
    plain = [get(name) for name in ("status", "owner", "priority", "severity")]
    reference = [get("text_ref")] if get("text_ref") != node.path else []
    members = [value for name, value in node.fields.items() if name.startswith("attributes.")]
    return {
        "id": [node.id, *([get("name")] if get("name", node.id) != node.id else [])],
        "title": [get("title") or ""],
        "tags": get("tags") or [],
        "attributes": list(leaves([*plain, *reference, *(get("links") or []), *members])),
        "body": [body],
    }


class Corpus:
    """Entities as a search sees them; ``bodies`` are their documents by id."""

    def __init__(self, nodes: Iterable[Node], bodies: Mapping[str, str] | None = None) -> None:
        self.weights: dict[str, Counter[str]] = {}
        self.lengths: dict[str, int] = {}
        for node in nodes:
            counted: Counter[str] = Counter()
            length = 0
            for field, listed in texts(node, (bodies or {}).get(node.id, "")).items():
                for piece in (piece for text in listed for piece in pieces(text)):
                    length += WEIGHTS[field]
                    for term in terms(piece):
                        counted[term] += WEIGHTS[field]
            self.weights[node.id], self.lengths[node.id] = counted, length

    def ranked(self, text: str, passing: Iterable[str] | None = None) -> list[str]:
        """Return the ids that a text finds among those that pass, best first."""
        words = self._words(text)
        known = [word for word in words if self._holders(word)]
        if not known or 2 * len(known) < len(words):
            return []
        rarest = self._worth_of(1)
        if 2 * sum(map(self._worth, known)) < (len(words) - len(known)) * rarest:
            return []
        among = set(self.weights if passing is None else passing)
        found = self._all_of(known, among)
        if not found and len(known) > 1:
            wider = [self._wider(word) for word in known] if len(words) <= 8 else known
            if wider != known:
                found = self._all_of(wider, among)
                known = wider if found else known
        if not found and len(known) > 1:
            most = 2 * sum(map(self._worth, known))
            found = [
                id_ for id_ in among if 3 * sum(self._worth(word) for word in known if self._weight(id_, word)) >= most
            ]
        exact = normal(text.strip())
        names = words[0].terms if len(words) == 1 and name_of(words[0].text) else ()
        return sorted(
            found,
            key=lambda id_: (
                not ((len(id_) == len(text.strip()) and normal(id_) == exact) or normal(id_) in names),
                -sum(self._points(id_, word) for word in known),
                id_,
            ),
        )

    def _all_of(self, words: Sequence[Word], among: set[str]) -> list[str]:
        return [id_ for id_ in among if all(self._weight(id_, word) for word in words)]

    def _words(self, text: str) -> list[Word]:
        found: dict[str, dict[str, int]] = {}
        last = ""
        for piece in pieces(text):
            if spelled := self._as_name(piece):
                [last] = wholes(piece)
                found.setdefault(last, spelled)
                continue
            for run in runs(piece):
                for part in parts(run):
                    own = {term: 4 for term in (*wholes(piece), *wholes(run)) if term != part}
                    found[part] = {**found.get(part, {part: 2}), **own}
                    last = part
        listed = []
        for at, (part, own) in enumerate(found.items()):
            has_digit = any(one in DIGITS for one in part)
            word = Word(part, own, part if part == last and len(part) > 1 and not has_digit else "")
            if not self._holders(word):
                if at == len(found) - 1 and has_digit:
                    word = Word(part, {}, part)
                elif near := self._near(part):
                    word = Word(part, near, "", is_corrected=True)
            elif word.beginning and self._holders(word) <= 10 and not self._holders(Word(part, word.terms, "")):
                near = {term: 1 for term in self._near(part) if not term.startswith(part)}
                word = Word(part, {**near, **word.terms}, word.beginning, is_corrected=bool(near))
            listed.append(word)
        return listed

    def _as_name(self, piece: str) -> dict[str, int]:
        name = name_of("".join(wholes(piece)))
        ids = [name_of(normal(id_)) for id_ in self.weights]
        if not name or name[0] not in [one[0] for one in ids if one]:
            return {}
        kind, number = name
        zeros = [f"{kind}{'0' * count}{number.lstrip('0') or '0'}" for count in range(8)]
        return {**{one: 2 for one in zeros if len(one) <= len(kind) + 8}, kind + number: 4}

    def _wider(self, word: Word) -> Word:
        if word.is_corrected or not (near := self._near(word.text)):
            return word
        return Word(word.text, {**near, **word.terms}, word.beginning)

    def _near(self, word: str) -> dict[str, int]:
        if len(typed(word)) < 4 or any(one in DIGITS for one in word):
            return {}
        everything = {term for counted in self.weights.values() for term in counted}
        near = [term for term in everything if not any(one in DIGITS for one in term) and is_a_typo_away(word, term)]
        near.sort(key=lambda term: (-sum(term in counted for counted in self.weights.values()), term))
        return dict.fromkeys(near[:12], 1)

    def _weight(self, id_: str, word: Word) -> int:
        counted = self.weights[id_]
        found = [factor * counted[term] for term, factor in word.terms.items() if term in counted]
        if word.beginning:
            found += [count for term, count in counted.items() if term.startswith(word.beginning)]
        return max(found, default=0)

    def _holders(self, word: Word) -> int:
        return sum(self._weight(id_, word) > 0 for id_ in self.weights)

    def _worth(self, word: Word) -> int:
        return self._worth_of(self._holders(word))

    def _worth_of(self, holders: int) -> int:
        return math.floor(1e6 * math.log(1 + (len(self.weights) - holders + 0.5) / (holders + 0.5)))

    def _points(self, id_: str, word: Word) -> int:
        weight = self._weight(id_, word)
        mean = sum(self.lengths.values()) / len(self.lengths)
        bounded = weight + SATURATION * (1.0 - LENGTHS + LENGTHS * self.lengths[id_] / mean)
        return math.floor(self._worth(word) * (weight * (SATURATION + 1.0) / bounded)) if weight else 0


class Word:
    """A word that was asked for: the terms that stand for it with their factors, and what others begin with."""

    def __init__(self, text: str, terms_: dict[str, int], beginning: str, *, is_corrected: bool = False) -> None:
        self.text, self.terms, self.beginning, self.is_corrected = text, terms_, beginning, is_corrected


def is_a_typo_away(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, change or swap of neighbours makes one word the other, as it is typed."""
    return is_one_away(one, other) or is_one_away(typed(one), typed(other))


def typed(word: str) -> str:
    """Return what a word is typed with: for a syllable of Hangul its two or three letters."""
    return unicodedata.normalize("NFD", word)


def is_one_away(one: str, other: str) -> bool:
    """Tell whether one insertion, deletion, change or swap of neighbours makes one text the other."""
    if one == other or abs(len(one) - len(other)) > 1:
        return False
    if len(one) > len(other):
        one, other = other, one
    if len(one) < len(other):
        return any(other[:at] + other[at + 1 :] == one for at in range(len(other)))
    differ = [at for at in range(len(one)) if one[at] != other[at]]
    if len(differ) == 1:
        return True
    is_pair = len(differ) == 2 and differ[1] == differ[0] + 1
    return is_pair and one[differ[0]] == other[differ[1]] and one[differ[1]] == other[differ[0]]
