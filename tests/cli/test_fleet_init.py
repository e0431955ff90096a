"""``kb fleet init`` and ``kb export --fleet``: the place of a repository's own settings."""

from __future__ import annotations

import json

import pytest

from kbcli.forge.github_workflow import PLACE
from kbcli.invocation import exits
from tests.support.repository.repos import git


def fleet_of(root):
    return json.loads((root / ".kb/config.json").read_text())["fleet"]


def test_the_place_is_set_once_and_exported_to(kb, synced, tmp_path):
    said = kb("fleet", "init", str(tmp_path / "place"), "--repo", "acme/pay").out
    assert "acme/pay exports to" in said
    assert "Whoever may read the place reads all" in said
    before = (synced / ".kb/config.json").read_bytes()
    again = kb("fleet", "init", "--json").json
    assert (again["written"], again["repo"], again["fault"]) == ([], "acme/pay", "")
    assert (synced / ".kb/config.json").read_bytes() == before
    found = kb("export", "--fleet", "--json").json
    assert (found["repo"], found["branch"]) == ("acme/pay", "main")
    assert found["written"]
    assert kb("export", "--fleet", "--json").json["written"] == 0
    [row] = kb("fleet", "status", "--json").json["rows"]
    assert row["repo"] == "acme/pay"


def test_a_place_is_named_from_the_folder_of_the_command_and_kept_from_the_root(kb, synced):
    kb("fleet", "init", "../../place", cwd=synced / "docs")
    assert fleet_of(synced)["place"] == "../place"
    assert kb("export", "--fleet", cwd=synced / "docs").status == 0
    assert (synced.parent / "place" / "heads").is_dir()


@pytest.mark.parametrize("words", [("other",), ("--repo", "acme/other"), ("place", "--repo", "acme/other")])
def test_what_somebody_set_is_left_as_it_is(kb, synced, words):
    kb("fleet", "init", "place", "--repo", "acme/pay")
    before = (synced / ".kb/config.json").read_bytes()
    ran = kb("fleet", "init", *words)
    assert ran.status == exits.USAGE
    assert "was left as it is" in ran.err
    assert "kb config set fleet." in ran.err
    assert (synced / ".kb/config.json").read_bytes() == before


def test_wrong_names_are_refused_and_nothing_is_written(kb, synced):
    before = (synced / ".kb/config.json").read_bytes()
    for words in (
        (),
        ("s3://user:swordfish@bucket/x",),
        ("place", "--repo", " x"),
        ("s3:/bucket/x",),
        ("ftp://host/x",),
        ("p", "--repo", ""),
        ("s3://",),
        ("s3:///kb",),
    ):
        ran = kb("fleet", "init", *words)
        assert ran.status == exits.USAGE
        assert "swordfish" not in ran.err
    assert (synced / ".kb/config.json").read_bytes() == before


def test_a_url_without_a_bucket_is_refused_wherever_it_is_named(kb, synced):
    kb("fleet", "init", "place")
    for words in (
        ("fleet", "init", "s3://"),
        ("config", "set", "fleet.place", "s3://"),
        ("export", "--parquet", "s3://"),
    ):
        ran = kb(*words)
        assert ran.status != 0
        assert "names no bucket" in ran.err
        assert "set fleet.place s3://" not in ran.err
    assert fleet_of(synced)["place"] == "place"


def test_a_place_that_is_not_reached_is_set_and_said(kb, synced):
    ran = kb("fleet", "init", "no/where")
    assert ran.status == 0
    assert "was not reached" in ran.err
    assert fleet_of(synced)["place"] == "no/where"


@pytest.mark.parametrize(("mode", "who"), [(0o755, "everybody"), (0o750, "group"), (0o700, "owner")])
def test_who_may_read_a_folder_is_said(kb, synced, tmp_path, mode, who):
    (tmp_path / "place").mkdir(mode=mode)
    (tmp_path / "place").chmod(mode)
    assert kb("fleet", "init", str(tmp_path / "place"), "--json").json["readers"] == who


def test_a_place_in_the_worktree_is_to_be_ignored_by_git(kb, synced):
    assert ".gitignore" in kb("fleet", "init", "place").out
    (synced / ".gitignore").write_text("/place/\n")
    assert kb("fleet", "init", "--json").json["needs_ignoring"] is False


def test_what_is_not_shared_is_said(kb, synced):
    kb("config", "set", "share.types", '["req"]')
    said = kb("fleet", "init", "place").out
    assert "types req), without history where anything is left out." in said
    kb("export", "--fleet")
    assert [row["history"] for row in kb("fleet", "status", "--json").json["rows"]] == [True]


def test_an_export_without_a_place_says_how_to_set_one(kb, synced):
    ran = kb("export", "--fleet")
    assert ran.status == exits.USAGE
    assert "kb fleet init" in ran.err
    assert "exclude each other" in kb("export", "--fleet", "--parquet", "x").err


def test_without_a_branch_that_is_checked_out_the_one_in_the_fleet_is_named(kb, synced):
    kb("fleet", "init", "place")
    git(synced, "checkout", "--quiet", "--detach")
    ran = kb("export", "--fleet")
    assert ran.status == exits.USAGE
    assert "--as BRANCH" in ran.err
    assert not (synced / "place").exists()
    assert kb("export", "--fleet", "--as", "main", "--no-history", "--json").json["branch"] == "main"


def test_the_workflow_exports_to_a_place_on_s3(kb, synced, user):
    user.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    user.setenv("AWS_EC2_METADATA_DISABLED", "true")
    kb("fleet", "init", "s3://no-such-bucket/kb")
    kb("init", "--github", "--no-hooks")
    text = (synced / PLACE).read_text()
    assert 'kb export --fleet --as "$GITHUB_REF_NAME" --no-history' in text
    assert "gherkin,graph,s3]==" in text
    assert "${{ secrets.AWS_SECRET_ACCESS_KEY }}" in text


def test_a_name_that_links_cannot_have_is_said(kb, synced):
    said = kb("fleet", "init", "../place").out
    assert f"'{synced.name}' is not OWNER/NAME" in said
    assert "is not OWNER/NAME" not in kb("fleet", "init", "--repo", "acme/pay").out
