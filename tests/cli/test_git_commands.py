"""git's own commands reach no store: after each, every acknowledged record is there and the next command works."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.processes.advice import spelled_out
from tests.support.processes.cli import write
from tests.support.repository.older import facts, make_older
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git, make_repository

ENTITY = '{"entities": [{"id": "MINE", "type": "req", "title": "An agent\'s", "status": "open"}]}'
MORE = ENTITY.replace("MINE", "MORE")


@pytest.fixture
def kept(kb, synced):
    """A repository with settings in git, and acknowledged records that no document states."""
    assert kb("apply", "-", stdin=ENTITY).status == 0
    git(synced, "add", ".")
    git(synced, "commit", "--quiet", "--allow-empty", "-m", "settings")
    return synced


def status_of(root: Path) -> list[str]:
    return git(root, "status", "--porcelain", "--untracked-files=all").splitlines()


def tracking_branch(root: Path, files: bool) -> None:
    """Make a branch that tracks `.kb/branches`: as a folder of files, or as a link to somewhere else."""
    git(root, "switch", "--quiet", "-c", "tracks")
    (root / ".kb/branches").unlink()
    if files:
        write(root, {".kb/branches/main/head.json": "{}", ".kb/branches/main/journal-0000000001.jsonl": "x\n"})
    else:
        (root / ".kb/branches").symlink_to("/nowhere")
    git(root, "add", "--force", ".kb/branches")
    git(root, "commit", "--quiet", "-m", "stores")
    git(root, "switch", "--quiet", "main")


def after(kb, root: Path, before: dict[str, bytes]) -> None:
    """Require that nothing is lost, that reading and writing work, and that the pointer is there again."""
    now = facts(stores_at(root) / "main")
    assert all(now[name].startswith(data) for name, data in before.items())
    assert kb("show", "MINE").status == 0
    assert kb("apply", "-", stdin=MORE).status == 0
    assert kb("verify", "--branch", "main").status == 0


@pytest.mark.sliced(1)
@pytest.mark.parametrize("files", [True, False])
def test_a_switch_to_a_branch_that_tracks_stores_and_back_loses_nothing(kb, kept, files):
    kb("query")
    tracking_branch(kept, files)
    before = facts(stores_at(kept) / "main")
    kb("query")
    assert (kept / ".kb/branches").readlink() == Path("../.git/kb/branches")
    git(kept, "switch", "--quiet", "tracks")
    assert "git tracks" in kb("status").err
    kb("branch", "ensure")
    assert kb("query", "--json").json["branch"] == "tracks"
    assert "git tracks" in kb("check", "--fail-on", "never").err
    assert "git tracks" in kb("doctor").out
    assert status_of(kept) == []
    git(kept, "switch", "--quiet", "main")
    after(kb, kept, before)
    assert (kept / ".kb/branches").readlink() == Path("../.git/kb/branches")
    assert status_of(kept) == []


COMMANDS = {
    "clean": ["clean -f -d -x -q"],
    "clean twice": ["clean -f -f -d -x -q"],
    "stash -a": ["stash push -q -a"],
    "stash -u": ["stash push -q -u"],
    "stash": ["stash push -q"],
    "checkout": ["checkout -q ."],
    "reset": ["reset -q --hard"],
    "gc": ["gc -q --prune=now"],
    "repack": ["repack -a -d -q", "prune", "pack-refs --all", "reflog expire --expire=now --all"],
    "prune": ["worktree prune", "fsck --strict --no-dangling"],
    "orphan": ["stash push -q -u", "switch -q --orphan empty", "switch -q main"],
    "rm": ["rm -r -q --cached .kb", "reset -q --hard"],
    "rm all": ["rm -r -q -f .", "reset -q --hard"],
}


@pytest.mark.sliced(4)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_git_loses_nothing_and_the_link_is_made_again(kb, kept, command):
    write(kept, {"docs/requirements/login.md": "changed", "new.txt": "new"})
    before = facts(stores_at(kept) / "main")
    for words in COMMANDS[command]:
        git(kept, *words.split())
    after(kb, kept, before)
    assert (kept / ".kb/branches").readlink() == Path("../.git/kb/branches")


@pytest.mark.sliced
def test_a_stash_of_everything_is_applied_after_the_link_was_taken_away(kb, kept):
    write(kept, {"new.txt": "new"})
    git(kept, "stash", "push", "-q", "-a")
    kb("query")
    (kept / ".kb/branches").unlink()
    git(kept, "stash", "pop", "-q")
    assert (kept / "new.txt").exists()
    after(kb, kept, {})


@pytest.mark.sliced
def test_worktrees_come_move_and_go_and_the_stores_stay(kb, kept, tmp_path):
    before = facts(stores_at(kept) / "main")
    git(kept, "worktree", "add", "-q", "-b", "linked", tmp_path / "linked")
    assert kb("apply", "-", "--json", cwd=tmp_path / "linked", stdin=MORE).json["branch"] == "linked"
    assert status_of(tmp_path / "linked") == []
    git(kept, "worktree", "move", tmp_path / "linked", tmp_path / "moved")
    git(kept, "worktree", "remove", "--force", tmp_path / "moved")
    git(kept, "worktree", "prune")
    after(kb, kept, before)


def test_a_clone_brings_no_store_and_begins_one_of_its_own(kb, kept, tmp_path):
    git(tmp_path, "clone", "-q", kept, tmp_path / "clone")
    assert not (tmp_path / "clone/.git/kb").exists()
    assert kb("sync", "--json", cwd=tmp_path / "clone").json["created"] == 3
    assert (tmp_path / "clone/.kb/branches").readlink() == Path("../.git/kb/branches")
    assert status_of(tmp_path / "clone") == []


def test_a_branch_called_as_the_folder_is_a_branch_like_others(kb, kept):
    git(kept, "branch", "kb/branches/main/head.json")
    git(kept, "switch", "-q", "kb/branches/main/head.json")
    kb("branch", "ensure")
    assert kb("query", "--json").json["branch"] == "kb/branches/main/head.json"
    git(kept, "switch", "-q", "main")
    git(kept, "branch", "-D", "kb/branches/main/head.json")
    git(kept, "branch", "kb")
    git(kept, "switch", "-q", "kb")
    assert git(kept, "rev-parse", "kb") == git(kept, "rev-parse", "main")
    git(kept, "fsck", "--strict")


# Older stores, and what lies beside


@pytest.mark.sliced
def test_a_command_moves_older_stores_and_says_so_and_status_only_says_it(kb, kept):
    make_older(kept)
    before = facts(kept / ".kb/branches")
    reported = kb("status")
    assert "holds stores that an older KB made" in reported.err
    assert facts(kept / ".kb/branches") == before
    assert "older KB" in kb("doctor").out
    ran = kb("query")
    assert "were moved" in ran.err
    assert facts(stores_at(kept)) == before
    assert "were moved" not in kb("query").err
    assert status_of(kept) == [" M .kb/.gitignore"]
    assert "updated .kb/.gitignore" in kb("init", "--no-hooks").out
    assert (kept / ".kb/branches").is_symlink()


def beside(kb, root: Path) -> Path:
    """Put a store of an older KB beside the ones in use: it has a record that those have not."""
    make_older(root)
    saved = shutil.copytree(root / ".kb/branches", root.parent / "saved")
    kb("query")
    shutil.rmtree(root / ".kb/branches", ignore_errors=True)
    shutil.copytree(saved, root / ".kb/branches")
    assert kb("apply", "-", stdin=MORE).status == 0
    return saved


@pytest.mark.sliced
def test_doctor_adopts_other_stores_and_moves_those_in_use_to_the_trash(kb, kept):
    saved = beside(kb, kept)
    assert "--adopt .kb/branches" in kb("status").err
    assert "--adopt .kb/branches" in kb("check", "--fail-on", "never").err
    assert "--adopt .kb/branches" in kb("doctor").out
    assert kb("show", "MORE").status == 0
    before, own, there = facts(stores_at(kept)), seq_of(stores_at(kept) / "main"), seq_of(saved / "main")
    refused = kb("doctor", "--adopt", ".kb/branches", "--json")
    assert refused.error["code"] == "invalid_query"
    assert f"main has a store at seq {own}, this one is at seq {there}" in refused.error["message"]
    assert "--replace" in refused.error["hint"]
    assert facts(stores_at(kept)) == before
    assert facts(kept / ".kb/branches/main") == facts(saved / "main")
    ran = kb("doctor", "--adopt", ".kb/branches", "--replace")
    assert ran.status == 0, ran
    assert f"The store that main had, at seq {own}, is in the trash now" in ran.err
    assert f"at seq {there}" in ran.out
    assert facts(stores_at(kept) / "main") == facts(saved / "main")
    assert kb("show", "MORE").status != 0
    assert kb("branch", "restore", "main").status == 0
    assert kb("show", "MORE").status == 0
    assert relocated(kept)


def test_tracked_stores_that_were_noted_are_missed_and_the_error_says_how_to_adopt_them(kb, kept):
    before = seq_of(stores_at(kept) / "main")
    make_older(kept)
    git(kept, "add", "--force", ".kb/branches/main")
    git(kept, "commit", "--quiet", "-m", "stores")
    ran = kb("apply", "-", "--json", stdin=MORE)
    assert ran.error["code"] == "store_went_back"
    hint = ran.error["hint"]
    untrack, adopt, *_ = re.findall("`([^`]+)`", hint)
    assert "git tracks" in hint
    assert adopt == "kb doctor --adopt .kb/branches"
    # The remedy, step by step.
    subprocess.run(untrack, shell=True, check=True, cwd=kept, capture_output=True)
    git(kept, "commit", "--quiet", "-m", "no stores")
    assert kb(*adopt.split()[1:]).status == 0
    assert kb("apply", "-", "--json", stdin=MORE).json["seq"] == before + 1
    assert "missing" not in kb("doctor").out


@pytest.mark.sliced(1)
@pytest.mark.parametrize("remedy", ["adopt", "delete"])
def test_a_store_that_an_older_kb_begins_after_git_clean_is_named_with_both_ways_out(kb, kept, tmp_path, remedy):
    # What an older KB makes where it finds no store: one of its own, in the old place.
    other = make_repository(tmp_path / "other")
    assert kb("init", "--no-hooks", cwd=other).status == 0
    assert kb("apply", "-", stdin=MORE, cwd=other).status == 0
    make_older(other)
    before = facts(stores_at(kept))
    git(kept, "clean", "-fdx", "--quiet")
    assert not (kept / ".kb/branches").exists()
    shutil.copytree(other / ".kb/branches", kept / ".kb/branches")
    for words in (["status"], ["check", "--fail-on", "never"]):
        said = " ".join(kb(*words).err.split())
        assert f".kb/branches is no part of the stores, which are in {stores_at(kept)}. It is not read." in said
        assert "`kb doctor --adopt .kb/branches --replace` puts those that have their places into the trash" in said
        assert "Else delete it." in said
    assert kb("show", "MORE").status != 0
    assert facts(stores_at(kept)) == before
    if remedy == "adopt":
        assert "main has a store at seq" in kb("doctor", "--adopt", ".kb/branches").err
        assert kb("doctor", "--adopt", ".kb/branches", "--replace").status == 0
        assert kb("show", "MORE").status == 0
        assert kb("branch", "restore", "main").status == 0
    else:
        shutil.rmtree(kept / ".kb/branches")
    assert kb("query").status == 0
    assert facts(stores_at(kept) / "main") == {
        name.removeprefix("main/"): data for name, data in before.items() if name.startswith("main/")
    }
    assert relocated(kept)
    assert ".kb/branches" not in kb("status").err


def test_the_command_that_makes_an_empty_store_next_to_tracked_ones_says_so(kb, kept, monkeypatch, tmp_path):
    make_older(kept)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))  # an older KB noted nothing there
    old = facts(kept / ".kb/branches/main")
    git(kept, "add", "--force", ".kb/branches/main")
    git(kept, "commit", "--quiet", "-m", "stores")
    ran = kb("apply", "-", "--quiet", stdin=MORE)
    assert ran.status == 0, ran
    said = " ".join(ran.err.split())
    assert "main starts empty. git tracks" in said
    assert "KB reads none of them" in said
    assert "If not: " in said
    assert "KB reads none of them" in kb("status").err
    # The remedy, step by step.
    git(kept, "rm", "-r", "--quiet", "--cached", ".kb/branches")
    git(kept, "commit", "--quiet", "-m", "no stores")
    assert "yours: `git rm -r --cached .kb/branches`, commit that; then run `kb doctor --adopt .kb/branches`" in said
    assert "main has a store at seq 1, this one is at seq" in kb("doctor", "--adopt", ".kb/branches").err
    assert kb("doctor", "--adopt", ".kb/branches", "--replace").status == 0
    assert facts(stores_at(kept) / "main") == old


def seq_of(store: Path) -> int:
    return json.loads((store / "head.json").read_bytes())["head"]["seq"]


@pytest.mark.parametrize(
    "options",
    [
        ("--salvage", "--new-epoch"),
        ("--salvage", "--rebuild-head"),
        ("--new-epoch", "--rebuild-snapshots"),
        ("--adopt", ".kb/branches", "--new-epoch"),
        ("--adopt", ".kb/branches", "--salvage"),
    ],
)
def test_doctor_carries_out_one_repair_at_a_time(kb, kept, options):
    before = facts(stores_at(kept))
    refused = kb("doctor", *options, "--yes")
    assert refused.status == 2
    assert "Run one after the other" in " ".join(refused.err.split())
    assert facts(stores_at(kept)) == before


def relocated(root: Path) -> bool:
    return (root / ".kb/branches").is_symlink() or (root / ".kb/branches/.lock").is_dir()


def test_doctor_adopts_no_links_and_no_damaged_store_without_the_option(kb, kept):
    saved = beside(kb, kept)
    (kept / ".kb/branches/main/quarantine").symlink_to("/etc")
    refused = kb("doctor", "--adopt", ".kb/branches", "--json")
    assert refused.error["code"] == "invalid_query"
    assert "symbolic link" in refused.error["message"]
    (kept / ".kb/branches/main/quarantine").unlink()
    (kept.parent / "link").symlink_to(saved)
    assert kb("doctor", "--adopt", "../link", "--json").error["code"] == "invalid_query"
    [journal] = (kept / ".kb/branches/main").glob("journal-*.jsonl")
    journal.write_bytes(journal.read_bytes().replace(b"MINE", b"MANE"))
    before = facts(stores_at(kept))
    refused = kb("doctor", "--adopt", ".kb/branches")
    assert refused.status != 0
    assert "does not prove" in refused.err
    assert facts(stores_at(kept)) == before
    taken = kb("doctor", "--adopt", ".kb/branches", "--even-damaged", "--replace")
    assert taken.status == 0, taken
    assert "is damaged" in taken.err
    assert kb("doctor").status != 0


OF_KB = [
    ["status"],
    ["query"],
    ["query", "--id", "MINE"],
    ["check"],
    ["log"],
    ["doctor"],
    ["branch", "list"],
    ["verify"],
    ["watch"],
    ["sync"],
    ["apply", "-"],
    ["gc"],
    ["branch", "ensure", "main"],
    ["branch", "restore", "main"],
    ["compact"],
    ["init", "--no-hooks"],
]


@pytest.fixture
def in_worktree(kb, ready, user, tmp_path):
    """A repository of a user who keeps stores in the worktree, with a record that no document states."""
    settings = tmp_path / "settings/kb/config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"store": "worktree"}')
    user.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    shutil.rmtree(ready / ".git/kb")
    user.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    git(ready, "add", ".")
    git(ready, "commit", "--quiet", "-m", "settings")
    assert kb("apply", "-", stdin=ENTITY).status == 0
    kb("query")
    return ready


@pytest.mark.sliced
def test_nothing_is_made_while_the_stores_of_the_worktree_are_stashed(kb, in_worktree):
    before = facts(in_worktree / ".kb/branches/main")
    git(in_worktree, "stash", "--all", "--quiet")
    for words in OF_KB:
        ran = kb(*words, stdin=MORE)
        assert "The store of main is missing" in ran.out + ran.err, (words, ran)
        assert ran.status == (0 if words in (["status"], ["branch", "list"]) else 45), (words, ran)
        assert not (in_worktree / ".kb/branches").exists(), words
        assert not (in_worktree / ".kb/cache").exists(), words
    git(in_worktree, "switch", "--quiet", "-c", "topic")
    for words in (["query"], ["apply", "-"], ["watch"], ["hook", "post-checkout", "0" * 40, "0" * 40, "1"]):
        ran = kb(*words, stdin=MORE)
        assert "The store of main is missing" in ran.err, (words, ran)
        assert not (in_worktree / ".kb/branches").exists(), words
    assert kb("status", "--json").json["refused_for"] == "main"
    assert "`kb doctor --new-epoch --branch main`" in spelled_out(kb("apply", "-", stdin=MORE).err)
    git(in_worktree, "switch", "--quiet", "main")
    git(in_worktree, "stash", "pop", "--quiet")
    assert facts(in_worktree / ".kb/branches/main") == before
    assert kb("show", "MINE").status == 0
    assert kb("apply", "-", stdin=MORE).status == 0


@pytest.mark.sliced
def test_a_branch_gets_no_empty_store_while_that_of_the_default_branch_is_missing(kb, kept, tmp_path):
    shutil.move(stores_at(kept) / "main", tmp_path / "main")
    git(kept, "switch", "--quiet", "-c", "topic")
    (kept / "docs/requirements").mkdir(parents=True, exist_ok=True)
    (kept / "docs/requirements/new.md").write_text("---\nid: NEW\ntitle: T\nstatus: open\n---\n")
    seen = kb("status")
    assert "No store yet, and none is made while that of main is missing." in seen.out
    assert "kb doctor --new-epoch --branch main" in spelled_out(" ".join(seen.err.split()))
    assert "Next" not in seen.out + seen.err
    assert kb("status", "--json").json["refused_for"] == "main"
    assert kb("sync").status == 45
    (kept / "docs/requirements/new.md").unlink()
    for words in (["query"], ["apply", "-"]):
        ran = kb(*words, stdin=MORE)
        assert ran.status == 45, ran
        assert "The store of main is missing" in ran.err
    assert not (stores_at(kept) / "topic").exists()
    shutil.move(tmp_path / "main", stores_at(kept) / "main")
    assert kb("show", "MINE").status == 0
    assert kb("branch", "ensure").status == 0
    # The other way out, word by word: the loss is accepted, and every branch can be written again.
    shutil.rmtree(stores_at(kept) / "main")
    shutil.rmtree(stores_at(kept) / "topic")
    for _ in range(2):
        refused = kb("apply", "-", stdin=MORE)
        if refused.status:
            remedy = re.findall("`kb (doctor --new-epoch[^`]*)`", spelled_out(refused.err))[0]
            assert kb(*remedy.split(), "--yes").status == 0
    assert kb("apply", "-", stdin=MORE).status == 0
