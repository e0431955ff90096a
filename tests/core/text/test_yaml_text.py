"""YAML is read as text with lines, and refuses what is dangerous."""

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.text import yaml_faults, yaml_salvage, yaml_text

LETTERS = st.text(alphabet="aZ09 :#'\"-{}[],&*!|>%@`~éß日\n", max_size=12)
TREES = st.recursive(
    LETTERS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(LETTERS.filter(bool), inner, max_size=4),
    max_leaves=12,
)


def read(text):
    return yaml_text.read(text).root


def fault(text, first_line=1):
    with pytest.raises(yaml.YAMLError) as caught:
        yaml_text.read(text, first_line)
    return yaml_faults.explain(caught.value, text, first_line)


@pytest.mark.parametrize(
    "typed",
    [
        "0023",
        "1.10",
        "on",
        "off",
        "yes",
        "no",
        "true",
        "null",
        "~",
        "2024-01-01",
        "1e3",
        "0x1F",
        "1_000",
        "12:30:45",
        ".inf",
    ],
)
def test_scalars_stay_what_the_author_typed(typed):
    assert read(f"key: {typed}\nlist: [{typed}]\n") == {"key": typed, "list": [typed]}


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("retired (PR #12)", "retired (PR #12)"),
        ("a (b, see #3, #4)  ", "a (b, see #3, #4)"),
        ("a (b (c #1) d)", "a (b (c #1) d)"),
        ("a (b) # c (d)", "a (b)"),
        ("a (b # c", "a (b"),
        ("a b # (c)", "a b"),
        ('"a (b" # c)', "a (b"),
        ("|\n  a (b #c)", "a (b #c)"),
    ],
)
def test_no_comment_begins_inside_parentheses_that_end_on_the_line(typed, value):
    assert read(f"first: 1\nkey: {typed}") == {"first": "1", "key": value}
    assert read(f"key:\n- {typed}") == {"key": [value]}
    assert yaml_text.read(f"key: {typed}", 7).root == {"key": value}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("Bug #12 in login", "the value of `key` is 'Bug': ` #` begins a comment"),
        ("#team", "the value of `key` is empty: ` #` begins a comment"),
        ("a # a comment", ""),
        ("[a, b] #later", ""),
        ("'a #12'", ""),
        ("a (PR #12)", ""),
        ("|\n  a #12", ""),
        ("C#", ""),
    ],
)
def test_a_value_that_ends_before_what_looks_like_text_and_is_a_comment_is_a_warning(typed, said):
    problems = yaml_text.read(f"first: 1\nkey: {typed}\n", 2).problems
    assert [(one.line, one.code, one.severity, one.message) for one in problems] == (
        [(3, "comment_in_value", "warning", said)] if said else []
    )


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("a: Fix\n  bug #12\n", [(2, "'Fix bug'")]),
        ("a:\n  Fix bug #12\n", [(2, "'Fix bug'")]),
        ("a: |\n  Fix bug #12\nb: x #3\n", [(3, "'x'")]),
        ("a: [x, y] #1\nb: [x #2\n  , y]\n", [(2, "'x'")]),
        ("- x #1\n- #2\n- (a #3) #4\n", [(1, "'x'"), (2, "is empty")]),
        ("a: &x v #1\nb: *x #2\n", [(1, "'v'")]),
        ("a: '#'\nb: aa a #1\n", [(2, "'aa a'")]),
    ],
)
def test_a_value_that_a_comment_cuts_is_named_with_the_line_that_it_ends_on(text, cut):
    found = yaml_text.read(text).problems
    assert [one.line for one in found] == [line for line, _ in cut]
    assert all(said in one.message for one, (_, said) in zip(found, cut, strict=True))


def test_a_list_that_a_comment_cuts_off_is_not_said_to_lack_its_bracket():
    assert "is a comment" in fault("tags: [a #b, c]\n").hint


def test_only_an_empty_value_is_none():
    assert read("a:\nb: \"\"\nc: ''\nd: ~\ne: # comment\n") == {
        "a": None,
        "b": "",
        "c": "",
        "d": "~",
        "e": None,
    }


