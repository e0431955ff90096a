"""JSON text to values with their place: one reader, in three ways.

``read`` gives typed values and every fault: where one leaves no doubt (a comment, a comma too many or too few), reading
goes on, so that all is reported. It is stricter than the standard library: duplicate keys, NaN, numbers beyond 64 bits
and half surrogates are faults. ``read_plain`` gives the values that YAML gives, numbers, ``true`` and ``false`` as
typed; a fault ends the reading, and what comes before it is kept. ``read_spans`` gives the place of each member of a
file that is to be edited, with comments and with commas after the last member.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final, Literal, NamedTuple, NoReturn

from kbcore import limits
from kbcore.text.decoding import place
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree, duplicate_key, is_small

CODE: Final = "invalid_json"

_SPACES: Final = r"[ \t\n\r]*+"
_PLAIN: Final = r"[^\"\\\x00-\x1f]"
_TYPED: Final = r"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])"

_SPACE: Final = re.compile(_SPACES)
_SKIPPED: Final = frozenset(" \t\n\r/#")
"""The first characters of space and comments."""
_COMMENT: Final = re.compile(r"//[^\r\n]*|/\*.*?\*/|#[^\r\n]*", re.DOTALL)
_STRING: Final = re.compile(r'"([^"\\\x00-\x1f\ud800-\udfff]*+)"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?(?![\w.+-])")
_WORD: Final = re.compile(r"[\w.+$-]+")
_NAMED: Final = {"true": True, "false": False, "null": None}
_NOT_FINITE: Final = {word: float(word) for word in ("NaN", "Infinity", "-Infinity")}
"""They may be in a file that is edited: programs write and read them."""
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_DECODER: Final = json.JSONDecoder()
_LARGEST: Final = 2**63 - 1
_MAX_DIGITS: Final = 40
_MAX_EDITED_DEPTH: Final = 100
_STRING_FAULTS: Final = (
    ("Unterminated", "a quote opens here and is never closed", "Close the quote."),
    (
        "control character",
        "a text in quotes holds a line break or another control character before it is closed",
        'Close the quote on its line; write a line break as "\\n".',
    ),
    ("escape", "a `\\` in a text begins no escape that JSON knows", "Double it; in paths, use `/`."),
)

_PLAIN_VALUE: Final = rf'(?:"({_PLAIN}*+)"|({_TYPED})){_SPACES}'
_PLAIN_MEMBER: Final = re.compile(
    rf'"({_PLAIN}++)"{_SPACES}:{_SPACES}(?:{_PLAIN_VALUE}(?:,{_SPACES}(?!\}})|(\}}))|(?=([\[{{])))', re.ASCII
)
"""A member of an object whose key and value need no look at each character, and what follows; of a member whose value
is a container, what comes before that.

