"""The owners of an entity are those that it states, else those of its file."""

from __future__ import annotations

import pytest

from kbcore.query.conditions import Condition
from kbcore.query.owning import EntityOwners, note_on_condition, owners_of_file, read_owners
from kbcore.query.request import Query
from kbcore.text.code_owners import NONE, read
from tests.support.views.graph import graph_of, node

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
    ("where", "said"),
    [
        (Condition("owner", "@dev"), "CODEOWNERS gives the owner '@dev' to 1 entity without `owner`; a condition on "),
        (Condition("owner", "@all"), "CODEOWNERS gives the owner '@all' to 1 entity without `owner`; a condition on "),
        (Condition("owner", "", "!="), "CODEOWNERS gives an owner to 2 entities without `owner`; a condition on "),
        (Condition("owner", "ann"), ""),
        (Condition("status", "@dev"), ""),
    ],
)
def test_a_condition_on_owners_is_noted_with_the_number_of_entities_that_it_does_not_see(graph, where, said):
    note = note_on_condition(graph.rows, Query(where=((where,),)), OF_FILES)
    assert note.startswith(said)
    assert bool(note) == bool(said)
    assert note_on_condition(graph.rows, Query(where=((where,),)), NONE) == ""
