"""``kb push`` and ``kb fetch``: what they say of the ref of a remote, and how they end where it cannot be used."""

from __future__ import annotations

import json

import pytest

from tests.support.repository.repos import git

SYMBOL = {"type": "symbol", "title": "One", "status": "active"}
SECRET = "AKIA" + "IOSFODNN7EXAMPLQ"


def apply(kb, *entities):
    assert kb("apply", "-", stdin=json.dumps({"entities": list(entities)})).status == 0


@pytest.fixture
def cloned(kb, synced):
    """The repository has a remote, and two changes that are in no file; a second clone of the remote is beside it."""
    git(synced, "add", "-A")
    git(synced, "commit", "-q", "--allow-empty", "-m", "first")
    git(synced.parent, "clone", "-q", "--bare", synced, "up.git")
    git(synced, "remote", "add", "origin", (synced.parent / "up.git").as_uri())
    git(synced.parent, "clone", "-q", (synced.parent / "up.git").as_uri(), "other")
    apply(kb, {"id": "S-1", **SYMBOL})
    apply(kb, {"id": "S-2", **SYMBOL})
    return synced


def test_a_push_and_a_fetch_say_how_many_changes_the_ref_has(kb, cloned):
    other = ("-C", str(cloned.parent / "other"))
    assert kb("push", "--dry-run").out == "Would push 2 changes to refs/kb/main of origin.\n"
    assert kb("push").out == "Pushed 2 changes: refs/kb/main of origin has 2 changes now.\n"
    assert kb("push").out == "Nothing new: refs/kb/main of origin has 2 changes.\n"
    kb(*other, "sync")
    dry = kb(*other, "fetch", "--dry-run").out
    assert dry.endswith("2 created. 2 changes would be taken over: refs/kb/main of origin has 2 changes.\n")
    done = kb(*other, "fetch").out
    assert done.endswith("2 created. 2 changes taken over: refs/kb/main of origin has 2 changes.\n")
    again = kb(*other, "fetch", "origin").out
    assert again.endswith("nothing to change. 0 changes taken over: refs/kb/main of origin has 2 changes.\n")
    assert "S-2" in kb(*other, "query", "symbol").out


def test_the_documents_have_ids_and_numbers(kb, cloned):
    pushed = kb("push", "--json").json
    assert (pushed["branch"], pushed["remote"], pushed["ref"]) == ("main", "origin", "refs/kb/main")
    assert (len(pushed["pushed"]), pushed["changes"], pushed["withheld"]) == (2, 2, [])
    assert git(cloned.parent / "up.git", "rev-parse", "refs/kb/main") == pushed["commit"]
    other = ("-C", str(cloned.parent / "other"))
    kb(*other, "sync")
    fetched = kb(*other, "fetch", "--json").json
    assert [one["change"] for one in fetched["changes"]] == pushed["pushed"]
    assert (fetched["withdrawn"], fetched["contested"], fetched["ref"]) == (0, 0, "refs/kb/main")


def test_a_push_without_anything_to_push_says_so_and_names_no_ref(kb, cloned):
    git(cloned, "switch", "-q", "-c", "empty")
    kb("config", "set", "share.actors", '["nobody"]')
    kb("sync")
    said = kb("push").out.splitlines()
    assert said[0] == "Nothing to push: empty has no change that may be shared and is in no committed file."
    assert kb("push", "--json").json["changes"] == 0


def test_what_is_withheld_is_counted_or_named_and_not_pushed(kb, cloned, user):
    kb("config", "set", "share.actors", '["tester"]')
    user.setenv("KB_ACTOR", "eve")
    apply(kb, {"id": "S-3", **SYMBOL})
    user.setenv("KB_ACTOR", "tester")
    apply(kb, {"id": "S-4", **SYMBOL, "owner": SECRET})
    ran = kb("push")
    assert ran.status == 1
    assert ran.out.splitlines() == [
        "Pushed 2 changes: refs/kb/main of origin has 2 changes now.",
        "Private: 1 change whose actor is not in `share.actors`.",
    ]
    assert "looks like a secret" in ran.err
    assert SECRET not in ran.err


def test_what_cannot_be_reached_or_is_not_there_ends_with_a_status_of_its_own(kb, cloned):
    missing = kb("fetch")
    assert missing.status == 64
    assert missing.err.startswith("error: origin has no ref refs/kb/main, so nothing was fetched.")
    assert "hint: Run `kb push` in a clone that has the changes" in missing.err
    wrong = kb("push", "elsewhere")
    assert wrong.status == 67
    assert wrong.err.startswith(
        "error: elsewhere could not be read: fatal: 'elsewhere' does not appear to be a git repository; fatal: "
    )
    assert "Please make sure" not in wrong.err  # git's advice: the hint is ours
    assert "hint: `git remote -v` lists the remotes" in wrong.err
    script = cloned.parent / "ssh"
    script.write_text("printf 'Authorised use only.\\n\\nPermission denied.\\n' >&2; exit 255\n")
    git(cloned, "config", "core.sshCommand", f"sh {script}")
    greeted = kb("push", "ssh://127.0.0.1/up.git")
    assert "could not be read: Authorised use only.; Permission denied.; fatal: Could not read" in greeted.err
    git(cloned.parent / "up.git", "update-ref", "refs/kb/main", "main")
    damaged = kb("fetch")
    assert damaged.status == 46
    assert damaged.err.startswith("error: refs/kb/main of origin is no backup that this KB can read: ")
    git(cloned, "switch", "-q", "--detach")
    assert "hint: Name a branch with --branch." in kb("push").err
