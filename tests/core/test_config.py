"""The configuration file: what it says, and how every fault in it is told."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.config import DEFAULT, Config, KipLimits, default_config_text, parse_config
from kbcore.errors import InvalidConfig, Problem
from kbcore.extract import registry
from kbcore.extract.facts import Source

PATH = ".kb/config.json"
EVERYTHING = """\
{
  "defaultBranch": "trunk",
  "extractors": {
    "markdown": {"paths": {"req": ["specs/*.md"]}, "idFromFilename": true},
    "scip": {"index": "index.scip", "depth": 3, "ratio": 0.5, "more": [null, {"x": "\\u00e9"}]},
    "manifest": false
  },
  "rules": {"orphans": "off", "cycles": "warning"},
  "lockWaitSeconds": 2.5,
  "kip": {"rowLimit": 5, "timeLimitSeconds": 60}
}
"""


def faults(text: str, **known: list[str]) -> list[Problem]:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(text, PATH, **known)
    assert caught.value.message.startswith(f"{PATH}:")
    return list(caught.value.details)


def only_fault(text: str, **known: list[str]) -> Problem:
    (problem,) = faults(text, **known)
    return problem


def test_every_setting_is_read():
    assert parse_config(EVERYTHING, PATH) == Config(
        default_branch="trunk",
        extractors={
            "markdown": {"paths": {"req": ["specs/*.md"]}, "idFromFilename": True},
            "scip": {"index": "index.scip", "depth": 3, "ratio": 0.5, "more": [None, {"x": "é"}]},
        },
        switched_off=("manifest",),
        rules={"orphans": "off", "cycles": "warning"},
        lock_wait_s=2.5,
        kip=KipLimits(5, 60.0),
    )


def test_every_key_is_optional():
    assert parse_config("{}", PATH) == DEFAULT
    assert parse_config('{"extractors": {}, "rules": {}, "kip": {}}', PATH) == DEFAULT


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_a_byte_order_mark_and_windows_line_breaks_do_no_harm(change):
    assert parse_config(change(EVERYTHING), PATH) == parse_config(EVERYTHING, PATH)


def test_the_file_that_init_writes_says_what_holds_without_it():
    written = parse_config(default_config_text(), PATH, extractors=[*registry.BUILT_IN])
    assert (written.default_branch, written.rules) == (None, {})
    assert (written.lock_wait_s, written.kip) == (DEFAULT.lock_wait_s, DEFAULT.kip)
    document = b"---\nid: REQ-1\n---\n# A title\n"
    nameless = b"---\ntitle: No id\n---\n"
    for name, extractor in registry.BUILT_IN.items():
        assert extractor.path_rules(written.extractors[name]) == extractor.path_rules({})
        for data in (document, nameless):
            source = Source("docs/requirements/REQ-9.md", data, "req")
            assert extractor.extract(source, written.extractors[name]) == extractor.extract(source, {})


def test_the_file_that_init_writes_is_stable_json_with_the_branch_filled_in():
    text = default_config_text("trunk")
    assert text == default_config_text("trunk")
    assert text.endswith("}\n")
    assert json.loads(text)["defaultBranch"] == "trunk"
    assert parse_config(text, PATH).default_branch == "trunk"
    assert max(len(line) for line in text.splitlines()) <= 100


def test_all_problems_are_told_at_once_in_the_order_of_lines():
    text = """\
{
  "defaultBranch": "a..b",
  "extractor": {},
  "rules": {"cycles": "eror", "cycles": "off"},
  "lockWaitSeconds": "10", // a comment
  "kip": {"rowLimit": 0, "rows": 1,},
}
"""
    found = faults(text, rules=["cycles"])
    assert [(problem.source, problem.path, problem.code) for problem in found] == [
        (f"{PATH}:2", "$.defaultBranch", "bad_branch"),
        (f"{PATH}:3", "$.extractor", "unknown_key"),
        (f"{PATH}:4", "$", "duplicate_key"),
        (f"{PATH}:4", "$.rules.cycles", "wrong_type"),
        (f"{PATH}:5", "$", "invalid_json"),
        (f"{PATH}:5", "$.lockWaitSeconds", "wrong_type"),
        (f"{PATH}:6", "$", "invalid_json"),
        (f"{PATH}:6", "$", "invalid_json"),
        (f"{PATH}:6", "$.kip.rows", "unknown_key"),
        (f"{PATH}:6", "$.kip.rowLimit", "wrong_type"),
    ]


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
    ],
)
def test_a_wrong_type_names_the_place_and_what_was_expected(text, path, expected):
    problem = only_fault(text)
    assert problem.path == path
    assert problem.code == "wrong_type"
    assert expected in problem.message
    assert problem.source == f"{PATH}:1"


def test_names_of_rules_are_checked_only_where_the_rules_are_known():
    text = '{"rules": {"orfans": "off"}}'
    assert parse_config(text, PATH).rules == {"orfans": "off"}
    problem = only_fault(text, rules=["orphans", "cycles"])
    assert problem.message == "There is no rule 'orfans'."
    assert problem.hint == "Did you mean 'orphans'?"


def test_names_of_extractors_are_checked_only_where_the_extractors_are_known():
    text = '{"extractors": {"markdwon": false}}'
    assert parse_config(text, PATH).switched_off == ("markdwon",)
    assert only_fault(text, extractors=["markdown"]).hint == "Did you mean 'markdown'?"


def test_a_merge_conflict_is_called_by_its_name_and_nothing_else_is_said():
    text = '{\n<<<<<<< HEAD\n"rules": {}\n=======\n"rules": {"x": "off"}\n>>>>>>> feature\n}\n'
    problem = only_fault(text)
    assert problem.code == "merge_conflict"
    assert problem.source == f"{PATH}:2"
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
    assert len(faults(text, rules=[f"r{n}" for n in range(300)], extractors=["a"])) <= limits.MAX_PROBLEMS
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
        file, _, line = problem.source.rpartition(":")
        assert file == PATH
        assert 1 <= int(line) <= lines


def read(text: str) -> tuple[Config | None, list[Problem]]:
    try:
        return parse_config(text, PATH), []
    except InvalidConfig as error:
        return None, list(error.details)