def test_block_texts_and_flow_collections_are_read():
    assert read("a: |\n  x\n  y\nb: >-\n  x\n  y\nc: {d: [e, f]}\n") == {
        "a": "x\ny\n",
        "b": "x y",
        "c": {"d": ["e", "f"]},
    }


def test_an_empty_text_is_none():
    assert read("") is None
    assert read("# only a comment\n") is None


def test_every_key_and_item_has_its_line():
    tree = yaml_text.read("# c\na: 1\nb:\n  - x\n  - y: 2\n    z: 3\nc: {p: q}\n", 10)
    root = tree.root

    assert [tree.line(root, key) for key in root] == [11, 12, 16]
    assert [tree.line(root["b"], index) for index in (0, 1)] == [13, 14]
    assert [tree.line(root["b"][1], key) for key in ("y", "z")] == [14, 15]
    assert tree.line(root["c"], "p") == 16


def test_a_container_that_is_not_of_the_tree_has_no_line():
    assert yaml_text.read("a: 1\n").line({}, "a") == 0


def test_a_duplicate_key_is_reported_with_both_lines_and_the_first_counts():
    tree = yaml_text.read("a: 1\nb: 2\na: 3\n", 5)

    assert tree.root == {"a": "1", "b": "2"}
    assert not tree.is_complete
    (problem,) = tree.problems
    assert (problem.code, problem.line) == ("duplicate_key", 7)
    assert "line 5" in problem.message
    assert "line 7" in problem.message


def test_a_duplicate_key_deep_inside_is_reported_too():
    assert [p.line for p in yaml_text.read("a:\n  - b: 1\n    b: 2\n").problems] == [3]


def test_anchors_and_aliases_are_followed():
    assert read("a: &x [1, 2]\nb: *x\nc: &y z\nd: [*y]\n") == {
        "a": ["1", "2"],
        "b": ["1", "2"],
        "c": "z",
        "d": ["z"],
    }


def test_merge_keys_add_what_is_missing():
    text = "base: &b {p: 1, q: 2}\nx:\n  <<: *b\n  q: 3\ny:\n  <<: [*b, {r: 4}]\n"

    assert read(text)["x"] == {"p": "1", "q": "3"}
    assert read(text)["y"] == {"p": "1", "q": "2", "r": "4"}


def test_a_quoted_merge_key_is_a_key():
    assert read('"<<": x\n') == {"<<": "x"}


def test_a_merge_of_a_text_is_refused():
    assert "mapping" in fault("a:\n  <<: x\n").message


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!custom", "!!binary", "!<tag:x.org,2000:y>"])
def test_tags_are_refused(tag):
    problem = fault(f"a: 1\nb: {tag} x\n", 2)

    assert (problem.line, problem.column) == (3, 4)
    assert "tag" in problem.message


def test_a_tag_on_a_key_is_refused():
    assert fault("!custom a: 1\n").line == 1


def test_the_tags_of_text_lists_and_mappings_change_nothing():
    assert read("a: !!str 12\nb: ! 13\nc: !!seq [1]\nd: !!map {e: f}\n") == {
        "a": "12",
        "b": "13",
        "c": ["1"],
        "d": {"e": "f"},
    }


def test_an_alias_bomb_is_refused_before_it_grows():
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]

    assert "aliases" in fault("\n".join(lines)).message


def test_a_merge_bomb_is_refused():
    lines = ["a0: &a0 {k: [x, x, x, x, x, x, x, x, x]}"]
    lines += [
        f"a{n}: &a{n} {{<<: *a{n - 1}, " + ", ".join(f"k{n}{i}: *a{n - 1}" for i in range(9)) + "}"
        for n in range(1, 30)
    ]

    assert str(limits.MAX_ALIASED_NODES) in fault("\n".join(lines)).message


def test_depth_through_aliases_is_refused():
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, limits.MAX_DEPTH + 2)]

    assert "nested deeper" in fault("\n".join(lines)).message


def test_an_alias_to_itself_is_refused():
    assert "`*a`" in fault("a: &a [*a]\n").message


@pytest.mark.parametrize("text", ["[" * 100_000, "a: " + "{b: " * 100_000, "- " * 50_000 + "x"])
def test_deep_nesting_is_refused_and_does_not_crash(text):
    assert "nested deeper" in fault(text).message


