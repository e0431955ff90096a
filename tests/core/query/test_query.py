"""A query: parsed, refused with the reason, filtered and walked."""

from __future__ import annotations

import msgspec
import pytest

from kbcore import limits, query
from kbcore.errors import InvalidQuery, NotFound
from kbcore.model.schema import CORE, CORE_EDGES, CORE_ENTITIES, EntityType, schema_of
from kbcore.query import Condition, Pattern, Query, parse_pattern, parse_where
from kbcore.query.walk import path_text
from kbcore.query.where_values import number_of, span_of
from kbcore.view.tables import node_row
from tests.core.query.asked import ask, both, ids, requirements_graph
from tests.support.repository.project import document
from tests.support.views.graph import graph_of, link, node

HOSTILE = [
    "'",
    '"',
    "'; drop table node; --",
    "%",
    "_",
    "a%b_c",
    "\\",
    "ends with \\",
    "\x01\x1b[31m",
    "\x7f",
    "😀 family 👨‍👩‍👧",
    "\u202eabc\u202c",
    "שלום",
    "/~1~0/",
    "$.a[*]",
    "$1",
    "?",
    "{}",
    "[1]",
    "null",
    "e\u0301",
    "é",
]


def refusal(**asked):
    with pytest.raises(InvalidQuery) as caught:
        query.check(Query(**asked), CORE)
    return caught.value


@pytest.fixture
def graph():
    return requirements_graph()


class TestParsing:
    @pytest.mark.parametrize(
        ("text", "pattern"),
        [
            ("verified_by", Pattern("verified_by")),
            ("depends_on:REQ-1", Pattern("depends_on", "REQ-1")),
            ("^implements", Pattern("implements", inverse=True)),
            ("^implements:SYM-9", Pattern("implements", "SYM-9", inverse=True)),
            ("implements:src/a.py::f:g", Pattern("implements", "src/a.py::f:g")),
        ],
    )
    def test_a_pattern_is_an_edge_and_perhaps_an_id_after_the_first_colon(self, text, pattern):
        assert parse_pattern(text) == pattern

    @pytest.mark.parametrize("text", ["", "^", ":REQ-1", "depends_on:", "^:"])
    def test_half_a_pattern_is_refused(self, text):
        with pytest.raises(InvalidQuery, match="names no"):
            parse_pattern(text)

    def test_a_where_is_split_at_its_first_sign(self):
        assert parse_where("note=a=b") == (Condition("note", "a=b"),)
        assert parse_where("note=") == (Condition("note", ""),)

    @pytest.mark.parametrize("text", ["", "status", "=open"])
    def test_half_a_where_is_refused(self, text):
        with pytest.raises(InvalidQuery, match="KEY=VALUE"):
            parse_where(text)


