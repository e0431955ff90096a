"""Carries out ``kb_history``: the log, one record, what differs between two seqs, and undoing a record.

History never changes, so a page goes on where the one before ended, whatever is written meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from kbcore import cursor as cursors
from kbcore.errors import Problem
from kbmcp.calls import Call
from kbmcp.explaining import refused_arguments
from kbmcp.replies import PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.wire import HistoryArguments, limit_problems
from kbmcp.writing import answer_of

if TYPE_CHECKING:
    from kbcore.view.view import View

Place = Callable[[list[Any]], Payload]

_NOTE_CHARS: Final = 700


def history(call: Call, asked: HistoryArguments, problems: Sequence[Problem]) -> Payload:
    """Return what the action asks for.

    Raises: ``InvalidQuery`` for arguments that do not fit the action, with those that are known to be wrong already;
    ``NotFound``; ``HistoryPruned``; what reverting raises.
    """
    known = {problem.path for problem in problems}
    found = [*problems, *(problem for problem in _misfits(asked) if problem.path not in known)]
    if found:
        raise refused_arguments(found)
    if asked.action == "log":
        return call.store.read(lambda view: _log(call, asked, view))
    seq = asked.seq or 0
    if asked.action == "show":
        return _reading(call, [seq], lambda view: _show(call, asked, view))
    if asked.action == "diff":
        return _reading(call, [seq, asked.to], lambda view: _diff(call, asked, view))
    return _revert(call, asked)


def _misfits(asked: HistoryArguments) -> Iterator[Problem]:
    """Yield what does not fit the action: an argument that would be passed over would give a wrong answer."""
    yield from limit_problems(asked.limit)
    action = asked.action
    if asked.seq is None and action != "log":
        hint = f"`kb log` finds it, then action {action} takes it as `seq`."
        yield Problem("$.seq", "missing_argument", f"The action {action} needs `seq`, the number of a record.", hint)
    for name, only in (("id", "log"), ("to", "diff")):
        if getattr(asked, name) not in {"", None} and action != only:
            hint = f"Only the action {only} takes it. Leave it out."
            yield Problem(f"$.{name}", "not_for_action", f"`{name}` does not apply to the action {action}.", hint)
    if asked.seq is not None and action == "log":
        hint = "Action show takes it; log lists the records before it with `cursor` and `limit`."
        yield Problem("$.seq", "not_for_action", "`seq` does not apply to the action log.", hint)


def _reading(call: Call, seqs: Sequence[int | None], use: Callable[[View], Payload]) -> Payload:
    """Return ``use(view)``; where only records are asked for that lie before a damage, also beside that damage.

    None stands for the head. Raises: as ``use``; the journal's own error.
    """
    from kbcore.errors import Damaged
    from kbcore.history.moment import read_at

    try:
        return call.store.read(use)
    except Damaged:
        known = [seq for seq in seqs if seq is not None]
        if len(known) < len(seqs):
            raise
        return read_at(call.store, str(max(known)), lambda view, _: use(view))


class _Page:
    """Where a page of rows begins, and what of it fits."""

    def __init__(self, call: Call, asked: HistoryArguments, head: int) -> None:
        self._digest = cursors.digest_of((call.branch, asked.action, asked.id, asked.seq, asked.to))
        found = cursors.decode(asked.cursor, self._digest) if asked.cursor else None
        self.start = int(found.last) if found else 0
        self.head = found.seq if found else head
        """The head that the first page spoke of; what came later is on no page."""

    def answer(self, shown: Payload, rows: Sequence[Any], total: int, place: Place) -> Payload:
        """Return the whole answer: what is shown on every page, the rows that fit, and how to go on.

        ``rows`` are those from where the page begins, and ``place`` says under which keys they stand.
        """
        room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS
        kept, notes = list(rows[: leading(rows, room)]), []
        if rows and not kept:
            kept = [cut_deep(rows[0], room)]
            notes.append("Long values are cut: {kb_query} with `ids`, `fields` and `at` gives them whole.")
        following, cursor = self.start + len(kept), None
        if following < total:
            cursor = cursors.encode(cursors.Cursor(self._digest, self.head, total, str(following)))
            notes.append(f"{total - following} of {total} follow: repeat the call with this next_cursor as `cursor`.")
        note = {"note": " ".join(notes)} if notes else {}
        return {**shown, "total": total, **place(kept), "next_cursor": cursor, **note}


def _log(call: Call, asked: HistoryArguments, view: View) -> Payload:
    from kbcore.history.log import log
    from kbcore.history.reach import first_record, is_pruned
    from kbcore.view.past import seqs_of

    page, first = _Page(call, asked, view.seq), first_record(view)
    seqs: Sequence[int] = range(page.head, first - 1, -1)
    if asked.id:
        seqs = sorted((seq for seq in seqs_of(view, asked.id) if first <= seq <= page.head), reverse=True)
    before_seq = seqs[page.start] + 1 if page.start < len(seqs) else 1
    records = log(view, id=asked.id, limit=asked.limit, before_seq=before_seq)
    shown: Payload = {"branch": call.branch, "seq": page.head} | ({"pruned_before": first} if is_pruned(view) else {})
    return page.answer(shown, records, len(seqs), lambda kept: {"records": kept})


def _show(call: Call, asked: HistoryArguments, view: View) -> Payload:
    from kbcore.history.log import record_json

    page = _Page(call, asked, view.seq)
    shown: Payload = {"branch": call.branch, **record_json(call.store, view, asked.seq or 0)}
    operations = shown.pop("operations")
    shown = cut_deep(shown, PAGE_CHARS // 2)
    rows = operations[page.start : page.start + asked.limit]
    return page.answer(shown, rows, len(operations), lambda kept: {"operations": kept})


def _diff(call: Call, asked: HistoryArguments, view: View) -> Payload:
    from kbcore.history.compare import diff
    from kbcore.history.moment import seq_at

    page = _Page(call, asked, view.seq)
    low = seq_at(view, str(asked.seq))
    high = page.head if asked.to is None else seq_at(view, str(asked.to))
    found = diff(view, low, high)
    rows = [*found["entities"], *found["edges"]]
    shown: Payload = {"branch": call.branch, "seq": page.head, "from": low, "to": high}

    def place(kept: list[Any]) -> Payload:
        entities = [one for one in kept if "id" in one]
        return {"entities": entities, "edges": kept[len(entities) :]}

    return page.answer(shown, rows[page.start : page.start + asked.limit], len(rows), place)


def _revert(call: Call, asked: HistoryArguments) -> Payload:
    from kbcore.history.undo import UndoOptions, revert

    options = UndoOptions(message=asked.message)
    outcome = revert(
        call.workspace, call.branch, call.author, [asked.seq or 0], options, follows_head=call.follows_head
    )
    return answer_of(call, outcome)
