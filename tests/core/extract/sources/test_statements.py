"""Facts of entries of documents by the settings of a source."""

from __future__ import annotations

import io

import pytest
import xlsxwriter

from tests.core.extract.sources.sources import codes, edges, fields, read

EIP = """---
eip: 20
title: Token Standard
type: Standards Track
category: ERC
status: Final
created: 2015-11-19
requires: 155, 165
---

See [EIP-165](./eip-165.md).
"""


def test_front_matter_is_read_by_the_names_that_the_settings_give_to_it() -> None:
    found = read(
        "EIPS/eip-20.md",
        EIP,
        glob="EIPS/*.md",
        type="adr",
        id="eip-{eip}",
        status={"field": "status", "map": {"Final": "accepted"}},
        fields={"created": "attributes.made", "type": "kind", "category": "owner"},
        links={"requires": {"edge": "depends_on", "id": "eip-{value}", "split": ","}},
    )
    assert fields(found) == {
        "eip-20": {
            "type": "adr",
            "title": "Token Standard",
            "status": "accepted",
            "owner": "ERC",
            "attributes.kind": "Standards Track",
            "attributes.made": "2015-11-19",
        }
    }
    assert edges(found) >= {("eip-20", "depends_on", "", "eip-155"), ("eip-20", "depends_on", "", "eip-165")}
    assert [one.target for one in found.links if one.is_path] == ["EIPS/eip-165.md"]
    assert found.is_complete
    assert not found.problems
    assert found.entities[0].lines["status"] == 6


def test_an_edge_with_a_caret_leads_from_the_target() -> None:
    found = read("a.md", "---\nn: 1\nby: 2\n---\n", glob="*.md", type="adr", id="A-{n}", links={"by": "^supersedes"})
    assert edges(found) == {("2", "supersedes", "", "A-1")}


def test_names_of_edges_of_another_tool_are_those_of_kb_in_both_directions() -> None:
    text = "---\nid: R\nvalidates: T-1, T-2\nlinks:\n- {type: Constrains, target: D}\n- constrains: E\n- X\n---\n# R\n"
    found = read(
        "a.md", text, glob="*.md", type="req", id="{id}", edges={"validates": "verified_by", "constrains": "^affects"}
    )
    assert edges(found) == {
        ("R", "verified_by", "", "T-1"),
        ("R", "verified_by", "", "T-2"),
        ("D", "affects", "", "R"),
        ("E", "affects", "", "R"),
        ("R", None, "", "X"),
    }


def test_a_document_without_a_title_has_its_id_as_title_and_a_note() -> None:
    found = read("a.md", "---\nn: 1\n---\n", glob="*.md", type="adr", id="A-{n}")
    assert fields(found) == {"A-1": {"type": "adr", "title": "A-1"}}
    assert [(one.code, one.severity) for one in found.problems] == [("title_is_id", "note")]


@pytest.mark.parametrize(
    ("status", "expected", "noted"),
    [
        ("accepted", "done", []),
        ("ACCEPTED", "done", []),
        ("Accepted on 2020-01-01, by all", "done", []),
        ("*Accepted*", "done", []),
        ("acceptedly", "acceptedly", ["unmapped_value"]),
        ("odd", "odd", ["unmapped_value"]),
    ],
)
def test_a_status_in_prose_is_mapped_by_what_it_begins_with(status: str, expected: str, noted: list[str]) -> None:
    found = read(
        "a.md", f"# T\n\n## Status\n\n{status}\n", glob="*.md", type="adr", id="{file.stem}",
        status={"field": ["status", "section.Status"], "map": {"Accepted": "done"}},
    )  # fmt: skip
    assert found.entities[0].fields["status"] == expected
    assert codes(found) == noted


def test_a_section_about_superseding_states_an_edge() -> None:
    text = "# T\n\n## Status\n\nAccepted\n\nSuperseded by [B](b.md)\n"
    found = read(
        "d/a.md", text, glob="d/*.md", type="adr", id="{file.stem}", status={"field": "section.Status"}, mentions=False
    )
    assert edges(found) == {("d/b.md", "supersedes", "", "a")}


