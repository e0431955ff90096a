"""A client's request: one command or a batch, with parameters, to be run or only tried. Pure.

A request is read as it came, member by member; nothing unknown in it is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import KipRefused
from kbcore.kip.errors import RESOURCE, SYNTAX, Code, refused
from kbcore.model.request_reader import kind_of
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest

MEMBERS: Final = ("command", "commands", "parameters", "dry_run")
_OF_ITEM: Final = ("command", "parameters")
_NO_PARAMETERS: Final[Mapping[str, Any]] = {}


class CommandText(msgspec.Struct, frozen=True):
    """The text of one command, and the values of its placeholders.

    ``lead`` blanks in front of it only give it the place that it has in a file, and are no part of it.
    """

    text: str
    parameters: Mapping[str, Any] = {}
    lead: int = 0


_BLANKS: Final = re.compile(r"(?:[ \t\r\n]|//[^\r\n]*)*")
_SEVERAL: Final = 'For example {"commands": ["DESCRIBE PRIMER", "DESCRIBE DOMAINS"]}.'
_WRITING: Final = ("UPSERT", "DELETE", "UPDATE", "MERGE")


class KipRequest(msgspec.Struct, frozen=True):
    """Commands to carry out in order. With ``is_batch`` the answer is a list, however many they are."""

    commands: tuple[CommandText, ...]
    is_batch: bool = False
    dry_run: bool = False

    @property
    def writes(self) -> bool:
        """Return whether a command begins as one that writes, whatever follows."""
        return any(_begins(one.text).startswith(_WRITING) for one in self.commands)


def read(given: Any) -> KipRequest:
    """Return the request ``{command | commands, parameters, dry_run}`` that a JSON value holds.

    Parameters of an item of ``commands`` override the shared ones key by key.

    Raises: ``KipRefused`` (KIP_1001, KIP_4002), its data with the JSON path of what is wrong.
    """
    members = _members(given, "$", MEMBERS)
    shared = _parameters(members, "$")
    dry_run = members.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise _wrong("$.dry_run", f"`dry_run` must be true or false, not {kind_of(dry_run)}.", "Leave it out to write.")
    if ("command" in members) == ("commands" in members):
        hint = "Send one command as `command`, or several in order as `commands`."
        how = "both" if "command" in members else "neither"
        raise _wrong("$", f"A request has `command` or `commands`; this one has {how}.", hint)
    if "command" in members:
        return KipRequest((CommandText(_text(members["command"], "$.command"), shared),), dry_run=dry_run)
    items = members["commands"]
    if not isinstance(items, list) or not items:
        what = "an empty list" if items == [] else kind_of(items)
        raise _wrong("$.commands", f"`commands` must be a list of commands, not {what}.", _SEVERAL)
    if len(items) > limits.MAX_KIP_COMMANDS:
        message = f"`commands` has {len(items)} commands; the limit is {limits.MAX_KIP_COMMANDS}."
        raise _wrong("$.commands", message, "Send them in several requests.", code=RESOURCE)
    commands = tuple(_item(item, f"$.commands[{at}]", shared) for at, item in enumerate(items))
    return KipRequest(commands, is_batch=True, dry_run=dry_run)


def _begins(text: str) -> str:
    """Return a text from its first word on."""
    blanks = _BLANKS.match(text)
    return text[blanks.end() :] if blanks else text


def _item(item: Any, path: str, shared: Mapping[str, Any]) -> CommandText:
    if isinstance(item, str):
        return CommandText(item, shared)
    members = _members(item, path, _OF_ITEM)
    if "command" not in members:
        raise _wrong(path, "The `command` of this item is missing.", 'Write it as {"command": "…", "parameters": {…}}.')
    return CommandText(_text(members["command"], f"{path}.command"), {**shared, **_parameters(members, path)})


def _members(given: Any, path: str, known: tuple[str, ...]) -> dict[str, Any]:
    """Return the members of an object that are not null, all of them known."""
    if not isinstance(given, dict):
        what = "A command is text or an object" if path != "$" else "A request is an object"
        raise _wrong(path, f"{what}, not {kind_of(given)}.")
    for name in given:
        if name not in known:
            near = nearest(str(name), known)
            hint = f"Did you mean {near!r}? " if near else ""
            raise _wrong(
                f"{path}.{name}", f"There is no {in_quotes(str(name))} here.", f"{hint}Allowed: {', '.join(known)}."
            )
    return {name: value for name, value in given.items() if value is not None}


def _parameters(members: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    found = members.get("parameters", _NO_PARAMETERS)
    if not isinstance(found, Mapping):
        message = f"`parameters` must be an object, not {kind_of(found)}."
        raise _wrong(f"{path}.parameters", message, 'For example {"name": "Alice"}, which replaces :name.')
    return found


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise _wrong(path, f"A command is text, not {kind_of(value)}.")
    return value


def _wrong(path: str, message: str, hint: str = "", *, code: Code = SYNTAX) -> KipRefused:
    hint = hint or 'For example {"command": "DESCRIBE PRIMER"}.'
    return refused(code, message, hint=hint, data={"path": path})
