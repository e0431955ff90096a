"""Messages for an unexpected token: what was expected, what was found, and one remedy.

Only failures come here, so that nothing of it costs a command that can be parsed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from kbcore.errors import KipRefused
from kbcore.kip.errors import SYNTAX, refused
from kbcore.kip.grammar import KEYWORDS
from kbcore.kip.parsing.bad_tokens import bad_token
from kbcore.kip.places import place_of
from kbcore.kip.reference import nearest_form
from kbcore.text.escaping import escape_controls
from kbcore.text.suggest import nearest
from kbcore.text.wording import one_of, shortened

_SHOWN_CHARS: Final = 40
_GUESSED_CHARS: Final = 3
"""A shorter word is like too many keywords."""
_CLOSERS: Final = {"{": "}", "[": "]", "(": ")"}
_VALUES: Final = frozenset({"plain", "string", "number", "parameter", "path", "name", "true", "false", "null"})
_VARIABLES: Final = ("a variable", "a path", "a handle")
NO_VALUES: Final = frozenset({"none", "nil", "undefined", "nan"})
"""Names of other languages for nothing, in small letters."""
_OTHER_WORDS: Final = {
    "and": "`&&` joins conditions that must all hold.",
    "or": "`||` joins conditions of which one must hold.",
    "not": "In a condition, write `!`; as a clause, write NOT { … }.",
    "select": "KIP asks with FIND(?n) WHERE { … }.",
    "match": "KIP asks with FIND(?n) WHERE { … }.",
    "get": "KIP asks with FIND(?n) WHERE { … }.",
    "return": "What is answered is written in FIND(…), at the beginning.",
    "insert": "KIP writes with UPSERT { CONCEPT ?x { {type: …, name: …} } }.",
    "create": "KIP writes with UPSERT { CONCEPT ?x { {type: …, name: …} } }.",
    "remove": "KIP removes with DELETE CONCEPT, PROPOSITIONS, ATTRIBUTES or METADATA.",
    "drop": "KIP removes with DELETE CONCEPT, PROPOSITIONS, ATTRIBUTES or METADATA.",
    "show": "KIP lists what there is with DESCRIBE PRIMER, DESCRIBE DOMAINS or DESCRIBE CONCEPT TYPES.",
    "offset": "KIP pages with LIMIT and CURSOR; the cursor is the next_cursor of the page before.",
    "skip": "KIP pages with LIMIT and CURSOR; the cursor is the next_cursor of the page before.",
    "group": "KIP groups by the plain expressions next to an aggregate in FIND.",
    "having": "KIP has no HAVING; filter what is asked for, or what was answered.",
    "like": 'Use CONTAINS(?n.name, "…"), STARTS_WITH, ENDS_WITH or REGEX.',
    "is": "Use IS_NULL(?n.attributes.key) or IS_NOT_NULL(…).",
    **dict.fromkeys(NO_VALUES, "JSON has no such value; write `null`."),
}
"""Words of other languages, and what KIP has in their place."""


class TokensRead(Protocol):
    """The tokens of a command as far as they were read: what ``lexer.Tokens`` has, which calls this module."""

    text: str
    kinds: list[str]
    words: list[str]
    ats: list[int]
    openers: list[int]
    i: int
    kind: str

    @property
    def word(self) -> str:
        """The current token as it is written."""

    @property
    def at(self) -> int:
        """The offset of the current token."""


def syntax_fault(tokens: TokensRead, expected: Sequence[str], hint: str) -> KipRefused:
    """Return the refusal of the current token, without its line.

    ``expected`` are the forms that are allowed there, signs and keywords in back quotes; ``hint`` is the remedy that
    the caller knows, for when the token itself tells none that is more exact.
    """
    bad = bad_token(tokens.word, expected) if tokens.kind == "bad" else None
    sentence = f"Expected {one_of(expected)}, found {_found(tokens)}"
    if bad and bad.message:
        sentence = bad.message
    remedy = (bad.hint if bad else "") or _remedy_of(tokens, expected, hint) or nearest_form(tokens.kinds[: tokens.i])
    return refused(SYNTAX, f"{sentence}.", at=tokens.at + (bad.offset if bad else 0), expected=expected, hint=remedy)


def _found(tokens: TokensRead) -> str:
    kind, word = tokens.kind, tokens.word
    shown = escape_controls(shortened(word, _SHOWN_CHARS))
    if kind == "end":
        return "the end of the command"
    what = {"plain": "the text ", "string": "the text ", "number": "the number ", "parameter": "the placeholder "}
    return f"{what[kind]}{shown}" if kind in what else f"`{shown}`"


def _remedy_of(tokens: TokensRead, expected: Sequence[str], hint: str) -> str:
    if tokens.kind == "end":
        return _still_open(tokens) or hint
    if tokens.kind == "[" and tokens.i and tokens.kinds[tokens.i - 1] == "path":
        return "A path is written with dots: ?x.attributes.key."
    if tokens.kind in ")]}":
        return _misfit(tokens) or hint
    keywords = [form.strip("`") for form in expected if form.strip("`") in KEYWORDS]
    if tokens.kind in KEYWORDS and hint:
        return hint
    if sentence := _other_word(tokens, keywords, hint) or hint:
        return sentence
    if tokens.kind == "name" and any(form.startswith(_VARIABLES) for form in expected):
        return f"A variable begins with a question mark: ?{tokens.word}."
    if "`,`" in expected and tokens.kind in _VALUES:
        return "Put a comma in front of it."
    is_closer_missing = tokens.kind in KEYWORDS and any(form.strip("`") in ")]}" for form in expected)
    return _still_open(tokens) if is_closer_missing else ""


def _other_word(tokens: TokensRead, keywords: Sequence[str], hint: str) -> str:
    """Return the remedy for a word that is nearly a keyword that is allowed there, or that of another language."""
    word = tokens.word
    is_name = tokens.kind == "name"
    if is_name and word.upper() in keywords:
        return f"Write the keyword in capitals: {word.upper()}."
    if is_name and word.lower() in keywords:
        return f"Write it in small letters: {word.lower()}."
    if is_name and word.lower() in _OTHER_WORDS:
        return hint or _OTHER_WORDS[word.lower()]
    is_guessed = len(word) >= _GUESSED_CHARS and (is_name or tokens.kind in KEYWORDS)
    near = nearest(word, keywords) if is_guessed else ""
    return f"Did you mean {near}?" if near else ""


def _opener(tokens: TokensRead) -> tuple[str, str]:
    """Return the innermost sign that is still open, and words for where it is."""
    number = tokens.openers[-1]
    return tokens.words[number], f"the `{tokens.words[number]}` of {place_of(tokens.text, tokens.ats[number])}"


def _still_open(tokens: TokensRead) -> str:
    if not tokens.openers:
        return ""
    sign, words = _opener(tokens)
    return f"Close {words} with `{_CLOSERS[sign]}`."


def _misfit(tokens: TokensRead) -> str:
    """Return the remedy for a closing sign that does not fit the one that is open."""
    if not tokens.openers:
        return f"Remove the `{tokens.kind}`: nothing is open that it could close."
    sign, words = _opener(tokens)
    return f"T{words[1:]} closes with `{_CLOSERS[sign]}`." if _CLOSERS[sign] != tokens.kind else ""
