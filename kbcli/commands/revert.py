"""``kb revert``: undo records by new ones."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from kbcli.invocation.context import session_of

_NO_FILES: Final = "--files changed no file: there is no rename to undo that files name."


def run(
    ctx: typer.Context,
    seqs: Annotated[list[int], typer.Argument(metavar="SEQ", help="The records to undo, as `kb log` shows them.")],
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Take the old values, also where someone changed the same since.")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="Where a record renamed an entity, change the files back too.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change; write nothing.")] = False,
) -> None:
    """Undo records by new ones; nothing is erased.

    Refused where a later record changed the same field or edge, unless --force. What files state comes back with the
    next sync: edit the files. Reverting the revert brings the change back. Where all that the record did is to rename
    an entity that files name, the change of the files is shown, and --files makes it. Where it did more, the steps are
    named.
    """
    import msgspec

    from kbcore.checks.introduced.written import revert
    from kbcore.editing.renaming import LargerRecord, in_files, in_steps, undo
    from kbcore.store.history.undo import UndoOptions
    from kbcore.text.escaping import escape_lines

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    options = UndoOptions(force=force, dry_run=dry_run)
    follows_head = opened.choice.follows_head
    if len(seqs) == 1:
        written = undo(opened.target, seqs[0], dry_run=dry_run or not files)
        if isinstance(written, LargerRecord):
            raise in_steps(written, seqs)
        if written is not None:
            if not (files or dry_run) and not session.output.is_json:
                session.output.data("".join(escape_lines(edit.diff()) for edit in written.edits))
                session.output.flush()
            if not (files or dry_run):
                raise in_files(seqs[0], written.edits)
            session.show_outcome(written.outcome, written.edits)
            return
    else:
        for seq in seqs:
            renamed = undo(opened.target, seq, dry_run=True)
            if isinstance(renamed, LargerRecord):
                raise in_steps(renamed, seqs)
            if renamed is not None:
                error = in_files(seq, renamed.edits)
                error.remedy = f"Undo it by itself, with the files: `kb revert {seq} --files`."
                raise error
    with session.output.waiting("Undoing"):
        outcome = revert(opened.workspace, opened.branch, session.author, seqs, options, follows_head=follows_head)
    if files:
        outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, _NO_FILES))
    session.show_outcome(outcome)
