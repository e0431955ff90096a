"""The intact part of the journal of a damaged store. Reads to the damage and no further.

What is not proven never counts as good.
"""

from __future__ import annotations

from pathlib import Path

from kbcore.errors import Damaged, HistoryPruned, Incompatible, Unavailable
from kbcore.storage import journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head


def intact_seq(fs: Fs, directory: Path, head: Head) -> int:
    """Return the last record that can be vouched for: before the damage, or the head itself where there is none.

    Where the files of different times were mixed, that is none: they follow each other, and nobody knows which of
    them were acknowledged.
    """
    last, seq = head.lineage, head.first_seq - 1
    try:
        for entry in journal.scan(fs, directory, head, until=head.seq):
            seq, last = entry.frame.seq, entry.frame.sum
    except (Damaged, Incompatible, Unavailable, HistoryPruned) as error:
        return min(seq, int(error.data.get("good_seq", seq)))
    return seq if seq < head.seq or last == head.hash or head.seq < head.first_seq else head.first_seq - 1
