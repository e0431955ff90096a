"""The formats that have a reader of their own: StrictDoc and ReqIF."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.extract.facts import SourceFile
from kbcore.extract.sources import profiles, reqif, strictdoc
from kbcore.extract.sources.extractor import EXTRACTOR
from kbcore.extract.sources.source import ENDINGS
from tests.core.extract.sources.sources import codes, read
from tests.support.effort.scale import tries

SDOC = "[DOCUMENT]\nTITLE: D\n\n[REQUIREMENT]\nUID: A\nSTATEMENT: >>>\nOne.\n\nTwo.\n<<<\n"


def values(text: str) -> list[dict[str, object]]:
    return [one.values for one in strictdoc.entries(text).entries]


def test_fields_of_an_element_may_take_several_lines() -> None:
    found = strictdoc.entries(SDOC)
    assert [one.values.get("UID") for one in found.entries] == [None, "A"]
    assert found.entries[1].find("STATEMENT") == ("One.\n\nTwo.", 6)
    assert not found.problems


def test_a_text_without_an_end_leaves_the_file_incomplete() -> None:
    found = read("a.sdoc", SDOC.removesuffix("<<<\n"), profile="strictdoc")
    assert codes(found) == ["invalid_strictdoc"]
    assert not found.is_complete
    assert [one.id for one in found.entities] == ["doc/a", "A"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.yaml", "---\n" * 1_000_000),
        ("a.sdoc", "[[SECTION]]\n" * 100_000),
        ("a.toml", "[[a]]\n" * 100_000),
    ],
    ids=["yaml", "strictdoc", "toml"],
)
def test_a_file_of_many_parts_is_read_in_time_in_proportion_to_its_length(path: str, text: str) -> None:
    items = {"items": "$.b[*]"} if path == "a.toml" else {}
    assert not read(path, text, glob=path, id="{id}", type="req", **items).entities


@pytest.mark.parametrize("value", ["[" * 5000 + "]" * 5000, "9" * 5000, "{a=" * 5000 + "1" + "}" * 5000])
def test_toml_that_cannot_be_read_is_a_fault_of_the_file(value: str) -> None:
    found = read("a.toml", f"id = 'A'\nb = {value}\n", glob="a.toml", id="{id}", type="req")
    assert codes(found) == ["invalid_toml"]
    assert not found.is_complete


def test_lines_that_belong_to_nothing_are_warnings() -> None:
    assert codes(read("a.sdoc", f"hello\n{SDOC}what is this\n", profile="strictdoc")) == ["invalid_strictdoc"] * 2


def test_a_document_that_is_included_and_a_grammar_state_nothing() -> None:
    grammar = "[GRAMMAR]\nELEMENTS:\n- TAG: X\n  FIELDS:\n  - TITLE: UID\n"
    text = f"[DOCUMENT]\nTITLE: D\n{grammar}[DOCUMENT_FROM_FILE]\nFILE: b.sdoc\n"
    assert values(text) == [{"element": "DOCUMENT", "TITLE": "D"}]


def test_a_composite_is_above_what_it_encloses_until_it_ends() -> None:
    inner = "[REQUIREMENT]\nUID: {0}\n[[/SECTION]]\n"
    text = f"[[C]]\nUID: P\n[[SECTION]]\n{inner.format('A')}[[/C]]\n[REQUIREMENT]\nUID: B\n"
    assert {one["UID"]: one.get("parent") for one in values(text)} == {"P": None, "A": "P", "B": None}


@given(st.text(alphabet="[]/ABTEXT:>< -\nn", max_size=200))
def test_any_text_is_read_as_strictdoc(text: str) -> None:
    for one in strictdoc.entries(text).entries:
        assert one.tree.places[id(one.values)].keys() == one.values.keys()


XML = '<?xml version="1.0"?>{}<REQ-IF><CORE-CONTENT><REQ-IF-CONTENT>{}</REQ-IF-CONTENT></CORE-CONTENT></REQ-IF>'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (XML.format('<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]>', "&b;"), "document type"),
        (XML.format('<!DOCTYPE x SYSTEM "file:///etc/passwd">', ""), "document type"),
        (XML.format("", "<a>" * 5000 + "</a>" * 5000), "nested"),
        ("<html/>", "`html`"),
        ("<REQ-IF/>", "REQ-IF-CONTENT"),
        ("no xml", "no XML"),
        ("", "no XML"),
        ('<?xml version="1.0" encoding="odd"?><REQ-IF/>', "decoded"),
    ],
)
def test_hostile_and_broken_xml_is_refused(text: str, message: str) -> None:
    found = read("a.reqif", text, profile="reqif")
    assert codes(found) == ["invalid_reqif"]
    assert message in found.problems[0].message
    assert not found.is_complete


def test_relations_to_objects_of_other_files_are_by_their_identifiers() -> None:
    content = (
        '<SPEC-OBJECTS><SPEC-OBJECT IDENTIFIER="_a" LONG-NAME="A"/></SPEC-OBJECTS><SPEC-RELATIONS>'
        '<SPEC-RELATION IDENTIFIER="_r"><SOURCE><SPEC-OBJECT-REF>_a</SPEC-OBJECT-REF></SOURCE>'
        "<TARGET><SPEC-OBJECT-REF>_b</SPEC-OBJECT-REF></TARGET></SPEC-RELATION></SPEC-RELATIONS>"
    )
    found = read("a.reqif", XML.format("", content), profile="reqif")
    assert [(one.subject, one.target) for one in found.links] == [("_a", "_b")]


def test_a_file_without_objects_is_passed_over_with_a_note() -> None:
    assert codes(read("a.reqif", XML.format("", ""), profile="reqif")) == ["passed_over"]
    assert codes(read("tables/a.csv", "id,title\n", profile="table")) == ["passed_over"]


@given(st.binary(max_size=100))
def test_any_bytes_are_read_as_reqif(data: bytes) -> None:
    assert reqif.entries(data).entries == []


PIECES = [
    *(
        "---\n",
        "# ",
        "## ",
        "- ",
        "* ",
        "1. ",
        "  ",
        "\n",
        "\n\n",
        ": ",
        "Status",
        "id",
        "**",
        "_",
        "`",
        "[",
        "](a.md)",
        "{",
        "}",
    ),
    *(
        "superseded by ",
        "FR-001",
        "T001 [P] ",
        "WHEN ",
        "req~a~1",
        "Covers:",
        "::",
        ".. req::",
        "===\n",
        "[ ] ",
        "[x] ",
        ",",
        ";",
    ),
    *(
        '"',
        "'",
        "null",
        "1",
        "é",
        "\x00",
        "\t",
        "[[",
        "]]",
        "<",
        ">",
        "&",
        "|",
        "[REQUIREMENT]\n",
        "UID: ",
        ">>>\n",
        "<<<\n",
    ),
]


@pytest.mark.parametrize("name", profiles.NAMES)
@settings(max_examples=tries(15, 40))
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=40), ending=st.sampled_from(sorted(ENDINGS)))
def test_no_text_breaks_a_profile(name: str, pieces: list[str], ending: str) -> None:
    found = read(f"specs/001-a/x{ending}", "".join(pieces), profile=name)
    assert all(one.id and one.type for one in found.entities)
    assert found.entities or found.problems


def test_directives_count_in_each_other_and_not_in_code_literals_and_comments():
    text = """Title
=====

.. req:: Outer
   :id: R-1

   Text of it.

   .. req:: Inner
      :id: R-2

   .. code-block:: rst

      .. req:: Shown
         :id: R-6

.. grid:: 2

   .. grid-item::

      .. req:: Deep
         :id: R-3

For example::

   .. req:: Shown too
      :id: R-7

.. a comment

   .. req:: Hidden
      :id: R-8
"""
    rules = {"glob": "*.rst", "items": {"directive": ["req"]}, "type": "req", "id": "{id}"}
    found = EXTRACTOR.extract(SourceFile("a.rst", text.encode()), rules)
    assert [(one.id, one.fields["title"]) for one in found.entities] == [
        ("R-1", "Outer"), ("R-2", "Inner"), ("R-3", "Deep"),
    ]  # fmt: skip
    assert not found.problems
