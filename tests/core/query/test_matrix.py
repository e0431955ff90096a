"""Traceability matrices: their rows, the numbers of their states, and the same figures as coverage and the rule."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.model.schema import ASPECTS, CORE
from kbcore.query import Query, coverage
from kbcore.query.matrix import ASPECT_STEPS, MatrixRequest, check_matrix, read_matrix
from tests.support.effort.scale import tries
from tests.support.views.graph import graph_of, link, node


def matrix(graph, *steps, to="", rows=None, **asked):
    return read_matrix(graph.rows, None, MatrixRequest(rows or Query(type="req"), steps, to, **asked))


def states(found):
    return {row.subject.id: (row.state, [end.id for end in row.ends]) for row in found.rows}


def covering(id_, aspect):
    edge, other = coverage.ENDS[aspect][0], {"specified": "S", "verified": "T", "implemented": "F"}[aspect]
    return link(other, edge, id_) if aspect == "implemented" else link(id_, edge, other)


BESIDE = [node("S", "scenario"), node("T", "test"), node("F", "symbol")]


def test_a_row_names_the_ends_of_its_path_each_once_in_order():
    graph = graph_of(
        [node("R"), node("Q"), node("S1", "scenario"), node("S2", "scenario"), node("T1", "test"), node("T2", "test")],
        [
            link("R", "specified_by", "S1"),
            link("R", "specified_by", "S2"),
            link("S1", "covered_by", "T2"),
            link("S1", "covered_by", "T1"),
            link("S2", "covered_by", "T1"),
        ],
    )
    found = matrix(graph, "specified_by", "covered_by")
    assert states(found) == {"Q": ("no", []), "R": ("yes", ["T1", "T2"])}
    assert (found.yes, found.no, found.not_applicable, found.shown) == (1, 1, 0, 2)


def test_a_step_goes_against_its_edge_and_the_type_of_the_end_counts():
    graph = graph_of(
        [node("R"), node("F", "symbol"), node("D", "doc")], [link("F", "implements", "R"), link("D", "mentions", "R")]
    )
    assert states(matrix(graph, "^implements")) == {"R": ("yes", ["F"])}
    assert states(matrix(graph, "^mentions", to="symbol")) == {"R": ("no", [])}


def test_an_unresolved_link_leads_nowhere():
    graph = graph_of([node("R")], [link("R", "verified_by", "T-9", is_resolved=False)])
    assert states(matrix(graph, "verified_by")) == {"R": ("no", [])}


def test_only_an_aspect_of_a_requirement_may_be_not_applicable():
    said = {"verified": "checked by the vendor"}
    graph = graph_of([node("R", attributes__not_applicable=said), *BESIDE])
    [row] = matrix(graph, "verified_by").rows
    assert (row.state, row.reason) == ("not_applicable", "checked by the vendor")
    assert states(matrix(graph, "specified_by")) == {"R": ("no", [])}
    assert states(matrix(graph, "specified_by", "verified_by")) == {"R": ("no", [])}


def test_retired_rows_are_left_out_and_counted():
    graph = graph_of([node("A"), node("B", status="Superseded by A")])
    found = matrix(graph, "verified_by")
    assert (states(found), found.retired, found.no) == ({"A": ("no", [])}, 1, 1)


def test_what_is_only_proposed_links_nothing_and_has_no_row():
    proposed = {"metadata__proposed": True}
    graph = graph_of(
        [node("A"), node("B"), node("C", **proposed), node("T", "test"), node("U", "test", **proposed)],
        [link("A", "verified_by", "T", fields={"metadata.proposed": True}), link("B", "verified_by", "U")],
    )
    found = matrix(graph, "verified_by")
    assert (states(found), found.proposed) == ({"A": ("no", []), "B": ("no", [])}, 1)


def test_holes_are_shown_alone_and_the_numbers_stay_those_of_all():
    graph = graph_of([node("A"), node("B"), *BESIDE], [covering("A", "verified")])
    found = matrix(graph, "verified_by", only=("no",))
    assert (states(found), found.yes, found.no, found.shown) == ({"B": ("no", [])}, 1, 1, 1)


def test_pages_join_to_the_whole():
    graph = graph_of([node(f"R{number}") for number in range(7)])
    pages = [matrix(graph, "verified_by", limit=3, offset=offset) for offset in (0, 3, 6, 9)]
    assert [len(page.rows) for page in pages] == [3, 3, 1, 0]
    assert [row.subject.id for page in pages for row in page.rows] == [f"R{number}" for number in range(7)]
    assert {page.shown for page in pages} == {7}


def test_of_many_ends_some_are_named_and_all_counted():
    many = limits.MAX_MATRIX_CELLS + 5
    tests = [node(f"T{number:03}", "test") for number in range(many)]
    graph = graph_of([node("R"), *tests], [link("R", "verified_by", one.id) for one in tests])
    [row] = matrix(graph, "verified_by").rows
    assert (row.count, len(row.ends), row.as_json()["linked_total"]) == (many, limits.MAX_MATRIX_CELLS, many)


def test_it_answers_as_of_an_earlier_seq():
    graph = graph_of([node("R"), *BESIDE], old_links=[(covering("R", "specified"), 2)])
    request = MatrixRequest(Query(type="req"), ("specified_by",))
    assert [read_matrix(graph.rows, at, request).yes for at in (1, 2, None)] == [1, 0, 0]


@pytest.mark.parametrize(
    ("steps", "to", "place"),
    [
        ((), "", "$.steps"),
        (("verified_by",) * (limits.MAX_MATRIX_STEPS + 1), "", "$.steps"),
        (("^verifed_by",), "", "$.steps[0]"),
        (("verified_by",), "tets", "$.to"),
    ],
)
def test_an_unknown_name_is_refused_with_its_place(steps, to, place):
    with pytest.raises(InvalidQuery) as caught:
        check_matrix(MatrixRequest(Query(type="req"), steps, to), CORE)
    assert [problem.path for problem in caught.value.details] == [place]


STATES = st.sampled_from(["yes", "no", "not_applicable"])
DRAWN = st.lists(st.tuples(STATES, STATES, STATES, st.sets(st.sampled_from("abc")), st.booleans()), max_size=8)


@settings(max_examples=tries(15, 1000), deadline=None)
@given(DRAWN, st.sets(st.sampled_from("abc"), max_size=1), st.sampled_from(ASPECTS))
def test_a_matrix_of_an_aspect_has_the_figures_of_coverage(drawn, tags, aspect):
    nodes, links = [*BESIDE], []
    for at, (*wanted, own, is_retired) in enumerate(drawn):
        waived = {name: "why" for name, state in zip(ASPECTS, wanted, strict=True) if state == "not_applicable"}
        status = "withdrawn" if is_retired else "draft"
        nodes.append(node(f"R{at}", tags=sorted(own), status=status, attributes__not_applicable=waived))
        links += [covering(f"R{at}", name) for name, state in zip(ASPECTS, wanted, strict=True) if state == "yes"]
    graph, asked = graph_of(nodes, links), Query(type="req", tags=tuple(tags))
    covered = coverage.read(graph.rows, None, asked)
    found = matrix(graph, ASPECT_STEPS[aspect], rows=asked)
    tally = coverage.count(graph.rows, None, asked).total.tallies[aspect]
    assert (found.yes, found.no, found.not_applicable) == (tally.yes, tally.no, tally.not_applicable)
    assert found.retired == covered.retired
    assert {id_: one[0] for id_, one in states(found).items()} == {
        one.id: one.state(aspect) for one in covered.requirements
    }
