"""Entries of YAML, JSON and TOML: the whole document, each of several documents, or what a path leads to. Pure."""

from __future__ import annotations

import re
from collections import deque
from functools import lru_cache
from typing import Any, Final

from kbcore.extract.sources.entry import Entry, FileEntries, trees_below
from kbcore.text import json_reader
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree

_STEP: Final = re.compile(r"\.([A-Za-z_][\w-]*)|\.(\*)|\[(\*)\]|\['([^']*)'\]|\[(\$(?:\.[A-Za-z_][\w-]*)+)\]")
_DOCUMENT: Final = re.compile(r"^---(?:[ \t].*)?$", re.MULTILINE)
_MAX_STEPS: Final = 20


def path_fault(path: str) -> str:
    """Return why a text is no path to the items of a document, or the empty text."""
    try:
        steps_of(path)
    except ValueError as error:
        return str(error)
    return ""


@lru_cache(maxsize=256)
def steps_of(path: str) -> tuple[str, ...]:
    """Return the steps of a path such as ``$.needs[*]`` or ``$.versions[$.current].needs.*``, a part of RFC 9535.

    ``[$.key]`` is not of the RFC: it is the member whose name the document has at that path. Raises: ``ValueError``.
    """
    if not path.startswith("$"):
        message = "it must begin with `$`, the whole document, for example `$.needs[*]`"
        raise ValueError(message)
    at, steps = 1, list[str]()
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) == _MAX_STEPS:
            message = f"it cannot be read from {path[at : at + 20]!r} on; there are `.name`, `['name']`, `.*` and `[*]`"
            raise ValueError(message)
        steps.append(next(group for group in found.groups() if group is not None))
        at = found.end()
    return tuple(steps)


def entries(text: str, format_: str, path: str) -> FileEntries:
    """Return the items that a path leads to, of each document of the text; without a path each document."""
    result = FileEntries([], [])
    for tree in _trees(text, format_):
        result.problems += tree.problems
        result.is_complete = result.is_complete and tree.is_complete
        steps = steps_of(path) if path else ()
        found = list(trees_below(tree, steps)) if tree.root is not None else []
        for value, at, key in found:
            line = at
            if isinstance(value, dict):
                whole = id(value) not in tree.lossy
                line = min(tree.places.get(id(value), {}).values(), default=at) if value is tree.root else at
                result.entries.append(Entry(value, tree, line, {"key": key} if key else {}, is_whole=whole))
            elif isinstance(value, str) and key:
                values: dict[str, Any] = {"value": value}
                tree.places[id(values)] = {"value": line}
                result.entries.append(Entry(values, tree, line, {"key": key}))
            else:
                message = "an entry must be an object with keys"
                hint = "Correct it, or set `items` of the source to the path of the list."
                result.problems.append(FileProblem(line, "wrong_shape", message, hint))
    return result


def _trees(text: str, format_: str) -> list[TextTree]:
    if format_ == "json":
        return [json_reader.read_plain(text)]
    if format_ == "toml":
        return [_toml(text)]
    from kbcore.text import yaml_salvage  # noqa: PLC0415 - it imports yaml

    starts = [(0, 1)]
    for found in _DOCUMENT.finditer(text):
        at, line = starts[-1]
        end = min(found.end() + 1, len(text))
        starts.append((end, line + text.count("\n", at, end)))
    if len(starts) == 1:
        return [yaml_salvage.read(text, 1)]
    ends = [*(at for at, _ in starts[1:]), len(text)]
    pieces = [(_DOCUMENT.sub("", text[start:end]), line) for (start, line), end in zip(starts, ends, strict=True)]
    return [yaml_salvage.read(piece, line) for piece, line in pieces if piece.strip()]


def _toml(text: str) -> TextTree:
    import tomllib  # noqa: PLC0415 - few projects have such documents

    try:
        root = tomllib.loads(text)
        tree = TextTree(None, {}, [])
        tree.root = _as_typed(root, tree, _lines_of_keys(text))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        return _no_toml(int(at[1]) if at else 0, f"this is no TOML: {error}")
    except RecursionError:
        return _no_toml(0, "it is nested too deep to be read")
    except ValueError as error:  # a number of more digits than Python reads
        return _no_toml(0, f"it has a value that is not read: {error}")
    return tree


def _no_toml(line: int, message: str) -> TextTree:
    problem = FileProblem(line, "invalid_toml", message, "Correct the line." if line else "Correct the file.")
    return TextTree(None, {}, [problem], is_complete=False)


def _lines_of_keys(text: str) -> dict[str, deque[int]]:
    """Return the lines on which each key is stated, in order: the library for TOML tells none."""
    lines: dict[str, deque[int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"""[ \t]*(?:\[+[ \t]*(?:[^\]]*\.)?)?["']?([\w-]+)["']?[ \t]*(?:=|\])""", line)
        if found:
            lines.setdefault(found[1], deque()).append(number)
    return lines


def _as_typed(value: Any, tree: TextTree, lines: dict[str, deque[int]]) -> Any:
    """Return a value of TOML as the other readers give them: text, lists and mappings, and their lines."""
    if isinstance(value, dict):
        at = {}
        found = {}
        for key, member in value.items():
            known = lines.get(key, ())
            at[key] = known.popleft() if isinstance(known, deque) and len(known) > 1 else next(iter(known), 1)
            found[key] = _as_typed(member, tree, lines)
        tree.places[id(found)] = at
        return found
    if isinstance(value, list):
        items = [_as_typed(one, tree, lines) for one in value]
        tree.places[id(items)] = [1] * len(items)
        return items
    return str(value).lower() if isinstance(value, bool) else str(value)
