"""The views that may become a view of a head: decided from the stamp and the head alone."""

from __future__ import annotations

from pathlib import Path

import duckdb
import msgspec
import pytest

from kbcore.errors import ViewDamaged
from kbcore.storage.head import CopiedFrom, Epoch, Head, Pruned, Segment, SnapshotRef
from kbcore.view.base import open_view
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.cache_files import VIEW
from kbcore.view.opening import is_ahead, is_usable
from tests.core.storage.making import head_of
from tests.support.repository.stores import Stored

FILE = "journal-0000000001.jsonl"
HEAD = head_of()
COPY = msgspec.structs.replace(HEAD, origin=CopiedFrom("other", 5, "sum of 5"))
ACCEPTED = msgspec.structs.replace(HEAD, store_id="new", epochs=(Epoch("own", 5, "sum of 5", 9, ""),))
SNAPSHOT = SnapshotRef("snapshot-0000000003.jsonl", 3, "", 1, "")
LATER = Segment("journal-0000000004.jsonl", 4, "")
PRUNED = msgspec.structs.replace(HEAD, pruned=Pruned(4, "", ""), snapshots=(SNAPSHOT,), segments=(LATER,))


def basis(**stated) -> BaseStamp:
    of_the_head = BaseStamp("own", "one", 7, "sum of 7", "", FILE, 700)
    return msgspec.structs.replace(of_the_head, **stated)


@pytest.mark.parametrize(
    ("stands_on", "head", "usable"),
    [
        (basis(), HEAD, True),
        (basis(seq=3, sum="sum of 3"), HEAD, True),
        (basis(seq=8, sum="sum of 8"), HEAD, False),
        (basis(sum="another"), HEAD, False),
        (basis(lineage="two"), HEAD, False),
        (basis(file=LATER.file), PRUNED, False),
        (basis(history_from=3), PRUNED, False),
        (basis(history_from=3, file=LATER.file), PRUNED, True),
        (basis(store_id="other", seq=3), HEAD, False),
        (basis(store_id="other", seq=5), COPY, True),
        (basis(store_id="other", seq=6), COPY, False),
        (basis(store_id="other", lineage="two", seq=5), COPY, False),
        (basis(seq=5, sum="sum of 5"), ACCEPTED, True),
        (basis(seq=6, sum="sum of 6"), ACCEPTED, False),
        (basis(seq=5, sum="another"), ACCEPTED, False),
        (basis(store_id="other", seq=5), ACCEPTED, False),
    ],
)
def test_a_view_is_used_only_where_what_came_after_makes_it_one_of_the_head(
    stands_on: BaseStamp, head: Head, usable: bool
) -> None:
    assert is_usable(stands_on, head) == usable


@pytest.mark.parametrize(
    ("stands_on", "ahead"),
    [
        (basis(), False),
        (basis(seq=6, sum="whatever"), False),
        (basis(seq=8), True),
        (basis(sum="another"), True),
        (basis(seq=8, store_id="other"), False),
        (basis(seq=8, lineage="two"), False),
    ],
)
def test_only_a_view_of_this_very_store_is_a_witness_against_its_journal(stands_on: BaseStamp, ahead: bool) -> None:
    assert is_ahead(stands_on, HEAD) == ahead


@pytest.mark.parametrize("harm", ["update stamp set format = 0", "insert into stamp select * from stamp"])
def test_a_published_view_without_the_one_stamp_is_none(tmp_path: Path, harm: str) -> None:
    made = Stored(tmp_path)
    made.put("A")
    made.reopen().read(lambda view: view.seq)
    made.close()
    with duckdb.connect(str(made.cache_dir / VIEW)) as connection:
        connection.execute(harm)
    with pytest.raises(ViewDamaged, match="has no usable stamp"):
        open_view(made.fs, made.cache_dir / VIEW)
