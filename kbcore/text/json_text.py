"""JSON to the same plain values as YAML, with lines: numbers, ``true`` and ``false`` are text as typed.

A fault ends the reading; what stands before it is kept, and is known to be incomplete.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

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
_STRING: Final = re.compile(rf'"((?:{_PLAIN}++|\\.)*+)"')
_WORD: Final = re.compile(_TYPED, re.ASCII)
_CLOSERS: Final = {"[": "]", "{": "}"}

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
_AFTER: Final = re.compile(rf"{_SPACES}(?:(,){_SPACES})?+")
"""What separates a member from the next one, or from the end."""


def read(text: str) -> TextTree:
    """Return the values of a JSON text; a fault of it is a problem of the tree."""
    reader = _Reader(text)
    root = reader.value(1) if reader.peek() else None
    if reader.fault is None and reader.peek():
        reader.fail("something follows the end of the JSON value", "Keep one value in the file.")
    problems = [*reader.problems, *([reader.fault] if reader.fault else [])]
    return TextTree(root, reader.places, problems, not problems, reader.lossy, is_small(text))


class _Reader:
    """One pass over a text. Once ``fault`` is set, every method returns what it has."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counted = (0, 1)
        self.nodes = 0
        self.keys: dict[str, str] = {}
        """Each key once: all objects that have it share its text."""
        self.places: dict[int, Any] = {}
        self.lossy: set[int] = set()
        self.problems: list[FileProblem] = []
        self.fault: FileProblem | None = None

    def peek(self) -> str:
        """Return the next character that is no space, or nothing at the end."""
        character = self.text[self.at : self.at + 1]
        if character in {" ", "\t", "\n", "\r"}:
            found = _SPACE.match(self.text, self.at)
            self.at = found.end() if found else self.at
            return self.text[self.at : self.at + 1]
        return character

    def line(self) -> int:
        before, line = self.counted
        line += self.text.count("\n", before, self.at)
        self.counted = (self.at, line)
        return line

    def fail(self, message: str, hint: str) -> None:
        if self.fault is None:
            line, column = place(self.text, self.at)
            self.fault = FileProblem(line, CODE, f"not valid JSON: {message}", hint, column=column)

    def value(self, depth: int) -> Any:
        character = self.peek()
        self.nodes += 1
        if self.nodes > limits.MAX_YAML_NODES:
            self.fail(f"there are more than {limits.MAX_YAML_NODES} values", "Split the file.")
        elif character == '"':
            return self.string()
        elif character and character in "[{":
            if depth <= limits.MAX_DEPTH:
                return self.container(character, depth)
            self.fail(f"it is nested deeper than {limits.MAX_DEPTH} levels", "Make the structure flatter.")
        else:
            found = _WORD.match(self.text, self.at)
            if found:
                self.at = found.end()
                return None if found[0] == "null" else found[0]
            self.fail(
                "a value is missing here" if character in "]},:" else "this is no JSON value",
                "Correct the line.",
            )
        return None

    def string(self) -> str | None:
        found = _STRING.match(self.text, self.at)
        if found is None:
            self.fail("a string is not closed on its line, or holds a control character", 'Close it with `"`.')
            return None
        value = found[1]
        if "\\" in value:
            try:
                value = str(json.loads(found[0]))
                value.encode()
            except ValueError:
                self.fail("a string holds an escape that stands for no character", "Mend the `\\`.")
                return None
        self.at = found.end()
        return value

    def container(self, opener: str, depth: int) -> dict[str, Any] | list[Any]:
        closer = _CLOSERS[opener]
        members: dict[str, Any] | list[Any] = {} if opener == "{" else []
        lines: dict[str, int] | list[int] = {} if opener == "{" else []
        self.places[id(members)] = lines
        self.at += 1
        if self.peek() == closer:
            self.at += 1
            return members
        while self.fault is None and not self.plain_members(members, lines, depth):
            self.peek()
            self.member(members, lines, depth)
            if self.fault is None and not self.follows(closer):
                break
        if self.fault is not None:
            self.lossy.add(id(members))
        return members

    def plain_members(self, members: Any, lines: Any, depth: int) -> bool:
        """Read members that one expression matches, up to the first one that it does not; tell if it was the last."""
        text, at, (counted, line) = self.text, self.at, self.counted
        is_list = isinstance(members, list)
        match = _PLAIN_ITEM.match if is_list else _PLAIN_MEMBER.match
        is_last, left = False, limits.MAX_YAML_NODES - self.nodes
        while left > 0 and not is_last and (found := match(text, at)):
            key, value, word, closer, opener = found.groups()
            line += text.count("\n", counted, at)
            counted, at, is_last, left = at, found.end(), closer is not None, left - 1
            of_member = line
            if opener is not None:
                self.at, self.counted, self.nodes = at, (counted, line), limits.MAX_YAML_NODES - left - 1
                value = self.value(depth + 1)
                is_last = self.fault is not None or not self.follows("]" if is_list else "}")
                at, (counted, line), left = self.at, self.counted, limits.MAX_YAML_NODES - self.nodes
                if value is None:  # a limit ended the reading before it
                    break
            elif value is None and word != "null":
                value = word
            if is_list:
                members.append(value)
                lines.append(of_member)
            elif key in members:
                self.problems.append(duplicate_key(key, lines[key], of_member))
            else:
                key = self.keys.setdefault(key, key)
                members[key], lines[key] = value, of_member
        self.at, self.counted, self.nodes = at, (counted, line), limits.MAX_YAML_NODES - left
        return is_last

    def follows(self, closer: str) -> bool:
        """Step over what stands behind a member; tell whether another one must follow."""
        found = _AFTER.match(self.text, self.at)
        is_parted = False
        if found:
            self.at, is_parted = found.end(), found[1] is not None
        character = self.text[self.at : self.at + 1]
        if is_parted:
            if character == closer:
                self.fail(f"a comma stands before `{closer}`", "Remove the comma.")
            return True
        if character == closer:
            self.at += 1
            return False
        self.fail(f"`,` or `{closer}` is missing here", "Correct the line, or the one before it.")
        return False

    def member(self, members: dict[str, Any] | list[Any], lines: dict[str, int] | list[int], depth: int) -> None:
        line = self.line()
        if isinstance(members, list):
            value = self.value(depth + 1)
            if self.fault is None or isinstance(value, dict | list):
                members.append(value)
                lines.append(line)  # type: ignore[union-attr] # lines has the shape of members
            return
        key = self.string() if self.peek() == '"' else None
        if not key:
            self.fail("a key is missing here", 'Write `"key": value`.')
        elif self.peek() != ":":
            self.fail(f"`:` is missing behind the key {in_quotes(key[:40])}", 'Write `"key": value`.')
        else:
            self.at += 1
            value = self.value(depth + 1)
            if key in members:
                self.problems.append(duplicate_key(key, lines[key], line))  # type: ignore[call-overload]
            elif self.fault is None or isinstance(value, dict | list):
                members[key] = value
                lines[key] = line  # type: ignore[call-overload]
