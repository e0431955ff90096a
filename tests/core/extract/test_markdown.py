"""Markdown documents: what front matter and headings state."""

from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.extract.markdown import EXTRACTOR
from tests.core.extract.documents import PATH, extract, faults, front


def entity(text, **more):
    facts = extract(text, **more)
    assert [problem for problem in facts.problems if problem.severity != "note"] == []
    assert facts.is_complete
    (found,) = facts.entities
    return found


def fields(*lines, **more):
    stated = dict(entity(front(*lines), **more).fields)
    del stated["title"], stated["text_ref"]
    return stated


def test_front_matter_states_an_entity_with_the_line_of_each_field():
    text = "---\nid: REQ-1\ntitle: Log in\nstatus: open\npriority: must\nowner: ann\nseverity: high\n---\n# Other\n"
    found = entity(text)

    assert (found.id, found.type, found.line) == ("REQ-1", "req", 2)
    assert found.fields == {
        "title": "Log in",
        "status": "open",
        "priority": "must",
        "owner": "ann",
        "severity": "high",
        "text_ref": PATH,
    }
    assert found.lines["title"] == 3
    assert found.lines["severity"] == 7
    assert set(found.lines) == set(found.fields)


def test_ids_and_values_stay_text():
    found = entity("---\nid: 0023\ntitle: 1.10\nstatus: on\nsince: 2024-01-01\nn: ~\n---\n")

    assert found.id == "0023"
    assert found.fields["title"] == "1.10"
    assert found.fields["status"] == "on"
    assert found.fields["attributes.since"] == "2024-01-01"
    assert found.fields["attributes.n"] == "~"


def test_a_type_in_the_front_matter_goes_before_the_type_of_the_folder():
    assert entity(front("type: gadget")).type == "gadget"


def test_a_document_without_any_type_is_a_problem():
    facts = extract(front(), type=None)

    assert facts.entities == ()
    assert faults(facts) == [(1, "missing_type")]
    assert not facts.is_complete


@pytest.mark.parametrize("line", ["type: [a]", "type: {a: b}", f"type: {'x' * (limits.MAX_NAME_CHARS + 1)}"])
def test_a_type_that_is_no_name_is_a_problem(line):
    assert faults(extract(front(line))) == [(4, "wrong_shape")]


def test_unknown_keys_become_attributes_with_their_structure():
    assert fields("estimate: 3", "steps: [a, b]", "map: {k: {l: 1}}", "requires: 1, 2", "source: talk") == {
        "attributes.estimate": "3",
        "attributes.steps": ["a", "b"],
        "attributes.map": {"k": {"l": "1"}},
        "attributes.requires": "1, 2",
        "attributes.source": "talk",
    }


def test_attributes_and_metadata_are_separated():
    found = entity(front("attributes:", "  kind: functional", "  a.b: 1", "metadata: {confidence: high}"))

    assert found.fields["attributes.kind"] == "functional"
    assert found.fields["attributes.a.b"] == "1"
    assert found.fields["metadata.confidence"] == "high"
    assert found.lines["attributes.a.b"] == 6


def test_an_empty_value_states_nothing():
    assert fields("owner:", "status: ''", "tags:", "links:", "attributes:", "other:", "priority: ' '") == {}


@pytest.mark.parametrize(
    ("line", "tags"),
    [
        ("tags: [a, b c, a]", ["a", "b c"]),
        ("tags: a, b c , d", ["a", "b c", "d"]),
        ("tags: a b", ["a b"]),
        ("tags: [0023, 1.10]", ["0023", "1.10"]),
    ],
)
def test_tags_are_a_list_or_one_text_with_commas(line, tags):
    assert fields(line) == {"tags": tags}


def test_core_keys_are_found_whatever_their_capitals():
    found = entity("---\nID: REQ-1\nTitle: T\nStatus: open\nType: flag\nMyKey: x\n---\n")

    assert (found.id, found.type) == ("REQ-1", "flag")
    assert found.fields["status"] == "open"
    assert found.fields["attributes.MyKey"] == "x"


