"""Messages for characters that are no token of KIP: which they are, and what KIP has in their place."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

import msgspec

from kbcore import limits
from kbcore.text.escaping import escape_controls, in_quotes

_ESCAPE: Final = re.compile(r'\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})|(\\[\s\S]?)')
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_NUMBER_LIKE: Final = re.compile(r"[-+]?[.]?[0-9]")
_LONG_NAME: Final = re.compile(r"[?:]?[A-Za-z_]\w*", re.ASCII)
_STRANGE: Final = re.compile(r"[^\x00-\x7f]")
_SIGNS: Final = {
    "=": "`=` is `==` in KIP.",
    "&": "`&` is `&&` in KIP.",
    "/": "A comment begins with `//`.",
    "#": "A comment begins with `//`.",
    ";": "Leave out the `;`: a command ends with its text, and several are sent as a batch.",
    "*": "KIP has no `*`; name what is meant by a variable, as in FIND(?n) and COUNT(?n).",
    "-": 'KIP does not calculate: a negative number has no blank after its sign; `NOW("-1d")` moves the time.',
    "+": "KIP does not calculate here; UPDATE has ADD(…) and MUL(…).",
    "%": "KIP has no `%`; use CONTAINS, STARTS_WITH, ENDS_WITH or REGEX for parts of a text.",
    "?": "A variable is `?` directly followed by a name, such as ?task.",
    ".": "A path has no blanks, and each of its names begins with a letter: ?task.attributes.status.",
    "$": 'Names such as "$self" are texts: put them in double quotes.',
    "`": 'Texts are written in double quotes: "…".',
    "\\": "A `\\` is allowed only inside of a text in quotes.",
}
_OTHER_QUOTES: Final = (
    "\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb\u2039\u203a\u300c\u300d\uff02\uff07"
)


class BadToken(msgspec.Struct, frozen=True):
    """The fault of characters that are no token: a remedy, a message if better than what was expected, an offset."""

    hint: str
    message: str = ""
    offset: int = 0


def bad_token(word: str, expected: Sequence[str]) -> BadToken:
    """Explain characters that are no token, in a place where ``expected`` was allowed."""
    strange = _STRANGE.search(word)
    if word[0] == '"':
        return _bad_string(word)
    if word[0] == "'":
        return BadToken('Texts are written in double quotes: "…".')
    if word == "/*":
        return BadToken("KIP has only // comments, which end with their line.")
    if word[0] in "*+" and "`|`" in expected:
        return BadToken('A path of several links is written with their number: "…"{1,3}.')
    if word[0] in "-.$" and "`:`" in expected:
        return BadToken("A key with other signs than letters, digits and _ is written in double quotes.")
    if word == "=" and "`:`" in expected:
        return BadToken("Write `:` between key and value.")
    if strange:
        return _strange(strange)
    return _misshapen(word) or BadToken(_SIGNS.get(word[0], ""))


def _misshapen(word: str) -> BadToken | None:
    """Explain what is nearly a number, a name or a path."""
    if _NUMBER_LIKE.match(word):
        hint = "Write it as JSON does: 7, -1.5, 2e3; no leading zero, no plus, digits on both sides of the point."
        return BadToken(hint, f"{in_quotes(word[:40])} is no number")
    if _LONG_NAME.fullmatch(word):
        hint = f"Names have at most {limits.MAX_NAME_CHARS} characters."
        return BadToken(hint, f"The name `{word[:40]}…` is too long")
    if word[0] == "?" and word.count(".") > limits.MAX_DEPTH:
        return BadToken(f"Take a path of at most {limits.MAX_DEPTH} names.", "The path is too long")
    if word[0] == "?" and "." in word:
        return BadToken(_SIGNS["."])
    if ord(word[0]) < ord(" "):
        shown = escape_controls(word[0])
        return BadToken("Send the text without it.", f"A control character ({shown}) is outside of a text")
    return None


def _bad_string(word: str) -> BadToken:
    for found in _ESCAPE.finditer(word):
        if found[1] and found.end() < len(word):
            hint = r"Write a backslash as \\; escapes are \" \\ \/ \b \f \n \r \t and \u with four hex digits."
            return BadToken(hint, f"`{escape_controls(found[1])}` begins no escape", found.start())
    control = _CONTROL.search(word)
    if control:
        raw = {"\t": r"\t", "\0": ""}.get(control[0], f"\\u{ord(control[0]):04x}")
        hint = f"Write it as `{raw}`." if raw else "Leave it out: no text of KB contains a NUL."
        name = {"\t": "tab", "\0": "NUL"}.get(control[0], "control character")
        return BadToken(hint, f"A text contains a raw {name}", control.start())
    return BadToken("Close the quote on its line; write a line break as `\\n`.", "A text opens here and is not closed")


def _strange(found: re.Match[str]) -> BadToken:
    character, offset = found[0], found.start()
    name = unicodedata.name(character, "").lower()
    coded = f"U+{ord(character):04X}{f' ({name})' if name else ''}"
    if character == "\ufeff":
        return BadToken("Save the text without it.", "A byte order mark (U+FEFF) is here", offset)
    if character in _OTHER_QUOTES:
        return BadToken('Texts are written in straight double quotes: "…".', f"{coded} is no quote of KIP", offset)
    if unicodedata.category(character) in {"Zs", "Zl", "Zp", "Cf"} or character == "\x85":
        hint = "Use a space, a tab or a plain line break; in a text, it is allowed as it is."
        return BadToken(hint, f"{coded} is no blank of KIP", offset)
    hint = "Names are letters, digits and _ of ASCII; everything else is written in double quotes."
    return BadToken(hint, f"{coded} is only allowed inside of a text in quotes", offset)
