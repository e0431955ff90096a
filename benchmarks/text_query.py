"""The time of a search for words.

As a user types it, against `git grep` for the words in the titles of the same documents. And in a process that has the
view open, on entities of fifty words: against the same look-up in tables that were made for it by hand, without scores,
snippets, typos or filters; and the first search, which builds the index, against counting the words in SQL. A question
of ten words there, by its words alone and by its meaning too, against the same look-up; and the first question, which
makes a vector of each entity, against counting the words.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.inside import opened, own_peak_bytes, series_of
from benchmarks.measure import Sample, call, in_turns, process, together
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import IN_PROPORTION, Row

if TYPE_CHECKING:
    from kbcore.view.view import View

WORDS = ("draft", "label")
MOST_S = 0.01
"""The goal in a process that has the view open."""
_NONE = 1
"""With few documents no title may have both words."""
QUESTION = "which draft has the label that nobody could change since the last release was planned"
"""So many words that few entities have all of them."""
_SEARCHES = (" ".join(WORDS), "draft lab", "drft label", "REQ-000007")
"""Two words; the second one a beginning; a typo in one; an id."""


def run(place: Place) -> list[Row]:
    """Measure the first page of ``kb query --text``, and the same in a process that stays."""
    rows = [_row(place, count) for count in place.sizes.documents]
    for count in place.sizes.documents:
        rows += _inside(place, count)
    return rows


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)
    pattern = ["-e", "^title:", *(word for one in WORDS for word in ("--and", "-e", one))]

    def grep() -> Sample:
        found = process(["git", "grep", "-i", *pattern, "--", "docs"], cwd=root, env=place.env, allowed=(0, _NONE))
        return together(found, place.python("-c", DUCKDB_START))

    kb, floor = in_turns(
        lambda: place.kb(root, "query", "--text", " ".join(WORDS), "--limit", "50"),
        grep,
        rounds=place.sizes.rounds_of(count),
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


def _inside(place: Place, count: int) -> list[Row]:
    rounds = place.sizes.rounds_of(count)
    taken = place.answer("-m", "benchmarks.text_query", str(place.wordy_store(count)), str(rounds))
    rows = []
    for name, against, key, aims in (
        ("search, view open", "look-up by hand", "search", {"at_most_s": MOST_S}),
        ("question by words, view open", "look-up by hand", "question", {}),
        ("question by meaning too, view open", "look-up by hand", "meaning", {}),
        ("first search: index built", "words counted in SQL", "build", {}),
        ("first question: vectors made", "words counted in SQL", "vectors", {}),
    ):
        kb, floor = series_of(taken[key])
        rows.append(
            Row(
                name=name,
                against=against,
                count=count,
                unit="entities of 50 words",
                kb=kb,
                floor=floor,
                peak_bytes=taken["peak_bytes"],
                grows_at_most=IN_PROPORTION,
                **aims,
            )
        )
    return rows


def main(root: str, rounds: int) -> None:
    """Print the seconds of the first search and of those after it, each with its floor, and the peak of memory."""
    from kbcore.query import Query
    from kbcore.sync.searching import search

    workspace = opened(root)
    store = workspace.store("main")

    def on_view(use: Callable[[View], object]) -> Sample:
        return call(lambda: store.read(use))

    def ask(text: str, *, is_of_words: bool = True, limit: int = 50) -> Sample:
        query = Query(text=text, limit=limit)
        return on_view(lambda view: search(workspace, store, "main", view, query, is_of_words=is_of_words))

    def built() -> Sample:
        store.close()
        (workspace.folders.cache_of("main") / "text.db").unlink(missing_ok=True)
        store.read(lambda view: view.seq)
        return ask(WORDS[0])

    def vectors_made() -> Sample:
        store.texts.discard()
        (workspace.folders.cache_of("main") / "meanings.bin").unlink(missing_ok=True)
        ask(WORDS[0])
        return ask(QUESTION, is_of_words=False)

    build = in_turns(built, lambda: on_view(_counted), rounds=1, warm_ups=0)
    vectors = in_turns(vectors_made, lambda: on_view(_counted), rounds=1, warm_ups=0)
    store.read(_indexed)
    found = [in_turns(partial(ask, text), partial(on_view, _looked_up), rounds=rounds) for text in _SEARCHES]
    searches = [[wall_s for pair in found for wall_s in pair[side].walls_s] for side in (0, 1)]
    figures = {
        name: [series.walls_s for series in pair]
        for name, pair in {
            "build": build,
            "vectors": vectors,
            "question": in_turns(partial(ask, QUESTION, limit=5), partial(on_view, _looked_up), rounds=rounds),
            "meaning": in_turns(
                partial(ask, QUESTION, is_of_words=False, limit=5), partial(on_view, _looked_up), rounds=rounds
            ),
        }.items()
    }
    print(json.dumps({**figures, "search": searches, "peak_bytes": own_peak_bytes()}))


def _counted(view: View) -> None:
    said = "string_split(lower(concat_ws(' ', id, title, json_extract_string(attributes, '$.description'))), ' ')"
    view.rows(f"create or replace table by_hand as select id, unnest({said}) as word from node")
    view.rows("select word, count(*) from by_hand group by word")


def _indexed(view: View) -> None:
    view.rows("create or replace table by_hand as from by_hand order by word, id")


def _looked_up(view: View) -> None:
    sql = "select id from by_hand where word = ? intersect select id from by_hand where word = ? order by id limit 51"
    view.nodes([id_ for (id_,) in view.rows(sql, list(WORDS))])


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
