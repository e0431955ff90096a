"""The configuration file: what it says, and the report of every fault in it."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.config.schema_files import load_schema
from kbcore.config.settings import (
    DEFAULT,
    Config,
    KipLimits,
    LogicSettings,
    NameSources,
    checked_config,
    parse_config,
    read_config,
)
from kbcore.config.template import default_config_text
from kbcore.errors import InvalidConfig, Problem
from kbcore.extract import registry, settings
from kbcore.extract.facts import SourceFile
from kbcore.rules import NAMES
from kbcore.store.settings_files import name_sources

PATH = ".kb/config.json"
EVERYTHING = """\
{
  "defaultBranch": "trunk",
  "extractors": {
    "markdown": {"paths": {"req": ["specs/*.md"]}, "idFromFilename": true},
    "ctags": {"index": "index.ctags", "depth": 3, "ratio": 0.5, "more": [null, {"x": "\\u00e9"}]},
    "manifest": false
  },
  "rules": {"orphans": "off", "cycles": "warning"},
  "lockWaitSeconds": 2.5,
  "kip": {"rowLimit": 5, "timeLimitSeconds": 60},
  "logic": {"workspace": "session", "maxClauses": 7, "timeLimitSeconds": 1.5}
}
"""


NOTHING_MORE = NameSources(own_rules=lambda: NAMES, parameters=dict, extractors=tuple, entity_types=tuple)
"""A project that adds nothing to KB's own rules, extractors and types."""


def faults(text: str, known: NameSources | None = None) -> list[Problem]:
    with pytest.raises(InvalidConfig) as caught:
        checked_config(read_config(text, PATH), known)
    assert caught.value.message.startswith(f"{PATH}:")
    return list(caught.value.details)


def only_fault(text: str, known: NameSources | None = None) -> Problem:
    (problem,) = faults(text, known)
    return problem


def test_every_setting_is_read():
    assert parse_config(EVERYTHING, PATH) == Config(
        default_branch="trunk",
        extractors={
            "markdown": {"paths": {"req": ["specs/*.md"]}, "idFromFilename": True},
            "ctags": {"index": "index.ctags", "depth": 3, "ratio": 0.5, "more": [None, {"x": "é"}]},
        },
        switched_off=("manifest",),
        rules={"orphans": "off", "cycles": "warning"},
        rules_at={"orphans": ".kb/config.json:8", "cycles": ".kb/config.json:8"},
        lock_wait_s=2.5,
        kip=KipLimits(5, 60.0),
        logic=LogicSettings("session", 7, 1.5),
    )


def test_every_key_is_optional():
    assert parse_config("{}", PATH) == DEFAULT
    assert parse_config('{"extractors": {}, "rules": {}, "kip": {}}', PATH) == DEFAULT


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_windows_line_breaks_do_no_harm(change):
    assert parse_config(change(EVERYTHING), PATH) == parse_config(EVERYTHING, PATH)


def test_the_file_that_init_writes_says_what_holds_without_it():
    written = checked_config(read_config(default_config_text(), PATH), NOTHING_MORE)
    assert (written.default_branch, written.rules) == (None, {})
    assert (written.lock_wait_s, written.kip) == (DEFAULT.lock_wait_s, DEFAULT.kip)
    assert written.logic == DEFAULT.logic
    document = b"---\nid: REQ-1\n---\n# A title\n"
    nameless = b"---\ntitle: No id\n---\n"
    for name, extractor in registry.BUILT_IN.items():
        assert extractor.path_rules(written.extractors[name]) == extractor.path_rules({})
        for data in (document, nameless):
            source = SourceFile("docs/requirements/REQ-9.md", data, "req")
            assert extractor.extract(source, written.extractors[name]) == extractor.extract(source, {})


def test_the_file_that_init_writes_is_stable_json_with_the_branch_filled_in():
    text = default_config_text("trunk")
    assert text == default_config_text("trunk")
    assert text.endswith("}\n")
    assert json.loads(text)["defaultBranch"] == "trunk"
    assert parse_config(text, PATH).default_branch == "trunk"
    assert max(len(line) for line in text.splitlines()) <= 100


def test_all_problems_are_reported_at_once_in_the_order_of_lines():
    text = """\
{
  "defaultBranch": "a..b",
  "extractor": {},
  "rules": {"acyclic": "eror", "acyclic": "off"},
  "lockWaitSeconds": "10", // a comment
  "kip": {"rowLimit": 0, "rows": 1,},
}
"""
    found = faults(text, NOTHING_MORE)
    assert [(problem.place, problem.path, problem.code) for problem in found] == [
        (f"{PATH}:2", "$.defaultBranch", "bad_branch"),
        (f"{PATH}:3", "$.extractor", "unknown_key"),
        (f"{PATH}:4", "$", "duplicate_key"),
        (f"{PATH}:4", "$.rules.acyclic", "wrong_type"),
        (f"{PATH}:5", "$", "invalid_json"),
        (f"{PATH}:5", "$.lockWaitSeconds", "wrong_type"),
        (f"{PATH}:6", "$", "invalid_json"),
        (f"{PATH}:6", "$", "invalid_json"),
        (f"{PATH}:6", "$.kip.rows", "unknown_key"),
        (f"{PATH}:6", "$.kip.rowLimit", "wrong_type"),
    ]


