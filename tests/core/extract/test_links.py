"""The meaning of a statement of links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.fields import CORE_EDGES
from kbcore.extract.links import LinkReader, LinkTarget, parse_target, targets_in, words
from kbcore.text import yaml_text


def reader(text, *, path="docs/requirements/r.md", edges=CORE_EDGES):
    """Read the value under ``links`` and every edge next to it."""
    tree = yaml_text.read(text)
    links = LinkReader(path, "ME", tree, edges)
    for key, value in tree.root.items():
        links.read(value, tree.line(tree.root, key), None if key == "links" else links.edge(key))
    return links


def stated(text, **more):
    links = reader(text, **more)
    assert links.problems == []
    return [(link.type, link.target) for link in links.links.values()]


def test_ids_are_bare_links_with_their_lines():
    links = reader("links:\n  - REQ-1\n  - TEST 2\n")

    assert [(link.subject, link.type, link.target, link.line) for link in links.links.values()] == [
        ("ME", None, "REQ-1", 2),
        ("ME", None, "TEST 2", 3),
    ]


def test_urls_are_no_links_to_entities():
    links = reader("links: [https://example.org/a?b#c, <http://x.org>, mailto:a@b.c, https://example.org/a?b#c]\n")

    assert links.urls == ["https://example.org/a?b#c", "http://x.org", "mailto:a@b.c"]
    assert links.links == {}


def test_a_map_names_type_target_kind_and_more():
    links = reader(
        "links:\n"
        "  - {type: verified_by, target: T-1, confidence: 0.9, why: seen, metadata: {author: ann}}\n"
        "  - {type: relates_to, target: R-2, kind: refines}\n"
        "  - {target: R-3}\n"
        "  - {type: depends_on, to: [R-4, R-5]}\n"
    )

    first, second, *rest = links.links.values()
    assert (first.type, first.target, first.line) == ("verified_by", "T-1", 2)
    assert first.fields == {"confidence": 0.9, "attributes.why": "seen", "metadata.author": "ann"}
    assert (second.type, second.kind) == ("relates_to", "refines")
    assert [(link.type, link.target) for link in rest] == [(None, "R-3"), ("depends_on", "R-4"), ("depends_on", "R-5")]


def test_a_map_of_edges_names_lists_of_ids():
    assert stated("links:\n  - verified_by: [T-1, T-2]\n    depends_on: R-1\n  - constrains: [F-1]\n") == [
        ("verified_by", "T-1"),
        ("verified_by", "T-2"),
        ("depends_on", "R-1"),
        ("constrains", "F-1"),
    ]


def test_links_may_be_one_map_or_one_text():
    assert stated("links: {type: depends_on, target: R-1}\n") == [("depends_on", "R-1")]
    assert stated("links: {depends_on: [R-1], implements: {target: R-2}}\n") == [
        ("depends_on", "R-1"),
        ("implements", "R-2"),
    ]
    assert stated("links: R-1\n") == [(None, "R-1")]


def test_the_name_of_an_edge_is_found_with_hyphens_and_capitals():
    assert stated("depends-on: R-1\nVerified_By: [T-1]\n") == [("depends_on", "R-1"), ("verified_by", "T-1")]


def test_superseded_by_is_supersedes_the_other_way():
    (link,) = reader("superseded-by: ADR-2\n").links.values()

    assert (link.type, link.target, link.reverse) == ("supersedes", "ADR-2", True)


def test_a_project_may_have_an_edge_of_that_name_itself():
    (link,) = reader("superseded_by: ADR-2\n", edges={"superseded_by"}).links.values()

    assert (link.type, link.reverse) == ("superseded_by", False)


def test_a_relation_without_a_kind_has_the_kind_link():
    (link,) = reader("relates_to: R-1\n").links.values()

    assert (link.type, link.kind) == ("relates_to", "link")


@pytest.mark.parametrize("text", ["- [[REQ-1]]", '- "[[REQ-1]]"', '- "[[REQ-1|the first]]"', '- "[[REQ-1#part]]"'])
def test_a_wiki_link_names_an_id(text):
    assert stated(f"links:\n  {text}\n") == [(None, "REQ-1")]


def test_lists_in_lists_are_flat_and_empty_items_say_nothing():
    assert stated("links: [[A, B], [C], , ]\n".replace(", ,", ",")) == [(None, "A"), (None, "B"), (None, "C")]
    assert stated("links:\n  -\n  - A\n") == [(None, "A")]


def test_lists_that_are_nested_too_deep_are_a_problem():
    assert [problem.code for problem in reader("links: [[[[A]]]]\n").problems] == ["bad_link"]


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("../adr/0001-x.md", "docs/adr/0001-x.md"),
        ("./y.md#part", "docs/requirements/y.md"),
        ("y.md", "docs/requirements/y.md"),
        ("/docs/adr/z.MD", "docs/adr/z.MD"),
        ("[text](../adr/0001-x.md)", "docs/adr/0001-x.md"),
        ("[a [b] c](<../adr/x.md>)", "docs/adr/x.md"),
        ("a%20b.md", "docs/requirements/a b.md"),
        ("..\\adr\\x.md", "docs/adr/x.md"),
        ("[[../adr/x.md|x]]", "docs/adr/x.md"),
        ("../../README.md?plain=1", "README.md"),
    ],
)
def test_a_markdown_file_is_a_path_from_the_root(typed, expected):
    assert parse_target(typed, "docs/requirements/r.md") == LinkTarget(expected, is_path=True)


@pytest.mark.parametrize("typed", ["../../../x.md", "../../../../etc/x.md", "[x](../../../x.md)", "/../x.md"])
def test_a_path_out_of_the_repository_is_a_problem(typed):
    (problem,) = reader(f"links: ['{typed}']\n").problems

    assert (problem.code, problem.line) == ("bad_link", 1)
    assert "outside" in problem.message


@pytest.mark.parametrize("typed", ["src/a.py#Foo.bar", "pkg:mod", "C#", "#12", "src/x.ts"])
def test_an_id_is_kept_as_it_is(typed):
    assert parse_target(typed, "r.md") == LinkTarget(typed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A, B", ["A", "B"]),
        ("A,B,", ["A", "B"]),
        (" A ", ["A"]),
        ("", []),
        ("one thing, another thing", ["one thing, another thing"]),
        ("[[A]], [[B c|d]]", ["[[A]]", "[[B c|d]]"]),
        ("[a](a.md), https://x.org", ["[a](a.md)", "https://x.org"]),
    ],
)
def test_only_commas_between_what_could_be_ids_part_a_text(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2. New](0002-new.md)", ["[2. New](0002-new.md)"]),
        ("[a](a.md) and [[B]].", ["[a](a.md)", "[[B]]"]),
        ("ADR-0123.", ["ADR-0123"]),
        ("the new way of things", []),
        ("[RFC](https://x.org/rfc)", []),
        ("[picture](x.png)", []),
    ],
)
def test_a_phrase_names_its_links_or_its_only_word(text, expected):
    assert targets_in(text, "docs/adr/0001.md") == expected


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("links: [{type: depends_on}]\n", "no target"),
        ("links: [{type: [a], target: R-1}]\n", "must be text"),
        ("links: [{target: R-1, confidence: high}]\n", "confidence"),
        ("links: [{target: R-1, confidence: 1.5}]\n", "confidence"),
        ("links: [{target: R-1, confidence: nan}]\n", "confidence"),
        ("links: [{type: depends_on, target: https://x.org}]\n", "URL"),
        ("depends_on: https://x.org\n", "URL"),
        ("depends_on: [{kind: x}]\n", "target"),
        ('links: ["a\\tb"]\n', "control"),
        ('links: ["link:0123456789abcdef0123456789abcdef"]\n', "edges"),
        (f"links: [{'x' * (limits.MAX_ID_CHARS + 1)}]\n", "at most"),
        (f"links: [{{{'e' * (limits.MAX_NAME_CHARS + 1)}: R-1}}]\n", "too long"),
        (f"links: [{{type: {'e' * (limits.MAX_NAME_CHARS + 1)}, target: R-1}}]\n", "too long"),
        ('links: [{target: R-1, why: "\\0"}]\n', "NUL"),
        ('links: ["[x](y.png)"]\n', "neither"),
    ],
)
def test_what_cannot_be_a_link_is_a_problem_with_a_remedy(text, word):
    (problem,) = reader(text).problems

    assert (problem.code, problem.severity, problem.line) == ("bad_link", "error", 1)
    assert word in problem.message
    assert problem.hint


def test_one_bad_link_does_not_lose_the_others():
    links = reader("links:\n  - A\n  - ../../../x.md\n  - {type: depends_on}\n  - B\n")

    assert [link.target for link in links.links.values()] == ["A", "B"]
    assert [problem.line for problem in links.problems] == [3, 4]


def test_a_labelled_url_is_a_url():
    assert reader("links:\n  - docs: https://a.org\n  - {title: T, url: https://b.org}\n").urls == [
        "https://a.org",
        "https://b.org",
    ]


def test_the_same_link_twice_is_one_link():
    links = reader("links: [A, A, {target: A}, {type: depends_on, target: A}]\ndepends_on: A\n")

    assert [(link.type, link.target) for link in links.links.values()] == [(None, "A"), ("depends_on", "A")]


@given(st.text(max_size=60), st.sampled_from(["a.md", "docs/x/y.md"]))
def test_every_text_is_a_target_or_says_why_not(text, path):
    target = parse_target(text, path)

    if target.is_path:
        assert not target.text.startswith(("../", "/"))
    for word in [*words(text), *targets_in(text, path)]:
        parse_target(word, path)
