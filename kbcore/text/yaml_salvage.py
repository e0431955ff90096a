"""Reading of a YAML text that is not valid: piece by piece, each fault with its own line.

A top-level key and what is indented below it is one piece; so is an item of a block list. A piece that is no
YAML but one plain line keeps its text as typed (``assignee: @name``, ``title: a: b``). Where keys are indented that
should not be, or by tabs, each counts on its own line. What is broken otherwise is left out.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from kbcore.text import conflict_markers, yaml_faults, yaml_text
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree, duplicate_key, mapping
from kbcore.text.wording import shortened

_ODD_BREAKS: Final = re.compile("[\x85\u2028\u2029]")
_CONTINUES: Final = re.compile(r"[ \t#\]},]|-(?:[ \t]|$)|$")
_PLAIN_LINE: Final = re.compile(r"""([^\s:#&*!|>'"%@`\[\]{},-][^:#\n]*):[ \t]+(\S.*)""")
_PLAIN_ITEM: Final = re.compile(r"[ \t]*-[ \t]+(?=\S)((?:(?!:[ \t]|:$).)+)")
_LIST_KEY: Final = re.compile(r"""(["']?)([^\s:#'"-][^:#'"\n]*)\1:[ \t]*(?:#.*)?""")
_MAPPING_ITEM: Final = re.compile(r"([ \t]*)-([ \t]+)[^\s#&*!|>'\"%@`\[\]{},-][^:#\n]*:(?:[ \t]|$)", re.MULTILINE)
_ITEM: Final = re.compile(r"([ \t]*)-(?:[ \t]|$)")
_LIST_START: Final = re.compile(r"(?:[ \t]*(?:#.*)?\n)*[ \t]*-(?:[ \t]|$)", re.MULTILINE)
_LIST_NAME: Final = "items"
_COMMENT: Final = re.compile(r"(?<![ \t])[ \t]+#.*$")
_TAB_INDENT: Final = re.compile(r"^ *\t[ \t]*", re.MULTILINE)
_TAB_WIDTH: Final = 2
_MAX_DEPTH: Final = 8
"""Pieces within pieces. Each is read once more for every piece around it."""
_CLOSERS: Final = {"[": "]", "{": "}", '"': '"', "'": "'"}


def read(text: str, first_line: int) -> TextTree:
    """Return the content of a YAML text that begins on ``first_line``, or what can be read of it."""
    try:
        if _ODD_BREAKS.search(text):
            return _odd_breaks(text, first_line)
        return yaml_text.read(text, first_line)
    except yaml.YAMLError as error:
        fault = yaml_faults.explain(error, text, first_line)
    if _LIST_START.match(text):
        tree = _read_list(f"{_LIST_NAME}:\n{text}", first_line - 1, _LIST_NAME, yaml_text.Anchors())
        tree.root = tree.root[_LIST_NAME]
        tree.problems = tree.problems or [fault]
        return tree
    return _dedented(text, first_line, fault)


def read_mapping(text: str, first_line: int) -> TextTree:
    """Return the mapping in a YAML text, or what can be read of it. An empty text is an empty mapping."""
    tree = read(text, first_line)
    if tree.root is None:
        tree.root = {}
        tree.places[id(tree.root)] = {}
    elif not isinstance(tree.root, dict):
        hint = "Write lines of the form `key: value`."
        problem = FileProblem(first_line, "wrong_shape", "this is no list of `key: value` lines", hint)
        unread = mapping({}, {})
        unread.problems, unread.is_complete = [*tree.problems, problem], False
        return unread
    return tree


def _odd_breaks(text: str, first_line: int) -> TextTree:
    """Read a text with breaks that only YAML counts as lines: piece by piece, so that lines fit."""
    found = _ODD_BREAKS.search(text)
    at = found.start() if found else 0
    line = first_line + text.count("\n", 0, at)
    message = f"U+{ord(text[at]):04X} in line {line} breaks lines in YAML, but not in editors"
    warning = FileProblem(line, "odd_line_break", message, "Replace it by a space.", "warning")
    tree = _in_pieces(text, first_line, None)
    tree.problems.insert(0, warning)
    return tree


def _dedented(
    text: str, first_line: int, fault: FileProblem | None, anchors: yaml_text.Anchors | None = None
) -> TextTree:
    """Read a mapping key by key, as ``_in_pieces`` does, whatever all of its lines are indented by."""
    plain = textwrap.dedent(text)
    tree = _in_pieces(plain, first_line, fault, anchors)
    width = _indent_of(text) - _indent_of(plain)
    tree.problems = [problem if problem is fault else _shifted(problem, width) for problem in tree.problems]
    return tree


def _indent_of(text: str) -> int:
    """Return by how many characters the first line is indented that is not blank."""
    line = next((line for line in text.split("\n") if line.strip()), "")
    return len(line) - len(line.lstrip())


def _in_pieces(
    text: str, first_line: int, fault: FileProblem | None, anchors: yaml_text.Anchors | None = None
) -> TextTree:
    """Read a mapping key by key. ``fault`` is what is wrong with the whole, reported when no piece shows it."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    result = TextTree(values, {}, [])
    known = anchors or yaml_text.Anchors()
    for line, piece in _pieces(text, first_line):
        tree = _piece(piece, line, known)
        result.problems.extend(tree.problems)
        result.places.update(tree.places)
        result.lossy |= tree.lossy if tree.root else {id(values)}
        for key, value in tree.root.items():
            if key in values:
                result.problems.append(duplicate_key(key, lines[key], tree.line(tree.root, key)))
            else:
                values[key] = value
                lines[key] = tree.line(tree.root, key)
    result.places[id(values)] = lines
    if fault and not result.problems:
        result.problems.append(fault)
    result.is_complete = not result.problems
    return result


def _pieces(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield each top-level piece with its line. Comments and blank lines above the first key are no piece."""
    start_line, piece = first_line, ""
    for number, line in enumerate(text.split("\n"), first_line):
        if _CONTINUES.match(line) and (piece or not line.strip() or line.startswith("#")):
            piece += line + "\n" if piece else ""
            continue
        if piece:
            yield start_line, piece
        start_line, piece = number, line + "\n"
    if piece:
        yield start_line, piece


def _piece(piece: str, line: int, anchors: yaml_text.Anchors) -> TextTree:
    """Return what a piece says, as long as it is not in too many others that are broken as well."""
    if anchors.depth == _MAX_DEPTH:
        message = f"not valid YAML: more than {_MAX_DEPTH} lines around this one are broken as well"
        fault = FileProblem(line, yaml_faults.CODE, message, "Correct those first.")
        return TextTree({}, {}, [fault], is_complete=False)
    anchors.depth += 1
    try:
        return _read_piece(piece, line, anchors)
    finally:
        anchors.depth -= 1


def _read_piece(piece: str, line: int, anchors: yaml_text.Anchors) -> TextTree:
    try:
        tree = yaml_text.read(piece, line, anchors)
        if isinstance(tree.root, dict):
            return tree
        message = "not valid YAML: this line is no `key: value`"
        fault = FileProblem(line, yaml_faults.CODE, message, "Give it a key.")
    except yaml.YAMLError as error:
        fault = yaml_faults.explain(error, piece, line)
    first = piece.partition("\n")[0]
    if conflict_markers.is_left_over(first):
        message = "a line of a merge conflict was left here"
        fault = FileProblem(line, conflict_markers.CODE, message, "Remove it, and look at the lines around it.")
    heading = _LIST_KEY.fullmatch(first)
    if heading:
        tree = _read_list(piece, line, heading[2].rstrip(), anchors)
        if tree.root[heading[2].rstrip()]:
            return tree
    reindented = _without_tabs(piece, line, anchors, fault) or _split_first_line(piece, line, anchors, fault)
    if reindented:
        return reindented
    found = _PLAIN_LINE.fullmatch(piece.strip("\n"))
    text = _as_typed(found[2]) if found else ""
    values = {found[1].rstrip(): text} if found and text else {}
    problem = _kept(fault, text) if text else fault
    return TextTree(values, {id(values): dict.fromkeys(values, line)}, [problem], is_complete=False)


def _without_tabs(piece: str, line: int, anchors: yaml_text.Anchors, fault: FileProblem) -> TextTree | None:
    """Return what a piece says when its tabs indent as far as two spaces, or None when it still says nothing."""
    spaced = _TAB_INDENT.sub(lambda found: found[0].expandtabs(_TAB_WIDTH), piece)
    if spaced == piece:
        return None
    try:
        tree = yaml_text.read(spaced, line, anchors)
    except yaml.YAMLError:
        return None
    tree.problems.insert(0, fault)
    tree.is_complete = False
    return tree if isinstance(tree.root, dict) else None


def _split_first_line(piece: str, line: int, anchors: yaml_text.Anchors, fault: FileProblem) -> TextTree | None:
    """Return a key with its value, and the keys that are indented below it although it has one.

    None when the value may go on below: it does not where tabs indent, or where it is a single word.
    """
    first, _, below = piece.partition("\n")
    if not below.strip() or not _PLAIN_LINE.fullmatch(first.lstrip()):
        return None
    tree = _piece(first.lstrip() + "\n", line, anchors)
    value = next(iter(tree.root.values()), None)
    if not isinstance(value, str) or not (_TAB_INDENT.match(below) or " " not in value):
        return None
    rest = _dedented(below, line + 1, None, anchors)
    tree.problems = [fault, *tree.problems, *(problem for problem in rest.problems if problem.line != fault.line)]
    tree.places.update(rest.places)
    tree.lossy |= rest.lossy
    lines = tree.places[id(tree.root)]
    for key, member in rest.root.items():
        tree.root.setdefault(key, member)
        lines.setdefault(key, rest.line(rest.root, key))
    tree.is_complete = False
    return tree


def _as_typed(text: str) -> str:
    """Return a text without its comment; nothing when it is a quote, list or mapping that is not closed."""
    text = yaml_text.with_parentheses(_COMMENT.sub("", text).strip(), text)
    closer = _CLOSERS.get(text[:1])
    is_broken = text[:1] in {"|", ">"} or (closer is not None and closer not in text[1:-1])
    return "" if is_broken else text


def _kept(fault: FileProblem, text: str) -> FileProblem:
    return msgspec.structs.replace(
        fault, hint=f"{fault.hint} The text was kept as typed: {in_quotes(shortened(text, 60))}."
    )


def _read_list(text: str, first_line: int, key: str, anchors: yaml_text.Anchors) -> TextTree:
    """Return ``{key: [items]}`` out of a key with a block list below it, item by item."""
    items: list[Any] = []
    places: list[int] = []
    root = {key: items}
    result = TextTree(root, {id(items): places, id(root): {key: first_line}}, [], is_complete=False)
    for line, piece in _items(text, first_line):
        tree = _item(piece, line, anchors)
        items.extend(tree.root)
        places.extend(line for _ in tree.root)
        result.places.update(tree.places)
        result.problems.extend(tree.problems)
        if not tree.root or id(tree.root[0]) in tree.lossy:
            result.lossy.add(id(items))
    return result


def _items(text: str, first_line: int) -> Iterator[tuple[int, str]]:
    """Yield each item of the block list below the first line of a text: its line and its text."""
    indent: str | None = None
    first, start = 0, 0
    lines = text.split("\n")
    for at, line in enumerate(lines):
        found = _ITEM.match(line) if at else None
        if found and indent in {None, found[1]}:
            if indent is not None:
                yield first_line + first, "\n".join(lines[start:at]) + "\n"
            indent, first, start = found[1], at, at
    if indent is not None:
        yield first_line + first, "\n".join(lines[start:])


def _item(piece: str, line: int, anchors: yaml_text.Anchors) -> TextTree:
    """Return one item of a block list as a list of one, or of none when it cannot be read."""
    try:
        tree = yaml_text.read(piece, line, anchors)
        if isinstance(tree.root, list):
            return tree
        fault = FileProblem(line, yaml_faults.CODE, "not valid YAML: this is no list item", "Indent it.")
    except yaml.YAMLError as error:
        fault = yaml_faults.explain(error, piece, line)
    plain = _PLAIN_ITEM.fullmatch(piece.strip("\n"))
    text = _as_typed(plain[1]) if plain else ""
    if text:
        return TextTree([text], {}, [_kept(fault, text)], is_complete=False)
    opening = _MAPPING_ITEM.match(piece)
    if opening is None:
        return TextTree([], {}, [fault], is_complete=False)
    width = len(opening[1]) + 1 + len(opening[2])
    body = "\n".join(row[width:] if not row[1:width].strip(" \t-") else row for row in piece.split("\n"))
    inner = _in_pieces(body, line, fault)
    inner.problems = [_shifted(problem, width) for problem in inner.problems]
    inner.root, inner.is_complete = [inner.root], False
    return inner


def _shifted(problem: FileProblem, width: int) -> FileProblem:
    return msgspec.structs.replace(problem, column=problem.column + width if problem.column else 0)
