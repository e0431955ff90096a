"""YAML to plain values in which every scalar is text as typed, with the line of every key and list item.

Nothing is resolved: ``0023``, ``1.10``, ``on``, ``~`` and dates stay text; only an empty value is None. Where `` #``
is inside parentheses that end on the same line, as in ``retired (PR #12)``, it begins no comment; elsewhere `` #12`` is
one, as in all YAML, and a warning where it follows a value. Depth and the number of nodes are limited, aliases counted
as often as they are used, and tags are refused. The text is read event by event: libyaml's own composer has no limit of
depth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec
import yaml
from yaml._yaml import CParser
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    StreamEndEvent,
)

from kbcore import limits
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree, duplicate_key, is_small
from kbcore.text.wording import shortened

MERGE_KEY: Final = "<<"
_SHOWN_CHARS: Final = 60
_IN_PARENTHESES: Final = re.compile(r"\([^()]*[ \t]#")
_COMMENT: Final = r"[ \t]+#[^\s#]"
"""A comment in YAML that an author may mean as text: no space follows the sign."""
_HAS_COMMENT: Final = re.compile(_COMMENT)
CUT_VALUE: Final = "comment_in_value"
"""The code of the problem that a value ends before what YAML takes for a comment."""
_HARMLESS_TAGS: Final = frozenset({"!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))})


class Anchors(msgspec.Struct):
    """Shared state of the pieces of a text: its anchored values, each with its number of nodes, and all nodes so far.

    ``depth`` counts the pieces within pieces that are being read.
    """

    values: dict[str, tuple[Any, int]] = {}
    nodes: int = 0
    depth: int = 0


def read(text: str, first_line: int = 1, anchors: Anchors | None = None) -> TextTree:
    """Return the values of a YAML text that begins on ``first_line`` of its file.

    Duplicate keys are problems of the tree; the first one counts. ``anchors`` carries what was anchored from
    one piece of a text to the next.

    Raises:
        yaml.YAMLError: the text is no YAML, or holds what KB does not take; ``yamlfaults`` has words for it.
    """
    known = anchors or Anchors()
    reader = _Reader(CParser(text), first_line, known)
    try:
        tree = reader.tree()
        if isinstance(tree.root, dict | list):
            lines = dict(_lines_with_parentheses(text, first_line))
            if lines:
                _restore_parentheses(tree.root, tree.places, lines)
            tree.problems += _cut_values(tree, text, first_line)
        tree.is_small = is_small(text)
        return tree
    finally:
        known.nodes = reader.nodes


def with_parentheses(value: str, line: str) -> str:
    """Return the value on a line, with what follows it there as a comment and ends parentheses that it opens."""
    if value.count("(") <= value.count(")"):
        return value
    rest = line.partition(value)[2].rstrip()
    whole = f"{value}{rest}"
    is_comment = rest[:1] in {" ", "\t"} and rest.lstrip(" \t").startswith("#")
    return whole if is_comment and whole.count("(") <= whole.count(")") else value


def _lines_with_parentheses(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Return the lines in which a `` #`` may be inside parentheses, each with its number. Takes linear time."""
    if "(" in text and "#" in text:
        for number, line in enumerate(text.split("\n"), first_line):
            if _IN_PARENTHESES.search(line, 0, line.rfind(")") + 1):
                yield number, line


def _restore_parentheses(root: Any, places: dict[int, Any], lines: dict[int, str]) -> None:
    """Put back what YAML takes for a comment although it is inside parentheses that the value opens.

    A comment follows the last value of a line: only that one is looked at, so that a long line takes linear time.
    """
    last: dict[int, tuple[Any, Any]] = {}
    _find_last(root, places, lines, last, lambda value: value.count("(") > value.count(")"))
    for number, (holder, key) in last.items():
        holder[key] = with_parentheses(holder[key], lines[number])


def _cut_values(tree: TextTree, text: str, first_line: int) -> Iterator[FileProblem]:
    """Yield a warning for each value that is followed by what looks like text and is a comment, as in ``Bug #12``."""
    if "#" not in text:
        return
    lines = {at: line for at, line in enumerate(text.split("\n"), first_line) if _HAS_COMMENT.search(line)}
    last: dict[int, tuple[Any, Any]] = {}
    if lines:
        _find_last(tree.root, tree.places, lines, last, lambda _: True)
    for number, (holder, key) in sorted(last.items()):
        value = holder[key] or ""
        if re.search(f"{re.escape(value) or '[:-]'}{_COMMENT}", lines[number]):
            name = f" of `{key}`" if isinstance(key, str) else ""
            said = f"is {in_quotes(shortened(value, _SHOWN_CHARS))}" if value else "is empty"
            message = f"the value{name} {said}: ` #` begins a comment"
            hint = "Put the whole value in quotes if what follows belongs to it, or a space after the `#`."
            yield FileProblem(number, CUT_VALUE, message, hint, "warning")


