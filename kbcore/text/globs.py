"""Matching of paths by globs. Both are relative to the repository's root, with ``/`` between parts.

``*`` and ``?`` stay within one part, ``**`` as a whole part spans any number of folders (none too), ``[…]``
is a set of characters. Letters match exactly, but in the ending ``.md`` after a star: it also means ``.markdown``, and
capitals do not matter.

Globs are matched part by part, all globs of a list together: what a folder leaves open is worked out once for the
folder. Nothing is tried twice, so the cost of a path grows with its parts and with those of the globs, and no faster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from kbcore import limits
from kbcore.text.validator import ConfigNode, shown

FEWER_GLOBS: Final = "Say the same with fewer globs, for example `docs/**/*.md`."
_GLOBS_HINT: Final = 'For example ["docs/adr/**/*.md"].'

_BRACES = re.compile(r"\{[^{},]*,[^{}]*\}")
_SIGNS: Final = frozenset("*?[")
_ANY_FOLDERS: Final = "**"
_NO_LITERALS: Final = re.compile(r"[*?\[\]{}\\]|^!")
_MARKDOWN: Final = ".md"
_MARKDOWN_END: Final = re.escape(_MARKDOWN)
_ANY_MARKDOWN: Final = r"(?i:\.md|\.markdown)"
_MAX_STATES: Final = 10_000
"""Beyond so many, what was worked out is thrown away: memory stays bounded whatever the folders are called."""


def matches(path: str, globs: Iterable[str]) -> bool:
    """Tell whether any of the globs means this path."""
    return glob_set(tuple(globs)).first(path) is not None


def has_signs(text: str) -> bool:
    """Return whether a text has a sign that means something in globs, and so may name several files."""
    return not _SIGNS.isdisjoint(text)


def glob_of(path: str) -> str:
    """Return a glob that means a file or folder: signs that mean something in globs are ``?`` in it."""
    return _NO_LITERALS.sub("?", path)


def glob_fault(glob: object) -> str:
    """Return why something cannot be used as a glob, or the empty text."""
    if not isinstance(glob, str) or not glob.strip():
        return "it must be text that is not empty"
    if len(glob) > limits.MAX_GLOB_CHARS:
        return f"it has {len(glob)} characters; the limit is {limits.MAX_GLOB_CHARS}"
    if "\\" in glob:
        return "parts are separated by '/', not by '\\'"
    if glob.startswith("/"):
        return "it must be relative to the root of the repository"
    if ".." in glob.split("/"):
        return "it must not leave the repository ('..')"
    if _BRACES.search(glob):
        return "braces are no alternatives here; list a glob for each"
    return ""


def too_many_fault(globs: Sequence[str]) -> str:
    """Return why so many globs cannot be used together, or the empty text."""
    if len(globs) > limits.MAX_GLOBS:
        return f"there are {len(globs)} globs; the limit is {limits.MAX_GLOBS}"
    parts = sum(glob.count("/") + 1 for glob in globs)
    if parts > limits.MAX_GLOB_PARTS:
        return f"the globs have {parts} parts between their slashes; the limit is {limits.MAX_GLOB_PARTS}"
    return ""


class _Node:
    """A place in the tree of all globs of a set: the parts before it are matched.

    ``literals`` and ``patterns`` lead to the nodes after one more part; ``any_folders`` to the node after a ``**``,
    which stays where it is (``spans``) for each further folder. ``ends`` are the globs that end with the part that led
    here, ``any_ends`` those that end with the ``**`` of this node.
    """

    __slots__ = ("any_ends", "any_folders", "ends", "literals", "patterns", "spans")

    def __init__(self, *, spans: bool = False) -> None:
        self.literals: dict[str, _Node] = {}
        self.patterns: dict[str, _Node] = {}
        self.any_folders: _Node | None = None
        self.spans = spans
        self.ends: list[int] = []
        self.any_ends: list[int] = []


class GlobState:
    """The state after a folder: the nodes that its path leads to, with what can follow, merged.

    ``known`` are the states of folders below it that were asked for.
    """

    __slots__ = ("_any_ends", "_literals", "_patterns", "_spans", "known")

    def __init__(self, nodes: Iterable[_Node]) -> None:
        self._spans: list[_Node] = []
        self._any_ends: list[int] = []
        self._literals: dict[str, list[_Node]] = {}
        patterns: dict[str, list[_Node]] = {}
        for node in nodes:
            if node.spans:
                self._spans.append(node)
                self._any_ends += node.any_ends
            for part, after in node.literals.items():
                self._literals.setdefault(part, []).append(after)
            for part, after in node.patterns.items():
                patterns.setdefault(part, []).append(after)
        self._patterns = [(_pattern(part).fullmatch, after) for part, after in patterns.items()]
        self.known: dict[str, GlobState] = {}

    @property
    def has_patterns(self) -> bool:
        """Tell whether some glob means files of this folder by a part of their names."""
        return bool(self._patterns)

    @property
    def is_dead(self) -> bool:
        """Tell whether no glob means anything below the folder."""
        return not (self._spans or self._literals or self._patterns)

    def ends(self, name: str) -> list[int]:
        """Return the numbers of the globs that mean the file of this name in the folder, in no order."""
        found = list(self._any_ends) if name else []
        for node in self._literals.get(name, ()):
            found += node.ends
        for is_match, nodes in self._patterns:
            if is_match(name):
                for node in nodes:
                    found += node.ends
        return found

    def after(self, name: str) -> Iterator[_Node]:
        """Yield the nodes that a folder of this name in the folder leads to."""
        if name:
            yield from self._spans
        for node in self._after(name):
            yield node
            if node.any_folders:
                yield node.any_folders

    def _after(self, name: str) -> Iterator[_Node]:
        yield from self._literals.get(name, ())
        for is_match, nodes in self._patterns:
            if is_match(name):
                yield from nodes


class GlobSet:
    """Globs that are asked for together; each is known by its number in the list.

    Threads may share one: each works out what it lacks, and what two work out at once is the same.
    """

    def __init__(self, globs: Sequence[str]) -> None:
        self._root = _Node()
        self._states: dict[frozenset[_Node], GlobState] = {}
        for number, glob in enumerate(globs):
            self._add(glob, number)
        above = self._root.any_folders
        self.start: Final = GlobState([self._root, above] if above else [self._root])
        """The state at the root of the repository."""

    def first(self, path: str) -> int | None:
        """Return the number of the first glob that means a path; None when there is none."""
        return min(self.all(path), default=None)

    def all(self, path: str) -> list[int]:
        """Return the numbers of all globs that mean a path, in no order."""
        folder, _, name = path.rpartition("/")
        return self.below(folder).ends(name) if folder or "/" not in path else self.enter(self.start, "").ends(name)

    def below(self, folder: str) -> GlobState:
        """Return what is open in a folder, "" for the root."""
        state = self.start
        for part in folder.split("/") if folder else ():
            if state.is_dead:
                break
            state = self.enter(state, part)
        return state

    def enter(self, state: GlobState, name: str) -> GlobState:
        """Return what is open in the folder of this name."""
        found = state.known.get(name)
        if found is None:
            nodes = frozenset(state.after(name))
            if len(self._states) >= _MAX_STATES:
                self._states.clear()
            found = self._states.get(nodes)
            if found is None:
                found = self._states[nodes] = GlobState(nodes)
            if len(state.known) < _MAX_STATES:
                state.known[name] = found
        return found

    def _add(self, glob: str, number: int) -> None:
        parts = _parts(glob)
        node = self._root
        for part in parts[:-1]:
            if part != _ANY_FOLDERS:
                node = _child(node, part)
            elif not node.spans:
                node = _spanning(node)
        if parts[-1] == _ANY_FOLDERS:
            (node if node.spans else _spanning(node)).any_ends.append(number)
        else:
            _child(node, parts[-1]).ends.append(number)


@lru_cache(maxsize=64)
def glob_set(globs: tuple[str, ...]) -> GlobSet:
    """Return globs as a set, the same one each time."""
    return GlobSet(globs)


def _parts(glob: str) -> list[str]:
    return glob.removeprefix("./").split("/")


def _child(node: _Node, part: str) -> _Node:
    children = node.literals if _SIGNS.isdisjoint(part) else node.patterns
    return children.setdefault(part, _Node())


def _spanning(node: _Node) -> _Node:
    if node.any_folders is None:
        node.any_folders = _Node(spans=True)
    return node.any_folders


@lru_cache(maxsize=4096)
def _pattern(part: str) -> re.Pattern[str]:
    """Return the expression that matches exactly the names which one part of a glob means.

    What lies between two stars has a fixed length, so the first place where it fits is as good as any later one:
    ``(?>…)`` never looks for another.
    """
    [first, *rest] = _pieces(part)
    if not rest:
        return re.compile(first, re.DOTALL)
    middle = "".join(f"(?>.*?{piece})" for piece in rest[:-1] if piece)
    last = rest[-1]
    if part.endswith(_MARKDOWN) and last.endswith(_MARKDOWN_END):
        last = f"{last.removesuffix(_MARKDOWN_END)}{_ANY_MARKDOWN}"
    return re.compile(f"{first}{middle}.*{last}", re.DOTALL)


def _pieces(part: str) -> list[str]:
    """Return the expressions of what lies between the stars of a part."""
    pieces = [""]
    at = 0
    while at < len(part):
        character = part[at]
        at += 1
        if character == "*":
            pieces.append("")
        elif character == "?":
            pieces[-1] += "."
        elif character == "[" and (end := part.find("]", at + (2 if part[at : at + 1] in {"!", "^"} else 1))) > 0:
            inside = part[at:end]
            is_negated = inside[0] in "!^"
            pieces[-1] += f"[{'^' if is_negated else ''}{_members(inside[is_negated:])}]"
            at = end + 1
        else:
            pieces[-1] += re.escape(character)
    return pieces


def _members(members: str) -> str:
    """Return the members of a set as an expression; a range the wrong way round is text."""
    out = []
    at = 0
    while at < len(members):
        low, high = members[at], members[at + 2 : at + 3]
        if high and members[at + 1] == "-" and low <= high:
            out.append(f"{_member(low)}-{_member(high)}")
            at += 3
        else:
            out.append(_member(low))
            at += 1
    return "".join(out)


def _member(character: str) -> str:
    return f"\\{character}" if character.isascii() and not character.isalnum() else character


def fixed_part(glob: str) -> str:
    """Return the folder that every match of a glob lies below, "" for the root."""
    fixed = []
    for part in _parts(glob)[:-1]:
        if not _SIGNS.isdisjoint(part):
            break
        fixed.append(part)
    return "/".join(fixed)


def means_endings(glob: str) -> bool:
    """Tell whether a glob means files by a part of their names, not by all of it."""
    last = _parts(glob)[-1]
    return last != _ANY_FOLDERS and not _SIGNS.isdisjoint(last)


def looks_deeper(glob: str) -> bool:
    """Tell whether a glob means files in folders below its fixed part."""
    parts = _parts(glob)
    fixed = fixed_part(glob)
    return _ANY_FOLDERS in parts or len(parts) > (fixed.count("/") + 2 if fixed else 1)


def common_folder(folders: Iterable[str]) -> str:
    """Return the deepest folder that all of these are or lie in."""
    shared: list[str] = []
    for parts in zip(*(folder.split("/") for folder in folders), strict=False):
        if len({*parts}) > 1:
            break
        shared.append(parts[0])
    return "/".join(shared)


def parents(path: str) -> Iterator[str]:
    """Yield the folders that a path lies in, the nearest first, and "" for the root at last."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def globs_in(spot: ConfigNode) -> tuple[str, ...]:
    """Return the globs of a list, or a single one; what cannot be used is kept as a problem."""
    return tuple(glob for glob, _ in placed_globs(spot))


