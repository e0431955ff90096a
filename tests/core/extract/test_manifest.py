"""A manifest lists symbols; one bad symbol does not lose the others."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.facts import SourceFile
from kbcore.extract.manifest import EXTRACTOR

YAML = """\
# Symbols of the shop
version: 1
symbols:
  - id: shop.cart:Cart
    name: Cart
    kind: class
    sourceFile: src/cart.py
    line: 0012
    status: active
    tags: [core]
    links: [REQ-1, "https://example.org/cart", {type: covered_by, target: TEST-1}]
    relationships:
      - type: implements
        target: REQ-2
      - type: constrained_by
        target: adr/0001-x.md
  - id: shop.cart:add
    title: Add to cart
    name: add
    file: src/cart.py
    implements: REQ-3, REQ-4
  - id: billing
    type: component
"""


def extract(text, path="docs/symbols.yaml", **settings):
    return EXTRACTOR.extract(SourceFile(path, text if isinstance(text, bytes) else text.encode()), settings)


def faults(facts):
    return [(problem.line, problem.code) for problem in facts.problems]


def test_symbols_are_entities_with_lines():
    facts = extract(YAML)
    cart, add, billing = facts.entities

    assert facts.problems == ()
    assert facts.is_complete
    assert (cart.id, cart.type, cart.line) == ("shop.cart:Cart", "symbol", 4)
    assert cart.fields == {
        "title": "Cart",
        "status": "active",
        "tags": ["core"],
        "links": ["https://example.org/cart"],
        "attributes.kind": "class",
        "attributes.file": "src/cart.py",
        "attributes.line": "0012",
    }
    assert cart.lines["attributes.file"] == 7
    assert cart.lines["title"] == 5
    assert add.fields["title"] == "Add to cart"
    assert add.fields["attributes.name"] == "add"
    assert (billing.type, billing.fields) == ("component", {"title": "billing"})


def test_relationships_and_links_are_links():
    assert [(link.subject, link.type, link.target, link.is_path, link.line) for link in extract(YAML).links] == [
        ("shop.cart:Cart", None, "REQ-1", False, 11),
        ("shop.cart:Cart", "covered_by", "TEST-1", False, 11),
        ("shop.cart:Cart", "implements", "REQ-2", False, 13),
        ("shop.cart:Cart", "constrained_by", "docs/adr/0001-x.md", True, 15),
        ("shop.cart:add", "implements", "REQ-3", False, 21),
        ("shop.cart:add", "implements", "REQ-4", False, 21),
    ]


def test_json_states_the_same_with_its_own_lines():
    text = json.dumps(yaml.load(YAML, yaml.BaseLoader), indent=2)
    facts, twin = extract(text, "docs/symbols.json"), extract(YAML)

    assert [(one.id, one.type, one.fields) for one in facts.entities] == [
        (one.id, one.type, one.fields) for one in twin.entities
    ]
    assert [(link.subject, link.type, link.target) for link in facts.links] == [
        (link.subject, link.type, link.target) for link in twin.links
    ]
    lines = text.split("\n")
    for found in facts.entities:
        assert f'"id": "{found.id}"' in lines[found.line - 1]


def test_json_keeps_numbers_and_tabs_as_typed():
    text = '{"symbols": [\n\t{"id": "a", "line": 1.10, "exported": true, "doc": null, "big": 12345678901234567890}]}'
    (found,) = extract(text, "symbols.json").entities

    assert found.fields == {
        "title": "a",
        "attributes.line": "1.10",
        "attributes.exported": "true",
        "attributes.big": "12345678901234567890",
    }
    assert found.line == 2


def test_a_list_at_the_top_is_a_list_of_symbols():
    assert [one.id for one in extract("- id: a\n- id: b\n").entities] == ["a", "b"]
    assert [one.id for one in extract('[{"id": "a"}]', "symbols.json").entities] == ["a"]


def test_one_bad_symbol_does_not_lose_the_others():
    text = (
        "symbols:\n  - id: a\n  - name: nameless\n  - just text\n  - id: [b]\n  - id: c\n    title: [x]\n"
        "  - id: ' d'\n  - id: a\n  - id: e\n    type: [x]\n  -\n  - id: z\n    links: [../../x.md, A]\n"
    )
    facts = extract(text)

    assert [one.id for one in facts.entities] == ["a", "c", "z"]
    assert faults(facts) == [
        (3, "missing_id"),
        (4, "wrong_shape"),
        (5, "wrong_shape"),
        (7, "wrong_shape"),
        (8, "bad_id"),
        (9, "repeated_id"),
        (11, "wrong_shape"),
        (14, "bad_link"),
    ]
    assert facts.is_complete
    assert facts.held_back == ("c", "a", "e", "z")
    assert set(facts.unidentified) == {"nameless", ""}
    assert "'nameless'" in facts.problems[0].message
    assert "line 2" in facts.problems[5].message
    assert [link.target for link in facts.links] == ["A"]


def test_a_symbol_that_is_no_yaml_does_not_lose_the_others():
    facts = extract("symbols:\n  - id: a\n    name: @a\n  - id: b\n    tags: [x\n  - id: c\nversion: 1\n")

    assert [(one.id, one.fields["title"]) for one in facts.entities] == [("a", "@a"), ("b", "b"), ("c", "c")]
    assert faults(facts) == [(3, "invalid_yaml"), (5, "invalid_yaml")]
    assert facts.is_complete
    assert (facts.held_back, facts.unidentified) == (("a", "b"), ("",))


def test_a_fault_of_json_keeps_what_is_before_it():
    facts = extract('{"symbols": [\n{"id": "a"},\n{"id": "b",}\n]}', "symbols.json")

    assert [one.id for one in facts.entities] == ["a", "b"]
    assert faults(facts) == [(3, "invalid_json")]
    assert (facts.is_complete, facts.held_back, facts.unidentified) == (True, ("a", "b"), ("",))


@pytest.mark.parametrize("break_", ["\n", "\r", "\u2028", ""])
def test_a_repeated_key_holds_back_its_own_symbol(break_):
    text = f"# c{break_}\nsymbols:\n- id: a\n- id: b\n  kind: x\n  kind: y\n- id: c\n- id: d\n"
    facts = extract(text)

    assert facts.is_complete
    assert "b" in facts.held_back
    assert "a" not in facts.held_back
    assert "d" not in facts.held_back


@pytest.mark.parametrize(
    "text",
    [
        "symbols:\n- id: a\n  id: b\n",
        "symbols:\n- id: a\nsymbols:\n- id: b\n",
        "symbols:\n- id: a\n - id: b\n",
        "- [a]\n",
    ],
)
def test_a_symbol_that_a_fault_may_hide_may_be_any_one(text):
    facts = extract(text)

    assert [problem.severity for problem in facts.problems] == ["error"]
    assert (facts.is_complete, facts.unidentified) == (True, ("",))


def test_a_repeated_key_holds_back_a_symbol_whose_id_key_has_capitals():
    assert extract("symbols:\n- ID: b\n  kind: x\n  kind: y\n").held_back == ("b",)


def test_in_a_line_with_several_symbols_a_fault_may_be_in_each():
    facts = extract('[{"id": "a"},\n{"id": "b", "kind": "x", "kind": "y"}, {"id": "c"},\n{"id": "d"}]', "symbols.json")

    assert "b" in facts.held_back
    assert "d" not in facts.held_back


def test_unknown_keys_at_the_top_are_warned_of():
    facts = extract("symbol: []\nsymbols: []\ngroups: []\n$schema: x\n")

    assert [(problem.line, problem.code, problem.severity) for problem in facts.problems] == [
        (1, "unknown_key", "warning"),
        (3, "unknown_key", "warning"),
    ]
    assert "`symbols`" in facts.problems[0].hint
    assert facts.is_complete


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("symbols: x\n", "wrong_shape"),
        ("symbols: {a: b}\n", "wrong_shape"),
        ("text\n", "wrong_shape"),
        ("version: 1\n", "missing_symbols"),
    ],
)
def test_a_file_without_a_list_of_symbols_is_a_problem(text, code):
    facts = extract(text)

    assert faults(facts) == [(1, code)]
    assert not facts.is_complete


@pytest.mark.parametrize(("text", "path"), [("", "symbols.yaml"), ("# c\n", "symbols.yml"), (" ", "symbols.json")])
def test_an_empty_manifest_is_a_note(text, path):
    facts = extract(text, path)

    assert [(problem.code, problem.severity) for problem in facts.problems] == [("empty_manifest", "note")]
    assert facts.is_complete


def test_an_empty_list_of_symbols_is_complete():
    assert extract("symbols:\n").is_complete
    assert extract("symbols: []\n").problems == ()


def test_keys_of_the_core_are_found_whatever_their_capitals():
    (found,) = extract("symbols: [{ID: a, Title: T, Status: s}]\n").entities

    assert (found.id, found.fields) == ("a", {"title": "T", "status": "s"})


def test_anchors_and_merges_serve_a_manifest():
    facts = extract("symbols:\n  - &base {id: a, kind: class, file: f.py}\n  - {<<: *base, id: b}\n")

    assert [one.fields["attributes.kind"] for one in facts.entities] == ["class", "class"]


def test_a_wrong_encoding_is_a_problem():
    assert faults(extract("symbols:\n- id: é\n".encode("latin-1"))) == [(2, "wrong_encoding")]


def test_a_type_that_is_too_long_is_a_problem():
    assert faults(extract(f"- id: a\n  type: {'x' * (limits.MAX_NAME_CHARS + 1)}\n")) == [(2, "wrong_shape")]


def test_manifests_are_looked_for_at_the_root_and_in_docs():
    assert {rule.glob for rule in EXTRACTOR.path_rules({})} == {
        f"{folder}symbols.{ending}" for folder in ("", "docs/") for ending in ("yaml", "yml", "json")
    }
    assert [rule.glob for rule in EXTRACTOR.path_rules({"paths": ["a/*.yaml"]})] == ["a/*.yaml"]
    assert EXTRACTOR.path_rules({"paths": []}) == []


@given(st.lists(st.sampled_from(YAML.splitlines()), max_size=20), st.sampled_from(["s.yaml", "s.json"]))
def test_any_content_is_read_or_reported(lines, path):
    text = "\n".join(lines)
    facts = extract(text, path)

    assert facts.is_complete or any(problem.severity == "error" for problem in facts.problems)
    for problem in facts.problems:
        assert 0 <= problem.line <= len(lines) + 1
    ids = [one.id for one in facts.entities]
    assert len(ids) == len(set(ids))
    assert {link.subject for link in facts.links} <= set(ids)


def test_a_repeated_id_is_a_fault_of_that_id_alone():
    facts = extract("symbols:\n- {id: a, title: A}\n- {id: g, title: One}\n- {id: g, title: Two}\n")
    assert [(one.code, one.id) for one in facts.problems if one.severity == "error"] == [("repeated_id", "g")]
    assert (facts.held_back, facts.unidentified) == (("g",), ("Two",))


def test_a_key_that_is_twice_in_one_line_names_the_line_once():
    [problem] = extract("symbols:\n  - {id: a, kind: x, kind: y}\n").problems
    assert problem.message == "`kind` is there twice: both in line 2"
    assert problem.hint.startswith("Keep one of the two; ")
