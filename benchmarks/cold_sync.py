"""How long does the first sync of a repository take, against reading and YAML-parsing the same files?"""

from __future__ import annotations

import shutil

from benchmarks.measure import Sample, in_turns
from benchmarks.place import Place
from benchmarks.table import Row


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on a KB that was just set up, again and again."""
    root = place.documents()

    def first_sync() -> Sample:
        shutil.rmtree(root / ".kb")
        place.kb(root, "init", "--no-hooks")
        return place.kb(root, "sync")

    def floor() -> Sample:
        return place.python("-m", "benchmarks.floor_documents", str(root / "docs"))

    kb, below = in_turns(first_sync, floor, rounds=place.sizes.long_rounds)
    size = f"{place.sizes.documents:,} documents"
    return [Row("cold sync / read and parse YAML", size, kb, below, 3.0, kb.peak_bytes)]
