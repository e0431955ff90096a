"""Reading JSON strictly: what the standard library takes and gives, or a fault with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.text import json_reader

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner)
    ),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 1]), st.booleans())
def test_valid_json_reads_as_the_standard_library_reads_it(value, indent, ensure_ascii):
    tree = json_reader.read(json.dumps(value, indent=indent, ensure_ascii=ensure_ascii))
    assert (tree.root, tree.problems, tree.is_complete) == (value, [], True)


@given(st.text(alphabet='{}[]",:\\truefalsn01e+-. \n'))
def test_what_reads_without_a_problem_is_what_the_standard_library_reads(text):
    tree = json_reader.read(text)
    if not tree.problems:
        assert tree.root == json.loads(text)


def test_members_know_their_lines():
    tree = json_reader.read('{\n"a": [1,\n2], "b":\n{"c": 3}}')
    root = tree.root
    assert [tree.line(root, "a"), tree.line(root, "b"), tree.line(root["b"], "c")] == [2, 3, 4]
    assert [tree.line(root["a"], 0), tree.line(root["a"], 1)] == [2, 3]


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("", 1, 1, "the file is empty"),
        ("{\n", 1, 0, "the bracket that opens in line 1 is never closed"),
        ('{"a":\n[1, 2}', 2, 6, "`}` does not belong here"),
        ('{"a" 1}', 1, 6, "there is no `:` after the key 'a'"),
        ('{"a":}', 1, 6, "'}' begins no value"),
        ("{'a': 1}", 1, 2, '"\'" begins no key'),
        ('{"a": "x\ny"}', 1, 9, "a text in quotes holds a line break"),
        ('{"a": "x', 1, 7, "a quote opens here and is never closed"),
        ('{"a": "\\d"}', 1, 8, "begins no escape that JSON knows"),
        ('{"a": "\\u12"}', 1, 9, "begins no escape that JSON knows"),
        ('{"a": 01}', 1, 7, "`01` is no value that JSON knows"),
        ('{"a": 1.}', 1, 7, "`1.` is no value that JSON knows"),
        ("{}\n{}", 2, 1, "something follows the end of the value"),
        ("{,}", 1, 2, "`,` does not belong here"),
        ("[1,,2]", 1, 4, "`,` does not belong here"),
    ],
)
def test_a_fault_names_line_and_column(text, line, column, message):
    (problem,) = json_reader.read(text).problems
    assert (problem.line, problem.column) == (line, column)
    assert message in problem.message
    assert problem.hint


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ('{"a": 1,\n}', {"a": 1}, "there is a comma before `}`"),
        ("[1, 2,]", [1, 2], "there is a comma before `]`"),
        ('{"a": 1\n"b": 2}', {"a": 1, "b": 2}, "a comma is missing before this"),
        ("[1 // one\n, 2] # two\n/* three */", [1, 2], "JSON has no comments"),
        ("{a: 1}", {"a": 1}, "the key `a` has no quotes"),
        ("[True]", [None], "`True` is no value that JSON knows"),
        ("[NaN]", [None], "`NaN` is no value that JSON knows"),
        ('{"a": 1, "a": 2}', {"a": 1}, "`a` is there twice"),
    ],
)
def test_reading_continues_after_a_small_fault(text, value, message):
    tree = json_reader.read(text)
    assert tree.root == value
    assert not tree.is_complete
    assert [message in problem.message for problem in tree.problems] == [True]
