"""Faults of the setting ``sources``."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbcore.config.settings import parse_config
from kbcore.errors import InvalidConfig
from kbcore.extract.sources import profiles
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.source import source_of

GOOD = {"glob": "d/*.md", "type": "req", "id": "{n}"}


def refused(entry: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(json.dumps({"sources": entry}), "config.json")
    return [(one.path, one.code) for one in caught.value.details]


@pytest.mark.parametrize(
    ("change", "path", "code"),
    [
        ({"glob": ""}, "$.sources[0].glob", "bad_glob"),
        ({"glob": "d/{a b}.md"}, "$.sources[0].glob", "bad_glob"),
        ({"glob": None}, "$.sources[0].glob", "wrong_type"),
        ({"id": "{n"}, "$.sources[0].id", "bad_template"),
        ({"id": 3}, "$.sources[0].id", "wrong_type"),
        ({"type": {"field": "x"}}, "$.sources[0].type", "missing_key"),
        ({"type": ""}, "$.sources[0].type", "wrong_type"),
        ({"profile": "epi"}, "$.sources[0].profile", "unknown_profile"),
        ({"format": "word"}, "$.sources[0].format", "wrong_type"),
        ({"items": "needs"}, "$.sources[0].items", "bad_path"),
        ({"items": {"headings": "x"}}, "$.sources[0].items.headings", "unknown_key"),
        ({"items": {"under": "x"}}, "$.sources[0].items", "missing_key"),
        ({"items": {"line": "{a:z}"}}, "$.sources[0].items.line", "bad_pattern"),
        ({"with": "../README.md"}, "$.sources[0].with", "wrong_type"),
        ({"with": "README.md"}, "$.sources[0]", "bad_template"),
        ({"fields": {"x": "title"}}, "$.sources[0].fields.x", "bad_field"),
        ({"fields": {"{_}_back": "x"}}, '$.sources[0].fields["{_}_back"]', "wrong_type"),
        ({"links": {"x": {}}}, "$.sources[0].links.x", "missing_key"),
        ({"links": {"x": {"edge": "a b"}}}, "$.sources[0].links.x.edge", "bad_edge"),
        ({"links": {"x": {"edge": "a", "match": "{"}}}, "$.sources[0].links.x.match", "bad_pattern"),
        ({"status": {"map": {"a": 1}}}, "$.sources[0].status.map.a", "wrong_type"),
        ({"links": {"x": {"edge": "{a"}}}, "$.sources[0].links.x.edge", "bad_template"),
        ({"links": {"x": [{"edge": "a"}, {}]}}, "$.sources[0].links.x[1]", "missing_key"),
        ({"links": {"x {": "a"}}, '$.sources[0].links["x {"]', "bad_pattern"),
        ({"links": {"x": {"edge": "a", "where": 1}}}, "$.sources[0].links.x.where", "wrong_type"),
        ({"items": {"line": "x", "extent": "all"}}, "$.sources[0].items.extent", "wrong_type"),
        ({"profile": "gherkin"}, "$.sources[0].profile", "unknown_profile"),
        ({"parts": [{}]}, "$.sources[0].parts[0]", "missing_key"),
        ({"mentions": "no"}, "$.sources[0].mentions", "wrong_type"),
        ({"odd": 1}, "$.sources[0].odd", "unknown_key"),
    ],
)
def test_a_fault_of_an_entry_is_named_with_its_place(change: dict[str, Any], path: str, code: str) -> None:
    assert (path, code) in refused([{**GOOD, **change}])


@pytest.mark.parametrize("entry", [3, {}, ["x"], [None], [{}], [{"glob": "a.md"}]])
def test_what_is_no_entry_is_refused(entry: Any) -> None:
    assert refused(entry)


def test_an_unknown_type_of_an_entry_is_in_doubt_until_the_schema_is_read() -> None:
    assert parse_config(json.dumps({"sources": [{**GOOD, "type": "rfc"}]}), "c").sources[0]["type"] == "rfc"


def test_an_entry_has_the_settings_of_its_profile_beneath_its_own() -> None:
    entry = {"profile": "eip", "glob": "x/*.md", "status": {"map": {"Final": "done"}}, "fields": {"author": None}}
    found = source_of(resolved(entry))
    assert (found.glob, found.id) == ("x/*.md", "EIP-{eip}")
    assert found.status.map["Final"] == "done"
    assert found.status.map["Draft"] == "proposed"
    assert found.fields["author"] is None
    assert found.fields["created"] == "created"


@pytest.mark.parametrize("name", profiles.NAMES)
def test_each_profile_is_a_valid_entry_by_itself(name: str) -> None:
    config = parse_config(json.dumps({"sources": [{"profile": name}]}), "c")
    parse_config(json.dumps({"sources": [profiles.read(name)["source"]]}), "c")
    assert source_of(config.sources[0]).profile == name
    assert profiles.read(name)["description"]
    is_proposed = "never proposed" not in profiles.read(name)["description"]
    assert bool(profiles.signs(name)) == is_proposed
    assert all(one.weight for one in profiles.signs(name))


def test_each_key_that_a_document_must_have_is_a_condition_of_its_own() -> None:
    assert profiles.Signs(endings=[".md"], keys=["eip", "status"]).weight == 3
    assert not profiles.Signs(names="needs.json", beside=["conf.py"]).needs_content


def test_the_list_of_profiles_is_that_of_the_files() -> None:
    from pathlib import Path

    folder = Path(profiles.__file__).parent / "profiles"
    assert sorted(profiles.NAMES) == sorted(one.stem for one in folder.glob("*.json"))
