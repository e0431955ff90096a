"""YAML to plain values in which every scalar is text as typed, with the line of every key and list item.

Nothing is resolved: ``0023``, ``1.10``, ``on``, ``~`` and dates stay text; only an empty value is None. Where `` #``
is inside parentheses that end on the same line, as in ``retired (PR #12)``, it begins no comment; elsewhere `` #12`` is
one, as in all YAML, and a warning where it follows a value. Depth and the number of nodes are limited, aliases counted
as often as they are used, and tags are refused. The text is read event by event: libyaml's own composer has no limit of
depth.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
from yaml.resolver import Resolver

from kbcore import limits
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import COMMENT_LIKE_TEXT, TextTree, duplicate_key, is_small
from kbcore.text.wording import shortened

MERGE_KEY: Final = "<<"
_SHOWN_CHARS: Final = 60
_IN_PARENTHESES: Final = re.compile(r"\([^()]*[ \t]#")
_CUTS: Final = re.compile(rf"[ \t]*{COMMENT_LIKE_TEXT.pattern}")
"""Such a comment after a value that it ends."""
CUT_VALUE: Final = "comment_in_value"
"""The code of the problem that a value ends before what YAML takes for a comment."""
_TAG: Final = "tag:yaml.org,2002:"
_resolver: Final = Resolver()
_TYPED_ELSEWHERE: Final = re.compile(r"[yYnN]|[-+]?[0-9.]+[eE][-+]?[0-9]+|0o[0-7]+")
"""Texts that only some readers of YAML 1.1 or 1.2 take for a truth value or a number."""
_HARMLESS_TAGS: Final = frozenset({"!", *(f"{_TAG}{name}" for name in ("str", "seq", "map"))})


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
    reader = _Reader(CParser(text), first_line, known, commented_lines(text))
    try:
        tree = reader.tree()
        if isinstance(tree.root, dict | list):
            lines = dict(_lines_with_parentheses(text, first_line))
            if lines:
                _restore_parentheses(tree.root, tree.places, lines)
            # One that goes on in parentheses was put back.
            cut = (one for one in reader.cut if one[0][one[1]] == one[2])
            tree.problems += [cut_value(key, value or "", line) for _, key, value, line in cut]
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
    _find_open(root, places, lines, last)
    for number, (holder, key) in last.items():
        holder[key] = with_parentheses(holder[key], lines[number])


def _find_open(value: Any, places: dict[int, Any], lines: dict[int, str], last: dict[int, tuple[Any, Any]]) -> None:
    """Note the last value of each of these lines that opens parentheses: what holds it, and its key there."""
    where = places[id(value)]
    members: Iterable[tuple[Any, Any]] = value.items() if isinstance(value, dict) else enumerate(value)
    for key, member in members:
        if isinstance(member, dict | list):
            _find_open(member, places, lines, last)
        elif where[key] in lines and member and member.count("(") > member.count(")"):
            last[where[key]] = (value, key)


def commented_lines(text: str) -> list[str]:
    """Return all lines of a text in which comments may be meant as text; none where there is no such comment."""
    return text.split("\n") if COMMENT_LIKE_TEXT.search(text) else []


def is_cut(event: Any, commented: Sequence[str]) -> bool:
    """Tell whether a scalar without quotes ends before such a comment, as in ``Bug #12``."""
    end = event.end_mark
    return not event.style and end.line < len(commented) and _CUTS.match(commented[end.line], end.column) is not None


def is_other_than_text(plain: str) -> bool:
    """Return whether readers of YAML take a text without quotes for a truth value, a number or nothing, as ``yes``."""
    tag = _resolver.resolve(yaml.ScalarNode, plain, (True, False))  # type: ignore[no-untyped-call]
    return tag not in {f"{_TAG}str", f"{_TAG}timestamp"} or _TYPED_ELSEWHERE.fullmatch(plain) is not None


def comment_after(value: str, rest: str) -> str:
    """Return the comment in what follows a value on its line, "" where that is text of the value, or is meant as such.

    The value is as it is written. Text inside parentheses belongs to it, and KB warns of the other, as in ``Bug #12``.
    """
    if value.startswith(('"', "'", "[", "{")):
        return rest
    return "" if _CUTS.match(rest) or with_parentheses(value, f"{value}{rest}") != value else rest


def cut_value(key: str | int, value: str, line: int) -> FileProblem:
    """Return the warning for a value that ends so on a line; ``key`` is its place in a mapping or a list."""
    name = f" of `{key}`" if isinstance(key, str) else ""
    said = f"is {in_quotes(shortened(value, _SHOWN_CHARS))}" if value else "is empty"
    message = f"the value{name} {said}: ` #` begins a comment"
    hint = "Put the whole value in quotes if what follows belongs to it, or a space after the `#`."
    return FileProblem(line, CUT_VALUE, message, hint, "warning")


def refusal(problem: str, mark: Any) -> yaml.MarkedYAMLError:
    """Return an error like the library's own, for what is YAML but is not taken."""
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


class _Reader:
    """One pass over the events of one document."""

    __slots__ = ("anchors", "base", "commented", "cut", "has_aliases", "next", "nodes", "places", "problems")

    def __init__(self, parser: Any, first_line: int, anchors: Anchors, commented: Sequence[str]) -> None:
        """``commented`` are the lines of the text, as ``commented_lines`` returns them."""
        self.next = parser.get_event
        self.base = first_line
        self.nodes = anchors.nodes
        self.anchors = anchors.values
        self.has_aliases = False
        self.places: dict[int, Any] = {}
        self.problems: list[FileProblem] = []
        self.commented = commented
        self.cut: list[tuple[Any, Any, str | None, int]] = []
        """The holder of a value that ends before such a comment, its key there, the value, and the line of its end."""

    def note_cut(self, event: Any, holder: Any, key: Any) -> None:
        """Note the value of an event if a comment cuts it."""
        if is_cut(event, self.commented):
            self.cut.append((holder, key, event.value or None, event.end_mark.line + self.base))

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
            if self.commented and type(event) is ScalarEvent:
                self.note_cut(event, values, len(values))
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
                if self.commented and type(event) is ScalarEvent:
                    self.note_cut(event, values, key)
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
