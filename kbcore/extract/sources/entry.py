"""One entry of a document: what it says under which key, as text, lists and mappings, each with its line. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from kbcore.extract.prose import ProseLine
from kbcore.text.problems import FileProblem
from kbcore.text.tree import TextTree, mapping

SECTION: Final = "section."
"""The prefix of a key that means the first line of a section: ``section.Status``."""


class Entry(msgspec.Struct):
    """A document, or one of several in a file.

    ``values`` is a mapping of ``tree``, which has the lines of its members. ``parts`` are texts that patterns of the
    settings named, of a heading or a line. ``section`` returns the lines below a heading of this text.
    """

    values: dict[str, Any]
    tree: TextTree
    line: int
    parts: Mapping[str, str] = {}
    heading: ProseLine | None = None
    text: ProseLine | None = None
    body: str = ""
    body_line: int = 1
    section: Callable[[str], list[ProseLine]] = lambda _: []
    is_whole: bool = True
    names: dict[int, dict[str, str]] = {}
    """Of each mapping that was searched, by its identity: the keys that have values, by their folded ones."""

    def find(self, key: str) -> tuple[Any, int]:
        """Return the value of a key and its line, (None, 0) where there is none.

        A part that a pattern named goes first. Capitals, blanks, hyphens and underscores do not matter. Dots lead into
        mappings, and into each mapping of a list, whose members then make a list. ``heading``, ``text`` and
        ``section.NAME`` are those of the text, where no key is called so.
        """
        if key in self.parts:
            return self.parts[key], self.line
        path = self.path_to(key)
        if path:
            holder, name = path[-1]
            return holder[name], self.tree.line(holder, name) or self.line
        members = list(self._through_lists(key)) if "." in key else []
        if members:
            return [value for value, _ in members], members[0][1]
        found = self._of_text(key)
        return (found.text, found.number) if found and found.text else (None, 0)

    def text_of(self, key: str) -> str | None:
        """Return what a key says as one text; None where it is none."""
        value, _ = self.find(key)
        return value.strip() if isinstance(value, str) else None

    def path_to(self, key: str) -> list[tuple[dict[str, Any], str]]:
        """Return the mappings from the top to the one that has a key, each with the name of the member in it."""
        name = self._name_in(self.values, key)
        if name is not None:
            return [(self.values, name)]
        holder, path = self.values, list[tuple[dict[str, Any], str]]()
        for step in key.split("."):
            name = self._name_in(holder, step)
            if name is None:
                return []
            path.append((holder, name))
            holder = holder[name] if isinstance(holder[name], dict) else {}
        return path

    def _through_lists(self, key: str) -> Iterator[tuple[Any, int]]:
        """Yield what a key leads to in each mapping of the lists on its way, with the lines; nothing without a list."""
        holders: list[tuple[Any, int]] = [(self.values, self.line)]
        has_list = False
        for step in key.split("."):
            found: list[tuple[Any, int]] = []
            for holder, _ in holders:
                name = self._name_in(holder, step) if isinstance(holder, dict) else None
                if name is None:
                    continue
                member, line = holder[name], self.tree.line(holder, name) or self.line
                if isinstance(member, list):
                    has_list = True
                    found += [(one, self.tree.line(member, at) or line) for at, one in enumerate(member)]
                else:
                    found.append((member, line))
            holders = found
        yield from holders if has_list else ()

    def _name_in(self, values: dict[str, Any], key: str) -> str | None:
        """Return the key of a mapping that is meant, None where it has no value."""
        if key in values:
            return key if values[key] is not None else None
        names = self.names.get(id(values))
        if names is None:
            names = self.names[id(values)] = {}
            for name, value in values.items():
                if value is not None:
                    names.setdefault(folded(name), name)
        return names.get(folded(key))

    def _of_text(self, key: str) -> ProseLine | None:
        if key == "heading":
            return self.heading
        if key == "text":
            return self.text
        lines = self.section(key.removeprefix(SECTION)) if key.startswith(SECTION) else []
        return next((line for line in lines if line.text.strip()), None)


@lru_cache(maxsize=4096)
def folded(key: str) -> str:
    """Return a key as it is compared: small letters, and ``-`` for blanks and underscores."""
    return key.strip().lower().replace("_", "-").replace(" ", "-")


class FileEntries(msgspec.Struct):
    """The entries of one file, and what is wrong with it. ``is_complete`` is as ``Facts`` has it."""

    entries: list[Entry] = []
    problems: list[FileProblem] = []
    is_complete: bool = True
    whole: Entry | None = None
    """The file itself, where entries were asked for that are parts of it."""


def of_lines(lines: Mapping[str, ProseLine], first_line: int, parts: Mapping[str, str] | None = None) -> Entry:
    """Return an entry out of ``Key: value`` lines."""
    values: dict[str, Any] = {key: line.text for key, line in lines.items() if line.text}
    tree = mapping(values, {key: lines[key].number for key in values})
    return Entry(values, tree, first_line, parts or {})


def trees_below(tree: TextTree, steps: tuple[str, ...]) -> Iterator[tuple[Any, int, str]]:
    """Yield the values that a path leads to, each with its line and its key. ``steps`` are those of ``tree_path``."""
    yield from _below(tree, tree.root, 1, "", steps)


def _below(tree: TextTree, value: Any, line: int, key: str, steps: tuple[str, ...]) -> Iterator[tuple[Any, int, str]]:
    if not steps:
        yield value, line, key
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        members: list[tuple[Any, Any]] = []
        if isinstance(value, dict):
            members = list(value.items())
        elif isinstance(value, list):
            members = list(enumerate(value))
        for name, member in members:
            at = tree.line(value, name) or line
            yield from _below(tree, member, at, name if isinstance(name, str) else "", rest)
        return
    if step.startswith("$."):
        step = next((str(one) for one, _, _ in _below(tree, tree.root, 1, "", tuple(step[2:].split(".")))), "")
    if isinstance(value, dict) and value.get(step) is not None:
        yield from _below(tree, value[step], tree.line(value, step) or line, step, rest)
