"""SEARCH, by the index that ``kb query --text`` uses."""

from __future__ import annotations

import pytest

from kbcore.kip.meta.search import DEFAULT_LIMIT
from tests.core.kip.test_run import asked, error_of
from tests.support.repository.project import Project

MEMORY = """
UPSERT {
  CONCEPT { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES {description: "Likes it."} }
  CONCEPT { {type: "$PropositionType", name: "prefers_not"} SET ATTRIBUTES {description: "Dislikes it."} }
  CONCEPT ?c { {type: "Event", name: "dark chocolate"}
    SET ATTRIBUTES {aliases: ["cocoa bliss"], content_summary: "Ate it."} }
  CONCEPT ?d { {type: "Event", name: "dark night"} }
  CONCEPT { {type: "Person", name: "Alice"}
    SET PROPOSITIONS { ("prefers", ?c) WITH METADATA {note: "told over lunch"} ("prefers_not", ?d) ("prefers", ?d) } }
}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = Project(tmp_path_factory.mktemp("search") / "repo")
    made.apply(
        entities=[{"id": f"REQ-{n}", "type": "req", "title": f"Sign in {n}", "status": "open"} for n in range(12)]
    )
    assert not asked(made, MEMORY).is_error
    yield made
    made.close()


def found(project, text):
    answer = asked(project, text)
    assert not answer.is_error, answer.response
    return answer.response["result"]


def names(project, text):
    return [one.get("name") or one["predicate"] for one in found(project, text)]


@pytest.mark.parametrize(
    ("term", "name"),
    [
        ("dark chocolate", "dark chocolate"),
        ("choclate", "dark chocolate"),
        ("cocoa", "dark chocolate"),
        ("alic", "Alice"),
    ],
)
def test_names_aliases_beginnings_and_typos_are_found(project, term, name):
    assert names(project, f'SEARCH CONCEPT "{term}"')[0] == name


def test_a_search_says_which_word_it_looked_for_instead_and_that_nothing_holds_one(project):
    assert asked(project, 'SEARCH CONCEPT "choclate"').warnings == (
        "No entity contains 'choclate'; looked for 'chocolate' instead.",
    )
    assert asked(project, 'SEARCH CONCEPT "dark chocolate"').warnings == ()
    assert asked(project, 'SEARCH CONCEPT "sleep task"').warnings == ()
    [nothing] = asked(project, 'SEARCH CONCEPT "zzzqqq"').warnings
    assert "no entity contains 'zzzqqq'" in nothing


def test_a_score_is_from_0_to_1_and_the_name_itself_has_the_best(project):
    scores = [one["score"] for one in found(project, 'SEARCH CONCEPT "dark night"')]
    assert scores[0] == 1.0
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    best = scores[0]
    assert names(project, f'SEARCH CONCEPT "dark night" THRESHOLD {best}') == ["dark night"]


def test_a_type_narrows_the_search(project):
    assert names(project, 'SEARCH CONCEPT "dark" WITH TYPE "Person"') == []
    assert len(names(project, 'SEARCH CONCEPT "dark" WITH TYPE "Event"')) == 2
    assert set(names(project, 'SEARCH CONCEPT "sign in" WITH TYPE "Requirement" LIMIT 100')) == {
        f"REQ-{n}" for n in range(12)
    }


def test_ten_are_found_unless_said_and_a_hundred_at_most(project):
    assert len(names(project, 'SEARCH CONCEPT "sign in"')) == DEFAULT_LIMIT
    assert len(names(project, 'SEARCH CONCEPT "sign in" LIMIT 3')) == 3
    assert error_of(asked(project, 'SEARCH CONCEPT "sign in" LIMIT 101'))["code"] == "KIP_4002"


def test_the_vocabulary_is_searched_though_no_record_holds_it(project):
    [first, *_] = found(project, 'SEARCH CONCEPT "sleep task"')
    assert (first["type"], first["name"]) == ("$ConceptType", "SleepTask")
    assert names(project, 'SEARCH CONCEPT "unsorted" WITH TYPE "Domain"') == ["Unsorted"]
    assert names(project, 'SEARCH CONCEPT "requirment" WITH TYPE "$ConceptType"')[0] == "Requirement"


def test_propositions_are_found_by_their_predicate_each_predicate_first(project):
    links = found(project, 'SEARCH PROPOSITION "prefers"')
    assert [one["predicate"] for one in links] == ["prefers", "prefers", "prefers_not"]
    assert links[0]["score"] == 1.0
    assert {one["subject"] for one in links} == {"Person:Alice"}
    assert names(project, 'SEARCH PROPOSITION "prefer" LIMIT 2') == ["prefers", "prefers_not"]
    assert names(project, 'SEARCH PROPOSITION "prefers" WITH TYPE "prefers_not"') == ["prefers_not"]


def test_propositions_are_found_by_what_they_hold(project):
    [one] = found(project, 'SEARCH PROPOSITION "lunch" WITH ATTRIBUTES')
    assert (one["predicate"], one["object"]) == ("prefers", "Event:dark chocolate")
    assert one["metadata"]["note"] == "told over lunch"


def test_propositions_of_the_vocabulary_are_found_too(project):
    links = found(project, 'SEARCH PROPOSITION "belongs to domain" LIMIT 100')
    assert "Domain:CoreSchema" in {one["object"] for one in links}


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        ('SEARCH CONCEPT "x" WITH TYPE "Persn"', "KIP_2001", "Person"),
        ('SEARCH CONCEPT "x" WITH TYPE "req"', "KIP_2001", "KIP calls it Requirement."),
        ('SEARCH PROPOSITION "x" WITH TYPE "likes"', "KIP_2001", "Known:"),
        ('SEARCH CONCEPT "x" MODE "semantic"', "KIP_1001", "keyword"),
        ('SEARCH CONCEPT "x" THRESHOLD 1.5', "KIP_1001", "0 to 1"),
        ('SEARCH CONCEPT "x" THRESHOLD -1', "KIP_1001", "0 to 1"),
        ('SEARCH CONCEPT " - "', "KIP_1001", "word"),
    ],
)
def test_what_cannot_be_searched_for_is_refused_with_the_way_out(project, text, code, hint):
    error = error_of(asked(project, text))
    assert error["code"] == code
    assert hint in error["hint"]


def test_keyword_and_hybrid_are_the_same_search(project):
    assert names(project, 'SEARCH CONCEPT "alice" MODE "keyword"') == names(
        project, 'SEARCH CONCEPT "alice" MODE "Hybrid"'
    )


def test_what_nothing_holds_finds_nothing(project):
    assert names(project, 'SEARCH CONCEPT "zzzqqq"') == []
    assert names(project, 'SEARCH PROPOSITION "zzzqqq"') == []


def test_a_hit_is_compact_and_with_attributes_whole(project):
    [hit] = found(project, 'SEARCH CONCEPT "bliss"')
    assert {**hit, "score": 0} == {
        "id": "Event:dark chocolate",
        "type": "Event",
        "name": "dark chocolate",
        "snippet": "cocoa «bliss»",
        "score": 0,
    }
    [whole] = found(project, 'SEARCH CONCEPT "bliss" WITH TYPE "Event" WITH ATTRIBUTES')
    assert whole["attributes"]["content_summary"] == "Ate it."
    assert whole["metadata"]["_score"] == hit["score"]
    [link] = found(project, 'SEARCH PROPOSITION "lunch"')
    assert sorted(link) == ["id", "object", "predicate", "score", "subject"]


def test_pages_of_a_search_hold_each_hit_once_until_something_is_written(project):
    command, seen, cursor = 'SEARCH CONCEPT "sign in" LIMIT 5', [], ""
    while True:
        response = asked(project, command + (f' CURSOR "{cursor}"' if cursor else "")).response
        seen += [one["name"] for one in response["result"]]
        if not (cursor := response.get("next_cursor", "")):
            break
        last = cursor
    assert (len(seen), set(seen)) == (12, {f"REQ-{n}" for n in range(12)})
    error = error_of(asked(project, f'SEARCH CONCEPT "sign out" CURSOR "{last}"'))
    assert (error["code"], "first page" in error["hint"]) == ("KIP_1001", True)


def test_a_question_in_plain_words_is_answered_by_the_best_partial_match_and_marked(project):
    question = "who has eaten any chocolates of the Yorkshire kind"
    [hit] = found(project, f'SEARCH CONCEPT "{question}"')
    assert (hit["name"], hit["partial"]) == ("dark chocolate", True)
    assert "partial" not in found(project, 'SEARCH CONCEPT "what is the dark chocolate"')[0]
    assert names(project, 'SEARCH PROPOSITION "what does Alice prefer"')[0] == "prefers"


def test_what_is_unsure_or_over_comes_after_what_holds(tmp_path):
    made = Project(tmp_path / "repo")
    said = [
        ("a", "WITH METADATA {confidence: 0.2}"),
        ("b", 'WITH METADATA {status: "superseded", confidence: 1.0}'),
        ("c", "WITH METADATA {confidence: 0.9}"),
    ]
    for name, metadata in said:
        command = f'UPSERT {{ CONCEPT {{ {{type: "Event", name: "{name}"}} SET ATTRIBUTES {{note: "harbour"}} }} }}'
        assert not asked(made, f"{command} {metadata}").is_error
    assert names(made, 'SEARCH CONCEPT "harbour"') == ["c", "a", "b"]
    made.close()
