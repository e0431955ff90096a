"""One Markdown document gives one entity, a problem or a note; never silence, never a guessed id."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.facts import SourceFile
from kbcore.extract.markdown import EXTRACTOR

PATH = "docs/requirements/login.md"


def extract(text, *, path=PATH, type="req", **settings):  # noqa: A002 - the name of the field
    data = text if isinstance(text, bytes) else text.encode()
    return EXTRACTOR.extract(SourceFile(path, data, type), settings)


def entity(text, **more):
    facts = extract(text, **more)
    assert [problem for problem in facts.problems if problem.severity != "note"] == []
    assert facts.is_complete
    (found,) = facts.entities
    return found


def front(*lines):
    return "\n".join(["---", "id: REQ-1", "title: T", *lines, "---", "Body", ""])


def fields(*lines, **more):
    stated = dict(entity(front(*lines), **more).fields)
    del stated["title"], stated["text_ref"]
    return stated


def faults(facts):
    return [(problem.line, problem.code) for problem in facts.problems]


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


def test_attributes_and_metadata_are_taken_apart():
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


@pytest.mark.parametrize("key", ["k" * (limits.MAX_NAME_CHARS + 1)])
def test_a_key_that_is_too_long_is_a_problem(key):
    assert faults(extract(front(f"{key}: x"))) == [(4, "bad_name")]


def test_an_escaped_nul_is_a_problem():
    assert faults(extract(front('note: "a\\0b"', 'owner: "a\\0b"'))) == [(4, "bad_text"), (5, "bad_text")]


def test_the_same_attribute_stated_twice_is_a_problem_unless_it_is_the_same():
    facts = extract(front("kind: a", "attributes: {kind: b, other: c}", "other: c"))

    assert faults(facts) == [(5, "duplicate_key")]
    assert facts.entities[0].fields["attributes.kind"] == "a"


def test_a_duplicate_key_is_a_problem_with_both_lines():
    facts = extract(front("status: open", "status: closed"))

    assert faults(facts) == [(5, "duplicate_key")]
    assert facts.entities[0].fields["status"] == "open"
    assert not facts.is_complete


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


def test_an_id_that_may_stand_in_unreadable_yaml_is_not_taken_from_the_file_name():
    facts = extract("---\nid: 'REQ-1\ntitle: T\n---\n", idFromFilename=True)

    assert facts.entities == ()
    assert [code for _, code in faults(facts)] == ["invalid_yaml"]


@pytest.mark.parametrize("line", ['title: "T', "title: [T", "Title: {T", "name: [T"])
def test_a_title_that_may_stand_in_unreadable_yaml_is_not_said_to_be_absent(line):
    facts = extract(f"---\nid: REQ-1\n{line}\nstatus: open\n---\n", keys={"name": "title"})

    assert facts.entities[0].id == "REQ-1"
    assert faults(facts) == [(3, "invalid_yaml")]
    for other in ("status", "title-note"):
        facts = extract(f"---\nid: REQ-1\n{other}: [open\n---\n")
        assert faults(facts) == [(3, "invalid_yaml"), (2, "missing_title")]


def test_a_title_that_is_no_text_is_told_as_that_alone():
    assert faults(extract("---\nid: REQ-1\ntitle: [a, b]\n---\n")) == [(3, "wrong_shape")]


@pytest.mark.parametrize("line", ["id: [a]", "id: {a: b}"])
def test_an_id_that_is_no_text_is_a_problem(line):
    assert faults(extract(f"---\ntitle: T\n{line}\n---\n")) == [(3, "wrong_shape")]


@pytest.mark.parametrize("typed", ["' a'", '"a\\tb"', "x" * (limits.MAX_ID_CHARS + 1)])
def test_an_id_that_cannot_be_one_is_a_problem(typed):
    assert faults(extract(f"---\ntitle: T\nid: {typed}\n---\n")) == [(3, "bad_id")]


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


def test_a_document_without_a_title_is_a_problem_but_its_facts_are_taken():
    facts = extract("---\nid: A\nstatus: open\n---\nBody\n")

    assert faults(facts) == [(2, "missing_title")]
    assert facts.entities[0].fields["status"] == "open"


def test_yaml_that_fails_is_read_as_far_as_it_can_be():
    facts = extract("---\nid: REQ-1\ntitle: Login: the start\nassignee: @ann\ntags: [a, b\nstatus: open\n---\n")

    assert faults(facts) == [(3, "invalid_yaml"), (4, "invalid_yaml"), (5, "invalid_yaml")]
    assert facts.problems[1].column == 11
    assert not facts.is_complete
    (found,) = facts.entities
    assert found.fields == {
        "title": "Login: the start",
        "attributes.assignee": "@ann",
        "status": "open",
        "text_ref": PATH,
    }


def test_a_list_of_which_an_item_is_lost_is_not_stated():
    facts = extract(
        front("tags:", "  - [x", "  - y", "notes:", "  - 'z", "  - w", "depends_on:", "  - REQ-2", "  - {a")
    )

    assert set(facts.entities[0].fields) == {"title", "text_ref"}
    assert [link.target for link in facts.links] == ["REQ-2"]


def test_unclosed_front_matter_is_a_problem_and_is_read():
    facts = extract("---\nid: REQ-1\ntitle: T\n\n# Heading\n")

    assert faults(facts) == [(1, "unclosed_front_matter")]
    assert facts.entities[0].id == "REQ-1"
    assert not facts.is_complete


def test_front_matter_that_is_too_large_is_a_problem():
    facts = extract("---\nid: A\nnote: " + "x" * limits.MAX_FRONT_MATTER_BYTES + "\n---\n# T\n")

    assert facts.entities == ()
    assert ("too_long", False) in [(code, facts.is_complete) for _, code in faults(facts)]


def test_a_wrong_encoding_is_a_problem():
    facts = extract("---\nid: A\ntitle: Stra\xdfe\n---\n".encode("latin-1"))

    assert faults(facts) == [(3, "wrong_encoding")]
    assert not facts.is_complete


def test_carriage_returns_change_nothing():
    text = front("status: open", "note: |", "  one", "  two")

    assert extract(text.replace("\n", "\r\n")) == extract(text)


def test_a_byte_order_mark_is_only_a_note():
    facts = extract(b"\xef\xbb\xbf" + front().encode())

    assert [(problem.code, problem.severity) for problem in facts.problems] == [("byte_order_mark", "note")]
    assert facts.entities[0].id == "REQ-1"
    assert facts.is_complete


def test_the_number_of_problems_of_one_file_is_limited():
    facts = extract(front(*(f"k{n}: @x" for n in range(limits.MAX_PROBLEMS + 50))))

    assert len(facts.problems) == limits.MAX_PROBLEMS + 1
    assert facts.problems[-1].code == "more_problems"
    assert "50" in facts.problems[-1].message


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


@example(b"title", False)  # a line that names a field and is no YAML: it is not also said to be missing
@given(
    st.binary(max_size=200) | st.text(alphabet="-:#[]{}'\"\\&*!|>@ \n\tidlnkstae01/.", max_size=200).map(str.encode),
    st.booleans(),
)
def test_whatever_a_file_holds_it_gives_an_entity_a_problem_or_a_note(data, from_name):
    for prefix in (b"", b"---\n", b"---\nid: A\n"):
        facts = extract(prefix + data, idFromFilename=from_name)
        last_line = (prefix + data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").count(b"\n") + 1

        assert facts.entities or facts.problems
        assert facts.is_complete or any(problem.severity == "error" for problem in facts.problems)
        for problem in facts.problems:
            assert 0 <= problem.line <= last_line
        for found in facts.entities:
            unreadable = found.lines.keys() - found.fields.keys()
            assert found.fields.keys() <= found.lines.keys()
            assert not unreadable or (unreadable == {"title"} and not facts.is_complete)
            assert all(1 <= line <= last_line for line in found.lines.values())
        for link in facts.links:
            assert 1 <= link.line <= last_line


def test_front_matter_that_is_a_list_is_a_problem_even_where_the_file_name_gives_the_id():
    facts = extract("---\n- a\n---\n# T\n", idFromFilename=True)

    assert [code for _, code in faults(facts)] == ["wrong_shape", "id_from_file_name"]
    assert facts.entities[0].fields["title"] == "T"
    assert not facts.is_complete


def test_a_text_ref_and_a_url_that_lead_astray_are_left_out_with_a_warning_and_the_rest_is_kept():
    facts = extract(front("text_ref: ../x.md", "links: ['javascript://x/%0aalert(1)', 'https://example.org']"))
    assert facts.is_complete
    assert {(one.severity, one.code, one.line) for one in facts.problems} == {
        ("warning", "bad_path", 4),
        ("warning", "bad_url", 5),
    }
    (found,) = facts.entities
    assert (found.fields["text_ref"], found.fields["links"]) == (PATH, ["https://example.org"])


SECOND = "---\nid: REQ-1\ntitle: T\n---\n\n# T\n\n---\nid: REQ-2\ntags:\n- a\n---\ntext\n"


def test_a_second_block_of_front_matter_is_named_with_its_lines():
    facts = extract(SECOND)
    assert [one.id for one in facts.entities] == ["REQ-1"]
    [problem] = facts.problems
    assert (problem.code, problem.severity, problem.line) == ("second_front_matter", "warning", 8)
    assert "lines 8 to 12" in problem.message
    assert faults(extract("---\nid: REQ-1\ntitle: T\n---\n---\nid: REQ-2\n---\n")) == [(5, "second_front_matter")]


@pytest.mark.parametrize("line", ["owner: Ann", "priority: must", "severity: high", "tags: [a]", "links:\n- A"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_second_block_is_named_whatever_field_of_an_entity_it_states(line, newline):
    text = f"---\nid: REQ-1\ntitle: T\n---\n\n# T\n\n---\n{line}\n---\n".replace("\n", newline)
    assert faults(extract(text)) == [(8, "second_front_matter")]


@pytest.mark.parametrize(
    "body",
    [
        "```\n---\nid: REQ-2\n---\n```\n",
        "<!--\n---\nid: REQ-2\n---\n-->\n",
        "Text\n---\nid: REQ-2\n---\n",  # a heading
        "---\nNote: a line between two rules\n---\n",
        "---\ntitle: a word and\nprose\n---\n",
        "---\n\ntitle: x\n\n---\n",
        "---\nid: REQ-2\nand no end\n",
    ],
)
def test_rules_headings_and_examples_are_no_second_block(body):
    assert faults(extract(f"---\nid: REQ-1\ntitle: T\n---\n\n{body}")) == []
