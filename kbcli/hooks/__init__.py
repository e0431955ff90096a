"""Has git run KB at some events, in a repository's configuration or its hook files; undoes it; shows the state.

Hooks only save time: nothing is wrong without them. So a hook never makes git fail, and all other content
of a hook file stays as it was, byte for byte.
"""

from __future__ import annotations

from kbcli.hooks.hook_folder import find_place, own_program
from kbcli.hooks.hook_setup import check_folder, install, status, uninstall
from kbcli.hooks.results import HookResult
from kbcli.hooks.script import EVENTS

__all__ = ["EVENTS", "HookResult", "check_folder", "find_place", "install", "own_program", "status", "uninstall"]
