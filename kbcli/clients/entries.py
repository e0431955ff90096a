"""The program that an entry in a client's file would start, as far as it concerns KB. Pure.

The file is part of the repository: whatever it says, only KB's own program is started, and only to serve.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec

PROGRAMS: Final = ("kb", "kb-mcp")
_TAKING_A_VALUE: Final = frozenset(
    {"-C", "--branch", "--toolsets", "--tool-names", "-l", "--kb-libraries", "--kb-roots"}
)
_ALONE: Final = frozenset({"--read-only"})
_WORKSPACE: Final = re.compile(r"\$\{workspaceFolder\}")
_VARIABLES: Final = frozenset({"KB_BRANCH", "KB_TOOL_NAMES", "KB_LIBRARIES", "KB_LOGIC_ROOTS"})


class ClientEntry(msgspec.Struct, frozen=True):
    """A command with its arguments, and what of its environment KB knows; the workspace's folder is put in."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str] = {}

    @property
    def folder(self) -> str:
        """Return the folder that the server is to serve; "" where it is the one that it is started in."""
        return next((value for name, value in _options(self.arguments) if name == "-C"), "")

    def is_serving(self, program: str) -> bool:
        """Return whether the arguments start one of KB's programs as a server, and do nothing else."""
        words = list(self.arguments)
        if program == "kb":
            if "mcp" not in words[:1]:
                return False
            words = words[1:]
        found = _options(words)
        known = all(name in _TAKING_A_VALUE and value for name, value in found if name not in _ALONE)
        return known and not any("${" in word for word in words)

    def fault(self, program: str) -> str:
        """Return why one of KB's programs cannot serve with these arguments, "" where that is not known."""
        words = list(self.arguments)
        if program == "kb":
            if "mcp" not in words:
                return f"`{' '.join(['kb', *words[:1]])}` is no server; `kb mcp` is"
            words = words[words.index("mcp") + 1 :]
        for name, value in _options(words):
            if "${" in name or name in _ALONE:
                continue
            if name not in _TAKING_A_VALUE:
                return f"the server takes no `{name}`"
            if not value:
                return f"`{name}` needs a value"
        return ""


def fault_of(name: str, entry: object) -> str:
    """Return what is missing in a server's entry that has to do with KB, "" where nothing is, or it starts nothing."""
    if not isinstance(entry, dict) or "url" in entry or "httpUrl" in entry:
        return ""
    command, words = _words_of(entry)
    texts = [one for one in (command, *(words if isinstance(words, list) else [])) if isinstance(one, str)]
    if not {name, *(PurePath(text).name for text in texts)} & {*PROGRAMS}:
        return ""
    if not isinstance(command, str) or not command:
        return "it has no `command`"
    is_list = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return "" if is_list else "its `args` are no list of texts"


def start_of(name: str, entry: object, worktree: Path) -> ClientEntry | None:
    """Return what a server's entry starts, if it has to do with KB: by its name, its command or an argument."""
    if not isinstance(entry, dict):
        return None
    first, words = _words_of(entry)
    if not isinstance(first, str) or not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return None
    command, *arguments = (_WORKSPACE.sub(lambda _: str(worktree), word) for word in (first, *words))
    named = {name, PurePath(command).name, *(PurePath(word).name for word in arguments)}
    return ClientEntry(command, tuple(arguments), _env_of(entry)) if named & {*PROGRAMS} else None


def is_same_start(name: str, there: object, wanted: object) -> bool:
    """Return whether an entry starts the wanted server for the wanted folder, with whatever options of the server."""
    found, asked = (start_of(name, one, Path()) for one in (there, wanted))
    if found is None or asked is None or found.command != asked.command or found.folder != asked.folder:
        return False
    return found.is_serving(PurePath(found.command).name)


def _words_of(entry: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the command of an entry and its arguments, which some clients keep in one list."""
    command = entry.get("command")
    if isinstance(command, list) and command:
        return command[0], command[1:]
    return command, entry.get("args", [])


def _env_of(entry: Mapping[str, Any]) -> dict[str, str]:
    env = entry.get("env") or entry.get("environment")
    return {key: env[key] for key in _VARIABLES if isinstance(env.get(key), str)} if isinstance(env, dict) else {}


def _options(words: Sequence[str]) -> list[tuple[str, str]]:
    """Return options with their values; "" where one has no value, or where a word is no option."""
    found, rest = list[tuple[str, str]](), list(words)
    while rest:
        name = rest.pop(0)
        name, equals, value = name.partition("=") if name.startswith("--") else (name, "", "")
        if not equals and name in _TAKING_A_VALUE and rest:
            value = rest.pop(0)
        found.append((name, value))
    return found
