"""Which seq a person means: a seq, or a time; and reading as of it, also beside damage.

Order is seq, never the clock: a time means the last record that was written by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kbcore.errors import Damaged, InvalidQuery
from kbcore.store import BranchStore
from kbcore.values import normal_time
from kbcore.view.past import check_reach
from kbcore.view.view import View

T = TypeVar("T")

_MAX_DIGITS = 18


def seq_at(view: View, text: str) -> int:
    """Return the seq that a seq or a time means: the last record written at or before that time.

    Raises: ``InvalidQuery`` for a text that is neither, or a seq beyond the head; ``HistoryPruned``.
    """
    word = text.strip()
    if _is_number(word):
        seq = int(word)
        if seq > view.seq:
            raise InvalidQuery(f"There is no record {seq} yet.", hint=f"The head is at seq {view.seq}.")
        check_reach(view, seq)
        return seq
    time = normal_time(word)
    if time is None:
        hint = f"Give a seq from 0 to {view.seq}, or a time such as 2026-01-31 or 2026-01-31T12:00:00Z."
        raise InvalidQuery(f"{text!r} is neither a seq nor a time.", hint=hint)
    found = view.rows("select max(seq) from record where written_at <= ?", [time])[0][0]
    seq = 0 if found is None else int(found)
    check_reach(view, seq)
    return seq


def read_at(store: BranchStore, text: str, use: Callable[[View, int], T]) -> T:
    """Return ``use(view, seq)`` for the seq that a text means, also when a later part of the journal is damaged.

    Raises: as ``seq_at``; the journal's own error when the damage lies before that seq.
    """
    try:
        return store.read(lambda view: use(view, seq_at(view, text)))
    except Damaged as error:
        word, good = text.strip(), error.data.get("good_seq", 0)
        if not _is_number(word) or not 0 <= int(word) <= good:
            raise
        with store.view_until(int(word)) as view:
            return use(view, int(word))


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= _MAX_DIGITS
