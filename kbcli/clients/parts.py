"""The parts that KB installs for clients: the server's entry, hooks, a block of instructions, the skill. Pure.

Each part is in one file, and knows how to put itself into the file's text, to take itself out, and how it is there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from kbcli.clients import marked_block, toml_text
from kbcli.clients.entries import is_same_start
from kbcli.clients.kinds import ClientKind, HookFile
from kbcli.clients.marked_block import State
from kbcli.clients.opencode import opencode_plugin
from kbcore.prime.agent_text import agent_text, is_unchanged_skill, skill_text
from kbcore.text.json_edit import with_item, with_member, without_empty, without_items, without_member
from kbcore.text.json_reader import NotJson, read_spans

PartName = Literal["server", "hooks", "instructions", "skill"]

_EMPTY: Final[tuple[dict[str, Any], ...]] = ({}, {"version": 1}, {"version": 1, "hooks": {}}, {"hooks": {}})
"""The contents of a JSON file that holds nothing, as KB or a client begins one."""
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


class InstalledPart(Protocol):
    """One part of what is installed for a client."""

    @property
    def name(self) -> PartName:
        """The kind of part."""

    @property
    def is_text(self) -> bool:
        """Return whether it is lines between two marks, in which a person may have written."""

    def put(self, text: str) -> str:
        """Return a file's text with the part in it. Raises: ``NotJson``; ``NotToml``; ``Mangled``."""

    def take(self, text: str) -> str:
        """Return a file's text without the part. Raises: as ``put``."""

    def look(self, text: str, written: str) -> State:
        """Return how the part is in a file's text; ``written`` is what was noted of it when it was put there."""

    def note(self, text: str) -> str:
        """Return what to note of the part when it was put into a text: what was written, in one line."""


class ServerEntry(msgspec.Struct, frozen=True):
    """The entry by which a client starts the server, and the folders that its sandbox lets commands write to."""

    kind: ClientKind
    server: str
    entry: Mapping[str, Any]
    roots: tuple[Path, ...] = ()
    name: PartName = "server"
    is_text: bool = False

    def put(self, text: str) -> str:
        """See ``InstalledPart``."""
        kind = self.kind
        if kind.format == "toml":
            changed = toml_text.with_table(text, (kind.table, self.server), self.entry)
            for root in self.roots if kind.roots else ():
                table, key = kind.roots or ("", "")
                changed = toml_text.with_listed(changed, (table,), key, str(root))
            return changed
        changed = text if text.strip() else "{}\n"
        there = self.found(changed)
        if there is not None:
            for key, value in self.entry.items():
                if there.get(key) != value:
                    changed = with_member(changed, (kind.table, self.server, key), value)
            return changed
        return with_member(changed, (kind.table, self.server), dict(self.entry))

    def take(self, text: str) -> str:
        """See ``InstalledPart``."""
        kind = self.kind
        if kind.format == "toml":
            changed = toml_text.without_table(text, (kind.table, self.server))
            for root in self.roots if kind.roots else ():
                table, key = kind.roots or ("", "")
                changed = toml_text.without_listed(changed, (table,), key, str(root))
            return changed
        return without_empty(without_member(text, (kind.table, self.server)), (kind.table,)) if text.strip() else text

    def look(self, text: str, written: str) -> State:
        """See ``InstalledPart``. An entry that starts something else is for ``finding`` to judge."""
        there = self.found(text)
        if there is None:
            return "missing"
        if all(there.get(key) == value for key, value in self.entry.items()):
            return "installed"
        if is_same_start(self.server, there, self.entry):
            return "installed"
        return "outdated" if written and written == _as_line(there) else "changed"

    def note(self, text: str) -> str:
        """See ``InstalledPart``."""
        return _as_line(self.found(text))

    def found(self, text: str) -> dict[str, Any] | None:
        """Return the entry of this name, None where there is none."""
        root: Any = toml_text.parse(text) if self.kind.format == "toml" else _root(text)
        servers = root.get(self.kind.table) if isinstance(root, dict) else None
        there = servers.get(self.server) if isinstance(servers, dict) else None
        return there if isinstance(there, dict) else None


