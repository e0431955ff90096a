"""The error of a command that writes and is refused: code, message, place and remedy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import req

ALICE = '{type: "Person", name: "Alice"}'
WROTE = f"UPSERT {{ CONCEPT {{ {ALICE} }} }}"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kip]:
    """Return a project that knows Alice, and in which nothing else is ever written."""
    made = Kip(tmp_path_factory.mktemp("kip") / "repo")
    made(WROTE)
    made.project.apply(entities=[{"id": "REQ-0", "type": "req", "title": "t", "status": "open"}])
    yield made
    made.project.close()


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            'UPSERT { CONCEPT { {type: §"Persn", name: "x"} } }',
            (
                "KIP_2001: There is no concept type 'Persn' (PLACE). "
                "Did you mean 'Person'? A new type is a concept of the type $ConceptType; write it first."
            ),
        ),
        (
            'UPSERT { CONCEPT { {type: §"req", name: "REQ-2"} } }',
            (
                "KIP_2001: There is no concept type 'req' (PLACE). "
                "KIP calls it Requirement. A new type is a concept of the type $ConceptType; write it first."
            ),
        ),
        (
            'UPSERT { CONCEPT { {type: "Person", name: §" "} } }',
            "KIP_2002: The name of a concept is empty (PLACE). Give its name.",
        ),
        (
            'UPSERT { PROPOSITION { (ALICE, §"mention", ALICE) } }',
            (
                "KIP_2001: There is no predicate 'mention' (PLACE). "
                "Did you mean 'mentions'? A new predicate is a concept of the type $PropositionType; write it first."
            ),
        ),
        (
            'UPSERT { §CONCEPT { {type: "$ConceptType", name: "user_taste"} } }',
            (
                "KIP_2001: 'user_taste' is no name of a type: it is not in UpperCamelCase (PLACE). "
                "Write it in UpperCamelCase, such as UserPreference."
            ),
        ),
        (
            'UPSERT { §CONCEPT { {type: "$PropositionType", name: "worksOn"} } }',
            (
                "KIP_2001: 'worksOn' is no name of a predicate: it is not in snake_case (PLACE). "
                "Write it in snake_case, such as works_on."
            ),
        ),
        (
            'UPSERT { §CONCEPT { {type: "Requirement", name: "REQ-1"} } }',
            "KIP_2002: `status` of 'REQ-1' is missing (PLACE). Add `status`; a Requirement needs title, status.",
        ),
        (
            'UPSERT { CONCEPT { {type: "Requirement", name: "REQ-1"} SET ATTRIBUTES { §status: 3 } } }',
            "KIP_2003: Requirement 'REQ-1': `status` must be text (PLACE). Put it in quotes.",
        ),
        (
            'UPSERT { §PROPOSITION { (ALICE, "implements", {type: "Requirement", name: "REQ-0"}) } }',
            (
                "KIP_2002: (Person:Alice implements REQ-0): `implements` leads from Symbol to Requirement, "
                "not from Person to Requirement (PLACE)."
            ),
        ),
        (
            "UPSERT { CONCEPT { ALICE } } WITH METADATA { §_version: 7 }",
            (
                "KIP_2002: The metadata `_version` is kept by KB and cannot be written (PLACE). "
                "Leave it out; keys that begin with `_` only come back in answers."
            ),
        ),
        (
            'UPSERT { PROPOSITION { (ALICE, "mentions", ALICE) } } WITH METADATA { §confidence: 95 }',
            (
                "KIP_2003: A confidence is between 0 and 1; this one is 95 (PLACE). "
                "Write a number from 0 to 1, such as 0.9; UPDATE has CLAMP(…, 0, 1)."
            ),
        ),
        (
            'UPSERT { PROPOSITION { (ALICE, "mentions", ALICE) } } WITH METADATA { §confidence: "0.9" }',
            (
                "KIP_2003: A confidence is a number, not text (PLACE). "
                "Write a number from 0 to 1, such as 0.9, without quotes."
            ),
        ),
        (
            'UPDATE ?p SET METADATA { §confidence: ["high"] } WHERE { ?p ALICE }',
            "KIP_2003: A confidence is a number, not a list (PLACE).",
        ),
        (
            "UPDATE ?p SET METADATA { §confidence: ADD(1, 0.5) } WHERE { ?p ALICE }",
            "KIP_2003: A confidence is between 0 and 1; this one is 1.5 (PLACE).",
        ),
        (
            'UPSERT { §PROPOSITION { (ALICE, "relates_to", ALICE) } }',
            (
                "KIP_2002: A link 'relates_to' needs a `kind` (PLACE). "
                'Write it as PROPOSITION { (…, "relates_to", …) SET ATTRIBUTES { kind: "see_also" } }.'
            ),
        ),
        (
            'UPSERT { CONCEPT ?a { ALICE SET PROPOSITIONS { ("mentions", §?b) } } CONCEPT ?b { ALICE } }',
            (
                "KIP_3001: ?b is the handle of a later block (PLACE). "
                "Put the block that defines the handle in front of its use, or bind it in WHERE."
            ),
        ),
        (
            'UPSERT { CONCEPT ?a { ALICE SET PROPOSITIONS { ("mentions", §?b) } } }',
            (
                "KIP_3001: ?b is bound by nothing (PLACE). "
                "Put the block that defines the handle in front of its use, or bind it in WHERE."
            ),
        ),
        (
            'UPSERT { CONCEPT { ALICE SET PROPOSITIONS { ("mentions", §{type: "Person", name: "Bob"}) } } }',
            "KIP_3002: There is no concept Person 'Bob' (PLACE). Look for it with SEARCH or FIND, or write it first.",
        ),
        (
            'UPSERT { CONCEPT { §{id: "Person:Bob"} } }',
            (
                "KIP_3002: There is no concept with the id 'Person:Bob' (PLACE). "
                "Look for it with SEARCH or FIND, or write it first."
            ),
        ),
        (
            'UPSERT { PROPOSITION { (id: §"link:0") } }',
            (
                "KIP_3002: There is no proposition with the id 'link:0' (PLACE). "
                "Look for it with SEARCH or FIND, or write it first."
            ),
        ),
        (
            'UPSERT { PROPOSITION { (ALICE, "mentions", §(ALICE, "mentions", ALICE)) } }',
            (
                "KIP_3002: There is no link 'mentions' between these two (PLACE). "
                "Links are not created implicitly: write it in a PROPOSITION block before, and use its handle."
            ),
        ),
        (
            'UPSERT { CONCEPT ?a { ALICE } CONCEPT §?a { {type: "Person", name: "Bob"} } }',
            "KIP_3003: ?a means something else already (PLACE). Give each block a handle of its own.",
        ),
        (
            'UPSERT { §CONCEPT { {type: "$ConceptType", name: "Domain"} SET ATTRIBUTES { description: "" } } }',
            (
                "KIP_3004: $ConceptType 'Domain' is protected: everything else is defined by it (PLACE). "
                "Leave it as it is; nothing of the command was done."
            ),
        ),
        (
            'UPSERT { §CONCEPT { {type: "$ConceptType", name: "Requirement"} SET ATTRIBUTES { description: "" } } }',
            (
                "KIP_3004: The type 'Requirement' is defined by KB or by a file of the project, not by this branch "
                "(PLACE). Use it as it is; between concepts of types that a branch defines,"
            ),
        ),
        (
            'UPSERT { §CONCEPT { {type: "Person", name: "$self"} SET ATTRIBUTES { core_directives: [] } } }',
            (
                "KIP_3004: `core_directives` of $self are protected (PLACE). "
                "Other attributes of it may be written; leave these out."
            ),
        ),
        (
            "UPSERT { CONCEPT { ALICE EXPECT VERSION §4 } }",
            (
                "KIP_3005: The concept 'Person:Alice' is at version 1, not at 4 (PLACE). "
                "Read it again, decide again, and send EXPECT VERSION with its `_version`."
            ),
        ),
        (
            'UPSERT { CONCEPT { {type: "Person", name: "Bob"} EXPECT VERSION §1 } }',
            (
                "KIP_3005: The concept 'Person:Bob' does not exist yet (version 0), not at 1 (PLACE). "
                "Read it again, decide again, and send EXPECT VERSION with its `_version`."
            ),
        ),
    ],
)
def test_a_refusal_says_what_where_and_how_to_go_on(written: Kip, text: str, reported: str) -> None:
    marked = text.replace("ALICE", ALICE)
    place = f"line 1, column {marked.index('§') + 1}"
    assert written.refusal_text(marked.replace("§", "")).startswith(reported.replace("PLACE", place))


def test_expect_version_lets_pass_what_was_read(kip: Kip) -> None:
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} EXPECT VERSION 0 SET ATTRIBUTES {{ n: 1 }} }} }}")
    kip(f"UPSERT {{ CONCEPT {{ {ALICE} EXPECT VERSION 1 SET ATTRIBUTES {{ n: 2 }} }} }}")
    assert kip.attributes("Person:Alice") == {"n": 2}


def test_all_of_a_command_is_refused_with_one_block(kip: Kip) -> None:
    error = kip.refusal(f'UPSERT {{ CONCEPT {{ {ALICE} }} CONCEPT {{ {{type: "Requirement", name: "R"}} }} }}')
    assert error["code"] == "KIP_2002"
    assert kip.project.node("Person:Alice") is None


def test_a_fact_of_a_file_is_refused_with_file_and_line(kip: Kip) -> None:
    kip.project.sync({"docs/requirements/r.md": req("REQ-9")})
    text = 'UPSERT { CONCEPT { {type: "Requirement", name: "REQ-9"} SET ATTRIBUTES { note: 1, status: "done" } } }'
    error = kip.refusal(text)
    assert (error["code"], error["message"]) == (
        "KIP_3004",
        f"`status` of 'REQ-9' is stated by 'docs/requirements/r.md:4' (line 1, column {text.index('status') + 1}).",
    )
    assert error["hint"] == "Edit 'docs/requirements/r.md' and run `kb sync`; fields that it does not state are free."
    assert error["data"]["problems"][0]["source"] == "docs/requirements/r.md:4"
    kip('UPSERT { CONCEPT { {type: "Requirement", name: "REQ-9"} SET ATTRIBUTES { note: 1 } } }')
    assert kip.attributes("REQ-9")["note"] == 1


def test_a_key_that_a_file_states_is_not_said_to_be_deleted(kip: Kip) -> None:
    symbols = (
        "symbols:\n  - {id: S, title: s, status: active, relationships: [{type: implements, target: REQ-9, why: x}]}"
    )
    kip.project.sync(
        {
            "docs/requirements/r.md": "---\nid: REQ-9\ntitle: t\nstatus: open\nrisk: high\n---\n",
            "docs/symbols.yaml": symbols,
        }
    )
    kip('UPSERT { CONCEPT { {id: "REQ-9"} SET ATTRIBUTES { note: 1 } } }')
    error = kip.refusal('DELETE ATTRIBUTES {"note", "risk"} FROM ?x WHERE { ?x {id: "REQ-9"} }')
    assert error["code"] == "KIP_3004"
    assert error["message"].startswith("`attributes.risk` of 'REQ-9' is stated by 'docs/requirements/r.md:5'")
    error = kip.refusal('DELETE ATTRIBUTES {"why"} FROM ?l WHERE { ?l (?s, "implements", ?o) }')
    assert error["code"] == "KIP_3004"
    assert error["message"].startswith("`attributes.why` of 'S implements REQ-9' is stated by 'docs/symbols.yaml'")
    kip('DELETE ATTRIBUTES {"note"} FROM ?x WHERE { ?x {id: "REQ-9"} }')
    assert kip.attributes("REQ-9").keys() == {"title", "status", "risk", "text_ref"}


def test_several_problems_are_reported_at_once(kip: Kip) -> None:
    error = kip.refusal(
        'UPSERT { CONCEPT { {type: "Requirement", name: "A"} } CONCEPT { {type: "Test", name: "B"} SET ATTRIBUTES '
        '{ kind: "manual", status: "x" } } }'
    )
    assert error["message"].startswith("`status` of 'A' is missing. 1 more problem is listed")
    assert [(one["element"], one["code"]) for one in error["data"]["problems"]] == [
        ("Requirement 'A'", "missing_field"),
        ("Test 'B'", "wrong_type"),
    ]


def test_a_value_larger_than_kb_takes_is_too_much(kip: Kip) -> None:
    error = kip.refusal(f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ x: :x }} }} }}", {"x": "x" * 70_000})
    assert error["code"] == "KIP_4002"


def test_a_secret_is_refused_where_the_project_says_so(kip: Kip) -> None:
    text = f"UPSERT {{ CONCEPT {{ {ALICE} SET ATTRIBUTES {{ token: :t }} }} }}"
    token = {"t": "ghp_" + "a1B2" * 9}
    (kip.project.root / ".kb/config.json").write_text('{"rules": {"secret": "error"}}')
    assert kip.refusal(text, token)["code"] == "KIP_2002"
    (kip.project.root / ".kb/config.json").unlink()
    kip(text, token)
    assert kip.written is not None
    assert "token" in kip.written.outcome.warnings[0]
