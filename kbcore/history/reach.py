"""Which records of a branch are still there.

Pruning gives up whole records; how everything stood after the last of them is kept, so the records that are left can
be shown and undone. Which seqs can be read is decided where they are read, in ``view.past``.
"""

from __future__ import annotations

from kbcore.errors import HistoryPruned, NotFound
from kbcore.view.view import View


def first_record(view: View) -> int:
    """Return the seq of the first record that was not pruned: 1 as long as nothing was."""
    return view.basis.history_from + 1


def is_pruned(view: View) -> bool:
    """Tell whether older records were given up."""
    return view.basis.history_from > 0


def has_earlier_records(view: View) -> bool:
    """Tell whether records are left from before the first one that can be shown: others are missing between them."""
    return bool(view.rows("select 1 from record where file <> '' and seq < ? limit 1", [first_record(view)]))


def check_record(view: View, seq: int) -> None:
    """Refuse a seq that no record has, or whose record was given up.

    Raises: ``NotFound``, ``HistoryPruned``.
    """
    if not 1 <= seq <= view.seq:
        known = f"The records are {first_record(view)} to {view.seq}; see `kb log`."
        raise NotFound(f"There is no record {seq}.", hint=known if view.seq else "Nothing was written yet.")
    if seq < first_record(view):
        raise HistoryPruned.before(first_record(view), f"record {seq}")