class TestRefusals:
    @pytest.mark.parametrize(
        ("asked", "path", "said", "hint"),
        [
            ({"type": "reqs"}, "$.type", "reqs", "'req'"),
            ({"has": (Pattern("verifed_by"),)}, "$.has[0]", "verifed_by", "'verified_by'"),
            ({"lacks": (Pattern("implement"),)}, "$.lacks[0]", "implement", "'implements'"),
            ({"from_id": "A", "follow": ("dependson",)}, "$.follow[0]", "dependson", "'depends_on'"),
            ({"type": "edge", "where": ((Condition("fron", "A"),),)}, "$.where[0]", "fron", "'from'"),
            ({"type": "edge", "sort": "-sourc"}, "$.sort", "sourc", "'source'"),
            ({"type": "edge", "where": ((Condition("resolved", "yes"),),)}, "$.where[0]", "yes", "resolved=false"),
            ({"type": "edge", "where": ((Condition("confidence", "high"),),)}, "$.where[0]", "high", "0.5"),
            ({"type": "edge", "fields": ("form",)}, "$.fields[0]", "form", "'from'"),
            ({"where": ((Condition("attributes.", "x"),),)}, "$.where[0]", "attributes.", "attributes.NAME"),
            ({"where": ((Condition("", "x"),),)}, "$.where[0]", "''", "Known"),
            ({"sort": "tags"}, "$.sort", "tags", "It is a list. Known: "),
            ({"sort": "-"}, "$.sort", "''", "Known"),
            ({"fields": ("metadata.",)}, "$.fields[0]", "metadata.", "metadata"),
            ({"limit": 0}, "$.limit", "from 1", "Give a number from 1"),
            ({"limit": -3}, "$.limit", "not -3", "Give a number from 1"),
            ({"ids": ("A", "")}, "$.ids[1]", "id is empty", "Leave it out"),
            ({"tags": ("",)}, "$.tags[0]", "tag is empty", "Leave it out"),
            ({"text": " \u3000"}, "$.text", "`text` is empty", "Leave it out"),
            ({"where": ((Condition("version", "new"),),)}, "$.where[0]", "a number, not 'new'", "version="),
            ({"where": ((Condition("version", "nan"),),)}, "$.where[0]", "a number", "version="),
            ({"where": ((Condition("updated_at", "someday"),),)}, "$.where[0]", "a time, not", "updated_at=2026-01-31"),
            ({"limit": limits.MAX_PAGE_ROWS + 1}, "$.limit", "10001", "next_cursor"),
            ({"from_id": "A", "depth": 0}, "$.depth", "from 1", ""),
            ({"from_id": "A", "depth": 51}, "$.depth", "50", ""),
            ({"depth": 2}, "$.depth", "start", "from"),
            ({"reverse": True}, "$.reverse", "start", "from"),
            ({"follow": ("depends_on",)}, "$.follow", "start", "from"),
            ({"at": -1}, "$.at", "-1", "seq 1"),
            ({"ids": ("x",) * 1001}, "$.ids", "1001", "several"),
            ({"type": "edge", "tags": ("a",)}, "$.tags", "edges", "where"),
            ({"type": "edge", "from_id": "a"}, "$.from", "edges", "from="),
            ({"text": "half \ud800"}, "$.text", "surrogate", "Unicode"),
            ({"ids": ("a\0b",)}, "$.ids[0]", "NUL", "NUL"),
            ({"type": "edge", "where": ((Condition("document", "a"),),)}, "$.where[0]", "'document'", "'source'"),
        ],
    )
    def test_what_is_wrong_is_named_with_its_place_and_a_remedy(self, asked, path, said, hint):
        error = refusal(**asked)
        assert error.details[0].path == path
        assert said in error.details[0].message
        assert hint in error.details[0].hint
        assert error.message.startswith(error.details[0].message)

    def test_every_problem_is_reported_at_once(self):
        error = refusal(type="reqs", limit=0, has=(Pattern("x"),), sort="tag")
        assert [problem.path for problem in error.details] == ["$.limit", "$.type", "$.has[0]", "$.sort"]
        assert error.message == "The query has 4 problems."
        assert refusal(limit=0).message == refusal(limit=0).details[0].message

    def test_filters_that_cannot_be_read_are_reported_with_all_others(self):
        problems = []
        asked = Query(
            type="reqs",
            where=query.parse_each("where", ["status", "=x", "owner=ann", "stat"], parse_where, query.UNREAD, problems),
            has=query.parse_each("has", [":x", "verifed_by"], parse_pattern, query.NO_PATTERN, problems),
        )
        assert asked.where[2] == (Condition("owner", "ann"),)
        with pytest.raises(InvalidQuery) as caught:
            query.check(asked, CORE, problems=problems)
        paths = [problem.path for problem in caught.value.details]
        assert paths == ["$.where[0]", "$.where[1]", "$.where[3]", "$.has[0]", "$.type", "$.has[1]"]

    @pytest.mark.parametrize(
        ("asked", "hint"),
        [
            ({"where": ((Condition("titel", "x"),),)}, "'title'"),
            ({"sort": "-statu"}, "'status'"),
            ({"sort": "siz"}, "'size'"),
            ({"where": ((Condition("team", "a"),),)}, "'teams'"),
            ({"where": ((Condition("size:", "3"),),)}, "Did you mean 'size=3'?"),
            ({"where": ((Condition("siz:", "3"),),)}, "It is written 'siz=3'. Did you mean 'size'?"),
            ({"where": ((Condition("document", "a.md"),),)}, "Did you mean 'path'?"),
            ({"where": ((Condition("metadata.owner", "x"),),)}, "Known: attributes.file"),
            ({"where": ((Condition("attributes.deep", "1"),),)}, "Known: attributes.file, attributes.is_slow"),
            ({"where": ((Condition("atributes.size", "1"),),)}, "'attributes.size'"),
            ({"where": ((Condition("attributes.siz", "x"),),)}, "'attributes.size'"),
            ({"fields": ("titel",)}, "'title'"),
            ({"type": "edge", "where": ((Condition("metadata.size", "x"),),)}, "Known: "),
        ],
    )
    def test_a_name_that_neither_the_schema_nor_the_data_has_is_refused(self, graph, asked, hint):
        assert query.check(Query(**asked), CORE)
        known = query.DataNames(graph.rows, is_edge=asked.get("type") == "edge")
        with pytest.raises(InvalidQuery) as caught:
            query.check(Query(**asked), CORE, known)
        said = caught.value.details[0].hint
        assert hint in said
        assert "NAME" not in said or "." not in str(asked)

    def test_a_name_that_the_schema_declares_or_the_data_has_or_once_had_is_taken(self, graph):
        graph.add("node_history", [{**node_row(node("OLD", attributes__once="1")), "ended": 2}])
        known = query.DataNames(graph.rows, is_edge=False)
        for name in ("kind", "line", "attributes.file", "size", "teams", "attributes.nested", "once", "version"):
            assert query.check(Query(sort=name, fields=(name,)), CORE, known)
            assert query.check(Query(fields=("attributes", "stale")), CORE, known)
        assert query.check(Query(sort="estimate"), CORE, query.DataNames(graph_of().rows, is_edge=False))

    def test_the_data_is_asked_for_a_path_only_where_it_may_be_taken_from_a_folder(self, graph):
        asked = list[str]()

        def rows(sql, params):
            asked.append(sql)
            return graph.rows(sql, params)

        known = query.DataNames(rows, is_edge=False)
        for value, start, meant, count in (
            ("docs/a.md", "", "docs/a.md", 0),
            ("./docs/a.md", "", "docs/a.md", 0),
            ("./a.md", "docs", "docs/a.md", 0),
            ("docs/a.md", "docs", "docs/a.md", 1),
        ):
            asked.clear()
            checked = query.check(Query(where=((Condition("source", value),),)), CORE, known, root="/r", start=start)
            assert (checked.where[0][0].value, len(asked)) == (meant, count)

    def test_a_type_of_the_project_can_be_asked_for(self):
        schema = schema_of([*CORE_ENTITIES, EntityType("fact")], CORE_EDGES)
        assert query.check(Query(type="fact"), schema).type == "fact"
        assert refusal(type="fact").details[0].code == "unknown_type"


