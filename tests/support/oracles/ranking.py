"""The results of a text search and their order, computed slowly from plain values: BM25 as FTS5 has it."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kbcore.model.graph import Node
from kbcore.text.word_forms import LIGHT_WORDS, STOP_WORDS, stem

WEIGHTS = {"id": 8, "title": 5, "tags": 4, "attributes": 2, "body": 1}
JOINTS = "-_.:@"
DIGITS = "0123456789"
SATURATION, LENGTHS = 1.2, 0.75
FILLERS = 50


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
    """Yield the parts of a word: letters, single joints between them, and ``+`` or ``#`` after them."""
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
    found = {*wholes(piece), *(normal(one) for one in piece if is_wide(one)), *name_in_front(piece), *versions(piece)}
    found |= {*unhyphenated(piece)}
    for run in runs(piece):
        found |= {*wholes(run), *parts(run)}
    return found - {""}


def name_of(piece: str) -> tuple[str, str] | None:
    """Return a numbered name in two: the text before its number, and the number; None for another piece."""
    digits = len(piece) - len(piece.rstrip(DIGITS))
    kind = piece[: len(piece) - digits]
    is_one = digits and len(kind) > 1 and kind[-1] in JOINTS and not any(one in DIGITS for one in kind)
    return (kind, piece[len(kind) :]) if is_one else None


def name_in_front(piece: str) -> list[str]:
    """Return the numbered name that a longer piece begins with, as a term."""
    cuts = (piece[:at] for at, one in enumerate(piece) if one in JOINTS)
    return [term for cut in cuts if name_of(cut) for term in wholes(cut)]


def unhyphenated(piece: str) -> list[str]:
    """Return two words of letters with a hyphen between them as the term of one word."""
    before, hyphen, after = piece.partition("-")
    return wholes(before + after) if hyphen and before.isalpha() and after.isalpha() else []


def versions(piece: str) -> list[str]:
    """Return the dotted numbers in a piece, each between other joints or the ends, without a ``v`` before it."""
    plain = "".join(" " if one in "-_:@+#" else one for one in piece)
    found = [one[1:] if one[0] in "vV" else one for one in plain.split(" ") if one]
    return [one for one in found if "." in one and all(part and set(part) <= set(DIGITS) for part in one.split("."))]


