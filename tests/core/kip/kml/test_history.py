"""Writes of KIP are history like all others: they are compared, asked for as they were, reverted, and copied."""

from __future__ import annotations

import msgspec
import pytest

from kbcore.errors import BranchMoved
from kbcore.kip import kml, syntax
from kbcore.kip.binding import read
from kbcore.query import Query, page_of
from kbcore.store.history.compare import diff
from kbcore.store.history.undo import revert, rollback
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import AUTHOR

ALICE = '{type: "Person", name: "Alice"}'
TAGS = """
    Aggregate AllOf AnyOf Assignments AttributeChange Calculation ClauseGroup Comparison ConceptBlock ConceptPattern
    Count DeleteConcepts DeleteKeys DeletePropositions DescribeDomains DescribeNeighbourhood DescribePrimer
    DescribeSyntax DescribeType DescribeTypes ExportCommand Fact FilterClause FindCommand Hops IsIn IsNull JsonValue
    LinkId LinkPattern MapMember Matcher Merge Negation Not Now Object Optional Path PredicateNames Proposition
    SearchCommand SetProposition Sort Text TextTest Triple Union Update Upsert Upserts ValuePlaceholder Variable
"""
TASTE = 'CONCEPT { {type: "$ConceptType", name: "Taste"} }'


def test_a_record_has_the_digest_that_every_version_takes_of_its_command(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} }} }}")
    kip(f'UPSERT {{ PROPOSITION {{ ({ALICE}, "mentions", {{type: "Person", name: "$self"}}) }} }}')
    assert kip.project.view().past.records([2], ["digest"]) == [
        ("c2543c26265aa4a92baf8dc64f09d871d0bbabc7cfd275aa2f57b29110967a69",)
    ]


def test_the_tags_of_the_nodes_of_a_command_are_those_of_every_version():
    """A tag is the name of the class unless it is fixed: a renamed class would change digests."""
    nodes = [value for value in vars(syntax).values() if isinstance(value, type) and issubclass(value, msgspec.Struct)]
    assert sorted(str(node.__struct_config__.tag) for node in nodes) == TAGS.split()


def test_a_reverted_command_leaves_what_was_and_comes_back_when_that_is_reverted(kip: Kip) -> None:
    kip(
        f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ n: 1 }} "
        'SET PROPOSITIONS { ("mentions", {type: "Person", name: "$self"}) } } }'
    )
    before = kip.elements()
    kip('DELETE CONCEPT ?x DETACH WHERE { ?x {type: "Person", name: "Alice"} }')
    workspace = kip.project.workspace()
    revert(workspace, "main", AUTHOR, [2], follows_head=True)
    assert kip.elements() == before
    kip('UPDATE ?x SET ATTRIBUTES { n: 2 } WHERE { ?x {type: "Person", name: "Alice"} }')
    rollback(workspace, "main", AUTHOR, 3, follows_head=True)
    assert kip.elements() == before


def test_the_ids_are_the_same_on_every_branch(kip: Kip) -> None:
    text = (
        f'UPSERT {{ {TASTE} CONCEPT ?t {{ {{type: "Taste", name: "x"}} }} '
        f'CONCEPT {{ {ALICE} SET PROPOSITIONS {{ ("mentions", ?t) }} }} }}'
    )
    kip('UPSERT { CONCEPT { {type: "Domain", name: "First"} } }')
    kip.project.switch("feature", create=True)
    kip(text)
    there = {one["id"] for one in kip.elements()}
    kip.project.switch("main")
    assert kip.refusal('FIND(?t) WHERE { ?t {type: "Taste"} }')["code"] == "KIP_2001"
    kip(text)
    assert {one["id"] for one in kip.elements()} == there


def test_a_time_before_shows_what_was_so_then(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ n: 1 }} }} }}")
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ n: 2 }} }} }}")
    view = kip.project.view()
    [then] = page_of(view, Query(type="Person", at=1), "main").entities
    assert then.fields["attributes.n"] == 1


def test_a_difference_shows_definitions_like_any_entity(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} }} }}")
    kip(f"UPSERT {{ {TASTE} }}")
    found = diff(kip.project.view(), 1, 2)
    assert [(one["id"], one["change"]) for one in found["entities"]] == [("$ConceptType:Taste", "created")]


def test_a_move_of_head_meanwhile_refuses_the_command(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} }} }}")
    workspace = kip.project.workspace()
    kip.project.switch("other", create=True)
    command = read('UPSERT { CONCEPT { {type: "Domain", name: "D"} } }')
    with pytest.raises(BranchMoved):
        kml.execute(workspace, "main", AUTHOR, command, follows_head=True)
