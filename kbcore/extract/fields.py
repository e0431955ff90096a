"""Statements of one mapping about one entity: core fields, attributes, metadata and links.

The same for front matter, for a symbol of a manifest and for the bullets under a heading. A value that is not
valid is a problem with its line, and is left out; everything else is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from kbcore import limits
from kbcore.extract.facts import StatedEntity
from kbcore.extract.links import LinkReader, Manner, targets_in
from kbcore.model import schema
from kbcore.model.graph import SECRET_VALUE
from kbcore.model.values import field_problem, is_short, meaning_problem, normal_time, value_problem
from kbcore.secrets import secrets_in
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem, Severity
from kbcore.text.tree import TextTree
from kbcore.text.wording import in_lines, shortened

CORE_EDGES: Final = frozenset(edge.name for edge in schema.CORE_EDGES)
"""The names of edges, unless a caller passes the names of the schema in force (``edgeNames``)."""

_IDENTITY: Final = frozenset({"id", "type"})
_TEXT_ONLY: Final = {str}
_SUPERSEDING: Final = re.compile(r"(super[sc]edes|super[sc]eded[ _-]by)\b[ :]*(\S.*)", re.IGNORECASE | re.DOTALL)
_REVOKE: Final = "Take it out of the file. If it is real, revoke it."
_SHAPES: Final[Mapping[type[Any], str]] = {list: "a list", dict: "a mapping", str: "text"}


class Sheet:
    """Collects what one mapping states about one entity of one document."""

    def __init__(self, path: str, entity_id: str, tree: TextTree, edge_names: AbstractSet[str]) -> None:
        self.fields: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.problems: list[FileProblem] = []
        self.tree = tree
        self.links = LinkReader(path, entity_id, tree, edge_names)

    def read(self, values: Mapping[str, Any]) -> None:
        """Take in every key of a mapping of the tree but ``id`` and ``type``."""
        lines = self.tree.places[id(values)]
        for key, value in values.items():
            if value is not None and key not in _IDENTITY:
                self.take(key, value, lines[key])
        self.put_urls(lines.get("links", 0))

    def take(self, key: str, value: Any, line: int) -> None:
        """Take in one key: a field of this name, links, or else an attribute."""
        found = len(self.problems) + len(self.links.problems)
        reader = _READERS.get(key)
        if reader is not None:
            reader(self, key, value, line)
        else:
            self._other(key, value, line)
        if len(self.problems) + len(self.links.problems) > found:
            self.problems += rejected_secrets(key, value, line)

    def take_as(self, name: str, value: Any, line: int) -> None:
        """Take in a value as the field of this name, such as ``owner``, ``attributes.kind`` or ``metadata.author``."""
        prefix, _, key = name.partition(".")
        if not key:
            self.take(name, value, line)
            return
        found = len(self.problems)
        self.member(prefix, key, value, line)
        if len(self.problems) > found:
            self.problems += rejected_secrets(name, value, line)

    def put_urls(self, line: int) -> None:
        """State the URLs among the links, once all links are taken in."""
        if self.links.urls:
            self.put("links", self.links.urls, line)

    def put(self, name: str, value: Any, line: int) -> None:
        """State a field, unless the sheet states it already."""
        if name in self.fields:
            if self.fields[name] != value:
                message = f"`{name}` is stated twice: {in_lines(self.lines[name], line)}"
                self.fault(line, "duplicate_key", message, "Keep one; the first one counts.")
            return
        self.fields[name] = value
        self.lines[name] = line

    def fault(self, line: int, code: str, message: str, hint: str, severity: Severity = "error") -> None:
        """Note a problem."""
        self.problems.append(FileProblem(line, code, message, hint, severity))

    def entity(self, entity_id: str, entity_type: str, line: int) -> StatedEntity:
        """Return what the sheet has collected as an entity."""
        return StatedEntity(entity_id, entity_type, self.fields, line, self.lines)

    def all_problems(self) -> list[FileProblem]:
        """Return the problems of fields and of links."""
        return [*self.problems, *self.links.problems]

    def _other(self, key: str, value: Any, line: int) -> None:
        edge = self.links.edge(key)
        if edge is not None:
            self.links.read(value, line, edge)
            return
        self.member("attributes", key, value, line)

    def member(self, prefix: str, key: str, value: Any, line: int) -> None:
        """State one attribute, or one member of the metadata, whatever its shape."""
        if id(value) in self.tree.lossy:
            return
        if not self._is_harmless(key, value) or len(key) > limits.MAX_NAME_CHARS:
            fault = value_problem({key: value})
            if fault:
                self.fault(line, fault.code, f"`{shortened(key, 60)}` {fault.message}", fault.hint)
                return
        self.put(f"{prefix}.{key}", value, line)

    def _is_harmless(self, key: str, value: Any) -> bool:
        """Tell whether a value needs no measuring: a short text, or a text or a list of texts in a small tree."""
        kind = type(value)
        if not self.tree.is_small:
            return kind is str and is_short(value) and is_short(key)
        return kind is str or (kind is list and (not value or set(map(type, value)) == _TEXT_ONLY))

    def text(self, key: str, value: Any, line: int) -> None:
        """State a core field that is text. An empty text states nothing."""
        if type(value) is not str:
            hint = f'Write it on one line, in quotes: `{key}: "…"`.'
            message = f"`{key}` must be text, not {_SHAPES[type(value)]}"
            self.fault(line, "wrong_shape", message, hint)
            self.lines.setdefault(key, line)
            return
        value = value.strip()
        if not value:
            return
        fault = None if self.tree.is_small or is_short(value) else field_problem(key, value)
        if fault:
            self.fault(line, fault.code, f"`{key}` {fault.message}", fault.hint)
            self.lines.setdefault(key, line)
        elif doubt := meaning_problem(key, value):
            self.fault(line, doubt.code, f"`{key}` {doubt.message}; it is left out", doubt.hint, "warning")
        else:
            self.put(key, value, line)

    def time(self, key: str, value: Any, line: int) -> None:
        """State a time, as RFC 3339 in UTC."""
        if type(value) is not str or not value.strip():
            self.text(key, value, line)
            return
        moment = normal_time(value)
        if moment is None:
            hint = "Write RFC 3339, for example 2026-01-31 or 2026-01-31T12:00:00Z."
            self.fault(line, "bad_time", f"`{key}` is no time: {in_quotes(shortened(value, 40))}", hint)
        else:
            self.put(key, moment, line)

    def status(self, key: str, value: Any, line: int) -> None:
        """State the status; ``superseded by X`` is the status ``superseded`` and a link from X."""
        if type(value) is str and self.superseding(value, line):
            value = value.split(maxsplit=1)[0]
        self.text(key, value, line)

    def superseding(self, text: str, line: int) -> bool:
        """Take in links out of ``supersedes X`` or ``superseded by X``; tell whether there are any."""
        found = _SUPERSEDING.fullmatch(text.strip())
        if found is None:
            return False
        targets = targets_in(found[2], self.links.path)
        manner = Manner("supersedes", reverse=found[1].lower().endswith("by"))
        for target in targets:
            self.links.add(target, line, manner)
        return bool(targets)

    def tags(self, key: str, value: Any, line: int) -> None:
        """State a list of text; one text is split at its commas."""
        if id(value) in self.tree.lossy:
            return
        if type(value) is str:
            tags = [tag for part in value.split(",") if (tag := part.strip())]
        elif isinstance(value, list) and all(item is None or type(item) is str for item in value):
            tags = [tag for item in value if item and (tag := item.strip())]
        else:
            message, hint = f"`{key}` must be a list of text", "For example `tags: [auth, needs review]`."
            self.fault(line, "wrong_shape", message, hint)
            return
        tags = list(dict.fromkeys(tags))
        fault = None if self.tree.is_small and len(tags) <= limits.MAX_TAGS else field_problem(key, tags)
        if fault:
            self.fault(line, fault.code, f"`{key}` {fault.message}", fault.hint)
        elif tags:
            self.put(key, tags, line)

    def statements(self, _key: str, value: Any, line: int) -> None:
        """Take in links."""
        self.links.read(value, line)

    def members(self, key: str, value: Any, line: int) -> None:
        """State the members of ``attributes:`` or ``metadata:``."""
        if not isinstance(value, dict):
            hint = f"Write `key: value` lines below `{key}:`, indented."
            self.fault(line, "wrong_shape", f"`{key}` must be a mapping", hint)
            return
        for name, member in value.items():
            if member is not None:
                self.member(key, name, member, self.tree.line(value, name) or line)


def rejected_secrets(name: str, value: Any, line: int, entity_id: str = "") -> Iterator[FileProblem]:
    """Yield a problem for each text that looks like a secret in the value of a field which is not recorded as it is.

    Nothing that looks at records finds it there.
    """
    for found in secrets_in(value, name, name):
        message = f"`{found.place}` {found.looks}"
        yield FileProblem(line, SECRET_VALUE, message, _REVOKE, "warning", id=entity_id)


def fold_keys(tree: TextTree, values: dict[str, Any]) -> None:
    """Give core keys of a mapping that are written with capitals (``ID``, ``Status``) their own names."""
    if "".join(values).islower():
        return
    for key in [key for key in values if not key.islower()]:
        folded = key.lower()
        if (folded in _READERS or folded in _IDENTITY) and folded not in values:
            lines = tree.places[id(values)]
            values[folded], lines[folded] = values.pop(key), lines.pop(key)


_READERS: Final[Mapping[str, Callable[[Sheet, str, Any, int], None]]] = {
    **dict.fromkeys(("title", "owner", "priority", "severity", "text_ref"), Sheet.text),
    "status": Sheet.status,
    "created_at": Sheet.time,
    "updated_at": Sheet.time,
    "tags": Sheet.tags,
    "links": Sheet.statements,
    "relationships": Sheet.statements,
    "attributes": Sheet.members,
    "metadata": Sheet.members,
}
"""The reader of each key that is no attribute. ``source`` is none of them: KB knows where facts are from."""
