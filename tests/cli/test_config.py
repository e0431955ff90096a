"""``kb config``: the settings by name, and one of them set."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from kbcore.config.template import settings_in
from kbcore.storage.fs import RealFs
from kbcore.store.settings_edit import set_setting
from tests.support.repository.project import Project
from tests.support.repository.repos import git


def config(root):
    return root / ".kb" / "config.json"


def test_every_setting_is_listed_with_its_value_and_whether_the_file_states_it(kb, synced):
    config(synced).write_text(
        '{"kip": {"rowLimit": 7}, "rules": {"orphans": "off"}, "extractors": {"manifest": false}}'
    )
    found = {one["name"]: (one["value"], one["is_stated"]) for one in kb("config", "list", "--json").json["settings"]}
    assert found["kip.rowLimit"] == (7, True)
    assert found["kip.timeLimitSeconds"] == (10, False)
    assert found["rules.orphans"] == ("off", True)
    assert found["extractors.manifest"] == (False, True)
    assert "extractors.manifest.paths" not in found
    assert found["extractors.gherkin.paths"] == ([], False)
    listed = kb("config").out
    assert listed == kb("config", "list").out
    assert ["kip.rowLimit", "7", ".kb/config.json"] in [line.split("\t") for line in listed.splitlines()]
    assert ["lockWaitSeconds", "10", "default"] in [line.split("\t") for line in listed.splitlines()]


def test_without_a_file_every_setting_has_its_default():
    assert {one.name: one.value for one in settings_in(None)}["sleep.decayFactor"] == 0.95
    assert not any(one.is_stated for one in settings_in(None))
    stated = {one.name: one.value for one in settings_in('{"extractors": {"markdown": {"paths": {"req": ["a"]}}}}')}
    assert stated["extractors.markdown.paths"] == {"req": ["a"]}
    assert stated["extractors.markdown.idFromFilename"] is False


def test_one_setting_or_a_group_of_them_is_shown(kb, synced):
    assert kb("config", "get", "kip.rowLimit").out == "100000\n"
    assert kb("config", "get", "kip").out == "kip.rowLimit 100000\nkip.timeLimitSeconds 10\n"
    assert kb("config", "get", "kip", "--json").json["value"] == {"rowLimit": 100_000, "timeLimitSeconds": 10}
    assert "Did you mean 'kip.rowLimit'?" in kb("config", "get", "kip.rowLimt").err


def test_a_default_branch_that_git_does_not_have_is_set_with_a_warning(kb, synced):
    assert "warning: git has no branch 'mian'. Did you mean 'main'?" in kb("config", "set", "defaultBranch", "mian").err
    assert kb("config", "set", "defaultBranch", "main").err == ""


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("kip.rowLimit", "5000", 5000),
        ("defaultBranch", "trunk", "trunk"),
        ("rules.orphans", "off", "off"),
        ("extractors.manifest", "false", False),
        ("extractors.manifest.paths", '["a.yaml"]', ["a.yaml"]),
        ("extractors.markdown.ignore", '["x/*.md"]', ["x/*.md"]),
    ],
)
def test_a_setting_is_set_and_the_rest_of_the_file_stays(kb, synced, name, value, stored):
    before = config(synced).read_text()
    assert kb("config", "set", name, value).status == 0
    assert json.loads(kb("config", "get", name, "--json").out)["value"] == stored
    *outer, last = name.split(".")
    changed, expected = json.loads(config(synced).read_text()), json.loads(before)
    inside = expected
    for key in outer:
        inside = inside.setdefault(key, {})
    inside[last] = stored
    assert changed == expected
    assert kb("config", "set", name, value, "--json").json["changed"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rules.orphans", "of"], "Did you mean 'off'?"),
        (["rules.orphan", "off"], "There is no rule 'orphan'."),
        (["kip.rowLimit", "many"], "whole number"),
        (["kip.rowLimt", "5"], "Did you mean 'rowLimit'?"),
        (["store", "1"], "a setting of the user"),
        (["lockWaitSeconds.x", "1"], "is no object"),
    ],
)
def test_what_a_setting_does_not_take_is_refused_and_nothing_is_written(kb, synced, words, said):
    before = config(synced).read_bytes()
    refused = kb("config", "set", *words)
    assert refused.status != 0
    assert said in refused.err
    assert config(synced).read_bytes() == before


def test_a_wrong_setting_is_set_right(kb, synced):
    config(synced).write_text('{"kip": {"rowLimit": "many"}}')
    assert kb("config").status != 0
    assert kb("config", "set", "kip.rowLimit", "9").status == 0
    assert config(synced).read_text() == '{"kip": {"rowLimit": 9}}'


def test_a_missing_file_is_made(kb, synced):
    config(synced).unlink()
    assert kb("config", "set", "kip.rowLimit", "9").status == 0
    assert json.loads(config(synced).read_text()) == {"kip": {"rowLimit": 9}}


def test_outside_of_a_kb_nothing_is_set(kb, user, tmp_path):
    folder = tmp_path / "bare"
    folder.mkdir()
    git(folder, "init", "-q")
    assert "There is no .kb/config.json." in kb("config", "set", "kip.rowLimit", "9", cwd=folder).err
    assert not (folder / ".kb").exists()


@pytest.mark.parametrize("name", ["rules.orphans", "kip.rowLimit", "extractors.manifest.paths", "staged", "kip"])
def test_a_setting_is_unset_and_the_rest_of_the_file_stays(kb, synced, name):
    kb("config", "set", "rules.orphans", "off")
    expected = json.loads(config(synced).read_text())
    *outer, last = name.split(".")
    inside = expected
    for key in outer:
        inside = inside[key]
    del inside[last]
    assert kb("config", "unset", name).status == 0
    assert json.loads(config(synced).read_text()) == expected


def test_what_is_not_set_is_not_unset(kb, synced):
    kb("config", "unset", "kip")
    before = config(synced).read_bytes()
    assert kb("config", "unset", "kip.rowLimit", "--json").json["changed"] is False
    assert "No setting 'nope' is set." in kb("config", "unset", "nope").err
    assert config(synced).read_bytes() == before


def test_a_refusal_names_a_line_of_the_file_only_where_the_file_is_wrong(kb, synced):
    refused = kb("config", "set", "nope", "1").err
    assert refused.startswith("error: There is no setting 'nope'.")
    config(synced).write_text('{\n"kip": {"rowLimit": "many"}}')
    refused = kb("config", "set", "lockWaitSeconds", "5").err
    assert refused.startswith("error: .kb/config.json:2: `kip.rowLimit` must be")


def test_a_number_below_zero_is_a_value(kb, synced):
    for words in (("lockWaitSeconds", "-5"), ("lockWaitSeconds", "-5", "--json"), ("--", "lockWaitSeconds", "-5")):
        ended = kb("config", "set", *words)
        assert "must be a number of seconds from 0" in ended.out + ended.err
    assert "has no option '-x'" in kb("config", "set", "lockWaitSeconds", "-x").err


def test_a_group_in_which_nothing_is_set_is_empty(kb, synced):
    assert kb("config", "get", "rules", "--json").json["value"] == {}
    assert "Nothing is set in 'rules'." in kb("config", "get", "rules").err


def test_a_glob_that_names_a_folder_is_set_with_a_warning(kb, synced):
    (synced / "docs" / "more").mkdir(parents=True)
    warned = kb("config", "set", "extractors.markdown.paths.req", "docs/more")
    assert (warned.status, "'docs/more/**/*.md'" in warned.err) == (0, True)
    assert "is a folder" not in kb("config", "set", "extractors.markdown.paths.req", "docs/more/*.md").err


def test_settings_that_are_set_at_the_same_time_are_all_kept(synced):
    names = ["lockWaitSeconds", "ruleTimeLimitSeconds", "kip.rowLimit", "sleep.intervalHours", "sleep.mostOrphans"]

    def set_it(name):
        return set_setting(Project(synced, fs=RealFs(), is_new=False).workspace(), name, 7)

    with ThreadPoolExecutor(len(names)) as pool:
        assert all(pool.map(set_it, names))
    stated = {one.name: one.value for one in settings_in(config(synced).read_text())}
    assert {name: stated[name] for name in names} == dict.fromkeys(names, 7)


def test_the_level_of_a_rule_is_given_with_its_default_where_the_file_states_none(kb, synced):
    ran = kb("config", "get", "rules.orphans")
    assert (ran.out, ran.err) == ("warning\n", "The default of the rule is warning.\n")
    assert kb("config", "unset", "rules.orphans").status == 0
    kb("config", "set", "rules.orphans", "off")
    found = kb("config", "get", "rules.orphans", "--json").json
    assert found == {"name": "rules.orphans", "value": "off", "is_stated": True, "default": "warning"}
    for command in ("get", "unset"):
        assert "There is no rule 'orphan'." in kb("config", command, "rules.orphan").err