class HookLists(msgspec.Struct, frozen=True):
    """The items for KB in the lists of hooks of a client. One is KB's where its command runs ``kb agents hook``."""

    client: str
    file: HookFile
    command: tuple[str, ...]
    """The command that is run, before the name of an event."""
    name: PartName = "hooks"
    is_text: bool = False

    def put(self, text: str) -> str:
        """See ``InstalledPart``."""
        changed = text if text.strip() else '{\n  "version": 1\n}\n' if self.file.is_versioned else "{}\n"
        root = _root(changed)
        if not isinstance(root, dict) or not isinstance(root.get("hooks", {}), dict):
            raise NotJson(1, 1, "`hooks` is no object")
        wanted = self.items()
        for name, items in self._own(root).items():
            unwanted = [one for one in items if one not in wanted.get(name, [])]
            if unwanted:
                changed = without_items(changed, ("hooks", name), unwanted.__contains__)
        for name, items in wanted.items():
            for item in items:
                changed = with_item(changed, ("hooks", name), item)
        return changed

    def take(self, text: str) -> str:
        """See ``InstalledPart``."""
        if not text.strip():
            return text
        for name, items in self._own(_root(text)).items():
            text = without_items(text, ("hooks", name), items.__contains__)
            text = without_empty(text, ("hooks", name))
        return text

    def look(self, text: str, written: str) -> State:
        """See ``InstalledPart``."""
        own = self._own(_root(text))
        if not own:
            return "missing"
        if own == self.items():
            return "installed"
        return "outdated" if written and written == _as_line(own) else "changed"

    def note(self, text: str) -> str:
        """See ``InstalledPart``."""
        return _as_line(self._own(_root(text)))

    def items(self) -> dict[str, list[dict[str, Any]]]:
        """Return the items by the client's name of the event."""
        found: dict[str, list[dict[str, Any]]] = {}
        for one in self.file.events:
            line = shell_line([*self.command, one.event])
            hook = {"type": "command", "command": line, "timeout": self.file.timeout}
            matcher = {"matcher": one.matcher} if one.matcher and self.file.has_matchers else {}
            item = {**hook, **matcher} if self.file.form == "items" else {**matcher, "hooks": [hook]}
            found.setdefault(one.name, []).append(item)
        return found

    def _own(self, root: Any) -> dict[str, list[dict[str, Any]]]:
        """Return the items that run KB for this client, and nothing else, by event."""
        events = root.get("hooks") if isinstance(root, dict) else None
        own = {
            name: [one for one in items if isinstance(one, dict) and self._is_own(one)]
            for name, items in (events.items() if isinstance(events, dict) else ())
            if isinstance(items, list)
        }
        return {name: items for name, items in own.items() if items}

    def _is_own(self, item: Mapping[str, Any]) -> bool:
        hooks = item.get("hooks", []) if self.file.form == "groups" else [item]
        commands = [one.get("command") if isinstance(one, dict) else None for one in hooks]
        is_ours = re.compile(rf"\bagents hook {re.escape(self.client)} [a-z-]+\b")
        return bool(commands) and all(isinstance(one, str) and is_ours.search(one) for one in commands)


