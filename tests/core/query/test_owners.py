"""The owners of an entity are those that it states, else those of its file."""

from __future__ import annotations

import pytest

from kbcore import query
from kbcore.errors import InvalidQuery
from kbcore.model.schema import CORE
from kbcore.query.conditions import Condition
from kbcore.query.owners import EntityOwners, owners_of_file, read_owners
from kbcore.query.request import Query
from kbcore.text.code_owners import NONE, read
from tests.support.views.graph import graph_of, node

LAST_SEQ = 4
OF_FILES = read("* @all\n/src/ @dev @ops\n/src/x.py\n", "CODEOWNERS")


@pytest.fixture(scope="module")
def graph():
    return graph_of(
        [
            node("OWN", owner="ann", path="docs/own.md"),
            node("DOC", path="docs/doc.md"),
            node("SYM", "symbol", attributes__file="src/a.py", path="docs/symbols.yaml"),
            node("NOBODY", "symbol", attributes__file="src/x.py", path="docs/symbols.yaml"),
            node("CLIENT"),
        ]
    )


def test_an_owner_that_is_stated_counts_before_that_of_the_file(graph):
    found = read_owners(graph.rows, None, ["OWN", "DOC", "CLIENT", "GONE"], OF_FILES)
    assert found == {"OWN": EntityOwners(("ann",)), "DOC": EntityOwners(("@all",), ("CODEOWNERS:1",))}


def test_a_symbol_has_the_owners_of_the_file_that_it_is_in_not_of_the_list_that_names_it(graph):
    found = read_owners(graph.rows, None, ["SYM", "NOBODY"], OF_FILES)
    assert found == {"SYM": EntityOwners(("@dev", "@ops"), ("CODEOWNERS:2",))}


def test_without_owners_of_files_only_stated_ones_count(graph):
    assert read_owners(graph.rows, None, ["OWN", "DOC"], NONE) == {"OWN": EntityOwners(("ann",))}
    assert read_owners(graph.rows, None, [], OF_FILES) == {}
    assert owners_of_file("", OF_FILES) is None


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("owner=ann", ["OWN"]),
        ("owner=@all", ["DOC"]),
        ("owner=@dev", ["SYM"]),
        ("owner=@ops", ["SYM"]),
        ("owner=@nobody", []),
        ("owner!=@all", ["CLIENT", "NOBODY", "OWN", "SYM"]),
        ("owner=", ["CLIENT", "NOBODY"]),
        ("owner!=", ["DOC", "OWN", "SYM"]),
        ("owner~OP", ["SYM"]),
        ("owner^=@", ["DOC", "SYM"]),
        ("owner>@b", ["OWN", "SYM"]),
        ("owner=@all OR owner=ann", ["DOC", "OWN"]),
        ("owner=@dev OR type=req", ["CLIENT", "DOC", "OWN", "SYM"]),
    ],
)
def test_a_condition_on_the_owner_holds_for_the_owners_of_the_file_where_none_is_stated(graph, where, found):
    assert _ids(graph, where) == found
    assert query.page(_checked(graph, where, count=True), graph.rows, LAST_SEQ).total == len(found)


@pytest.mark.parametrize("name", ["@all", "@dev", "@ops", "ann", "", "@x"])
def test_a_condition_on_the_owner_finds_the_entities_that_read_owners_gives_to_it(graph, name):
    ids = [id_ for (id_,) in graph.rows("select id from node order by id")]
    owned = read_owners(graph.rows, None, ids, OF_FILES)
    expected = [id_ for id_ in ids if (name in owned[id_].owners if id_ in owned else name == "")]
    assert _ids(graph, f"owner={name}") == expected
    assert _ids(graph, f"owner!={name}") == [id_ for id_ in ids if id_ not in expected]


def test_without_a_file_of_owners_a_condition_sees_what_is_stated(graph):
    assert _ids(graph, "owner!=", NONE) == ["OWN"]
    assert _ids(graph, "owner=@all", read("* @all\n", "CODEOWNERS")) == ["DOC", "NOBODY", "SYM"]


def test_the_owners_are_read_for_conditions_on_them_alone(graph):
    def refused():
        raise AssertionError("the owners were read")

    known = query.DataNames(graph.rows, is_edge=False, owners=refused)
    assert query.check(Query(where=((Condition("status", "open"),),)), CORE, known)
    with pytest.raises(AssertionError, match="were read"):
        query.check(Query(where=((Condition("owner", "@all"),),)), CORE, known)


def test_an_entity_has_the_owners_of_now_at_an_earlier_point_also_where_its_file_is_gone():
    symbol = node("SYM", "symbol", attributes__file="src/gone.py", path="docs/symbols.yaml")
    then = graph_of([node("DOC", path="docs/a.md")], old_nodes=[(node("GONE", path="src/gone.md"), 3), (symbol, 3)])
    for at, found in ((2, ["GONE", "SYM"]), (None, [])):
        asked = _checked(then, "owner=@dev", at=at)
        assert [one.id for one in query.page(asked, then.rows, LAST_SEQ).entities] == found


def test_the_pages_of_one_answer_are_of_the_same_owners(graph):
    first = query.page(_checked(graph, "owner!=", limit=1), graph.rows, LAST_SEQ)
    assert [one.id for one in first.entities] == ["DOC"]
    second = _checked(graph, "owner!=", limit=1, cursor=first.next_cursor)
    assert [one.id for one in query.page(second, graph.rows, LAST_SEQ).entities] == ["OWN"]
    changed = _checked(graph, "owner!=", read("* @else\n", "CODEOWNERS"), limit=1, cursor=first.next_cursor)
    with pytest.raises(InvalidQuery, match="the owners of files, differ"):
        query.page(changed, graph.rows, LAST_SEQ)


def _ids(graph, where, of_files=OF_FILES):
    return [one.id for one in query.page(_checked(graph, where, of_files), graph.rows, LAST_SEQ).entities]


def _checked(graph, where, of_files=OF_FILES, **asked):
    known = query.DataNames(graph.rows, is_edge=False, owners=lambda: of_files)
    return query.check(Query(where=(query.parse_where(where),), **asked), CORE, known)
