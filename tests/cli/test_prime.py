"""``kb prime``: what it says within its budget, what it says again without a database, and the form for hooks."""

from __future__ import annotations

import json
import os
import time

import pytest

from kbcli.invocation import prime_note
from kbcore.limits import HOOK_TOKENS, MIN_PRIME_TOKENS, PRIME_TOKENS
from kbcore.text.tokens import tokens_of
from tests.cli.test_hook import HEAVY, imported_by
from tests.support.processes.cli import environment, write
from tests.support.repository.repos import git

LITTLE = (*HEAVY, "msgspec", "typer", "subprocess", "kbcore", "pathlib", "mcp")
LOGIN_FILE = "docs/requirements/login.md"
TASKS = [{"id": f"TASK-{at}", "type": "task", "title": f"Do {at}", "status": "open"} for at in range(40)]


def settle():
    """Wait until what was written is old enough for an answer about it to be kept."""
    time.sleep(2 * prime_note._SETTLED_NS / 1e9)


def apply(kb, *entities, edges=(), actor="bot"):
    os.environ["KB_ACTOR"] = actor
    assert kb("apply", "-", stdin=json.dumps({"entities": entities, "edges": edges})).status == 0
    os.environ["KB_ACTOR"] = "tester"


def kept(root):
    folder = root / ".git" / prime_note.NAME
    return sorted(folder.iterdir()) if folder.exists() else []


def test_it_says_branch_changes_tasks_and_how_to_write(kb, synced):
    apply(kb, {"id": "TASK-1", "type": "task", "title": "Write the page", "status": "open"})
    apply(kb, {"id": "TASK-2", "type": "task", "title": "Old work", "status": "Done"})
    apply(kb, {"id": "REQ-9", "type": "req", "title": "Stay logged in", "status": "agreed"})
    out = kb("prime").out
    assert out.startswith("Branch main at seq 4.\nSince your last session (seq 1, ")
    assert "): 3 records by bot.\n" in out
    assert "Open tasks:\n- Write the page (TASK-1 task open; bot cli " in out
    assert "Changed since:\n" in out
    assert "- Stay logged in (REQ-9 req agreed; created; bot cli " in out
    assert out.splitlines()[-1].startswith("To record a fact: edit its document, then `kb sync`")


def test_only_what_review_lists_has_the_mark_of_a_proposal(kb, synced):
    apply(kb, {"id": "A-2", "type": "adr", "title": "A draft", "status": "draft"}, edges=[{**A_1, "from": "A-2"}])
    assert "nothing is proposed" in kb("review").out
    out = kb("prime", "--for", LOGIN_FILE).out
    assert "- A draft (A-2 adr draft; " in out
    assert "[proposed]" not in out


def test_the_records_of_the_running_session_are_not_those_of_the_last_one(kb, synced, user):
    user.setenv("KB_SESSION", "now")
    apply(kb, {"id": "REQ-9", "type": "req", "title": "Stay logged in", "status": "agreed"}, actor="tester")
    assert "(seq 1, " in kb("prime").out
    user.delenv("KB_SESSION")
    assert "Since your last session" not in kb("prime").out


def test_it_says_what_binds_a_file_and_what_is_not_recorded(kb, synced):
    write(synced, {LOGIN_FILE: (synced / LOGIN_FILE).read_text().replace("Log in", "Sign in")})
    out = kb("prime", "--for", LOGIN_FILE).out
    assert "Branch main at seq 1, with 1 file that a sync would record." in out
    assert "Facts that bind:\n- Sign in (REQ-1 req open; docs/requirements/login.md " in out
    assert "- Login works (TEST-1 test active; verified_by; " in out
    found = kb("prime", "--for", "login.md", "--json", cwd=synced / "docs/requirements").json
    assert [one["id"] for one in found["facts"]] == ["REQ-1", "REQ-2", "TEST-1"]
    assert (found["freshness"], found["pending_files"]) == ("overlay", 1)


def test_it_says_what_binds_the_uncommitted_changes(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "all")
    assert kb("prime", "--diff", "--json").json["facts"] == []
    (synced / LOGIN_FILE).unlink()
    facts = kb("prime", "--diff", "--json").json["facts"]
    assert {one["id"]: one["tie"] for one in facts} == {
        "REQ-1": "deleted",
        "REQ-2": "^depends_on",
        "TEST-1": "verified_by",
    }


def test_what_is_unknown_is_answered_with_the_nearest(kb, synced):
    assert "Nothing is known of docs/login.md. Did you mean 'docs/requirements/login.md'" in (
        kb("prime", "--for", "docs/login.md").out
    )
    below = kb("prime", "--for", "../requirements", cwd=synced / "docs/tests").out
    assert "Nothing is known of ../requirements. Did you mean 'docs/requirements/login.md'" in below


