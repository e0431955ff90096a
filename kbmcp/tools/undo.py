"""Carries out the actions revert and rollback of ``kb_history``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of
from kbmcp.tools.answers import Payload, cut_deep
from kbmcp.tools.call import Call
from kbmcp.tools.elicitation import confirm
from kbmcp.tools.hints import of_tools
from kbmcp.tools.history_request import HistoryRequest
from kbmcp.tools.write import answer_of

if TYPE_CHECKING:
    from kbcore.editing.documents import WriteTarget
    from kbcore.store.history.log import RecordFilter
    from kbcore.store.history.writers import WriterFilter
    from kbcore.view.view import View

_MOST_NAMED: Final = 10
_RECORD_CHARS: Final = 1_500
_MEMBERS: Final = ("seq", "at", "actor", "message")
_RECORDS: Final = """
select seq, written_at, actor, message from record where seq in (select unnest(?::bigint[])) order by seq desc limit ?
"""
_WITH_FILES: Final = "Send it again with `files` true: it changes them back as well."


def revert_records(call: Call, asked: HistoryRequest) -> Payload:
    """Undo one record, or all that an actor or a session wrote, with the files where a record renamed an entity.

    Raises: as ``undoing.undo`` and ``undo.revert``; ``DerivedFact`` for files that would change and may not.
    """
    from kbcore.editing.undoing import LargerRecord, in_files, in_steps, undo

    if asked.is_narrowed:
        return _revert_all(call, asked)
    only_shown = asked.dry_run or not asked.files
    written = undo(target_of(call), asked.seq, message=asked.message, dry_run=only_shown)
    if isinstance(written, LargerRecord):
        error = in_steps(written, [asked.seq])
        ids = [f"{in_quotes(now)} the id {in_quotes(before)}" for now, before in written.renames.items()]
        then = " Then the revert of the record undoes the rest." if written.rest else ""
        error.remedy = f"{of_tools('{kb_upsert}')} with `rename` gives {some_of(ids, _MOST_NAMED)} back.{then}"
        raise error
    if written is not None:
        if asked.files:
            return answer_of(call, written.outcome, [edit.path for edit in written.edits])
        error = in_files(asked.seq, written.edits)
        error.remedy = _WITH_FILES
        raise error
    return _undone(call, asked, [asked.seq], asked.message)


def _revert_all(call: Call, asked: HistoryRequest) -> Payload:
    """Undo as one record all that clients wrote and that an actor or a session selects."""
    from kbcore.editing.undoing import refuse_renames
    from kbcore.store.history.undo import message_of, records_of

    def selected(view: View) -> tuple[RecordFilter, list[int], list[Payload]]:
        selection = asked.selection(asked.seq, view.recorded_seq if asked.to is None else asked.to)
        seqs = records_of(view, selection)
        rows = view.rows(_RECORDS, [seqs, _MOST_NAMED])
        return selection, seqs, [dict(zip(_MEMBERS, row, strict=True)) for row in rows]

    selection, seqs, shown = call.store.read(selected)
    refuse_renames(target_of(call), seqs)
    message = asked.message or message_of(selection, len(seqs))
    records: Payload = {"records": cut_deep(shown, _RECORD_CHARS)}
    if len(seqs) > len(shown):
        records["more_records"] = len(seqs) - len(shown)
    return _undone(call, asked, seqs, message, selection.writer) | records


def _undone(
    call: Call, asked: HistoryRequest, seqs: Sequence[int], message: str, writer: WriterFilter | None = None
) -> Payload:
    """Undo records; with ``force`` also where newer values would be lost, once a person has confirmed that.

    What the person confirmed is the loss of the values that there were then: a record that changes them after the
    question makes it another question, and refuses the undo once the question is answered.

    Raises: ``NeedsPerson``; ``StaleBase``; as ``undo.revert``.
    """
    from kbcore.errors import RevertConflict
    from kbcore.store.history.undo import UndoOptions
    from kbcore.store.history.writers import WriterFilter

    target = target_of(call)
    options = UndoOptions(message=message, dry_run=asked.dry_run, writer=writer or WriterFilter())
    try:
        outcome = target.revert(seqs, options)
    except RevertConflict as conflict:
        if not asked.force:
            raise
        if not asked.dry_run:
            named = some_of([f"record {seq}" for seq in sorted(seqs)], _MOST_NAMED)
            lost = " ".join(one.message for one in conflict.details)
            last = f"Record {conflict.data['changed_at']} is the last one that changed any of it"
            confirm(call, f"to undo {named} although newer values are lost by it", f"{last}. {lost}")
        forced = msgspec.structs.replace(options, force=True, expected_seq=conflict.data["changed_at"])
        outcome = target.revert(seqs, forced)
    return answer_of(call, outcome)


def roll_back_to(call: Call, asked: HistoryRequest) -> Payload:
    """Go back to the state at a seq. Raises: as ``undoing.roll_back`` and ``undo.rollback``; as ``revert_records``."""
    from kbcore.editing.undoing import in_files_since, roll_back
    from kbcore.store.history.undo import UndoOptions

    to_seq = asked.to or 0
    options = UndoOptions(message=asked.message, dry_run=asked.dry_run)
    shown = UndoOptions(message=asked.message, dry_run=asked.dry_run or not asked.files)
    written = roll_back(target_of(call), to_seq, shown)
    if written is not None:
        if asked.files:
            return answer_of(call, written.outcome, [edit.path for edit in written.edits])
        error = in_files_since(to_seq, written.edits)
        error.remedy = _WITH_FILES
        raise error
    return answer_of(call, target_of(call).roll_back(to_seq, options))


def target_of(call: Call) -> WriteTarget:
    """Return the branch of a call, to be written to."""
    from kbcore.editing.documents import WriteTarget

    return WriteTarget(call.workspace, call.branch, call.author, call.read, call.follows_head)
