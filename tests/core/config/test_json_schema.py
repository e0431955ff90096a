"""The JSON Schema of the settings takes what KB takes, and refuses what KB refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kbcore.config.json_schema import schema
from kbcore.config.settings import _KEYS, parse_config
from kbcore.config.template import default_config_text
from kbcore.errors import InvalidConfig
from kbcore.extract.settings import BUILT_IN
from kbcore.extract.sources import profiles

ROOT = Path(__file__).resolve().parents[3]
VALIDATOR = jsonschema.Draft202012Validator(schema())
SOURCE = {"glob": "a/*.md", "type": "req", "id": "{id}"}


def documented() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the settings in the pages and of the fixtures, each with where it is."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for block in re.finditer(r"^```json\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL):
            try:
                found = json.loads(block[1])
            except ValueError:
                continue  # an excerpt
            is_call = isinstance(found, dict) and isinstance(found.get("rules"), list)  # of the tool kb_check
            if isinstance(found, dict) and found and not is_call and found.keys() <= {*_KEYS}:
                yield page.name, found
    for path in sorted((ROOT / "tests").rglob("fixtures/*/expected.json")):
        yield path.parent.name, {"sources": json.loads(path.read_text())["sources"]}
    for path in sorted(ROOT.glob("**/.kb/config.json")):
        if ".venv" not in path.parts:
            yield str(path.relative_to(ROOT)), json.loads(path.read_text())
    yield "the default", json.loads(default_config_text("main"))
    for name in profiles.NAMES:
        yield name, {"sources": [profiles.read(name)["source"]]}


GOOD: list[dict[str, Any]] = [
    {},
    {"extractors": {"markdown": False, "own": {"anything": 1}}},
    {"extractors": {"markdown": {"mentions": ["docs/**"], "paths": {"req": "a/*.md"}}}},
    {"extractors": {"code": {"paths": ["src/**"], "tests": ["tests/**"], "ignore": []}}},
    {"sources": [{"profile": "eip", "glob": "x/*.md", "fields": {"a": None}}]},
    {"suppress": [{"rule": "orphans", "id": "REQ-1", "reason": "why"}]},
    {"share": {"actors": "team-*", "types": ["[!n]*"]}},
    {"results": ["build/**/*.xml"]},
    {"results": "build/junit.xml"},
    {"extractors": {"scip": {"paths": ["**/*.scip"], "root": "", "ignore": ["gen/**"]}}},
    {"codeowners": False},
    {"search": {"meaning": "on"}},
    {"fleet": {"place": "s3://acme/kb", "repo": None}},
    {"defaults": [{"paths": "a/**", "types": ["req"], "owner": "@a", "tags": ["x"], "attributes": {"team": 1}}]},
    {"ruleParams": {"own": {"most": 3, "names": ["a", 1, True]}}},
]
WRONG: list[dict[str, Any]] = [
    {"$schema": 1},
    {"unknown": 1},
    {"defaultBranch": 1},
    {"extractors": {"markdown": True}},
    {"extractors": {"own": 1}},
    {"extractors": {"markdown": {"path": {}}}},
    {"extractors": {"code": {"path": []}}},
    {"extractors": {"gherkin": {"paths": {"req": []}}}},
    {"extractors": {"code": {"path": ["src/**"]}}},
    {"extractors": {"code": {"tests": 1}}},
    {"extractors": {"scip": {"root": 1}}},
    {"sources": SOURCE},
    {"sources": [{**SOURCE, "golb": "x"}]},
    {"sources": [{"type": "req", "id": "{id}"}]},
    {"sources": [{"glob": "a/*.md", "type": "req"}]},
    {"sources": [{**SOURCE, "profile": "none"}]},
    {"sources": [{**SOURCE, "format": "word"}]},
    {"sources": [{**SOURCE, "type": {"field": "kind"}}]},
    {"sources": [{**SOURCE, "links": {"a": {"id": "{value}"}}}]},
    {"sources": [{**SOURCE, "mentions": "yes"}]},
    {"sources": [{**SOURCE, "parts": [{"items": {"line": "x"}}]}]},
    {"rules": {"orphans": "loud"}},
    {"ruleParams": {"own": {"a": {}}}},
    {"suppress": [{"rule": "orphans", "id": "REQ-1"}]},
    {"suppress": [{"rule": "orphans", "reason": "why"}]},
    {"ruleTimeLimitSeconds": 0},
    {"lockWaitSeconds": "3"},
    {"kip": {"rowLimit": 0.5}},
    {"sleep": {"mostOrphans": -1}},
    {"sleep": {"domainOfTag": {"a": 1}}},
    {"logic": {"workspace": "here"}},
    {"share": {"mode": "on"}},
    {"share": {"actors": ["*", "!secretive"]}},
    {"share": {"types": "!note"}},
    {"staged": {"symbols": 1}},
    {"fleet": {"place": 1}},
    {"fleet": {"repo": ""}},
    {"fleet": {"places": "a"}},
    {"results": 1},
    {"codeowners": "docs/CODEOWNERS"},
    {"search": {"meaning": True}},
    {"search": {"meanings": "on"}},
    {"defaults": {"paths": "a/**", "owner": "@a"}},
    {"defaults": [{"paths": "a/**"}]},
    {"defaults": [{"owner": "@a"}]},
    {"defaults": [{"paths": "a/**", "owner": ""}]},
    {"defaults": [{"paths": "a/**", "tags": []}]},
    {"defaults": [{"paths": "a/**", "title": "A"}]},
    {"results": {"paths": []}},
]


@pytest.mark.parametrize(("place", "settings"), list(documented()))
def test_settings_that_are_shown_or_shipped_are_valid(place: str, settings: dict[str, Any]) -> None:
    assert [f"{place}: {error.message}" for error in VALIDATOR.iter_errors(settings)] == []


@pytest.mark.parametrize("settings", GOOD)
def test_what_kb_takes_the_schema_takes(settings: dict[str, Any]) -> None:
    parse_config(json.dumps(settings), "c")
    VALIDATOR.validate(settings)


@pytest.mark.parametrize("settings", WRONG)
def test_what_kb_refuses_the_schema_refuses(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidConfig):
        parse_config(json.dumps(settings), "c")
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(settings)


def test_every_setting_is_described() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert schema()["properties"].keys() == {*_KEYS}
    undescribed = [path for path, one in properties(schema()) if not one.get("description")]
    assert [path for path in undescribed if path.startswith(("$.properties", "$.$defs.Source", "$.$defs.Part"))] == []


def properties(value: Any, path: str = "$") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        for key, one in value.items():
            inner = f"{path}.{key}"
            if key == "properties":
                yield from ((f"{inner}.{name}", member) for name, member in one.items())
            yield from properties(one, inner)
    elif isinstance(value, list):
        for one in value:
            yield from properties(one, path)


def test_the_documented_settings_are_found() -> None:
    places = [place for place, _ in documented()]
    assert {"configuration.md", "sources.md", "the default", "eip"} <= {*places}


def test_the_keys_of_each_of_kb_own_extractors_are_known() -> None:
    described = schema()["properties"]["extractors"]["properties"]
    keys = {name: one["anyOf"][0]["properties"].keys() for name, one in described.items()}
    assert keys == {name: members.keys() for name, members in BUILT_IN.items()}
