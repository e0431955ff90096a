"""The beginning and the end of front matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.frontmatter import split


def codes(document):
    return [problem.code for problem in document.problems]


@pytest.mark.parametrize("closing", ["---", "...", "---  ", "...\t"])
def test_front_matter_ends_at_three_dashes_or_dots(closing):
    document = split(f"---\nid: A\ntitle: T\n{closing}\n# Body\n")

    assert document.front == "id: A\ntitle: T\n"
    assert document.body == "# Body\n"
    assert document.body_line == 5
    assert document.is_whole
    assert codes(document) == []


def test_a_document_without_front_matter_is_all_body():
    document = split("# Title\n\n---\n\nText\n")

    assert document.front is None
    assert document.body == "# Title\n\n---\n\nText\n"
    assert document.body_line == 1


def test_front_matter_may_be_empty():
    document = split("---\n---\nBody")

    assert document.front == ""
    assert (document.body, document.body_line) == ("Body", 3)


def test_a_line_that_only_begins_with_dashes_closes_nothing():
    document = split("---\nid: A\n----\n--- x\n---\n")

    assert document.front == "id: A\n----\n--- x\n"


@pytest.mark.parametrize("text", ["----\nid: A\n---\n", " ---\nid: A\n---\n", "---x\nid: A\n---\n"])
def test_only_three_dashes_at_the_very_beginning_open_front_matter(text):
    assert split(text).front is None


@pytest.mark.parametrize("before", ["<!-- a comment -->\n", "\n", "<!-- two\nlines -->\n\n"])
def test_front_matter_that_is_not_on_the_first_line_is_none_and_is_warned_of(before):
    document = split(f"{before}---\nid: A\n---\n# T\n")

    assert document.front is None
    assert codes(document) == ["misplaced_front_matter"]
    assert document.problems[0].line == before.count("\n") + 1
    assert document.problems[0].severity == "warning"


@pytest.mark.parametrize(
    "text", ["<!-- c -->\n---\nNo keys here\n---\n", "<!-- c\n---\nid: A\n---\n", "\n---\nid: A\n"]
)
def test_a_rule_across_the_page_is_not_taken_for_front_matter(text):
    assert codes(split(text)) == []


def test_toml_front_matter_is_warned_of():
    assert codes(split("+++\nid = 1\n+++\n")) == ["misplaced_front_matter"]


def test_a_missing_closing_line_is_a_problem_and_the_keys_above_the_body_are_kept():
    document = split("---\nid: A\ntitle: T\n\n# Heading\n")

    assert document.front == "id: A\ntitle: T\n"
    assert document.body_line == 4
    assert not document.is_whole
    (problem,) = document.problems
    assert (problem.code, problem.line) == ("unclosed_front_matter", 1)
    assert "line 3" in problem.hint


def test_unclosed_front_matter_ends_at_a_heading_too():
    document = split("---\nid: A\n# Heading\ntext: x\n")

    assert document.front == "id: A\n"
    assert document.body == "# Heading\ntext: x\n"
    assert document.body_line == 3


def test_front_matter_beyond_the_limit_is_refused():
    document = split("---\nid: " + "x" * limits.MAX_FRONT_MATTER_BYTES + "\n---\nBody\n")

    assert document.front is None
    assert not document.is_whole
    assert codes(document) == ["too_long"]
    assert document.body == "Body\n"


def test_front_matter_within_the_limit_is_measured_in_bytes():
    text = "é" * (limits.MAX_FRONT_MATTER_BYTES // 2 - 10)

    assert split(f"---\nid: {text}\n---\n").front == f"id: {text}\n"


@given(st.text(alphabet="-.a: \n"), st.text(alphabet="-.a# \n"))
def test_no_character_gets_lost(front, body):
    document = split(f"---\n{front}\n---\n{body}")
    pieces = f"{document.front}{document.body}"

    assert document.front is not None
    assert document.body_line == 2 + document.front.count("\n") + (1 if document.is_whole else 0)
    rest = f"---\n{front}\n---\n{body}".replace("\n", "").replace("-", "").replace(".", "").replace(" ", "")
    assert pieces.replace("\n", "").replace("-", "").replace(".", "").replace(" ", "") == rest