class TestFilters:
    @pytest.mark.parametrize(
        ("asked", "expected"),
        [
            ({}, ["REQ-1", "REQ-2", "REQ-3", "SYM-1", "TEST-1"]),
            ({"type": "req"}, ["REQ-1", "REQ-2", "REQ-3"]),
            ({"ids": ("REQ-2",)}, ["REQ-2"]),
            ({"ids": ("REQ-2", "NONE", "REQ-1", "REQ-2")}, ["REQ-1", "REQ-2"]),
            ({"ids": ("req-2",)}, []),
            ({"tags": ("auth",)}, ["REQ-1", "REQ-2"]),
            ({"tags": ("auth", "web")}, ["REQ-1"]),
            ({"status": "done"}, ["REQ-2"]),
            ({"where": ((Condition("priority", "must"),),)}, ["REQ-1"]),
            ({"where": ((Condition("tag", "web"),),)}, ["REQ-1"]),
            ({"where": ((Condition("path", "docs/r3.md"),),)}, ["REQ-3"]),
            ({"where": ((Condition("kind", "unit"),),)}, ["TEST-1"]),
            ({"where": ((Condition("attributes.kind", "unit"),),)}, ["TEST-1"]),
            ({"where": ((Condition("metadata.kind", "unit"),),)}, []),
            ({"where": ((Condition("size", "12"),),)}, ["REQ-2"]),
            ({"where": ((Condition("is_slow", "true"),),)}, ["TEST-1"]),
            ({"where": ((Condition("teams", "b"),),)}, ["REQ-2"]),
            ({"where": ((Condition("teams", "c"),),)}, []),
            ({"where": ((Condition("version", "1"),),), "type": "test"}, ["TEST-1"]),
            ({"where": ((Condition("version", "1.0"),),), "type": "test"}, ["TEST-1"]),
            ({"where": ((Condition("version", "2"),),)}, []),
            ({"where": ((Condition("size", "12.0"),),)}, ["REQ-2"]),
            ({"where": ((Condition("size", "1.2e1"),),)}, ["REQ-2"]),
            ({"where": ((Condition("size", "12.5"),),)}, []),
            ({"where": ((Condition("is_slow", "True"),),)}, ["TEST-1"]),
            ({"where": ((Condition("is_slow", "1"),),)}, []),
            ({"where": ((Condition("created_at", "2026-11-20"),),), "type": "test"}, ["TEST-1"]),
            ({"where": ((Condition("updated_at", "2026-11-20T09:30Z"),),), "type": "test"}, ["TEST-1"]),
            ({"where": ((Condition("updated_at", "2026-11-20T10:30:00+01:00"),),), "type": "test"}, ["TEST-1"]),
            ({"where": ((Condition("updated_at", "2026-11-20T09:30:00.000001Z"),),)}, []),
            ({"where": ((Condition("updated_at", "2026-11-21"),),)}, []),
            ({"where": ((Condition("source", "docs/r3.md"),),)}, ["REQ-3"]),
            ({"where": ((Condition("source", "test"),),), "type": "test"}, ["TEST-1"]),
            ({"where": both("owner=ann", "size=3")}, ["REQ-1"]),
            ({"where": both("owner=ann", "size=4")}, []),
            ({"has": (Pattern("verified_by"),)}, ["REQ-1"]),
            ({"has": (Pattern("depends_on", "REQ-3"),)}, ["REQ-2"]),
            ({"has": (Pattern("implements", inverse=True),)}, ["REQ-2"]),
            ({"has": (Pattern("implements", "SYM-1", inverse=True),)}, ["REQ-2"]),
            ({"has": (Pattern("implements", "SYM-2", inverse=True),)}, []),
            ({"type": "req", "lacks": (Pattern("verified_by"),)}, ["REQ-2", "REQ-3"]),
            ({"type": "req", "lacks": (Pattern("depends_on", "REQ-3"),)}, ["REQ-1", "REQ-3"]),
            ({"type": "req", "lacks": (Pattern("implements", inverse=True),)}, ["REQ-1", "REQ-3"]),
            ({"text": "passkey"}, ["REQ-3"]),
            ({"text": "  LOG   passkey "}, ["REQ-3"]),
            ({"text": 'say "hi"'}, ["REQ-3"]),
            ({"text": "needle"}, ["SYM-1"]),
            ({"text": "deep"}, []),
            ({"text": '["needle"]'}, ["SYM-1"]),
            ({"text": "passkey unit"}, ["REQ-3", "TEST-1"]),
        ],
    )
    def test_each_filter_answers_what_it_says(self, graph, asked, expected):
        assert ids(graph, **asked) == expected

    def test_numbers_in_attributes_are_found_by_what_they_are(self):
        values = {"A": 3, "B": 3.0, "C": "3", "D": "3.0", "E": [1, 3.0], "F": 2**62 + 1, "G": 2**62, "H": True}
        graph = graph_of(node(name, attributes__n=value) for name, value in values.items())
        assert ids(graph, where=((Condition("n", "3"),),)) == ["A", "B", "C", "D", "E"]
        assert ids(graph, where=((Condition("n", "3.0"),),)) == ["A", "B", "C", "D", "E"]
        assert ids(graph, where=((Condition("n", str(2**62)),),)) == ["G"]
        assert ids(graph, where=((Condition("n", "1"),),)) == ["E"]
        assert ids(graph, where=((Condition("n", "TRUE"),),)) == ["H"]

    def test_a_better_fit_of_the_text_comes_first(self):
        graph = graph_of(
            [
                node("A-1", title="plain", attributes__note="login"),
                node("B-2", title="plain", tags=["login"]),
                node("C-3", title="The Login page"),
                node("D-login-4", title="plain"),
                node("login", title="plain"),
            ]
        )
        assert ids(graph, text="LOGIN") == ["login", "D-login-4", "C-3", "B-2", "A-1"]
        assert ids(graph, text="LOGIN", sort="id") == ["A-1", "B-2", "C-3", "D-login-4", "login"]

    @pytest.mark.parametrize("text", HOSTILE)
    def test_hostile_text_is_only_ever_data(self, text):
        graph = graph_of(
            [
                node("GOOD", **{f"attributes.{text}": text}, tags=[text], owner=text, title=f"x {text} x"),
                node("OTHER", attributes__other="other", title="plain", tags=[], owner="else"),
                node("id " + text + " id"),
            ],
            [link("GOOD", "depends_on", "id " + text + " id")],
        )
        assert ids(graph, where=((Condition(f"attributes.{text}", text),),)) == ["GOOD"]
        assert ids(graph, tags=(text,)) == ["GOOD"]
        assert ids(graph, where=((Condition("owner", text),),)) == ["GOOD"]
        if any(one.isalnum() for one in text):
            assert ids(graph, text=text, tags=(text,)) == ["GOOD"]
        else:
            with pytest.raises(InvalidQuery, match="no word"):
                ids(graph, text=text)
        assert "OTHER" not in ids(graph, text=text + "zzz")
        assert ids(graph, ids=("id " + text + " id",)) == ["id " + text + " id"]
        assert ids(graph, has=(Pattern("depends_on", "id " + text + " id"),)) == ["GOOD"]
        assert ids(graph, from_id="id " + text + " id", reverse=True) == ["GOOD"]
        assert ids(graph, status=text) == []
        assert ids(graph, sort=f"-attributes.{text}")[0] == "GOOD"
        found = ask(
            graph, type="edge", where=((Condition("to", "id " + text + " id"),), (Condition("source", "test"),))
        )
        assert [edge.from_id for edge in found.edges] == ["GOOD"]
        assert len(graph.rows("select * from node")) == 3

    def test_no_text_of_a_request_is_in_the_statement(self):
        marks = {name: f"MARK{at}" for at, name in enumerate(("type", "status", "text", "from_id", "sort"))}
        asked = Query(
            **marks,
            ids=("MARK-i",),
            tags=("MARK-t",),
            where=both("MARK-k=MARK-v", "owner=MARK-o"),
            has=(Pattern("MARK-e", "MARK-x"),),
            lacks=(Pattern("MARK-f", "MARK-y", inverse=True),),
            follow=("MARK-g",),
            at=77777,
        )
        compiled = query.compile(asked, "MARK-last")
        assert "MARK" not in compiled.sql + compiled.count_sql
        assert "77777" not in compiled.sql + compiled.count_sql


