r"""What counts as a word, as SQL expressions: the one place where text is taken apart, an entity's or a query's.

A *piece* is what stands together in a text: letters, digits and marks, joined by single ``- _ . : @`` of any width,
with ``+`` or ``#`` at its end (``REQ-7``, ``createPlan``, ``C++``). A *run* is a piece between two joints, and its
*parts* are what a reader sees in it (``create`` and ``plan``). Scripts that are written without spaces have no parts:
there each character, and each two that stand side by side, is a term, as is each symbol such as an emoji. Terms are in
small letters without accents. Ligatures, letters of full width and other forms that Unicode has for the sake of older
standards are read as what they stand for.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_TERM_CHARS: Final = 64
"""A longer word is known by its beginning."""

PLAIN: Final = re.compile(r"[A-Za-z][a-z0-9]{0,63}|[0-9][a-z0-9]{0,63}")
"""Pieces whose one term is themselves in small letters, which most are: nobody need ask the database for it."""

NUMBERED: Final = re.compile(r"([^0-9]+[-_.:@])([0-9]+)")
"""A term that is a numbered name: what stands before the number, and the number."""

_WIDE: Final = (
    r"\x{E00}-\x{E4E}\x{E50}-\x{E59}\x{E80}-\x{EFF}\x{1000}-\x{1049}\x{1050}-\x{109F}\x{1780}-\x{17D3}\x{17D7}\x{17DC}-\x{17FF}"
    r"\x{2190}-\x{245F}\x{24EB}-\x{2BFF}\x{3005}-\x{3007}\x{3021}-\x{302F}\x{3031}-\x{303C}\x{3040}-\x{309F}\x{30A1}-\x{30FA}"
    r"\x{30FC}-\x{31BF}\x{31F0}-\x{9FFF}\x{F900}-\x{FAFF}\x{FF66}-\x{FF9F}\x{1AFF0}-\x{1B16F}\x{1F000}-\x{1F0FF}"
    r"\x{1F150}-\x{1FBFF}\x{20000}-\x{3FFFF}"
)
"""Thai, Lao, Burmese, Khmer, Japanese, Chinese; arrows, dingbats and emoji."""
_LETTER: Final = (
    r"0-9A-Za-z\x{AA}\x{B2}\x{B3}\x{B5}\x{B9}\x{BA}\x{BC}-\x{BE}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{37D}"
    r"\x{37F}-\x{386}\x{388}-\x{559}\x{560}-\x{588}\x{591}-\x{5BD}\x{5BF}\x{5C1}-\x{5F2}\x{610}-\x{61A}\x{620}-\x{669}"
    r"\x{66E}-\x{6D3}\x{6D5}-\x{6FF}\x{70F}-\x{963}\x{966}-\x{96F}\x{971}-\x{DF3}\x{F00}-\x{FFF}\x{10A0}-\x{10FA}"
    r"\x{10FC}-\x{135F}\x{1369}-\x{166D}\x{166F}-\x{169A}\x{16A0}-\x{16EA}\x{16EE}-\x{1734}\x{1740}-\x{177F}"
    r"\x{180B}-\x{1FFF}\x{2070}-\x{209F}\x{20D0}-\x{218F}\x{2460}-\x{24EA}\x{2C00}-\x{2DFF}\x{A000}-\x{D7FF}\x{FB00}-\x{FDCF}"
    r"\x{FDF0}-\x{FDFF}\x{FE20}-\x{FE2F}\x{FE70}-\x{FEFE}\x{FF10}-\x{FF19}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}"
    rf"\x{{FFA0}}-\x{{FFDF}}\x{{10000}}-\x{{1AFEF}}\x{{1B170}}-\x{{1EFFF}}\x{{1F100}}-\x{{1F14F}}{_WIDE}"
)
"""Letters, digits, marks and symbols, by blocks: the classes that Unicode has for them take milliseconds to prepare, in
every statement. What is left out is punctuation, space and what cannot be seen."""
_RUN: Final = rf"[{_LETTER}]+"
_WIDE_JOINT: Final = r"\x{FF0D}\x{FF0E}\x{FF1A}\x{FF20}\x{FF3F}"
_PIECE: Final = rf"{_RUN}(?:[-_.:@{_WIDE_JOINT}]{_RUN})*[+#]*"
_ODD: Final = (
    r"\x{AA}\x{B2}\x{B3}\x{B5}\x{B9}\x{BA}\x{BC}-\x{BE}\x{132}\x{133}\x{13F}\x{140}\x{149}\x{17F}\x{1C4}-\x{1CC}"
    r"\x{1F1}-\x{1F3}\x{2B0}-\x{2B8}\x{2E0}-\x{2E4}\x{3D0}-\x{3D6}\x{3F0}-\x{3F9}\x{587}\x{675}-\x{678}\x{10FC}"
    r"\x{1D2C}-\x{1DBF}\x{1E9A}\x{1E9B}\x{2070}-\x{209C}\x{2100}-\x{2189}\x{2460}-\x{24EA}\x{2C7C}\x{2C7D}\x{2D6F}"
    r"\x{3131}-\x{318E}\x{3192}-\x{319F}\x{3200}-\x{33FF}\x{A69C}\x{A69D}\x{A770}\x{A7F2}-\x{A7F9}\x{AB5C}-\x{AB69}"
    r"\x{FB00}-\x{FDFC}\x{FE70}-\x{FFDC}\x{10781}-\x{107BA}\x{1D400}-\x{1D7FF}\x{1EE00}-\x{1EEBB}\x{1F100}-\x{1F190}"
    r"\x{1F200}-\x{1F251}\x{1FBF0}-\x{1FBF9}"
)
"""By blocks, the letters and digits that have a compatibility mapping. Thai, Lao and Tibetan vowels have one too, which
takes them apart: they stay as they are written."""
_ODD_ONES: Final = re.compile(f"[{re.sub(r'x{([0-9A-F]+)}', lambda found: f'U{found[1]:0>8}', _ODD)}]+")
_SHOWN: Final = rf"[{_WIDE}]|{_RUN}|[^{_LETTER}]+"


def read(text: str) -> str:
    """Return text with ligatures, full-width letters and the like as what they stand for (NFKC)."""
    return text if text.isascii() else _ODD_ONES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def is_odd(text: str) -> str:
    """Return whether a text holds what is read as something else."""
    return f"regexp_matches({text}, '[{_ODD}]')"


def pieces(text: str) -> str:
    """Return the list of the pieces of a text, in order."""
    return f"regexp_extract_all({text}, '{_PIECE}')"


def runs(piece: str) -> str:
    """Return the list of the runs of a piece, in order."""
    return f"regexp_extract_all({piece}, '{_RUN}')"


def shown(text: str) -> str:
    """Return the list of all that a text is made of: words, single characters of wide scripts, and what is between."""
    return f"regexp_extract_all({text}, '{_SHOWN}')"


def normal(text: str) -> str:
    """Return text as terms have it: small letters without accents, two of them for a sharp s, one form of sigma."""
    return f"replace(replace(lower(strip_accents({text})), '\u00df', 'ss'), '\u03c2', '\u03c3')"


def parts(text: str) -> str:
    """Return the list of the terms that all must be found where a run, or a piece, is asked for."""
    split = f"regexp_replace({text}, '([a-z])([A-Z])', '\\1 \\2', 'g')"
    split = f"regexp_replace({split}, '([A-Z])([A-Z][a-z])', '\\1 \\2', 'g')"
    split = f"regexp_replace({split}, '([{_WIDE}]+)', ' \\1 ', 'g')"
    return _terms(
        f"flatten(list_transform(regexp_extract_all({split}, '{_RUN}'), lambda run: "
        f"case when {_is_wide('run')} and length({normal('run')}) > 1 then {_pairs(normal('run'))} else [run] end))"
    )


def whole(text: str) -> str:
    """Return the list of the one term that stands for all parts of a piece or a run; none in a wide script."""
    return f"case when {_is_wide(text)} then []::varchar[] else {_terms(f'[{text}]')} end"


def all_terms(piece: str) -> str:
    """Return the list of the terms by which a piece is found, each once."""
    wholes = f"flatten(list_transform({runs(piece)}, lambda run: {whole('run')}))"
    characters = _terms(f"regexp_extract_all({piece}, '[{_WIDE}]')")
    return f"list_distinct(flatten([{whole(piece)}, {wholes}, {parts(piece)}, {characters}, {_name_in_front(piece)}]))"


def is_numbered(text: str, name: str) -> str:
    """Return whether a text is a numbered name with ``name``, in the form of terms, before its number."""
    rest = f"substr({normal(text)}, length({name}) + 1)"
    return f"starts_with({normal(text)}, {name}) and regexp_full_match({rest}, '[0-9]+')"


def _name_in_front(piece: str) -> str:
    name = f"regexp_extract({piece}, '^({NUMBERED.pattern})[-_.:@]', 1)"
    return f"case when {_is_wide(name)} then []::varchar[] else {_terms(f'[{name}]')} end"


def _is_wide(text: str) -> str:
    return f"regexp_matches({text}, '[{_WIDE}]')"


def _pairs(run: str) -> str:
    characters = f"regexp_extract_all({run}, '.')"  # not by their places, each of which would be counted to
    return f"list_transform(list_zip({characters}[:-2], {characters}[2:]), lambda two: two[1] || two[2])"


def _terms(listed: str) -> str:
    """Return a list of texts as terms; what is nothing but marks is none."""
    term = f"substr({normal('one')}, 1, {MAX_TERM_CHARS})"
    return f"list_filter(list_transform({listed}, lambda one: {term}), lambda one: one <> '')"
