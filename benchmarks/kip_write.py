"""The time of an UPSERT, in a process that has the view open, against the same changeset through the library.

One concept and two links from the text of the command to its answer, durable; and a hundred such commands as one batch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from itertools import count as counting
from typing import Any

from benchmarks.inside import opened, own_peak_bytes, series_of
from benchmarks.measure import call, in_turns
from benchmarks.place import Place
from benchmarks.table import Row

RATIO = 1.5
"""The goal against the library."""
BATCH = 100
_ATTRIBUTES = {"event_class": "talk", "start_time": "2026-01-01T00:00:00Z", "content_summary": "What was said."}


def run(place: Place) -> list[Row]:
    """Measure single commands and batches at every size."""
    rows = []
    for count in place.sizes.concepts:
        root = place.copy_of(place.remembering_store(count), f"kip-write-{count}")
        taken = place.answer("-m", "benchmarks.kip_write", str(root), str(place.sizes.rounds_of(count)))
        for name in ("UPSERT, 2 links", f"batch of {BATCH} UPSERTs"):
            kb, floor = series_of(taken[name])
            rows.append(
                Row(
                    name=f"KIP: {name}",
                    against="changesets by the library",
                    count=count,
                    unit="concepts, 3 links each",
                    kb=kb,
                    floor=floor,
                    peak_bytes=taken["peak_bytes"],
                    at_most=RATIO,
                )
            )
    return rows


def main(root: str, rounds: int) -> None:
    """Print the seconds of single commands and of batches, by KIP and by the library, and the peak of memory."""
    workspace = opened(root)
    names = [row[0] for row in workspace.store("main").read(_people)]
    by_kip, by_hand = _writers(workspace, names)
    batch = max(3, rounds // BATCH)
    taken = {
        "UPSERT, 2 links": in_turns(partial(call, by_kip), partial(call, by_hand), rounds=rounds),
        f"batch of {BATCH} UPSERTs": in_turns(
            partial(call, partial(_repeated, by_kip)), partial(call, partial(_repeated, by_hand)), rounds=batch
        ),
    }
    figures: dict[str, Any] = {name: [series.walls_s for series in found] for name, found in taken.items()}
    print(json.dumps({**figures, "peak_bytes": own_peak_bytes()}))


def _people(view: Any) -> list[tuple[str]]:
    found: list[tuple[str]] = view.rows("select name from node where type = 'Person' order by id")
    return found


def _writers(workspace: Any, names: list[str]) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return what writes a new event by a command, and what writes one by the library."""
    from kbcore.kip import kml
    from kbcore.kip.binding import read
    from kbcore.model.changeset import parse
    from kbcore.store import apply
    from kbcore.store.write_request import Author

    author, numbers = Author("bench", "cli", "kb/bench"), counting()
    members = ", ".join(f"{key}: {json.dumps(value)}" for key, value in _ATTRIBUTES.items())

    def by_kip() -> None:
        number = next(numbers)
        ends = (json.dumps(names[(number + step) % len(names)]) for step in (0, 1))
        links = " ".join(f'("mentions", {{type: "Person", name: {end}}})' for end in ends)
        text = (
            f'UPSERT {{ CONCEPT ?e {{ {{type: "Event", name: "by kip {number}"}} SET ATTRIBUTES {{ {members} }} '
            f'SET PROPOSITIONS {{ {links} }} }} }} WITH METADATA {{ source: "talk", author: "$self", confidence: 0.9 }}'
        )
        command: Any = read(text)
        kml.execute(workspace, "main", author, command, follows_head=True)

    def by_hand() -> None:
        number = next(numbers)
        key = f"Event:by hand {number}"
        said = {"author": "$self", "confidence": 0.9}
        entity = {
            "id": key,
            "type": "Event",
            "name": f"by hand {number}",
            "title": f"by hand {number}",
            "source": "talk",
        }
        edges = [
            {
                "type": "mentions",
                "from": key,
                "to": f"Person:{names[(number + step) % len(names)]}",
                "source": "talk",
                "created_by": "$self",
                "confidence": 0.9,
            }
            for step in (0, 1)
        ]
        request = {"entities": [{**entity, "attributes": _ATTRIBUTES, "metadata": said}], "edges": edges}
        # Only an import may say by whom something was made, as a command of KIP does.
        apply.apply_changeset(
            workspace, "main", apply.importing(author), parse(request, is_import=True), follows_head=True
        )

    return by_kip, by_hand


def _repeated(write: Callable[[], None]) -> None:
    for _ in range(BATCH):
        write()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
