"""The result of a sync, in words. Pure.

Every line says no more than was done: a file that could not be read is not among those recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcli.messages.lines import changes_of
from kbcore.text.escaping import escape_controls, problem_line
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.sync.answer import CountedNote, SyncAnswer


def sync_line(answer: SyncAnswer) -> str:
    """Return what a sync did or would do."""
    outcome = answer.outcome
    where = f"{outcome.branch} at seq {outcome.seq}"
    changes = changes_of(outcome, answer.unresolved_created)
    if not changes and not answer.changed and not answer.removed:
        return escape_controls(f"{where}: up to date with {pluralize(answer.scanned, 'file')}.")
    done = f"{changes or 'no entity or edge changed,'} {_from(answer)}"
    return escape_controls(f"{'Would change ' if outcome.dry_run and changes else ''}{where}: {done}.")


def _from(answer: SyncAnswer) -> str:
    """Return which files the changes come from."""
    files = pluralize(answer.scanned, "file")
    if not answer.changed:
        return f"from {pluralize(answer.removed, 'removed file')}" if answer.removed else f"from {files}"
    removed = f" and {answer.removed} removed" if answer.removed else ""
    unread = f", {answer.unread} of them not read completely" if answer.unread else ""
    return f"from {answer.changed} of {files}{removed}{unread}"


def unresolved_line(answer: SyncAnswer) -> str:
    """Return how many of the edges that a sync created lead to what need not be an entity and is none, or nothing."""
    count = answer.waiting_mentions
    if not count:
        return ""
    if count == 1:
        return "1 of the edges is a link in a text, or of an index, to what is no entity; it is unresolved."
    return f"{count:,} of the edges are links in texts, or of an index, to what is no entity; they are unresolved."


def note_line(note: CountedNote) -> str:
    """Return the line on one file, or on many equal ones with one of them as the example."""
    line = problem_line(note.path, note.line, note.message, note.hint)
    return line if note.count == 1 else f"{note.count:,} notes ({note.code}) such as {line}"


def elsewhere_line(problems: int, unresolved: int) -> str:
    """Return a line on other files than the named paths, or nothing."""
    found = [
        *([pluralize(problems, "problem")] if problems else []),
        *([pluralize(unresolved, "unresolved link")] if unresolved else []),
    ]
    return f"Elsewhere: {' and '.join(found)}; `kb sync` without paths lists them." if found else ""
