"""Records of a branch that remain, and those of them that another branch has as well.

Pruning removes whole records; the state after the last of them is kept, so the records that are left can
be shown and undone. After a salvage, records before missing ones are left as well: they are listed, and shown as far as
they prove it themselves. Which seqs can be read is decided where they are read, in ``view.history``; why others cannot
be, in ``gaps``.
"""

from __future__ import annotations

from kbcore.errors import NotFound
from kbcore.errors.remedies import kb
from kbcore.view.gaps import Earlier, earlier, out_of_reach
from kbcore.view.view import View


def first_record(view: View) -> int:
    """Return the seq of the first record that was not pruned: 1 as long as nothing was."""
    return view.basis.history_from + 1


def is_pruned(view: View) -> bool:
    """Tell whether older records were given up."""
    return view.basis.history_from > 0


def not_listed(view: View) -> Earlier:
    """Return which records the log does not list: those that were pruned, and those that are missing."""
    return earlier(view.rows, view.basis.history_from)


def check_record(view: View, seq: int) -> None:
    """Refuse a seq that no record has, or whose record was given up.

    Raises: ``NotFound``, ``HistoryPruned``.
    """
    last = view.recorded_seq
    if not 1 <= seq <= last:
        first = not_listed(view).pruned_before or 1
        known = f"The records are {first} to {last}; {kb('log', lead='see')}."
        raise NotFound(f"There is no record {seq}.", hint=known if last else "Nothing was written yet.")
    if seq < first_record(view):
        raise out_of_reach(view.rows, view.basis.history_from, seq, is_record=True)


def merge_base(view_a: View, view_b: View) -> int | None:
    """Return the last seq whose record both branches have; None when there is none, or when it was pruned.

    Records are chained by digest, so one that both have proves everything before it.
    """
    if view_a.basis.lineage != view_b.basis.lineage:
        return None
    low = max(view_a.basis.history_from, view_b.basis.history_from)
    high = min(view_a.seq, view_b.seq)
    if low > high or _sum(view_a, low) != _sum(view_b, low):
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if _sum(view_a, middle) == _sum(view_b, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _sum(view: View, seq: int) -> str:
    if seq == 0:
        return view.basis.lineage
    [(found,)] = view.past.records([seq], ["sum"])
    return str(found)
