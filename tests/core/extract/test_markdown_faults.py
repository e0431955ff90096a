"""Markdown documents with faults: each is a problem with its line, and costs no other fact."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore import limits
from tests.core.extract.documents import PATH, extract, faults, front


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


@pytest.mark.parametrize("line", ["id: [a]", "id: {a: b}"])
def test_an_id_that_is_no_text_is_a_problem(line):
    assert faults(extract(f"---\ntitle: T\n{line}\n---\n")) == [(3, "wrong_shape")]


@pytest.mark.parametrize("typed", ["' a'", '"a\\tb"', "x" * (limits.MAX_ID_CHARS + 1)])
def test_an_id_that_cannot_be_one_is_a_problem(typed):
    assert faults(extract(f"---\ntitle: T\nid: {typed}\n---\n")) == [(3, "bad_id")]


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