def _find_last(
    value: Any,
    places: dict[int, Any],
    lines: dict[int, str],
    last: dict[int, tuple[Any, Any]],
    is_wanted: Callable[[str], bool],
) -> None:
    """Note the last value of each of these lines that is wanted: what holds it, and its key there."""
    where = places[id(value)]
    members: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if isinstance(member, dict | list):
            _find_last(member, places, lines, last, is_wanted)
        elif where[key] in lines and is_wanted(member or ""):
            last[where[key]] = (value, key)


def refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    """Return an error like the library's own, for what is YAML but is not taken."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Reader:
    """One pass over the events of one document."""

    __slots__ = ("anchors", "base", "has_aliases", "next", "nodes", "places", "problems")

    def __init__(self, parser: Any, first_line: int, anchors: Anchors) -> None:
        self.next = parser.get_event
        self.base = first_line
        self.nodes = anchors.nodes
        self.anchors = anchors.values
        self.has_aliases = False
        self.places: dict[int, Any] = {}
        self.problems: list[FileProblem] = []

    def tree(self) -> TextTree:
        self.next()
        root = None
        if type(self.next()) is not StreamEndEvent:
            event = self.next()
            root = self.node(event, 1)
            if self.has_aliases:
                _check_depth(root, 1, event.start_mark)
            self.next()
            event = self.next()
            if type(event) is not StreamEndEvent:
                raise refusal("a second document begins here", event.start_mark)
        return TextTree(root, self.places, self.problems, is_complete=not self.problems)

    def node(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is AliasEvent:
            return self.alias(event)
        if event.tag is not None and event.tag not in _HARMLESS_TAGS:
            raise refusal(f"the tag {in_quotes(event.tag)} is not read", event.start_mark)
        before = self.nodes
        if kind is ScalarEvent:
            self.nodes += 1
            value = event.value or ("" if event.style else None)
        else:
            if depth > limits.MAX_DEPTH:
                raise refusal(f"nested deeper than {limits.MAX_DEPTH} levels", event.start_mark)
            value = self.mapping(depth) if kind is MappingStartEvent else self.sequence(depth)
            most = limits.MAX_ALIASED_NODES if self.has_aliases else limits.MAX_YAML_NODES
            if self.nodes > most:
                raise refusal(f"more than {most} values", event.start_mark)
        if event.anchor is not None:
            self.anchors[event.anchor] = (value, self.nodes - before)
        return value

    def alias(self, event: Any) -> Any:
        known = self.anchors.get(event.anchor)
        if known is None:
            raise refusal(f"`*{event.anchor}` names no value that comes before it", event.start_mark)
        self.has_aliases = True
        self.nodes += known[1]
        if self.nodes > limits.MAX_ALIASED_NODES:
            raise refusal(f"more than {limits.MAX_ALIASED_NODES} values, through aliases", event.start_mark)
        return known[0]

    def sequence(self, depth: int) -> list[Any]:
        values: list[Any] = []
        lines: list[int] = []
        base, follow = self.base, self.next
        event = follow()
        while type(event) is not SequenceEndEvent:
            lines.append(event.start_mark.line + base)
            if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
                values.append(event.value or ("" if event.style else None))
            else:
                values.append(self.node(event, depth + 1))
            event = follow()
        self.nodes += 1 + len(values)
        self.places[id(values)] = lines
        return values

    def mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        lines: dict[str, int] = {}
        merged: list[Any] = []
        base, follow = self.base, self.next
        event = follow()
        while type(event) is not MappingEndEvent:
            mark: Any = event.start_mark
            if type(event) is not ScalarEvent or event.tag is not None or not event.value:
                raise refusal("a key must be plain text", mark)
            key, is_merge = event.value, event.value == MERGE_KEY and not event.style
            event = follow()
            if type(event) is ScalarEvent and event.tag is None and event.anchor is None:
                value = event.value or ("" if event.style else None)
            else:
                value = self.node(event, depth + 1)
            if is_merge:
                merged.append((value, mark))
            elif key in values:
                self.problems.append(duplicate_key(key, lines[key], mark.line + base))
            else:
                values[key] = value
                lines[key] = mark.line + base
            event = follow()
        for value, mark in merged:
            self.merge(values, lines, value, mark)
        self.nodes += 1 + 2 * len(values)
        self.places[id(values)] = lines
        return values

    def merge(self, values: dict[str, Any], lines: dict[str, int], source: Any, mark: Any) -> None:
        """Add what `<<` names: members that the mapping does not have itself."""
        for other in source if isinstance(source, list) else [source]:
            if not isinstance(other, dict):
                raise refusal("`<<` needs a mapping, or a list of mappings", mark)
            for key, value in other.items():
                if key not in values:
                    values[key] = value
                    lines[key] = mark.line + self.base
        self.has_aliases = True


def _check_depth(value: Any, depth: int, mark: Any) -> None:
    """Refuse what is too deep through aliases; the number of nodes is limited already."""
    if not isinstance(value, dict | list):
        return
    if depth > limits.MAX_DEPTH:
        raise refusal(f"nested deeper than {limits.MAX_DEPTH} levels, through aliases", mark)
    for member in value.values() if isinstance(value, dict) else value:
        _check_depth(member, depth + 1, mark)
