"""How long does a search for words take, against `git grep` for them in the titles of the same documents?"""

from __future__ import annotations

from benchmarks.measure import Sample, in_turns, process, together
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import IN_PROPORTION, Row

WORDS = ("draft", "label")
_NONE = 1
"""With few documents no title may have both words."""


def run(place: Place) -> list[Row]:
    """Measure the first page of ``kb query --text``."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    pattern = ["-e", "^title:", *(word for one in WORDS for word in ("--and", "-e", one))]

    def grep() -> Sample:
        found = process(["git", "grep", "-i", *pattern, "--", "docs"], cwd=root, env=place.env, allowed=(0, _NONE))
        return together(found, place.python("-c", DUCKDB_START))

    kb, floor = in_turns(
        lambda: place.kb(root, "query", "--text", " ".join(WORDS)), grep, rounds=place.sizes.rounds_of(count)
    )
    return Row(
        name="kb query --text",
        against="git grep + duckdb.connect()",
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        grows_at_most=IN_PROPORTION,
    )
