"""DESCRIBE NEIGHBOURHOOD: everything about a concept in both directions, ranked, within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.errors import KipRefused
from kbcore.kip.binding import read
from kbcore.kip.meta.describe import describe
from tests.support.repository.kip_writing import Kip

SETUP = """
UPSERT {
  CONCEPT ?field { {type: "Domain", name: "Food"} }
  CONCEPT ?soup { {type: "Preference", name: "soup"} SET ATTRIBUTES { description: "Hot soup." } }
  CONCEPT ?old { {type: "Preference", name: "cake"} SET ATTRIBUTES { status: "archived" } }
  CONCEPT ?ines { {type: "Person", name: "Ines"}
    SET PROPOSITIONS {
      ("belongs_to_domain", ?field) WITH METADATA { confidence: 1.0 }
      ("prefers", ?old) WITH METADATA { confidence: 0.9 }
      ("prefers", ?soup) WITH METADATA { confidence: 0.8 }
    } }
  CONCEPT { {type: "Event", name: "talk"} SET PROPOSITIONS { ("mentions", ?ines) } }
}
"""
INES = '{type: "Person", name: "Ines"}'


@pytest.fixture
def kip(tmp_path: Path) -> Any:
    made = Kip(tmp_path / "repo")
    made(SETUP)
    yield made
    made.project.close()


def around(kip: Kip, rest: str = "", of: str = INES) -> dict[str, Any]:
    tree: Any = read(f"DESCRIBE NEIGHBOURHOOD {of} {rest}")
    found: dict[str, Any] = describe(kip.project.view(), kip.schema(), tree)[0]
    return found


def names(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["direction"], one["predicate"], one["neighbour"]["name"]) for one in found["neighbours"]]


def test_links_of_both_directions_are_shown_those_that_matter_most_first(kip: Kip) -> None:
    found = around(kip)
    assert found["concept"]["name"] == "Ines"
    assert (found["links"], found["left_out"]) == (4, 0)
    assert names(found) == [
        ("out", "prefers", "soup"),
        ("in", "mentions", "talk"),
        ("out", "belongs_to_domain", "Food"),
        ("out", "prefers", "cake"),
    ]
    assert found["neighbours"][0]["neighbour"]["summary"] == "Hot soup."
    assert found["neighbours"][0]["confidence"] == 0.8


def test_limit_and_budget_bound_the_answer_and_what_is_left_out_is_counted(kip: Kip) -> None:
    few = around(kip, "LIMIT 1")
    assert (names(few), few["left_out"]) == ([("out", "prefers", "soup")], 3)
    whole = len(msgspec.json.encode(around(kip)))
    for budget in range(100, whole, 100):
        found = around(kip, f"BUDGET {budget}")
        assert found["left_out"] == 4 - len(found["neighbours"])
        assert not found["neighbours"] or len(msgspec.json.encode(found)) <= budget
    with pytest.raises(KipRefused, match="the limit is 16000"):
        around(kip, "BUDGET 16001")


def test_a_long_concept_is_cut_to_the_budget_and_leaves_room_for_links(kip: Kip) -> None:
    attributes = f'persona: "{"x" * 9000}", short: "kept", list: [{", ".join(["1234567"] * 900)}]'
    kip(f"UPSERT {{ CONCEPT {{ {INES} SET ATTRIBUTES {{ {attributes} }} }} }}")
    found = around(kip, "BUDGET 1500")
    assert len(msgspec.json.encode(found).decode()) <= 1500
    assert found["concept"]["attributes"] == {"persona": f"{'x' * 160}…", "short": "kept"}
    assert found["cut_values"] == 2
    assert found["neighbours"]
    for budget in range(700, 16000, 1700):
        assert len(msgspec.json.encode(around(kip, f"BUDGET {budget}")).decode()) <= budget
    kip(f"UPDATE ?p SET ATTRIBUTES {{ list: [1] }} WHERE {{ ?p {INES} }}")
    whole = around(kip, "BUDGET 16000")
    assert (len(whole["concept"]["attributes"]["persona"]), "cut_values" in whole) == (9000, False)
    assert whole["left_out"] == 0


def test_links_as_neighbours_and_concepts_that_no_record_holds(kip: Kip) -> None:
    kip(
        f'UPSERT {{ PROPOSITION {{ ({{type: "Event", name: "talk"}}, "mentions", ({INES}, "prefers", '
        '{type: "Preference", name: "soup"})) } }'
    )
    [link, _] = around(kip, of='{type: "Event", name: "talk"}')["neighbours"]
    assert link["neighbour"]["predicate"] == "prefers"
    found = around(kip, of='{type: "$ConceptType", name: "Person"}')
    assert names(found) == [("out", "belongs_to_domain", "CoreSchema")]


def test_a_concept_that_there_is_not_is_not_found(kip: Kip) -> None:
    with pytest.raises(KipRefused, match="There is no concept Person Nobody"):
        around(kip, of='{type: "Person", name: "Nobody"}')