def placed_globs(spot: ConfigNode) -> list[tuple[str, ConfigNode]]:
    """Return the globs of a list, or a single one, that can be used, each with its place."""
    if not isinstance(spot.value, str | list):
        spot.must_be("a list of globs", _GLOBS_HINT)
        return []
    found: list[tuple[str, ConfigNode]] = []
    if isinstance(spot.value, list) and len(spot.value) > limits.MAX_GLOBS:
        check_number(spot, spot.value)
        return found
    for place in [spot] if isinstance(spot.value, str) else spot.items():
        fault = glob_fault(place.value)
        if fault:
            place.wrong("bad_glob", f"{shown(place.value)} cannot be used as a glob: {fault}.", _GLOBS_HINT)
        else:
            found.append((place.value, place))
    check_number(spot, [glob for glob, _ in found])
    return found


def check_number(spot: ConfigNode, globs: list[str]) -> None:
    """Keep it as a problem when a list has more globs than a project may have."""
    fault = too_many_fault(globs)
    if fault:
        spot.wrong("too_many_globs", f"The list cannot be used: {fault}.", FEWER_GLOBS)


def naming(globs: Iterable[str], name: str) -> str | None:
    """Return the first of these globs that means a name which is no path: ``*`` is any text, letters are as written."""
    return next((glob for glob in globs if fnmatchcase(name, glob)), None)


def names_any(globs: Iterable[str], name: str) -> bool:
    """Tell whether ``naming`` finds a glob."""
    return naming(globs, name) is not None
