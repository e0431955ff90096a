"""KB's search for words against ripgrep's for the same words in the titles of the documents."""

from __future__ import annotations

from benchmarks import peers
from benchmarks.measure import in_turns, process
from benchmarks.peers import Found
from benchmarks.place import Place
from benchmarks.table import Versus
from benchmarks.text_query import WORDS

TOOL = peers.RIPGREP
_NONE = 1


def run(place: Place, tool: Found) -> list[Versus]:
    """Measure ``kb query --text`` against ``rg``, whose pattern takes the words in either order."""
    return [_row(place, tool, count) for count in place.sizes.documents]


def _row(place: Place, tool: Found, count: int) -> Versus:
    root = place.synced_documents(count)
    one, other = WORDS
    words = ["-i", f"^title:.*({one}.*{other}|{other}.*{one})", "docs"]
    kb, theirs = in_turns(
        lambda: place.kb(root, "query", "--text", " ".join(WORDS)),
        lambda: process([tool.program, *words], cwd=root, env=place.env, allowed=(0, _NONE)),
        rounds=place.sizes.rounds_of(count),
    )
    return Versus("search titles", count, "documents", kb, tool.label, theirs, kb.peak_bytes, theirs.peak_bytes)
