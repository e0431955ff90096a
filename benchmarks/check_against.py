"""The time of `kb check --against` a branch that lacks the changes of change files, or has others, against DuckDB."""

from __future__ import annotations

from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.stores import BRANCH, TOPIC
from benchmarks.table import IN_PROPORTION, Row
from tests.support.repository.repos import git


def run(place: Place) -> list[Row]:
    """Measure the comparison on the branch that has shared what clients wrote, where the other one has not, and has."""
    return [_row(place, count, is_both=is_both) for is_both in (False, True) for count in place.sizes.shared]


def _row(place: Place, count: int, *, is_both: bool) -> Row:
    root = place.copy_of(place.store_of_two_branches(count), f"against-{count}-{is_both}")
    if is_both:
        place.python("-m", "benchmarks.stores", "grow", str(root), str(count), str(2 * count))
    for branch in (BRANCH, TOPIC) if is_both else (TOPIC,):
        git(root, "switch", "--quiet", branch)
        place.kb(root, "share")
        git(root, "commit", "--quiet", "--no-verify", "-m", "share")
    place.settle(root)
    kb, floor = against_duckdb(place, root, count, "check", "--against", BRANCH)
    return Row(
        name="kb check --against a branch with as many others" if is_both else "kb check --against",
        against=DUCKDB,
        count=count,
        unit="changes",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most_s=1.0,
        grows_at_most=IN_PROPORTION,
    )
