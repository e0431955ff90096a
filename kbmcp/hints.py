"""The remedy of each error in the words of the tools: which call comes next, where the core names a command."""

from __future__ import annotations

import re
from typing import Final

from kbcore.errors import KBError

_COMMANDS: Final = re.compile(r"`kb (?:query|show|log|check|revert|apply|delete|branch|diff|COMMAND)\b|--force|--help")
"""Commands that a client of the tools would not run."""

_NEXT: Final = {
    "invalid_changeset": "Mend every problem in `details`, then call {kb_TOOL} again with the whole request.",
    "invalid_query": "Mend the arguments in `details`, then call {kb_TOOL} again.",
    "integrity_violation": "Write the missing ends in the same {kb_upsert}, or leave it out; {kb_query} finds ids.",
    "stale_base": "Read what is listed again with {kb_query} and `ids`, then send the request anew.",
    "derived_fact": "Edit the named file and run `kb sync`, or leave those fields out and call {kb_TOOL} again.",
    "branch_moved": "Make sure which branch is meant, read again with {kb_query}, then call {kb_TOOL} again.",
    "revert_conflict": "Revert the later records first with {kb_history}, or write the old values with {kb_upsert}.",
    "limit_exceeded": "Split the request into several calls of {kb_TOOL}.",
    "lock_timeout": "Another process writes to the branch; call {kb_TOOL} again in a moment.",
    "not_found": "{kb_query} with `text` finds entities, {kb_history} with action log finds records.",
    "unknown_branch": "The server serves the branch that it was started with, or the one that is checked out.",
    "not_a_repository": "Start the server inside a git repository, or with -C PATH.",
    "not_initialised": "Run `kb init` in the repository, then call {kb_TOOL} again.",
}


def hint_for(error: KBError, key: str) -> str:
    """Return the remedy for a client that called the tool with this key.

    A hint of its own is kept, unless it names a command where there is a tool. ``{kb_…}`` stands for a tool's name.
    """
    if error.hint and error.hint != error.default_hint and not _COMMANDS.search(error.hint):
        return error.hint
    found = _NEXT.get(error.code, error.default_hint or error.hint)
    return found.replace("{kb_TOOL}", "{" + key.replace(".", "_") + "}")