def test_a_type_out_of_a_field_that_is_not_mapped_is_the_default_with_a_note() -> None:
    entry = {"glob": "*.md", "id": "{n}", "type": {"field": "kind", "map": {"Test": "test"}, "default": "req"}}
    assert [one.type for one in read("a.md", "---\nn: 1\nkind: test\n---\n# T\n", **entry).entities] == ["test"]
    found = read("a.md", "---\nn: 1\nkind: other\n---\n# T\n", **entry)
    assert ([one.type for one in found.entities], codes(found)) == (["req"], ["unmapped_value"])


def test_an_entry_without_what_the_id_needs_is_a_problem_that_names_the_key() -> None:
    found = read("a.md", "---\nm: 1\n---\n# T\n", glob="*.md", type="req", id="R-{n}")
    assert [(one.code, "`n`" in one.message) for one in found.problems] == [("missing_id", True)]
    assert found.unidentified == ("",)


def test_a_readme_without_an_id_is_passed_over() -> None:
    found = read("README.md", "# About\n", glob="*.md", type="req", id="R-{n}")
    assert [(one.code, one.severity) for one in found.problems] == [("passed_over", "note")]


HEADINGS = """# Requirements

## REQ-1 Log in
Status: open
Owner: ann

The user logs in.

### Note
More.

## About
Nothing.

## REQ-2 Log out
"""


def test_headings_with_ids_are_entities_with_their_own_fields() -> None:
    found = read(
        "r.md", HEADINGS, glob="*.md", items={"heading": "{key:w} {title}"}, type="req", id="{key}", title="title",
        fields={"text": "text"},
    )  # fmt: skip
    assert fields(found) == {
        "REQ-1": {
            "type": "req",
            "title": "Log in",
            "status": "open",
            "owner": "ann",
            "attributes.text": "The user logs in.",
        },
        "REQ-2": {"type": "req", "title": "Log out"},
    }
    assert [one.line for one in found.entities] == [3, 15]


def test_lines_with_ids_are_entities() -> None:
    text = "## Requirements\n- **FR-001**: System MUST log in\n  - Priority: must\n- other\n\n## Out\n- **FR-2**: x\n"
    found = read(
        "specs/1-a/spec.md", text, glob="specs/{folder}/spec.md", type="req", id="{folder}/{key}", title="text",
        items={"line": "**{key:w}**: {text}", "under": "Requirements"},
    )  # fmt: skip
    assert fields(found) == {
        "1-a/FR-001": {"type": "req", "title": "System MUST log in", "priority": "must"},
    }


def test_directives_of_restructuredtext_are_entities() -> None:
    text = """Title
=====

.. req:: Log in
   :id: R_1
   :status: open
   :links: R_2, R_3

   Text of it.

End.
"""
    found = read(
        "docs/i.rst", text, glob="docs/*.rst", items={"directive": ["req", "spec"]}, type="req", id="{id}",
        links={"links": {"edge": "relates_to", "kind": "links", "split": ","}}, fields={"text": "text"},
    )  # fmt: skip
    assert fields(found) == {
        "R_1": {"type": "req", "title": "Log in", "status": "open", "attributes.text": "Text of it."}
    }
    assert edges(found) == {("R_1", "relates_to", "links", "R_2"), ("R_1", "relates_to", "links", "R_3")}


def test_the_header_of_a_proposal_in_restructuredtext_is_read() -> None:
    text = """PEP: 8
Title: Style Guide
Author: A <a@x.org>,
        B <b@x.org>
Status: Active

Introduction
============
"""
    found = read("peps/pep-0008.rst", text, glob="peps/*.rst", type="adr", id="PEP-{pep|04}")
    assert fields(found)["PEP-0008"]["title"] == "Style Guide"
    assert fields(found)["PEP-0008"]["attributes.Author"] == "A <a@x.org>, B <b@x.org>"