def version_of(piece: str) -> str:
    """Return the numbers of a piece that is a version as a whole; "" of another one."""
    found = versions(piece)
    return found[0] if found and piece in {found[0], f"v{found[0]}", f"V{found[0]}"} else ""


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
                    found = terms(piece)
                    length += len(found)
                    counted.update(dict.fromkeys(found, WEIGHTS[field]))
            self.weights[node.id], self.lengths[node.id] = counted, length

    def ranked(self, text: str, passing: Iterable[str] | None = None) -> dict[str, float]:
        """Return the ids that a text finds among those that pass, best first, with what each of them counts."""
        words = self._words(text)
        known = [word for word in words if self._holders(word.loose)]
        if self._is_hopeless(words, known):
            return {}
        among = set(self.weights if passing is None else passing)
        is_question = is_question_of(text)
        found = {} if is_question else self._all_or_heavy(known, among)
        if not found and len(known) > 1 and not is_question:
            wider = [self._wider(word) for word in known] if len(words) <= 8 else known
            if wider != known:
                found = self._all_or_heavy(wider, among)
        if not found and (is_question or len(known) > 1):
            heavy = [word for word in known if not word.is_light] or known
            rare = [word for word in heavy if 5 * self._holders(word.loose) <= len(self.weights)] or heavy
            scores = {id_: score for id_ in among if (score := self._sum(id_, rare))}
            best = max(scores.values(), default=0)
            found = {id_: score for id_, score in scores.items() if score >= 0.5 * best}
        exact = normal(text.strip())
        joined = [
            one
            for piece in pieces(text)
            if not is_question and not self._as_name(piece) and len(runs(piece)) > 1
            for one in wholes(version_of(piece) or piece)
        ]
        names = words[0].exact if len(words) == 1 and name_of(words[0].text) else []

        def is_it(id_: str) -> bool:
            return (len(id_) == len(text.strip()) and normal(id_) == exact) or normal(id_) in names

        def place(id_: str) -> tuple[bool, bool, float, str]:
            holds_joined = any(self._weight(id_, one) for one in joined)
            return not is_it(id_), not holds_joined, -found[id_], id_

        return {id_: found[id_] for id_ in sorted(found, key=place)}

    def _sum(self, id_: str, words: Sequence[Word]) -> float:
        """Return what the words count that an entity holds, less the more of what all of them are worth it lacks."""
        total = held = whole = 0.0
        for word in words:
            own = self._worth(self._holders(word.loose))
            rarest = max([own, *(self._worth(self._holders([one])) for one in word.loose)])
            whole += own
            if any(self._weight(id_, one) for one in word.loose):
                held += own
                total += min(1.0, own / rarest) * self._score(id_, word.loose)
        return total * (0.4 + 0.6 * held / whole)

    def _is_hopeless(self, words: Sequence[Word], known: Sequence[Word]) -> bool:
        reported = [self._rarity(self._holders(word.loose)) for word in known]
        rarest = self._rarity(1)
        is_little = 2 * len(known) < len(words) or 2 * sum(reported) < (len(words) - len(known)) * rarest
        return not known or (is_little and max(reported) < rarest / 2)

    def _all_or_heavy(self, words: Sequence[Word], among: set[str]) -> dict[str, float]:
        heavy = [word for word in words if not word.is_light]
        return self._whole(words, among) or (self._whole(heavy, among) if heavy else {})

    def _whole(self, words: Sequence[Word], among: set[str]) -> dict[str, float]:
        """Return the scores of what holds all of these words, a form of them, or what begins with the last one."""
        exact = [self._holders(word.exact) for word in words]
        loose = [self._holders(word.loose) for word in words]
        phrases = [one for word in words for one in word.loose]
        found = {
            id_: self._score(id_, phrases)
            for id_ in among
            if all(any(self._weight(id_, one) for one in word.loose) for word in words)
        }
        if not all(exact) or exact == loose:
            return found
        rarest = [
            min([count, *(self._holders([form]) for form in word.forms)])
            for word, count in zip(words, exact, strict=True)
        ]
        share = 0.8 * min(1.0, sum(map(self._worth, exact)) / sum(map(self._worth, rarest)))
        phrases = [one for word in words for one in word.exact]
        held = [id_ for id_ in found if all(any(self._weight(id_, one) for one in word.exact) for word in words)]
        own = {id_: self._score(id_, phrases) for id_ in held}
        return {id_: max(share * score, own.get(id_, 0.0)) for id_, score in found.items()}

    def _words(self, text: str) -> list[Word]:
        found: dict[str, list[str]] = {}
        last = ""
        for piece in pieces(text):
            if spelled := self._as_name(piece):
                [last] = wholes(piece)
                found.setdefault(last, spelled)
                continue
            version = version_of(piece)
            for at, run in enumerate(runs(version or piece)):
                with_v = [f"v{run}"] if version and at == 0 else []
                for part in parts(run):
                    own = [
                        *found.get(part, [part]),
                        *wholes(version or piece),
                        *wholes(run),
                        *with_v,
                        *unhyphenated(piece),
                    ]
                    found[part] = list(dict.fromkeys(own))
                    last = part
        has_others = any(part not in STOP_WORDS | LIGHT_WORDS for part in found)
        last_part = [*found][-1]
        if has_others:
            found = {part: own for part, own in found.items() if part not in STOP_WORDS}
        words = [
            self._settled(part, own, is_last=part == last, is_end=part == last_part) for part, own in found.items()
        ]
        for word in words:
            word.is_light = has_others and word.text in LIGHT_WORDS
        return [word for word in words if not word.is_light or self._holders(word.loose)]

    def _settled(self, part: str, own: list[str], *, is_last: bool, is_end: bool) -> Word:
        has_digit = any(one in DIGITS for one in part)
        word = Word(part, own, part if is_last and len(part) > 1 and not has_digit else "")
        if not has_digit:
            word.forms = [
                term
                for term in sorted(self._everything())
                if term != part and stem(term) == stem(part) and not (word.beginning and term.startswith(part))
            ]
        if not self._holders(word.loose):
            if is_end and has_digit:
                return Word(part, [], part)
            near = self._near(part)
            return Word(part, near, "", is_corrected=True) if near else word
        if word.beginning and not word.forms and self._holders(word.loose) <= 10 and not self._holders(word.exact):
            near = [term for term in self._near(part) if not term.startswith(part)]
            return Word(part, own, part, is_corrected=bool(near), also=near)
        return word

    def _as_name(self, piece: str) -> list[str]:
        name = name_of("".join(wholes(piece)))
        ids = [name_of(normal(id_)) for id_ in self.weights]
        if not name or name[0] not in [one[0] for one in ids if one]:
            return []
        kind, number = name
        zeros = [f"{kind}{'0' * count}{number.lstrip('0') or '0'}" for count in range(8)]
        return list(dict.fromkeys([kind + number, *(one for one in zeros if len(one) <= len(kind) + 8)]))

    def _wider(self, word: Word) -> Word:
        near = [] if word.is_corrected else [term for term in self._near(word.text) if term not in word.forms]
        if not near:
            return word
        wider = Word(word.text, word.own, word.beginning, also=[*word.also, *near])
        wider.forms, wider.is_light = word.forms, word.is_light
        return wider

    def _near(self, word: str) -> list[str]:
        if len(typed(word)) < 4 or any(one in DIGITS for one in word):
            return []
        near = [
            term for term in self._everything() if not any(one in DIGITS for one in term) and is_a_typo_away(word, term)
        ]
        near.sort(key=lambda term: (-self._holders([term]), term))
        return sorted(near[:12])

    def _everything(self) -> set[str]:
        return {term for counted in self.weights.values() for term in counted}

    def _weight(self, id_: str, phrase: str) -> int:
        counted = self.weights[id_]
        if phrase.endswith("*"):
            return sum(count for term, count in counted.items() if term.startswith(phrase[:-1]))
        return counted[phrase]

    def _holders(self, phrases: Iterable[str]) -> int:
        listed = list(phrases)
        return sum(any(self._weight(id_, one) for one in listed) for id_ in self.weights)

    def _worth(self, holders: int) -> float:
        return max(1e-6, math.log((len(self.weights) + FILLERS - holders + 0.5) / (holders + 0.5)))

    def _rarity(self, holders: int) -> float:
        return math.log(1 + (len(self.weights) - holders + 0.5) / (holders + 0.5))

    def _score(self, id_: str, phrases: Iterable[str]) -> float:
        mean = (sum(self.lengths.values()) + FILLERS * 30) / (len(self.lengths) + FILLERS)
        score = 0.0
        for one in phrases:
            weight = float(self._weight(id_, one))
            bounded = weight + SATURATION * (1 - LENGTHS + LENGTHS * self.lengths[id_] / mean)
            score += self._worth(self._holders([one])) * ((weight * (SATURATION + 1.0)) / bounded)
        return score


class Word:
    """A word that was asked for: the terms that stand for it, what others begin with, and its other forms."""

    def __init__(
        self,
        text: str,
        own: list[str],
        beginning: str,
        *,
        is_corrected: bool = False,
        also: Sequence[str] = (),
    ) -> None:
        self.text, self.own, self.beginning, self.is_corrected = text, own, beginning, is_corrected
        self.also = list(also)
        self.forms: list[str] = []
        self.is_light = False

    @property
    def exact(self) -> list[str]:
        return [*self.own, *self.also]

    @property
    def loose(self) -> list[str]:
        begins = self.beginning
        listed = [
            *((one, False) for one in self.own),
            *([(f"{begins}*", True)] if begins else []),
            *((one, False) for one in (*self.also, *self.forms)),
        ]
        return [one for one, is_beginning in listed if is_beginning or not (begins and one.startswith(begins))]


def is_question_of(text: str) -> bool:
    """Tell whether a text has at least four words that tell something, a name of several parts being one."""
    telling = {
        piece.lower()
        for piece in pieces(text)
        if {part for run in runs(piece) for part in parts(run)} - STOP_WORDS - LIGHT_WORDS
    }
    return len(telling) >= 4


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