def test_a_core_key_in_two_spellings_is_not_merged():
    assert fields("status: open", "Status: closed") == {"status": "open", "attributes.Status": "closed"}


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("2024-01-31", "2024-01-31T00:00:00.000000Z"),
        ("2024-01-31T12:00:00+02:00", "2024-01-31T10:00:00.000000Z"),
    ],
)
def test_times_are_rfc_3339_in_utc(typed, expected):
    assert fields(f"created_at: {typed}", f"updated_at: {typed}") == {"created_at": expected, "updated_at": expected}


def test_a_time_that_is_none_is_a_problem():
    facts = extract(front("created_at: last summer"))

    assert faults(facts) == [(4, "bad_time")]
    assert "created_at" not in facts.entities[0].fields


@pytest.mark.parametrize(
    "line",
    [
        "status: [open]",
        "owner: {name: ann}",
        "tags: {a: b}",
        "tags: [[a]]",
        "attributes: x",
        "metadata: [a]",
        "text_ref: [a]",
        "created_at: [a]",
    ],
)
def test_a_value_of_the_wrong_shape_is_a_problem_with_its_line(line):
    facts = extract(front("x: y", line))

    assert faults(facts) == [(5, "wrong_shape")]
    assert not facts.is_complete
    assert facts.entities[0].fields["attributes.x"] == "y"


def test_a_value_beyond_a_limit_is_a_problem_and_is_left_out():
    facts = extract(front(f"note: {'x' * (limits.MAX_TEXT_BYTES + 1)}", f"status: {'y' * (limits.MAX_TEXT_BYTES + 1)}"))

    assert faults(facts) == [(4, "too_long"), (5, "too_long")]
    assert set(facts.entities[0].fields) == {"title", "text_ref"}


def test_too_many_tags_are_a_problem():
    assert faults(extract(front("tags: [" + "".join(f"t{n}, " for n in range(limits.MAX_TAGS + 1)) + "]"))) == [
        (4, "too_long")
    ]


def test_links_and_named_edges_become_links_and_urls_a_field():
    facts = extract(
        front(
            "links:",
            "  - TEST-1",
            "  - https://example.org",
            "  - ../adr/0001-x.md",
            "depends_on: REQ-2, REQ-3",
            "constrains: [FACT-1]",
        ),
        edgeNames=["depends_on", "constrains"],
    )

    assert facts.entities[0].fields["links"] == ["https://example.org"]
    assert [(link.type, link.target, link.is_path, link.line) for link in facts.links] == [
        (None, "TEST-1", False, 5),
        (None, "docs/adr/0001-x.md", True, 7),
        ("depends_on", "REQ-2", False, 8),
        ("depends_on", "REQ-3", False, 8),
        ("constrains", "FACT-1", False, 9),
    ]
    assert {link.subject for link in facts.links} == {"REQ-1"}


def test_the_name_of_an_edge_that_the_schema_lacks_is_an_attribute():
    assert fields("constrains: [FACT-1]", edgeNames=["depends_on"]) == {"attributes.constrains": ["FACT-1"]}


def test_a_bad_link_leaves_the_entity_standing():
    facts = extract(front("links: [../../../x.md, A]"))

    assert faults(facts) == [(4, "bad_link")]
    assert [link.target for link in facts.links] == ["A"]
    assert len(facts.entities) == 1


def test_keys_may_be_given_other_names_in_the_settings():
    names = {"labels": "tags", "dependencies": "depends_on", "type": "kind", "missing": "x"}
    facts = extract(front("labels: [a]", "dependencies: [REQ-2]", "type: bug"), keys=names)

    (found,) = facts.entities
    assert found.type == "req"
    assert found.fields["tags"] == ["a"]
    assert found.fields["attributes.kind"] == "bug"
    assert found.lines["tags"] == 4
    assert [(link.type, link.target) for link in facts.links] == [("depends_on", "REQ-2")]