@pytest.mark.parametrize("name", ["engine", "roots", "libraries"])
def test_a_repository_sets_neither_engine_nor_folders_of_the_prolog_workspace(name):
    problem = only_fault(f'{{"logic": {{"{name}": "x"}}}}')
    assert (problem.code, problem.path) == ("unknown_key", f"$.logic.{name}")


def test_the_message_names_the_first_problem_and_counts_the_others():
    with pytest.raises(InvalidConfig) as caught:
        parse_config('{\n"rulse": {},\n"x": 1}', PATH)
    assert caught.value.message == f"{PATH}:2: There is no setting 'rulse'. (and 1 more)"
    assert caught.value.hint == "Did you mean 'rules'?"
    assert caught.value.code == "invalid_config"


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("[]", "$", "The file must be an object, not a list."),
        ("null", "$", "The file must be an object, and it is empty."),
        ('{"defaultBranch": 7}', "$.defaultBranch", "must be the name of a branch, or null, not 7."),
        ('{"extractors": []}', "$.extractors", "must be an object, not a list."),
        (
            '{"extractors": {"a b": true}}',
            '$.extractors["a b"]',
            "or false to switch it off, not true or false.",
        ),
        ('{"rules": "off"}', "$.rules", "must be an object, not 'off'."),
        ('{"rules": {"x": true}}', "$.rules.x", "must be error, warning or off, not true or false."),
        ('{"rules": {"x": null}}', "$.rules.x", "must be error, warning or off, and it is empty."),
        ('{"ruleTimeLimitSeconds": 0}', "$.ruleTimeLimitSeconds", "from 0.1 to 3600, not 0."),
        ('{"ruleTimeLimitSeconds": "1"}', "$.ruleTimeLimitSeconds", "from 0.1 to 3600, not '1'."),
        ('{"lockWaitSeconds": true}', "$.lockWaitSeconds", "from 0 to 3600, not true or false."),
        ('{"lockWaitSeconds": -1}', "$.lockWaitSeconds", "from 0 to 3600, not -1."),
        ('{"lockWaitSeconds": 3601}', "$.lockWaitSeconds", "from 0 to 3600, not 3601."),
        (
            '{"kip": {"rowLimit": 1.5}}',
            "$.kip.rowLimit",
            "must be a whole number from 1 to 1000000, not 1.5.",
        ),
        (
            '{"kip": {"rowLimit": true}}',
            "$.kip.rowLimit",
            "whole number from 1 to 1000000, not true or false.",
        ),
        (
            '{"kip": {"timeLimitSeconds": {}}}',
            "$.kip.timeLimitSeconds",
            "seconds from 0 to 3600, not an object.",
        ),
        ('{"logic": {"workspace": "here"}}', "$.logic.workspace", "must be branch or session, not 'here'."),
        ('{"logic": {"maxClauses": 1000001}}', "$.logic.maxClauses", "whole number from 1 to 1000000, not 1000001."),
        ('{"logic": {"timeLimitSeconds": 601}}', "$.logic.timeLimitSeconds", "seconds from 0 to 600, not 601."),
    ],
)
def test_a_wrong_type_names_the_place_and_what_was_expected(text, path, expected):
    problem = only_fault(text)
    assert problem.path == path
    assert problem.code == "wrong_type"
    assert expected in problem.message
    assert problem.place == f"{PATH}:1"


NAMES_IN_DOUBT = """\
{
  "extractors": {
    "markdwon": {"x": 1},
    "todo": {"paths": {"x": 1}},
    "ctags": false,
    "markdown": {"paths": {"rq": ["docs/*.md"], "fact": ["facts/*.md"]}}
  },
  "rules": {"orfans": "off", "no-owner": "error"}
}
"""


def test_names_that_nobody_knows_are_reported_at_once_each_with_its_line_and_the_nearest_name():
    known = NameSources(
        own_rules=lambda: NAMES,
        parameters=lambda: {"no-owner": {}},
        extractors=lambda: ["todo", "ctags"],
        entity_types=lambda: ["fact"],
    )
    found = faults(NAMES_IN_DOUBT, known)
    assert [(problem.place, problem.path, problem.code, problem.hint) for problem in found] == [
        (f"{PATH}:3", "$.extractors.markdwon", "unknown_extractor", "Did you mean 'markdown'?"),
        (f"{PATH}:6", "$.extractors.markdown.paths.rq", "unknown_type", "Did you mean 'req'?"),
        (f"{PATH}:8", "$.rules.orfans", "unknown_rule", "Did you mean 'orphans'?"),
    ]
    assert found[2].message == "There is no rule 'orfans'."


