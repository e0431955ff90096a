r"""The words of a text: the one place where text is split, an entity's or a query's. Pure.

A *piece* is a sequence of letters, digits and marks, joined by single ``- _ . : @`` of any width, with ``+`` or ``#``
at its end (``REQ-7``, ``createPlan``, ``C++``). A *run* is a piece between two joints, and its *parts* are the words
that a name is made of (``create`` and ``plan``). Scripts that are written without spaces have no parts: there each
character, and each pair of neighbours, is a term, as is each symbol such as an emoji. Terms are in small letters
without accents. Ligatures, letters of full width and other compatibility forms are read as what they stand for. The
numbers of a version are one term as well, in a longer piece too (``1.10.2`` in ``v1.10.2-rc1``). So are two words
with a hyphen, written as one (``email`` for ``e-mail``).
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import Final

NUMBERED: Final = re.compile(r"([^0-9]+[-_.:@])([0-9]+)")
"""A term that is a numbered name: what comes before the number, and the number."""

_WIDE: Final = (
    "\u0e00-\u0e4e\u0e50-\u0e59\u0e80-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc-\u17ff"
    "\u2190-\u245f\u24eb-\u2bff\u3005-\u3007\u3021-\u302f\u3031-\u303c\u3040-\u309f\u30a1-\u30fa"
    "\u30fc-\u31bf\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U0001f000-\U0001f0ff"
    "\U0001f150-\U0001fbff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese; arrows, dingbats and emoji."""
_LETTER: Final = (
    "0-9A-Za-z\u00aa\u00b2\u00b3\u00b5\u00b9\u00ba\u00bc-\u00be\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u037d"
    "\u037f-\u0386\u0388-\u0559\u0560-\u0588\u0591-\u05bd\u05bf\u05c1-\u05f2\u0610-\u061a\u0620-\u0669"
    "\u066e-\u06d3\u06d5-\u06ff\u070f-\u0963\u0966-\u096f\u0971-\u0df3\u0f00-\u0fff\u10a0-\u10fa"
    "\u10fc-\u135f\u1369-\u166d\u166f-\u169a\u16a0-\u16ea\u16ee-\u1734\u1740-\u177f"
    "\u180b-\u1fff\u2070-\u209f\u20d0-\u218f\u2460-\u24ea\u2c00-\u2dff\ua000-\ud7ff\ufb00-\ufdcf"
    "\ufdf0-\ufdff\ufe20-\ufe2f\ufe70-\ufefe\uff10-\uff19\uff21-\uff3a\uff41-\uff5a"
    f"\uffa0-\uffdf\U00010000-\U0001afef\U0001b170-\U0001efff\U0001f100-\U0001f14f{_WIDE}"
)
"""Letters, digits, marks and symbols, by blocks. What is left out is punctuation, space and what cannot be seen."""
_RUN: Final = f"[{_LETTER}]+"
_JOINTS: Final = "-_.:@"
_WIDE_JOINTS: Final = "\uff0d\uff0e\uff1a\uff20\uff3f"
_ODD: Final = (
    "\u00aa\u00b2\u00b3\u00b5\u00b9\u00ba\u00bc-\u00be\u0132\u0133\u013f\u0140\u0149\u017f\u01c4-\u01cc"
    "\u01f1-\u01f3\u02b0-\u02b8\u02e0-\u02e4\u03d0-\u03d6\u03f0-\u03f9\u0587\u0675-\u0678\u10fc"
    "\u1d2c-\u1dbf\u1e9a\u1e9b\u2070-\u209c\u2100-\u2189\u2460-\u24ea\u2c7c\u2c7d\u2d6f"
    "\u3131-\u318e\u3192-\u319f\u3200-\u33ff\ua69c\ua69d\ua770\ua7f2-\ua7f9\uab5c-\uab69"
    "\ufb00-\ufdfc\ufe70-\uffdc\U00010781-\U000107ba\U0001d400-\U0001d7ff\U0001ee00-\U0001eebb\U0001f100-\U0001f190"
    "\U0001f200-\U0001f251\U0001fbf0-\U0001fbf9"
)
"""By blocks, the letters and digits that have a compatibility mapping. Thai, Lao and Tibetan vowels have one too, which
splits them: they stay as they are written."""

