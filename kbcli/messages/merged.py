"""Merges of changes in words: what came from another branch, and what would. Pure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from kbcli.messages.lines import outcome_line
from kbcore.text.escaping import escape_controls
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.share.merging import Merged


def missing_line(branch: str, other: str, number: int) -> str:
    """Return how many changes of clients a branch has that another one has not, and what brings them."""
    verb = "is" if number == 1 else "are"
    command = f"`kb merge {shlex.quote(branch)}`"
    them = "it" if number == 1 else "them"
    return escape_controls(
        f"{pluralize(number, 'change')} of clients on {branch} {verb} not on {other}: {command} brings {them}."
    )


def merged_line(merged: Merged, branch: str) -> str:
    """Return what a merge of a branch has changed, and what is contested now."""
    did = "would be merged" if merged.outcome.dry_run else "merged"
    said = f"{pluralize(len(merged.changes), 'change')} of {branch} {did}."
    if merged.contested:
        are = "is" if merged.contested == 1 else "are"
        said += f" {pluralize(merged.contested, 'field')} {are} contested: `kb resolve` lists what to decide."
    return f"{outcome_line(merged.outcome)} {escape_controls(said)}"
