"""Reading of YAML that is not valid, and the messages about the rest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.text import yaml_salvage

LINES = st.sampled_from(
    [
        "id: A",
        "title: a: b",
        "owner: @me",
        "tags: [a, b]",
        "tags: [a, b",
        "links:",
        "  - x",
        "  - @y",
        "  - k: v",
        "    w: 'z",
        "\tt: x",
        "\t",
        "  u: v",
        "<<<<<<< a",
        "=======",
        ">>>>>>> b",
        "- item",
        "# comment",
        "",
        "stray",
        "? odd",
        "---",
        "a: |",
        "  text",
        "b: &x c",
        "d: *x",
        "e: *y",
        "<<: *x",
        "{{a}}: b",
        "f: \x07",
        "g: \u2028x",
        "id: B",
    ]
)


def read(text, first_line=1):
    tree = yaml_salvage.read_mapping(text, first_line)
    return tree.root, [(problem.line, problem.column, problem.code) for problem in tree.problems]


def test_valid_yaml_is_read_as_it_is():
    assert read("a: 1\nb: [2]\n") == ({"a": "1", "b": ["2"]}, [])


def test_an_empty_text_is_an_empty_mapping():
    tree = yaml_salvage.read_mapping("\n# c\n", 2)

    assert (tree.root, tree.problems, tree.is_complete) == ({}, [], True)


def test_plain_lines_that_are_no_yaml_keep_their_text():
    root, problems = read("id: A\nassignee: @name\ntitle: a: b\nstatus: open\n", 2)

    assert root == {"id": "A", "assignee": "@name", "title": "a: b", "status": "open"}
    assert problems == [(3, 11, "invalid_yaml"), (4, 9, "invalid_yaml")]


def test_the_hint_says_what_was_kept():
    (problem,) = yaml_salvage.read_mapping("owner: @me # lead\n", 1).problems

    assert "quotes" in problem.hint
    assert "'@me'" in problem.hint


def test_what_was_read_in_pieces_is_not_complete_and_has_lines():
    tree = yaml_salvage.read_mapping("id: A\n\n# c\nowner: @me\nlinks:\n- x\n", 5)

    assert not tree.is_complete
    assert {key: tree.line(tree.root, key) for key in tree.root} == {"id": 5, "owner": 8, "links": 9}
    assert tree.line(tree.root["links"], 0) == 10


def test_text_after_a_closed_bracket_or_quote_is_kept_whole():
    root, problems = read('title: [WIP] Login\nowner: "Ann" B\nnote: {x} y\n')

    assert root == {"title": "[WIP] Login", "owner": '"Ann" B', "note": "{x} y"}
    assert len(problems) == 3


def test_a_structure_that_is_not_closed_is_left_out():
    root, problems = read("id: A\ntags: [a, b\ntitle: 'x\nmap: {a\nlit: | x\nz: 1\n")

    assert root == {"id": "A", "z": "1"}
    assert [line for line, _, _ in problems] == [2, 3, 4, 5]


def test_a_template_placeholder_keeps_its_text():
    assert read("title: {{ name }}\nid: A\n")[0] == {"title": "{{ name }}", "id": "A"}


def test_items_of_a_broken_list_are_read_one_by_one():
    text = 'assignee:\n  - @ann\n  - "bob"\n  - [c\n  - k: @v\n    w: 1\nid: A\n'
    tree = yaml_salvage.read_mapping(text, 1)

    assert tree.root == {"assignee": ["@ann", "bob", {"k": "@v", "w": "1"}], "id": "A"}
    assert [(p.line, p.column) for p in tree.problems] == [(2, 5), (4, 5), (5, 8)]
    assert [tree.line(tree.root["assignee"], index) for index in range(3)] == [2, 3, 5]
    assert tree.line(tree.root["assignee"][2], "w") == 6


def test_a_list_that_lacks_an_item_is_known_to_lack_it():
    tree = yaml_salvage.read_mapping("a:\n- [x\n- y\nb:\n- @z\n", 1)

    assert tree.root == {"a": ["y"], "b": ["@z"]}
    assert tree.lossy == {id(tree.root["a"])}


def test_a_top_level_list_is_read_one_by_one_too():
    tree = yaml_salvage.read("# c\n- id: a\n- id: @b\n  x: 1\n- id: 'c\n- id: d\n", 1)

    assert tree.root == [{"id": "a"}, {"id": "@b", "x": "1"}, {}, {"id": "d"}]
    assert [tree.line(tree.root, index) for index in range(4)] == [2, 3, 5, 6]
    assert [problem.line for problem in tree.problems] == [3, 5]


def test_anchors_reach_from_one_piece_to_the_next():
    root, problems = read("a: &x [1]\nb: *x\nc: @d\n")

    assert root == {"a": ["1"], "b": ["1"], "c": "@d"}
    assert [line for line, _, _ in problems] == [3]


def test_a_piece_that_is_an_alias_of_an_empty_value_is_read():
    tree = yaml_salvage.read("a: &empty\nb: 1\n*empty\nc: [\n", 1)

    assert tree.root == {"a": None, "b": "1"}
    assert tree.problems


def test_alias_bombs_are_refused_in_pieces_too():
    lines = ["bad: @x", "a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    tree = yaml_salvage.read_mapping("\n".join(lines), 1)

    assert not any(isinstance(tree.root.get(f"a{n}"), list) for n in range(5, 30))
    assert len(tree.problems) > 20


def test_a_key_that_is_in_two_pieces_is_reported_with_both_lines():
    root, problems = read("id: A\nx: @y\nid: B\n")

    assert root == {"id": "A", "x": "@y"}
    assert (3, 0, "duplicate_key") in problems


def test_a_stray_line_is_reported_and_the_others_are_read():
    root, problems = read("id: A\nstray words\ntitle: T\n")

    assert root == {"id": "A", "title": "T"}
    assert [line for line, _, _ in problems] == [2]


def test_a_second_document_does_not_hide_the_first():
    root, problems = read("id: A\n---\nid: B\n")

    assert root == {"id": "A"}
    assert problems


def test_line_breaks_that_only_yaml_knows_do_not_shift_lines():
    root, problems = read('id: A\ntitle: "x\u2028y"\nowner: @z\n')

    assert root["id"] == "A"
    assert problems == [(2, 0, "odd_line_break"), (3, 8, "invalid_yaml")]


def test_an_odd_line_break_alone_is_a_warning():
    tree = yaml_salvage.read_mapping('a: "x\x85y"\nb: c\n', 1)

    assert [problem.severity for problem in tree.problems] == ["warning"]
    assert tree.root["b"] == "c"


def test_a_text_that_is_no_mapping_is_a_problem():
    assert read("- a\n- b\n") == ({}, [(1, 0, "wrong_shape")])
    assert read("just text\n", 4) == ({}, [(4, 0, "wrong_shape")])


@pytest.mark.parametrize(
    ("text", "root", "place"),
    [
        ("id: A\n\ttitle: x\ns: y\n", {"id": "A", "title": "x", "s": "y"}, (2, 1)),
        ("\tid: A\n\ttitle: x\n", {"id": "A", "title": "x"}, (1, 1)),
        ("title: Two words\n\tid: A\n", {"title": "Two words", "id": "A"}, (2, 1)),
        ("id: A\n\t\ntitle: x\n", {"id": "A", "title": "x"}, (2, 1)),
        ("  id: A\n\t  title: x\n", {"id": "A", "title": "x"}, (2, 1)),
        ("id: A\nmap:\n\tk: v\n\tw:\n\t\tx: y\n", {"id": "A", "map": {"k": "v", "w": {"x": "y"}}}, (3, 1)),
        ("  id: A\n  title: a: b\n", {"id": "A", "title": "a: b"}, (2, 11)),
        ("id: A\n  title: x\n", {"id": "A", "title": "x"}, (2, 8)),
    ],
)
def test_keys_that_are_indented_wrongly_are_read_and_the_place_is_named(text, root, place):
    tree = yaml_salvage.read_mapping(text, 1)

    assert tree.root == root
    assert [(problem.line, problem.column) for problem in tree.problems] == [place]
    assert not tree.is_complete
    assert all(text.split("\n")[tree.line(tree.root, key) - 1].strip().startswith(key) for key in root)


def test_a_text_that_may_go_on_in_the_next_line_is_not_cut():
    root, problems = read("id: A\ntitle: some long words\n  and more: of them\n")

    assert root == {"id": "A"}
    assert [line for line, _, _ in problems] == [3]


@pytest.mark.parametrize("sign", ["<<<<<<< HEAD", "=======", ">>>>>>> feature/x"])
def test_a_line_that_a_merge_left_is_called_by_its_name(sign):
    root, problems = read(f"id: A\n{sign}\ntitle: x\n")

    assert root == {"id": "A", "title": "x"}
    assert problems == [(2, 0, "merge_conflict")]


@given(st.lists(LINES, max_size=12), st.integers(1, 9))
def test_any_content_is_read_or_reported(lines, first_line):
    text = "\n".join(lines)
    tree = yaml_salvage.read_mapping(text, first_line)

    assert isinstance(tree.root, dict)
    assert tree.is_complete or tree.problems
    for problem in tree.problems:
        assert first_line <= problem.line <= first_line + len(lines)
        assert problem.message
        assert problem.hint
    for key in tree.root:
        assert first_line <= tree.line(tree.root, key) < first_line + len(lines)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("step", ["{indent}a{n}: x\n", "{indent}- a{n}: @x\n", "{indent}a{n}: @x\n"])
def test_a_staircase_of_broken_lines_is_read_a_few_steps_down(step):
    text = "@x: y\n" + "".join(step.format(indent=" " * n, n=n) for n in range(2000))
    assert yaml_salvage.read_mapping(text, 1).problems