def test_a_text_ref_may_be_stated():
    assert entity(front("text_ref: docs/big.md#login")).fields["text_ref"] == "docs/big.md#login"


@pytest.mark.parametrize(
    "text", ["# Title\n", "---\ntitle: T\n---\n", "---\nid:\n---\n# T\n", "---\nid: ''\n---\n# T\n"]
)
def test_a_missing_id_is_a_problem_with_its_remedy(text):
    facts = extract(text)

    assert facts.entities == ()
    assert not facts.is_complete
    (problem,) = facts.problems
    assert (problem.line, problem.code) == (1, "missing_id")
    assert "id:" in problem.hint
    assert "idFromFilename" in problem.hint
    assert "'login'" in problem.hint


def test_an_id_from_the_file_name_needs_the_setting_and_is_noted():
    facts = extract("# Log in\n", path="docs/adr/0001-log in.md", idFromFilename=True)

    assert facts.entities[0].id == "0001-log in"
    assert [(problem.code, problem.severity) for problem in facts.problems] == [("id_from_file_name", "note")]
    assert facts.is_complete


def test_a_stated_id_goes_before_the_file_name():
    assert entity(front(), idFromFilename=True).id == "REQ-1"


def test_a_title_that_is_no_text_is_reported_as_that_alone():
    assert faults(extract("---\nid: REQ-1\ntitle: [a, b]\n---\n")) == [(3, "wrong_shape")]


@pytest.mark.parametrize(
    "name", ["README.md", "readme.md", "index.md", "_index.md", "template.md", "adr-template.md", "0000-template.md"]
)
def test_an_index_or_template_without_an_id_is_passed_over_with_a_note(name):
    facts = extract("# Our decisions\n", path=f"docs/adr/{name}", idFromFilename=True)

    assert facts.entities == ()
    assert facts.is_complete
    assert [(problem.code, problem.severity) for problem in facts.problems] == [("passed_over", "note")]


def test_an_index_with_an_id_is_an_entity():
    assert entity(front(), path="docs/requirements/login/README.md").id == "REQ-1"


def test_a_decision_about_templates_is_no_template():
    assert len(extract("# T\n", path="docs/adr/0007-use-a-template.md", idFromFilename=True).entities) == 1


def test_ignored_files_state_nothing_and_say_so():
    facts = extract(front(), ignore=["docs/**/log*.md"])

    assert facts.entities == ()
    assert [problem.code for problem in facts.problems] == ["passed_over"]
    assert facts.is_complete


def test_the_title_comes_from_the_first_heading():
    found = entity("---\nid: A\n---\n\nIntro\n\n# The title #\n\n# Another\n")

    assert found.fields["title"] == "The title"
    assert found.lines["title"] == 7


def test_a_title_may_not_come_from_a_heading_when_the_settings_say_so():
    facts = extract("---\nid: A\n---\n# The title\n", titleFromHeading=False)

    assert faults(facts) == [(2, "missing_title")]
    assert len(facts.entities) == 1
    assert not facts.is_complete


def test_the_default_paths_are_a_folder_for_each_type():
    rules = [(rule.type, rule.glob) for rule in EXTRACTOR.path_rules({})]

    assert ("adr", "docs/adr/**/*.md") in rules
    assert ("adr", "docs/decisions/**/*.md") in rules
    assert {kind for kind, _ in rules} == {"req", "scenario", "test", "adr", "flag", "event"}


def test_paths_in_the_settings_take_the_place_of_the_defaults():
    rules = EXTRACTOR.path_rules({"paths": {"req": ["spec/*.md", "more/**/*.md"], "fact": "facts/*.md"}})

    assert [(rule.type, rule.glob) for rule in rules] == [
        ("req", "spec/*.md"),
        ("req", "more/**/*.md"),
        ("fact", "facts/*.md"),
    ]
