"""KB's entries among the hooks that git itself keeps in the configuration of a repository, where git has such hooks.

No other program writes there, and no folder of hooks shadows them. Each event has an entry of its own,
``hook.kb-EVENT``: git does not pass the event to a hook.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcli.hooks import script
from kbcli.hooks.results import REINSTALL, HookResult
from kbcore.git import Repository, hookconfig
from kbcore.git.hookconfig import ConfiguredHook

_PREFIX: Final = "kb-"


class HookEntries(msgspec.Struct, frozen=True):
    """The entries of a repository's configuration for KB's hooks, and which of them git runs."""

    repo: Repository
    env: Mapping[str, str]
    fallback: Path | None
    """The program for when PATH has no ``kb``."""
    own: Mapping[str, ConfiguredHook]
    runs: Mapping[str, bool] | None
    """By event; None where this git knows of no such hooks."""

    def command(self, event: str) -> str:
        """Return the line of shell that belongs in the entry of an event."""
        return script.command(event, self.fallback)


def name_of(event: str) -> str:
    """Return the name of KB's entry for an event."""
    return f"{_PREFIX}{event}"


def read(repo: Repository, env: Mapping[str, str], fallback: Path | None) -> HookEntries:
    """Return KB's entries as they are. Raises: ``GitUnusable``."""
    own = hookconfig.configured_hooks(repo, env, _PREFIX)
    first, *rest = script.EVENTS
    listed = {first: hookconfig.runs_at(repo, env, first)}
    if listed[first] is None:
        return HookEntries(repo, env, fallback, own, None)
    listed |= {event: hookconfig.runs_at(repo, env, event) for event in rest if name_of(event) in own}
    runs = {event: (found or {}).get(name_of(event), False) for event, found in listed.items()}
    return HookEntries(repo, env, fallback, own, runs)


def look(entries: HookEntries, event: str) -> HookResult:
    """Return the state of the entry of an event."""
    result = HookResult(event, str(entries.repo.common_dir / "config"), "absent", remedy=REINSTALL, way="config")
    found = entries.own.get(name_of(event))
    if found is None:
        return result
    if entries.runs is None:
        remedy = f"This git runs no hooks out of its configuration. {REINSTALL}"
        return msgspec.structs.replace(result, state="ignored", remedy=remedy)
    if found != ConfiguredHook(entries.command(event), (event,)):
        return msgspec.structs.replace(result, state="outdated")
    if not entries.runs.get(event, False):
        keys = f"`git config hook.{name_of(event)}.enabled` or `git config hook.{event}.enabled`"
        return msgspec.structs.replace(result, state="ignored", remedy=f"It is switched off: {keys} says so.")
    return msgspec.structs.replace(result, state="active", remedy="")


def install(entries: HookEntries, event: str) -> HookResult:
    """Make the entry of an event what it should be; one that is switched off stays so. Raises: ``GitUnusable``."""
    name, found = name_of(event), entries.own.get(name_of(event))
    if found == ConfiguredHook(entries.command(event), (event,)):
        return msgspec.structs.replace(look(entries, event), action="kept")
    hookconfig.write_configured_hook(entries.repo, entries.env, name, entries.command(event), event)
    now = look(read(entries.repo, entries.env, entries.fallback), event)
    return msgspec.structs.replace(now, action="updated" if found else "created")


def uninstall(entries: HookEntries, event: str) -> HookResult:
    """Take out the entry of an event, where it is. Raises: ``GitUnusable``."""
    result = msgspec.structs.replace(look(entries, event), state="absent", remedy="")
    if name_of(event) not in entries.own:
        return result
    hookconfig.remove_configured_hook(entries.repo, entries.env, name_of(event))
    return msgspec.structs.replace(result, action="removed")
