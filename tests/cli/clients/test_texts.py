"""The two texts that are changed in place: what is set is there, and all else is as it was."""

from __future__ import annotations

import json
import re
import tomllib
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcli.clients import toml_text
from kbcore.text.json_edit import with_item, with_member, without_empty, without_items
from kbcore.text.json_reader import NotJson, read_spans

KEYS = st.text(max_size=6)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**9) | st.floats(allow_nan=False, allow_infinity=False) | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(KEYS, PLAIN, max_size=4)
ENTRY = {"command": "x", "args": ["-C", "/a b"]}


def commented(text: str, marks: list[str]) -> str:
    """Return a JSON text with a comment or a blank after each bracket and comma outside of texts."""
    parts = re.split(r'("(?:[^"\\]|\\.)*"|[\[\]{},:])', text)
    return "".join(
        part + (marks[at % len(marks)] if part and part in "[]{},:" else "") for at, part in enumerate(parts)
    )


@given(
    DOCUMENTS, st.sampled_from([None, 2, "\t"]), st.lists(st.sampled_from(["", " ", "/* , */", "// }\n"]), min_size=1)
)
def test_a_member_is_set_and_nothing_else_is_changed(document, indent, marks):
    text = commented(json.dumps(document, indent=indent, ensure_ascii=False), marks)
    assert read_spans(text).root == document
    if isinstance(document.get("servers", {}), dict):
        changed = with_member(text, ("servers", "kb"), ENTRY)
        wanted = {**document, "servers": {**document.get("servers", {}), "kb": ENTRY}}
        assert read_spans(changed).root == wanted
        assert with_member(changed, ("servers", "kb"), ENTRY) == changed


@given(DOCUMENTS, KEYS)
def test_what_is_inserted_leaves_the_rest_byte_for_byte(document, key):
    text = json.dumps(document, indent=2)
    changed = with_member(text, (key,), 1)
    if key not in document:
        lines = changed.split("\n")
        assert [line.rstrip(",") for line in text.split("\n") if line not in {"{}", "{", "}"}] == [
            line.rstrip(",") for line in lines[1:-1] if line != f"  {json.dumps(key, ensure_ascii=False)}: 1"
        ]


@given(st.text())
def test_any_text_is_read_or_refused_with_a_place(text):
    with suppress(NotJson):
        read_spans(text)
    with pytest.raises(NotJson) as refused:
        read_spans(text + "\n{")
    assert 1 <= refused.value.line <= text.count("\n") + 2
    assert refused.value.column >= 1


