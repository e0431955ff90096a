"""Plain YAML is read without the library exactly as with it, and everything else is left to the library."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.text import plain_yaml, yaml_text
from kbcore.text.tree import SMALL_CHARS, TextTree

PIECES = st.sampled_from(
    [
        *("a", "id", "x y", "REQ-1", "0023", "~", "on", "é", "日本", "😀", "12:30", "http://a.b/c#d"),
        *(": ", ":", "#", " #", "# c", "- ", "-", "---", "...", "[", "]", "{", "}", ", ", ",", "'", '"', "''", "\\"),
        *(
            "&a",
            "*a",
            "!t",
            "|",
            ">",
            "%",
            "@",
            "`",
            "?",
            "? ",
            " ",
            "  ",
            "\t",
            "(",
            ".",
            "=",
            "\n",
            "\n  - ",
            "\n- ",
            "<<: ",
        ),
        *("\u00a0", "\u0085", "\u2028", "\ufeff", "\x7f", "\0", "tags: [a, b]", "links: [{t: [a]}]", 'b: "q: # x"'),
    ]
)
VALUES = st.lists(PIECES, max_size=4).map("".join)
LINES = st.one_of(
    st.tuples(st.sampled_from(["id", "title", "a-b", "x.y"]), st.sampled_from([": ", ":", ":  "]), VALUES).map("".join),
    st.tuples(st.sampled_from(["  - ", "- ", "    - ", "  ", "# "]), VALUES).map("".join),
    VALUES,
)


def shape(tree: TextTree, value: Any) -> Any:
    """Return a value with the line of every member."""
    if isinstance(value, dict):
        return {key: (tree.line(value, key), shape(tree, member)) for key, member in value.items()}
    if isinstance(value, list):
        return [(tree.line(value, at), shape(tree, member)) for at, member in enumerate(value)]
    return value


@given(st.lists(LINES, max_size=6).map("\n".join))
@example("tags:\n- a\n\n# c\n- b\nid: 1")
@example("a: b\n  - c\n")
@example("a: [b, c: d]\n")
@example("a: {b: c, b: d}\n")
@example("a: [b c ,d,  e:f]\nb: [ (g), +h ]\nc: [i, ]\nd: [j k,\u00a0l]\n")
@example("a: [b ,c,d e ]\nb: [0x1, ~, 1.10]\n")
def test_what_is_read_without_the_library_is_what_the_library_reads(text: str) -> None:
    found = plain_yaml.read(text, 2)
    if found is not None:
        known = yaml_text.read(text, 2)  # raises when the library refuses it
        assert shape(found, found.root) == shape(known, known.root)
        assert (found.problems, found.is_complete, found.is_small) == ([], True, known.is_small)


def test_what_most_people_write_is_read_with_its_lines() -> None:
    text = (
        "id: REQ-1\ntitle: \"Sign in: again\"\nowner: 'ann'\nempty:\n\n# a comment\ndue: 2026-01-31T12:00:00Z\n"
        "tags: [auth, needs review]\nnone: []\nlinks:\n  - REQ-2\n  - {type: depends_on, target: REQ-3}\n"
        "more: [{depends_on: [REQ-4, REQ-5]}]\n"
    )
    found = plain_yaml.read(text, 2)
    assert found is not None
    assert shape(found, found.root) == {
        "id": (2, "REQ-1"),
        "title": (3, "Sign in: again"),
        "owner": (4, "ann"),
        "empty": (5, None),
        "due": (8, "2026-01-31T12:00:00Z"),
        "tags": (9, [(9, "auth"), (9, "needs review")]),
        "none": (10, []),
        "links": (11, [(12, "REQ-2"), (13, {"type": (13, "depends_on"), "target": (13, "REQ-3")})]),
        "more": (14, [(14, {"depends_on": (14, [(14, "REQ-4"), (14, "REQ-5")])})]),
    }


@pytest.mark.parametrize(
    "text",
    [
        *("", "# only a comment\n", "text\n", "a: b: c\n", "a: b #c\n", "a: |\n  b\n", "a: *b\n", "a: &b c\n"),
        *("a: b\na: c\n", "a: b\n  c\n", "a: !x b\n", "a: @b\n", "a: 'b''c'\n", 'a: "b\\n"\n', "a:\tb\n", "a: 'b' c\n"),
        *("a: [b, , c]\n", "a: [b: c]\n", "a: {b}\n", "a: {b:c}\n", "a: {b: c, b: d}\n", "a: [b\n", "a: [*b]\n"),
        *("- a\n", "a:\n  - b\n   - c\n", "a:\n  -\n", "a: b\n- c\n", "<<: {a: b}\n", "a: b\n---\nc: d\n", "%a: b\n"),
        *("a: \x85\n", "a: b\u2028c\n", "a: \ufeff\n", "a: \x07\n", "a: ['b']\n", f"{'k' * 101}: a\n"),
    ],
)
def test_what_might_mean_something_else_is_left_to_the_library(text: str) -> None:
    assert plain_yaml.read(text, 1) is None


def test_a_large_text_and_one_that_is_nested_deep_are_left_to_the_library() -> None:
    assert plain_yaml.read("a: b\n" + "# c\n" * (SMALL_CHARS // 4), 1) is None
    deep = "[" * (limits.MAX_DEPTH + 1)
    with pytest.raises(yaml.YAMLError):
        yaml_text.read(f"a: {deep}{deep.replace('[', ']')}\n")
    assert plain_yaml.read(f"a: {deep}{deep.replace('[', ']')}\n", 1) is None
    assert plain_yaml.read(f"a: {'[' * 4000}{']' * 4000}\n", 1) is None