def test_the_deepest_allowed_nesting_is_read():
    depth = limits.MAX_DEPTH

    assert read("[" * depth + "]" * depth) is not None
    assert "nested deeper" in fault("[" * (depth + 1) + "]" * (depth + 1)).message


def test_the_number_of_values_is_limited(monkeypatch):
    monkeypatch.setattr(limits, "MAX_YAML_NODES", 1234)

    assert str(limits.MAX_YAML_NODES) in fault("[" + "a," * (limits.MAX_YAML_NODES + 1) + "]").message


@pytest.mark.parametrize("text", ["[a]: b\n", "{a: b}: c\n", "? [a]\n: b\n", "a: {{x}}\n", '"": b\n'])
def test_a_key_that_is_no_text_is_refused(text):
    assert "key" in fault(text).message


def test_a_second_document_is_refused_with_its_line():
    problem = fault("a: 1\n---\nb: 2\n")

    assert problem.line == 2
    assert "second document" in problem.message


@pytest.mark.parametrize(
    ("text", "line", "column", "word"),
    [
        ("x: 1\nassignee: @name\n", 2, 11, "`@`"),
        ("a: `code`\n", 1, 4, "backtick"),
        ("title: a: b\n", 1, 9, "`: `"),
        ("a: 1\n\tb: 2\n", 2, 1, "tab"),
        ("a:\n\tb: 2\n", 2, 1, "tab"),
        ("a: 'x\nb: 1\n", 1, 4, "never closed"),
        ("a: [x\nb: 1\n", 1, 4, "`[`"),
        ("a: {x\nb: 1\n", 1, 4, "`{`"),
        ("a: 1\nb: [x,\n", 2, 7, "missing"),
        ('a: "x" y\n', 1, 8, "complete"),
        ("a: b\nstray\nc: d\n", 2, 1, "`key: value`"),
        ("a: *x*\n", 1, 6, "`*`"),
        ("a: - b\n", 1, 4, "list"),
        ("a: | text\n", 1, 6, "`|`"),
        ('a: "\\q"\n', 1, 5, "escape"),
        ("%a\nb: c\n", 1, 3, "`%`"),
        ("a: é\x07x\n", 1, 5, "U+0007"),
    ],
)
def test_a_fault_has_its_line_and_column_in_plain_words(text, line, column, word):
    problem = fault(text, 1)

    assert (problem.line, problem.column) == (line, column)
    assert word in problem.message
    assert problem.hint
    assert fault(text, 11).line == line + 10


@given(TREES, st.sampled_from([None, "'", '"']), st.sampled_from([None, True, False]))
def test_what_was_written_is_what_is_read(tree, style, flow):
    text = yaml.safe_dump(tree, default_style=style, default_flow_style=flow, allow_unicode=True)
    written = yaml.load(text, yaml.BaseLoader)

    assert _no_none(read(text)) == written == tree


@given(st.dictionaries(LETTERS.filter(lambda key: key and key != "<<"), TREES, min_size=1, max_size=5))
def test_a_valid_mapping_read_in_pieces_is_the_same_mapping(tree):
    text = yaml.safe_dump(tree, default_flow_style=False, allow_unicode=True, sort_keys=False, width=10_000)
    whole = yaml_text.read(text)
    pieces = yaml_salvage._in_pieces(text, 1, None)

    if not any(line[:1] in '"?' for line in text.splitlines()):
        assert pieces.root == whole.root
        assert pieces.places[id(pieces.root)] == whole.places[id(whole.root)]


def _no_none(value):
    if isinstance(value, list):
        return [_no_none(item) for item in value]
    if isinstance(value, dict):
        return {key: _no_none(item) for key, item in value.items()}
    return "" if value is None else value


@pytest.mark.parametrize(
    "text",
    [
        "a: x\nb: y " + "( # " * 20_000,
        "a: " + "( #" * 30_000,
        "a: [" + '"( #", ' + '"(", ' * 20_000 + '")"]',
        "a: b #c\nb:" + " " * 200_000,
    ],
    ids=["open", "no end", "many values on one line", "many spaces"],
)
def test_a_long_line_takes_linear_time(text):
    started = time.process_time()
    yaml_text.read(text)
    assert time.process_time() - started < 0.5
