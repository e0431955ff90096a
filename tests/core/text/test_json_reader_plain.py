"""JSON is read as text with lines, up to its first fault."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.text import json_reader

KEYS = st.text(min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


def as_text(value):
    """Return a JSON value as KB reads it: every scalar is text, null is None."""
    if isinstance(value, list):
        return [as_text(item) for item in value]
    if isinstance(value, dict):
        return {key: as_text(item) for key, item in value.items()}
    return value if value is None or isinstance(value, str) else json.dumps(value)


@given(JSON, st.sampled_from([None, 0, 2, "\t"]), st.booleans())
def test_what_was_written_is_what_is_read(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    tree = json_reader.read_plain(text)

    assert tree.problems == []
    assert tree.is_complete
    assert tree.root == as_text(value)


@pytest.mark.parametrize("number", ["1.10", "0", "-0.50", "1e5", "12345678901234567890123"])
def test_numbers_stay_what_the_author_typed(number):
    assert json_reader.read_plain(f'{{"line": {number}}}').root == {"line": number}


def test_members_have_their_lines():
    tree = json_reader.read_plain('{\n"a": 1,\n"b": [\n  2,\n\n  {"c":\n 3}]}')

    assert [tree.line(tree.root, key) for key in ("a", "b")] == [2, 3]
    assert [tree.line(tree.root["b"], index) for index in (0, 1)] == [4, 6]
    assert tree.line(tree.root["b"][1], "c") == 6


def test_an_empty_file_is_nothing():
    assert json_reader.read_plain(" \n").root is None


def test_a_duplicate_key_is_reported_and_the_first_counts():
    tree = json_reader.read_plain('{"a": 1,\n "a": 2}')

    assert tree.root == {"a": "1"}
    assert [(problem.code, problem.line) for problem in tree.problems] == [("duplicate_key", 2)]


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ('{"a": 1,\n}', 2, 1, "comma"),
        ("[1, 2,]", 1, 7, "comma"),
        ('{"a" 1}', 1, 6, "`:`"),
        ('{"a": }', 1, 7, "missing"),
        ('{"a": 1 "b": 2}', 1, 9, "comma"),
        ("{a: 1}", 1, 2, "key"),
        ('{"": 1}', 1, 4, "key"),
        ("[1", 1, 3, "`]`"),
        ('["x]', 1, 2, "closed"),
        ('["a\nb"]', 1, 2, "closed"),
        ('["\\q"]', 1, 2, "escape"),
        ('["\\ud800"]', 1, 2, "escape"),
        ("[01]", 1, 2, "no value that JSON"),
        ("[NaN]", 1, 2, "no value that JSON"),
        ("{} x", 1, 4, "follows"),
        ("// c\n{}", 1, 1, "comments"),
        ("[" * 100_000, 1, limits.MAX_DEPTH + 1, "nested"),
    ],
)
def test_a_fault_has_its_line_and_column(text, line, column, word):
    tree = json_reader.read_plain(text)

    assert not tree.is_complete
    (problem,) = tree.problems
    assert (problem.code, problem.line, problem.column) == ("invalid_json", line, column)
    assert word in problem.message
    assert problem.hint


def test_what_is_before_a_fault_is_kept():
    tree = json_reader.read_plain('{"symbols": [{"id": "a"}, {"id": "b", "x": }, {"id": "c"}]}')

    assert tree.root == {"symbols": [{"id": "a"}, {"id": "b"}]}
    assert id(tree.root["symbols"]) in tree.lossy
    assert id(tree.root["symbols"][1]) in tree.lossy
    assert id(tree.root["symbols"][0]) not in tree.lossy


def test_the_number_of_values_is_limited(monkeypatch):
    monkeypatch.setattr(limits, "MAX_YAML_NODES", 1234)
    tree = json_reader.read_plain("[" + ",".join(["1"] * (limits.MAX_YAML_NODES + 1)) + "]")

    assert str(limits.MAX_YAML_NODES) in tree.problems[0].message


@given(st.text(alphabet='{}[]",:\\ 1tn\na', max_size=30))
def test_a_text_is_json_here_exactly_when_it_is_json(text):
    try:
        expected = as_text(json.loads(text, parse_int=str, parse_float=str))
        has_duplicates = '""' in text
    except ValueError:
        assert json_reader.read_plain(text).problems or not text.strip()
        return
    tree = json_reader.read_plain(text)
    if not tree.problems:
        assert json.dumps(tree.root) == json.dumps(as_text(expected)) or expected in (True, False)
    else:
        assert has_duplicates or any(problem.code == "duplicate_key" for problem in tree.problems)


MUTATIONS = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 3),
        st.sampled_from(
            ["", ",", ":", '"', "{", "}", "[", "]", "\\", "\n", " ", "01", "1.", '"a":1,', "null,", "\x01", "\x0b"]
        ),
    ),
    max_size=4,
)
"""The place where a text is changed, how many characters are removed there, and the new ones."""


def shape(tree):
    """Return all that a tree says, as plain values."""

    def of(value):
        if not isinstance(value, dict | list):
            return value
        lines = tree.places[id(value)]
        members = value.items() if isinstance(value, dict) else enumerate(value)
        parts = [(key, lines[key], of(member)) for key, member in members]
        return type(value).__name__, id(value) in tree.lossy, len(lines), parts

    return of(tree.root), tree.problems, tree.is_complete, tree.is_small


@given(JSON, st.sampled_from([None, 0, 2, "\t"]), st.booleans(), MUTATIONS, st.sampled_from([limits.MAX_YAML_NODES, 4]))
def test_members_matched_at_once_are_read_as_they_are_step_by_step(value, indent, ascii_only, mutations, most):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    for at, gone, new in mutations:
        text = text[:at] + new + text[at + gone :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "MAX_YAML_NODES", most)
        at_once = shape(json_reader.read_plain(text))
        patch.setattr(json_reader._Reader, "plain_members", lambda *_: False)
        assert at_once == shape(json_reader.read_plain(text))


def calls_to_read(fields):
    """Return how many Python functions are called to read 200 objects of so many fields."""
    one = {f"key{number}": f"value {number}" if number % 2 else number for number in range(fields)}
    text = json.dumps([one] * 200, indent=1)
    calls = []

    def is_call(frame, event):
        return event == "call" and frame.f_code.co_filename == json_reader.__file__

    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: calls.append(event) if is_call(frame, event) else None)
    try:
        json_reader.read_plain(text)
    finally:
        sys.setprofile(before)
    return len(calls)


def test_a_plain_member_costs_no_function_call():
    assert calls_to_read(50) == calls_to_read(5)
