"""``kb revert`` and ``kb rollback``: back to what was, by new records."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import DOCUMENTS, read_anew
from tests.support.repository.repos import commit_files


@pytest.fixture
def changed(kb, grown):
    """Two changesets of a client after the sync: one makes an entity, one gives an owner."""
    return grown(two_changesets)


def two_changesets(root, kb):
    commit_files(root, DOCUMENTS)
    requests = [
        {"entities": [{"id": "SCN-1", "type": "scenario", "title": "Known device", "status": "open"}]},
        {"entities": [{"id": "REQ-1", "owner": "ada"}]},
    ]
    for request in requests:
        kb("apply", "-", stdin=json.dumps(request))
    read_anew(root, kb)


def owner(kb) -> str | None:
    return kb("query", "--id", "REQ-1", "--json").json["entities"][0].get("owner")


def test_a_revert_is_a_new_record_and_can_be_reverted(kb, changed):
    ran = kb("revert", "3")
    assert (ran.status, ran.out) == (0, "main at seq 4: 1 updated.\n")
    assert owner(kb) is None
    answer = kb("revert", "4", "--json").json
    assert (answer["seq"], answer["updated"], answer["applied"]) == (5, ["REQ-1"], True)
    assert owner(kb) == "ada"
    assert len(kb("log", "--json").json["records"]) == 5


def test_a_dry_run_of_a_revert_says_what_would_change_and_writes_nothing(kb, changed):
    ran = kb("revert", "3", "--dry-run")
    assert (ran.status, ran.out) == (0, "Would change main at seq 3: 1 updated.\n")
    assert owner(kb) == "ada"
    assert len(kb("log", "--json").json["records"]) == 3


def test_several_records_are_undone_by_one(kb, changed):
    answer = kb("revert", "2", "3", "--json").json
    assert (answer["seq"], answer["deleted"], answer["updated"]) == (4, ["SCN-1"], ["REQ-1"])


def test_a_later_change_refuses_it_unless_forced(kb, changed):
    kb("apply", "-", stdin='{"entities": [{"id": "REQ-1", "owner": "bob"}]}')
    ran = kb("revert", "3")
    assert ran.status == 17
    assert "REQ-1" in ran.err
    error = kb("revert", "3", "--json").error
    assert (error["code"], error["applied"]) == ("revert_conflict", "no")
    assert error["details"]
    assert kb("revert", "3", "--force").status == 0
    assert owner(kb) is None


def test_a_revert_of_nothing_but_what_is_known_of_a_file_does_not_say_that_nothing_changed(kb, changed):
    path = changed / "docs/requirements/login.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nMore words.\n", encoding="utf-8")
    assert kb("sync").status == 0
    seq = kb("log", "--json").json["records"][0]["seq"]
    assert kb("revert", str(seq)).out == f"main at seq {seq + 1}: only what is known of files.\n"


def test_records_that_are_not_there_are_refused(kb, changed):
    assert kb("revert", "99").status == 64
    assert kb("revert", "x").status == 2
    assert kb("revert").status == 2
    assert kb("rollback", "--to", "99").status == 64
    assert kb("rollback").status == 2


def test_a_rollback_brings_everything_back_and_erases_nothing(kb, changed):
    answer = kb("rollback", "--to", "1", "--json").json
    assert (answer["seq"], answer["deleted"], answer["updated"]) == (4, ["SCN-1"], ["REQ-1"])
    assert kb("diff", "1", "--json").json["entities"] == []
    assert kb("query", "--at", "3", "--json").json["total"] == 4


def test_what_files_state_is_warned_about_and_comes_back_with_the_next_sync(kb, changed):
    ran = kb("rollback", "--to", "0")
    assert ran.status == 0
    assert "warning: " in ran.err
    assert "docs/requirements/login.md" in ran.err
    assert kb("query", "--at", "4", "--json").json["total"] == 0
    assert kb("query", "--json").json["freshness"] == "overlay"
    kb("sync")
    assert kb("query", "--json").json["total"] == 3