@pytest.mark.parametrize("budget", [MIN_PRIME_TOKENS, 333, PRIME_TOKENS, 4000])
def test_it_is_never_above_its_budget_and_counts_what_is_left_out(kb, synced, budget):
    apply(kb, *TASKS)
    text = kb("prime", "--budget", budget, "--for", LOGIN_FILE).out
    assert tokens_of(text) <= budget
    whole = kb("prime", "--budget", budget, "--for", LOGIN_FILE, "--json")
    assert tokens_of(whole.out) <= budget
    assert len(whole.json["tasks"]) + whole.json["omitted"].get("open task", 0) == len(TASKS)
    assert ("Left out: " in text) == (budget < PRIME_TOKENS)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "1"], "--budget is 1."),
        (["--budget", "5000"], "--budget is 5000."),
        (["--for", ""], "error: --for is empty.\nhint: "),
        (["--hook", "--budget", "900"], "--budget is 900."),
    ],
)
def test_wrong_options_are_refused_with_what_is_allowed(kb, synced, words, said):
    ran = kb("prime", *words)
    assert said in ran.err
    assert "hint:" in ran.err
    assert bool(ran.status) == ("--hook" not in words)


@pytest.mark.parametrize("words", [["prime"], ["prime", "--for", LOGIN_FILE, "--hook"], ["prime", "--json", "--diff"]])
def test_the_same_call_again_imports_neither_a_database_nor_anything_else(kb, synced, words):
    settle()
    imported, first = imported_by(words, synced, LITTLE)
    assert "duckdb" in imported
    assert len(kept(synced)) == 1
    assert imported_by(words, synced, LITTLE) == ([], first)


@pytest.mark.parametrize(
    "words", [["--for", LOGIN_FILE, "--diff"], ["--for", LOGIN_FILE, "--hook"], ["--for", f"{LOGIN_FILE}:6", "--hook"]]
)
@pytest.mark.parametrize("change", ["document", "record", "setting", "damage"])
def test_a_kept_answer_is_not_given_once_anything_has_changed(kb, synced, words, change):
    words = ["prime", *words]
    settle()
    before = kb(*words).out
    assert "Log in" in before
    [note] = kept(synced)
    if change == "document":
        write(synced, {LOGIN_FILE: (synced / LOGIN_FILE).read_text().replace("Log in", "Sign in")})
    elif change == "record":
        apply(kb, {"id": "A-1", "type": "adr", "title": "Sign in once", "status": "accepted"}, edges=[A_1])
    elif change == "setting":
        write(synced, {".kb/schema/more.yaml": "entities: {risk: {description: Sign in}}\n"})
    else:
        note.write_bytes(note.read_bytes()[:-9])
    assert prime_note.kept(words, os.environ) is None
    assert ("Sign in" in kb(*words).out) == (change in {"document", "record"})


A_1 = {"type": "relates_to", "kind": "limits", "from": "A-1", "to": "REQ-1"}


OTHERS = [
    {"id": "A-7", "type": "adr", "title": "Another", "status": "accepted"},
    {"id": "A-8", "type": "adr", "title": "Old", "status": "superseded"},
]
LIMITS = [{**A_1, "from": "A-8"}]


def started(kb, synced):
    """Keep the answer of a hook for a file that names a test which is not there, with a decision out of service."""
    text = (synced / LOGIN_FILE).read_text()
    write(synced, {LOGIN_FILE: text.replace("---\n", "---\nlinks: [{verified_by: TEST-9}]\n", 1)})
    assert kb("sync").status == 0
    apply(kb, *OTHERS, edges=LIMITS)
    settle()
    words = ["prime", "--for", LOGIN_FILE, "--hook"]
    before = kb(*words).out
    assert "Login works" in before
    assert prime_note.kept(words, os.environ) == before
    return words, before


@pytest.mark.parametrize(
    "changes",
    [
        [{"id": "A-7", "title": "Another one"}],
        [{"type": "note", "title": "Late scans come at night"}, {"type": "task", "title": "Ask"}],
        [{"id": "REQ-7", "type": "req", "title": "Log out", "status": "open"}],
    ],
    ids=["changed", "remembered", "created"],
)
def test_records_about_other_things_leave_the_kept_answer_of_a_hook(kb, synced, changes):
    words, before = started(kb, synced)
    for _ in range(2):
        apply(kb, *changes)
        assert prime_note.kept(words, os.environ) == before
        [note] = kept(synced)
        note.rename(synced / "aside")
        assert kb(*words).out == before
        (synced / "aside").replace(note)


