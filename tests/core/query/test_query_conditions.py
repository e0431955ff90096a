"""Conditions: what their text says, and which entities meet them."""

from __future__ import annotations

import contextlib
import time

import pytest

from kbcore import limits, query
from kbcore.errors import InvalidQuery
from kbcore.model.schema import CORE
from kbcore.query import Condition, Query, conditions_of, parse_where
from tests.support.views.graph import graph_of, link, node


def ids(graph, *where, **asked):
    asked = query.check(Query(where=tuple(map(parse_where, where)), **asked), CORE)
    return [one.id for one in query.page(asked, graph.rows, 9).entities]


def refusal(*where, **asked):
    with pytest.raises(InvalidQuery) as caught:
        query.check(Query(where=tuple(map(parse_where, where)), **asked), CORE)
    return caught.value


class TestReading:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("owner=ann", [("owner", "=", "ann")]),
            ("owner = ann lee ", [("owner", "=", "ann lee")]),
            ("owner!=ann", [("owner", "!=", "ann")]),
            ("size>=3", [("size", ">=", "3")]),
            ("size > 3", [("size", ">", "3")]),
            ("title~login", [("title", "~", "login")]),
            ("path^=docs/", [("path", "^=", "docs/")]),
            ("owner=", [("owner", "=", "")]),
            ("owner!=", [("owner", "!=", "")]),
            ("priority=must OR severity=high", [("priority", "=", "must"), ("severity", "=", "high")]),
            ('title="this OR that" OR owner=ann', [("title", "=", "this OR that"), ("owner", "=", "ann")]),
            ('range=">=1.2"', [("range", "=", ">=1.2")]),
            (r'title="say \"hi\""', [("title", "=", 'say "hi"')]),
            ('"a<b"=1', [("a<b", "=", "1")]),
            ("title=salt and pepper", [("title", "=", "salt and pepper")]),
            ("note=a=b>c", [("note", "=", "a=b>c")]),
            ("owner= OR owner=ann", [("owner", "=", ""), ("owner", "=", "ann")]),
            ("state=OR OR state=CA", [("state", "=", "OR"), ("state", "=", "CA")]),
            ("OR=1", [("OR", "=", "1")]),
        ],
    )
    def test_a_text_is_read_as_its_conditions(self, text, expected):
        assert [(one.key, one.operator, one.value) for one in parse_where(text)] == expected

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ("owner==ann", "owner=ann"),
            ("size=>3", "size>=3"),
            ("a=1 OR size=<3 OR b=2", "a=1 OR size<=3 OR b=2"),
            ("title=~log", "title~log"),
            ("title<>x", "title!=x"),
        ],
    )
    def test_an_operator_of_another_language_gets_the_form_that_means_it(self, text, meant):
        with pytest.raises(InvalidQuery) as caught:
            parse_where(text)
        assert caught.value.hint.startswith(f"Did you mean '{meant}'? Write KEY")
        assert parse_where(meant)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("owner", "no condition such as KEY=VALUE"),
            ("owner==ann", "There is no operator '=='"),
            ("owner=>ann", "There is no operator '=>'"),
            ("size>", "no value after `>`"),
            ("title~", "no value after `~`"),
            ("a=1 OR b", "no condition such as KEY=VALUE"),
            ("a=1 OR ", "no condition after OR"),
            ("size>5 OR", "no condition after OR"),
            ('a="x" OR', "no condition after OR"),
            ("a= OR", "no condition after OR"),
            ("OR size>5", "no condition before OR"),
            ("a=1 OR OR b=2", "no condition before OR"),
            ("size>5 AND", "give each as a condition of its own"),
            ("a=1 or b=2", "write OR in capital letters"),
            ("a=1 and b=2", "give each as a condition of its own"),
            ("a=1 AND b>2", "give each as a condition of its own"),
            ('title="half', "do not enclose one value"),
            ('title="one" two', "do not enclose one value"),
            (r'title="\x"', "not JSON"),
        ],
    )
    def test_text_that_is_no_condition_is_refused_with_the_operators(self, text, said):
        with pytest.raises(InvalidQuery) as caught:
            parse_where(text)
        assert said in caught.value.message
        assert "`^=` begins with" in caught.value.hint

    @pytest.mark.parametrize(
        "text",
        [
            " " * 60_000,
            f"k{' ' * 60_000}v",
            f"k=a{' ' * 60_000}x",
            "k=" + "a or " * 12_000,
            '"' * 60_000,
            'k="' + "a " * 30_000,
            "a=1 OR " * 8_000 + "a=1",
        ],
    )
    def test_a_long_text_is_read_in_proportion_to_its_length(self, text):
        began = time.process_time()
        with contextlib.suppress(InvalidQuery):
            parse_where(text)
        assert time.process_time() - began < 2

    def test_a_text_that_is_too_long_is_refused_and_not_shown_whole(self):
        for text in ("a=" + "x" * limits.MAX_TEXT_BYTES, "x" * 60_000):
            with pytest.raises(InvalidQuery) as caught:
                parse_where(text)
            assert len(caught.value.message) < 300

    def test_a_member_of_an_object_is_equal_to_its_value_or_to_one_of_a_list(self):
        assert conditions_of("a", "x OR y=z") == (Condition("a", "x OR y=z"),)
        assert conditions_of("a", [1, True, "x"]) == (Condition("a", "1"), Condition("a", "true"), Condition("a", "x"))
        for value in ([], None, {}, [[]]):
            with pytest.raises(InvalidQuery, match="compares with"):
                conditions_of("a", value)


