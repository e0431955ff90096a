"""The rows of a query: order, edges, pages and fields."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbcore import query
from kbcore.errors import HistoryPruned, InvalidQuery
from kbcore.model.graph import edge_json, entity_json
from kbcore.model.schema import CORE
from kbcore.query import Query, condition_sql, sql
from kbcore.query.keys import key_of
from kbcore.view.tables import SMALL_LIST
from tests.core.query.asked import ask, both, ids, requirements_graph
from tests.support.effort.scale import tries
from tests.support.views.graph import graph_of, link, node


@pytest.fixture
def graph():
    return requirements_graph()


class TestOrder:
    def test_descending_order_breaks_ties_by_id_and_puts_what_is_missing_last(self):
        graph = graph_of([node("A", owner="x"), node("B"), node("C", owner="y"), node("D", owner="x")])
        assert ids(graph, sort="owner") == ["A", "D", "C", "B"]
        assert ids(graph, sort="-owner") == ["C", "A", "D", "B"]
        assert ids(graph, sort="-id") == ["D", "C", "B", "A"]

    def test_attributes_are_ordered_as_numbers_then_times_then_text(self):
        values = {"A": 10, "B": 9, "C": "9.5", "D": -1.5, "E": "10", "G": "v10", "H": "v9", "I": "2026-01-31"}
        values |= {"J": "2026-01-31T01:00:00+02:00"}
        graph = graph_of([*(node(name, attributes__n=value) for name, value in values.items()), node("F")])
        assert ids(graph, sort="n") == ["D", "B", "C", "A", "E", "J", "I", "H", "G", "F"]
        assert ids(graph, sort="-n") == ["A", "E", "C", "B", "D", "I", "J", "G", "H", "F"]


@settings(max_examples=tries(30, 100), deadline=None)
@given(st.lists(st.text(st.sampled_from("0179aB-ß\n .²"), max_size=50), min_size=1, max_size=20))
@example(["REQ-7", "REQ-" + "9" * 40, "REQ-" + "9" * 41, "9" * 45, "ß12", "v1.10", "", "0"])
def test_text_is_ordered_by_its_numbers_filled_up_with_zeros(texts):
    graph = graph_of([node(f"R{at}", title=text) for at, text in enumerate(texts)])
    key = key_of("title", is_edge=False)
    order, _ = condition_sql.sortable(sql.statement(None), key)
    found = graph.rows(f"select coalesce(n.title, ''), {order} from node n")
    assert {(text, shown or "") for text, shown in found} == {(text, condition_sql.natural(text)) for text in texts}


class TestEdges:
    def test_edges_themselves_are_listed_in_the_order_of_their_ends(self, graph):
        page = ask(graph, type="edge")
        assert [(edge.from_id, edge.type, edge.to_id) for edge in page.edges] == [
            ("REQ-1", "depends_on", "REQ-2"),
            ("REQ-1", "verified_by", "TEST-1"),
            ("REQ-2", "depends_on", "REQ-3"),
            ("REQ-3", "depends_on", "REQ-1"),
            ("SYM-1", "implements", "REQ-2"),
        ]
        assert page.entities == []
        assert page.total == 5

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ({"type": "implements"}, ["SYM-1"]),
            ({"from": "REQ-1", "to": "TEST-1"}, ["REQ-1"]),
            ({"source": "docs/b.md"}, ["REQ-1"]),
            ({"source": "test", "type": "implements"}, ["SYM-1"]),
            ({"created_by": "nobody"}, []),
            ({"resolved": "false"}, ["REQ-3"]),
            ({"stands": "false"}, ["REQ-3"]),
            ({"confidence": "0.50"}, ["REQ-1"]),
            ({"sources": "docs/b.md"}, ["REQ-1"]),
            ({"version": "1", "from": "SYM-1"}, ["SYM-1"]),
            ({"created_at": "2026-11-20T09:30:00Z", "from": "SYM-1"}, ["SYM-1"]),
            ({"created_at": "2026-11-19"}, []),
            ({"kind": "x"}, []),
        ],
    )
    def test_edges_are_filtered_by_their_own_keys(self, graph, where, expected):
        found = ask(graph, type="edge", where=both(*(f"{key}={value}" for key, value in where.items())))
        assert [edge.from_id for edge in found.edges] == expected

    @pytest.mark.parametrize("count", [1, 30])
    def test_edges_of_a_page_are_those_that_touch_its_entities_both_ways(self, count):
        names = [f"A{at:02d}" for at in range(count)]
        graph = graph_of(
            [*map(node, names), node("X"), node("Y")],
            [
                *(link(name, "depends_on", "X") for name in names),
                *(link("Y", "depends_on", name) for name in names),
                link("X", "depends_on", "Y"),
                link("A00", "depends_on", "A00"),
                link("A00", "verified_by", "T", is_resolved=False),
            ],
        )
        page = ask(graph, ids=tuple(names), edges=True)
        expected = [("A00", "A00")] + [(name, "X") for name in names] + [("Y", name) for name in names]
        assert [(edge.from_id, edge.to_id) for edge in page.edges] == sorted(expected)

    def test_edges_come_only_when_asked_for(self, graph):
        assert ask(graph, ids=("REQ-1",)).edges == []


class TestPages:
    def test_an_answer_that_fits_is_not_counted_again(self, graph):
        page = ask(graph)
        assert (page.total, page.next_cursor) == (5, "")
        assert not any("count" in sql for sql in graph.asked)

    @pytest.mark.parametrize("limit", [SMALL_LIST - 1, SMALL_LIST + 1, 300])
    @pytest.mark.parametrize("sort", ["-priority", "title", ""])
    def test_a_page_of_any_length_is_in_its_order(self, limit, sort):
        ids = [f"R{number:03}" for number in range(300)]
        graph = graph_of([node(id_, priority=str(at % 7), title=f"T{-at % 11}") for at, id_ in enumerate(ids)])
        key = {"-priority": lambda at: -(at % 7), "title": lambda at: -at % 11, "": lambda at: 0}[sort]
        expected = [ids[at] for at in sorted(range(300), key=lambda at: (key(at), ids[at]))]
        page = ask(graph, sort=sort, limit=limit)
        assert [one.id for one in page.entities] == expected[:limit]

    def test_the_total_is_counted_once_and_travels_with_the_cursor(self, graph):
        first = ask(graph, limit=2)
        assert first.total == 5
        assert sum("count(*)" in sql for sql in graph.asked) == 1
        second = ask(graph, limit=2, cursor=first.next_cursor)
        assert [found.id for found in second.entities] == ["REQ-3", "SYM-1"]
        assert second.total == 5
        assert sum("count(*)" in sql for sql in graph.asked) == 1

    def test_all_pages_speak_of_the_seq_of_the_first(self):
        old, new = node("B", title="old"), node("B", title="new", version=2)
        graph = graph_of([node("A"), old, node("D")])
        first = ask(graph, seq=1, limit=1)
        later = graph_of([node("A"), new, node("C", version=2)], old_nodes=[(old, 2), (node("D"), 2)])
        rest = ask(later, seq=2, limit=9, cursor=first.next_cursor)
        assert [(found.id, found.fields["title"]) for found in rest.entities] == [("B", "old"), ("D", "Title of D")]
        assert (rest.seq, rest.total) == (1, 3)

    def test_a_cursor_fits_only_its_own_query_and_store(self, graph):
        cursor = ask(graph, limit=1).next_cursor
        with pytest.raises(InvalidQuery, match="another request"):
            ask(graph, type="req", cursor=cursor)
        with pytest.raises(InvalidQuery, match="another request"):
            query.page(Query(cursor=cursor), graph.rows, 9, scope="other store")
        assert ask(graph, limit=4, fields=("title",), edges=True, cursor=cursor).total == 5

    def test_a_cursor_from_a_seq_that_is_gone_is_refused(self, graph):
        cursor = ask(graph, seq=9, limit=1).next_cursor
        with pytest.raises(InvalidQuery, match="no longer has"):
            ask(graph, seq=8, cursor=cursor)

    def test_a_seq_in_the_future_is_refused(self, graph):
        with pytest.raises(InvalidQuery, match="no seq 10 yet"):
            ask(graph, seq=9, at=10)

    def test_a_pruned_seq_is_refused(self, graph):
        checked = query.check(Query(at=3), CORE)
        with pytest.raises(HistoryPruned):
            query.page(checked, graph.rows, 9, history_from=4)
        assert query.page(checked, graph.rows, 9, history_from=3).seq == 3

    def test_history_is_not_read_for_the_head(self, graph):
        ask(graph, seq=9, at=9)
        assert not any("history" in sql for sql in graph.asked)
        ask(graph, seq=9, at=8)
        assert any("history" in sql for sql in graph.asked)

    @pytest.mark.parametrize("seq", [None, 3])
    def test_an_entity_is_looked_up_by_the_index(self, graph, seq):
        graph.connection.execute("create index node_by_id on node (id)")
        graph.add("node", [dict(zip(("id", "version"), (f"N{at}", 1), strict=True)) for at in range(3000)])
        asked = query.check(Query(ids=("REQ-1",), at=seq), CORE)
        compiled = query.compile(asked)
        plan = graph.rows("explain analyze " + compiled.sql, compiled.params)[0][1]
        assert "Index Scan" in plan


class TestFields:
    def test_only_the_wanted_fields_are_shown_and_always_the_id(self):
        shown = entity_json(node("A", owner="ann", attributes__kind="x", attributes__size=1, metadata__who="me"))
        fields = query.check(Query(fields=("title", "kind", "metadata", "title")), CORE).fields
        assert fields == ("title", "attributes.kind", "metadata")
        assert query.project(shown, fields) == {
            "id": "A",
            "title": "Title of A",
            "attributes": {"kind": "x"},
            "metadata": {"who": "me"},
        }
        assert query.project(shown, ()) == shown

    def test_an_edge_keeps_its_ends(self):
        shown = edge_json(link("A", "relates_to", "B", kind="x", fields={"confidence": 0.5}))
        picked = query.project(shown, ("confidence", "attributes.none"))
        assert picked == {"type": "relates_to", "from": "A", "to": "B", "kind": "x", "confidence": 0.5}
