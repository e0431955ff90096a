"""KIP text to tokens: kinds, words and offsets side by side, and the cursor that the parser moves over them.

Every text becomes tokens, in linear time: what is no token of KIP is one of the kind ``bad``, which nothing accepts, so
that the first fault that a reader meets is the one that is reported.
"""

from __future__ import annotations

import re
from typing import Final

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.kip.errors import RESOURCE, SYNTAX, placed, refused
from kbcore.kip.grammar import KEYWORDS
from kbcore.kip.parsing.faults import syntax_fault

# Names have at most 100 characters (``limits.MAX_NAME_CHARS``), paths 32 parts (``limits.MAX_DEPTH``) after their
# variable. A blank is a space, a tab or a line break, whichever system's; a comment ends with its line.
_WORDY: Final = r"[^\x00-/:-@\[-^`{-\x7f]"
"""A character of names, or one beyond ASCII, which is never the end of a name. Written as what it is not, it compiles
in a tenth of the time."""
_TOKEN: Final = re.compile(
    r"""
    (?:[ \t\r\n]++|//[^\r\n]*+)*+
    (?: ( [A-Za-z_]\w{0,99}+ (?!@) )                                                       # 1 a word
      | ( [?][A-Za-z_]\w{0,99}+ (?: [.][A-Za-z_]\w{0,99}+ ){0,31}+ (?![.]|@) )             # 2 a variable, a path
      | ( [{}()\[\],] | [=!<>]= | && | [|][|] | [<>!|] | : (?![A-Za-z_]) )                 # 3 a sign
      | ( "[^"\\\x00-\x1f]*+" )                                                            # 4 a string without escapes
      | ( " (?: [^"\\\x00-\x1f]++ | \\ (?: ["\\/bfnrt] | u[0-9A-Fa-f]{4} ) )*+ " )         # 5 a string with escapes
      | ( -? (?: 0 | [1-9][0-9]*+ ) (?: [.][0-9]++ )? (?: [eE][+-]?[0-9]++ )? (?![.]|@) )  # 6 a number
      | ( :[A-Za-z_]\w{0,99}+ (?!@) )                                                      # 7 a placeholder
      | ( \Z )                                                                             # 8 the end
      | ( " (?: [^"\\\r\n]++ | \\[^\r\n]? )*+ "? | '[^'\r\n]*+'? | /[*]                    # 9 none of them
        | [?$:.+-]{0,3}+ @ (?: [.] | @ )*+ | . )
    )
    """.replace("@", _WORDY),
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_WORD, _SIGN, _END = 1, 3, 8
_KINDS: Final = ("", "name", "path", "sign", "plain", "string", "number", "parameter", "end", "bad")


class Tokens:
    """The tokens of one text and a place among them; ``kind`` is that of the current token.

    Kinds: a keyword or a sign is a kind of its own; else ``name``, ``path`` (also a variable alone), ``plain`` and
    ``string`` (quoted, without and with escapes), ``number``, ``parameter``, ``end`` and ``bad``.
    """

    __slots__ = ("ats", "i", "kind", "kinds", "openers", "text", "tried", "tried_at", "words")

    def __init__(self, text: str, *, most_bytes: int = limits.MAX_KIP_BYTES, lead: int = 0) -> None:
        """Split a text, of which so many blanks in front do not count.

        Raises: ``KipRefused`` where it is too long or no text at all.
        """
        check_text(text, most_bytes, lead)
        self.text = text
        self.kinds: list[str] = []
        self.words: list[str] = []
        self.ats: list[int] = []
        self.openers: list[int] = []
        """The numbers of the tokens that opened what is not closed yet."""
        self.tried: list[str] = []
        """Tokens that were tried at ``tried_at`` and did not match."""
        self.tried_at = -1
        for found in _TOKEN.finditer(text):
            group = found.lastindex or _END
            word = found[group]
            if group == _WORD:
                kind = word if word in KEYWORDS else "name"
            else:
                kind = word if group == _SIGN else _KINDS[group]
            self.kinds.append(kind)
            self.words.append(word)
            self.ats.append(found.start(group))
            if group == _END:
                break
        self.i = 0
        self.kind = self.kinds[0]

    @property
    def word(self) -> str:
        """Return the current token as it is written."""
        return self.words[self.i]

    @property
    def at(self) -> int:
        """Return the offset of the current token."""
        return self.ats[self.i]

    def advance(self) -> None:
        """Go to the next token; the current one is not the end."""
        self.i += 1
        self.kind = self.kinds[self.i]

    def accept(self, kind: str) -> bool:
        """Pass over the current token if it is of the kind; return whether it was."""
        if self.kind != kind:
            self._note_expected(kind)
            return False
        self.i += 1
        self.kind = self.kinds[self.i]
        return True

    def is_at(self, kind: str) -> bool:
        """Return whether the current token is of the kind; if not, an error here names it as allowed."""
        if self.kind != kind:
            self._note_expected(kind)
        return self.kind == kind

    def _note_expected(self, kind: str) -> None:
        if self.tried_at != self.i:
            self.tried_at = self.i
            self.tried = []
        self.tried.append(f"`{kind}`")

    def take(self, kind: str, *, hint: str = "") -> int:
        """Pass over a keyword or sign that is required here; return its offset. Raises: ``KipRefused``."""
        if self.kind != kind:
            raise self.unexpected(f"`{kind}`", hint=hint)
        at = self.ats[self.i]
        self.i += 1
        self.kind = self.kinds[self.i]
        return at

    def enter(self, sign: str, *, hint: str = "") -> int:
        """Pass over an opening sign that is required here; return its offset. Raises: ``KipRefused``."""
        if self.kind == sign and len(self.openers) >= limits.MAX_KIP_DEPTH:
            message = f"The command is nested deeper than {limits.MAX_KIP_DEPTH} levels."
            raise self.placed(refused(RESOURCE, message, at=self.at, hint="Make it flatter, or split it."))
        at = self.take(sign, hint=hint)
        self.openers.append(self.i - 1)
        return at

    def leave(self, sign: str, *, hint: str = "") -> None:
        """Pass over a closing sign that is required here. Raises: ``KipRefused``."""
        if self.kind != sign:
            raise self.unexpected(f"`{sign}`", hint=hint)
        self.openers.pop()
        self.i += 1
        self.kind = self.kinds[self.i]

    def colon(self) -> None:
        """Pass over a colon after a key; in ``{key:true}`` it begins no placeholder. Raises: ``KipRefused``."""
        if self.kind == "parameter":
            word = self.word[1:]
            self.words[self.i] = word
            self.ats[self.i] += 1
            self.kind = self.kinds[self.i] = word if word in KEYWORDS else "name"
        else:
            self.take(":", hint="Write `:` between key and value.")

    def unexpected(self, *expected: str, hint: str = "") -> KipRefused:
        """Return the refusal of the current token.

        ``expected`` are the forms that were allowed there, besides those that were tried with ``accept``.
        """
        tried = self.tried if self.tried_at == self.i else []
        return self.placed(syntax_fault(self, tuple(dict.fromkeys([*tried, *expected])), hint))

    def wrong(self, message: str, *, hint: str, at: int | None = None) -> KipRefused:
        """Return the refusal of what is well-formed and not allowed there."""
        return self.placed(refused(SYNTAX, message, at=self.at if at is None else at, hint=hint))

    def placed(self, error: KipRefused) -> KipRefused:
        """Return a refusal with its line and column."""
        return placed(error, self.text)


def check_text(text: str, most_bytes: int = limits.MAX_KIP_BYTES, lead: int = 0) -> None:
    """Raise what makes a text none that can be split at all. Raises: ``KipRefused``."""
    try:
        length = len(text.encode()) - lead
    except UnicodeEncodeError as error:
        hint = "Send whole Unicode characters; JSON writes one beyond U+FFFF as a pair of escapes."
        fault = refused(SYNTAX, "The text contains half of a surrogate pair", at=error.start, hint=hint)
        raise placed(fault, text) from None
    if length > most_bytes:
        message = f"The command has {length} bytes; the limit is {most_bytes}."
        raise refused(RESOURCE, message, hint="Split it into several commands, or pass long texts as parameters.")