def test_names_that_the_project_knows_pass():
    known = NameSources(
        own_rules=lambda: NAMES,
        parameters=lambda: {"no-owner": {}, "orfans": {}},
        extractors=lambda: ["todo", "ctags", "markdwon"],
        entity_types=lambda: ["fact", "rq"],
    )
    config = checked_config(read_config(NAMES_IN_DOUBT, PATH), known)
    assert config.rules == {"orfans": "off", "no-owner": "error"}
    assert config.switched_off == ("ctags",)
    assert config == parse_config(NAMES_IN_DOUBT, PATH)


def test_nobody_is_asked_for_the_names_that_are_kbs_own():
    def never():
        raise AssertionError("asked")

    text = json.dumps({**json.loads(default_config_text()), "rules": {"orphans": "off"}})
    assert checked_config(read_config(text, PATH), NameSources(lambda: NAMES, never, never, never)).rules == {
        "orphans": "off"
    }


def test_faults_of_the_files_that_were_asked_are_reported_together_with_those_of_the_settings():
    rules = {".kb/rules/a.yaml": "rules: [{id: no-owner}]"}
    schema = {".kb/schema/a.yaml": "entities: {fact: {atributes: {}}}"}
    found = faults(NAMES_IN_DOUBT, name_sources(lambda: rules, lambda: load_schema(schema)))
    assert [(problem.place, problem.code) for problem in found] == [
        (f"{PATH}:3", "unknown_extractor"),
        (".kb/rules/a.yaml:1", "missing_field"),
        (".kb/schema/a.yaml:1", "unknown_key"),
    ]


def test_a_package_that_is_broken_stops_nothing_that_needs_no_extractor():
    def broken():
        raise InvalidConfig("broken", details=[Problem("extractors", "broken_extractor", "broken", "Mend it.")])

    known = NameSources(own_rules=lambda: NAMES, parameters=dict, extractors=broken, entity_types=tuple)
    assert checked_config(read_config('{"extractors": {"ctags": false}}', PATH), known).switched_off == ("ctags",)


def test_a_project_is_asked_for_its_rules_and_types():
    rules = {".kb/rules/a.yaml": "rules: [{id: no-owner, sql: select 1}]"}
    schema = {".kb/schema/a.yaml": "entities: {fact: {description: A fact.}}"}
    text = '{"rules": {"no-owner": "off"}, "extractors": {"markdown": {"paths": {"fact": "facts/*.md"}}}}'
    config = checked_config(read_config(text, PATH), name_sources(lambda: rules, lambda: load_schema(schema)))
    assert config.rules == {"no-owner": "off"}


def test_the_extractors_that_settings_know_are_those_that_there_are():
    assert tuple(settings.BUILT_IN) == tuple(registry.BUILT_IN)
    assert settings.BUILT_IN["markdown"].keys() >= set(parse_config(default_config_text(), PATH).extractors["markdown"])


@pytest.mark.parametrize(
    ("said", "path", "code", "words"),
    [
        ('{"pats": {}}', ".pats", "unknown_key", "There is no setting of markdown 'pats'. Did you mean 'paths'?"),
        ('{"paths": []}', ".paths", "wrong_type", "must be an object"),
        ('{"paths": {"req": [3]}}', ".paths.req[0]", "bad_glob", "it must be text"),
        ('{"paths": {"req": {"a": 1}}}', ".paths.req", "wrong_type", "a list of globs, not an object"),
        ('{"paths": {"req": ["a/*", "../x"]}}', ".paths.req[1]", "bad_glob", "must not leave the repository"),
        ('{"paths": {"": ["x/*.md"]}}', '.paths[""]', "bad_name", "no name"),
        ('{"paths": {"req": "x/*", "adr": ["x/*"]}}', ".paths.adr[0]", "repeated_glob", "Give each glob one type."),
        ('{"idFromFilename": "yes"}', ".idFromFilename", "wrong_type", "must be true or false, not 'yes'"),
        ('{"ignore": ["/x"]}', ".ignore[0]", "bad_glob", "relative to the root"),
        (json.dumps({"ignore": ["a.md"] * 1001}), ".ignore", "too_many_globs", "the limit is 1000"),
        (json.dumps({"ignore": ["a/" * 400] * 20}), ".ignore", "too_many_globs", "the limit is 5000"),
        (json.dumps({"ignore": "a" * 1001}), ".ignore", "bad_glob", "the limit is 1000"),
        ('{"ignore": null}', ".ignore", "wrong_type", "must be a list of globs, and it is empty"),
        ('{"keys": {"labels": 3}}', ".keys.labels", "bad_name", "3 is no name"),
    ],
)
def test_settings_of_an_extractor_that_cannot_be_used_are_reported_with_their_place(said, path, code, words):
    problem = only_fault('{"extractors": {\n"markdown": ' + said + "}}")
    assert (problem.path, problem.code) == (f"$.extractors.markdown{path}", code)
    assert problem.place == f"{PATH}:2"
    assert words in f"{problem.message} {problem.hint}"