class Instructions(msgspec.Struct, frozen=True):
    """The block for agents in a file of instructions, which several clients may share."""

    client: str
    needs_full: frozenset[str]
    """The clients that have no hooks, and so need all of the text."""
    name: PartName = "instructions"
    is_text: bool = True

    def put(self, text: str) -> str:
        """See ``InstalledPart``."""
        there = marked_block.find(text)
        clients = tuple(sorted({*(there.clients if there else ()), self.client}))
        return marked_block.with_block(text, clients, self._body(clients))

    def take(self, text: str) -> str:
        """See ``InstalledPart``."""
        there = marked_block.find(text)
        left = tuple(one for one in (there.clients if there else ()) if one != self.client)
        if there is None or self.client not in there.clients:
            return text
        body = there.body if there.is_changed else self._body(left)
        return marked_block.with_block(text, left, body) if left else marked_block.without_block(text)

    def look(self, text: str, written: str) -> State:  # noqa: ARG002 - the digest says what was written
        """See ``InstalledPart``."""
        there = marked_block.find(text)
        if there is None or self.client not in there.clients:
            return "changed" if there and there.is_changed else "missing"
        if there.is_changed:
            return "changed"
        return "installed" if there.body == self._body(there.clients) else "outdated"

    def note(self, text: str) -> str:  # noqa: ARG002 - as above
        """See ``InstalledPart``."""
        return ""

    def _body(self, clients: Sequence[str]) -> str:
        return agent_text(is_full=bool(self.needs_full & {*clients}))


class Plugin(msgspec.Struct, frozen=True):
    """A program in a file of KB's own, for a client that has no lists of hooks."""

    client: str
    command: tuple[str, ...]
    name: PartName = "hooks"
    is_text: bool = True

    def put(self, text: str) -> str:
        """See ``InstalledPart``."""
        return marked_block.with_block(text, (self.client,), opencode_plugin(self.command), is_script=True)

    def take(self, text: str) -> str:
        """See ``InstalledPart``."""
        return marked_block.without_block(text)

    def look(self, text: str, written: str) -> State:  # noqa: ARG002 - as for the instructions
        """See ``InstalledPart``."""
        there = marked_block.find(text)
        if there is None or there.is_changed:
            return "changed" if there else "missing"
        return "installed" if there.body == opencode_plugin(self.command) else "outdated"

    def note(self, text: str) -> str:  # noqa: ARG002 - as above
        """See ``InstalledPart``."""
        return ""


class Skill(msgspec.Struct, frozen=True):
    """The skill, a whole file of KB's own. It has a digest of itself, so that an edited one is known in every clone."""

    name: PartName = "skill"
    is_text: bool = True

    def put(self, text: str) -> str:  # noqa: ARG002 - there is nothing else in the file
        """See ``InstalledPart``."""
        return skill_text()

    def take(self, text: str) -> str:
        """See ``InstalledPart``. What is no skill of KB stays."""
        return "" if is_unchanged_skill(text) else text

    def look(self, text: str, written: str) -> State:  # noqa: ARG002 - the digest says what was written
        """See ``InstalledPart``."""
        if not text:
            return "missing"
        if not is_unchanged_skill(text):
            return "changed"
        return "installed" if text.replace("\r\n", "\n") == skill_text() else "outdated"

    def note(self, text: str) -> str:  # noqa: ARG002 - as above
        """See ``InstalledPart``."""
        return ""


def is_blank(text: str) -> bool:
    """Return whether a text holds nothing but what a file of its kind begins with, or what a client adds to it."""
    if not text.strip():
        return True
    try:
        root = _root(text)
    except NotJson:
        return False
    said = {key: value for key, value in root.items() if key != "$schema"} if isinstance(root, dict) else root
    return said in _EMPTY and "/" not in _STRING.sub("", text)  # a comment is somebody's


def shell_line(command: Sequence[str]) -> str:
    """Return the line of shell that runs a program of KB if it is there, and else does nothing."""
    program, *words = (_quoted(word) for word in command)
    test = f"[ -x {program} ]" if "/" in program else f"command -v {program} >/dev/null 2>&1"
    return f"{test} || exit 0; exec {' '.join([program, *words])}"


def _quoted(word: str) -> str:
    return word if re.fullmatch(r"[\w/.:@%+=-]+", word) else "'" + word.replace("'", "'\\''") + "'"


def _root(text: str) -> Any:
    return read_spans(text if text.strip() else "{}").root


def _as_line(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
