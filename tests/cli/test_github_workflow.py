"""``kb init --github`` writes a workflow once, brings its own up to date, and never replaces what somebody changed."""

from __future__ import annotations

import pytest
import yaml

from kbcli.forge.github_workflow import PLACE, workflow_text
from tests.support.repository.repos import git


def of_pages(text):
    return yaml.safe_load(text)["jobs"].get("pages")


def test_the_workflow_checks_pushes_to_the_default_branch_and_pull_requests_with_few_rights(kb, root):
    ran = kb("init", "--github")
    assert f"Workflow: {PLACE} was written." in ran.out
    text = (root / PLACE).read_text()
    found = yaml.safe_load(text)
    assert found[True] == {"push": {"branches": ["main"]}, "pull_request": None}  # YAML 1.1 reads `on` as true
    assert found["permissions"] == {"contents": "read"}
    [job] = found["jobs"].values()
    assert job["permissions"] == {"contents": "read", "security-events": "write"}
    runs = [step["run"].split(" > ")[0] for step in job["steps"] if "run" in step]
    for words in (run.split() for run in runs if run.startswith("kb ")):
        assert kb(words[1], "--help").status == 0
        options = [word for word in words if word.startswith("--")]
        assert all(option in kb(words[1], "--help").out for option in options)


def test_a_second_run_changes_nothing_and_pages_are_added_only_when_asked_for(kb, root):
    kb("init", "--github")
    first = (root / PLACE).read_text()
    assert kb("init", "--github", "--json").json["workflow"] == {"path": PLACE, "action": "kept"}
    assert (root / PLACE).read_text() == first
    assert of_pages(first) is None
    assert kb("init", "--github", "--pages", "--json").json["workflow"]["action"] == "updated"
    pages = of_pages((root / PLACE).read_text())
    assert pages["permissions"] == {"pages": "write", "id-token": "write"}
    assert "may read the report" in (root / PLACE).read_text()


@pytest.mark.parametrize("text", ["mine: yes\n", workflow_text("main", pages=False) + "# more\n", ""])
def test_a_file_that_somebody_changed_stays_as_it_is(kb, root, text):
    (root / PLACE).parent.mkdir(parents=True)
    (root / PLACE).write_text(text)
    ran = kb("init", "--github", "--pages")
    assert ran.status == 0
    assert "stays as it is" in ran.out
    assert (root / PLACE).read_text() == text


def test_a_name_of_a_branch_is_only_a_text_of_the_file(kb, root):
    git(root, "checkout", "-qb", "a#b,'{c}")
    kb("init", "--github", "--default-branch", "a#b,'{c}")
    assert yaml.safe_load((root / PLACE).read_text())[True]["push"]["branches"] == ["a#b,'{c}"]


def test_a_branch_with_characters_of_a_filter_is_named_literally(kb, root):
    git(root, "checkout", "-qb", "c++!")
    kb("init", "--github", "--default-branch", "c++!")
    assert yaml.safe_load((root / PLACE).read_text())[True]["push"]["branches"] == ["c\\+\\+\\!"]


def test_a_link_that_leads_to_no_file_stays_as_it_is(kb, root):
    (root / PLACE).parent.mkdir(parents=True)
    (root / PLACE).symlink_to("nowhere.yml")
    ran = kb("init", "--github")
    assert "stays as it is" in ran.out
    assert (root / PLACE).is_symlink()


@pytest.mark.parametrize("link", [".github", ".github/workflows", PLACE])
def test_a_link_that_leads_out_of_the_repository_is_not_followed(kb, root, tmp_path, link):
    outside = tmp_path / "outside"
    (outside / "workflows").mkdir(parents=True)
    (outside / "kb.yml").write_text(workflow_text("other", pages=False))
    (root / link).parent.mkdir(parents=True, exist_ok=True)
    (root / link).symlink_to(outside / "kb.yml" if link == PLACE else outside)
    before = sorted((one, one.read_text() if one.is_file() else "") for one in outside.rglob("*"))
    ran = kb("init", "--github")
    assert ran.status == 24
    assert not (root / ".kb").exists()
    assert f"{PLACE} is not in the repository: the link {link} points to {outside}" in ran.err
    assert sorted((one, one.read_text() if one.is_file() else "") for one in outside.rglob("*")) == before
    assert (root / link).is_symlink()


def test_a_link_within_the_repository_is_followed(kb, root):
    (root / "forge").mkdir()
    (root / ".github").symlink_to("forge")
    assert kb("init", "--github").status == 0
    assert (root / "forge/workflows/kb.yml").read_text() == workflow_text("main", pages=False)


@pytest.mark.parametrize("name", [".github", ".github/workflows"])
def test_a_file_in_the_place_of_a_folder_is_named_before_anything_is_set_up(kb, root, name):
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_text("")
    ran = kb("init", "--github")
    assert ran.status == 24
    assert f"{name} is no folder, so that {PLACE} cannot be written." in ran.err
    assert f"Remove or rename {name}, or leave --github out." in ran.err
    assert not (root / ".kb").exists()


def test_a_folder_in_the_place_of_the_file_is_named_before_anything_is_set_up(kb, root):
    (root / PLACE).mkdir(parents=True)
    ran = kb("init", "--github")
    assert ran.status == 24
    assert f"{PLACE} is a folder, not a file." in ran.err
    assert not (root / ".kb").exists()


def test_a_bare_repository_is_refused_before_anything_is_set_up(kb, tmp_path):
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    ran = kb("-C", str(tmp_path / "bare.git"), "init", "--github")
    assert ran.status == 2
    assert "A bare repository has no files, and so no workflow." in ran.err
    assert not (tmp_path / "bare.git/kb").exists()


def test_pages_alone_are_refused(kb, root):
    ran = kb("init", "--pages")
    assert ran.status == 2
    assert not (root / ".kb").exists()