_PIECES: Final = re.compile(f"{_RUN}(?:[{_JOINTS}{_WIDE_JOINTS}]{_RUN})*[+#]*")
_ASCII_PIECES: Final = re.compile(rf"[A-Za-z0-9]+(?:[{_JOINTS}][A-Za-z0-9]+)*[+#]*")
_RUNS: Final = re.compile(_RUN)
_ODD_ONES: Final = re.compile(f"[{_ODD}]+")
_WIDE_ONE: Final = re.compile(f"[{_WIDE}]")
_WIDE_ONES: Final = re.compile(f"([{_WIDE}]+)")
_SHOWN: Final = re.compile(f"[{_WIDE}]|{_RUN}|[^{_LETTER}]+")
_HUMPS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_VERSION: Final = re.compile(r"(?:^|[-_:@])[vV]?([0-9]++(?:\.[0-9]++)++)(?![^-_:@+#])")
"""Numbers joined by dots within a piece, and what may be before them: ``1.10.2`` in ``v1.10.2-rc``."""
_HYPHENATED: Final = re.compile(r"([^\W\d_]++)-([^\W\d_]++)")
_NAME_IN_FRONT: Final = re.compile(rf"({NUMBERED.pattern})[-_.:@]")

_PLAIN: Final = dict.fromkeys(
    map(ord, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n\t\r,;!?()[]{}<>\"'`*/\\|=&%$^~")
)
"""A text of these characters alone holds no piece but plain words, which are their own terms unless they have humps."""
_HUMPED: Final = re.compile("[a-z][A-Z]|[A-Z]{2}[a-z]")
_SIMPLE_NAME: Final = re.compile("([A-Z]+|[A-Z]?[a-z]+)[-_.:@]([0-9]+)")
"""The form of most ids, whose terms are the whole and its two runs."""
_MOST_PIECES: Final = 100_000
"""The terms of so many pieces are remembered while an index is filled."""
_TOKEN: Final = str.maketrans({sign: chr(0xE000 + ord(sign)) for sign in f"{_JOINTS}+#"} | dict.fromkeys(_WIDE_JOINTS))
_TERM: Final = str.maketrans({chr(0xE000 + ord(sign)): sign for sign in f"{_JOINTS}+#"})


def read(text: str) -> str:
    """Return composed text with ligatures, full-width letters and the like as what they mean (NFKC)."""
    if text.isascii():
        return text
    return _ODD_ONES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), unicodedata.normalize("NFC", text))


def pieces(text: str) -> list[str]:
    """Return the pieces of a text that was ``read``, in order."""
    return (_ASCII_PIECES if text.isascii() else _PIECES).findall(text)


def runs(piece: str) -> list[str]:
    """Return the runs of a piece, in order."""
    return _RUNS.findall(piece)


def shown(text: str) -> list[str]:
    """Return all that a text is made of: words, single characters of wide scripts, and what is between."""
    return _SHOWN.findall(text)


def normal(text: str) -> str:
    """Return text as terms have it: small letters without accents, two of them for a sharp s, one form of sigma."""
    return text.lower() if text.isascii() else "".join(map(fold, text))


@lru_cache(maxsize=4096)
def fold(character: str) -> str:
    """Return one character as terms have it, which may be none or several."""
    plain = "".join(one for one in unicodedata.normalize("NFD", read(character)) if unicodedata.category(one)[0] != "M")
    return unicodedata.normalize("NFC", plain).lower().replace("\u00df", "ss").replace("\u03c2", "\u03c3")


