"""The note between two hooks: what ends a hook at once, what does not, and the record of committed change files."""

from __future__ import annotations

import json

import pytest

from kbcli.invocation import hook_note
from tests.cli.test_hook import HEAVY, imported_by
from tests.cli.test_share_hook import SYMBOL, apply, commit, ids_in, set_up, stage, unshared
from tests.support.crowd.crowd import until
from tests.support.processes.cli import LOGIN, environment, path_with_kb, write
from tests.support.repository.places import stores_at
from tests.support.repository.repos import add_worktree, commit_files, git

LITTLE = (*HEAVY, "msgspec", "subprocess", "kbcore", "pathlib")


@pytest.fixture
def hooked():
    """The environment in which git runs the hooks with this kb."""
    return environment({"PATH": path_with_kb()})


@pytest.fixture
def noted(kb, grown):
    """A repository that shares by itself, in which the last hook left nothing to do."""
    return with_note(kb, grown, "auto")


def with_note(kb, grown, mode):
    root = grown(set_up(mode))
    kb("hook", "post-commit")
    assert note_of(root).commit == git(root, "rev-parse", "HEAD").strip()
    return root


def note_of(root):
    return hook_note.read(str(root / ".git"))


def commit_without_hooks(root, *words):
    git(root, "-c", "core.hooksPath=/dev/null", "commit", "-q", "--allow-empty", "-m", "work", *words)


def records(root, branch="main"):
    [journal] = (stores_at(root) / branch).glob("journal-*.jsonl")
    return [json.loads(line)["rec"] for line in journal.read_text(encoding="utf-8").splitlines()]


def until_recorded(root):
    until(lambda: (note := note_of(root)) is not None and not note.pending)


@pytest.mark.parametrize("mode", ["auto", "ask", "off"])
def test_a_commit_that_concerns_no_document_and_no_change_imports_nothing(kb, grown, mode):
    root = with_note(kb, grown, mode)
    for name in ("a.txt", "b.py"):
        write(root, {name: "a"})
        git(root, "add", name)
        assert imported_by(["hook", "pre-commit"], root, LITTLE) == ([], "")
        commit_without_hooks(root)
        assert imported_by(["hook", "post-commit"], root, LITTLE) == ([], "")
        assert note_of(root).commit == git(root, "rev-parse", "HEAD").strip()


def test_what_a_client_wrote_is_nothing_to_a_commit_where_nothing_is_shared(kb, grown):
    root = with_note(kb, grown, "off")
    apply(kb, {"id": "S-1", **SYMBOL})
    commit_without_hooks(root)
    assert imported_by(["hook", "post-commit"], root, LITTLE) == ([], "")


def test_an_amended_commit_is_looked_at_once(kb, noted, user):
    user.chdir(noted)
    stage(noted)
    commit_without_hooks(noted, "--amend")
    assert hook_note.due("post-commit", {}) == hook_note.WORK
    assert kb("hook", "post-commit").status == 0
    assert imported_by(["hook", "post-rewrite", "amend"], noted, LITTLE) == ([], "")


