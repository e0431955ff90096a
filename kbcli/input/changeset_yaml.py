"""A changeset in YAML to the values that the same changeset has in JSON.

A plain ``null``, ``true``, ``false`` or JSON number is that value where such values belong: in flags, numbers,
attributes and metadata. A text field keeps what was typed, so ``id: 0023`` and ``title: 1.10`` lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from kbcore import limits
from kbcore.text import yaml_faults
from kbcore.text.problems import FileProblem
from kbcore.text.tree import duplicate_key
from kbcore.text.yaml_text import commented_lines, cut_value, is_cut, refusal

_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_MAX_DIGITS: Final = 40
_WORDS: Final[dict[str, Any]] = {"": None, "~": None, "null": None, "true": True, "false": False}
_LISTS: Final = frozenset({"entities", "edges"})
_TYPED: Final = frozenset(
    {
        *("confidence", "expected_seq", "expected_version", "dry_run", "cascade", "create", "replace"),
        *("attributes", "metadata"),
    }
)
"""The members of a changeset, an entity or an edge that are not text."""


def read(text: str) -> tuple[Any, list[FileProblem]]:
    """Return the request in a YAML text, and what is wrong with the text; with an error it is not to be used."""
    reader = _Reader(text)
    try:
        value = reader.document()
    except yaml.YAMLError as error:
        return None, [*reader.problems, yaml_faults.explain(error, text, 1)]
    return _request(value), reader.problems


class _Plain(str):
    """A scalar without quotes: it may mean more than its text."""

    __slots__ = ()


class _Reader:
    """One pass over the events of one document."""

    def __init__(self, text: str) -> None:
        self.next: Callable[[], Any] = iter(yaml.parse(text, Loader=yaml.CSafeLoader)).__next__
        self.nodes = 0
        self.problems: list[FileProblem] = []
        self.commented = commented_lines(text)

    def document(self) -> Any:
        self.next()
        if isinstance(self.next(), StreamEndEvent):
            return None
        value = self.node(self.next(), 1)
        self.next()
        after = self.next()
        if not isinstance(after, StreamEndEvent):
            raise refusal("a second document begins here", after.start_mark)
        return value

    def node(self, event: Any, depth: int) -> Any:
        mark = event.start_mark
        self.nodes += 1
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise refusal("a changeset has no anchors and aliases", mark)
        if event.tag is not None and event.tag != "!":
            raise refusal(f"the tag {event.tag!r} is not read", mark)
        if depth > limits.MAX_DEPTH:
            raise refusal(f"nested deeper than {limits.MAX_DEPTH} levels", mark)
        if self.nodes > limits.MAX_YAML_NODES:
            raise refusal(f"more than {limits.MAX_YAML_NODES} values", mark)
        if isinstance(event, ScalarEvent):
            return event.value if event.style or event.tag else _Plain(event.value)
        return self.sequence(depth) if isinstance(event, SequenceStartEvent) else self.mapping(depth)

    def sequence(self, depth: int) -> list[Any]:
        values = []
        while not isinstance(event := self.next(), SequenceEndEvent):
            values.append(self.node(event, depth + 1))
            self.note_cut(len(values), event)
        return values

    def note_cut(self, key: str | int, event: Any) -> None:
        """Warn of the value of an event if a comment cuts it."""
        if self.commented and isinstance(event, ScalarEvent) and is_cut(event, self.commented):
            end: Any = event.end_mark
            self.problems.append(cut_value(key, event.value, end.line + 1))

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := self.next(), MappingEndEvent):
            if not isinstance(event, ScalarEvent) or event.anchor or event.tag or not event.value:
                raise refusal("a key must be plain text", event.start_mark)
            mark: Any = event.start_mark
            key, line = str(event.value), mark.line + 1
            event = self.next()
            value = self.node(event, depth + 1)
            self.note_cut(key, event)
            if key in values:
                self.problems.append(duplicate_key(key, lines[key], line))
            else:
                values[key], lines[key] = value, line
        return values


def _request(value: Any) -> Any:
    if not isinstance(value, dict):
        return _typed(value)
    return {
        key: [_item(one) for one in member] if key in _LISTS and isinstance(member, list) else _member(key, member)
        for key, member in value.items()
    }


def _item(value: Any) -> Any:
    """Return an entity or an edge."""
    return {key: _member(key, member) for key, member in value.items()} if isinstance(value, dict) else _typed(value)


def _member(key: str, value: Any) -> Any:
    return _typed(value) if key in _TYPED else _textual(value)


def _textual(value: Any) -> Any:
    """Return a value that should be text, or a list of texts; only nothing becomes null."""
    if isinstance(value, list):
        return [_textual(one) for one in value]
    if isinstance(value, _Plain):
        return None if value in {"", "~", "null"} else str(value)
    return _typed(value)


def _typed(value: Any) -> Any:
    """Return a value as JSON would have it."""
    if isinstance(value, dict):
        return {key: _typed(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_typed(one) for one in value]
    if not isinstance(value, _Plain):
        return value
    if value in _WORDS:
        return _WORDS[value]
    number = _NUMBER.fullmatch(value)
    if number is None:
        return str(value)
    if number[1] or number[2]:
        return float(value)
    return int(value) if len(value) <= _MAX_DIGITS else 10**_MAX_DIGITS  # what is too large is refused as such
