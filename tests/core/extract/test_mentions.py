"""The links in the text of a document that count, and what they lead to."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.extract.facts import SourceFile
from kbcore.extract.markdown import EXTRACTOR
from kbcore.extract.mentions import mentions

PATH = "docs/adr/doc.md"


def found(body, beginnings=()):
    links, _ = mentions(body, 1, PATH, "DOC", beginnings)
    assert all(link.type == "mentions" and link.in_text and link.subject == "DOC" for link in links)
    return [link.target for link in links]


def extracted(text, **settings):
    facts = EXTRACTOR.extract(SourceFile(PATH, text.encode(), "adr"), settings)
    return [(link.target, link.line) for link in facts.links if link.in_text]


@pytest.mark.parametrize(
    ("body", "targets"),
    [
        ("[a](a.md)", ["docs/adr/a.md"]),
        ("[a](../req/a.md#part)", ["docs/req/a.md"]),
        ("[a](a.md?plain=1)", ["docs/adr/a.md"]),
        ("[a](/top.markdown)", ["top.markdown"]),
        ("[a](A.MD 'title (with brackets)')", ["docs/adr/A.MD"]),
        ("[a](<with space.md>) [b](with%20percent.md) [c](c_(d).md)", ["with space.md", "with percent.md", "c_(d).md"]),
        ("[a](a.md) and [the same](./a.md#b)", ["docs/adr/a.md"]),
        ("[text over\ntwo lines](a.md)", ["docs/adr/a.md"]),
        ("[![picture](p.png)](a.md)", ["docs/adr/a.md"]),
        ("[see [a](a.md), too]", ["docs/adr/a.md"]),
        ("- [ ] [a](a.md)\n- [x] [b](b.md)", ["docs/adr/a.md", "docs/adr/b.md"]),
        ("| [a](a.md) | [b](b.md) |", ["docs/adr/a.md", "docs/adr/b.md"]),
        ("[a][r] [R] [r][]\n\n[r]: ../a.md 'title'\n[unused]: b.md", ["docs/a.md"]),
        ("[Two  Words]\n\n[two words]: <a b.md>", ["docs/adr/a b.md"]),
        ("[note]: see [a](a.md)", ["docs/adr/a.md"]),
        ("[^1]: see [a](a.md)", ["docs/adr/a.md"]),
        ("[[a.md]] [[../b.md#part|name]]", ["docs/adr/a.md", "docs/b.md"]),
        ("    after a text\n\n1. item\n\n    [a](a.md)", ["docs/adr/a.md"]),
    ],
)
def test_links_to_documents_count(body, targets):
    assert found(body) == [
        target if "/" in target or target == "top.markdown" else f"docs/adr/{target}" for target in targets
    ]


@pytest.mark.parametrize(
    "body",
    [
        "![a](a.md)",
        "![a][r]\n\n[r]: a.md",
        "[a](doc.md) [b](../adr/doc.md#part) [c](#heading)",
        "[a](https://example.org/a.md) [b](//example.org/a.md) [c](file:///a.md) [d](javascript:a.md)",
        "<https://example.org/a.md>",
        "[a](../../../outside.md)",
        "[a](a.png) [b](folder/) [c](a.md.txt)",
        "```\n[a](a.md)\n```",
        "- item\n\n    ```sh\n    [a](a.md)\n    ```",
        "Text.\n\n    [a](a.md)\n\n    [b](b.md)",
        "`[a](a.md)` and ``[b](b.md) ` ``",
        "`over [a](a.md)\ntwo lines`",
        "<!-- [a](a.md) -->",
        r"\[a](a.md)",
        "[a] (a.md)",
        "[a\n\nb](a.md)",
        "[a.md] and a.md",
        "[r]: a.md",
        "[REQ-1] [[REQ-1]]",
    ],
)
def test_what_is_no_link_to_another_document_states_nothing(body):
    assert found(body) == []


def test_a_code_span_that_does_not_end_is_text():
    assert found("a ` b [a](a.md) `` c") == found(r"\` [a](a.md) `") == ["docs/adr/a.md"]


def test_a_fence_in_a_list_ends_with_its_item():
    assert found("- item\n  ```\n  [a](a.md)\n[b](b.md)") == [] == found("- item\n    ~~~\n    [a](a.md)\n    ~~~")
    assert found("- item\n    ```\n    [a](a.md)\n- [b](b.md)") == ["docs/adr/b.md"]


def test_ids_in_brackets_count_where_they_begin_as_the_settings_say():
    body = "[REQ-1] [[REQ-2|name]] [ADR-3] [x] [REQ-4](https://x.org) `[REQ-5]` ![REQ-6] [DOC] [REQ-1]"
    assert found(body, ["REQ-", "DOC"]) == ["REQ-1", "REQ-2"]
    assert found(body) == []
    assert extracted(f"---\nid: DOC\ntitle: T\n---\n{body}", mentionIds=["REQ-"]) == [("REQ-1", 5), ("REQ-2", 5)]


def test_each_mention_has_the_line_of_its_first_link():
    text = "---\nid: DOC\ntitle: T\n---\n# T\n\nText\n[a](a.md),\n[b](b.md)\n\n[a](a.md)\n"
    assert extracted(text) == [("docs/adr/a.md", 8), ("docs/adr/b.md", 9)]


def test_the_settings_say_which_documents_count():
    text = "---\nid: DOC\ntitle: T\n---\n[a](a.md)\n"
    assert extracted(text, mentions=True) == extracted(text, mentions=["docs/adr/**/*.md"]) == [("docs/adr/a.md", 5)]
    assert (
        extracted(text, mentions=False)
        == extracted(text, mentions="docs/req/*.md")
        == extracted(text, mentions=[])
        == []
    )


def test_a_document_that_links_to_very_many_says_so():
    body = "".join(f"[a](a{number}.md)\n" for number in range(limits.MAX_MENTIONS + 2))
    links, problems = mentions(body, 1, PATH, "DOC")
    assert len(links) == limits.MAX_MENTIONS
    assert [(one.code, one.severity, one.line) for one in problems] == [
        ("more_mentions", "warning", limits.MAX_MENTIONS + 1)
    ]


@given(st.text(alphabet="[]()!`\\<>^:|#~- \n\ta.md", max_size=60))
def test_any_text_can_be_read(body):
    for link in mentions(f"{body}\n[a](a.md)", 3, PATH, "DOC", ("a",))[0]:
        assert 3 <= link.line <= 4 + body.count("\n")
        assert link.is_path or link.target.startswith("a")


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    "piece",
    ["[", "[a", "[a](", '[a](x "', "[a]((", "![a](", "[[a][a]", "[a]: ", "\\`", "`a``", "<!--", "[x](\n", "- `\n"],
)
def test_the_time_grows_with_the_text_and_no_faster(piece):
    body = piece * (400_000 // len(piece))
    begun = time.process_time()
    mentions(f"{body} [a](a.md)", 1, PATH, "DOC", ("a",))
    assert time.process_time() - begun < 5
