"""The time of a git hook that has nothing to do, against importing msgspec."""

from __future__ import annotations

from benchmarks.measure import in_turns
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row
from tests.support.repository.repos import git


def run(place: Place) -> list[Row]:
    """Measure what git runs after a checkout that changed nothing."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    commit = git(root, "rev-parse", "HEAD")
    kb, floor = in_turns(
        lambda: place.kb(root, "hook", "post-checkout", commit, commit, "1"),
        lambda: place.python("-c", "import msgspec"),
        rounds=place.sizes.rounds_of(count),
    )
    return Row(
        name="idle git hook",
        against="import msgspec",
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most_s=0.1,
        grows_at_most=IN_PROPORTION,
    )
