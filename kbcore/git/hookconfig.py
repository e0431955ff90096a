"""Git's hooks by configuration: whether this git has them, KB's entries there, and the folder of hook files.

Only that file is read and written, never one of the user's or of the machine, and only below the names that are asked
for. Whether git runs an entry is decided by git itself.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

import msgspec

from kbcore.git.commands import ask_git_dir, run_git
from kbcore.git.repository import Repository

_PROBE: Final = "kb-probe"
_NO_SUCH_COMMAND: Final = 129
_NOTHING_FOUND: Final = 1
_HOOKS_PATH: Final = "core.hooksPath"
_OWN_HOOKS_PATH: Final = "kb.hooksPath"
"""The value of ``core.hooksPath`` that KB has written, so that KB takes back its own value only."""
_OFF: Final = frozenset({"disabled", "event-disabled"})


class ConfiguredHook(msgspec.Struct, frozen=True):
    """One section ``hook.NAME`` of a repository's configuration: what it runs, and at which events."""

    command: str
    events: tuple[str, ...]


def runs_at(repo: Repository, env: Mapping[str, str], event: str) -> dict[str, bool] | None:
    """Return the configured hooks of an event by name, and whether git runs them; None if it knows of no such hooks.

    A hook that is only named on this one command line shows whether git reads them, whatever its version says.

    Raises: ``GitUnusable``.
    """
    probe = ["-c", f"hook.{_PROBE}.command=:", "-c", f"hook.{_PROBE}.event={event}"]
    words = [*probe, "hook", "list", "-z", "--show-scope", event]
    answer = run_git(repo, env, words, allowed=(0, _NOTHING_FOUND, _NO_SUCH_COMMAND))
    lines = [os.fsdecode(line).split("\t") for line in answer.output.split(b"\0") if b"\t" in line]
    found = {line[-1]: not _OFF & set(line[:-1]) for line in lines}
    return None if found.pop(_PROBE, None) is None else found


def configured_hooks(repo: Repository, env: Mapping[str, str], prefix: str) -> dict[str, ConfiguredHook]:
    """Return the hooks of the repository's own configuration whose names begin so, whether or not git reads them.

    Raises: ``GitUnusable``.
    """
    words = ["config", "--local", "-z", "--get-regexp", rf"^hook\.{prefix}[^.]*\.(command|event)$"]
    answer = run_git(repo, env, words, allowed=(0, _NOTHING_FOUND))
    found: dict[str, ConfiguredHook] = {}
    for entry in filter(None, answer.output.split(b"\0")):
        key, _, value = os.fsdecode(entry).partition("\n")
        name, _, member = key.removeprefix("hook.").rpartition(".")
        hook = found.get(name, ConfiguredHook("", ()))
        own = {"command": value} if member == "command" else {"events": (*hook.events, value)}
        found[name] = msgspec.structs.replace(hook, **own)
    return found


def write_configured_hook(
    repo: Repository, env: Mapping[str, str], name: str, command: str, event: str
) -> ConfiguredHook:
    """Let git run a command at an event; other keys of the section, such as ``enabled``, stay.

    The event comes last: an entry that was left half written is not run. Raises: ``GitUnusable``.
    """
    for member, value in (("command", command), ("event", event)):
        run_git(repo, env, ["config", "--local", "--replace-all", f"hook.{name}.{member}", value])
    return ConfiguredHook(command, (event,))


def remove_configured_hook(repo: Repository, env: Mapping[str, str], name: str) -> None:
    """Take a hook out of the repository's own configuration, where it is. Raises: ``GitUnusable``."""
    run_git(repo, env, ["config", "--local", "--remove-section", f"hook.{name}"])


def hooks_path(repo: Repository, env: Mapping[str, str]) -> str | None:
    """Return ``core.hooksPath`` as it is in force, from any file of git's; None where it is not set.

    Raises: ``GitUnusable``.
    """
    return ask_git_dir(repo.git_dir, env, _HOOKS_PATH.lower())


def write_hooks_path(repo: Repository, env: Mapping[str, str], value: str) -> None:
    """Let git run hook files from another folder in this repository. Raises: ``GitUnusable``."""
    for key in (_OWN_HOOKS_PATH, _HOOKS_PATH):
        run_git(repo, env, ["config", "--local", "--replace-all", key, value])


def written_hooks_path(repo: Repository, env: Mapping[str, str]) -> str | None:
    """Return ``core.hooksPath`` where it is the value that KB has written, else None. Raises: ``GitUnusable``."""
    written = ask_git_dir(repo.git_dir, env, _OWN_HOOKS_PATH.lower())
    return written if written is not None and written == hooks_path(repo, env) else None


def remove_hooks_path(repo: Repository, env: Mapping[str, str]) -> None:
    """Take back the value that KB has written, and forget that KB wrote it. Raises: ``GitUnusable``."""
    for key in (_HOOKS_PATH, _OWN_HOOKS_PATH):
        run_git(repo, env, ["config", "--local", "--unset-all", key])