def parts(text: str) -> list[str]:
    """Return the terms that all must be found where a run, or a piece, is asked for."""
    spaced = _HUMPS.sub(" ", text)
    if text.isascii():
        return [run.lower() for run in _RUNS.findall(spaced)]
    found: list[str] = []
    for run in _RUNS.findall(_WIDE_ONES.sub(r" \1 ", spaced)):
        plain = normal(run)
        is_pairs = len(plain) > 1 and _WIDE_ONE.match(run)
        found += [plain[at : at + 2] for at in range(len(plain) - 1)] if is_pairs else [plain]
    return [term for term in found if term]


def spellings(piece: str) -> dict[str, str]:
    """Return the words of a piece as they were typed, in small letters, by the term of each; none that is its own term.

    So an answer to ``Größe`` names ``größe``, and not of the term ``grosse``.
    """
    if piece.isascii():
        return {}
    runs_of = _RUNS.findall(_WIDE_ONES.sub(r" \1 ", _HUMPS.sub(" ", piece)))
    typed = {normal(run): run.lower() for run in [piece, *runs_of]}
    return {term: word for term, word in typed.items() if term != word}


def whole(text: str) -> list[str]:
    """Return the one term for all parts of a piece or a run; none in a wide script."""
    if text.isascii():
        return [text.lower()]
    plain = "" if _WIDE_ONE.search(text) else normal(text)
    return [plain] if plain else []


def version(piece: str) -> str:
    """Return the numbers of a piece that is a version (``1.10.2`` or ``v1.10.2``), "" of any other piece."""
    found = _VERSION.fullmatch(piece)
    return found[1] if found else ""


def unhyphenated(piece: str) -> list[str]:
    """Return the term of two words with a hyphen, as one word without it; none of any other piece."""
    found = _HYPHENATED.fullmatch(piece)
    return whole(found[1] + found[2]) if found else []


def all_terms(piece: str) -> list[str]:
    """Return the terms by which a piece is found, each once."""
    if piece.isascii() and piece.isalnum() and not _HUMPED.search(piece):
        return [piece.lower()]
    if simple := _SIMPLE_NAME.fullmatch(piece):
        return [piece.lower(), simple[1].lower(), simple[2]]
    name = _NAME_IN_FRONT.match(piece)
    wholes = [term for run in runs(piece) for term in whole(run)]
    characters = [normal(one) for one in _WIDE_ONE.findall(piece)] if not piece.isascii() else []
    in_front = whole(name[1]) if name else []
    others = (*in_front, *_VERSION.findall(piece), *unhyphenated(piece))
    found = dict.fromkeys((*whole(piece), *wholes, *parts(piece), *characters, *others))
    return [term for term in found if term]


class _Terms(dict[str, str]):
    """The terms of pieces as an index takes them, worked out once for each."""

    def __missing__(self, piece: str) -> str:
        if len(self) >= _MOST_PIECES:
            self.clear()
        found = self[piece] = " ".join(map(token, all_terms(piece)))
        return found


def indexer() -> _Terms:
    """Return what ``indexed`` remembers from text to text."""
    return _Terms()


def indexed(text: str, terms: _Terms) -> str:
    """Return a text as an index takes it in: its terms, between spaces or other signs of ASCII."""
    if not text.translate(_PLAIN) and (text.islower() or not _HUMPED.search(text)):
        return text
    return " ".join(map(terms.__getitem__, pieces(read(text))))


def token(term: str) -> str:
    """Return a term as an index keeps it, which takes all ASCII but letters and digits for separators."""
    return term if term.isalnum() else term.translate(_TOKEN)


def term_of(token: str) -> str:
    """Return the term that an index keeps as this."""
    return token if token.isascii() else token.translate(_TERM)


def has_digit(term: str) -> bool:
    """Tell whether a term has a digit of ASCII."""
    return any(one in "0123456789" for one in term)