def test_a_document_in_a_commit_is_read(kb, noted):
    write(noted, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    git(noted, "add", "docs")
    commit_without_hooks(noted)
    assert "1 created" in kb("hook", "post-commit").err
    git(noted, "rm", "-q", "docs/requirements/new.md")
    commit_without_hooks(noted)
    assert "1 deleted" in kb("hook", "post-commit").err


@pytest.mark.parametrize("name", ["new.markdown", "NEW.MD"])
def test_a_document_whose_name_ends_in_another_way_is_read(kb, noted, user, name):
    user.chdir(noted)
    write(noted, {f"docs/requirements/{name}": LOGIN.replace("REQ-1", "REQ-9")})
    git(noted, "add", "docs")
    commit_without_hooks(noted)
    assert hook_note.due("post-commit", {}) == hook_note.WORK
    assert "1 created" in kb("hook", "post-commit").err


def test_a_glob_that_means_every_name_leaves_no_note(kb, noted):
    path = noted / ".kb/config.json"
    settings = json.loads(path.read_text())
    settings["extractors"]["gherkin"] = {"paths": ["features/**"]}
    path.write_text(json.dumps(settings))
    assert kb("hook", "post-commit").status == 0
    assert note_of(noted) is None


def test_a_document_that_is_a_link_leaves_no_note(kb, noted):
    write(noted, {"real/x.txt": LOGIN.replace("REQ-1", "REQ-8")})
    (noted / "docs/requirements/l.md").symlink_to("../../real/x.txt")
    git(noted, "add", "-A")
    commit_without_hooks(noted)
    assert kb("hook", "post-commit").status == 0
    assert note_of(noted) is None


def test_a_commit_that_no_hook_looked_at_is_looked_at_by_the_next_one(kb, noted, hooked):
    write(noted, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    git(noted, "add", "docs")
    commit_without_hooks(noted)
    apply(kb, {"id": "S-1", **SYMBOL})
    commit(noted, hooked, "--allow-empty")
    until(lambda: any(op.get("id") == "REQ-9" for one in records(noted) for op in one["ops"]))


def other_packages(root):
    note = note_of(root)
    note.packages += " "
    hook_note.write(str(root / ".git"), note)
    commit_without_hooks(root)


def merged(root):
    git(root, "switch", "-q", "-c", "topic")
    commit_files(root, {"b.txt": "b"})
    git(root, "switch", "-q", "main")
    git(root, "-c", "core.hooksPath=/dev/null", "merge", "-q", "--no-ff", "-m", "merged", "topic")


def two_commits(root):
    commit_without_hooks(root)
    commit_without_hooks(root)


def other_settings(root):
    commit_without_hooks(root)
    path = root / ".kb/config.json"
    path.write_text(path.read_text().replace("docs/requirements", "docs/needs"))


def committed_settings(root):
    write(root, {".kb/rules/a.yaml": "rules: []\n"})
    git(root, "add", ".kb")
    commit_without_hooks(root)


def damaged_note(root):
    commit_without_hooks(root)
    path = root / ".git" / hook_note.NAME
    path.write_text(path.read_text()[:-20])


def other_branch(root):
    git(root, "-c", "core.hooksPath=/dev/null", "switch", "-q", "-c", "other")
    commit_without_hooks(root)


def detached(root):
    git(root, "-c", "core.hooksPath=/dev/null", "switch", "-q", "--detach")
    commit_without_hooks(root)


def change_file_of_others(root):
    write(root, {".kb/changes/2026-11/a.jsonl": "{}\n"})
    git(root, "add", "-f", ".kb")
    commit_without_hooks(root)


@pytest.mark.parametrize(
    "happens",
    [
        merged,
        two_commits,
        other_settings,
        committed_settings,
        damaged_note,
        other_packages,
        other_branch,
        detached,
        change_file_of_others,
    ],
)
def test_what_the_note_does_not_speak_of_is_work(noted, user, happens):
    user.chdir(noted)
    happens(noted)
    assert hook_note.due("post-commit", {}) == hook_note.WORK


@pytest.mark.parametrize("path", [".kb/changes/2026-11/b.jsonl", ".kb/config.json"])
def test_files_that_say_what_to_share_make_work_before_a_commit(noted, user, path):
    user.chdir(noted)
    assert hook_note.due("pre-commit", {}) == hook_note.NOTHING
    (noted / path).parent.mkdir(parents=True, exist_ok=True)
    with (noted / path).open("a") as file:
        file.write("\n")
    assert hook_note.due("pre-commit", {}) == hook_note.WORK


def test_a_commit_records_its_change_files_after_it_has_ended(kb, noted, hooked):
    for number in (1, 2):
        apply(kb, {"id": f"S-{number}", **SYMBOL})
        stage(noted, content=str(number))
        assert commit(noted, hooked) == "kb: the commit takes along 1 change of tester, in .kb/changes.\n"
        until_recorded(noted)
    found = records(noted)[-1]
    assert [one["op"] for one in found["ops"]] == ["source", "take"]
    assert found["commit"] == git(noted, "rev-parse", "HEAD").strip()
    number = len(records(noted))
    assert kb("sync").status == 0
    assert (len(records(noted)), unshared(kb)) == (number, [])
    assert kb("verify").status == 0
    assert imported_by(["hook", "pre-commit"], noted, LITTLE) == ([], "")


def test_what_a_document_covered_holds_again_with_the_first_change_file(kb, noted, hooked):
    document = "docs/requirements/new.md"
    apply(kb, {"id": "REQ-9", "type": "req", "status": "open", "title": "Of a client", "owner": "ann"})
    for content in (LOGIN.replace("REQ-1", "REQ-9"), None):
        write(noted, {document: content}) if content else (noted / document).unlink()
        kb("sync")
    assert kb("show", "REQ-9").status != 0
    stage(noted)
    assert "takes along 1 change" in commit(noted, hooked)
    shown = kb("show", "REQ-9", "--json")
    assert shown.status == 0
    assert shown.json["entity"]["owner"] == "ann"


def test_a_linked_worktree_has_a_note_of_its_own(kb, noted, hooked, tmp_path):
    linked = add_worktree(noted, tmp_path / "linked", "linked")
    kb("branch", "ensure", cwd=linked)
    commit(linked, hooked, "--allow-empty")
    apply(kb, {"id": "S-1", **SYMBOL}, cwd=linked)
    assert "1 change of tester" in commit(linked, hooked, "--allow-empty")
    own = noted / ".git/worktrees/linked"
    until(lambda: not hook_note.read(str(own)).pending)
    assert len(records(noted, "linked")[-1]["ops"]) == 2
    assert len(ids_in(linked)) == 1
    assert note_of(noted).branch == "refs/heads/main"


def test_a_record_that_was_not_made_is_made_by_the_next_sync(kb, noted, hooked, user):
    apply(kb, {"id": "S-1", **SYMBOL})
    kb("hook", "pre-commit")
    commit_without_hooks(noted)
    user.chdir(noted)
    assert hook_note.due("post-commit", {}) == hook_note.RECORD  # and the process ends here
    assert (unshared(kb), len(records(noted))) == ([], 2)
    kb("sync")
    assert [one["op"] for one in records(noted)[-1]["ops"]] == ["source", "take"]
    assert kb("hook", "post-commit").status == 0
    apply(kb, {"id": "S-2", **SYMBOL})
    stage(noted)
    assert "takes along 1 change" in commit(noted, hooked)


def test_a_record_that_was_not_made_is_made_by_the_next_commit(kb, noted, hooked, user):
    apply(kb, {"id": "S-1", **SYMBOL})
    kb("hook", "pre-commit")
    commit_without_hooks(noted)
    user.chdir(noted)
    assert hook_note.due("post-commit", {}) == hook_note.RECORD
    commit(noted, hooked, "--allow-empty")
    until_recorded(noted)
    assert [one["op"] for one in records(noted)[-1]["ops"]] == ["source", "take"]


def test_a_commit_that_is_taken_back_at_once_had_the_changes(kb, noted, hooked):
    apply(kb, {"id": "S-1", **SYMBOL})
    commit(noted, hooked, "--allow-empty")
    git(noted, "-c", "core.hooksPath=/dev/null", "reset", "-q", "--hard", "HEAD~1")
    until_recorded(noted)
    kb("sync")
    assert [one["seq"] for one in kb("share", "--list", "--json").json["withdrawn"]] == [2]
    assert unshared(kb) == []
