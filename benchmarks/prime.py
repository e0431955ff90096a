"""The time of `kb prime` when nothing has changed since the same call, against the start of KB."""

from __future__ import annotations

from benchmarks.measure import in_turns
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row

_MOST_S = {"prime": 0.15, "prime for a hook": 0.08}


def run(place: Place) -> list[Row]:
    """Measure both on documents that were synced, and an answer that is kept."""
    return [_row(place, count, name) for count in place.sizes.documents for name in _MOST_S]


def _row(place: Place, count: int, name: str) -> Row:
    root = place.synced_documents(count)
    document = min(root.glob("docs/**/*.md")).relative_to(root).as_posix()
    words = ["prime", "--for", document, *(["--hook"] if name != "prime" else [])]
    place.kb(root, *words)  # this answer is kept
    kb, floor = in_turns(
        lambda: place.kb(root, *words), lambda: place.kb(root, "--version"), rounds=place.sizes.rounds_of(count)
    )
    return Row(
        name=name,
        against="kb --version",
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most_s=_MOST_S[name],
        grows_at_most=IN_PROPORTION,
    )
