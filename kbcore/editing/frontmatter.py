"""Changes single keys in the front matter of a Markdown document and keeps every other byte. Pure.

Comments, order, quotation marks and line ends stay. What looks like a comment and is text of the old value is replaced
with it. What is not written in a plain way (a value over several lines, an anchor, a tag) is refused with its line.
Whoever calls checks by an extractor that the new text states what was meant.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from kbcore.text.yaml_text import comment_after, is_other_than_text

Scalar = str | int | float | bool
Value = Scalar | list[str]

_FENCE: Final = re.compile(r"---[ \t]*")
_CLOSING: Final = re.compile(r"(?:---|\.\.\.)[ \t]*")
_KEY: Final = re.compile(
    r"(?P<indent> *)(?P<key>[A-Za-z_][\w.-]*|\"[^\"\\]*\"|'[^']*')(?P<colon>[ ]*:)(?P<rest>(?:[ \t].*)?)"
)
_METADATA: Final = re.compile(r"[\"']?metadata[\"']?[ ]*:")
_ITEM: Final = re.compile(r"(?P<dash> *-[ ]+)(?P<rest>\S.*)")
_BLANK: Final = re.compile(r"[ \t]*(?:#.*)?")
_SCALAR: Final = re.compile(
    r"(?P<gap>[ \t]*+(?!#)|[ \t]*(?=[ \t]#))"
    r"(?P<value>\"(?:[^\"\\]|\\.)*+\"|'(?:[^']|'')*+'|\[[^\[\]{}#]*+\]"
    r"|(?:[^\s\"'\[\]{}|>&*!%@`#,?-]|-[^\s#])(?:[^ \t#]|(?<![ \t])#|[ \t]++(?=[^#]))*+)?"
    r"(?P<comment>[ \t]++#.*|[ \t]*+)"
)
"""A value on one line, as it is written. No part gives back what it took, so that it takes linear time."""
_PLAIN: Final = re.compile(r"[^\W_](?:[\w ./+()$~^;<>=@%*&!?|'\"-]|:(?! |$)|,(?=[^ ])|(?<=\S)#)*")
_IN_LIST: Final = re.compile(r"[^\W_][\w ./+()$~^;<>=@%*&!?|-]*")


class CannotEdit(Exception):
    """A change that cannot be made safely: the line, counted from 1, and the reason."""

    def __init__(self, line: int, reason: str) -> None:
        """``line`` 0 means the whole document."""
        super().__init__(line, reason)
        self.line = line
        self.reason = reason


def edited(text: str, changes: Mapping[str, Value | None], lines: Mapping[str, int]) -> str:
    """Return the text of a document with keys of its front matter set, or removed where the value is None.

    A key is ``title`` or, in a mapping, ``metadata.author``. ``lines`` has the line of each key that the text states
    already, counted from 1. A key without a value is found by its name; any other is added below the last one.

    Raises: ``CannotEdit``.
    """
    sheet = _Front(text)
    for key, value in changes.items():
        line = lines.get(key) or sheet.line_of(key)
        if line:
            sheet.replace(line, key, value)
        elif value is not None:
            sheet.add(key, value)
    return sheet.text()


def items_below(text: str, number: int) -> set[int]:
    """Return the lines of the list below the key on a line, each counted from 1; none where it is on that line."""
    found = set[int]()
    for at, line in enumerate(text.split("\n")[number:], number + 1):
        if _ITEM.fullmatch(line.removesuffix("\r")):
            found.add(at)
        elif found or not _BLANK.fullmatch(line.removesuffix("\r")):
            break
    return found


class _Front:
    """The lines of a document while keys of its front matter change; a line that was removed is None until the end."""

    def __init__(self, text: str) -> None:
        self._lines: list[str | None] = [*text.split("\n")]
        self._mark = "\ufeff" if text.startswith("\ufeff") else ""
        first = self._line(0)
        if not _FENCE.fullmatch(first):
            raise CannotEdit(1, "it has no front matter")
        if "\r" in text.replace("\r\n", ""):
            raise CannotEdit(0, "it has line ends that are neither those of Unix nor those of Windows")
        self._eol = "\r" if (self._lines[0] or "").endswith("\r") else ""
        found = (at for at in range(1, len(self._lines)) if _CLOSING.fullmatch(self._line(at)))
        self._end = next(found, 0)
        if not self._end:
            raise CannotEdit(1, "its front matter has no closing line")
        self._added: list[str] = []
        self._added_members: list[str] = []
        """A mapping ``metadata`` that the text did not have, with its members."""
        self._below: dict[int, list[str]] = {}

    def _line(self, at: int) -> str:
        """Return a line without its end; a removed one is empty."""
        line = (self._lines[at] or "").removesuffix("\r")
        return line.removeprefix("\ufeff") if at == 0 else line

    def text(self) -> str:
        """Return the text as it is now."""
        made: list[str] = []
        for at, line in enumerate(self._lines):
            if at == self._end:
                made += [*self._added, *self._added_members]
            if line is not None:
                made.append(line)
            made += self._below.get(at, [])
        return "\n".join(made)

    def line_of(self, key: str) -> int:
        """Return the line, counted from 1, of a key of the front matter itself; 0 where there is none."""
        for at in range(1, self._end):
            found = _KEY.fullmatch(self._line(at))
            if found and not found["indent"] and found["key"].strip("\"'") == key:
                return at + 1
        return 0

    def replace(self, number: int, key: str, value: Value | None) -> None:
        """Give the key on a line another value, or remove it."""
        at = number - 1
        if not 0 < at < self._end:
            raise CannotEdit(number, f"`{key}` is stated by the text below the front matter, not by a key in it")
        found = _KEY.fullmatch(self._line(at))
        if found is None:
            raise CannotEdit(number, f"`{key}` is not on a line of its own")
        items = self._items(at, len(found["indent"]))
        rest = _SCALAR.fullmatch(found["rest"])
        if rest is None or (items and rest["value"]):
            raise CannotEdit(number, f"`{key}` is not written on one line, or in a way that KB does not change")
        if value is None:
            for gone in (at, *items):
                self._lines[gone] = None
            return
        head = f"{found['indent']}{found['key']}{found['colon']}"
        if items and isinstance(value, list) and value:
            self._replace_items(items, value)
            return
        for gone in items:
            self._lines[gone] = None
        old = rest["value"] or ""
        new = _written_list(value, old) if isinstance(value, list) else _written(value, old)
        self._lines[at] = f"{head}{rest['gap'] or ' '}{new}{comment_after(old, rest['comment'])}{self._end_of(at)}"

    def add(self, key: str, value: Value) -> None:
        """Add a key below the last one, or a member below the last one of its mapping."""
        name, _, member = key.partition(".")
        if name != "metadata" or not member:
            self._added.append(f"{_name(key)}: {_fresh(value)}{self._eol}")
            return
        at = next((at for at in range(1, self._end) if self._line(at).rstrip() == "metadata:"), 0)
        if not at and self._added_members:
            self._added_members.append(f"  {_name(member)}: {_fresh(value)}{self._eol}")
            return
        if not at:
            if any(_METADATA.match(self._line(at)) for at in range(1, self._end)):
                raise CannotEdit(0, "`metadata` is not written as a mapping over several lines")
            self._added_members += [f"metadata:{self._eol}", f"  {_name(member)}: {_fresh(value)}{self._eol}"]
            return
        indent, last = "  ", at
        for one in range(at + 1, self._end):
            found = re.match(r"( +)\S", self._line(one))
            if not found:
                break
            indent, last = (found[1] if last == at else indent), one
        self._below.setdefault(last, []).append(f"{indent}{_name(member)}: {_fresh(value)}{self._eol}")

    def _end_of(self, at: int) -> str:
        return "\r" if (self._lines[at] or "").endswith("\r") else ""

    def _items(self, at: int, indent: int) -> list[int]:
        """Return the lines of the list below a key; refuse what else is below it."""
        items: list[int] = []
        for one in range(at + 1, self._end):
            line = self._line(one)
            item = _ITEM.fullmatch(line)
            depth = len(line) - len(line.lstrip(" "))
            if item and depth >= indent:
                items.append(one)
            elif _BLANK.fullmatch(line):
                if items or depth > indent:
                    break
            elif depth > indent:
                raise CannotEdit(one + 1, "the value continues in a way that KB does not change")
            else:
                break
        return items

    def _replace_items(self, items: Sequence[int], value: Sequence[str]) -> None:
        """Give a list with one item a line other items; a line whose item stays is kept as it is."""
        first = _ITEM.fullmatch(self._line(items[0]))
        dash = first["dash"] if first else "- "
        kept: dict[str, str] = {}
        for at in items:
            found = _ITEM.fullmatch(self._line(at))
            rest = _SCALAR.fullmatch(found["rest"]) if found else None
            if rest is None:
                raise CannotEdit(at + 1, "an item of the list is not written on one line")
            kept[_read(rest["value"] or "")] = self._lines[at] or ""
        made = [kept.get(one, f"{dash}{_written(one, '')}{self._end_of(items[0])}") for one in value]
        for at in items:
            self._lines[at] = None
        self._below[items[0]] = [*made, *self._below.get(items[0], [])]


def _read(written: str) -> str:
    """Return the text that a scalar on one line means."""
    if written.startswith('"'):
        try:
            return str(json.loads(written))
        except ValueError:
            return written
    return written[1:-1].replace("''", "'") if written.startswith("'") else written.strip()


def _name(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z_][\w.-]*", key) else json.dumps(key, ensure_ascii=False)


def _fresh(value: Value) -> str:
    return _written_list(value, "") if isinstance(value, list) else _written(value, "")


def _written(value: Scalar, old: str) -> str:
    """Return a scalar, in the quotation marks of the old one where it had some; a number or a boolean as in JSON."""
    text = value if isinstance(value, str) else json.dumps(value)
    if not isinstance(value, str) and not old.startswith(("'", '"')):
        return text
    is_plain = bool(_PLAIN.fullmatch(text)) and text == text.strip() and not text.endswith(":")
    is_plain = is_plain and not (isinstance(value, str) and is_other_than_text(text))
    if old.startswith("'") and text.isprintable():
        return "'" + text.replace("'", "''") + "'"
    if is_plain and not old.startswith('"'):
        return text
    return json.dumps(text, ensure_ascii=False)


def _is_word(text: str) -> bool:
    """Return whether a text needs no quotes as an item of a list on one line."""
    return bool(_IN_LIST.fullmatch(text)) and text == text.strip() and not is_other_than_text(text)


def _written_list(items: Sequence[str], old: str) -> str:
    """Return a list on one line: separated by commas where the old one was so, else in brackets."""
    are_words = all(map(_is_word, items))
    if old and not old.startswith(("[", '"', "'")) and are_words and items:
        return ", ".join(items)
    written = (one if _is_word(one) else json.dumps(one, ensure_ascii=False) for one in items)
    return f"[{', '.join(written)}]"