class TestWalks:
    def test_a_walk_leaves_out_where_it_began_even_on_a_cycle(self, graph):
        assert ids(graph, from_id="REQ-1", follow=("depends_on",), depth=50) == ["REQ-2", "REQ-3"]

    def test_a_walk_stops_at_its_depth(self, graph):
        assert ids(graph, from_id="REQ-1", follow=("depends_on",)) == ["REQ-2"]
        assert ids(graph, from_id="REQ-1", follow=("depends_on",), depth=2) == ["REQ-2", "REQ-3"]

    def test_a_walk_can_go_against_the_edges(self, graph):
        assert ids(graph, from_id="REQ-1", follow=("depends_on",), reverse=True) == ["REQ-3"]

    def test_a_walk_goes_along_every_edge_when_none_is_named(self, graph):
        assert ids(graph, from_id="REQ-1") == ["REQ-2", "TEST-1"]

    def test_a_walk_never_goes_along_an_unresolved_link(self):
        unresolved = [
            link("A", "depends_on", "GONE", is_resolved=False),
            link("GONE", "depends_on", "B", is_resolved=False),
        ]
        assert ids(graph_of([node("A"), node("B")], unresolved), from_id="A", depth=2) == []

    def test_other_filters_hold_for_what_a_walk_reaches(self, graph):
        assert ids(graph, from_id="REQ-1", depth=3, type="test") == ["TEST-1"]

    def test_a_shorter_way_that_is_found_later_counts(self):
        edges = [("A", "B"), ("B", "C"), ("C", "D"), ("A", "D"), ("D", "E")]
        graph = graph_of([node(name) for name in "ABCDE"], [link(a, "depends_on", b) for a, b in edges])
        assert ids(graph, from_id="A", follow=("depends_on",), depth=2) == ["B", "C", "D", "E"]

    def test_a_start_that_does_not_exist_is_named(self, graph):
        with pytest.raises(NotFound, match="'REQ-77'"):
            ask(graph, from_id="REQ-77")

    def test_each_entity_says_how_far_it_is_and_one_shortest_path_to_it(self, graph):
        page = ask(graph, from_id="REQ-1", depth=3)
        assert page.walked("REQ-3") == {
            "depth": 2,
            "path": [
                {"from": "REQ-1", "type": "depends_on", "to": "REQ-2"},
                {"from": "REQ-2", "type": "depends_on", "to": "REQ-3"},
            ],
        }
        assert page.walked("REQ-9") == {}
        assert ask(graph, type="req").walked("REQ-1") == {}

    def test_a_mark_goes_the_other_way_along_one_edge_and_reverse_does_so_for_all(self, graph):
        mixed = ask(graph, from_id="REQ-2", follow=("^depends_on", "verified_by"), depth=2)
        assert [entity.id for entity in mixed.entities] == ["REQ-1", "REQ-3", "TEST-1"]
        assert path_text(mixed.paths["TEST-1"]) == "REQ-2 ← depends_on ← REQ-1 → verified_by → TEST-1"
        assert ids(graph, from_id="TEST-1", follow=("^depends_on", "verified_by"), reverse=True, depth=2) == [
            "REQ-1",
            "REQ-2",
        ]
        both = ask(graph, from_id="REQ-1", follow=("depends_on", "^depends_on"))
        assert {id_: len(path) for id_, path in both.paths.items()} == {"REQ-2": 1, "REQ-3": 1}

    def test_a_hub_is_walked_in_a_fixed_number_of_statements(self):
        spokes = [f"R-{number:04}" for number in range(2000)]
        graph = graph_of(
            [node("HUB"), *(node(id_) for id_ in spokes)],
            [link("HUB", "depends_on", id_) for id_ in spokes] + [link(id_, "depends_on", "HUB") for id_ in spokes],
        )
        page = ask(graph, from_id="HUB", depth=50, limit=10)
        assert (page.total, len(page.paths), len(graph.asked)) == (2000, 10, 4)

    def test_a_mistyped_start_gets_the_nearest_id(self, graph):
        with pytest.raises(NotFound) as caught:
            ask(graph, from_id="REQ-11")
        assert caught.value.hint == "Did you mean 'REQ-1'?"

    def test_a_start_without_edges_reaches_nothing(self, graph):
        assert ask(graph, from_id="TEST-1").total == 0

    def test_a_walk_leads_through_edges_that_are_ends_themselves(self):
        about = link("A", "relates_to", "B", kind="said")
        graph = graph_of([node("A"), node("B"), node("C")], [about, link(about.id, "relates_to", "C", kind="x")])
        assert ids(graph, from_id=about.id) == ["C"]


