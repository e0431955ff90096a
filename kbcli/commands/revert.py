"""``kb revert``: undo records by new ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

if TYPE_CHECKING:
    from kbcli.invocation.points import Filters

_MOST_NAMED: Final = 10
"""Records that are named."""
_NO_FILES: Final = (
    "--files changed no file: none names an entity by the id that a reverted record gave it, and that it had last."
)


def run(
    ctx: typer.Context,
    points: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SEQ|POINT]...", help="The records to undo, as `kb log` shows them."),
    ] = None,
    *,
    actor: Annotated[
        str, typer.Option("--actor", metavar="A", help="All that this person or agent wrote.", show_default=False)
    ] = "",
    session_: Annotated[
        str, typer.Option("--session", metavar="S", help="All that was written in this session.", show_default=False)
    ] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="POINT", help="All of that since then.", show_default=False)
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="POINT", help="All of that until then.", show_default=False)
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Take the old values, also where someone changed the same since.")
    ] = False,
    expected_seq: Annotated[
        int | None,
        typer.Option(
            "--expected-seq",
            metavar="SEQ",
            help="Refuse the revert if a record after SEQ changed what it would revert.",
        ),
    ] = None,
    files: Annotated[
        bool, typer.Option("--files", help="Where a record renamed an entity, change the files back too.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Undo records by new ones; nothing is erased.

    A record is named by its seq, or by a POINT, as `kb diff --help` says: then it is the last record at it, and the
    answer says which one.

    With --since, --until, --actor or --session all that is meant is undone as one record, but for what a sync recorded
    of documents: without --actor and --session, what you wrote. `kb revert --since 1h --dry-run` shows it first. Of a
    sync or a merge that brought changes of several, those of this writer are undone.

    Refused where a later record changed the same field or edge, unless --force. What files state comes back with the
    next sync: edit the files. Reverting the revert brings the change back. Where all that the record did is to rename
    an entity that files name, the change of the files is shown, and --files makes it. Where it did more, the steps are
    named. Where such an entity is gone since and that is undone too, --files changes the links to it.
    """
    import msgspec

    from kbcli.invocation.points import Filters, record_meant
    from kbcore.editing.undoing import LargerRecord, in_files, in_steps, refuse_renames, revert_links, undo
    from kbcore.store.history.undo import UndoOptions, message_of, records_of
    from kbcore.text.escaping import escape_lines, escaped_sentence
    from kbcore.text.wording import pluralize, some_of

    session = session_of(ctx)
    filters = _checked(ctx, points, Filters(actor=actor, session=session_, since=since, until=until))
    opened = session.open(dry_run=dry_run)
    meant = [record_meant(opened, one) for one in points or ()]
    seqs, said = [one.seq for one in meant], [one.said for one in meant if one.said]
    options = UndoOptions(force=force, dry_run=dry_run, expected_seq=expected_seq)
    if not seqs:
        selection = filters.read(opened)
        seqs, notes = opened.store.read(lambda view: (records_of(view, selection), selection.notes(view)))
        named = some_of([f"seq {one}" for one in seqs], _MOST_NAMED)
        said += [f"{pluralize(len(seqs), 'record')} {selection.writer.words()}: {named}."]
        said += notes
        options = msgspec.structs.replace(options, message=message_of(selection, len(seqs)), writer=selection.writer)
    if len(seqs) == 1:
        written = undo(opened.target, seqs[0], dry_run=dry_run or not files, expected_seq=expected_seq)
        if written is not None and not isinstance(written, LargerRecord) and not files:
            if not session.output.is_json:
                for one in said:
                    session.output.note(f"note: {escaped_sentence(one)}")
                session.output.data("".join(escape_lines(edit.diff()) for edit in written.edits))
                session.output.flush()
            raise in_files(seqs[0], written.edits)
        if isinstance(written, LargerRecord):
            raise in_steps(written, seqs)
        if written is not None:
            session.show_outcome(written.outcome, written.edits, said)
            return
    else:
        refuse_renames(opened.target, seqs)
    if files and (reverted := revert_links(opened.target, seqs, options)):
        session.show_outcome(reverted.outcome, reverted.edits, said)
        return
    with session.output.waiting("Undoing"):
        outcome = opened.target.revert(seqs, options)
    if files:
        outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, _NO_FILES))
    session.show_outcome(outcome, points=said)


def _checked(ctx: typer.Context, points: list[str] | None, filters: Filters) -> Filters:
    """Return the filters, with the user as the actor where they name nobody.

    Raises: ``typer.BadParameter`` for records that are named in two ways or in none; as ``refuse_empty``.
    """
    from kbcli.invocation.points import refuse_empty

    refuse_empty(ctx)
    if bool(points) == bool(filters.named()):
        raise typer.BadParameter(
            "Name the records by their seqs or points, or by --since, --until, --actor or --session, and not by both."
        )
    is_own = not (points or filters.actor or filters.session)
    return filters._replace(actor=session_of(ctx).author.actor) if is_own else filters