def test_the_header_of_asciidoc_is_read() -> None:
    found = read("a.adoc", "= Use x\n:status: accepted\n:n: 4\n\n== Context\n", glob="*.adoc", type="adr", id="A-{n}")
    assert fields(found) == {"A-4": {"type": "adr", "title": "Use x", "status": "accepted"}}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("n.json", '{"needs": [\n{"id": "A", "title": "T", "to": ["B"]}\n]}'),
        ("n.yaml", "needs:\n- {id: A, title: T, to: [B]}\n"),
        ("n.toml", '[[needs]]\nid = "A"\ntitle = "T"\nto = ["B"]\n'),
    ],
)
def test_items_of_a_list_are_entities(path: str, text: str) -> None:
    found = read(path, text, glob="n.*", items="$.needs[*]", type="req", id="{id}", links={"to": "relates_to"})
    assert fields(found) == {"A": {"type": "req", "title": "T"}}
    assert edges(found) == {("A", "relates_to", "link", "B")}
    assert found.entities[0].line in {1, 2}


def test_members_of_an_object_are_entities_by_their_keys() -> None:
    text = '{"current": "2", "versions": {"1": {"x": {"t": "old"}}, "2": {"A": {"t": "new"}, "B": {"t": "b"}}}}'
    found = read("n.json", text, glob="*.json", items="$.versions[$.current].*", type="req", id="{key}", title="t")
    assert {key: one["title"] for key, one in fields(found).items()} == {"A": "new", "B": "b"}


def test_each_document_of_a_yaml_file_is_an_entity_and_dots_lead_into_it() -> None:
    text = """kind: Component
metadata: {name: a}
spec: {owner: team, dependsOn: ['component:b']}
---
kind: API
metadata:
  name: b
"""
    found = read(
        "catalog-info.yaml", text, glob="**/catalog-info.yaml", type="component", id="{kind|lower}:{metadata.name}",
        title="metadata.name", fields={"spec.owner": "owner"}, links={"spec.dependsOn": "relates_to"},
        otherFields=False,
    )  # fmt: skip
    assert fields(found) == {
        "component:a": {"type": "component", "title": "a", "owner": "team"},
        "api:b": {"type": "component", "title": "b"},
    }
    assert [one.line for one in found.entities] == [1, 5]
    assert edges(found) == {("component:a", "relates_to", "link", "component:b")}


def test_rows_of_a_table_are_entities_and_a_repeated_column_is_a_list() -> None:
    text = 'Issue key;Summary;Labels;Labels\nA-1;"Log\nin";x;y\nA-2;Out;;\n'
    found = read("i.csv", text, glob="*.csv", type="req", id="{Issue key}", title="Summary", tags="Labels")
    assert fields(found) == {
        "A-1": {"type": "req", "title": "Log in", "tags": ["x", "y"]},
        "A-2": {"type": "req", "title": "Out"},
    }
    assert [one.line for one in found.entities] == [2, 4]


def test_a_row_that_cannot_be_read_keeps_those_before_it() -> None:
    found = read("i.csv", 'n,t\n1,a\n2,"b\n', glob="*.csv", type="req", id="R-{n}", title="t")
    assert ([*fields(found)], codes(found), found.is_complete) == (["R-1"], ["invalid_csv"], False)


def test_a_sheet_of_a_workbook_is_read() -> None:
    data = io.BytesIO()
    with xlsxwriter.Workbook(data) as book:
        book.add_worksheet("About")
        sheet = book.add_worksheet("Reqs")
        for row, cells in enumerate([("id", "title", "n"), ("R-1", "Log in", 3)]):
            sheet.write_row(row, 0, cells)
    found = read("r.xlsx", data.getvalue(), glob="*.xlsx", sheet="Reqs", type="req", id="{id}")
    assert fields(found) == {"R-1": {"type": "req", "title": "Log in", "attributes.n": "3"}}
    assert codes(read("r.xlsx", data.getvalue(), glob="*.xlsx", sheet="None", type="req", id="{id}")) == ["no_sheet"]
    assert codes(read("r.xlsx", b"no", glob="*.xlsx", type="req", id="{id}")) == ["invalid_xlsx"]