def test_a_checked_query_is_plain_data():
    checked = query.check(Query(type="req", has=(Pattern("verified_by"),), where=((Condition("a", "b"),),)), CORE)
    assert msgspec.json.decode(msgspec.json.encode(checked), type=Query) == checked


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("2026-02-28", "2026-02-28T00:00:00.000000Z", "2026-03-01T00:00:00.000000Z"),
        ("2026-02-28T23:59Z", "2026-02-28T23:59:00.000000Z", "2026-03-01T00:00:00.000000Z"),
        ("2026-02-28T12:00:01+02:00", "2026-02-28T10:00:01.000000Z", "2026-02-28T10:00:02.000000Z"),
        ("2026-02-28T12:00:01.25Z", "2026-02-28T12:00:01.250000Z", "2026-02-28T12:00:01.260000Z"),
        ("0999-12-30", "0999-12-30T00:00:00.000000Z", "0999-12-31T00:00:00.000000Z"),
        ("9999-12-31", "9999-12-31T00:00:00.000000Z", "99999"),
    ],
)
def test_a_time_is_the_span_that_it_names(text, begin, end):
    assert span_of(text) == (begin, end)


@pytest.mark.parametrize(
    ("text", "whole"),
    [("3", "3"), ("+3", "3"), ("3.0", "3"), ("3e2", "300"), ("-0", "0"), ("0.5", ""), ("1e9999", ""), ("1e-9999", "")],
)
def test_a_number_is_whole_whatever_its_spelling(text, whole):
    assert number_of(text).whole == whole


