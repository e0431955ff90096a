"""Statements of a document outside of front matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract import prose
from kbcore.extract.facts import SourceFile
from kbcore.extract.markdown import EXTRACTOR


def decision(text, path="docs/adr/0002-new.md"):
    facts = EXTRACTOR.extract(SourceFile(path, text.encode(), "adr"), {"idFromFilename": True})
    assert facts.is_complete
    (found,) = facts.entities
    return found, tuple(link for link in facts.links if not link.in_text)


def title(body):
    found = prose.outline(body, 1, needs_title=True, needs_sections=False)
    return found.title, found.title_line


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("# One\n", ("One", 1)),
        ("\n   # One ##  \n", ("One", 2)),
        ("One\n===\n", ("One", 1)),
        ("text\n\nOne two\n=\n", ("One two", 3)),
        ("## Two\n\n# One\n", ("One", 3)),
        ("## Two\n\n### Three\n", ("Two", 1)),
        ("Two\n---\n", ("Two", 1)),
        ("```\n# code\n```\n# One\n", ("One", 4)),
        ("~~~~ text\n# code\n~~~\n# code\n~~~~\n# One\n", ("One", 6)),
        ("<!-- # no -->\n# One <!-- really -->\n", ("One", 2)),
        ("<!--\n# no\n-->\n# One\n", ("One", 4)),
        ("    # code\n# One\n", ("One", 2)),
        ("#no\n#hash-tag\n# One\n", ("One", 3)),
        ("- item\n---\n# One\n", ("One", 3)),
        ("text\n\n---\n\n# One\n", ("One", 5)),
        ("# C# and F#\n", ("C# and F#", 1)),
        ("# \n# One\n", ("One", 2)),
        ("no heading\n", ("", 0)),
        ("", ("", 0)),
        ("``` `inline`\n# One\n", ("One", 2)),
        ("```\nnever closed\n# no\n", ("", 0)),
    ],
)
def test_the_title_is_the_first_heading_that_is_one(body, expected):
    assert title(body) == expected


@pytest.mark.parametrize("sign", ["- ", "* ", "+ ", "", "- **", "* __"])
def test_lines_of_keys_under_the_heading_are_fields(sign):
    close = sign[2:]
    lines = [("Status", "accepted"), ("Date", "2024-05-06"), ("Tags", "api, design"), ("Deciders", "Ann, Bob")]
    text = "# Use X\n\n" + "".join(f"{sign}{key}:{close} {value}\n" for key, value in lines) + "\n## Context\n"
    found, _ = decision(text)

    assert found.fields["status"] == "accepted"
    assert found.fields["attributes.date"] == "2024-05-06"
    assert found.fields["tags"] == ["api", "design"]
    assert found.fields["attributes.deciders"] == "Ann, Bob"
    assert (found.lines["status"], found.lines["attributes.date"]) == (3, 4)


def test_bullets_without_a_known_key_are_prose():
    found, _ = decision("# Use X\n\n- Alice: likes it\n- Bob: does not\n")

    assert set(found.fields) == {"title", "text_ref"}


def test_bullets_further_down_are_prose():
    found, _ = decision("# Use X\n\nWe do.\n\n- Status: unclear\n\n## Options\n\n- Owner: nobody\n")

    assert "status" not in found.fields
    assert "owner" not in found.fields


def test_bullets_in_a_template_comment_or_a_fence_are_no_statement():
    found, _ = decision(
        "# Use X\n\n<!-- - Status: draft -->\n```\n- Status: code\n```\n- Status: accepted <!-- x -->\n"
    )

    assert found.fields["status"] == "accepted"


def test_a_bullet_may_go_on_in_the_next_line_and_keys_may_hold_spaces():
    found, _ = decision("# Use X\n\n- Status: accepted\n- Technical Story: one\n  two\n")

    assert found.fields["attributes.technical_story"] == "one two"


def test_bullets_state_an_id_and_a_type_where_there_is_no_front_matter():
    facts = EXTRACTOR.extract(SourceFile("a.md", b"# T\n\n- ID: REQ-9\n- Type: flag\n", "req"), {})

    assert (facts.entities[0].id, facts.entities[0].type, facts.entities[0].line) == ("REQ-9", "flag", 3)


def test_bullets_fill_in_a_status_that_the_front_matter_lacks():
    found, _ = decision("---\nnav_order: 3\n---\n# Use X\n\n* Status: accepted\n* Date: 2024-01-01\n* Id: no\n")

    assert found.id == "0002-new"
    assert found.fields["status"] == "accepted"
    assert found.fields["attributes.date"] == "2024-01-01"
    assert found.fields["attributes.nav_order"] == "3"


def test_front_matter_goes_before_bullets():
    found, _ = decision("---\nstatus: proposed\ndate: x\n---\n# Use X\n\n* Status: accepted\n* Date: y\n")

    assert found.fields["status"] == "proposed"
    assert found.fields["attributes.date"] == "x"


@pytest.mark.parametrize(
    ("status", "target", "is_path"),
    [
        ("superseded by [new](0003-newer.md)", "docs/adr/0003-newer.md", True),
        ("Superseded by ADR-0003", "ADR-0003", False),
        ("superseded by [[0003-newer]]", "0003-newer", False),
        ("superceded by: ../x/y.md", "docs/x/y.md", True),
    ],
)
@pytest.mark.parametrize("form", ["# T\n\n- Status: {}\n", "---\nstatus: '{}'\n---\n# T\n", "# T\n\n## Status\n\n{}\n"])
def test_a_status_of_being_superseded_is_a_status_and_a_link(form, status, target, is_path):
    found, links = decision(form.format(status))

    assert found.fields["status"] == status.split()[0]
    assert [(link.type, link.target, link.is_path, link.reverse) for link in links] == [
        ("supersedes", target, is_path, True)
    ]


@pytest.mark.parametrize("status", ["superseded by the new way", "superseded by https://x.org/rfc", "superseded"])
def test_a_status_that_names_no_successor_stays_as_typed(status):
    found, links = decision(f"# T\n\n- Status: {status}\n")

    assert found.fields["status"] == status
    assert links == ()


def test_a_section_of_links_states_what_is_superseded():
    text = (
        "# T\n\n- Status: accepted\n\n## Links <!-- optional -->\n\n- Supersedes [old](0001-old.md)\n"
        "* superseded by [x](https://x.org)\n- [Refined by](0004-more.md)\n\n## Notes\n\n- Supersedes [no](no.md)\n"
    )
    _, links = decision(text)

    assert [(link.type, link.target, link.is_path, link.reverse, link.line) for link in links] == [
        ("supersedes", "docs/adr/0001-old.md", True, False, 7)
    ]


def test_a_section_of_status_states_the_status_and_its_links():
    status = "## Status\n\nAccepted\n\nSupercedes [1. Old](0001-old.md)\n\n## Context\n\nStatus quo\n"
    text = f"# 2. Use X\n\nDate: 2020-02-03\n\n{status}"
    found, links = decision(text)

    assert found.fields["status"] == "Accepted"
    assert found.lines["status"] == 7
    assert found.fields["attributes.date"] == "2020-02-03"
    assert [(link.target, link.reverse) for link in links] == [("docs/adr/0001-old.md", False)]


def test_both_ways_to_say_superseded_give_one_link():
    _, links = decision("# T\n\n- Status: superseded by [n](n.md)\n\n## Links\n\n- Superseded by [n](n.md)\n")

    assert len(links) == 1


@given(st.text(alphabet="#-=`~<!>* aS:\n\t", max_size=80), st.integers(1, 5))
def test_any_body_has_an_outline_with_lines_of_its_own(body, first_line):
    found = prose.outline(body, first_line, needs_title=True, needs_sections=True)
    last = first_line + body.count("\n")

    if found.title:
        assert first_line <= found.title_line <= last
    for line in [*found.bullets.values(), *(line for lines in found.sections.values() for line in lines)]:
        assert first_line <= line.number <= last