class TestMeaning:
    @pytest.fixture
    def graph(self):
        return graph_of(
            [
                node("REQ-1", owner="ann", priority="must", tags=["web", "Auth"], attributes__size=9,
                     attributes__due="2026-03-01", attributes__release="v9"),
                node("REQ-2", owner="Ben", priority="should", attributes__size="10",
                     attributes__due="2026-03-01T23:30:00-02:00", attributes__release="v10"),
                node("REQ-10", priority="could", attributes__size=[3, 30], attributes__due="soon",
                     attributes__release="v2"),
                node("REQ-20", title="Log in by E-mail"),
            ],
            [link("REQ-1", "depends_on", "REQ-2", fields={"confidence": 0.5}), link("REQ-2", "depends_on", "REQ-10")],
        )  # fmt: skip

    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("priority=must OR priority=should", ["REQ-1", "REQ-2"]),
            ("priority!=must", ["REQ-10", "REQ-2", "REQ-20"]),
            ("priority!=", ["REQ-1", "REQ-10", "REQ-2"]),
            ("priority=", ["REQ-20"]),
            ("due=", ["REQ-20"]),
            ("due!=", ["REQ-1", "REQ-10", "REQ-2"]),
            ("tag=", ["REQ-10", "REQ-2", "REQ-20"]),
            ("tag!=", ["REQ-1"]),
            ("version=", []),
            ("created_at!=", ["REQ-1", "REQ-10", "REQ-2", "REQ-20"]),
            ("owner= OR owner=ann", ["REQ-1", "REQ-10", "REQ-20"]),
            ("size=10.0", ["REQ-2"]),
            ("size=010", ["REQ-2"]),
            ("size!=10.0", ["REQ-1", "REQ-10", "REQ-20"]),
            ("size=30.0", ["REQ-10"]),
            ("size=1e1", ["REQ-2"]),
            ("owner!=ann", ["REQ-10", "REQ-2", "REQ-20"]),
            ("size>9", ["REQ-10", "REQ-2"]),
            ("size>=9", ["REQ-1", "REQ-10", "REQ-2"]),
            ("size<10", ["REQ-1", "REQ-10"]),
            ("size!=9", ["REQ-10", "REQ-2", "REQ-20"]),
            ("due<2026-03-02", ["REQ-1"]),
            ("due>2026-03-01", ["REQ-2"]),
            ("due<=2026-03-01", ["REQ-1"]),
            ("due>=2026-03-01", ["REQ-1", "REQ-2"]),
            ("release>v9", ["REQ-2"]),
            ("release<=v9", ["REQ-1", "REQ-10"]),
            ("id<REQ-10", ["REQ-1", "REQ-2"]),
            ("title~E-MAIL", ["REQ-20"]),
            ("title^=log in", ["REQ-20"]),
            ("title~%", []),
            ("tag~AUTH", ["REQ-1"]),
            ("tag!=web", ["REQ-10", "REQ-2", "REQ-20"]),
            ("tag^=w", ["REQ-1"]),
            ("version>=1", ["REQ-1", "REQ-10", "REQ-2", "REQ-20"]),
            ("version<1", []),
            ("created_at<2026-11-21", ["REQ-1", "REQ-10", "REQ-2", "REQ-20"]),
            ("created_at>2026-11-20", []),
        ],
    )
    def test_operators_select_entities(self, graph, where, expected):
        assert ids(graph, where) == expected

    def test_several_conditions_conjoin(self, graph):
        assert ids(graph, "priority=must OR priority=should", "size>9") == ["REQ-2"]

    def test_edges_are_compared_too(self, graph):
        def found(where):
            asked = query.check(Query(type="edge", where=(parse_where(where),)), CORE)
            return [edge.from_id for edge in query.page(asked, graph.rows, 9).edges]

        assert found("confidence<0.6") == ["REQ-1"]
        assert found("to!=REQ-2") == ["REQ-2"]
        assert found("from=REQ-1 OR to=REQ-10") == ["REQ-1", "REQ-2"]

    @pytest.mark.parametrize("sort", ["id", "-id"])
    def test_ids_are_sorted_as_people_count(self, graph, sort):
        expected = ["REQ-1", "REQ-2", "REQ-10", "REQ-20"]
        assert ids(graph, sort=sort) == (expected if sort == "id" else expected[::-1])

    def test_a_sorted_answer_continues_in_its_order_page_by_page(self, graph):
        asked, found = query.check(Query(sort="id", limit=1), CORE), []
        while True:
            page = query.page(asked, graph.rows, 9)
            found += [one.id for one in page.entities]
            if not page.next_cursor:
                break
            asked = query.check(Query(sort="id", limit=1, cursor=page.next_cursor), CORE)
        assert found == ["REQ-1", "REQ-2", "REQ-10", "REQ-20"]