@pytest.mark.parametrize("name", ["manifest", "gherkin", "code"])
def test_paths_without_types_are_a_list_of_globs(name):
    assert only_fault(f'{{"extractors": {{"{name}": {{"paths": {{}}}}}}}}').code == "wrong_type"
    assert only_fault(f'{{"extractors": {{"{name}": {{"paths": ["/x"]}}}}}}').code == "bad_glob"
    config = parse_config(f'{{"extractors": {{"{name}": {{"paths": "x.yaml"}}}}}}', PATH)
    assert config.extractors == {name: {"paths": "x.yaml"}}


@pytest.mark.parametrize("name", ["-x", "HEAD", "@", "a..b", "", "a b", "x.lock"])
def test_a_default_branch_that_git_would_not_make_is_refused(name):
    assert only_fault(json.dumps({"defaultBranch": name})).code == "bad_branch"


def test_a_merge_conflict_is_called_by_its_name_and_nothing_else_is_said():
    text = '{\n<<<<<<< HEAD\n"rules": {}\n=======\n"rules": {"x": "off"}\n>>>>>>> feature\n}\n'
    problem = only_fault(text)
    assert problem.code == "merge_conflict"
    assert problem.place == f"{PATH}:2"
    assert "<<<<<<<" in problem.hint


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid_json"),
        ("[" * 1000, "invalid_json"),
        ('{"kip":' * 1000, "invalid_json"),
        ('{"rules": {"x": "\x00"}}', "invalid_json"),
        ('{"extractors": {"x": {"y": "\\u0000"}}}', "bad_text"),
        ('{"extractors": {"x": {"y": "\\ud800"}}}', "bad_text"),
        ('{"extractors": {"x": {"y": "\ud800"}}}', "wrong_encoding"),
        ('{"extractors": {"x": {"y": 1e999}}}', "bad_number"),
        ('{"extractors": {"x": {"y": 9223372036854775808}}}', "bad_number"),
        ('{"extractors": {"x": {"y": ' + "9" * 100_000 + "}}}", "bad_number"),
        ('{"extractors": {"x": {"y": NaN}}}', "invalid_json"),
        (" " * (limits.MAX_CONFIG_BYTES + 1), "too_long"),
    ],
)
def test_hostile_files_are_refused_with_one_problem(text, code):
    assert only_fault(text).code == code


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    "text",
    [
        "[" + "1," * 400_000 + "1]",
        "{" + ",".join(f'"k{number}":1' for number in range(70_000)) + "}",
        "{" + '"a":1,' * 150_000 + '"a":1}',
        '{"rules":{' + ",".join(f'"rule{number}":"x"' for number in range(40_000)) + "}}",
        '{"extractors":{' + ",".join(f'"rule{number}":{{}}' for number in range(40_000)) + "}}",
        "1" * 1_000_000,
        "x " * 500_000,
        "/*" * 500_000,
        '"' + "\\u0041" * 170_000,
    ],
)
def test_a_large_file_is_refused_in_a_moment(text):
    started = time.process_time()
    assert len(faults(text, NOTHING_MORE)) <= limits.MAX_PROBLEMS
    assert time.process_time() - started < 5


JSON_TEXT = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("off"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["defaultBranch", "extractors", "rules", "kip", "x"]), inner, max_size=4)
    ),
    max_leaves=12,
).map(json.dumps)


@given(st.text() | st.text(alphabet='{}[]",:\\/#*truefalsn0123e+-. \t\r\n\x00\ud800é') | JSON_TEXT)
def test_any_text_is_a_configuration_or_is_refused_with_lines(text):
    config, problems = read(text)
    if config is not None:
        keys = {"defaultBranch", "extractors", "rules", "kip"}
        assert set(json.loads(text.removeprefix("\ufeff"))) <= keys
        return
    assert problems
    lines = text.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1
    for problem in problems:
        file, _, line = problem.place.rpartition(":")
        assert file == PATH
        assert 1 <= int(line) <= lines


def read(text: str) -> tuple[Config | None, list[Problem]]:
    try:
        return parse_config(text, PATH), []
    except InvalidConfig as error:
        return None, list(error.details)
