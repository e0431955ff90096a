"""Defaults give values to the entities of some files, for fields of which a file says nothing."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.config.settings import parse_config
from kbcore.errors import InvalidConfig
from kbcore.extract.defaults import origins, with_defaults
from kbcore.extract.facts import Facts, StatedEntity


def entries(*given_: dict) -> tuple[dict, ...]:
    return parse_config(json.dumps({"defaults": list(given_)}), "config.json").defaults


def entity(type_: str = "req", **fields: str) -> StatedEntity:
    return StatedEntity("REQ-1", type_, fields, 1, dict.fromkeys(fields, 2))


def filled(one: StatedEntity, *given_: dict, path: str = "a/b/c.md") -> dict:
    return with_defaults(Facts((one,)), path, entries(*given_)).entities[0].fields


def test_a_field_that_is_not_stated_has_the_value_of_the_first_entry_that_has_it():
    near, far = {"paths": "a/b/**", "owner": "@near"}, {"paths": ["a/**"], "owner": "@far", "tags": ["x", "x"]}
    assert filled(entity(), near, far) == {"owner": "@near", "tags": ["x"]}
    assert filled(entity(), near, far, path="a/c.md") == {"owner": "@far", "tags": ["x"]}
    assert filled(entity(), near, far, path="b/c.md") == {}
    assert origins(entity(), "a/b/c.md", entries(near, far)) == {"owner": 0, "tags": 1}


def test_what_is_stated_stays_also_where_it_cannot_be_read():
    one = {"paths": "**", "owner": "@all", "status": "open", "attributes": {"team": "x"}}
    assert filled(entity(owner="ann"), one) == {"owner": "ann", "status": "open", "attributes.team": "x"}
    unread = StatedEntity("REQ-1", "req", {}, 1, {"owner": 3, "status": 4})
    assert filled(unread, one) == {"attributes.team": "x"}


def test_types_and_parts_are_told_apart():
    one = {"paths": "**", "types": "adr", "owner": "@all"}
    assert filled(entity(), one) == {}
    assert filled(entity("adr"), one) == {"owner": "@all"}
    part = StatedEntity("REQ-1", "", {}, 1, is_part=True)
    assert filled(part, {"paths": "**", "owner": "@all"}) == {}


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        ({"owner": "a"}, "bad_default"),
        ({"paths": "a/**"}, "bad_default"),
        ({"paths": "/a", "owner": "a"}, "bad_glob"),
        ({"paths": "a", "owner": 3}, "wrong_type"),
        ({"paths": "a", "tags": "x"}, "wrong_type"),
        ({"paths": "a", "tags": [1]}, "wrong_type"),
        ({"paths": "a", "attributes": {"": 1}}, "bad_name"),
        ({"paths": "a", "attributes": {"x": None}}, "bad_value"),
        ({"paths": "a", "title": "x"}, "unknown_key"),
        ({"paths": "a", "types": [""], "owner": "x"}, "wrong_type"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_with_its_line(entry, code):
    with pytest.raises(InvalidConfig) as refused:
        entries(entry)
    assert code in {one.code for one in refused.value.details}
    assert {one.line for one in refused.value.details} == {1}


def test_more_entries_than_the_limit_are_refused():
    with pytest.raises(InvalidConfig, match="the limit is 200"):
        entries(*[{"paths": "a", "owner": "x"}] * 201)


_FIELDS = st.dictionaries(st.sampled_from(["owner", "status", "priority"]), st.sampled_from(["x", "y"]))


@given(stated=_FIELDS, defaults=st.lists(_FIELDS.filter(bool), max_size=4))
def test_defaults_change_no_stated_field_and_applying_them_again_changes_nothing(stated, defaults):
    given_ = entries(*({"paths": "**", **one} for one in defaults))
    facts = Facts((entity(**stated),))
    once = with_defaults(facts, "a.md", given_)
    assert with_defaults(once, "a.md", given_) == once
    assert stated.items() <= once.entities[0].fields.items()
    assert once.entities[0].fields.keys() == {*stated, *(name for one in defaults for name in one)}