@pytest.mark.parametrize(
    ("entities", "edges"),
    [
        ([], [{**A_1, "from": "A-7"}]),
        ([{"id": "A-8", "status": "accepted"}], []),
        ([{"id": "TEST-9", "type": "test", "title": "A second test", "status": "active"}], []),
        ([{"type": "note", "title": "Slow at night", "attributes": {"file": LOGIN_FILE}}], []),
        ([{"id": "SCN-9", "type": "scenario", "title": "At night", "status": "active"}],
         [{"type": "specified_by", "from": "REQ-1", "to": "SCN-9"}]),
    ],
    ids=["edge", "in service again", "end of a link", "note of the file", "new and tied"],
)  # fmt: skip
def test_a_record_about_something_in_the_kept_answer_of_a_hook_takes_its_place(kb, synced, entities, edges):
    words, before = started(kb, synced)
    apply(kb, *entities, edges=edges)
    assert prime_note.kept(words, os.environ) is None
    assert kb(*words).out != before


def test_a_store_that_was_rewritten_gives_no_kept_answer(kb, synced):
    words, _ = started(kb, synced)
    assert kb("compact").status == 0
    assert prime_note.kept(words, os.environ) is None


def test_a_new_file_in_any_folder_that_is_read_is_seen(kb, synced):
    settle()
    kb("prime", "--diff")
    write(synced, {"docs/requirements/deep/er/new.md": "---\nid: REQ-7\ntitle: New\nstatus: open\n---\n"})
    assert "- New (REQ-7 req open; new; " in kb("prime", "--diff").out


def test_anybody_may_delete_what_is_kept_and_what_is_changed_just_now_is_not_kept(kb, synced):
    settle()
    write(synced, {LOGIN_FILE: (synced / LOGIN_FILE).read_text() + "\nMore.\n"})
    os.utime(synced / LOGIN_FILE, ns=(time.time_ns() + 10**10,) * 2)
    first = kb("prime")
    assert kept(synced) == []
    os.utime(synced / LOGIN_FILE)
    settle()
    assert kb("prime") == first
    [note] = kept(synced)
    note.unlink()
    assert kb("prime") == first


def test_what_is_kept_has_no_value_of_the_environment(kb, synced, user):
    user.setenv("KB_TOKEN_OF_ANYBODY", "s3cr3t-value")
    settle()
    kb("prime")
    [note] = kept(synced)
    assert b"s3cr3t" not in note.read_bytes()


def test_a_hook_says_only_accepted_and_fresh_facts_in_at_most_150_tokens(kb, synced):
    facts = [
        {"id": "A-1", "type": "adr", "title": "Accepted one", "status": "accepted"},
        {"id": "A-2", "type": "adr", "title": "Proposed one", "status": "proposed"},
        {"id": "A-3", "type": "adr", "title": "Superseded one", "status": "superseded"},
        *({"id": f"B-{at}", "type": "adr", "title": "Long " * 30, "status": "accepted"} for at in range(9)),
    ]
    apply(kb, *facts, edges=[{**A_1, "from": one["id"]} for one in facts])
    ran = kb("prime", "--for", LOGIN_FILE, "--hook")
    assert (ran.status, ran.err) == (0, "")
    assert tokens_of(ran.out) <= HOOK_TOKENS == 150
    assert ran.out.startswith("Recorded facts that bind this:\n- ")
    assert "Proposed" not in ran.out
    assert "Superseded" not in ran.out
    assert "Left out: " in ran.out


@pytest.mark.parametrize("words", [["--for", "nothing.py"], [], ["--diff"]])
def test_a_hook_says_nothing_where_there_is_nothing_to_say(kb, synced, words):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "all")
    assert kb("prime", "--hook", *words) == (0, "", "")


@pytest.mark.parametrize("place", ["root", "tmp_path"])
def test_a_hook_ends_with_0_and_says_nothing_where_there_is_no_kb(kb, request, place):
    assert kb("prime", "--for", "a.py", "--hook", cwd=request.getfixturevalue(place)) == (0, "", "")


def test_a_hook_with_an_option_that_there_is_not_ends_with_0_and_says_so(kb, synced):
    ran = kb("prime", "--hook", "--nonsense")
    assert (ran.status, ran.out) == (0, "")
    assert "no option '--nonsense'" in ran.err


def test_a_linked_worktree_keeps_its_own_answers(kb, synced, tmp_path):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "all")
    git(synced, "worktree", "add", "-q", "-b", "other", tmp_path / "other")
    settle()
    said = kb("prime", cwd=tmp_path / "other").out
    assert said.startswith("Branch other at seq 1.")
    assert kept(synced) == []
    assert kb("prime", cwd=tmp_path / "other").out == said


def test_the_environment_of_a_hook_in_another_repository_keeps_and_reads_nothing(kb, synced):
    settle()
    kb("prime")
    assert prime_note.kept(["prime"], environment({"GIT_DIR": "/nowhere"})) is None
