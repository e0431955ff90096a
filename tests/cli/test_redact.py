"""``kb redact``: the preview, what needs consent, and what is said and kept to itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.disk.secrets import files_with
from tests.support.processes.cli import run_kb
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import git

SECRET = "hunter2 \"pa$$\" 'w0rd'"


@pytest.fixture
def leaked(kb, synced) -> Path:
    """The store with a secret in a title and in a message, and a branch that has it too."""
    entity = {"id": "REQ-7", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    asked = {"entities": [entity], "message": f"as {SECRET}", "changeset_id": "leak"}
    assert kb("apply", "-", stdin=json.dumps(asked)).status == 0
    git(synced, "branch", "topic")
    assert kb("branch", "ensure", "topic").status == 0
    assert kb("query", "req").status == 0
    return synced


def left(root: Path, secret: str = SECRET) -> list[str]:
    return files_with(secret, stores_at(root), caches_at(root))


def test_without_consent_it_shows_what_would_change_and_changes_nothing(kb, leaked):
    before = {path: path.read_bytes() for path in stores_at(leaked).rglob("*.json*")}
    ran = kb("redact", "-", stdin=SECRET + "\n")
    assert ran.status == 2
    assert "main: 1 record would be changed." in ran.out
    assert "topic: 1 record would be changed." in ran.out
    assert "2: message, REQ-7 title" in ran.out
    assert "needs --yes" in ran.err
    assert SECRET not in ran.out + ran.err
    assert {path: path.read_bytes() for path in stores_at(leaked).rglob("*.json*")} == before


def test_the_same_as_json(kb, leaked):
    ran = kb("redact", "-", "--json", stdin=SECRET)
    assert ran.status == 2
    assert ran.json["applied"] is False
    assert [one["branch"] for one in ran.json["stores"]] == ["main", "topic"]
    assert SECRET not in ran.out


def test_with_consent_it_is_taken_out_everywhere_and_the_rest_is_named(kb, leaked):
    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0
    assert "main: 1 record redacted, as record 3 documents." in ran.out
    assert "topic: 1 record redacted, as record 3 documents." in ran.out
    assert "Revoke the secret" in ran.err
    assert SECRET not in ran.out + ran.err
    assert left(leaked) == []
    assert kb("show", "REQ-7").out.startswith("REQ-7\n  Use [redacted]\n")
    assert kb("verify").status == 0
    assert kb("verify", "--branch", "topic").status == 0
    assert kb("query", "--search", "hunter2").out == ""
    assert left(leaked) == []


def test_history_and_points_answer_and_an_undo_is_refused(kb, leaked):
    kb("redact", "-", "--yes", stdin=SECRET)
    for words in (
        ("log",),
        ("show", "2"),
        ("show", "REQ-7"),
        ("diff", "1"),
        ("show", "REQ-7", "--at", "2"),
    ):
        ran = kb(*words)
        assert ran.status == 0, (words, ran.err)
        assert SECRET not in ran.out
    assert "redacted: message, ops.0.set.title, digest" in kb("show", "2").out
    assert kb("show", "2", "--json").json["redacted"] == ["message", "ops.0.set.title", "digest"]
    assert kb("show", "3", "--json").json["redaction"]["records"][0]["seq"] == 2
    ran = kb("revert", "2")
    assert ran.status == 33
    assert "was redacted: it cannot be undone" in ran.err
    asked = {"entities": [{"id": "REQ-7", "title": f"Use {SECRET}"}], "changeset_id": "leak"}
    ran = kb("apply", "-", "--json", stdin=json.dumps(asked))
    assert (ran.status, ran.json["error"]["code"]) == (33, "redacted")
    assert left(leaked) == []


def test_an_id_and_a_record_name_what_goes(kb, leaked):
    ran = kb("redact", "REQ-7", "--field", "title")
    assert "2: REQ-7 title" in ran.out
    assert kb("redact", "REQ-7", "--field", "title", "--yes").status == 0
    assert left(leaked) != []  # the message has it
    assert kb("redact", "2", "--yes").status == 0
    assert left(leaked) == []


def test_a_pattern_on_the_command_line_works_and_is_warned_of(kb, leaked):
    ran = kb("redact", SECRET, "--yes")
    assert ran.status == 0
    assert "history of the shell" in ran.err
    assert left(leaked) == []


def test_what_nothing_holds_is_not_found(kb, leaked):
    ran = kb("redact", "-", stdin="nowhere-to-be-found")
    assert ran.status == 64
    assert "Nothing in the stores" in ran.err
    assert kb("redact", "99").status == 64


@pytest.mark.parametrize("given", ["x", "status"])
def test_a_pattern_that_is_no_secret_is_refused(kb, leaked, given):
    ran = kb("redact", "-", "--yes", stdin=given)
    assert ran.status == 2
    assert left(leaked) != []


def test_a_field_of_a_pattern_is_refused(kb, leaked):
    ran = kb("redact", "-", "--field", "title", stdin=SECRET)
    assert ran.status == 2
    assert "--field needs" in ran.err


def test_a_process_of_its_own_does_the_same(leaked):
    ran = run_kb(leaked, "redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert left(leaked) == []


def test_the_doctor_says_nothing_of_it_afterwards(kb, leaked):
    kb("redact", "-", "--yes", stdin=SECRET)
    ran = kb("doctor", "--json")
    assert not [
        one for one in ran.json["findings"] if one["severity"] in {"error", "warning"} and "redact" in one["code"]
    ]
    assert not [one for one in ran.json["findings"] if one["code"] == "store_went_back"]


# Changes that are shared


def changes(kb, root: Path) -> dict[str, str]:
    """Return the file of each change of the worktree, by its id."""
    return {
        json.loads(line)["change"]: str(path)
        for path in sorted((root / ".kb/changes").rglob("*.jsonl"))
        for line in path.read_text().splitlines()
    }


def test_shared_changes_keep_their_ids_and_nothing_is_contested_or_shared_twice(kb, synced):
    for number, title in enumerate((f"Use {SECRET}", "Plain"), 7):
        entity = {"id": f"REQ-{number}", "type": "req", "title": title, "status": "open"}
        kb("apply", "-", stdin=json.dumps({"entities": [entity], "message": f"made {number}"}))
    kb("set", "REQ-8", "owner=ann")
    assert kb("share").status == 0
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "share")
    assert kb("sync").status == 0
    kb("set", "REQ-7", "owner=bob")  # after what is redacted, and not shared yet
    before, known = changes(kb, synced), kb("query", "req", "--json").json["entities"]
    assert files_with(SECRET, synced / ".kb") != []

    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert ".kb/changes" in ran.out
    assert changes(kb, synced).keys() == before.keys()
    assert files_with(SECRET, synced / ".kb", stores_at(synced), caches_at(synced)) == []
    assert kb("verify").status == 0

    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "redact")
    assert kb("sync").status == 0
    now = {one["id"]: one for one in kb("query", "req", "--json").json["entities"]}
    assert {one["id"] for one in known} == now.keys()
    assert (now["REQ-8"]["title"], now["REQ-8"]["owner"], now["REQ-7"]["owner"]) == ("Plain", "ann", "bob")
    assert "contested" not in json.dumps(now)
    ran = kb("share", "--json")
    assert [len(one["changes"]) for one in ran.json["files"]] == [1]  # that of bob
    assert kb("sync").status == 0
    assert kb("verify").status == 0
    assert files_with(SECRET, synced / ".kb", stores_at(synced), caches_at(synced)) == []


def test_changes_that_a_merge_took_over_lose_it_too(kb, synced):
    git(synced, "branch", "topic")
    assert kb("branch", "ensure", "topic").status == 0
    git(synced, "switch", "-q", "topic")
    entity = {"id": "REQ-7", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    git(synced, "switch", "-q", "main")
    assert kb("merge", "topic").status == 0
    assert kb("show", "REQ-7").status == 0
    ran = kb("redact", "-", "--yes", stdin=SECRET)
    assert ran.status == 0, ran.err
    assert left(synced) == []
    assert kb("merge", "topic").status == 0
    for branch in ("main", "topic"):
        assert kb("verify", "--branch", branch).status == 0
    assert kb("show", "REQ-7").out.startswith("REQ-7\n  Use [redacted]\n")
    assert left(synced) == []
