"""Which seq a person means: a seq, or a time; and reading as of it, also beside damage.

Order is seq, never the clock: a time means the last record that was written by then, and a time that a wrong clock gave
is passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kbcore.errors import Damaged, HistoryPruned, InvalidQuery
from kbcore.gaps import out_of_reach
from kbcore.history.reach import first_record, is_pruned
from kbcore.phrases import row_of
from kbcore.store import BranchStore
from kbcore.values import YEARS, normal_time
from kbcore.view.past import check_reach, last_by
from kbcore.view.view import View

T = TypeVar("T")

_MAX_DIGITS = 18
"""No seq is longer."""

_NAMED = "`kb doctor` names the records of such clocks."
_EXAMPLES = "2026-01-31 or 2026-01-31T12:00:00Z"


def seq_at(view: View, text: str, *, now: str = "") -> int:
    """Return the seq that a seq or a time means: the last record written at or before that time.

    ``now`` is the time by the clock: with it, a time that is yet to come is refused.

    Raises: ``InvalidQuery`` for a text that is neither, or what lies beyond the head; ``HistoryPruned``.
    """
    word = text.strip()
    if is_seq(word):
        if int(word) > view.recorded_seq:
            raise InvalidQuery(f"There is no record {word} yet.", hint=f"The head is at seq {view.recorded_seq}.")
        check_reach(view, int(word))
        return int(word)
    time = normal_time(word)
    if time is None:
        hint = (
            f"Give a seq from {first_record(view) - 1} to {view.recorded_seq}, or a time such as {_EXAMPLES}, {YEARS}."
        )
        raise InvalidQuery(f"{text!r} is neither a seq nor a time.", hint=hint)
    if now and time > now and time > _latest(view):
        hint = f"The head is at seq {view.recorded_seq}; give that for how everything stands now."
        raise InvalidQuery(f"{text!r} is yet to come.", hint=hint)
    return _last_by(view, time, text)


def _last_by(view: View, time: str, text: str) -> int:
    """Return the last record written by a time, 0 for none. Raises: ``HistoryPruned``."""
    found = last_by(view, time)
    if found is None and is_pruned(view):
        raise out_of_reach(view.rows, view.basis.history_from, 0, what=f"what stood at {text.strip()}")
    return int(found or 0)


def _latest(view: View) -> str:
    """Return the latest time of a record: that of the last one, unless a clock was wrong."""
    sql = "select max(written_at) from record where seq <= ?"
    return str(view.rows(sql, [view.recorded_seq])[0][0] or "")


def clock_notes(view: View, *texts: str) -> list[str]:
    """Return what is to be said with an answer as of these times: which may mean another record, as a clock was wrong.

    A text that is a seq means one record only.
    """
    times = [normal_time(text.strip()) for text in texts if not is_seq(text.strip())]
    return [said for time in times if time and (said := _doubt(view, time))]


def _doubt(view: View, time: str) -> str:
    """Return why a time may mean another record than the one that is taken; "" where the clocks agree."""
    seq = last_by(view, time)
    if not seq:
        return ""
    sql = "select min(seq), max(seq), count(*) from record where seq < ? and written_at > ?"
    first, last, count = view.rows(sql, [seq, time])[0]
    taken = f"A clock was wrong near the time that was asked for. It is taken to mean seq {seq}"
    if count:
        which = row_of("record", first, last) if count == last - first + 1 else f"{count} of records {first} to {last}"
        return f"{taken}; {which}, before it, {'has a later time' if count == 1 else 'have later times'}. {_NAMED}"
    clock, at = view.rows("select clock, written_at from record where seq = ?", [seq])[0]
    if not clock:
        return ""
    was = "more than a day behind that" if clock == at else f"at {clock}, behind the time"
    return f"{taken}, and the clock of that record was {was} of an earlier one. {_NAMED}"


def read_at(
    store: BranchStore, text: str, use: Callable[[View, int], T], *, now: str = "", notes: list[str] | None = None
) -> T:
    """Return ``use(view, seq)`` for the seq that a text means, also when a later part of the journal is damaged.

    What is to be said with the answer (``clock_notes``) is added to ``notes``.

    Raises: as ``seq_at``; the journal's own error when the damage lies before that seq.
    """
    word = text.strip()
    meant = int(word) if is_seq(word) else -1

    def use_at(view: View) -> T:
        nonlocal meant
        if meant < 0:
            meant = seq_at(view, text, now=now)
        if notes is not None:
            notes.extend(clock_notes(view, text))
        return use(view, seq_at(view, text, now=now))

    try:
        return store.read(use_at)
    except Damaged as error:
        # the error for lost bytes comes before the rest is read, and does not know how far that is good
        if not is_seq(word) or meant > error.data.get("good_seq", meant):
            raise
    except HistoryPruned as error:
        if meant < 0:
            raise
        return _before_gap(store, meant, lambda view: use(view, meant), error)
    with store.view_until(meant) as view:
        return use(view, meant)


def read_head(
    store: BranchStore, use: Callable[[View], T], read: Callable[[Callable[[View], T]], T] | None = None
) -> T:
    """Return ``use(view)`` at the head, where it may go on with an answer as of an earlier seq, by a cursor.

    A seq before missing records is answered, or refused, as ``read_at`` does it. ``read`` gives the view of the head,
    where that is not the store's own.

    Raises: what ``use`` and reading the journal raise.
    """
    try:
        return read(use) if read else store.read(use)
    except HistoryPruned as error:
        asked = error.data.get("asked_seq")
        if asked is None:
            raise
        return _before_gap(store, asked, use, error)


def _before_gap(store: BranchStore, seq: int, use: Callable[[View], T], refused: HistoryPruned) -> T:
    """Return ``use(view)`` as of a seq before missing records, if a part of the journal leads to it by itself.

    Raises: ``refused``, or that what is before the seq is not proven.
    """
    if not store.head().holes:
        raise refused
    try:
        at = store.view_until(seq)
    except HistoryPruned:
        raise store.read(lambda view: _unproven(view, seq)) from None
    with at as view:
        try:
            return use(view)
        except HistoryPruned:
            raise refused from None


def _unproven(view: View, seq: int) -> HistoryPruned:
    return out_of_reach(view.rows, view.basis.history_from, seq, is_unproven=True)


def is_seq(word: str) -> bool:
    """Tell whether a word can be a seq."""
    return word.isascii() and word.isdecimal() and len(word) <= _MAX_DIGITS
