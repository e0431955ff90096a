"""``kb check --against``: conflicts between changes of clients, in change files and in the store."""

from __future__ import annotations

import json

import pytest

from kbcore import limits
from tests.cli.check.clones import document, path
from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git


def two_sides(kb, root):
    """Return what writes as a client, shares and commits; branches main and topic are there."""

    def write_as(branch, key, **fields):
        git(root, "switch", "-q", branch)
        kb("sync")
        kb("apply", "-", stdin=json.dumps({"entities": [{"id": key, "type": "symbol", "status": "active", **fields}]}))
        kb("share")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", f"{key} on {branch}")
        kb("sync")

    git(root, "branch", "topic")
    return write_as


@pytest.mark.parametrize(("title", "fields"), [("One", []), ("Other", ["title"])])
def test_an_id_that_changes_of_both_sides_make_is_found_with_the_fields_that_differ(kb, synced, title, fields):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title=title)
    write_as("main", "S-1", title="One")
    write_as("main", "S-2", title="Only here")
    ran = kb("check", "--against", "topic", "--json")
    [made] = [one for one in ran.json["violations"] if one["rule"] == "against-id"]
    assert (made["id"], made["code"], made["values"]) == ("S-1", "made_twice", ["One", title])
    assert made["source"].startswith(".kb/changes/")
    assert made["other"]["source"].startswith(".kb/changes/")
    assert made["source"] != made["other"]["source"]
    assert [one["field"] for one in ran.json["violations"] if one["rule"] == "against-field"] == fields

    assert kb("rename", "S-1", "S-3").status == 0
    assert kb("check", "--against", "topic", "--json").json["violations"] == []


def test_a_field_that_differs_in_a_change_file_that_no_record_knows_is_found(kb, synced):
    write_as = two_sides(kb, synced)
    git(synced, "branch", "other")
    write_as("topic", "S-1", title="There")
    write_as("other", "S-1", title="Here")
    git(synced, "switch", "-q", "main")
    kb("sync")
    git(synced, "merge", "-q", "--no-verify", "other")
    ran = kb("check", "--against", "topic", "--json")
    assert [one["field"] for one in ran.json["violations"] if one["rule"] == "against-field"] == ["title"]


def test_an_id_that_a_change_makes_there_and_a_document_or_an_unshared_change_here_is_found(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "REQ-90", title="There")
    write_as("topic", "S-1", title="There")
    git(synced, "switch", "-q", "main")
    kb("sync")
    write(synced, {path("90"): document("REQ-90", "Here")})
    entity = {"id": "S-1", "type": "symbol", "title": "Here", "status": "active"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    ran = kb("check", "--against", "topic", "--json", "--rule", "against-id")
    found = [(one["id"], one["source"], one["values"]) for one in ran.json["violations"]]
    assert found == [("REQ-90", path("90"), ["Here", "There"]), ("S-1", "", ["Here", "There"])]


def test_a_change_that_both_sides_have_is_no_id_that_both_made(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title="One")
    git(synced, "switch", "-q", "main")
    git(synced, "cherry-pick", "topic")
    kb("sync")
    assert kb("check", "--against", "topic").status == 0


def test_changes_in_files_that_would_be_contested_are_found_before_the_merge(kb, synced):
    def share(*words):
        kb(*words)
        kb("share")
        commit_files(synced, {})
        kb("sync")

    entity = {"id": "S-1", "type": "symbol", "title": "One", "status": "active"}
    kb("apply", "-", stdin=json.dumps({"entities": [entity]}))
    share("share")
    git(synced, "switch", "-q", "-c", "topic")
    share("set", "S-1", "title=Topic", "owner=ann")
    git(synced, "switch", "-q", "main")
    kb("sync")
    share("set", "S-1", "title=Main")

    found = kb("check", "--against", "topic", "--json")

    assert found.status == 1
    [violation] = found.json["violations"]
    assert (violation["rule"], violation["id"], violation["field"]) == ("against-field", "S-1", "title")
    assert sorted(violation["values"]) == ["Main", "S-1", "Topic"]
    assert violation["source"] != violation["other"]["source"]
    assert (synced / violation["source"]).is_file()
    assert not (synced / violation["other"]["source"]).exists()
    git(synced, "merge", "-q", "topic")
    kb("sync")
    assert kb("resolve", "--json").json["conflicts"][0]["field"] == "title"


def test_a_large_change_file_is_read_as_kb_writes_it(kb, synced):
    git(synced, "switch", "-q", "-c", "topic")
    notes = {f"note{number}": "word " * 6_000 for number in range(8)}
    for number in range(20):
        entity = {"id": f"S-{number}", "type": "symbol", "title": "One", "status": "active", "attributes": notes}
        assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    kb("share")
    commit_files(synced, {})
    kb("sync")
    [shared] = (synced / ".kb" / "changes").glob("*/*.jsonl")
    assert limits.MAX_SOURCE_FILE_BYTES < shared.stat().st_size < limits.MAX_CHANGE_FILE_BYTES

    found = kb("check", "--against", "main", "--json")
    assert (found.status, found.json["violations"]) == (0, [])
    new = kb("check", "--since", "main", "--json").json["violations"]
    assert "unreadable-source" not in {one["rule"] for one in new}
    checks = {(one["check"], one["code"]): one["severity"] for one in kb("doctor", "--json").json["findings"]}
    assert checks["sharing", "change_files"] == "ok"


@pytest.mark.parametrize("is_deleted_here", [True, False])
def test_a_deletion_and_a_change_of_the_other_side_are_both_named_with_what_decides(kb, synced, user, is_deleted_here):
    write_as = two_sides(kb, synced)
    user.setenv("KB_ACTOR", "eve")
    write_as("main", "S-1", title="One")
    git(synced, "branch", "-f", "topic")
    git(synced, "switch", "-q", "topic")
    kb("branch", "ensure")

    def delete(branch):
        git(synced, "switch", "-q", branch)
        kb("sync")
        user.setenv("KB_ACTOR", "ann")
        kb("delete", "S-1")
        kb("share")
        commit_files(synced, {})
        user.setenv("KB_ACTOR", "bob")

    if is_deleted_here:
        delete("main")
        write_as("topic", "S-1", owner="bob")
    else:
        delete("topic")
        write_as("main", "S-1", owner="bob")
    git(synced, "switch", "-q", "main")
    kb("sync")
    [found] = kb("check", "--against", "topic", "--json").json["violations"]
    here, there = found["source"], found["other"]["source"]
    assert found["message"] == (
        f"S-1 was deleted by ann here ({here}), and topic has a change of it by bob ({there})."
        if is_deleted_here
        else f"S-1 was deleted by ann in topic ({there}), and was changed here by bob ({here})."
    )
    remedy = "After the merge `kb resolve S-1 deleted --take keep` keeps it, `kb delete S-1` deletes it."
    assert remedy in kb("check", "--against", "topic").out


def test_after_the_merge_the_list_of_conflicts_names_what_separates_an_id_that_was_made_twice(kb, synced):
    write_as = two_sides(kb, synced)
    write_as("topic", "S-1", title="There")
    write_as("main", "S-1", title="Here")
    git(synced, "merge", "-q", "--no-edit", "topic")
    kb("sync")
    said = kb("resolve").out
    assert "S-1 was made more than once: S-1@" in said
    command = said.rpartition("If these are several things: `kb ")[2].partition("`")[0]
    assert kb(*command.replace("NEW", "S-2").split()).status == 0
    assert (kb("resolve").out, kb("show", "S-2").status) == ("Nothing is contested.\n", 0)