def test_a_repeated_id_of_a_file_counts_once_and_is_named() -> None:
    found = read("i.csv", "n,t\n1,a\n1,b\n", glob="*.csv", type="req", id="R-{n}", title="t")
    assert (fields(found)["R-1"]["title"], codes(found)) == ("a", ["repeated_id"])


def test_a_value_that_cannot_be_a_field_leaves_the_rest_of_the_entity() -> None:
    found = read(
        "a.md", "---\nn: 1\ndate: never\n---\n# T\n", glob="*.md", type="adr", id="A-{n}", fields={"date": "created_at"}
    )
    assert (fields(found)["A-1"]["title"], [(one.code, one.severity) for one in found.problems]) == (
        "T",
        [("bad_time", "warning")],
    )
    assert found.is_complete


def test_a_part_of_a_file_is_linked_to_the_whole_and_to_what_is_above_it() -> None:
    text = "# Auth\n### Requirement: Two factors\n#### Scenario: Wrong code\n### Requirement: End\n"
    found = read("openspec/specs/auth/spec.md", text, profile="openspec")
    assert {one.id: one.type for one in found.entities} == {
        "spec/auth": "component",
        "spec/auth/two-factors": "req",
        "spec/auth/end": "req",
        "spec/auth/two-factors/wrong-code": "scenario",
    }
    assert ("spec/auth/two-factors", "specified_by", "", "spec/auth/two-factors/wrong-code") in edges(found)
    assert ("spec/auth/end", "relates_to", "part-of", "spec/auth") in edges(found)


def test_a_file_with_conflict_markers_is_read_in_part() -> None:
    text = "---\nn: 1\n---\n# T\n<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n"
    found = read("a.md", text, glob="*.md", type="adr", id="A-{n}")
    assert ([*fields(found)], found.is_complete, codes(found)) == (["A-1"], False, ["merge_conflict"])


def test_the_first_of_several_rules_of_a_link_that_fits_a_piece_counts() -> None:
    rules = [
        {"edge": "depends_on", "match": "needs {id:w}", "id": "R-{id}"},
        {"edge": "^depends_on", "match": "helps {id:w}", "id": "R-{id}"},
        {"edge": "relates_to", "kind": "other", "match": "{id:w}", "id": "R-{id}"},
    ]
    text = "---\nn: 1\nto: [needs 2, helps 3, 4, what is this]\n---\n# T\n"
    found = read("a.md", text, glob="*.md", type="req", id="R-{n}", links={"to": rules})
    assert edges(found) == {
        ("R-1", "depends_on", "", "R-2"),
        ("R-3", "depends_on", "", "R-1"),
        ("R-1", "relates_to", "other", "R-4"),
    }
    assert codes(found) == ["unmatched_link"]


def test_members_of_an_object_choose_its_rule_and_fill_its_templates() -> None:
    text = """{"id": "A", "to": [
        {"type": "Parent", "is": "B", "role": "Refines"}, {"type": "Child", "is": "C"}, {"type": "File", "is": "d.c"},
        {"type": "Made", "space": "x", "name": "D"}]}"""
    rules = [
        {"edge": "relates_to", "kind": ["{role|lower}", "parent"], "member": "is", "where": {"type": "parent"}},
        {"edge": "^relates_to", "kind": ["{role|lower}", "parent"], "member": "is", "where": {"type": "child"}},
        {"edge": "relates_to", "kind": "made", "id": "{space}/{name}", "where": {"type": "Made"}},
    ]
    found = read("a.json", text, glob="*.json", type="req", id="{id}", links={"to": rules}, otherFields=False)
    assert edges(found) == {
        ("A", "relates_to", "refines", "B"),
        ("C", "relates_to", "parent", "A"),
        ("A", "relates_to", "made", "x/D"),
    }
    assert codes(found) == ["title_is_id"]


