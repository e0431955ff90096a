"""The time of FIND, in a process that has the view open, against hand-written SQL.

From the text of the command to its result, each over concepts with three links each; and the part of it that comes
before the database is asked: reading the text and compiling it.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any, NamedTuple

from benchmarks.inside import opened, own_peak_bytes, series_of
from benchmarks.measure import Series, call, in_turns
from benchmarks.place import Place
from benchmarks.table import Row

RATIO = 1.5
"""The goal against SQL by hand."""
COMPILE_S = 0.001
"""The goal before the database is queried."""


class Question(NamedTuple):
    """A command, and SQL for the same rows."""

    name: str
    kip: str
    sql: str


_PERSON = "person 50"
_EVENT = "event 40"
QUESTIONS = (
    Question(
        "point look-up",
        f'FIND(?n) WHERE {{ ?n {{type: "Person", name: "{_PERSON}"}} }}',
        "select id, type, name, title, status, tags, attributes, metadata, source, created_at, updated_at, version "
        f"from node where type = 'Person' and name = '{_PERSON}' order by id limit 65537",
    ),
    Question(
        "one hop",
        'FIND(?e.name, ?p.name) WHERE { ?e {type: "Event"} (?e, "created_by", ?p) } LIMIT 1000',
        "select e.name, p.name from node e join link l on l.from_id = e.id join node p on p.id = l.to_id "
        "where e.type = 'Event' and l.type = 'created_by' and l.is_resolved order by e.id, p.id limit 1001",
    ),
    Question(
        "three hops",
        f'FIND(?d.name) WHERE {{ ({{type: "Event", name: "{_EVENT}"}}, "mentions", ?b) (?b, "mentions", ?c) '
        '(?c, "mentions", ?d) }',
        "select distinct on (d.id) d.name from node a join link l on l.from_id = a.id join link m "
        "on m.from_id = l.to_id join link o on o.from_id = m.to_id join node d on d.id = o.to_id "
        f"where a.type = 'Event' and a.name = '{_EVENT}' and l.type = 'mentions' and m.type = 'mentions' "
        "and o.type = 'mentions' and l.is_resolved and m.is_resolved and o.is_resolved order by d.id limit 65537",
    ),
    Question(
        "walk of 1 to 3",
        f'FIND(?d.name) WHERE {{ ({{type: "Event", name: "{_EVENT}"}}, "mentions"{{1,3}}, ?d) }}',
        "with recursive w(id, steps) as (select id, 0 from node "
        f"where type = 'Event' and name = '{_EVENT}' union select l.to_id, w.steps + 1 from w join link l "
        "on l.from_id = w.id where l.type = 'mentions' and l.is_resolved and w.steps < 3) "
        "select distinct on (d.id) d.name from w join node d on d.id = w.id where w.steps > 0 "
        "order by d.id limit 65537",
    ),
    Question(
        "NOT",
        'FIND(?e.name) WHERE { ?e {type: "Event"} NOT { (?e, "belongs_to_domain", ?d) } } LIMIT 1000',
        "select e.name from node e where e.type = 'Event' and not exists (select 1 from link l "
        "where l.from_id = e.id and l.type = 'belongs_to_domain' and l.is_resolved) order by e.id limit 1001",
    ),
    Question(
        "OPTIONAL",
        'FIND(?e.name, ?d.name) WHERE { ?e {type: "Event"} OPTIONAL { (?e, "belongs_to_domain", ?d) } } LIMIT 1000',
        "select e.name, d.name from node e left join link l on l.from_id = e.id and l.type = 'belongs_to_domain' "
        "and l.is_resolved left join node d on d.id = l.to_id where e.type = 'Event' order by e.id, d.id limit 1001",
    ),
    Question(
        "grouped count",
        'FIND(?p.name, COUNT(?e)) WHERE { ?p {type: "Person"} (?e, "created_by", ?p) } '
        "ORDER BY COUNT(?e) DESC LIMIT 20",
        "select p.name, count(distinct l.from_id) as members from node p join link l on l.to_id = p.id "
        "where p.type = 'Person' and l.type = 'created_by' and l.is_resolved "
        "group by p.name order by members desc, p.name limit 21",
    ),
)


def run(place: Place) -> list[Row]:
    """Measure each question at every size."""
    rows = []
    for count in place.sizes.concepts:
        rounds = place.sizes.rounds_of(count)
        taken = place.answer("-m", "benchmarks.kip_read", str(place.remembering_store(count)), str(rounds))
        for question in QUESTIONS:
            kb, floor = series_of(taken["questions"][question.name])
            rows.append(_row(f"KIP: {question.name}", count, kb, floor, taken["peak_bytes"], at_most=RATIO))
        kb, floor = series_of(taken["compile"])
        rows.append(_row("KIP: read and compile", count, kb, floor, None, at_most_s=COMPILE_S))
    return rows


def _row(name: str, count: int, kb: Series, floor: Series, peak_bytes: int | None, **aims: float) -> Row:
    return Row(
        name=name,
        against="SQL by hand" if "at_most" in aims else "json.loads of the command",
        count=count,
        unit="concepts, 3 links each",
        kb=kb,
        floor=floor,
        peak_bytes=peak_bytes,
        **aims,
    )


def main(root: str, rounds: int) -> None:
    """Print the seconds of each question, by KIP and by hand, those of compiling, and the peak of memory."""
    store = opened(root).store("main")
    figures = store.read(lambda view: _measured(view, rounds))
    print(json.dumps({**figures, "peak_bytes": own_peak_bytes()}))


def _measured(view: Any, rounds: int) -> dict[str, Any]:
    from kbcore.kip.binding import read
    from kbcore.kip.find import compiled, find
    from kbcore.model.concepts import extended
    from kbcore.model.schema import CORE

    schema = extended(CORE)
    reading: Any = read

    def asked(question: Question) -> Any:
        return find(view, schema, reading(question.kip)).result

    def prepared(question: Question) -> Any:
        return compiled(view, schema, reading(question.kip))

    taken = {}
    for one in QUESTIONS:
        found, wanted = asked(one), view.rows(one.sql)
        shown = len(found[0]) if found and isinstance(found[0], list) else len(found)
        # Of a page, SQL gives one row more: that there are more is part of the answer.
        assert shown <= len(wanted) <= shown + 1, one.name
        by_kip, by_hand = (partial(call, partial(asked, one)), partial(call, partial(view.rows, one.sql)))
        taken[one.name] = [series.walls_s for series in in_turns(by_kip, by_hand, rounds=rounds)]
    typical = QUESTIONS[4]
    compiling = partial(call, partial(prepared, typical))
    floor = partial(call, lambda: json.loads(json.dumps(typical.kip)))
    return {
        "questions": taken,
        "compile": [series.walls_s for series in in_turns(compiling, floor, rounds=rounds)],
    }


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