@pytest.mark.parametrize("text", ["[" * 300, '{"a":' * 300, '"\\ud800', "{'a': 1}", '{"a" 1}', "{,}", "[1 2]", "[,]"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(NotJson):
        read_spans(text)


def test_line_ends_are_those_of_the_file():
    assert with_member('{\r\n  "a": 1\r\n}\r\n', ("b",), {"c": 2}) == (
        '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n'
    )
    assert toml_text.with_table("a = 1\r\n", ("t",), {"b": "c"}) == 'a = 1\r\n\r\n[t]\r\nb = "c"\r\n'


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LINES = st.lists(
    st.sampled_from(["a = 1", "# note", "", "[other]", "[mcp_servers.x]", 'args = ["[mcp_servers.kb]"]', "[[list]]"]),
    max_size=6,
)


@example(before=[], after=[], values={"command": "\x85["})
@given(
    LINES, LINES, st.dictionaries(st.sampled_from(["command", "args", "odd key"]), TEXTS | st.lists(TEXTS), min_size=1)
)
def test_a_table_is_set_and_nothing_else_is_changed(before, after, values):
    for lines in (before, [*before, "[mcp_servers.kb] # mine", "args = [", '  "x",', "]", "other = 1", *after]):
        text = "\n".join(lines)
        try:
            old = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        changed = toml_text.with_table(text, ("mcp_servers", "kb"), values)
        entry = {**old.get("mcp_servers", {}).get("kb", {}), **values}
        assert tomllib.loads(changed) == {**old, "mcp_servers": {**old.get("mcp_servers", {}), "kb": entry}}
        assert toml_text.with_table(changed, ("mcp_servers", "kb"), values) == changed
        kept = [line for line in changed.splitlines() if line in lines]
        assert [line for line in lines if line in {"# note", "[other]", "[[list]]"}] == [
            line for line in kept if line in {"# note", "[other]", "[[list]]"}
        ]


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '[box]\nroots = ["/new"]\n'),
        ("[box]\nother = 1\n", '[box]\nother = 1\nroots = ["/new"]\n'),
        ("[box]\nroots = []\n", '[box]\nroots = ["/new"]\n'),
        ("[box]\nroots = [ ] # none\n", '[box]\nroots = ["/new" ] # none\n'),
        ('[box]\nroots = ["/a", "/b"]\n', '[box]\nroots = ["/new", "/a", "/b"]\n'),
        ("[box]\nroots = [ # mine\n\t'/a]', # [\n]\n", "[box]\nroots = [ # mine\n\t\"/new\",\n\t'/a]', # [\n]\n"),
        ("[box]\nroots = [\n]\n", '[box]\nroots = [\n"/new",\n]\n'),
        ('[box]\r\nroots = [\r\n  "/a"\r\n]\r\n', '[box]\r\nroots = [\r\n  "/new",\r\n  "/a"\r\n]\r\n'),
        ('box.roots = ["/a"]\n', 'box.roots = ["/new", "/a"]\n'),
        ('box = {roots = ["/a"]}\n', 'box = {roots = ["/new", "/a"]}\n'),
        ('[box]\n"roots" = ["/a"]\n', '[box]\n"roots" = ["/new", "/a"]\n'),
        ('[x]\nroots = ["/a"]\n[box]\nroots = ["/a"]\n', '[x]\nroots = ["/a"]\n[box]\nroots = ["/new", "/a"]\n'),
        ('# roots = [\n[box]\nroots = ["/a"]\n', '# roots = [\n[box]\nroots = ["/new", "/a"]\n'),
        ('[box]\nroots = ["/a", "/new"]\n', '[box]\nroots = ["/a", "/new"]\n'),
    ],
)
def test_a_text_joins_a_list_and_all_else_stays(text, changed):
    assert toml_text.with_listed(text, ("box",), "roots", "/new") == changed
    assert toml_text.with_listed(changed, ("box",), "roots", "/new") == changed


@pytest.mark.parametrize(
    "text", ["[box]\nroots = 1", '[box]\nroots = ["/a", 1]', "box = 1", "box = {a = 1}", "[[box]]\nroots = []"]
)
def test_a_list_that_is_none_is_left_alone(text):
    with pytest.raises(toml_text.NotToml):
        toml_text.with_listed(text, ("box",), "roots", "/new")


@given(LINES, LINES, st.lists(TEXTS, max_size=3), TEXTS, st.sampled_from([", ", ",\n  ", ", # [ \n"]))
def test_a_list_of_any_texts_gets_another_one(before, after, listed, value, between):
    items = between.join([*(json.dumps(one).replace("\x7f", "\\u007f") for one in listed), ""])
    text = "\n".join([*before, "[box]", f"roots = [{items}]", *after])
    try:
        old = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    changed = toml_text.with_listed(text, ("box",), "roots", value)
    assert tomllib.loads(changed)["box"]["roots"] == (listed if value in listed else [value, *listed])
    assert {**tomllib.loads(changed), "box": 0} == {**old, "box": 0}


