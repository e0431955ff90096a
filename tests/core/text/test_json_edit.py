"""An item is added to a list of a JSON text, and every other byte stays as it is."""

from __future__ import annotations

import json

import pytest

from kbcore.text.json_edit import with_item
from kbcore.text.json_reader import NotJson

WRITTEN = '{\n  "a": 1,  // one\n  "list": [{"x":1},\n    {"y": 2} /* two */\n  ]\n}\n'


def test_an_object_is_added_behind_the_last_one_and_the_rest_stays() -> None:
    changed = with_item(WRITTEN, ["list"], {"z": [3, 4]})
    before, after = WRITTEN.split('{"y": 2}')
    assert changed.startswith(before + '{"y": 2},\n    {\n')
    assert changed.endswith(after)
    assert '"z": [3, 4]' in changed


@pytest.mark.parametrize("text", ["{}\n", '{"a": {}}', '{"a": {"list": []}, "b": 1}'])
def test_a_list_that_is_missing_or_empty_is_made(text: str) -> None:
    changed = with_item(text, ["a", "list"], {"x": {"y": 1}})
    assert json.loads(changed)["a"]["list"] == [{"x": {"y": 1}}]
    assert '\n      {\n        "x": {' in changed


def test_what_a_list_has_is_not_added_again() -> None:
    assert with_item(WRITTEN, ["list"], {"x": 1}) == WRITTEN
    assert with_item('{"globs": ["a"]}', ["globs"], "a") == '{"globs": ["a"]}'
    assert with_item('{"globs": ["a"]}', ["globs"], "b") == '{"globs": ["a", "b"]}'


def test_what_is_no_object_on_the_way_is_named() -> None:
    with pytest.raises(NotJson, match="no object"):
        with_item('{"a": 1}', ["a", "list"], 2)
