"""The state of a hook and the change that was made, as values that any front end can show. Plain data."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from kbcore.errors.remedies import for_shell, kb

State = Literal["active", "outdated", "absent", "ignored", "foreign", "managed", "outside", "failed"]
Action = Literal["created", "added", "updated", "kept", "removed", "deleted", "none"]
Way = Literal["file", "config"]

REINSTALL: Final = f"{kb('hooks', 'install', lead='Run')}."


class HookResult(msgspec.Struct, frozen=True):
    """The state of one hook, and the change that was made."""

    event: str
    path: str
    """The hook file that was read or written, or the configuration of the repository."""
    state: State
    """``active``: KB's lines are there and are run. ``outdated``: so, but they are of another version, name another
    program, or are there twice. ``absent``: no lines. ``ignored``: they are there and are not run. ``foreign``: a hook
    that KB does not touch. ``managed``: another program owns the hooks. ``outside``: the folder that git runs
    hooks from serves other repositories as well. ``failed``: the operating system, or git, refused."""
    action: Action = "none"
    remedy: str = ""
    """The steps to do by hand (``kbcore.errors.remedies``); empty when there is nothing."""
    note: str = ""
    """A further change so that git runs the hook; empty when there was none."""
    way: Way = "file"
    """``config``: git itself is set to run KB, by the entry ``hook.kb-EVENT`` of the repository's configuration."""

    @property
    def hint(self) -> str:
        """Return the remedy in the words of the command line."""
        return for_shell(self.remedy)

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found | {"remedy": self.hint}
