"""Changes of single keys in front matter keep every other byte, or are refused."""

from __future__ import annotations

import contextlib
import time

import pytest

from kbcore.editing.frontmatter import CannotEdit, Value, edited
from kbcore.extract.facts import SourceFile
from kbcore.extract.markdown import EXTRACTOR

DOCUMENT = """---
id: REQ-1   # never reused
title: 'Log in'
"status": open  # by ann
tags: [auth, web]
reviewers:
  - ann   # first
  - "bob"
metadata:
    author: ann
size: "3"
---
# Log in

status: this is text
"""


def changed(text: str, changes: dict[str, Value | None]) -> str:
    """Return the document with keys changed, on the lines that the extractor names."""
    facts = EXTRACTOR.extract(SourceFile("docs/requirements/a.md", text.encode(), "req"), {})
    lines = {name.removeprefix("attributes."): line for name, line in facts.entities[0].lines.items()}
    return edited(text, changes, lines)


@pytest.mark.parametrize(
    ("changes", "old", "new"),
    [
        ({"status": "done"}, '"status": open  # by ann', '"status": done  # by ann'),
        ({"title": "It's done"}, "'Log in'", "'It''s done'"),
        ({"title": None}, "title: 'Log in'\n", ""),
        ({"size": "4"}, 'size: "3"', 'size: "4"'),
        ({"tags": ["auth", "a: b"]}, "[auth, web]", '[auth, "a: b"]'),
        ({"reviewers": ["bob", "cy"]}, '  - ann   # first\n  - "bob"\n', '  - "bob"\n  - cy\n'),
        ({"reviewers": None}, 'reviewers:\n  - ann   # first\n  - "bob"\n', ""),
        ({"owner": "yes: no"}, 'size: "3"\n', 'size: "3"\nowner: "yes: no"\n'),
        ({"metadata.source": "x"}, "    author: ann\n", "    author: ann\n    source: x\n"),
        ({"metadata.author": "bob"}, "author: ann", "author: bob"),
    ],
)
def test_only_the_key_that_is_named_changes(changes: dict[str, Value | None], old: str, new: str) -> None:
    assert DOCUMENT.count(old) == 1
    assert changed(DOCUMENT, changes) == DOCUMENT.replace(old, new)


def test_windows_line_ends_and_a_byte_order_mark_stay() -> None:
    windows = "\ufeff" + DOCUMENT.replace("\n", "\r\n")
    wanted = DOCUMENT.replace("open  #", "done  #").replace('size: "3"\n', 'size: "3"\nowner: ann\n')
    assert changed(windows, {"status": "done", "owner": "ann"}) == "\ufeff" + wanted.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "text",
    [
        "---\nid: A\ntitle: >\n  long\n  text\n---\n",
        "---\nid: A\ntitle: &anchor T\n---\n",
        "---\nid: A\ntitle: !!str T\n---\n",
        "---\nid: A\ntitle: a\n  b\n---\n",
        "---\n{id: A, title: T}\n---\n",
        "---\nid: A\n---\n# T\n",
        "# T\n\n* id: A\n",
    ],
)
def test_what_is_not_written_in_a_plain_way_is_refused(text: str) -> None:
    with pytest.raises(CannotEdit):
        changed(text, {"title": "New"})


@pytest.mark.parametrize("rest", ["x" + " " * 60_000 + "y", " " * 60_000 + "{", "x" + " " * 60_000 + "#"])
def test_a_long_line_takes_linear_time(rest: str) -> None:
    started = time.process_time()
    with contextlib.suppress(CannotEdit):
        edited(f"---\nowner: {rest}\n---\n", {"owner": "ann"}, {"owner": 2})
    assert time.process_time() - started < 0.5
