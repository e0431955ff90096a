"""``kb compact``: write a snapshot and seal the journal so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.maintenance.compacting import CompactAnswer


def run(
    ctx: typer.Context,
    *,
    prune_before: Annotated[
        int | None,
        typer.Option("--prune-before", metavar="SEQ", help="Give up the sealed parts that end before this seq."),
    ] = None,
) -> None:
    """Write a snapshot and seal the journal so far; nothing that KB answers changes.

    Only --prune-before gives up history, for good: the current state stays; the history before it is removed.
    """
    from kbcore.maintenance.compacting import compact

    session = session_of(ctx)
    opened = session.open()
    with session.output.waiting("Compacting"):
        done = compact(opened.workspace, opened.branch, prune_before=prune_before)
    if session.output.is_json:
        session.output.document(done.as_json())
    else:
        _show(session, done, prune_before)


def _show(session: Session, done: CompactAnswer, prune_before: int | None) -> None:
    from kbcli.messages.lines import size
    from kbcore.text.escaping import escape_controls, escaped_sentence

    output = session.output
    what = f"sealed, with a snapshot of {size(done.snapshot_bytes)}" if done.sealed else "nothing to seal"
    output.say(escape_controls(f"{done.branch} at seq {done.seq}: {what}."))
    if done.pruned:
        output.say(f"Gave up the history before seq {done.history_from + 1}.")
    if done.not_pruned:
        output.warn(f"{'Not more' if done.pruned else 'Nothing'} was given up: {done.not_pruned}")
    elif prune_before is not None and not done.pruned:
        output.say(f"Nothing was given up: history begins at seq {done.history_from + 1}.")
    for sentence in done.warnings:
        output.warn(escaped_sentence(sentence))
    for name in done.stuck:
        output.warn(escape_controls(f"{name} could not be removed; the next `kb compact` tries again."))
    for name in done.unlisted:
        output.warn(escape_controls(f"{name} has records that the head does not name; KB does not delete it."))
