"""The facts of a manifest, a YAML or JSON file that lists symbols and their relationships.

One bad symbol does not lose the others, and only what is known of this symbol is kept as it was.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.extract import settings
from kbcore.extract.facts import Facts, SourceFile, StatedEntity, StatedLink, unreadable
from kbcore.extract.fields import CORE_EDGES, Sheet, fold_keys
from kbcore.ids import check_id
from kbcore.model.graph import OTHER_NAMES
from kbcore.text import conflict_markers, json_reader
from kbcore.text.decoding import decode
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import REPEATED_ID, FileProblem, at_most
from kbcore.text.suggest import nearest
from kbcore.text.tree import DUPLICATE_KEY, TextTree
from kbcore.text.wording import in_lines, shortened

_LIST: Final = "symbols"
_DEFAULT_TYPE: Final = "symbol"
_BEGINS: Final = re.compile(r"\b(?:id|symbols)\b[\"']?\s*:", re.IGNORECASE)
"""A sign of a line in which an item or the list begins."""
_QUIET_KEYS: Final = frozenset({_LIST, "version", "$schema"})


def read(source: SourceFile, settings_: Mapping[str, Any]) -> Facts:
    """Return the symbols that a manifest states, with their links."""
    decoded = decode(source.data)
    if decoded.text is None:
        return unreadable(decoded.problems)
    is_json = source.path.lower().endswith(".json")
    text, torn = conflict_markers.without_conflicts(decoded.text)
    if torn and (is_json or not text.strip()):
        return Facts(problems=at_most((*decoded.problems, *torn)), is_complete=False)
    tree = json_reader.read_plain(text) if is_json else _read_yaml(text)
    reader = _Manifest(source, tree, text, settings_)
    reader.problems.extend((*decoded.problems, *torn, *tree.problems))
    reader.read()
    is_complete = reader.is_listed and not torn and all(one.severity != "error" for one in decoded.problems)
    return Facts(
        tuple(reader.entities.values()),
        tuple(reader.links),
        at_most(reader.problems),
        is_complete=is_complete,
        held_back=tuple(reader.held_back) if is_complete else (),
        unidentified=tuple(reader.unidentified) if is_complete else (),
    )


def _read_yaml(text: str) -> TextTree:
    from kbcore.text import yaml_salvage  # noqa: PLC0415 - it imports yaml, and few repositories have such a manifest

    return yaml_salvage.read(text, 1)


class _Manifest:
    """One manifest on its way to facts."""

    def __init__(self, source: SourceFile, tree: TextTree, text: str, settings_: Mapping[str, Any]) -> None:
        self.source = source
        self.tree = tree
        self.rows = text.split("\n")
        self.edge_names = frozenset(settings_.get(settings.EDGE_NAMES, CORE_EDGES))
        self.entities: dict[str, StatedEntity] = {}
        self.links: list[StatedLink] = []
        self.problems: list[FileProblem] = []
        self.is_listed = True
        """False when it is not known what the manifest lists."""
        self.held_back: dict[str, None] = {}
        self.unidentified: dict[str, None] = {}

    def read(self) -> None:
        """Take in every symbol of the list."""
        listed = self._listed()
        if listed is None:
            self.is_listed = self.tree.is_complete and all(one.severity != "error" for one in self.problems)
            return
        torn = self._torn(listed)
        for index, item in enumerate(listed):
            line = self.tree.line(listed, index)
            if isinstance(item, dict):
                fold_keys(self.tree, item)
                if index in torn and isinstance(item.get("id"), str):
                    self.held_back[item["id"]] = None
                self._symbol(item, line)
            elif item is not None:
                self._fault(line, "wrong_shape", "a symbol must be a mapping", "Write `- id: …`, and its keys below.")
                self.unidentified[""] = None

    def _torn(self, listed: list[Any]) -> set[int]:
        """Return which items of the list the faults of the text are in.

        Each fault may hide an item, but a key that is repeated, unless it begins an item or the list.
        """
        faults = [one for one in self.tree.problems if one.severity == "error"]
        lines = [self.tree.line(listed, index) for index in range(len(listed))]
        torn: set[int] = set()
        for line in {one.line for one in faults}:
            # Items may begin in the line in which another one ends.
            torn.update(range(max(0, bisect_left(lines, line) - 1), bisect_right(lines, line)))
        if any(one.code != DUPLICATE_KEY or self._begins_something(one.line) for one in faults):
            self.unidentified[""] = None
        if not faults and not self.tree.is_complete:
            self.is_listed = False
        return torn

    def _begins_something(self, line: int) -> bool:
        """Tell whether an item or the list may begin in a line; YAML may count more lines than there are."""
        rows = self.rows[line - 1 : line]
        return not rows or _BEGINS.search(rows[0]) is not None

    def _listed(self) -> list[Any] | None:
        root = self.tree.root
        if root is None:
            if self.tree.is_complete:
                message, hint = "the manifest is empty", f"List symbols under `{_LIST}:`."
                self.problems.append(FileProblem(1, "empty_manifest", message, hint, "note"))
            return None
        if isinstance(root, list):
            return root
        if not isinstance(root, dict):
            self._fault(1, "wrong_shape", "the manifest holds no list of symbols", f"List them under `{_LIST}:`.")
            return None
        for key in root:
            if key not in _QUIET_KEYS:
                near = f"Did you mean `{_LIST}`?" if nearest(key, [_LIST]) else "Remove it."
                message = f"`{shortened(key, 60)}` is no key of a manifest; what is under it was not read"
                self.problems.append(FileProblem(self.tree.line(root, key), "unknown_key", message, near, "warning"))
        listed = root.get(_LIST)
        if isinstance(listed, list):
            return listed
        if listed is not None:
            hint = "Write `- id: …` lines below it."
            self._fault(self.tree.line(root, _LIST), "wrong_shape", f"`{_LIST}` must be a list", hint)
        elif _LIST not in root and self.tree.is_complete:
            self._fault(1, "missing_symbols", f"the manifest has no `{_LIST}`", f"List them under `{_LIST}:`.")
        return None

    def _symbol(self, item: dict[str, Any], line: int) -> None:
        symbol_id = item.get("id")
        if not isinstance(symbol_id, str) or not symbol_id:
            title = item.get("title") or item.get("name")
            named = f" ({in_quotes(shortened(title, 60))})" if isinstance(title, str) else ""
            code = "missing_id" if symbol_id is None or symbol_id == "" else "wrong_shape"
            self._fault(line, code, f"the symbol in line {line}{named} has no id that is text", "Add `id: …` to it.")
            self.unidentified[_title(item)] = None
            return
        id_line = self.tree.line(item, "id")
        fault = check_id(symbol_id)
        if fault:
            self._fault(
                id_line,
                "bad_id",
                f"the id {in_quotes(shortened(symbol_id, 60))} cannot be used: {fault}",
                "Choose another id.",
            )
            self.unidentified[_title(item)] = None
            return
        if symbol_id in self.entities:
            first = self.entities[symbol_id].line
            message = f"the id {in_quotes(symbol_id)} is there twice: {in_lines(first, id_line)}"
            self._fault(id_line, REPEATED_ID, message, "Keep one of the two; the first one counts.", symbol_id)
            self.held_back[symbol_id] = None
            if _title(item):
                # Its own id may have been another one.
                self.unidentified[_title(item)] = None
            return
        symbol_type = item.get("type") or _DEFAULT_TYPE
        if not isinstance(symbol_type, str) or len(symbol_type) > limits.MAX_NAME_CHARS:
            message = f"`type` of the symbol {in_quotes(symbol_id)} must be the name of one type"
            self._fault(
                self.tree.line(item, "type"), "wrong_shape", message, "For example `type: component`.", symbol_id
            )
            self.held_back[symbol_id] = None
            return
        sheet = Sheet(self.source.path, symbol_id, self.tree, self.edge_names)
        sheet.read(self._renamed(item))
        if "title" not in sheet.fields:
            sheet.put("title", symbol_id, id_line)
        self.entities[symbol_id] = sheet.entity(symbol_id, symbol_type, id_line)
        self.links.extend(sheet.links.links.values())
        problems = [msgspec.structs.replace(one, id=symbol_id) for one in sheet.all_problems()]
        if any(one.severity == "error" for one in problems):
            self.held_back[symbol_id] = None
        self.problems.extend(problems)

    def _renamed(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return the keys of a symbol under the names that KB has for them."""
        lines = self.tree.places[id(item)]
        for old, new in OTHER_NAMES:
            if old in item and item.get(new) is None:
                item[new], lines[new] = item.pop(old), lines.pop(old)
        return item

    def _fault(self, line: int, code: str, message: str, hint: str, about: str = "") -> None:
        self.problems.append(FileProblem(line, code, message, hint, id=about))


def _title(item: Mapping[str, Any]) -> str:
    """Return the title of an entry, "" when it has none that can be read."""
    title = item.get("title") or item.get("name")
    return title.strip() if isinstance(title, str) else ""
