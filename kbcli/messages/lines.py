"""The result of a write, in words: one line that names the branch, the seq and the counts. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from kbcore.limits import KIB
from kbcore.text.escaping import escape_controls, escaped_sentence
from kbcore.text.wording import pluralize, some_of

if TYPE_CHECKING:
    from kbcli.hooks import HookResult
    from kbcore.store.answers import EdgeCounts, Outcome
    from kbcore.store.branches import Ensured
    from kbcore.store.facts_export import Export
    from kbcore.sync.ids_elsewhere import SeenId
    from kbcore.sync.overlay import FileState

_RENAMES: Final = 3
"""The number of renames that are named in the line of a change."""


def outcome_line(outcome: Outcome, noted: str = "only what is known of files") -> str:
    """Return what a changeset did or would do; ``noted`` is what a record says that changed no entity and no edge."""
    where = f"{outcome.branch} at seq {outcome.seq}"
    if outcome.duplicate:
        return escape_controls(f"{where}: this changeset was applied before, nothing was written again.")
    changes = changes_of(outcome)
    if not changes:
        return escape_controls(f"{where}: {noted if outcome.applied else 'nothing to change'}.")
    return escape_controls(f"{'Would change ' if outcome.dry_run else ''}{where}: {changes}.")


def has_changes(outcome: Outcome) -> bool:
    """Return whether any entity or edge changed, as opposed to notes on files."""
    return bool(changes_of(outcome))


def changes_of(outcome: Outcome, unresolved: int = 0) -> str:
    """Return what changed of entities and edges, or nothing; ``unresolved`` is the number of such created edges."""
    parts = [
        f"{len(ids)} {verb}"
        for verb, ids in (("created", outcome.created), ("updated", outcome.updated), ("deleted", outcome.deleted))
        if ids
    ]
    if outcome.renamed:
        parts.append(f"{len(outcome.renamed)} renamed ({renames_of(outcome.renamed)})")
    edges = edge_counts(outcome.edges, unresolved)
    return ", ".join(parts) + (("; " if parts else "") + edges if edges else "")


def renames_of(renamed: Mapping[str, str]) -> str:
    """Return which entities got which id; some of them where there are many."""
    return some_of([f"{old} -> {new}" for old, new in renamed.items()], _RENAMES)


def edge_counts(edges: EdgeCounts, unresolved: int = 0) -> str:
    """Return how many edges were made, so many of them ``unresolved``, changed and removed, or nothing."""
    created = f"created ({unresolved} unresolved)" if unresolved else "created"
    found = [
        f"{number} {verb}"
        for verb, number in ((created, edges.created), ("updated", edges.updated), ("deleted", edges.deleted))
        if number
    ]
    return f"edges: {', '.join(found)}" if found else ""


def unread(number: int, *, is_recorded: bool = False) -> str:
    """Return how many files could not be read completely, and what says why: of the records if ``is_recorded``."""
    command = f"kb check {'--recorded ' * is_recorded}--rule unreadable-source"
    return f"{pluralize(number, 'file')} could not be read completely; `{command}` says why."


def files_line(branch: str, state: FileState) -> str:
    """Return what is to be said of how an answer relates to the files; "" where it is as everybody expects."""
    if state.freshness == "overlay":
        number = state.pending_files or 0
        verb = "differs" if number == 1 else "differ"
        return (
            f"{pluralize(number, 'file')} {verb} from the records of {branch}; the answer has what the files say. "
            f"`kb sync` records it. {state.reason}"
        ).rstrip()
    if state.is_of_documents:
        return ""  # the point says it
    if state.is_past:
        return f"The answer is of the records of {branch} as of seq {state.seq}, not of the files."
    if state.freshness == "unknown":
        return f"The answer is only of the records of {branch}, not of the files. {state.reason}"
    return state.reason


def ensured_line(ensured: Ensured) -> str:
    """Return the message on a branch whose store was opened: the origin of a new one, or nothing."""
    copied = f"{ensured.branch} has a store now, copied from {ensured.copied_from}." if ensured.copied_from else ""
    return escaped_sentence(ensured.notice or copied)


def not_renamed_words(branch: str, other: str, missing: Export) -> list[str]:
    """Return a sentence, without its full stop, for each entity of clients that is renamed on one branch only."""
    said = [
        f"{now} is called {old} on {other}: `kb rename {old} {now} --branch {shlex.quote(other)}` renames it there too"
        for old, now in sorted(missing.renamed.items())
    ]
    more = len(said) - _RENAMES
    return [*said[:_RENAMES], f"{more} more have another id on {branch} than on {other}"] if more > 0 else said


def left_out_words(branch: str, other: str) -> str:
    """Return why some of what clients wrote on a branch cannot be brought to another."""
    shown = f"`kb branch diff {shlex.quote(branch)} {shlex.quote(other)}` shows both"
    return f"What {other} lacks the entity for, or has changed by itself, is left out: {shown}"


def hook_line(result: HookResult) -> str:
    """Return the state of one git hook."""
    done = "" if result.action in {"none", "kept"} else f", {result.action}"
    return escape_controls(f"Hook {result.event}: {result.state}{done} ({hook_place(result)})")


def hook_place(result: HookResult) -> str:
    """Return where a git hook is."""
    return f"hook.kb-{result.event} in {result.path}" if result.way == "config" else result.path


def size(length_bytes: int) -> str:
    """Return a number of bytes for people, as ``1.4 MiB``."""
    number, unit = float(length_bytes), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if number < KIB:
            break
        number, unit = number / KIB, larger
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"


def seen_line(seen: SeenId) -> str:
    """Say where the highest id of a series is in use."""
    if seen.kind == "branch":
        return f"{seen.id} is the last one, in {seen.name}."
    kind = "the store of " if seen.kind == "store" else "the worktree " if seen.kind == "worktree" else ""
    return f"{seen.id} is the last one, in {kind}{seen.name}{f', {seen.path}' if seen.path else ''}."
