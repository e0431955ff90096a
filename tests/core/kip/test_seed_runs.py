"""Every statement that the seed text prints is carried out, on a memory in which what it names is there."""

from __future__ import annotations

import pytest

from kbcore.kip.parsing import parse
from kbcore.kip.printer import write
from tests.core.kip.test_run import asked
from tests.support.oracles.kip_seed import STATEMENTS
from tests.support.repository.project import Project

MEMORY = """
UPSERT {
  CONCEPT { {type: "$ConceptType", name: "Preference"} SET ATTRIBUTES {description: "What somebody likes."} }
  CONCEPT { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES {description: "Likes it."} }
  CONCEPT { {type: "$PropositionType", name: "old_rel"} SET ATTRIBUTES {description: "No longer used."} }
  CONCEPT ?d { {type: "Domain", name: "UserPreferences"} SET ATTRIBUTES {description: "What users like."} }
  CONCEPT ?p { {type: "Preference", name: "tea"}
    SET PROPOSITIONS { ("belongs_to_domain", ?d) ("belongs_to_domain", {type: "Domain", name: "Unsorted"}) } }
  CONCEPT ?a { {type: "Person", name: "Alice"} SET ATTRIBUTES {person_class: "Human", handle: "@al", temp_id: 3}
    SET PROPOSITIONS { ("prefers", ?p) ("old_rel", ?p) } }
  CONCEPT ?b { {type: "Person", name: "BadData"} }
  CONCEPT ?e { {type: "Event", name: "talk-1"}
    SET ATTRIBUTES {event_class: "Conversation", start_time: "2026-01-01T00:00:00Z", content_summary: "Tea."} }
  CONCEPT ?t { {type: "SleepTask", name: "task-1"} SET ATTRIBUTES {status: "pending", priority: 2}
    SET PROPOSITIONS { ("assigned_to", {type: "Person", name: "$system"}) } }
}
WITH METADATA { source: "talk-1", confidence: 0.9, old_source: "x", created_at: "2026-01-01T00:00:00Z" }
"""
AT = "2026-02-01T00:00:00Z"
PREFERENCE = ("Preference", "tea")
PARAMETERS = {
    **dict.fromkeys(("cutoff_date", "decay_threshold", "timestamp", "current_timestamp", "start_time", "t"), AT),
    **dict.fromkeys(("type", "item_type", "semantic_type", "o_type"), PREFERENCE[0]),
    **dict.fromkeys(("name", "item_name", "semantic_name", "o_name", "preference_name"), PREFERENCE[1]),
    **dict.fromkeys(("domain", "target_domain"), "UserPreferences"),
    **dict.fromkeys(("domain_desc", "desc", "extracted_preference", "content_summary", "s", "outcome"), "some words"),
    "domain_name": "Tea",
    "event_name": "talk-1",
    "task_name": "task-1",
    "predicate": "prefers",
    "s_type": "Person",
    "s_name": "Alice",
    "search_term": "tea",
    "source": "talk-1",
    "new_confidence": 0.5,
    "participants": ["Alice"],
    "ps": ["Alice"],
    "context": {"k": 1},
    "issues_list": ["one"],
    "count": 3,
    "summary_of_actions": "all done",
}
MADE_UP = {'"T"': '"Person"', '"<Type>"': '"Person"', '"<predicate>"': '"prefers"', 'CURSOR "<token>"': ""}
"""Placeholders in the text, and their values."""
REFUSED = {"6, move": "KIP_3001", "KQL structure": "KIP_3001"}
"""Commands that cannot be carried out as they are printed: nothing binds ?canonical, or ?var2."""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("seed") / "repo")
    yield made
    made.close()


@pytest.mark.sliced(15)
@pytest.mark.parametrize(
    ("place", "text"),
    [(one.place, text) for one in STATEMENTS for text in (one.instead if one.refusal else (one.text,))],
)
def test_a_statement_of_the_seed_is_carried_out(project, place, text):
    assert not asked(project, MEMORY).is_error
    for sign, meant in MADE_UP.items():
        text = text.replace(sign, meant)
    answer = asked(project, {"command": text, "parameters": PARAMETERS})
    if place in REFUSED:
        assert answer.response["error"]["code"] == REFUSED[place]
        return
    assert not answer.is_error, answer.response
    again = asked(project, {"command": write(parse(text)), "parameters": PARAMETERS})
    assert not again.is_error or "DELETE CONCEPT" in text, again.response