Nearly all members are like this. Whatever this does not match, a fault too, is read step by step.
"""
_PLAIN_ITEM: Final = re.compile(rf"(){_PLAIN_VALUE}(?:,{_SPACES}(?!\])|(\]))|(?=([\[{{]))", re.ASCII)
"""The same for an item of a list; the first group, where the key would be, is empty."""

Span = tuple[int, int]
"""From the first character of a value up to the one after its last."""


class ObjectSpan(NamedTuple):
    """The place of an object, and of the value of each member."""

    start: int
    end: int
    members: dict[str, Span]


class SpannedText(NamedTuple):
    """A text that is to be edited. ``spans`` maps the identity of each object in it to its place."""

    root: Any
    span: Span
    spans: dict[int, ObjectSpan]


class NotJson(Exception):
    """The text is no JSON. ``line`` and ``column``, from 1, are where it stops being any."""

    def __init__(self, line: int, column: int, why: str) -> None:
        self.line, self.column = line, column
        super().__init__(why)


def read(text: str) -> TextTree:
    """Return the typed values of a JSON text, whose line breaks are line feeds.

    A text that cannot be read to its end gives a tree without a root; each problem says where.
    """
    reader = _Reader(text, "typed")
    try:
        root = reader.document()
    except _Stopped:
        return TextTree(None, {}, reader.problems, is_complete=False)
    return TextTree(root, reader.places, reader.problems, is_complete=not reader.problems)


def read_plain(text: str) -> TextTree:
    """Return the values of a JSON text as typed; a fault is the last problem, and what lacks a member is ``lossy``."""
    reader = _Reader(text, "plain")
    try:
        root = reader.document()
    except _Stopped:
        root = reader.partial
    return TextTree(root, reader.places, reader.problems, not reader.problems, reader.lossy, is_small(text))


def read_spans(text: str) -> SpannedText:
    """Return the value of a text that is to be edited, and the place of each member. Raises: ``NotJson``."""
    reader = _Reader(text, "spans")
    try:
        root = reader.document()
    except _Stopped:
        [problem] = reader.problems
        raise NotJson(problem.line, problem.column, problem.message) from None
    return SpannedText(root, reader.span, reader.spans)


class _Stopped(Exception):
    """Leaves the recursion: what is wrong is among the problems."""


class _Reader:
    """One pass over one text; ``at`` is the position of the next character."""

    __slots__ = (
        "at", "counted", "has_comments", "has_spans", "is_plain", "is_typed", "keys", "line", "lossy", "nodes",
        "partial", "places", "problems", "span", "spans", "text",
    )  # fmt: skip

    def __init__(self, text: str, mode: Literal["typed", "plain", "spans"]) -> None:
        self.text = text
        self.is_typed, self.is_plain, self.has_spans = mode == "typed", mode == "plain", mode == "spans"
        self.at = 0
        self.line = 1
        self.counted = 0
        self.nodes = 0
        self.has_comments = False
        self.keys: dict[str, str] = {}
        """Each key once: all objects that have it share its text."""
        self.places: dict[int, Any] = {}
        self.problems: list[FileProblem] = []
        self.lossy: set[int] = set()
        self.partial: Any = None
        """The outermost container that a fault has ended so far."""
        self.span = (0, 0)
        """The place of the outermost value."""
        self.spans: dict[int, ObjectSpan] = {}

    def here(self) -> int:
        """Return the line of the current position."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def wrong(self, code: str, message: str, hint: str, began: int | None = None) -> None:
        """Take note of a fault; only typed values are read on after it, and have it in the line where it began."""
        if began is not None and self.is_typed:
            self.keep(FileProblem(self.line_at(began), code, message, hint))
        else:
            line, column = place(self.text, self.at)
            self.keep(FileProblem(line, code, message, hint, column=column))
        if not self.is_typed:
            raise _Stopped

    def line_at(self, at: int) -> int:
        return place(self.text, at)[0]

    def keep(self, problem: FileProblem) -> None:
        self.problems.append(problem)
        if self.is_typed and len(self.problems) > limits.MAX_PROBLEMS:
            raise _Stopped

    def stop(self, message: str, hint: str, began: int | None = None) -> NoReturn:
        self.wrong(CODE, f"not valid JSON: {message}", hint, began)
        raise _Stopped

    def fault(self, message: str, hint: str, began: int | None = None) -> None:
        self.wrong(CODE, f"not valid JSON: {message}" if not self.is_typed else message, hint, began)

    def next(self) -> str:
        """Pass over space and comments, and return the next character, or nothing at the end."""
        while (character := self.text[self.at : self.at + 1]) in _SKIPPED:
            if character not in {"/", "#"}:
                found = _SPACE.match(self.text, self.at)
                self.at = found.end() if found else self.at
                continue
            if character == "#" and self.has_spans:
                break
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                break
            if not self.has_comments and not self.has_spans:
                self.fault("JSON has no comments", "Remove this comment and any other.")
            self.has_comments = True
            self.at = comment.end()
        return character

    def document(self) -> Any:
        if not self.next():
            if self.is_plain:
                return None
            self.stop("the file is empty", "Write at least `{}`.")
        start = self.at
        root = self.value(1)
        self.span, self.partial = (start, self.at), root
        if self.next():
            self.stop("something follows the end of the value", "Remove it, or correct the brackets above it.")
        return root

    def value(self, depth: int) -> Any:
        """Read the value that begins at the current position, which is no space."""
        self.nodes += 1
        if self.nodes > limits.MAX_YAML_NODES and not self.has_spans:
            self.stop(f"there are more than {limits.MAX_YAML_NODES} values", "Make the file smaller.")
        character = self.text[self.at : self.at + 1]
        if character == '"':
            return self.string()
        if character in {"{", "["}:
            most = _MAX_EDITED_DEPTH if self.has_spans else limits.MAX_DEPTH
            if depth > most:
                self.stop(f"it is nested deeper than {most} levels", "Make the structure flatter.")
            return self.container(character, depth)
        number = _NUMBER.match(self.text, self.at)
        return self.number(number) if number else self.word()

    def string(self) -> str:
        plain = _STRING.match(self.text, self.at)
        if plain:
            self.at = plain.end()
            return plain[1]
        try:
            text, end = _DECODER.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            if self.is_typed:
                self.at = min(error.pos, len(self.text))
            for key, message, hint in _STRING_FAULTS:
                if key in error.msg:
                    self.stop(message, hint)
            self.stop(error.msg, "Correct the text in quotes.")
        if self.is_typed and ("\0" in text or _HALF_PAIR.search(text)):
            self.wrong("bad_text", "a text holds a NUL or half of a surrogate pair", "Write whole characters.")
        elif self.is_plain and _HALF_PAIR.search(text):
            self.stop("an escape in a text is half of a surrogate pair", "Write whole characters.")
        self.at = end
        return str(text)

    def number(self, found: re.Match[str]) -> Any:
        text = found[0]
        value: Any = None
        if self.is_plain:
            value = text
        elif found[1] or found[2] or (self.has_spans and len(text) > _MAX_DIGITS):
            value = float(text)
        elif len(text) <= _MAX_DIGITS:
            value = int(text)
        if self.is_typed and (value is None or not math.isfinite(value) or _is_too_large(value)):
            self.wrong("bad_number", f"{text[:_MAX_DIGITS]} is larger than KB allows", "Write a smaller number.")
            value = None
        self.at = found.end()
        return value

    def word(self) -> Any:
        found = _WORD.match(self.text, self.at)
        if found is None:
            character = self.text[self.at : self.at + 1]
            if not character:
                self.stop("the file ends where a value is expected", "Close every bracket and quote.")
            hint = 'Use double quotes: "text".' if character in "'`\u201c\u201d" else "Put text in double quotes."
            missing = "a value is missing here: " if character in "]},:" else ""
            self.stop(f"{missing}{character!a} begins no value", hint)
        word = found[0]
        if word not in _NAMED and not (self.has_spans and word in _NOT_FINITE):
            near = word.lower() if word.lower() in _NAMED else {"None": "null"}.get(word)
            hint = f"Write `{near}`." if near else 'Write a number, true, false, null or "text".'
            self.fault(f"`{word[:_MAX_DIGITS]}` is no value that JSON knows", hint)
        self.at = found.end()
        if self.is_plain:
            return None if word == "null" else word
        return _NAMED.get(word, _NOT_FINITE.get(word) if self.has_spans else None)

    def container(self, opener: str, depth: int) -> Any:
        """Read a list or an object, up to its end."""
        start = self.at
        closer = "]" if opener == "[" else "}"
        members: Any = [] if opener == "[" else {}
        lines: Any = [] if opener == "[" else {}
        spans: dict[str, Span] = {}
        self.places[id(members)] = lines
        self.at += 1
        self.partial = None
        try:
            if self.goes_on(closer, start, is_first=True):
                while not (self.is_plain and self.plain_members(members, lines, depth, start)):
                    self.member(members, lines, spans, depth)
                    if not self.goes_on(closer, start):
                        break
        except _Stopped:
            self.lossy.add(id(members))
            self.partial = members
            raise
        if self.has_spans and opener == "{":
            self.spans[id(members)] = ObjectSpan(start, self.at, spans)
        return members

    def plain_members(self, members: Any, lines: Any, depth: int, start: int) -> bool:
        """Read members that one expression matches, up to the first one that it does not; tell if it was the last."""
        text, at, counted, line = self.text, self.at, self.counted, self.line
        is_list = isinstance(members, list)
        match = _PLAIN_ITEM.match if is_list else _PLAIN_MEMBER.match
        closer = "]" if is_list else "}"
        is_last, left = False, limits.MAX_YAML_NODES - self.nodes
        while left > 0 and not is_last and (found := match(text, at)):
            key, value, word, end, opener = found.groups()
            line += text.count("\n", counted, at)
            counted, at, is_last, left = at, found.end(), end is not None, left - 1
            if opener is not None:
                self.at, self.counted, self.line, self.nodes = at, counted, line, limits.MAX_YAML_NODES - left - 1
                self.nested(members, lines, key, line, depth)
                is_last = not self.goes_on(closer, start)
                at, counted, line, left = self.at, self.counted, self.line, limits.MAX_YAML_NODES - self.nodes
                continue
            if value is None and word != "null":
                value = word
            if is_list:
                members.append(value)
                lines.append(line)
            elif key in members:
                self.keep(duplicate_key(key, lines[key], line))
            else:
                key = self.keys.setdefault(key, key)
                members[key], lines[key] = value, line
        is_moved = at != self.at
        self.at, self.counted, self.line, self.nodes = at, counted, line, limits.MAX_YAML_NODES - left
        return is_last or (is_moved and not self.goes_on(closer, start, is_first=True))

    def member(self, members: Any, lines: Any, spans: dict[str, Span], depth: int) -> None:
        line = self.here()
        if isinstance(members, list):
            self.nested(members, lines, "", line, depth)
            return
        start = self.at
        key = self.key()
        if self.has_spans and key in members:
            self.at = start
            self.stop(duplicate_key(key, lines[key], line).message, "Keep one of the two.")
        start = self.at
        self.nested(members, lines, key, line, depth)
        spans[key] = (start, self.at)

    def nested(self, members: Any, lines: Any, key: str, line: int, depth: int) -> None:
        """Read a value and put it into its container; of a container that a fault ends, what was read of it."""
        try:
            value = self.value(depth + 1)
        except _Stopped:
            if self.partial is not None and isinstance(members, list):
                members.append(self.partial)
                lines.append(line)
            elif self.partial is not None and key not in members:
                members[key], lines[key] = self.partial, line
            raise
        if isinstance(members, list):
            members.append(value)
            lines.append(line)
        elif key in members:
            self.keep(duplicate_key(key, lines[key], line))
        else:
            key = self.keys.setdefault(key, key)
            members[key], lines[key] = value, line

    def key(self) -> str:
        """Read a key and its colon, and go to its value."""
        word = _WORD.match(self.text, self.at)
        if self.text[self.at] == '"':
            key = self.string()
            if not key and self.is_plain:
                self.stop("a key is missing here", 'Write `"key": value`.')
        elif word:
            key = word[0]
            self.fault(f"the key `{key[:_MAX_DIGITS]}` has no quotes", "Put keys in double quotes.")
            self.at = word.end()
        else:
            self.stop(f"{self.text[self.at]!a} begins no key", 'Keys are written in double quotes: {"key": 1}.')
        if self.next() != ":":
            named = in_quotes(key[:_MAX_DIGITS])
            self.stop(f"there is no `:` after the key {named}", "Write `:` between key and value.")
        self.at += 1
        self.next()
        return key

    def goes_on(self, closer: str, start: int, *, is_first: bool = False) -> bool:
        """Go to the next member of a list or object and tell whether there is one; else pass over its end."""
        character = self.next()
        if character == "," and not is_first:
            comma = self.at
            self.at += 1
            character = self.next()
            if character == closer and not self.has_spans:
                self.fault(f"there is a comma before `{closer}`", "Remove the comma.", comma)
        elif character and character not in "]}" and not is_first:
            self.fault(f"a comma is missing before this, or `{closer}`", "Put a comma after the value before it.")
        if not character:
            message = f"the bracket that opens in line {self.line_at(start)} is never closed: `{closer}` is missing"
            self.stop(message, f"Close it with `{closer}`.", start)
        if character == closer:
            self.at += 1
            return False
        if character in "]},":
            hint = f"The bracket of line {self.line_at(start)} closes with `{closer}`."
            self.stop(f"`{character}` does not belong here", hint)
        return True


def _is_too_large(value: float) -> bool:
    return isinstance(value, int) and abs(value) > _LARGEST