def test_a_template_of_an_object_takes_no_value_of_the_entity_that_has_it() -> None:
    text = '{"id": "A", "key": "K", "title": "T", "to": [{"id": "B"}, {"id": "C", "key": "L"}]}'
    found = read(
        "a.json",
        text,
        glob="*.json",
        type="req",
        id="{key}",
        links={"to": {"edge": "depends_on", "id": ["{key}", "{id}"]}},
    )
    assert edges(found) == {("K", "depends_on", "", "B"), ("K", "depends_on", "", "L")}


def test_the_name_of_an_edge_out_of_a_document_is_an_edge_or_else_a_kind() -> None:
    text = '{"id": "A", "title": "T", "to": [{"edge": "depends_on", "id": "B"}, {"edge": "feeds", "id": "C"}]}'
    found = read(
        "a.json", text, glob="*.json", type="req", id="{id}", links={"to": {"edge": "{edge}", "member": "id"}},
        otherFields=False,
    )  # fmt: skip
    assert edges(found) == {("A", "depends_on", "", "B"), ("A", "relates_to", "feeds", "C")}


def test_a_name_of_links_with_a_placeholder_means_every_key_that_fits_it() -> None:
    text = "n,t,Out (Blocks),Out (Is like),Out\n1,T,R-2,R-3,x\n"
    found = read(
        "a.csv", text, glob="*.csv", type="req", id="R-{n}", title="t",
        links={"Out ({name})": {"edge": "relates_to", "kind": "{name|slug}"}},
    )  # fmt: skip
    assert edges(found) == {("R-1", "relates_to", "blocks", "R-2"), ("R-1", "relates_to", "is-like", "R-3")}
    assert fields(found)["R-1"]["attributes.Out"] == "x"


def test_each_line_of_a_section_is_a_piece_and_prose_among_them_states_nothing() -> None:
    text = "# T\n\n## Links\n\n- Refines [b](b.md)\n- nothing of that kind\n- Refined by C\n"
    rules = [
        {"edge": "relates_to", "kind": "refines", "match": "Refines {value}", "id": "{value}"},
        {"edge": "^relates_to", "kind": "refines", "match": "Refined by {value}", "id": "{value}"},
    ]
    found = read(
        "d/a.md", text, glob="d/*.md", type="adr", id="{file.stem}", links={"section.Links": rules}, mentions=False
    )
    assert edges(found) == {("a", "relates_to", "refines", "d/b.md"), ("C", "relates_to", "refines", "a")}
    assert not found.problems


def test_dots_lead_into_each_object_of_a_list_and_texts_are_joined_where_one_is_wanted() -> None:
    text = (
        '{"n": 1, "title": "T", "labels": [{"name": "a"}, {"name": "b"}], "people": [{"login": "x"}, {"login": "y"}]}'
    )
    found = read(
        "a.json", text, glob="*.json", type="req", id="R-{n}", tags="labels.name", fields={"people.login": "owner"}
    )
    assert fields(found) == {"R-1": {"type": "req", "title": "T", "tags": ["a", "b"], "owner": "x, y"}}


TASKS = """# Plan

- [x] 1. Begin
  - some text
  - _Requires: A, B_
- [ ] 1.1 Go on
  - _Requires: C_

1. WHEN it ends
"""


