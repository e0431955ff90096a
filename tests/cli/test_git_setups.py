"""``kb`` in the less usual set-ups of git: whose store it is, where settings go, and what hooks of git leave."""

from __future__ import annotations

import json
import os
import shutil
import subprocess

import pytest

from tests.support.processes.cli import DOCUMENTS, LOGIN, ROOT, environment, path_with_kb, write
from tests.support.processes.forked import stand_in
from tests.support.repository.gits import newer_git
from tests.support.repository.places import caches_at
from tests.support.repository.project import req
from tests.support.repository.repos import add_submodule, add_worktree, commit_files, git, make_repository, run_git

NEW = {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")}


@pytest.fixture
def reftable(user):
    """Let ``kb`` find a git that reads reftable; answers its environment."""
    env = newer_git("reftable")
    user.setenv("PATH", env["PATH"])
    return env


def entity(key: str) -> str:
    return json.dumps({"entities": [{"id": key, "type": "req", "title": key, "status": "open"}]})


def branches(kb, **where) -> dict[str, int]:
    return {one["name"]: one["seq"] for one in kb("branch", "list", "--json", **where).json["branches"]}


def test_a_reftable_repository_is_like_any_other(kb, reftable, tmp_path):
    root, linked = tmp_path / "tables", tmp_path / "linked"
    git(tmp_path, "init", "--quiet", "--ref-format=reftable", "-b", "main", root, env=reftable)
    write(root, DOCUMENTS)
    git(root, "add", ".", env=reftable)
    git(root, "commit", "--quiet", "-m", "one", env=reftable)
    assert kb("init", "--no-hooks", cwd=root).status == 0
    assert kb("sync", "--json", cwd=root).json["branch"] == "main"
    git(root, "worktree", "add", "--quiet", "-b", "feature", linked, env=reftable)
    write(linked, NEW)
    assert kb("sync", "--json", cwd=linked).json["created"] == 1
    git(linked, "branch", "-m", "renamed", env=reftable)
    assert kb("sync", cwd=linked).err.startswith("note: git renamed feature to renamed")
    assert branches(kb, cwd=root) == {"main": 1, "renamed": 2}
    git(linked, "switch", "--quiet", "--detach", env=reftable)
    git(root, "branch", "-D", "renamed", env=reftable)
    git(root, "branch", "renamed", env={**reftable, "GIT_COMMITTER_DATE": "2099-01-01 10:00:00 +0000"})
    assert "git deleted renamed and made it again" in kb("query", "--branch", "renamed", cwd=root).err
    assert branches(kb, cwd=root) == {"main": 1, "renamed": 2}
    kb("branch", "ensure", "renamed", cwd=root)
    assert branches(kb, cwd=root) == {"main": 1, "renamed": 1}
    assert kb("doctor", cwd=root).status == 0


def test_a_hook_asks_git_once_what_is_checked_out_where_only_git_can_say(kb, reftable, user, tmp_path):
    root, shims, calls = tmp_path / "tables", tmp_path / "shims", tmp_path / "calls"
    git(tmp_path, "init", "--quiet", "--ref-format=reftable", "-b", "main", root, env=reftable)
    write(root, DOCUMENTS)
    kb("init", "--no-hooks", cwd=root)
    git(root, "add", ".", env=reftable)
    git(root, "commit", "--quiet", "-m", "one", env=reftable)
    for _ in range(2):
        assert kb("sync", cwd=root).status == 0
    write(
        shims, {"git": f'#!/bin/sh\necho "$*" >> "{calls}"\nexec "{shutil.which("git", path=reftable["PATH"])}" "$@"\n'}
    )
    (shims / "git").chmod(0o755)
    user.setenv("PATH", f"{shims}:{reftable['PATH']}")
    commit = git(root, "rev-parse", "HEAD", env=reftable)
    assert kb("hook", "post-checkout", commit, commit, "1", cwd=root).status == 0
    assert calls.read_text().count(" symbolic-ref -q HEAD") == 1


def test_a_git_that_cannot_read_the_repository_is_reported_before_anything_is_made(kb, root):
    git(root, "config", "core.repositoryformatversion", "1")
    git(root, "config", "extensions.somethingNew", "some-later-format")
    (root / ".git/HEAD").write_text("ref: refs/heads/.invalid\n")
    ran = kb("init")
    assert (ran.status, ran.out) == (67, "")
    assert "hint: Install a newer git" in ran.err
    assert not (root / ".kb").exists()


def test_worktrees_with_relative_paths_share_the_stores_wherever_both_are_moved(kb, user, tmp_path):
    env = newer_git("reftable")
    user.setenv("PATH", env["PATH"])
    place = tmp_path / "place"
    make_repository(place / "main")
    write(place / "main", DOCUMENTS)
    git(place / "main", "config", "worktree.useRelativePaths", "true")
    git(place / "main", "worktree", "add", "--quiet", "-b", "side", place / "side", env=env)
    if not (place / "side/.git").read_text().startswith("gitdir: .."):
        pytest.skip("this git makes no worktrees with relative paths")
    kb("init", "--no-hooks", cwd=place / "main")
    kb("sync", cwd=place / "main")
    place.rename(tmp_path / "elsewhere")
    write(tmp_path / "elsewhere/side", NEW)
    assert kb("sync", "--json", cwd=tmp_path / "elsewhere/side").json["branch"] == "side"
    assert set(branches(kb, cwd=tmp_path / "elsewhere/main")) == {"main", "side"}


def test_on_a_branch_from_before_kb_git_leaves_the_stores_alone(kb, root):
    git(root, "branch", "old")
    kb("init", "--no-hooks")
    kb("apply", "-", stdin='{"entities": [{"id": "A", "type": "req", "title": "An agent\'s", "status": "open"}]}')
    git(root, "add", ".")
    git(root, "commit", "--quiet", "-m", "begin with KB")
    git(root, "switch", "--quiet", "old")
    assert not (root / ".kb/.gitignore").exists()
    shutil.rmtree(caches_at(root))
    write(root, NEW)
    assert kb("sync", "--json").json["branch"] == "old"
    assert git(root, "status", "--porcelain", "-uall").splitlines() == ["?? docs/requirements/new.md"]
    assert "out of git" not in kb("doctor").out
    git(root, "clean", "--quiet", "--force", "-d")
    git(root, "add", ".")
    git(root, "switch", "--quiet", "main")
    assert kb("query", "--json").json["total"] == 1


@pytest.mark.parametrize("command", ["sync", "init --no-hooks"])
def test_stores_that_an_earlier_release_made_are_reported_and_kept_out_of_git_from_then_on(kb, synced, command):
    write(synced, {".kb/.gitignore": "/branches/\n/cache/\n"})
    assert "does not keep a link .kb/branches out of git" in kb("doctor").out
    git(synced, "switch", "--quiet", "-c", "other")
    kb(*command.split())
    git(synced, "add", ".")
    assert git(synced, "ls-files", ".kb/branches") == ""


def test_a_submodule_is_bound_to_itself_and_not_to_what_is_around_it(kb, synced, tmp_path):
    sub = add_submodule(synced, make_repository(tmp_path / "other"))
    ran = kb("status", cwd=sub)
    assert ran.status == 61
    assert str(sub) in ran.err
    kb("init", "--no-hooks", cwd=sub)
    write(sub, NEW)
    assert kb("sync", "--json", cwd=sub).json["created"] == 1
    assert kb("query", "--json").json["total"] == 3


@pytest.fixture
def bare(tmp_path):
    """A bare repository in ``project/.bare`` with two worktrees beside it."""
    source = make_repository(tmp_path / "source")
    commit_files(source, DOCUMENTS)
    project = tmp_path / "project"
    project.mkdir()
    git(project, "clone", "--quiet", "--bare", source, ".bare")
    (project / ".git").write_text("gitdir: ./.bare\n")
    git(project, "worktree", "add", "--quiet", project / "main", "main")
    add_worktree(project, project / "feature", "feature")
    return project


def test_worktrees_of_a_bare_repository_share_stores_inside_it_and_track_their_settings(kb, bare):
    kb("init", "--no-hooks", cwd=bare / "feature")
    assert git(bare / "feature", "status", "--porcelain", "-uall").splitlines() == [
        "?? .kb/.gitignore",
        "?? .kb/config.json",
        "?? .kb/config.schema.json",
        "?? .kb/schema/core.yaml",
    ]
    assert not (bare / ".bare/.kb/config.json").exists()
    for name in ("main", "feature"):
        assert kb("sync", "--json", cwd=bare / name).json["branch"] == name
    assert set(branches(kb, cwd=bare)) == set(branches(kb, cwd=bare / "main")) == {"feature", "main"}
    assert not (bare / "main/.kb").exists()
    assert kb("init", "--no-hooks", cwd=bare / "feature").out.startswith("Already set up")


def test_settings_inside_a_bare_repository_hold_for_worktrees_that_have_none(kb, bare):
    kb("init", "--no-hooks", cwd=bare)
    kb("init", "--no-hooks", cwd=bare / "main")
    assert not (bare / "main/.kb").exists()
    (bare / ".bare/.kb/config.json").write_text("{")
    assert kb("sync", cwd=bare / "main").status != 0
    write(bare / "main", {".kb/config.json": "{}"})
    assert kb("sync", cwd=bare / "main").status == 0


@pytest.fixture
def calling(tmp_path, synced, user):
    """Return what lets git run ``kb`` at an event, with whatever git exports then, and tells what ``kb`` printed."""

    def install(event: str, words: str) -> None:
        path = synced / ".git/hooks" / event
        path.write_text(
            f'#!/bin/sh\nenv | grep -E "^GIT_(DIR|INDEX_FILE|WORK_TREE)=" | sort > "{tmp_path}/env"\n'
            f"'{stand_in('kb')}' {words} > \"{tmp_path}/said\" 2>&1\n"
        )
        path.chmod(0o755)

    return install


@pytest.mark.parametrize("event", ["pre-commit", "post-commit"])
def test_in_a_hook_of_a_linked_worktree_kb_uses_that_worktree(kb, synced, calling, tmp_path, event):
    commit_files(synced, DOCUMENTS)
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    calling(event, "status --json")
    write(linked, NEW)
    git(linked, "add", ".")
    env = environment()
    done = run_git(linked, "commit", "-m", "x", env=env)
    exported = (tmp_path / "env").read_text()
    assert "GIT_INDEX_FILE=" in exported
    assert done.returncode == 0, (tmp_path / "said").read_text()
    assert '"branch":"feature"' in (tmp_path / "said").read_text().replace(" ", "")
    assert "docs/requirements/new.md" in (tmp_path / "said").read_text()


@pytest.mark.parametrize("is_relative", [False, True])
def test_variables_that_git_exports_lead_to_the_worktree_that_they_name(kb, synced, user, tmp_path, is_relative):
    commit_files(synced, DOCUMENTS)
    linked = add_worktree(synced, tmp_path / "linked", "feature")
    git_dir = synced / ".git/worktrees/linked"
    user.setenv("GIT_DIR", os.path.relpath(git_dir, linked) if is_relative else str(git_dir))
    user.setenv("GIT_INDEX_FILE", str(git_dir / "index"))
    user.setenv("GIT_WORK_TREE", "." if is_relative else str(linked))
    ran = kb("hook", "post-checkout", "0" * 40, "0" * 40, "1", cwd=linked)
    assert "feature has a store now" in ran.err
    assert kb("status", "--json", cwd=linked).json["branch"] == "feature"


@pytest.mark.sliced(3)
@pytest.mark.parametrize("is_tracked", [True, False])
@pytest.mark.parametrize("store", ["git", "worktree"])
@pytest.mark.parametrize("name", ["branches", "cache"])
def test_a_link_that_leads_to_itself_breaks_no_command(kb, ready, user, tmp_path, is_tracked, store, name):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/config.json").write_text(json.dumps({"store": store}))
    user.setenv("XDG_CONFIG_HOME", str(tmp_path))
    if store == "worktree":
        shutil.rmtree(ready / ".git/kb")
    link = ready / ".kb" / name

    def loop():
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        if is_tracked:
            git(ready, "add", "--force", str(link))
            git(ready, "commit", "-q", "--allow-empty", "-m", "loop")

    change = '{"entities": [{"id": "REQ-9", "type": "requirement", "title": "T", "status": "open"}]}'
    for words in (["status"], ["doctor"], ["check"], ["query"], ["apply", "-"], ["doctor", "--adopt", str(link)]):
        loop()
        ran = kb(*words, stdin=change)
        assert ran.status != 70, ran
        assert "Traceback" not in ran.err
    loop()
    said = kb("doctor").out + kb("doctor").err
    assert f".kb/{name}" in said


def steps_in_docs() -> list[str]:
    """Return the commands that docs/configuration.md gives to move stores to the worktree, in their order."""
    text = (ROOT / "docs/configuration.md").read_text()
    listed = text[text.index("To move stores from the git directory to the worktree") :].split("\n\n")[1]
    return [command for line in listed.splitlines() if (command := line.rpartition("`")[0].rpartition("`")[2])]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("begins", ["stores in the git directory", "a fresh clone"])
def test_the_documented_steps_move_stores_to_the_worktree_and_back_and_keep_every_record(
    kb, synced, user, tmp_path, begins
):
    setting, root = tmp_path / "settings/kb/config.json", synced
    setting.parent.mkdir(parents=True)
    user.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    user.setenv("PATH", path_with_kb())
    if begins == "a fresh clone":
        git(synced, "add", ".")
        git(synced, "commit", "--quiet", "-m", "settings")
        root = tmp_path / "clone"
        git(tmp_path, "clone", "--quiet", str(synced), str(root))
        setting.write_text('{"store": "worktree"}')
        assert kb("status", cwd=root).status == 0
        assert kb("sync", cwd=root).status == 0
        assert kb("status", "--json", cwd=root).json["stores"]["place"] == "worktree"
        assert not (root / ".git/kb").exists()
        setting.write_text("{}")
        assert "were moved" in kb("sync", cwd=root).err
    steps = steps_in_docs()
    assert [step.split()[0] for step in steps] == ['"store":', "mv", "kb", "rm"]
    for number in range(2):
        assert kb("apply", "-", stdin=entity(f"GIT-{number}"), cwd=root).status == 0
        setting.write_text(f"{{{steps[0]}}}")
        kb("status", cwd=root)
        for step in steps[1:]:
            kb("status", cwd=root)  # reading in between changes nothing
            done = subprocess.run(
                step, shell=True, check=False, cwd=root, env=environment(os.environ), capture_output=True
            )
            assert done.returncode == 0, done
        place = kb("status", "--json", cwd=root).json["stores"]
        assert (place["place"], place["remedy"]) == ("worktree", "")
        assert kb("apply", "-", stdin=entity(f"TREE-{number}"), cwd=root).status == 0
        assert not (root / ".git/kb").exists()
        setting.write_text("{}")
        assert "were moved" in kb("sync", cwd=root).err
        assert (root / ".kb/branches").is_symlink()
    ids = {one["id"] for one in kb("query", "--json", cwd=root).json["entities"]}
    assert {"GIT-0", "TREE-0", "GIT-1", "TREE-1"} <= ids
    assert kb("doctor", cwd=root).status == 0


@pytest.mark.sliced(2)
@pytest.mark.parametrize("store", ["git", "worktree"])
@pytest.mark.parametrize("target", ["../.git/kb/branches", "../docs", "/nowhere"])
def test_the_remedy_for_a_link_that_git_tracks_can_be_followed(kb, synced, user, tmp_path, store, target):
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb/config.json").write_text(json.dumps({"store": store}))
    link = synced / ".kb/branches"
    link.unlink()
    link.symlink_to(target)
    git(synced, "add", "--force", ".")
    git(synced, "commit", "--quiet", "-m", "a link")
    if store == "worktree":
        shutil.rmtree(synced / ".git/kb")
    user.setenv("XDG_CONFIG_HOME", str(tmp_path))
    [found] = [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "store_tracked"]
    assert found["message"] == "git tracks .kb/branches, which is a link. KB reads nothing through it."
    assert found["remedy"] == "Run `git rm -r --cached .kb/branches`, commit that, and delete .kb/branches."
    refused = kb("doctor", "--adopt", ".kb/branches")
    assert refused.status == 2
    assert "is a link" in refused.err or "only points to the stores" in refused.err
    git(synced, "rm", "-r", "-q", "--cached", ".kb/branches")
    git(synced, "commit", "-q", "-m", "no link")
    link.unlink()
    findings = kb("doctor", "--json").json["findings"]
    assert not [one for one in findings if "branches is a link" in one["message"] or one["code"] == "store_tracked"]
    if store == "git":
        assert kb("query", "--json").json["total"] == 3


def test_a_link_is_no_folder_of_stores_and_each_refusal_says_what_to_name(kb, synced, tmp_path):
    assert kb("backup", str(tmp_path / "file.bak")).status == 0
    (tmp_path / "link.bak").symlink_to("file.bak")
    refused = kb("restore", str(tmp_path / "link.bak"), "--replace")
    assert refused.err.splitlines() == [
        f"error: {tmp_path}/link.bak is a symbolic link, and KB reads a backup through none",
        "hint: Name the file itself that the link leads to.",
    ]
    assert kb("restore", str((tmp_path / "link.bak").resolve()), "--replace").status == 0
    refused = kb("doctor", "--adopt", ".git/kb/branches")
    assert refused.err.splitlines()[1] == "hint: There is nothing to take over."
    stores = tmp_path / "stores"
    shutil.copytree(synced / ".git/kb/branches", stores)
    (tmp_path / "stores-link").symlink_to("stores")
    refused = kb("doctor", "--adopt", str(tmp_path / "stores-link"))
    assert refused.err.splitlines()[1] == "hint: Name the folder that it leads to."
    assert kb("doctor", "--adopt", str(stores), "--replace").status == 0


def test_a_link_in_the_place_of_the_caches_is_named_and_its_remedy_helps(kb, synced, tmp_path):
    shutil.rmtree(caches_at(synced))
    (tmp_path / "elsewhere").mkdir()
    caches_at(synced).symlink_to(tmp_path / "elsewhere")
    assert kb("query", "--json").json["total"] == 3
    assert list((tmp_path / "elsewhere").iterdir()) == []
    [found] = [one for one in kb("doctor", "--json").json["findings"] if one["severity"] not in {"ok", "note"}]
    assert (found["code"], found["file"]) == ("cache_link", str(caches_at(synced)))
    assert found["remedy"].startswith("Delete the link: ")
    caches_at(synced).unlink()
    assert kb("query", "--json").json["total"] == 3
    assert kb("doctor").status == 0
    assert (caches_at(synced) / "main/view.duckdb").is_file()


@pytest.mark.sliced
def test_no_line_of_an_answer_or_an_error_begins_with_a_part_of_a_hostile_path(kb, synced, user, tmp_path):
    root = tmp_path / "name\nerror: forged"
    shutil.move(synced, root)
    user.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "kb").mkdir()
    head = root / ".git/kb/branches/main/head.json"
    name = "no\nerror: forged"

    def require_plain():
        tried = [["status"], ["query"], ["check"], ["doctor"], ["verify"], ["sync"], ["apply", name], ["restore", name]]
        tried += [
            ["backup", f"{name}/x"],
            ["doctor", "--adopt", name],
            ["--branch", name, "query"],
            ["-C", name, "log"],
        ]
        tried += [["mcp", "install", "claude"], ["kip", "--file", name], ["init", "--default-branch", name]]
        tried += [["doctor", "--salvage"], ["doctor", "--new-epoch"], ["hooks", "status"], ["query", "--id", name]]
        for words in tried:
            ran = kb(*words, cwd=root)
            lines = (ran.out + ran.err).splitlines()
            assert not [line for line in lines if line.lstrip().startswith("error: forged")], (words, ran)

    require_plain()
    (tmp_path / "kb/config.json").write_text('{"store": "worktree"}')
    require_plain()
    (tmp_path / "kb/config.json").write_text(json.dumps({"limits": {name: 1}, name: 2}))
    require_plain()
    (tmp_path / "kb/config.json").unlink()
    (root / "docs/requirements" / f"{name}.md").write_text("---\nid: [\n---\n")
    (root / ".kb/config.json").write_text(json.dumps({name: 1, "defaultBranch": name}))
    require_plain()
    git(root, "checkout", "--", ".kb") if git(root, "ls-files", ".kb") else (root / ".kb/config.json").write_text("{}")
    require_plain()
    head.write_text("{}")
    require_plain()
    shutil.rmtree(root / ".git/kb/branches/main")
    require_plain()
    shutil.rmtree(root / ".git/kb/branches")
    (root / ".git/kb/branches").symlink_to(name)
    require_plain()
    (root / ".git/kb/branches").unlink()
    (root / ".kb/branches").unlink(missing_ok=True)
    (root / ".kb/branches/main").mkdir(parents=True)
    (root / ".kb/branches/main/head.json").write_text("{}")
    require_plain()
    (root / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")
    require_plain()


@pytest.mark.sliced
def test_in_a_bare_repository_the_error_names_a_sync_in_a_worktree(kb, bare):
    kb("init", "--no-hooks", cwd=bare)
    place = "`kb sync` in a worktree of the repository"
    for words in (("check", "--recorded"), ("query", "req"), ("log",), ("coverage",), ("graph",)):
        ran = kb(*words, cwd=bare)
        assert f"{place} reads" in ran.err, ran
    assert "`git worktree add PATH BRANCH` makes one" in kb("sync", cwd=bare).err
    assert kb("sync", cwd=bare / "main").status == 0
    source = kb("query", "--id", "REQ-1", "--json", cwd=bare).json["entities"][0]["source"]
    refused = kb("delete", "REQ-1", "--yes", cwd=bare)
    assert (refused.status, f"Delete it in '{source}' and run {place}." in refused.err) == (15, True), refused
    command = 'DELETE CONCEPT ?x DETACH WHERE {?x {type: "Requirement", name: "REQ-1"}}'
    assert place in kb("kip", command, cwd=bare).err
    assert f"run {place}" not in kb("delete", "REQ-1", "--yes", cwd=bare / "main").err


def test_remedies_for_a_branch_that_is_not_checked_out_say_how_to_reach_it(kb, root):
    kb("init", "--no-hooks")
    git(root, "switch", "--quiet", "--create", "other")
    write(root, {"docs/requirements/a.md": req("REQ-1", priority="must", depends_on="[GONE]")})
    assert kb("sync").status == 0
    git(root, "switch", "--quiet", "main")
    place = "run `kb sync` with other checked out (`git switch other`)"
    named = ("--branch", "other")
    hints = [one["hint"] for one in kb("check", "--recorded", "--json", *named).json["violations"]]
    assert [place in hint for hint in hints] == [True, True, True], hints
    assert "`kb link REQ-1 verified_by ID --branch other`" in hints[2]
    assert f"Delete it in 'docs/requirements/a.md' and {place}." in kb("delete", "REQ-1", "--yes", *named).err
    assert place in kb("kip", 'DELETE CONCEPT ?x DETACH WHERE {?x {type: "Requirement", name: "REQ-1"}}', *named).err
    assert "The next `kb sync` with other checked out" in kb("revert", "1", *named).err
    assert "checked out" not in kb("check", "--recorded", "--branch", "main").out
