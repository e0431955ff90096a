"""The counts of specified, verified and implemented requirements, without those to which that does not apply."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.model.schema import ASPECTS
from kbcore.query import Query, coverage
from kbcore.text import code_owners
from kbcore.text.code_owners import NONE
from tests.support.effort.scale import tries
from tests.support.views.graph import graph_of, link, node

BYS = ("requirement", "component", "tag", "priority", "owner", "folder")
BESIDE = [node("S", "scenario"), node("T", "test"), node("F", "symbol")]
EDGES = {"specified": ("specified_by", "S"), "verified": ("verified_by", "T"), "implemented": ("implements", "F")}


def covering(id_, aspect):
    edge, other = EDGES[aspect]
    return link(other, edge, id_) if edge == "implements" else link(id_, edge, other)


def states(graph, **asked):
    covered = coverage.read(graph.rows, None, Query(**asked))
    return {one.id: [one.state(aspect) for aspect in ASPECTS] for one in covered.requirements}


def groups(graph, by, of_files=NONE, **asked):
    return coverage.count_groups(graph.rows, None, [by], Query(**asked), of_files)[by]


def test_each_aspect_is_shown_by_its_edge_and_names_what_shows_it():
    graph = graph_of([node("R"), *BESIDE], [covering("R", "specified"), covering("R", "implemented")])
    [found] = coverage.read(graph.rows, None).requirements
    assert (found.specified, found.verified, found.implemented) == (("S",), (), ("F",))
    assert states(graph) == {"R": ["yes", "no", "yes"]}


def test_an_unresolved_link_shows_nothing():
    graph = graph_of([node("R")], [link("R", "verified_by", "T-9", is_resolved=False)])
    assert states(graph) == {"R": ["no", "no", "no"]}


@pytest.mark.parametrize("said", [None, "all", [], {"verified": ""}, {"verified": "  \n"}, {"verified": 3}])
def test_only_a_reason_makes_an_aspect_not_applicable(said):
    assert states(graph_of([node("R", attributes__not_applicable=said)])) == {"R": ["no", "no", "no"]}


def test_what_is_there_counts_although_it_was_said_not_to_apply():
    said = {"verified": "checked by the vendor", "specified": "plain"}
    graph = graph_of([node("R", attributes__not_applicable=said), *BESIDE], [covering("R", "verified")])
    assert states(graph) == {"R": ["not_applicable", "yes", "no"]}
    [found] = coverage.read(graph.rows, None).requirements
    assert found.not_applicable == said


def test_retired_requirements_are_left_out_and_counted():
    graph = graph_of([node("A"), node("B", status="Superseded by A"), node("C", status="withdrawn"), node("T", "test")])
    covered = coverage.read(graph.rows, None)
    assert ([one.id for one in covered.requirements], covered.retired) == (["A"], 2)


def test_filters_choose_the_requirements():
    graph = graph_of([node("A", tags=["x", "y"]), node("B", tags=["x"], status="done"), node("C")])
    assert [*states(graph, tags=["x"])] == ["A", "B"]
    assert [*states(graph, tags=["x", "y"])] == ["A"]
    assert [*states(graph, status="done")] == ["B"]


def test_it_answers_as_of_an_earlier_seq():
    graph = graph_of(
        [node("R", version=3, attributes__not_applicable={"verified": "x"}), *BESIDE],
        old_nodes=[(node("R"), 3)],
        old_links=[(covering("R", "specified"), 2)],
    )
    assert coverage.read(graph.rows, 1).requirements[0].specified == ("S",)
    assert coverage.read(graph.rows, 2).requirements[0].specified == ()
    assert coverage.read(graph.rows, 2).requirements[0].not_applicable == {}
    assert coverage.read(graph.rows, None).requirements[0].not_applicable == {"verified": "x"}


def test_a_requirement_belongs_to_the_components_that_it_or_its_symbols_name():
    graph = graph_of(
        [
            *(node(f"R{number}") for number in range(1, 5)),
            node("R5", attributes__component="api"),
            node("F1", "symbol", attributes__component=["web", "api"]),
            node("F2", "symbol"),
            node("F3", "symbol", attributes__component=" "),
            node("web", "component"),
            node("db", "component"),
        ],
        [
            link("F1", "implements", "R1"),
            link("F2", "implements", "R2"),
            link("F3", "implements", "R4"),
            link("F2", "relates_to", "db", kind="part of"),
            link("db", "relates_to", "R3", kind="holds"),
            link("R4", "relates_to", "R1", kind="like"),
        ],
    )
    found = {"R1": ("api", "web"), "R2": ("db",), "R3": ("db",), "R5": ("api",)}
    for id_ in ("R1", "R2", "R3", "R4", "R5"):
        assert [one.name for one in groups(graph, "component", ids=(id_,))] == [*found.get(id_, (None,))]
    counted = [(one.name, one.requirements) for one in groups(graph, "component")]
    assert counted == [("api", 2), ("db", 2), ("web", 1), (None, 1)]


def test_priorities_come_in_the_order_of_their_weight():
    graph = graph_of([node(name, priority=name) for name in ("could", "Must", "later", "should")] + [node("x")])
    assert [one.name for one in groups(graph, "priority")] == ["must", "should", "could", "later", None]


def test_however_many_requirements_there_are_they_take_two_statements():
    graph = graph_of([node(f"R{number:04}") for number in range(2000)])
    assert len(coverage.read(graph.rows, None).requirements) == 2000
    assert len(graph.asked) == 2
    graph.asked.clear()
    assert coverage.count(graph.rows, None).total.requirements == 2000
    assert len(coverage.count_groups(graph.rows, None, BYS)) == len(BYS)
    assert len(graph.asked) == 4


PROPOSED = {"metadata__proposed": True}
PATHS = st.sampled_from(["", "a.md", "/a.md", "docs/a.md", "docs/deep/new\nline.md", "x/y.md"])
FIELDS = st.fixed_dictionaries(
    {"path": PATHS},
    optional={
        "tags": st.lists(st.sampled_from("abc"), unique=True),
        "priority": st.sampled_from(["must", "MUST", "Should", "İ", ""]),
        "owner": st.sampled_from(["ann", "bo", ""]),
        "status": st.sampled_from(["open", "Withdrawn by R0", "retired"]),
        "attributes__not_applicable": st.sampled_from([{"verified": "x"}, {"specified": "x", "implemented": "y"}, 3]),
        "attributes__component": st.sampled_from(["web", ["web", "db"], " "]),
        "metadata__proposed": st.just(True),
    },
)
LINKS = st.sets(
    st.tuples(
        st.sampled_from(["R0", "R1", "R2", "R3"]),
        st.sampled_from(
            [
                ("specified_by", "S"),
                ("verified_by", "T"),
                ("verified_by", "U"),
                ("verified_by", "V"),
                ("^implements", "F"),
            ]
        ),
        st.sampled_from(["", "unresolved", "proposed"]),
    ),
    max_size=10,
)
FAILED = {"attributes__test_verdict": "failed", "attributes__test_run": {"at": "2026-01-01T00:00:00Z"}}
OWNERS = code_owners.read("docs/ @docs @web\n*.md @all\n/x/\n", "CODEOWNERS")


def drawn_graph(fields, links):
    nodes = [node(f"R{at}", **one) for at, one in enumerate(fields)]
    beside = [*BESIDE, node("U", "test", **FAILED), node("V", "test", **FAILED, **PROPOSED)]
    edges = []
    for near, (name, far), kind in sorted(links):
        ends = (far, name[1:], near) if name.startswith("^") else (near, name, far)
        marks = {"fields": {"metadata.proposed": True}} if kind == "proposed" else {}
        edges.append(link(*ends, is_resolved=kind != "unresolved", **marks))
    return graph_of([*nodes, *beside], edges)


def names_of(one, by, graph):
    [(path, owner)] = graph.rows("select path, coalesce(owner, '') from node where id = ?", [one.id])
    if by == "folder":
        return [path.rpartition("/")[0] or "."] if path else []
    if by == "owner":
        given = OWNERS.of(path) if path and not owner else None
        return [owner] if owner else [*given.owners] if given else []
    return {"requirement": [one.id], "tag": one.tags, "priority": [one.priority.lower()] if one.priority else []}[by]


@settings(max_examples=tries(15, 300), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(FIELDS, max_size=4), LINKS, st.data())
def test_numbers_groups_and_pages_are_those_of_the_requirements_themselves(fields, links, data):
    graph = drawn_graph(fields, links)
    covered = coverage.read(graph.rows, None)

    def numbers(found):
        states = [[one.state(aspect) for one in found] for aspect in ASPECTS]
        tallies = [(each.count("yes"), each.count("no"), each.count("not_applicable")) for each in states]
        return len(found), tallies, sum(bool(one.failing) for one in found)

    def counted(group):
        tallies = [(one.yes, one.no, one.not_applicable) for one in group.tallies.values()]
        return group.requirements, tallies, group.failing

    counts = coverage.count(graph.rows, None)
    assert counted(counts.total) == numbers(covered.requirements)
    assert (counts.retired, counts.proposed) == (covered.retired, covered.proposed)
    bys = [by for by in BYS if by != "component"]
    for by, found in coverage.count_groups(graph.rows, None, bys, of_files=OWNERS).items():
        members = {}
        for one in covered.requirements:
            for name in names_of(one, by, graph) or [None]:
                members.setdefault(name, []).append(one)
        assert {one.name: counted(one) for one in found} == {name: numbers(ones) for name, ones in members.items()}
    part = coverage.RequirementPart(
        tuple(data.draw(st.sets(st.sampled_from(ASPECTS), max_size=2))),
        data.draw(st.booleans()),
        data.draw(st.sampled_from(["", "", "must"])),
    )
    wanted = [
        one
        for one in covered.requirements
        if all(one.state(aspect) == "no" for aspect in part.lacks)
        and (not part.has_hole or any(one.state(aspect) == "no" for aspect in ASPECTS))
        and part.priority in {"", one.priority}
    ]
    limit, offset = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 3))
    page = coverage.read_part(graph.rows, None, Query(), part, limit=limit, offset=offset)
    assert page == (wanted[offset : offset + limit], len(wanted))
    assert counted(coverage.count(graph.rows, None, Query(), part).total) == numbers(wanted)
    tags = sorted({tag for one in covered.requirements for tag in one.tags})
    priorities = sorted({one.priority for one in covered.requirements if one.priority})
    assert coverage.read_choices(graph.rows, None) == (tags, priorities)


STATES = st.sampled_from(["yes", "no", "not_applicable"])
REQUIREMENTS = st.lists(st.tuples(STATES, STATES, STATES, st.sets(st.sampled_from("abc"))), max_size=8)


@settings(max_examples=tries(10, 30), deadline=None)
@given(REQUIREMENTS)
def test_the_three_numbers_of_a_tally_add_up_and_percentages_are_of_what_is_needed(drawn):
    nodes, links = [*BESIDE], []
    for at, (*wanted, tags) in enumerate(drawn):
        waived = {aspect: "why" for aspect, state in zip(ASPECTS, wanted, strict=True) if state == "not_applicable"}
        nodes.append(node(f"R{at}", tags=sorted(tags), attributes__not_applicable=waived))
        links += [covering(f"R{at}", aspect) for aspect, state in zip(ASPECTS, wanted, strict=True) if state == "yes"]
    graph = graph_of(nodes, links)
    covered = coverage.read(graph.rows, None)
    assert [[one.state(aspect) for aspect in ASPECTS] for one in covered.requirements] == [[*one[:3]] for one in drawn]
    for group in [coverage.count(graph.rows, None).total, *groups(graph, "tag")]:
        for at, aspect in enumerate(ASPECTS):
            tally = group.tallies[aspect]
            members = [one for one in drawn if group.name is None or group.name in one[3]]
            if group.name is not None:
                assert tally.yes == sum(one[at] == "yes" for one in members)
            assert tally.yes + tally.no + tally.not_applicable == group.requirements
            assert (tally.percent is None) == (tally.yes + tally.no == 0)
            assert tally.percent is None or (tally.percent == 100) == (tally.no == 0)
    kept, total = coverage.read_part(graph.rows, None, Query(), coverage.RequirementPart(("verified",)))
    assert [one.id for one in kept] == [f"R{at}" for at, one in enumerate(drawn) if one[1] == "no"]
    assert total == len(kept)


def test_a_percentage_is_rounded_down_so_that_what_is_not_whole_never_looks_so():
    assert coverage.Tally(2, 1, 5).percent == 66.6
    assert coverage.Tally(1999, 1, 0).percent == 99.9
