"""A store that is gone or went back is named by every command, and the advice leads to a working store."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.processes.advice import spelled_out
from tests.support.repository.places import caches_at, emptied, stores_at
from tests.support.repository.repos import git

BROUGHT_BACK = "`kb sync` brings back what files hold, and `kb fetch` what was pushed by `kb push`."


def test_a_lost_store_is_named_by_every_command_until_a_person_accepts_it(kb, synced):
    kb("query")
    shutil.rmtree(stores_at(synced) / "main")
    said = "The store of main is missing. seen: 1, now: no store; record 1 is missing."
    ran = kb("status")
    assert (ran.status, said in ran.err, "Next:" in ran.out) == (0, True, False)
    assert kb("status", "--json").json["missing"][0]["seen"] == 1
    for command in (("query",), ("sync",), ("verify",), ("doctor",), ("apply", "-")):
        ran = kb(*command, stdin="{}")
        assert (ran.status, said in ran.out + ran.err) == (45, True), command
        assert BROUGHT_BACK in ran.out + ran.err, command
    for command in (("branch", "list"), ("hooks", "status"), ("schema",), ("gc", "--dry-run")):
        assert said in kb(*command, "-q").err, command
    shutil.rmtree(synced / ".kb")
    ran = kb("init", "--no-hooks")
    assert (ran.status, said in ran.err) == (45, True)
    assert BROUGHT_BACK in kb("status").err
    refused = kb("doctor", "--new-epoch")
    assert (refused.status, said in refused.err) == (2, True)
    [command] = re.findall(r"Where a person consents: `kb (.*)`\.", spelled_out(refused.err))
    accepted = kb(*shlex.split(command), "--yes")
    assert BROUGHT_BACK in accepted.out
    assert (accepted.status, "changeset that is sent again is applied again" in accepted.out) == (0, True)
    assert kb("query", "-q").err == ""
    assert "New epoch of the store" in kb("log").out


@pytest.mark.sliced
def test_a_store_that_went_back_is_read_with_a_warning_and_not_written_to(kb, synced):
    changeset = '{"entities":[{"id":"%s","type":"req","title":"T","status":"open"}]}'
    shutil.copytree(stores_at(synced) / "main", synced / "older")
    kb("apply", "-", stdin=changeset % "A")
    shutil.rmtree(stores_at(synced) / "main")
    (synced / "older").rename(stores_at(synced) / "main")
    said = "The store of main went back to an earlier state. seen: 2, now: 1; record 2 is missing."
    for command in (("query",), ("status",), ("log",), ("show", "1"), ("check", "--fail-on", "never"), ("schema",)):
        ran = kb(*command, "-q")
        assert (ran.status, said in ran.err) == (0, True), command
    ran = kb("apply", "-", "--json", stdin=changeset % "B")
    assert (ran.status, ran.error["code"], ran.error["applied"]) == (45, "store_went_back", "no")
    assert (kb("verify").status, kb("doctor").status, kb("compact").status) == (45, 45, 45)
    hook = kb("hook", "post-checkout", "0", "1", "1")
    assert (hook.status, said in hook.err) == (0, True)
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert kb("apply", "-", "-q", stdin=changeset % "A").err == ""


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_refusal_names_a_loss_and_its_remedy_once(kb, synced, tmp_path, is_gone):
    went_back(kb, synced, tmp_path / "kb.backup")
    if is_gone:
        shutil.rmtree(stores_at(synced) / "main")
    changeset = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'
    upsert = 'UPSERT { CONCEPT {{type: "Person", name: "Ann"} SET ATTRIBUTES {person_class: "Human"}} }'
    refused = [kb("apply", "-", stdin=changeset), kb("compact"), kb("delete", "REQ-1"), kb("rollback", "--to", "1")]
    if is_gone:
        refused += [kb("query"), kb("check"), kb("log"), kb("export"), kb("kip", upsert)]
    for ran in refused:
        assert ran.status == 45, ran
        said = (ran.err.count("The store of main"), spelled_out(ran.err).count("kb doctor --new-epoch"))
        assert said == (1, 1), ran


def went_back(kb, root: Path, backup: Path) -> None:
    """Back up a store, write one record more, and put the store back to the state of the backup."""
    changeset = '{"entities":[{"id":"%s","type":"req","title":"T","status":"open"}]}'
    assert kb("backup", str(backup)).status == 0
    shutil.copytree(stores_at(root) / "main", root / "older")
    kb("apply", "-", stdin=changeset % "A")
    shutil.rmtree(stores_at(root) / "main")
    (root / "older").rename(stores_at(root) / "main")


def test_the_advice_for_a_store_that_went_back_leads_to_a_working_store_wherever_the_backup_ends(kb, synced, tmp_path):
    changeset = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'
    backup = tmp_path / "kb.backup"
    went_back(kb, synced, backup)
    said = kb("apply", "-", "--json", stdin=changeset).error
    assert said["message"].count("Nothing w") == 1
    [advice] = re.findall(r"`kb (restore FILE [^`]*)`", said["hint"])
    words = [str(backup) if word == "FILE" else word for word in advice.split()]
    dry = kb(*words, "--dry-run")
    assert "main: the store would get a new id; the changeset id of record 2 would be forgotten." in dry.err
    assert "has a new id" not in dry.err
    done = kb(*words)
    assert (done.status, "the changeset id of record 2 is forgotten." in done.err) == (0, True)
    ran = kb("apply", "-", stdin=changeset)
    assert (ran.status, "went back" in ran.err) == (0, False)
    assert kb("doctor").status == 0
    log = " ".join(kb("log").out.split())
    assert "Record 2 is lost. Its changeset id is forgotten" in log


ADVICE = r"`kb ((?:restore|branch restore|doctor) [^`]*)`"


WRITE = '{"entities":[{"id":"B","type":"req","title":"T","status":"open"}]}'


@pytest.mark.sliced(1)
@pytest.mark.parametrize("what", ["all", "one"])
@pytest.mark.parametrize("command", [("apply", "-", "--json"), ("query", "--json")])
def test_each_advice_for_an_emptied_folder_leads_to_a_working_store(kb, synced, tmp_path, what, command):
    backup = tmp_path / "kb.backup"
    assert kb("backup", str(backup)).status == 0
    emptied(synced, what)
    hint = kb(*command, stdin=WRITE).error["hint"]
    # The salvage is for a journal that is damaged as well.
    advices = [one for one in re.findall(ADVICE, spelled_out(hint)) if "--salvage" not in one]
    assert sorted(one.split()[0] for one in advices) == ["doctor", "restore"], hint
    for advice in advices:
        if what == "one" and advice.startswith("doctor"):
            assert "or remove it" in hint
            shutil.rmtree(stores_at(synced) / "main")
        words = [str(backup) if word == "FILE" else word for word in shlex.split(advice)]
        done = kb(*words, *(["--yes"] if "--new-epoch" in words else []))
        assert done.status == 0, (advice, done.err)
        ran = kb("apply", "-", stdin=WRITE)
        assert (ran.status, "is missing" in ran.err) == (0, False), (advice, ran.err)
        assert kb("doctor").status == 0
        emptied(synced, what)
        shutil.rmtree(stores_at(synced) / ".trash", ignore_errors=True)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("other", ["topic", "it's"])
def test_the_advice_for_a_lost_branch_means_that_branch_and_not_the_one_that_is_checked_out(kb, synced, other):
    git(synced, "branch", other)
    kb("query")
    kb("apply", "-", "--branch", other, stdin=WRITE)
    emptied(synced, "all")
    for branch in (other, "main"):
        [advice] = [
            one
            for one in re.findall(
                r"`kb (doctor [^`]*)`", spelled_out(kb("query", "--branch", branch, "--json").error["hint"])
            )
            if "--salvage" not in one
        ]
        assert kb(*shlex.split(advice), "--yes").status == 0
    assert kb("doctor").status == 0


@pytest.mark.parametrize("command", ["status", "branch list", "gc"])
def test_each_command_that_names_a_loss_says_what_to_do(kb, synced, command):
    kb("query")
    emptied(synced, "all")
    ran = kb(*command.split())
    said = " ".join(ran.err.split())
    assert "The store of main is missing" in said
    assert spelled_out(said).count("`kb doctor --new-epoch --branch main`") == 1
    assert "Next:" not in ran.out


@pytest.mark.parametrize("option", ["--rebuild-head", "--rebuild-snapshots", "--salvage"])
def test_a_repair_of_a_lost_store_says_so_and_what_to_do(kb, synced, option):
    kb("query")
    emptied(synced, "all")
    refused = kb("doctor", option, "--json").error
    assert (refused["code"], "`kb doctor --new-epoch --branch main`" in spelled_out(refused["hint"])) == (
        "store_went_back",
        True,
    )


def test_a_store_that_vanishes_after_a_restore_comes_back_from_the_trash_by_the_advice(kb, synced, tmp_path):
    kb("apply", "-", stdin=WRITE)
    kb("backup", str(tmp_path / "kb.backup"))
    kb("restore", str(tmp_path / "kb.backup"), "--replace")
    shutil.rmtree(stores_at(synced) / "main")
    refused = kb("apply", "-", "--json", stdin=WRITE).error
    assert refused["code"] == "store_went_back"
    [advice, *_] = re.findall(r"`kb (branch restore [^`]*)`", refused["hint"])
    assert kb(*shlex.split(advice)).status == 0
    assert kb("apply", "-", "--json", stdin=WRITE).json["seq"] == 2


def test_a_damaged_store_in_the_trash_comes_back_only_by_the_option_and_is_named(kb, synced, tmp_path):
    kb("backup", str(tmp_path / "kb.backup"))
    kb("restore", str(tmp_path / "kb.backup"), "--replace")
    [trashed] = (stores_at(synced) / ".trash").iterdir()
    (trashed / "head.json").write_bytes(b"{}")
    said = kb("doctor")
    assert (said.status, "does not prove" in said.out) == (0, True)
    refused = kb("branch", "restore", "main", "--json").error
    assert (refused["code"], "kb help even-damaged" in refused["hint"]) == ("journal_corrupt", True)
    assert kb("query").status == 0
    back = kb("branch", "restore", "main", "--even-damaged")
    assert (back.status, "main is damaged: `kb doctor` says how" in back.err) == (0, True)
    assert kb("branch", "restore", "main").status == 0
    assert kb("query").status == 0


def test_a_loss_that_was_not_accepted_is_not_called_accepted(kb, synced, tmp_path):
    went_back(kb, synced, tmp_path / "kb.backup")
    refused = kb("doctor", "--new-epoch", "--json").error
    assert (refused["code"], "accepted" in refused["message"]) == ("invalid_query", False)
    assert "Its changeset id is forgotten" in refused["message"]
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert "A person accepted the loss." in " ".join(kb("log").out.split())


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_backup_is_neither_streamed_nor_without_a_name(kb, synced, command):
    for name in ("-", ""):
        refused = kb(command, "--json", "--", name)
        assert (refused.status, refused.error["code"]) == (2, "invalid_query")
        assert "kb backup ../kb.backup" in refused.error["hint"]
    assert not (synced / "-").exists()


def test_a_pattern_among_the_branches_of_a_backup_is_named_as_matching_nothing(kb, synced, tmp_path):
    backup = str(tmp_path / "kb.backup")
    refused = kb("backup", backup, "--only", "main", "--only", "ma*", "--json")
    assert (refused.status, refused.error["message"]) == (62, "'ma*' has no store to back up.")
    assert "main" in refused.error["hint"]
    assert kb("backup", backup).status == 0
    refused = kb("restore", backup, "--only", "*", "--dry-run", "--json")
    assert (refused.status, refused.error["message"]) == (62, "The backup holds no branch '*'.")


@pytest.mark.parametrize("index", ["whole", "older", "gone", "damaged"])
def test_the_changes_of_a_lost_store_that_no_file_holds_are_counted_or_it_is_said_why_not(kb, synced, user, index):
    changeset = '{"entities":[{"id":"%s","type":"req","title":"T","status":"open"}]}'
    kb("config", "set", "share.mode", "ask")
    user.setenv("KB_ACTOR", "ann")
    kb("apply", "-", stdin=changeset % "A")
    kb("share")
    for key in ("B", "C"):
        kb("apply", "-", stdin=changeset % key)
    kb("status")
    [claims] = caches_at(synced).rglob("claims.db")
    if index == "older":
        before = claims.read_bytes()
        kb("apply", "-", stdin=changeset % "D")
        claims.write_bytes(before)
    shutil.rmtree(stores_at(synced) / "main")
    if index == "gone":
        claims.unlink()
    if index == "damaged":
        claims.write_bytes(b"no database")
    [found] = [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "changes_lost"]
    said = {
        "whole": "In the missing records were 2 changes of clients that no change file here holds (2 of ann).",
        "older": "(2 of ann); of record 5 that is not known",
        "gone": "is not known: the cache has no index of them",
        "damaged": "is not known: the index of them in the cache is damaged",
    }[index]
    assert said in found["message"]
    assert said in kb("doctor", "--new-epoch").err
    assert kb("doctor", "--new-epoch", "--yes").status == 0
    assert [one for one in kb("doctor", "--json").json["findings"] if one["code"] == "changes_lost"] == []
