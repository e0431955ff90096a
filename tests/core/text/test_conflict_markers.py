"""Conflicts that a git merge left in a document: recognized by its lines, and read from neither side."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract import gherkin, manifest, markdown
from kbcore.extract.facts import SourceFile
from kbcore.text.conflict_markers import without_conflicts

OURS = "<<<<<<< HEAD\n"
MIDDLE = "=======\n"
THEIRS = ">>>>>>> feature\n"


def document(text):
    return markdown.EXTRACTOR.extract(SourceFile("docs/requirements/a.md", text.encode(), "req"), {})


def problems_of(facts):
    return [(problem.line, problem.code) for problem in facts.problems]


def test_around_a_conflict_in_front_matter_everything_is_read_and_of_its_sides_nothing():
    facts = document(f"---\nid: A\n{OURS}title: x\n{MIDDLE}title: y\n{THEIRS}status: open\n---\n# Heading\n")

    (entity,) = facts.entities
    assert entity.fields == {"status": "open", "text_ref": "docs/requirements/a.md"}
    assert entity.lines["status"] == 8
    assert problems_of(facts) == [(3, "merge_conflict")]
    assert "lines 3 to 7" in facts.problems[0].message
    assert "<<<<<<<" in facts.problems[0].hint
    assert not facts.is_complete


def test_above_a_conflict_in_the_body_the_title_is_read():
    facts = document(f"---\nid: A\n---\n# One\n{OURS}a\n||||||| base\n{MIDDLE}b\n{THEIRS}- Status: done\n")

    assert facts.entities[0].fields["title"] == "One"
    assert "status" not in facts.entities[0].fields
    assert problems_of(facts) == [(5, "merge_conflict")]


@pytest.mark.parametrize(
    "text",
    [
        f"---\n{OURS}id: A\n{MIDDLE}id: B\n{THEIRS}---\n# T\n",
        f"{OURS}---\nid: A\n---\n{MIDDLE}---\nid: B\n---\n{THEIRS}",
        f"---\n{OURS}id: A\n---\n# T\n{MIDDLE}id: B\n---\n# U\n{THEIRS}",
    ],
)
def test_an_id_in_a_conflict_is_not_guessed_and_nothing_else_is_said(text):
    facts = markdown.EXTRACTOR.extract(
        SourceFile("docs/requirements/a.md", text.encode(), "req"), {"idFromFilename": True}
    )

    assert facts.entities == ()
    assert [code for _, code in problems_of(facts)] == ["merge_conflict"]
    assert not facts.is_complete


@pytest.mark.parametrize(
    "body",
    [
        f"```\n{OURS}a\n{MIDDLE}b\n{THEIRS}```\n",
        "Heading\n=======\n\n>>>>>>> a quote in a quote\n",
        f"{OURS}{THEIRS}",
        "<<<<<<<x\n=======\n>>>>>>>y\n",
    ],
)
def test_text_about_conflicts_is_no_conflict(body):
    facts = document(f"---\nid: A\ntitle: T\n---\n{body}")

    assert problems_of(facts) == []
    assert facts.is_complete


def test_the_symbols_around_a_conflict_in_a_manifest_are_read():
    text = f"symbols:\n- id: a\n{OURS}- id: b\n{MIDDLE}- id: c\n{THEIRS}- id: d\n"
    facts = manifest.EXTRACTOR.extract(SourceFile("symbols.yaml", text.encode()), {})

    assert [entity.id for entity in facts.entities] == ["a", "d"]
    assert problems_of(facts) == [(3, "merge_conflict")]
    assert not facts.is_complete


def test_of_a_json_manifest_or_a_feature_file_with_a_conflict_only_that_is_reported():
    text = f"Feature: x\n{OURS}a\n{MIDDLE}b\n{THEIRS}".encode()
    for extractor, path in ((manifest.EXTRACTOR, "symbols.json"), (gherkin.EXTRACTOR, "a.feature")):
        facts = extractor.extract(SourceFile(path, text, "scenario"), {})
        assert (facts.entities, problems_of(facts), facts.is_complete) == ((), [(2, "merge_conflict")], False)


LINES = st.lists(st.sampled_from(["<<<<<<< a", "=======", ">>>>>>> b", "```", "~~~", "x"]), max_size=12)


@given(LINES)
def test_what_is_left_holds_no_conflict_and_keeps_its_lines(lines):
    text = "\n".join(lines)
    left, problems = without_conflicts(text)

    assert without_conflicts(left) == (left, ())
    assert left.count("\n") == text.count("\n")
    assert bool(problems) == (left != text)


@pytest.mark.parametrize("size", [7, 8, 11])
def test_a_conflict_of_a_renamed_file_has_longer_signs_of_one_length(size):
    """As git writes them where both sides renamed the file."""
    begin, middle, end = ("<" * size + " HEAD:a.md", "=" * size, ">" * size + " feature:b.md")
    text, problems = without_conflicts("\n".join(["a", begin, "b", "=" * (size + 1), middle, "c", end, "d"]))
    assert (text, len(problems)) == ("a\n\n\n\n\n\n\nd", 1)
    assert without_conflicts("\n".join([begin, middle, f">{end}"]))[1] == ()
