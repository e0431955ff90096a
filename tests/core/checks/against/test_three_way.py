"""The comparison of three states: the laws that it keeps, over generated states, and each kind of conflict once."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks.against.three_way import (
    ABSENT,
    EdgeOfState,
    EntityOfState,
    MergeConflict,
    StatedLine,
    StateFacts,
    conflicts,
)
from kbcore.extract.facts import StatedEntity

IDS = ["R-1", "R-2", "R-3", "R-4"]


def entity(key: str, path: str = "", **fields) -> tuple[str, EntityOfState]:
    named = {name.replace("__", "."): value for name, value in fields.items()}
    return key, EntityOfState(StatedEntity(key, "req", named, 2), path or f"{key}.md")


def facts(
    *entities: tuple[str, EntityOfState], edges: Sequence[EdgeOfState] = (), unread: Sequence[str] = ()
) -> StateFacts:
    return StateFacts(dict(entities), {edge: StatedLine(f"{edge.from_id}.md", 9) for edge in edges}, frozenset(unread))


def said(found: Sequence[MergeConflict]) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.code, one.id, one.field) for one in found]


FIELDS = st.fixed_dictionaries(
    {"title": st.sampled_from("abc")},
    optional={
        "status": st.sampled_from("xyz"),
        "tags": st.lists(st.sampled_from("tu"), max_size=2),
        "attributes.former_ids": st.lists(st.sampled_from(IDS), max_size=2),
    },
)
EDGES = st.builds(EdgeOfState, st.just("depends_on"), st.just(""), st.sampled_from(IDS), st.sampled_from(IDS))


@st.composite
def states(draw) -> StateFacts:
    ids = draw(st.lists(st.sampled_from(IDS), unique=True))
    paths = st.sampled_from(["a.md", "b.md"])
    entities = {key: EntityOfState(StatedEntity(key, "req", draw(FIELDS), 2), draw(paths)) for key in ids}
    edges = draw(st.dictionaries(EDGES, st.builds(StatedLine, paths, st.integers(1, 3)), max_size=3))
    return StateFacts(entities, edges, draw(st.frozensets(paths, max_size=1)))


@given(st.lists(states(), min_size=1, max_size=2), states(), states())
def test_either_side_finds_the_same_conflicts(bases, ours, theirs):
    assert [one.mirrored() for one in conflicts(bases, ours, theirs)] == conflicts(bases, theirs, ours)


@given(st.lists(states(), min_size=1, max_size=2), states())
def test_a_side_without_a_change_has_no_conflict_with_any_other(bases, changed):
    if len(bases) == 1:
        assert conflicts(bases, bases[0], changed) == []
    assert conflicts(bases, changed, changed) == []


@given(st.lists(states(), min_size=1, max_size=3), states(), states())
def test_the_order_and_the_repetition_of_common_ancestors_change_only_the_place_of_what_was(bases, ours, theirs):
    found = said(conflicts(bases, ours, theirs))
    assert said(conflicts([*reversed(bases), bases[0]], ours, theirs)) == found


@given(st.lists(states(), min_size=1, max_size=2), states(), states())
def test_each_change_of_both_sides_to_other_values_is_a_conflict(bases, ours, theirs):
    """The definition again, for entities that kept their ids."""
    found = {(one.id, one.field) for one in conflicts(bases, ours, theirs) if one.kind == "field"}
    for key in ours.entities.keys() & theirs.entities.keys():
        was = [one.entities[key].entity.fields for one in bases if key in one.entities]
        here, there = ours.entities[key].entity.fields, theirs.entities[key].entity.fields
        for field in ("title", "status"):
            values = [one.get(field) for one in was]
            one, other = here.get(field), there.get(field)
            if was and one != other and one not in values and other not in values:
                assert (key, field) in found


BASE = facts(entity("R-1", title="a", status="x"), entity("R-2", title="b"))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        pytest.param(
            facts(entity("R-1", title="a", status="y"), entity("R-2", title="b")),
            facts(entity("R-1", title="c", status="x"), entity("R-2", title="b")),
            [],
            id="other fields",
        ),
        pytest.param(
            facts(entity("R-1", title="a", status="y"), entity("R-2", title="b")),
            facts(entity("R-1", title="a"), entity("R-2", title="b")),
            [("field", "changed_twice", "R-1", "status")],
            id="changed and taken out",
        ),
        pytest.param(
            facts(entity("R-1", title="a", status="x", tags=["t"]), entity("R-2", title="b")),
            facts(entity("R-1", title="a", status="x", tags=["u"]), entity("R-2", title="b")),
            [],
            id="members of a set",
        ),
        pytest.param(
            facts(entity("R-1", title="n", status="x")),
            facts(entity("R-2", title="b")),
            [("field", "deleted", "R-1", "title")],
            id="changed and deleted",
        ),
        pytest.param(
            facts(*BASE.entities.items(), entity("R-3", title="one")),
            facts(*BASE.entities.items(), entity("R-3", title="other")),
            [("id", "made_twice", "R-3", "")],
            id="one new id",
        ),
        pytest.param(
            facts(*BASE.entities.items(), entity("R-3", title="one")),
            facts(*BASE.entities.items(), entity("R-3", title="one")),
            [],
            id="a commit that both sides have",
        ),
        pytest.param(
            facts(*BASE.entities.items(), entity("R-3", title="one")),
            facts(*BASE.entities.items(), entity("R-3", "elsewhere.md", title="one")),
            [("id", "made_twice", "R-3", "")],
            id="one entity in two files",
        ),
        pytest.param(
            facts(*BASE.entities.items(), entity("R-4", title="one", attributes__former_ids=["R-3"])),
            facts(*BASE.entities.items(), entity("R-3", title="other")),
            [("id", "former_id", "R-3", "")],
            id="a new id that was given up",
        ),
        pytest.param(
            facts(entity("R-3", title="a", status="y", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            facts(entity("R-1", title="c", status="x"), entity("R-2", title="b")),
            [],
            id="renamed, and another field changed",
        ),
        pytest.param(
            facts(entity("R-3", title="a", status="x", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            facts(entity("R-4", title="a", status="x", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            [("id", "renamed_twice", "R-1", "")],
            id="renamed to two ids",
        ),
        pytest.param(
            facts(entity("R-3", title="a", status="x", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            facts(entity("R-3", title="a", status="x", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            [],
            id="renamed to one id",
        ),
        pytest.param(
            facts(entity("R-3", title="a", status="x", attributes__former_ids=["R-1"]), entity("R-2", title="b")),
            facts(*BASE.entities.items(), entity("R-3", title="n")),
            [("id", "made_twice", "R-3", "")],
            id="renamed to an id that the other side made",
        ),
        pytest.param(
            facts(*BASE.entities.items(), entity("R-3", title="one", attributes__former_ids=["R-9"])),
            facts(*BASE.entities.items(), entity("R-4", title="two", attributes__former_ids=["R-9"])),
            [("id", "former_twice", "R-9", "")],
            id="one former id of two new entities",
        ),
        pytest.param(
            facts(entity("R-1", title="a", status="x", attributes__former_ids=["R-9"]), entity("R-2", title="b")),
            facts(entity("R-1", title="a", status="x"), entity("R-2", title="b", attributes__former_ids=["R-9"])),
            [("id", "former_twice", "R-9", "")],
            id="one former id of two entities that were there",
        ),
        pytest.param(
            facts(entity("R-1", title="a", status="x", attributes__former_ids=["R-9"]), entity("R-2", title="b")),
            facts(
                entity("R-3", title="a", status="x", attributes__former_ids=["R-1", "R-9"]), entity("R-2", title="b")
            ),
            [],
            id="one former id of one entity that one side renamed",
        ),
        pytest.param(
            facts(*BASE.entities.items(), edges=[EdgeOfState("depends_on", "", "R-2", "R-1")]),
            facts(entity("R-2", title="b")),
            [("edge", "deleted", "R-1", "")],
            id="an edge to what is deleted",
        ),
        pytest.param(
            facts(*BASE.entities.items(), edges=[EdgeOfState("depends_on", "", "R-2", "R-1")]),
            facts(entity("R-2", title="b"), entity("R-3", title="a", status="x", attributes__former_ids=["R-1"])),
            [],
            id="an edge to what is renamed",
        ),
        pytest.param(
            facts(*BASE.entities.items(), edges=[EdgeOfState("depends_on", "", "R-2", "R-1")]),
            facts(entity("R-2", title="b"), unread=["R-1.md"]),
            [],
            id="a file that could not be read deletes nothing",
        ),
    ],
)
def test_what_both_sides_decide_is_a_conflict_seen_from_either(ours, theirs, expected):
    found = conflicts([BASE], ours, theirs)
    assert said(found) == expected
    assert [one.mirrored() for one in conflicts([BASE], theirs, ours)] == found


def test_a_former_id_that_one_side_gives_to_another_entity_is_no_conflict():
    base = facts(entity("R-1", title="a", attributes__former_ids=["R-9"]), entity("R-2", title="b"))
    ours = facts(entity("R-1", title="a"), entity("R-2", title="b", attributes__former_ids=["R-9"]))
    theirs = facts(entity("R-1", title="c", attributes__former_ids=["R-9"]), entity("R-2", title="b"))
    assert conflicts([base], ours, theirs) == conflicts([base], theirs, ours) == []


def test_an_edge_that_was_there_before_is_no_conflict():
    edge = EdgeOfState("depends_on", "", "R-2", "R-1")
    base = facts(*BASE.entities.items(), edges=[edge])
    assert conflicts([base], base, facts(entity("R-2", title="b"))) == []


def test_with_several_common_ancestors_a_value_of_one_of_them_is_no_change():
    one, other = facts(entity("R-1", title="a")), facts(entity("R-1", title="b"))
    assert conflicts([one, other], facts(entity("R-1", title="a")), facts(entity("R-1", title="c"))) == []
    assert said(conflicts([one, other], facts(entity("R-1", title="c")), facts(entity("R-1", title="d")))) == [
        ("field", "changed_twice", "R-1", "title")
    ]


def test_sides_that_took_another_value_of_several_common_ancestors_are_in_conflict():
    one, other = facts(entity("R-1", title="a")), facts(entity("R-1", title="b"))
    [found] = conflicts([one, other], one, other)
    assert (found.code, found.ours.value, found.theirs.value) == ("changed_twice", "a", "b")


def test_a_deletion_has_no_value_and_the_place_where_the_entity_was():
    [found] = conflicts([BASE], facts(entity("R-1", title="n", status="x"), entity("R-2", title="b")), facts())
    assert (found.ours.value, found.ours.place) == ("n", StatedLine("R-1.md", 2))
    assert (found.theirs.id, found.theirs.value, found.theirs.place) == ("", ABSENT, StatedLine("R-1.md", 2))
