"""A filter never calls absent what a base has, recognises most of what it lacks, and is made when it is worth it."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.view import key_filter
from kbcore.view.key_filter import CHANGESETS, LINK_ENDS, LINK_IDS, NODE_IDS, KeyFilter
from tests.support.generators.histories import laws

KEYS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=12), unique=True, max_size=30)


class Base:
    """The key columns of a base, and how often it was asked."""

    def __init__(self, nodes=(), links=(), changesets=()) -> None:
        self.connection = duckdb.connect(":memory:")
        self.connection.execute("attach ':memory:' as base")
        for table, columns, rows in (
            ("node", ["id"], [[key] for key in nodes]),
            ("link", ["id", "from_id", "to_id"], [list(row) for row in links]),
            ("record", ["changeset_id"], [[key] for key in changesets]),
        ):
            self.connection.execute(f"create table base.{table} ({', '.join(f'{one} varchar' for one in columns)})")
            for row in rows:
                self.connection.execute(f"insert into base.{table} values ({', '.join('?' * len(row))})", row)
        self.asked: list[str] = []

    def ask(self, sql: str, *params):
        self.asked.append(sql)
        return self.connection.execute(sql, list(params)).fetchall()

    def filter(self) -> KeyFilter:
        made = KeyFilter(self.ask)
        made.make()
        return made


@laws(60)
@given(KEYS, KEYS)
def test_what_the_base_has_is_never_called_absent(keys: list[str], others: list[str]) -> None:
    links = [(f"link:{key}", key, other) for key, other in zip(keys, others, strict=False)]
    made = Base(keys, links, others).filter()
    assert made.possible(NODE_IDS, keys) == keys
    assert made.possible(LINK_IDS, [one[0] for one in links]) == [one[0] for one in links]
    assert made.possible(LINK_ENDS, [one[1] for one in links]) == [one[1] for one in links]
    assert made.possible(LINK_ENDS, [one[2] for one in links]) == [one[2] for one in links]
    assert made.possible(CHANGESETS, others) == others
    added = [f"{key}+" for key in keys]
    made.grow({NODE_IDS: added, LINK_IDS: [], LINK_ENDS: [], CHANGESETS: added})
    assert made.possible(NODE_IDS, keys + added) == keys + added
    assert made.possible(CHANGESETS, others + added) == others + added


def test_most_of_what_the_base_lacks_is_recognised_in_each_column() -> None:
    made = Base(
        [f"N-{n}" for n in range(500)], [(f"L{n}", f"F{n}", f"T{n}") for n in range(300)], [f"C{n}" for n in range(400)]
    ).filter()
    for name in (NODE_IDS, LINK_IDS, LINK_ENDS, CHANGESETS):
        assert len(made.possible(name, [f"absent {n}" for n in range(5000)])) < 5000 * 0.05
    assert made.possible(NODE_IDS, ["\ud800"]) == [], "what cannot be stored"


def test_an_empty_base_has_nothing() -> None:
    assert Base().filter().possible(NODE_IDS, ["A", ""]) == []


def test_filters_are_made_once_look_ups_have_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_PATIENCE", 3)
    monkeypatch.setattr(key_filter, "_ROWS_PER_QUESTION", 10)
    base = Base([f"N-{n}" for n in range(100)])
    made = KeyFilter(base.ask)
    for _ in range(3):
        made.make_when_due()
        assert base.asked == []
        assert made.possible(NODE_IDS, ["absent"]) == ["absent"], "nothing is known yet"
        assert made.possible(NODE_IDS, []) == []
    for _ in range(7):
        made.make_when_due()
        assert made.possible(NODE_IDS, ["absent"]) == ["absent"]
    assert len(base.asked) == 1, "how many keys there are"
    made.make_when_due()
    assert made.possible(NODE_IDS, ["absent", "N-7"]) == ["N-7"]
    count = len(base.asked)
    made.make_when_due()
    assert len(base.asked) == count


def test_filters_that_get_too_full_are_made_again_when_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_PATIENCE", 2)
    monkeypatch.setattr(key_filter, "_LEAST_BITS", 1 << 8)
    base = Base(["A"])
    made = base.filter()
    added = [f"N-{n}" for n in range(16)]
    made.grow({NODE_IDS: added[:15]})
    assert made.possible(NODE_IDS, ["A", *added[:15]]) == ["A", *added[:15]]
    base.connection.executemany("insert into base.node values (?)", [[key] for key in added])
    made.grow({NODE_IDS: added})
    assert made.possible(NODE_IDS, ["absent"]) == ["absent"], "not known for now"
    made.possible(NODE_IDS, ["absent"])
    made.make_when_due()
    assert made.possible(NODE_IDS, ["absent", *added]) == added


def test_a_large_base_takes_a_bounded_amount_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_filter, "_LEAST_BITS", 1 << 8)
    monkeypatch.setattr(key_filter, "_MOST_BITS", 1 << 9)
    keys = [f"N-{n}" for n in range(200)]
    made = Base(keys).filter()
    assert len(made._filters[NODE_IDS]._bits) == (1 << 9) // 8
    assert made.possible(NODE_IDS, keys) == keys
