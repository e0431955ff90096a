"""The ``pre-commit`` hook: a commit takes along what clients wrote, git never fails for it, and what stays is said."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.test_hook import HEAVY, imported_by
from tests.support.processes.cli import environment, path_with_kb, write
from tests.support.repository.repos import add_worktree, git, run_git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def apply(kb, *entities, **options):
    ran = kb("apply", "-", stdin=json.dumps({"entities": list(entities)}), **options)
    assert ran.status == 0, ran


def set_up(mode):
    def grow(root, kb):
        kb("config", "set", "share.mode", mode)
        kb("hooks", "install")
        git(root, "add", "-A")
        git(root, "commit", "-q", "--no-verify", "-m", "settings")
        kb("sync")

    grow.__name__ = f"sharing_{mode}"
    return grow


@pytest.fixture
def auto(grown):
    """A repository in which commits take changes along; all is committed."""
    return grown(set_up("auto"))


@pytest.fixture
def ask(grown):
    return grown(set_up("ask"))


@pytest.fixture
def hooked():
    """The environment in which git runs the hooks with this kb."""
    return environment({"PATH": path_with_kb()})


def stage(root, name="a.txt", content="a"):
    write(root, {name: content})
    git(root, "add", name)


def commit(root, env, *words):
    done = run_git(root, "commit", "-q", "-m", "work", *words, env=env)
    assert done.returncode == 0, done
    return done.stderr


def files_in(root, tree="HEAD"):
    names = git(root, "ls-tree", "-r", "--name-only", tree, ".kb/changes").splitlines()
    return [name for name in names if name.endswith(".jsonl")]


def ids_in(root, tree="HEAD"):
    """Return the ids of the changes that a tree holds."""
    lines = [line for name in files_in(root, tree) for line in git(root, "show", f"{tree}:{name}").splitlines()]
    return {json.loads(line)["change"] for line in lines}


def unshared(kb):
    return [one["seq"] for one in kb("share", "--list", "--json").json["unshared"]]


def is_clean(root):
    return not git(root, "status", "--porcelain", "--untracked-files=all")


def test_a_commit_takes_along_what_clients_wrote(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    said = commit(auto, hooked)
    assert said == "kb: the commit takes along 1 change of tester, in .kb/changes.\n"
    assert len(files_in(auto)) == 1
    assert git(auto, "show", "HEAD:.kb/.gitattributes") == "changes/** -text -filter -merge"
    assert is_clean(auto)
    assert unshared(kb) == []


@pytest.mark.parametrize("state", ["detached", "bisecting"])
def test_a_commit_on_a_detached_head_takes_changes_but_none_while_git_bisects(kb, auto, hooked, state):
    stage(auto)
    git(auto, "commit", "-q", "--no-verify", "-m", "first")
    if state == "bisecting":
        git(auto, "bisect", "start", "HEAD", "HEAD~1")
    git(auto, "checkout", "-q", "--detach")
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto, content="changed")
    commit(auto, hooked)
    assert len(files_in(auto)) == (state == "detached")
    if state == "detached":
        git(auto, "switch", "-q", "main")
        git(auto, "merge", "-q", "HEAD@{1}")
        assert kb("show", "S-1").status == 0


@pytest.mark.parametrize("words", [(), ("--no-verify",)])
def test_changes_that_a_commit_on_a_detached_head_left_behind_are_reported(kb, auto, hooked, words):
    stage(auto)
    git(auto, "commit", "-q", "--no-verify", "-m", "first")
    git(auto, "checkout", "-q", "--detach")
    left = f"detached:{git(auto, 'rev-parse', 'HEAD').strip()}"
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto, content="changed")
    said = commit(auto, hooked, *words)
    line = f"kb: 1 change in the store {left} is not shared: `kb merge {left}` brings it to what is checked out"
    assert (line in said) is bool(words)
    if words:
        assert kb("merge", left).status == 0
        assert len(unshared(kb)) == 1


def test_a_commit_with_nothing_to_share_says_nothing(kb, auto, hooked):
    stage(auto)
    assert commit(auto, hooked) == ""
    assert files_in(auto) == []


ALONE = (
    "kb: 1 change of tester is in .kb/changes. With --allow-empty or --amend the commit takes it along. Else git makes"
    " none, as nothing else is staged: run `kb share`, then `git commit`.\n"
)


@pytest.mark.parametrize("words", [(), ("-a",), ("--", "a.txt")])
def test_where_git_makes_no_commit_the_hook_says_so_and_what_to_type(kb, auto, hooked, words):
    stage(auto)
    git(auto, "commit", "-q", "--no-verify", "-m", "first")
    if not words:
        write(auto, {"new.txt": "new"})
        git(auto, "add", "-N", "new.txt")
    apply(kb, {"id": "S-1", **SYMBOL})
    done = run_git(auto, "commit", "-q", "-m", "work", *words, env=hooked)
    assert (done.returncode, files_in(auto)) == (1, [])
    assert done.stderr == ALONE
    assert kb("share").status == 0
    assert "takes along 1 change" in commit(auto, hooked)
    assert (len(files_in(auto)), unshared(kb)) == (1, [])


@pytest.mark.parametrize("words", [("--allow-empty",), ("--amend",)])
def test_the_options_that_the_hook_names_commit_changes_and_nothing_else(kb, auto, hooked, words):
    stage(auto)
    git(auto, "commit", "-q", "--no-verify", "-m", "first")
    apply(kb, {"id": "S-1", **SYMBOL})
    assert commit(auto, hooked, *words) == ALONE
    assert (len(files_in(auto)), unshared(kb)) == (1, [])


def test_before_the_first_commit_an_empty_index_makes_no_commit(kb, auto, hooked):
    git(auto, "switch", "-q", "--orphan", "fresh")
    git(auto, "restore", "--source=main", "--worktree", "--", ".kb")
    apply(kb, {"id": "S-1", **SYMBOL})
    done = run_git(auto, "commit", "-q", "-m", "work", env=hooked)
    assert (done.returncode, done.stderr) == (1, ALONE)
    assert "takes along 1 change" in commit(auto, hooked)


@pytest.mark.parametrize("words", [("-a",), ("--amend",), ("-a", "--amend"), ("--allow-empty",)])
def test_each_way_to_commit_takes_changes_and_leaves_a_clean_tree(kb, auto, hooked, words):
    stage(auto)
    git(auto, "commit", "-q", "--no-verify", "-m", "first")
    apply(kb, {"id": "S-1", **SYMBOL})
    if "--allow-empty" not in words:
        write(auto, {"a.txt": "changed"})
    if words == ("--amend",):
        git(auto, "add", "a.txt")
    commit(auto, hooked, *words)
    assert (len(files_in(auto)), is_clean(auto), unshared(kb)) == (1, True, [])


def test_a_commit_in_a_sparse_checkout_without_kb_takes_changes_along(kb, auto, hooked):
    write(auto, {"src/a.txt": "a"})
    git(auto, "add", "src")
    commit(auto, hooked)
    git(auto, "sparse-checkout", "set", "src")
    shutil.rmtree(auto / ".kb", ignore_errors=True)
    apply(kb, {"id": "S-1", **SYMBOL})
    write(auto, {"src/a.txt": "b"})
    said = commit(auto, hooked, "-a")
    assert "the commit takes along 1 change" in said
    assert (len(files_in(auto)), unshared(kb)) == (1, [])


def test_a_commit_of_named_paths_leaves_the_change_files_in_the_index_too(kb, auto, hooked):
    stage(auto, "a.txt")
    stage(auto, "b.txt")
    apply(kb, {"id": "S-1", **SYMBOL})
    commit(auto, hooked, "--", "b.txt")
    assert len(files_in(auto)) == 1
    assert git(auto, "status", "--porcelain", "--untracked-files=all") == "A  a.txt"
    commit(auto, hooked)
    assert len(files_in(auto)) == 1, "the next commit keeps it"


@pytest.mark.parametrize("name", ["index", "other"])
def test_a_commit_from_an_index_of_the_caller_leaves_the_change_files_in_that_of_the_worktree(
    kb, auto, hooked, tmp_path, name
):
    stage(auto, "a.txt")
    commit(auto, hooked)
    own = tmp_path / name
    shutil.copy(auto / ".git" / "index", own)
    apply(kb, {"id": "S-1", **SYMBOL})
    commit(auto, hooked | {"GIT_INDEX_FILE": str(own)}, "--allow-empty")
    assert len(files_in(auto)) == 1
    assert is_clean(auto)
    commit(auto, hooked, "--allow-empty")
    assert len(files_in(auto)) == 1, "the next commit keeps it"


@pytest.mark.parametrize("words", [("--mixed",), ("--soft",)])
def test_a_commit_after_a_reset_takes_along_the_file_that_the_reset_left(kb, auto, hooked, words):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    commit(auto, hooked)
    git(auto, "reset", "-q", *words, "HEAD~1")
    git(auto, "reset", "-q")
    assert unshared(kb) == [2]
    assert "1 change is not shared (1 of tester)" in kb("status").out
    git(auto, "add", "a.txt")
    assert commit(auto, hooked) == "kb: the commit takes along 1 change of tester, in .kb/changes.\n"
    assert (len(files_in(auto)), is_clean(auto), unshared(kb)) == (1, True, [])


def test_a_commit_of_named_paths_after_a_reset_leaves_the_change_files_in_the_index_too(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    commit(auto, hooked)
    git(auto, "reset", "-q", "HEAD~1")
    stage(auto)
    commit(auto, hooked, "--", "a.txt")
    assert len(files_in(auto)) == 1
    assert is_clean(auto)


def test_a_commit_of_named_paths_leaves_a_staged_removal_of_a_change_file(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    commit(auto, hooked)
    [path] = files_in(auto)
    git(auto, "rm", "-q", "--cached", path)
    stage(auto, "b.txt")
    commit(auto, hooked, "--", "b.txt")
    assert f"D  {path}" in git(auto, "status", "--porcelain", "--untracked-files=all").splitlines()


@pytest.mark.parametrize("is_added", [False, True])
def test_an_amended_commit_of_named_paths_leaves_a_staged_removal_of_its_own_change_file(kb, auto, hooked, is_added):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    commit(auto, hooked)
    [name] = files_in(auto)
    git(auto, "rm", "-q", "--cached", name)
    if is_added:
        apply(kb, {"id": "S-2", **SYMBOL})
    write(auto, {"a.txt": "other"})
    done = run_git(auto, "commit", "-q", "--amend", "-m", "again", "--", "a.txt", env=hooked)
    assert done.returncode == 0, done.stderr
    assert git(auto, "diff", "--cached", "--name-status").split() == ["D", name]
    assert len(files_in(auto)) == 1 + is_added, "the file is in the commit, and what was written since with it"


def test_a_commit_that_was_given_up_shares_with_the_next_one(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    failed = run_git(auto, "commit", "-m", "", env=hooked)
    assert failed.returncode != 0
    assert unshared(kb) == [2]
    said = commit(auto, hooked)
    assert said == "kb: the commit takes along 1 change of tester, in .kb/changes.\n"
    assert (len(files_in(auto)), is_clean(auto), unshared(kb)) == (1, True, [])


def test_without_the_hook_the_change_stays_unshared_and_that_is_said(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    stage(auto)
    assert commit(auto, hooked, "--no-verify") == "kb: 1 change is not shared: `kb share` writes it.\n"
    assert files_in(auto) == []
    assert unshared(kb) == [2]


def test_a_change_in_a_commit_that_no_sync_has_noted_is_not_written_again(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    kb("share")
    git(auto, "-c", "core.hooksPath=/dev/null", "commit", "-q", "-m", "shared")
    apply(kb, {"id": "S-2", **SYMBOL})
    stage(auto)
    assert "takes along 1 change of" in commit(auto, hooked)
    first, second = files_in(auto)
    assert not ids_in(auto, "HEAD~1") & (ids_in(auto) - ids_in(auto, "HEAD~1"))
    assert len([line for line in git(auto, "show", f"HEAD:{second}").splitlines() if '"kb":1' in line]) == 1, first


def test_a_change_that_no_file_may_hold_is_named_and_the_commit_succeeds(kb, auto, hooked):
    apply(kb, {"id": "S-1", **SYMBOL}, {"id": "S-2", **SYMBOL, "owner": SECRET})
    apply(kb, {"id": "S-3", **SYMBOL})
    stage(auto)
    said = commit(auto, hooked).splitlines()
    assert said[0] == "kb: the commit takes along 1 change of tester, in .kb/changes."
    assert said[1].startswith("kb: Record 2 by tester is not shared: ")
    assert SECRET not in "".join(said)
    assert SECRET not in git(auto, "show", "HEAD")


def test_with_ask_nothing_is_written_and_the_number_is_said(kb, ask, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    apply(kb, {"id": "S-2", **SYMBOL})
    stage(ask)
    assert commit(ask, hooked) == "kb: 2 changes are not shared: `kb share` writes them.\n"
    assert files_in(ask) == []


def test_with_off_nothing_is_written_and_nothing_is_said(kb, auto, hooked):
    kb("config", "set", "share.mode", "off")
    apply(kb, {"id": "S-1", **SYMBOL})
    git(auto, "add", "-A")
    assert commit(auto, hooked) == ""
    assert not (auto / ".kb/changes").exists()


def test_a_commit_of_a_merge_takes_changes_and_that_of_a_pick_a_revert_or_a_rebase_does_not(kb, auto, hooked):
    stage(auto, "a.txt", "main")
    git(auto, "commit", "-q", "--no-verify", "-m", "main")
    git(auto, "branch", "other", "HEAD~1")
    for how, words in (
        ("cherry-pick", ("cherry-pick", "other")),
        ("revert", ("revert", "--no-edit", "HEAD~1")),
        ("rebase", ("rebase", "other")),
        ("merge", ("merge", "other")),
    ):
        git(auto, "switch", "-q", "-f", "-C", "work", "main")
        kb("branch", "ensure")
        apply(kb, {"id": f"S-{how}", **SYMBOL})
        if how == "revert":
            stage(auto, "a.txt", "later")
            git(auto, "commit", "-q", "--no-verify", "-m", "later")
        else:
            git(auto, "worktree", "add", "-q", "-f", "../other", "other")
            stage(auto.parent / "other", "a.txt", how)
            git(auto.parent / "other", "commit", "-q", "--no-verify", "-m", how)
            git(auto, "worktree", "remove", "--force", "../other")
        assert run_git(auto, *words).returncode != 0, how
        stage(auto, "a.txt", f"resolved {how}")
        done = run_git(auto, "commit", "-q", "-m", how, env=hooked)
        assert done.returncode == 0, done
        assert ("takes along" in done.stderr) == (how == "merge"), (how, done.stderr)
        git(auto, "rebase", "--quit") if how == "rebase" else None


def test_two_worktrees_commit_at_once_and_each_shares_its_own(kb, auto, hooked, tmp_path):
    linked = add_worktree(auto, tmp_path / "linked", "linked")
    kb("branch", "ensure", cwd=linked)
    apply(kb, {"id": "S-1", **SYMBOL})
    apply(kb, {"id": "S-2", **SYMBOL}, cwd=linked)
    for root in (auto, linked):
        stage(root)
    words = ["git", "commit", "-q", "-m", "work"]
    running = [
        subprocess.Popen(words, cwd=root, env=hooked, stderr=subprocess.PIPE, text=True) for root in (auto, linked)
    ]
    assert [one.communicate()[1].count("takes along 1 change") for one in running] == [1, 1]
    assert [one.returncode for one in running] == [0, 0]
    assert [len(files_in(root)) for root in (auto, linked)] == [1, 1]
    assert not ids_in(auto) & ids_in(linked)
    assert (is_clean(auto), is_clean(linked)) == (True, True)


def test_the_hook_imports_no_duckdb_to_share_and_nothing_where_nothing_is_shared(kb, auto):
    apply(kb, {"id": "S-1", **SYMBOL})
    found, written = imported_by(["hook", "pre-commit"], auto, (*HEAVY, "kbcore.sync.scan"))
    assert (found, "1 change of tester is in .kb/changes" in written) == ([], True)
    kb("config", "set", "share.mode", "off")
    assert imported_by(["hook", "pre-commit"], auto, (*HEAVY, "kbcore", "msgspec")) == ([], "")


def test_types_that_no_change_states_are_asked_for(kb, auto):
    apply(kb, {"id": "S-1", **SYMBOL})
    apply(kb, {"id": "S-1", "owner": "ann"})
    kb("config", "set", "share.types", '["symbol"]')
    assert "2 changes of tester are in .kb/changes" in kb("hook", "pre-commit").err
    kb("config", "set", "share.types", '["req"]')
    git(auto, "rm", "-q", "--cached", "-r", ".kb/changes")
    subprocess.run(["rm", "-r", ".kb/changes"], cwd=auto, check=True)
    assert kb("hook", "pre-commit") == (0, "", "")


@pytest.mark.sliced
def test_a_hook_that_is_killed_leaves_whole_files_or_none(kb, auto, hooked):
    for number in range(20):
        apply(kb, {"id": f"S-{number}", **SYMBOL})
    stage(auto)
    program = [sys.executable, "-m", "kbcli.app", "hook", "pre-commit"]
    started = time.monotonic()
    subprocess.run(program, cwd=auto, env=hooked, check=True, capture_output=True)
    whole_s = time.monotonic() - started
    for turn in range(8):
        git(auto, "reset", "-q")
        subprocess.run(["rm", "-rf", ".kb/changes"], cwd=auto, check=True)
        git(auto, "add", "a.txt")
        process = subprocess.Popen(program, cwd=auto, env=hooked, stderr=subprocess.DEVNULL)
        time.sleep(whole_s * (turn + 1) / 8)
        process.send_signal(signal.SIGKILL)
        process.wait()
        (auto / ".git/index.lock").unlink(missing_ok=True)  # of the git that was killed with it
        listed = kb("share", "--list", "--json").json
        assert len(listed["unshared"]) == 20
        assert {len(path.read_bytes().splitlines()) > 1 for path in (auto / ".kb/changes").rglob("*.jsonl")} <= {True}
    assert "takes along 20 changes" in commit(auto, hooked)
    assert len(ids_in(auto)) == 20


def test_a_redacted_change_that_moves_into_a_pack_is_none_that_the_commit_takes_along(kb, auto, hooked):
    symbol = {"type": "symbol", "title": "One", "status": "active"}
    apply(kb, {"id": "S-1", **symbol, "owner": "Karl"})
    stage(auto)
    commit(auto, hooked)
    kb("sync")
    assert "pack-" in kb("redact", "S-1", "--field", "owner", "--yes").out
    apply(kb, {"id": "S-2", **symbol})
    assert commit(auto, hooked) == "kb: the commit takes along 1 change of tester, in .kb/changes.\n"
    assert len(files_in(auto)) == 2
    assert unshared(kb) == []
