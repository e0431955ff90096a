"""The settings of the user: read from a text and the environment, and never exceeded by a repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbcore.config import parse_config
from kbcore.errors import InvalidConfig
from kbcore.limits import MIB
from kbcore.usersettings import LIMITS, UserLimits, UserSettings, bounded, path_of, read_settings
from kbcore.workspace import Machine
from tests.support.project import Project, req

PATH = "/home/you/.config/kb/config.json"


def read(text: str | None, env: dict[str, str] | None = None) -> UserSettings:
    return read_settings(text, PATH, env or {})


def test_without_a_file_the_defaults_hold():
    assert read(None) == read("{}") == UserSettings()


def test_a_file_sets_limits_and_the_environment_goes_before_it():
    text = json.dumps({"limits": {"ruleTimeSeconds": 2, "kipRows": 500, "memoryMiB": 128}, "store": "worktree"})
    assert read(text) == UserSettings(UserLimits(rule_time_s=2, kip_rows=500, memory_bytes=128 * MIB), "worktree")
    assert read(text, {"KB_RULE_TIME_SECONDS": "0.5", "KB_MEMORY_MIB": "256"}).limits == UserLimits(
        rule_time_s=0.5,
        kip_rows=500,
        memory_bytes=256 * MIB,
        from_environment=frozenset({"rule_time_s", "memory_bytes"}),
    )


@pytest.mark.parametrize(
    ("text", "source", "code"),
    [
        ('{"limit": {}}', f"{PATH}:1", "unknown_key"),
        ('{\n"limits": {"ruleTime": 3}}', f"{PATH}:2", "unknown_key"),
        ('{"limits": {"ruleTimeSeconds": "3"}}', f"{PATH}:1", "wrong_type"),
        ('{"limits": {"ruleTimeSeconds": 0}}', f"{PATH}:1", "wrong_type"),
        ('{"limits": {"kipRows": 1.5}}', f"{PATH}:1", "wrong_type"),
        ('{"limits": {"kipRows": true}}', f"{PATH}:1", "wrong_type"),
        ('{"store": "here"}', f"{PATH}:1", "wrong_type"),
        ('{"ruleTimeLimitSeconds": 3}', f"{PATH}:1", "unknown_key"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(text, source, code):
    with pytest.raises(InvalidConfig) as refused:
        read(text)
    assert [(one.source, one.code) for one in refused.value.details] == [(source, code)]


@pytest.mark.parametrize("value", ["", "x", "nan", "inf", "-1", "1e9"])
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.variable)
def test_a_variable_that_cannot_be_meant_is_refused_by_name(limit, value):
    with pytest.raises(InvalidConfig, match=limit.variable):
        read(None, {limit.variable: value})


def test_a_repository_only_lowers_limits():
    asked = {
        "ruleTimeLimitSeconds": 3600,
        "lockWaitSeconds": 3600,
        "kip": {"rowLimit": 10**6, "timeLimitSeconds": 3600},
    }
    config = parse_config(json.dumps(asked), "x")
    most = UserLimits()
    found = bounded(config, most)
    assert (found.rule_time_s, found.lock_wait_s) == (most.rule_time_s, most.lock_wait_s)
    assert (found.kip.rows, found.kip.time_s) == (most.kip_rows, most.kip_time_s)
    asked = {"ruleTimeLimitSeconds": 1, "lockWaitSeconds": 1, "kip": {"rowLimit": 1, "timeLimitSeconds": 1}}
    low = parse_config(json.dumps(asked), "x")
    assert bounded(low, most) == low


def test_a_repository_must_not_say_where_stores_lie():
    with pytest.raises(InvalidConfig, match="`store` is a setting of the user") as refused:
        parse_config('{"store": "worktree"}', ".kb/config.json")
    assert [(one.source, one.code) for one in refused.value.details] == [(".kb/config.json:1", "setting_of_the_user")]


def test_only_an_absolute_folder_holds_the_settings():
    assert path_of({"XDG_CONFIG_HOME": "/x", "HOME": "/home/you"}) == Path("/x/kb/config.json")
    assert path_of({"XDG_CONFIG_HOME": "x", "HOME": "/home/you"}) == Path(PATH)
    assert path_of({"HOME": "here"}) is None


def test_a_request_reads_the_file_of_the_user_through_a_link_too(tmp_path):
    project = Project(tmp_path / "p")
    project.sync({"docs/requirements/a.md": req("A"), ".kb/config.json": '{"ruleTimeLimitSeconds": 3600}'})
    settings = tmp_path / "config" / "kb" / "config.json"
    settings.parent.mkdir(parents=True)
    (tmp_path / "dotfile").write_text('{"limits": {"ruleTimeSeconds": 4}}')
    settings.symlink_to(tmp_path / "dotfile")
    env = {**project.machine.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    project.machine = Machine(project.machine.fs, project.machine.clock, env)
    assert project.workspace().config.rule_time_s == 4
    (tmp_path / "dotfile").write_text("{")
    with pytest.raises(InvalidConfig, match=r"config\.json"):
        _ = project.workspace().config
