"""A change to a client's file is shown as what is removed and added, without what stays."""

from __future__ import annotations

import pytest

from kbcli.clients.difference import diff_lines
from kbcore.text.json_edit import with_member


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ('{\n  "key": "sekret"\n}\n', '{\n  "key": "sekret",\n  "kb": {}\n}\n', ["+  …,", '+  "kb": {}']),
        (
            '{"kb":{"command":"old","env":{"K":"sekret"},"args":["-C"]}}\n',
            '{"kb":{"command":"new","env":{"K":"sekret"},"args":["-C", "x"]}}\n',
            ['-…"command":"old"…', '+…"command":"new"…, "x"…'],
        ),
        (
            'x = "sekret"\r\ncommand = "a"\r\n',
            'x = "sekret"\r\ncommand = "b"\r\n',
            ['-command = "a"', '+command = "b"'],
        ),
        (None, "[kb]\n", ["+[kb]"]),
    ],
)
def test_only_removed_and_added_text_is_shown(before, after, shown):
    assert diff_lines("file", before, after)[3:] == shown


def test_no_lines_are_shown_where_nothing_changes():
    assert diff_lines("file", "a\n", "a\n") == []


@pytest.mark.parametrize(
    "text", ['{"k":"sekret","m":{}}', '{"m": {}, "k": "sekret"}', '{\n"m": {"k": "sekret"}}', '{"k":["sekret"]}']
)
def test_a_key_of_the_user_is_in_no_line_wherever_it_is(text):
    lines = diff_lines("file", text, with_member(text, ("m", "kb"), {"command": "kb-mcp", "args": ["sek"]}))
    assert "sekret" not in "".join(lines)
    assert "kb-mcp" in "".join(lines)
