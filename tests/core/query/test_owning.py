"""The owners of an entity are those that it states, else those of its file."""

from __future__ import annotations

import pytest

from kbcore.query.owning import EntityOwners, owners_of_file, read_owners
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
