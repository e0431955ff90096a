"""Faults of the setting ``sources``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.config.settings import NameSources, checked_config, parse_config, read_config
from kbcore.errors import InvalidConfig
from kbcore.extract.facts import SourceFile
from kbcore.extract.sources import profiles
from kbcore.extract.sources.check import resolved
from kbcore.extract.sources.extractor import EXTRACTOR
from kbcore.extract.sources.source import source_of

GOOD = {"glob": "d/*.md", "type": "req", "id": "{n}"}


def refused(entry: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(json.dumps({"sources": entry}), "config.json")
    return [(one.path, one.code) for one in caught.value.details]


def test_an_edge_that_there_is_not_is_reported_beside_other_faults_of_its_entry() -> None:
    text = json.dumps({"sources": [GOOD | {"glob": 5, "links": {"requires": {"edge": "depend_on"}}}]})
    with pytest.raises(InvalidConfig) as caught:
        checked_config(read_config(text, "config.json"), NameSources(tuple, dict, tuple, tuple))
    assert [(one.path, one.code) for one in caught.value.details] == [
        ("$.sources[0].glob", "wrong_type"),
        ("$.sources[0].links.requires.edge", "unknown_edge"),
    ]


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
        ({"with": {"a": 1}, "withFields": 3}, "$.sources[0].withFields", "wrong_type"),
        ({"with": "R.md", "id": "{file.folder}", "withFields": {"x": None}}, "$.sources[0].withFields.x", "wrong_type"),
        ({"fields": {"x": ["owner"]}}, "$.sources[0].fields.x", "wrong_type"),
    ],
)
def test_a_fault_of_an_entry_is_named_with_its_place(change: dict[str, Any], path: str, code: str) -> None:
    assert (path, code) in refused([{**GOOD, **change}])


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"sheet": "x"}, ".sheet"),
        ({"glob": "d/*.csv", "items": "$[*]"}, ".items"),
        ({"items": "$[*]"}, ".items"),
        ({"glob": "d/*.json", "items": {"heading": "{n}"}}, ".items"),
        ({"items": {"heading": "{n}", "extent": "section"}}, ".items.extent"),
        ({"glob": "d/*.xlsx", "parts": [{"items": "$[*]", "id": "{n}", "type": "req"}]}, ".parts"),
        ({"parts": [{"items": "$[*]", "id": "{n}", "type": "req"}]}, ".parts[0].items"),
        ({"glob": "d/*.json", "mentions": True}, ".mentions"),
        ({"glob": "d/*.yaml", "mentionIds": ["R-"]}, ".mentionIds"),
        ({"mentions": False, "mentionIds": ["R-"]}, ".mentionIds"),
        ({"withFields": {"a": "owner"}}, ".withFields"),
        ({"title": {"match": "{number}. {name}"}}, ".title.match"),
        ({"fields": {"Due date": "due", "due_date": "owner"}}, ".fields.due_date"),
        ({"links": {"Needs": "depends_on", "needs": "relates_to"}}, ".links.needs"),
        ({"status": {"map": {"Open": "open", "open ": "done"}}}, '.status.map["open "]'),
        ({"type": {"field": "t", "map": {"Req": "req", "REQ": "test"}, "default": "req"}}, ".type.map.REQ"),
        ({"links": {"x": {"edge": "^depends_on", "kind": "hard"}}}, ".links.x.kind"),
        ({"profile": "eip", "fields": {"Created": None}}, ".fields.Created"),
    ],
)
def test_a_setting_that_can_have_no_effect_is_refused_with_its_place(change: dict[str, Any], path: str) -> None:
    assert refused([{**GOOD, **change}]) == [(f"$.sources[0]{path}", "no_effect")]


@pytest.mark.parametrize(
    "change",
    [
        {"glob": ["d/*.csv", "d/*.xlsx"], "sheet": "x"},
        {"glob": "d/*", "items": "$[*]", "sheet": "x", "mentions": False},
        {"glob": "d/*.txt", "format": "json", "items": "$[*]"},
        {"title": {"match": "{number}. {title}"}},
        {"links": {"x": {"edge": "relates_to", "kind": "hard"}, "y": ["depends_on"]}},
        {"profile": "sphinx-needs", "glob": "d/*.csv"},
        {"fields": {"x": "owner"}, "links": {"x": "depends_on"}},
    ],
)
def test_a_setting_that_can_have_an_effect_is_taken(change: dict[str, Any]) -> None:
    parse_config(json.dumps({"sources": [{**GOOD, **change}]}), "config.json")


def test_a_glob_that_an_earlier_entry_has_is_refused() -> None:
    entries = [{**GOOD, "glob": "d/{name}.md"}, {**GOOD, "glob": ["e/*.md", "./d/*.md"]}]
    assert refused(entries) == [("$.sources[1]", "no_effect")]


def test_placeholders_in_ignore_count() -> None:
    entry = {**GOOD, "glob": "d/*.md", "id": "{file.stem}", "ignore": "d/{number:d}-old.md"}
    [found] = parse_config(json.dumps({"sources": [entry]}), "c").sources
    facts = EXTRACTOR.extract(SourceFile("d/1-old.md", b"# A\n"), found)
    assert [one.code for one in facts.problems] == ["passed_over"]


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(
        ["x", "{a}", "", "^x", "a b", 3, None, True, "$[*]", "README.md", "csv", "eip", "depends_on", "owner"]
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    "x",
                    "{_}y",
                    "field",
                    "map",
                    "default",
                    "match",
                    "edge",
                    "kind",
                    "items",
                    "heading",
                    "line",
                    "id",
                    "type",
                ]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=6,
)
KEYS = [
    *("glob", "profile", "name", "ignore", "format", "items", "sheet", "with", "withFields", "mentions", "mentionIds"),
    *("parts", "id", "type", "title", "status", "fields", "links", "edges", "tags", "otherFields"),
]


@settings(max_examples=300)
@given(change=st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=3))
def test_settings_of_any_shape_are_refused_or_read_files(change: dict[str, Any]) -> None:
    try:
        [found] = parse_config(json.dumps({"sources": [{**GOOD, **change}]}), "c").sources
    except InvalidConfig:
        return
    EXTRACTOR.path_rules(found)
    for path, data in (
        ("d/a.md", b"---\nx: 1\n---\n# h\n- l\n"),
        ("d/a.json", b'[{"x": [1]}]'),
        ("d/a.csv", b"x,a\n1,2\n"),
    ):
        EXTRACTOR.extract(SourceFile(path, data), found)


@pytest.mark.parametrize("entry", [3, {}, ["x"], [None], [{}], [{"glob": "a.md"}]])
def test_what_is_no_entry_is_refused(entry: Any) -> None:
    assert refused(entry)


def test_an_unknown_type_of_an_entry_is_in_doubt_until_the_schema_is_read() -> None:
    assert parse_config(json.dumps({"sources": [{**GOOD, "type": "rfc"}]}), "c").sources[0]["type"] == "rfc"


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"links": {"x": "dependson"}}, ".links.x"),
        ({"links": {"x": [{"edge": "relates_to"}, {"edge": "^dependson"}]}}, ".links.x[1].edge"),
        ({"edges": {"validates": "^verifiedby"}}, ".edges.validates"),
    ],
)
def test_an_edge_that_the_schema_lacks_is_refused_once_that_is_read(change: dict[str, Any], path: str) -> None:
    reading = read_config(json.dumps({"sources": [{**GOOD, **change}]}), "c")
    with pytest.raises(InvalidConfig) as caught:
        checked_config(reading, NameSources(tuple, dict, tuple, tuple))
    assert [(one.path, one.code) for one in caught.value.details] == [(f"$.sources[0]{path}", "unknown_edge")]
    project = NameSources(tuple, dict, tuple, tuple, lambda: ["dependson", "verifiedby"])
    assert checked_config(reading, project).sources


def test_a_template_of_an_edge_and_the_name_of_another_tool_are_in_no_doubt() -> None:
    entry = {**GOOD, "links": {"y": {"edge": "{kind}"}}, "edges": {"validates": "^verified_by"}}
    known = NameSources(tuple, dict, tuple, tuple)
    assert checked_config(read_config(json.dumps({"sources": [entry]}), "c"), known).sources


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
    assert all(one.weight for one in profiles.signs(name))


def test_each_key_that_a_document_must_have_is_a_condition_of_its_own() -> None:
    assert profiles.Signs(endings=[".md"], keys=["eip", "status"]).weight == 3
    assert not profiles.Signs(names="needs.json", beside=["conf.py"]).needs_content


def test_the_list_of_profiles_is_that_of_the_files() -> None:
    from pathlib import Path

    folder = Path(profiles.__file__).parent / "profiles"
    assert sorted(profiles.NAMES) == sorted(one.stem for one in folder.glob("*.json"))
