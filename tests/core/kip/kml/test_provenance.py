"""Source and author: what somebody gave is shown, changed and deleted; KB keeps for itself who wrote, and by what."""

from __future__ import annotations

import pytest

from kbcore.store.write_request import Author
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import req

WRITE = """
UPSERT {
  CONCEPT ?a { {type: "Person", name: "A"} }
  CONCEPT ?b { {type: "Person", name: "B"} SET PROPOSITIONS { ("mentions", ?a) } }
}
"""
KINDS = {"concept": '?x {type: "Person", name: "A"}', "link": '?x (?s, "mentions", ?o)'}
DOCUMENT = "docs/requirements/r.md"


@pytest.fixture(params=KINDS)
def where(request: pytest.FixtureRequest) -> str:
    return f"WHERE {{ {KINDS[request.param]} }}"


def said(kip: Kip, where: str) -> tuple[object, object]:
    """Return source and author of an element: by their paths, after a look that the whole element says the same."""
    [[source], [author]] = kip(f"FIND(?x.metadata.source, ?x.metadata.author) {where}")
    [whole] = kip(f"FIND(?x) {where}")
    assert (whole["metadata"].get("source"), whole["metadata"].get("author")) == (source, author)
    is_open = kip(f"FIND(COUNT(?x)) {where[:-1]} FILTER(IS_NULL(?x.metadata.source)) }}")
    assert is_open == int(source is None)
    return source, author


def test_what_nobody_gave_is_not_invented(kip, where):
    kip(WRITE)
    assert said(kip, where) == (None, None)
    [whole] = kip(f"FIND(?x) {where}")
    assert not {"source", "author"} & whole["metadata"].keys()


def test_what_was_given_is_changed_and_deleted(kip, where):
    kip(WRITE + 'WITH METADATA { source: "talk-1", author: "$self" }')
    assert said(kip, where) == ("talk-1", "$self")
    kip(f'UPDATE ?x SET METADATA {{ source: "talk-2" }} {where}')
    assert said(kip, where) == ("talk-2", "$self")
    reported = kip(f'DELETE METADATA {{"source", "author"}} FROM ?x {where}')
    assert sum(reported.values()) == 1
    assert said(kip, where) == (None, None)
    assert sum(kip(f'DELETE METADATA {{"source", "author"}} FROM ?x {where}').values()) == 0


def test_kb_keeps_who_wrote_and_by_what(kip):
    kip(WRITE + 'WITH METADATA { source: "talk-1", author: "somebody" }')
    node, [link] = kip.project.node("Person:A"), kip.project.view().touching(["Person:A"])
    assert (node.source, link.created_by, [one.source for one in link.statements]) == ("kip", "tester", ["kip"])


@pytest.mark.sliced(2)
@pytest.mark.parametrize("program", ["cli", "kip", "sleep:3", "mcp:a client"])
def test_the_program_that_wrote_is_no_source(kip, where, program):
    author = Author("tester", program, "kb/test")
    people = [{"id": f"Person:{name}", "type": "Person", "name": name, "title": name} for name in "AB"]
    edge = {"type": "mentions", "from": "Person:B", "to": "Person:A"}
    kip.project.apply(author=author, entities=people, edges=[edge])
    assert said(kip, where) == (None, None)


def test_what_fields_of_an_older_record_say_is_shown_and_can_be_deleted(kip, where):
    people = [{"id": f"Person:{name}", "type": "Person", "name": name, "title": name} for name in "AB"]
    edge = {"type": "mentions", "from": "Person:B", "to": "Person:A"}
    kip.project.apply(author=Author("bob", "talk-1", "kb/test"), entities=people, edges=[edge])
    assert said(kip, where) == ("talk-1", "bob" if "mentions" in where else None)
    kip(f'DELETE METADATA {{"source", "author"}} FROM ?x {where}')
    assert said(kip, where) == (None, None)


def test_the_file_that_states_a_fact_is_its_source_and_nobody_its_author(kip):
    files = {DOCUMENT: req("R", links="[S]"), "docs/requirements/s.md": req("S")}
    kip.project.sync(files)
    node, link = 'WHERE { ?x {type: "Requirement", name: "R"} }', 'WHERE { ?x (?a, "depends_on", ?b) }'
    if not kip(f"FIND(?x) {link}"):
        link = "WHERE { ?x (?a, ?p, ?b) FILTER(?x.metadata.source == :file) }"
        assert kip(f"FIND(?x) {link}", {"file": DOCUMENT})
        link = link.replace(":file", f'"{DOCUMENT}"')
    for where in (node, link):
        assert said(kip, where) == (DOCUMENT, None)
        error = kip.refusal(f'DELETE METADATA {{"source"}} FROM ?x {where}')
        assert (error["code"], DOCUMENT in error["message"]) == ("KIP_3004", True)
    kip(f'UPDATE ?x SET METADATA {{ source: "talk-1" }} {node}')
    assert said(kip, node) == ("talk-1", None)
    kip(f'DELETE METADATA {{"source"}} FROM ?x {node}')
    assert said(kip, node) == (DOCUMENT, None)


def test_the_vocabulary_says_the_same_once_it_is_stored(kip):
    where = 'WHERE { ?x {type: "Domain", name: "Archived"} }'
    before = said(kip, where)
    kip('UPSERT { CONCEPT { {type: "Domain", name: "Archived"} SET ATTRIBUTES { note: "kept" } } }')
    assert kip.project.node("Domain:Archived").source == "kip"
    assert said(kip, where) == before == ("SystemBootstrap", "$system")


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("calculation", "value"),
    [
        ("ADD(?x.attributes.n, 1)", {"n": None}),
        ("MUL(2, ?x.attributes.n)", {}),
        ("CLAMP(?x.attributes.n, 0, 1)", {}),
        ("ADD(1, MUL(2, ?x.attributes.n))", {}),
    ],
)
def test_a_calculation_that_lacks_a_value_leaves_its_key_and_sets_the_others(kip, calculation, value):
    kip('UPSERT { CONCEPT { {type: "Person", name: "A"} SET ATTRIBUTES :given } }', {"given": {"k": 1, **value}})
    where = 'WHERE { ?x {type: "Person", name: "A"} }'
    reported = kip(f"UPDATE ?x SET ATTRIBUTES {{ n: {calculation}, m: ADD(?x.attributes.k, 1) }} {where}")
    assert reported == {"updated": 1, "matched": 1, "skipped": 1}
    assert kip.attributes("Person:A") == {"k": 1, "m": 2, **value}
    reported = kip(f"UPDATE ?x SET METADATA {{ confidence: ADD(?x.metadata.confidence, 0.1) }} {where}")
    assert reported == {"updated": 0, "matched": 1, "skipped": 1}
    assert "confidence" not in kip.element("Person:A")["metadata"]


def test_a_calculation_that_lacks_a_value_is_none_to_coalesce(kip):
    kip('UPSERT { CONCEPT { {type: "Person", name: "A"} } }')
    where = 'WHERE { ?x {type: "Person", name: "A"} }'
    reported = kip(f"UPDATE ?x SET ATTRIBUTES {{ n: COALESCE(ADD(?x.attributes.n, 1), 7) }} {where}")
    assert (reported, kip.attributes("Person:A")) == ({"updated": 1, "matched": 1}, {"n": 7})
