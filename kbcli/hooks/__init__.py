"""Puts KB's lines into the git hooks of a repository, takes them out again, and says how they stand.

Hooks only save time: nothing is wrong without them. So a hook never makes git fail, and whatever else stands
in a hook file stays as it was, byte for byte.
"""

from __future__ import annotations

from kbcli.hooks.files import HookResult, install, status, uninstall
from kbcli.hooks.place import own_program
from kbcli.hooks.script import EVENTS

__all__ = ["EVENTS", "HookResult", "install", "own_program", "status", "uninstall"]