@pytest.mark.parametrize("text", ["", "x", "1,5", "nan", "inf", "0x1", "1_000", " 1", "1" * 1000])
def test_what_is_no_number_is_none(text):
    assert number_of(text) is None


def test_entities_of_a_file_that_could_not_be_read_whole_are_stale(project):
    good = document("REQ-1", title="One", status="open")
    project.sync(
        {"docs/requirements/1.md": good, "docs/requirements/2.md": document("REQ-2", title="T", status="open")}
    )
    project.apply(entities=[{"id": "MINE", "type": "req", "title": "T", "status": "open"}])
    project.sync({"docs/requirements/1.md": good.replace("One", "[broken")})

    def stale(**asked):
        return query.page_of(project.view(), query.check(Query(**asked), CORE), "main").stale

    assert project.node("REQ-1").fields["title"] == "One"
    assert stale() == stale(ids=("REQ-1", "REQ-2", "MINE")) == stale(ids=("REQ-1",)) == {"REQ-1"}
    assert stale(ids=("MINE",)) == stale(type="edge") == stale(at=2) == frozenset()
    project.apply(entities=[{"id": "MINE", "status": "done"}])
    project.sync({"docs/requirements/1.md": good})
    assert stale() == frozenset()
    assert stale(at=4) == {"REQ-1"}


def test_the_id_of_an_entity_is_no_id_of_an_edge():
    for asked in ({"ids": ("REQ-1",)}, {"where": ((Condition("id", "REQ-1"),),)}):
        found = refusal(type="edge", **asked)
        assert [problem.code for problem in found.details] == ["not_for_edges"]
        assert "`from=REQ-1` or `to=REQ-1`" in found.hint
    edge = link("A", "depends_on", "B")
    assert [one.id for one in ask(graph_of(links=[edge]), type="edge", ids=(edge.id,)).edges] == [edge.id]
    assert " id," not in refusal(type="edge", where=((Condition("zz", "1"),),)).hint


def test_a_key_that_is_also_an_attribute_is_listed_once():
    graph = graph_of([node("A", attributes={"version": "1"})])
    with pytest.raises(InvalidQuery) as caught:
        query.check(Query(where=((Condition("zz", "1"),),)), CORE, query.DataNames(graph.rows, is_edge=False))
    assert caught.value.hint.count("version") == 1
