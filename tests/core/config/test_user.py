"""The settings of the user: read from a text and the environment, and never exceeded by a repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kbcore.config.settings import parse_config
from kbcore.config.user import LIMITS, UserLimits, UserSettings, bounded, read_settings, user_settings_path
from kbcore.errors import InvalidConfig
from kbcore.limits import MIB
from kbcore.maintenance.doctor import diagnose
from kbcore.store.pool import Machine
from tests.support.repository.project import Project, req
from tests.support.repository.repos import add_worktree, git

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


def test_an_empty_variable_sets_nothing():
    assert read(None, {"KB_RULE_TIME_SECONDS": "", "KB_MEMORY_MIB": ""}) == UserSettings()


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
    assert [(one.place, one.code) for one in refused.value.details] == [(source, code)]


@pytest.mark.parametrize("value", ["x", "nan", "inf", "-1", "1e9"])
@pytest.mark.parametrize("limit", LIMITS, ids=lambda limit: limit.variable)
def test_a_variable_that_cannot_be_meant_is_refused_by_name(limit, value):
    with pytest.raises(InvalidConfig, match=limit.variable):
        read(None, {limit.variable: value})


def test_a_repository_only_lowers_limits():
    asked = {
        "ruleTimeLimitSeconds": 3600,
        "lockWaitSeconds": 3600,
        "kip": {"rowLimit": 10**6, "timeLimitSeconds": 3600},
        "logic": {"timeLimitSeconds": 600},
    }
    config = parse_config(json.dumps(asked), "x")
    most = UserLimits()
    found = bounded(config, most)
    assert (found.rule_time_s, found.lock_wait_s) == (most.rule_time_s, most.lock_wait_s)
    assert (found.kip.rows, found.kip.time_s) == (most.kip_rows, most.kip_time_s)
    assert found.logic.time_s == most.logic_time_s
    asked = {"ruleTimeLimitSeconds": 1, "lockWaitSeconds": 1, "kip": {"rowLimit": 1, "timeLimitSeconds": 1}}
    asked["logic"] = {"timeLimitSeconds": 1}
    low = parse_config(json.dumps(asked), "x")
    assert bounded(low, most) == low


def test_a_repository_must_not_say_where_stores_lie():
    with pytest.raises(InvalidConfig, match="`store` is a setting of the user") as refused:
        parse_config('{"store": "worktree"}', ".kb/config.json")
    assert [(one.place, one.code) for one in refused.value.details] == [(".kb/config.json:1", "setting_of_the_user")]


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('{"limits": {"kipRows": 0}}', "Write such a number, or leave the key out."),
        ('{"limits": {"kipRows": 1.5}}', "Write such a number, or leave the key out."),
        ('{"limits": {"kipRows": "3"}}', "Write a number without quotes."),
        ('{"store": 5}', 'Write "git" or "worktree".'),
    ],
)
def test_the_hint_fits_what_was_written(text, hint):
    with pytest.raises(InvalidConfig) as refused:
        read(text)
    assert refused.value.hint == hint


def harm(path: Path, how: str) -> None:
    """Put something in the place of a settings file that cannot be used."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    if how == "folder":
        path.mkdir()
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "a link to nothing":
        path.symlink_to("nowhere")
    elif how == "bytes":
        path.write_bytes(b"\xff")
    else:
        path.write_bytes(b" " * (1024 * 1024 + 1))


HARMED = {
    "folder": ("cannot be read: it is no regular file.", "Put a file in its place, or remove it."),
    "pipe": ("cannot be read: it is no regular file.", "Put a file in its place, or remove it."),
    "a link to nothing": (
        "is a link to nothing: the settings in it would not count.",
        "Correct the link, or remove it.",
    ),
    "bytes": ("is not UTF-8 at byte 0.", "Save it as UTF-8."),
    "too large": ("is larger than 1048576 bytes.", "Remove what does not belong there."),
}


@pytest.mark.parametrize("how", HARMED)
@pytest.mark.parametrize("whose", ["of the user", "of the repository"])
def test_an_unusable_file_is_named_by_its_whole_path_with_what_to_do(tmp_path, how, whose):
    project = Project(tmp_path / "p")
    env = {**project.machine.env, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    project.machine = Machine(project.machine.fs, project.machine.clock, env)
    path = tmp_path / "config/kb/config.json" if whose == "of the user" else project.root / ".kb/config.json"
    harm(path, how)
    what, hint = HARMED[how]
    with pytest.raises(InvalidConfig) as refused:
        _ = project.workspace().config
    assert refused.value.message == f"{path} {what}"
    assert refused.value.hint == hint


def test_settings_that_lie_outside_of_the_worktree_are_named_by_their_whole_path(tmp_path):
    project = Project(tmp_path / "p")
    git(project.root, "commit", "--quiet", "--allow-empty", "--message", "x")
    (project.root / ".kb/config.json").write_text('{"no": 1}')
    tree = Project(add_worktree(project.root, tmp_path / "tree", "other"), is_new=False)
    with pytest.raises(InvalidConfig) as refused:
        tree.workspace()
    assert refused.value.details[0].place == f"{project.root}/.kb/config.json:1"


@pytest.mark.parametrize("name", ["HOME", "XDG_CONFIG_HOME"])
def test_a_home_that_is_no_folder_gives_the_defaults_and_says_how_to_have_settings(tmp_path, name):
    project = Project(tmp_path / "p")
    env = {**project.machine.env, name: "/dev/null", "KB_KIP_ROWS": "7"}
    project.machine = Machine(project.machine.fs, project.machine.clock, env)
    user = project.workspace().user
    assert (user.store, user.limits.kip_rows) == ("git", 7)
    assert user.notice.startswith("There is no folder for /dev/null/")
    assert "Set XDG_CONFIG_HOME to a folder of your own" in user.notice
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    [note] = [one for one in diagnose(project.workspace()).findings if one.code == "no_own_settings"]
    assert note.message == user.notice
    project.close()


def test_only_an_absolute_folder_holds_the_settings():
    assert user_settings_path({"XDG_CONFIG_HOME": "/x", "HOME": "/home/you"}) == Path("/x/kb/config.json")
    assert user_settings_path({"XDG_CONFIG_HOME": "x", "HOME": "/home/you"}) == Path(PATH)
    assert user_settings_path({"HOME": "here"}) is None


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