def test_a_line_has_its_number_its_box_and_the_keys_that_are_indented_below_it() -> None:
    found = read(
        "t.md", TASKS, glob="*.md", items={"line": ["{a:d}. {name}", "{a:d}.{b:d} {name}"]}, type="task",
        id=["T{a}.{b}", "T{a}"], title="name", status={"field": "checkbox", "map": {"checked": "done"}},
        links={"Requires": {"edge": "relates_to", "kind": "requires", "split": ","}}, otherFields=False,
    )  # fmt: skip
    assert {key: (one["title"], one["status"]) for key, one in fields(found).items()} == {
        "T1": ("Begin", "done"),
        "T1.1": ("Go on", "unchecked"),
    }
    assert edges(found) == {
        ("T1", "relates_to", "requires", "A"),
        ("T1", "relates_to", "requires", "B"),
        ("T1.1", "relates_to", "requires", "C"),
    }
    found = read("t.md", TASKS, glob="*.md", items={"line": "WHEN {x}"}, type="req", id="C{ordinal}", title="text")
    assert fields(found) == {"C1": {"type": "req", "title": "WHEN it ends"}}


def test_an_item_of_a_section_goes_to_the_next_item_or_heading() -> None:
    text = """## Log in
`req~log-in~2`

With a key.

Covers:

* `feat~a~1`
* feat~b~1

Needs: dsn

## Log out
`req~log-out~1`
"""
    found = read(
        "s.md", text, glob="*.md", items={"line": "`{kind:w}~{name:w}~{_:d}`", "extent": "section"}, type="req",
        id="{kind}~{name}", title="heading", fields={"text": "text"},
        links={"Covers": {"edge": "relates_to", "kind": "covers", "match": "{x:w}~{y:w}~{_:d}", "id": "{x}~{y}"}},
    )  # fmt: skip
    assert fields(found) == {
        "req~log-in": {"type": "req", "title": "Log in", "attributes.text": "With a key.", "attributes.Needs": "dsn"},
        "req~log-out": {"type": "req", "title": "Log out"},
    }
    assert edges(found) == {
        ("req~log-in", "relates_to", "covers", "feat~a"),
        ("req~log-in", "relates_to", "covers", "feat~b"),
    }


def test_a_file_without_items_is_passed_over_with_a_note() -> None:
    found = read("a.md", "# About\n", glob="*.md", items={"heading": "REQ-{n:d}"}, type="req", id="REQ-{n}")
    assert [(one.code, one.severity) for one in found.problems] == [("passed_over", "note")]


def test_the_first_key_of_a_field_counts_and_keys_may_state_nothing() -> None:
    text = (
        '{"id": "A", "title": "T", "new": "", "old": " x\\n", "b_back": ["C"], "key": "A", "e": [], "f": {}, "g": ""}'
    )
    found = read(
        "a.json", text, glob="*.json", type="req", id="{id}", links={"{kind}_back": "relates_to"},
        fields={"newest": "text", "old": "text", "new": "text", "{_}_back": None, "key": "other_id"},
    )  # fmt: skip
    assert fields(found) == {"A": {"type": "req", "title": "T", "attributes.text": "x"}}
    assert not found.links
    assert not found.problems


def test_a_record_with_a_field_named_key_has_its_own() -> None:
    text = '{"issues": [{"key": "S-1", "title": "A"}, {"key": "S-2", "title": "B"}]}'
    found = read("m.json", text, glob="*.json", items="$.issues[*]", type="req", id="{key}")
    assert [*fields(found)] == ["S-1", "S-2"]


def test_cells_beyond_the_first_row_are_named() -> None:
    found = read("i.csv", "n,t\n1,a,b\n", glob="*.csv", type="req", id="R-{n}", title="t")
    assert (fields(found)["R-1"]["title"], codes(found)) == ("a", ["more_cells"])


def test_lines_are_items_of_the_heading_above_them() -> None:
    text = "# A\n- **R1**: x\n# B\n- **R2**: y\n- **R3**: z\n"
    found = read("a.md", text, glob="*.md", type="req", id="{k}", title="heading", items={"line": "**{k:w}**: {t}"})
    assert {key: one["title"] for key, one in fields(found).items()} == {"R1": "A", "R2": "B", "R3": "B"}