class TestRefusals:
    def test_an_operator_that_a_key_does_not_take_is_refused(self):
        assert "takes `=`, `!=`, `~`, `^=`" in refusal("tag>a").hint
        assert "takes `=`, `!=`." in refusal("resolved<true", type="edge").hint
        assert [problem.code for problem in refusal("version~1").details] == ["bad_operator"]

    def test_an_operator_compares_a_number_or_a_time_with_one(self):
        assert refusal("version>new").hint == "For example `version>0.5`."
        assert refusal("created_at<=soon").hint == "For example `created_at<=2026-01-31`."

    @pytest.mark.parametrize("word", ["today", "Yesterday", "2 days ago", "now", "last week"])
    def test_an_attribute_is_ordered_beside_a_time_that_is_written_out_alone(self, word):
        assert refusal(f"due<{word}").hint == "Write the date or the time, for example `due<2026-01-31`."

    def test_too_many_conditions_are_refused(self):
        text = " OR ".join(["a=1"] * (limits.MAX_QUERY_CONDITIONS + 1))
        assert [problem.code for problem in refusal(text).details] == ["too_many"]

    def test_a_count_goes_with_no_cursor(self):
        assert "Leave one of them out." in refusal(count=True, cursor="x").hint


def test_a_count_answers_the_total_alone():
    graph = graph_of([node(f"REQ-{number}") for number in range(7)])
    for asked in ({}, {"limit": 2, "sort": "-id"}, {"ids": ("REQ-1", "REQ-2")}, {"edges": True}):
        page = query.page(query.check(Query(count=True, **asked), CORE), graph.rows, 9)
        assert (page.total, page.entities, page.edges, page.next_cursor) == (2 if "ids" in asked else 7, [], [], "")
