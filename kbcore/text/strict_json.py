"""JSON text to typed values, with the line of every member and every fault in words.

Stricter than the standard library: duplicate keys, NaN, numbers beyond 64 bits and half surrogates are
faults. Where a fault leaves no doubt (a comment, a comma too many or too few), reading goes on, so that all
is reported.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, NoReturn

from kbcore import limits
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree, duplicate_key

_SPACE: Final = re.compile(r"[ \t\n]*")
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_PLAIN_STRING: Final = re.compile(r'"([ !#-\[\]-~]*)"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+-])")
_WORD: Final = re.compile(r"[\w.+$-]+")
_VALUES: Final = {"true": True, "false": False, "null": None}
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_DECODER: Final = json.JSONDecoder()
_LARGEST: Final = 2**63 - 1
_MAX_DIGITS: Final = 40
_STRING_FAULTS: Final = (
    ("Unterminated", "a quote opens here and is never closed", "Close the quote."),
    (
        "control character",
        "a text in quotes holds a line break or another control character",
        'Close the quote on its line; write a line break as "\\n".',
    ),
    ("escape", "a `\\` in a text begins no escape that JSON knows", "Double it; in paths, use `/`."),
)


def read(text: str) -> TextTree:
    """Return the values of a JSON text, whose line breaks are line feeds.

    A text that cannot be read to its end gives a tree without a root; each problem says where.
    """
    reader = _Reader(text)
    try:
        root = reader.document()
    except json.JSONDecodeError:
        # The reader raises it only to leave the recursion: what is wrong stands in the problems already.
        return TextTree(None, {}, reader.problems, is_complete=False)
    return TextTree(root, reader.places, reader.problems, is_complete=not reader.problems)


class _Reader:
    """One pass over one text; ``at`` is the position of the next character."""

    __slots__ = ("at", "counted", "has_comments", "line", "nodes", "places", "problems", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.counted = 0
        self.nodes = 0
        self.has_comments = False
        self.places: dict[int, Any] = {}
        self.problems: list[FileProblem] = []

    def here(self) -> int:
        """Return the line of the current position."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def wrong(self, code: str, message: str, hint: str, line: int | None = None) -> None:
        column = self.at - self.text.rfind("\n", 0, self.at) if line is None else 0
        self.keep(FileProblem(self.here() if line is None else line, code, message, hint, column=column))

    def keep(self, problem: FileProblem) -> None:
        self.problems.append(problem)
        if len(self.problems) > limits.MAX_PROBLEMS:
            raise json.JSONDecodeError(problem.message, "", 0)

    def stop(self, message: str, hint: str, line: int | None = None) -> NoReturn:
        self.wrong("invalid_json", f"not valid JSON: {message}", hint, line)
        raise json.JSONDecodeError(message, "", 0)

    def next(self) -> str:
        """Pass over space and comments, and return the next character, or nothing at the end."""
        while True:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            character = self.text[self.at : self.at + 1]
            comment = _COMMENT.match(self.text, self.at) if character in {"/", "#"} else None
            if comment is None:
                return character
            if not self.has_comments:
                self.wrong("invalid_json", "JSON has no comments", "Remove this comment and any other.")
            self.has_comments = True
            self.at = comment.end()

    def document(self) -> Any:
        if not self.next():
            self.stop("the file is empty", "Write at least `{}`.")
        root = self.value(1)
        if self.next():
            self.stop("something follows the end of the value", "Remove it, or mend the brackets above it.")
        return root

    def value(self, depth: int) -> Any:
        """Read the value that begins at the current position, which is no space."""
        self.nodes += 1
        if self.nodes > limits.MAX_YAML_NODES:
            self.stop(f"there are more than {limits.MAX_YAML_NODES} values", "Make the file smaller.")
        character = self.text[self.at : self.at + 1]
        if character == '"':
            return self.string()
        if character in {"{", "["}:
            if depth > limits.MAX_DEPTH:
                self.stop(f"it is nested deeper than {limits.MAX_DEPTH} levels", "Make the structure flatter.")
            return self.mapping(depth) if character == "{" else self.sequence(depth)
        number = _NUMBER.match(self.text, self.at)
        return self.number(number) if number else self.word()

    def string(self) -> str:
        plain = _PLAIN_STRING.match(self.text, self.at)
        if plain:
            self.at = plain.end()
            return plain[1]
        try:
            text, end = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = min(error.pos, len(self.text))
            for key, message, hint in _STRING_FAULTS:
                if key in error.msg:
                    self.stop(message, hint)
            self.stop(error.msg, "Mend the text in quotes.")
        if "\0" in text or _HALF_PAIR.search(text):
            message = "a text holds a NUL or half of a surrogate pair"
            self.wrong("bad_text", message, "Write whole characters.")
        self.at = end
        return str(text)

    def number(self, found: re.Match[str]) -> int | float | None:
        text = found[0]
        value: int | float | None = None
        if found[1] or found[2]:
            value = float(text)
        elif len(text) <= _MAX_DIGITS:
            value = int(text)
        if value is None or not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST):
            self.wrong("bad_number", f"{text[:_MAX_DIGITS]} is larger than KB takes", "Write a smaller number.")
            value = None
        self.at = found.end()
        return value

    def word(self) -> Any:
        found = _WORD.match(self.text, self.at)
        if found is None:
            character = self.text[self.at : self.at + 1]
            if not character:
                self.stop("the file ends where a value should stand", "Close every bracket and quote.")
            hint = 'Use double quotes: "text".' if character in "'`\u201c\u201d" else "Put text in double quotes."
            self.stop(f"{character!a} begins no value", hint)
        word = found[0]
        if word not in _VALUES:
            near = word.lower() if word.lower() in _VALUES else {"None": "null"}.get(word)
            hint = f"Write `{near}`." if near else 'Write a number, true, false, null or "text".'
            self.wrong("invalid_json", f"`{word[:_MAX_DIGITS]}` is no value that JSON knows", hint)
        self.at = found.end()
        return _VALUES.get(word)

    def sequence(self, depth: int) -> list[Any]:
        values: list[Any] = []
        lines: list[int] = []
        opened = self.here()
        self.at += 1
        while self.goes_on("]", opened, is_first=not lines):
            lines.append(self.here())
            values.append(self.value(depth + 1))
        self.places[id(values)] = lines
        return values

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        opened = self.here()
        self.at += 1
        is_first = True
        while self.goes_on("}", opened, is_first=is_first):
            is_first = False
            line = self.here()
            key = self.key()
            value = self.value(depth + 1)
            if key in values:
                self.keep(duplicate_key(key, lines[key], line))
            else:
                values[key] = value
                lines[key] = line
        self.places[id(values)] = lines
        return values

    def key(self) -> str:
        """Read a key and its colon, and go to its value."""
        word = _WORD.match(self.text, self.at)
        if self.text[self.at] == '"':
            key = self.string()
        elif word:
            key = word[0]
            self.wrong("invalid_json", f"the key `{key[:_MAX_DIGITS]}` has no quotes", "Put keys in double quotes.")
            self.at = word.end()
        else:
            self.stop(f"{self.text[self.at]!a} begins no key", 'Keys stand in double quotes: {"key": 1}.')
        if self.next() != ":":
            self.stop(
                f"there is no `:` after the key {in_quotes(key[:_MAX_DIGITS])}", "Write `:` between key and value."
            )
        self.at += 1
        self.next()
        return key

    def goes_on(self, closer: str, opened: int, *, is_first: bool) -> bool:
        """Go to the next member of a list or object and tell whether there is one; else pass over its end."""
        character = self.next()
        if character == "," and not is_first:
            comma_line = self.here()
            self.at += 1
            character = self.next()
            if character == closer:
                self.wrong("invalid_json", f"a comma stands before `{closer}`", "Remove the comma.", comma_line)
        elif character and character not in "]}" and not is_first:
            self.wrong("invalid_json", "a comma is missing before this", "Put a comma behind the value before it.")
        if not character:
            self.stop(
                f"the bracket that opens in line {opened} is never closed",
                f"Close it with `{closer}`.",
                opened,
            )
        if character == closer:
            self.at += 1
            return False
        if character in "]},":
            self.stop(f"`{character}` does not belong here", f"The bracket of line {opened} closes with `{closer}`.")
        return True
