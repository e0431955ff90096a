"""The beginning of a replay when the beginning of a journal was pruned."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kbcore.errors import HistoryPruned, SnapshotCorrupt
from kbcore.model import canonical
from kbcore.storage import compaction
from kbcore.storage.head import Head, Sealed, Segment, SnapshotRef, Tip
from kbcore.view import replay
from tests.core.storage.making import head_of
from tests.support.repository.stores import Stored

LAST = "journal-0000000005.jsonl"


@pytest.fixture
def made(tmp_path: Path) -> Stored:
    """Records 1 to 4, the first two pruned, with snapshots at 2 and 3."""
    made = Stored(tmp_path)
    for keys in (("A", "B"), ("C",)):
        for key in keys:
            made.put(key, changeset_id=f"id-{key}")
        compact(made)
    compact(made, prune_before=3)
    made.put("D", changeset_id="id-D")
    return made


def compact(made: Stored, **options: int) -> None:
    def fold(head: Head) -> list[bytes]:
        folded = replay.folded(made.fs, made.directory, head)
        return list(canonical.lines(folded.state, folded.known))

    compaction.compact(made.fs, made.directory, made.clock, fold, wait_s=0, **options)


def with_hole(*snapshots: int) -> Head:
    """Return the head of records 1, 2, 5 and 6, of which none was pruned, with snapshots at these seqs."""
    return head_of(
        snapshots=tuple(SnapshotRef(f"snapshot-{seq:010}.jsonl", seq, "", 1, "") for seq in snapshots),
        segments=(Segment("journal-0000000001.jsonl", 1, "one", Sealed(200, 2, "")), Segment(LAST, 5, "sum of 4")),
        head=Tip(6, "sum of 6", LAST, 200, ""),
    )


def nodes(made: Stored, until: int | None = None) -> tuple[list[str], list[str]]:
    found = replay.folded(made.fs, made.directory, made.store.head(), until=until)
    return sorted(found.state.nodes), [known.changeset_id for known in found.known]


def test_pruned_history_is_replayed_from_the_snapshot_that_replaces_it(made: Stored) -> None:
    assert replay.history_from(made.store.head()) == 2
    assert nodes(made) == (["A", "B", "C", "D"], ["id-A", "id-B", "id-C", "id-D"])


def test_an_earlier_seq_is_replayed_up_to_there_and_no_earlier_than_history_begins(made: Stored) -> None:
    assert nodes(made, until=3) == (["A", "B", "C"], ["id-A", "id-B", "id-C"])
    assert nodes(made, until=2) == (["A", "B"], ["id-A", "id-B"])
    with pytest.raises(HistoryPruned):
        nodes(made, until=1)


def test_a_snapshot_before_the_journals_beginning_leaves_a_gap_and_is_not_begun_with(made: Stored) -> None:
    head = made.store.head()
    old = msgspec.structs.replace(head.snapshots[0], seq=1)
    assert replay.history_from(msgspec.structs.replace(head, snapshots=(old, *head.snapshots))) == 2
    with pytest.raises(SnapshotCorrupt, match="begins at record 3, and no snapshot holds what came before"):
        replay.history_from(msgspec.structs.replace(head, snapshots=(old,)))


def test_after_missing_records_a_replay_begins_with_the_snapshot_of_what_they_led_to() -> None:
    assert replay.history_from(with_hole(2, 4)) == 4
    assert replay.listed_from(with_hole(2, 4)) == 1
    with pytest.raises(SnapshotCorrupt, match="begins at record 5, and no snapshot holds what came before"):
        replay.history_from(with_hole(2))