HOOK = {"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "kb agents hook"}]}
ITEMS = st.lists(st.dictionaries(KEYS, PLAIN, max_size=2) | st.integers(), max_size=3)


@given(DOCUMENTS, ITEMS, st.sampled_from([None, 2]), st.lists(st.sampled_from(["", " ", "/* , */"]), min_size=1))
def test_items_that_are_taken_out_leave_the_others(document, items, indent, marks):
    whole = {**document, "hooks": {"Start": items}}
    text = commented(json.dumps(whole, indent=indent, ensure_ascii=False), marks)
    added = with_item(text, ("hooks", "Start"), HOOK)
    assert read_spans(added).root == {**whole, "hooks": {"Start": [*items, HOOK]}}
    taken = without_items(added, ("hooks", "Start"), lambda one: one == HOOK)
    assert read_spans(taken).root == whole
    every = without_items(added, ("hooks", "Start"), lambda _: True)
    left = [one for one in items if not isinstance(one, dict)]
    assert read_spans(every).root == {**whole, "hooks": {"Start": left}}
    emptied = read_spans(without_empty(every, ("hooks", "Start"))).root
    rest = {key: value for key, value in document.items() if key != "hooks"}
    assert emptied == ({**rest, "hooks": {"Start": left}} if left else rest)


@pytest.mark.parametrize("before", ["0,/* , */", '"a,b" , // c, d\n', '{"x": [1, 2]},'])
def test_the_last_item_goes_with_the_comma_before_it_and_none_in_a_comment_or_text(before):
    text = f'{{"hooks": [{before} {{"a": 1}}]}}'
    left = read_spans(without_items(text, ("hooks",), lambda one: one == {"a": 1})).root
    assert left == {"hooks": read_spans(text).root["hooks"][:1]}


TABLES = """\
model = "x" # mine

[mcp_servers.kb]
command = "kb-mcp"

[mcp_servers.kb.env]
A = "1"

# about the other
[mcp_servers.other]
command = "y"
"""


def test_a_table_is_taken_out_with_those_below_it_and_nothing_else():
    taken = toml_text.without_table(TABLES, ("mcp_servers", "kb"))
    assert taken == 'model = "x" # mine\n\n# about the other\n[mcp_servers.other]\ncommand = "y"\n'
    assert tomllib.loads(taken) == {"model": "x", "mcp_servers": {"other": {"command": "y"}}}
    assert toml_text.without_table(taken, ("mcp_servers", "kb")) == taken
    with pytest.raises(toml_text.NotToml):
        toml_text.without_table('mcp_servers = {kb = {command = "x"}}\n', ("mcp_servers", "kb"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('[s]\nroots = ["/kb", "/a"]\n', '[s]\nroots = ["/a"]\n'),
        ('[s]\nroots = ["/a", "/kb"]\n', '[s]\nroots = ["/a"]\n'),
        ('[s]\nroots = [\n  "/kb",\n  "/a", # mine\n]\nb = 1\n', '[s]\nroots = [\n  "/a", # mine\n]\nb = 1\n'),
        ('[s]\nroots = ["/kb"]\nb = 1\n', "[s]\nb = 1\n"),
        ('a = 1\n\n[s]\nroots = ["/kb"]\n', "a = 1\n"),
        ('[s]\nroots = ["/a"]\n', '[s]\nroots = ["/a"]\n'),
    ],
)
def test_a_text_of_a_list_is_taken_out_and_what_is_then_empty(before, after):
    assert toml_text.without_listed(before, ("s",), "roots", "/kb") == after


@given(st.sampled_from(["", "a = 1\n", "a = 1", "[x]\nb = 2\n\n", "# c\r\n[x]\r\n"]), st.text(max_size=5))
def test_what_was_set_and_listed_is_taken_out_again(text, value):
    added = toml_text.with_listed(toml_text.with_table(text, ("t", "kb"), {"c": value}), ("s",), "roots", value)
    taken = toml_text.without_listed(toml_text.without_table(added, ("t", "kb")), ("s",), "roots", value)
    assert tomllib.loads(taken) == tomllib.loads(text)
