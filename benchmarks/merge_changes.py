"""The time of `kb merge` of what clients wrote on another branch, against decoding and loading the same records."""

from __future__ import annotations

from benchmarks.measure import Sample, in_turns
from benchmarks.place import Place
from benchmarks.stores import TOPIC
from benchmarks.table import IN_PROPORTION, Row
from tests.support.repository.places import stores_at


def run(place: Place) -> list[Row]:
    """Measure merges into copies of one repository, in which the changes of neither branch were looked at before."""
    return [_row(place, count) for count in place.sizes.shared]


def _row(place: Place, count: int) -> Row:
    source = place.store_of_two_branches(count)
    journal = max((stores_at(source) / TOPIC).glob("journal-*.jsonl"))

    def merge() -> Sample:
        return place.kb(place.copy_of(source, f"merging-{count}"), "merge", TOPIC)

    kb, floor = in_turns(
        merge,
        lambda: place.python("-m", "benchmarks.floor_journal", str(journal)),
        rounds=place.sizes.long_rounds_of(count),
    )
    return Row(
        name="kb merge",
        against="decode and load in bulk",
        count=count,
        unit="changes",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most_s=2.0,
        grows_at_most=IN_PROPORTION,
    )
