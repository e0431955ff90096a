"""``kb revert`` and ``kb rollback``: back to what was, by new records."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import DOCUMENTS, refresh_view
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
    refresh_view(root, kb)


def owner(kb) -> str | None:
    return kb("query", "--id", "REQ-1", "--json").json["entities"][0].get("owner")


@pytest.mark.sliced
def test_a_revert_is_a_new_record_and_can_be_reverted(kb, changed):
    ran = kb("revert", "3")
    assert (ran.status, ran.out) == (0, "main at seq 4: 1 updated.\n")
    assert owner(kb) is None
    answer = kb("revert", "4", "--json").json
    assert (answer["seq"], answer["updated"], answer["applied"]) == (5, ["REQ-1"], True)
    assert owner(kb) == "ada"
    assert len(kb("log", "--json").json["records"]) == 5


@pytest.fixture
def two_writers(kb, synced, user):
    """Three records of ann, one of them in another session, and two of a bot, after a sync by ann."""

    def write(actor: str, session: str, **entity: str) -> None:
        request = {"entities": [{"type": "scenario", "title": "T", "status": "open", **entity}]}
        user.setenv("KB_ACTOR", actor)
        user.setenv("KB_SESSION", session)
        assert kb("apply", "-", stdin=json.dumps(request)).status == 0
        user.setenv("KB_ACTOR", "eve")

    for number, (actor, session) in enumerate(
        [("ann", "s1"), ("bot", "s2"), ("ann", "s1"), ("bot", "s2"), ("ann", "s3")]
    ):
        write(actor, session, id=f"S-{number}")
    return write


def scenarios(kb) -> list[str]:
    return [one["id"] for one in kb("query", "scenario", "--json").json["entities"] if one["id"].startswith("S-")]


def test_all_that_an_actor_wrote_is_undone_as_one_record(kb, two_writers):
    assert kb("revert", "--actor", "bot", "--dry-run").out == "Would change main at seq 6: 2 deleted.\n"
    assert kb("revert", "--actor", "bot").out == "main at seq 7: 2 deleted.\n"
    assert scenarios(kb) == ["S-0", "S-2", "S-4"]
    [last] = kb("log", "-n", "1", "--json").json["records"]
    assert last["message"] == "revert actor bot (2 records)"
    assert kb("revert", "7").status == 0
    assert scenarios(kb) == ["S-0", "S-1", "S-2", "S-3", "S-4"]


def test_a_session_or_a_time_limits_what_of_an_actor_is_undone(kb, two_writers):
    assert kb("revert", "--session", "s1", "--until", "3").out == "main at seq 7: 1 deleted.\n"
    assert kb("revert", "--actor", "ann", "--since", "4").out == "main at seq 8: 1 deleted.\n"
    assert scenarios(kb) == ["S-1", "S-2", "S-3"]


def test_what_an_actor_wrote_is_not_undone_where_later_work_of_others_rests_on_it(kb, two_writers):
    two_writers("bot", "s2", id="S-0", owner="bot")
    ran = kb("revert", "--actor", "ann")
    assert ran.status == 17
    assert "Record 7 changed `owner` of S-0" in ran.err
    assert scenarios(kb) == ["S-0", "S-1", "S-2", "S-3", "S-4"]
    assert kb("revert", "--actor", "ann", "--force").status == 0
    assert scenarios(kb) == ["S-1", "S-3"]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--actor", "bott"], 64, "Did you mean 'bot'?"),
        (["--actor", "bot", "--since", "6"], 64, "No record of a client is selected"),
        ([], 2, "Name the records by their seqs or points, or by --since, --until, --actor or --session"),
        (["2", "--actor", "bot"], 2, "and not by both"),
        (["2", "--since", "1"], 2, "and not by both"),
        (["--actor", ""], 2, "--actor is empty"),
    ],
)
def test_records_that_are_named_in_no_way_or_in_two_are_refused(kb, two_writers, words, status, said):
    ran = kb("revert", *words)
    assert (ran.status, said in ran.err) == (status, True), ran.err


def test_an_hour_is_taken_back_of_the_user_alone_and_a_dry_run_names_the_records(kb, two_writers, user):
    user.setenv("KB_ACTOR", "ann")
    shown = kb("revert", "--since", "1h", "--dry-run")
    assert shown.out == "Would change main at seq 6: 3 deleted.\n"
    assert "note: 3 records by 'ann': seq 2, seq 4, seq 6." in shown.err
    assert "note: '1h' is since " in shown.err
    assert "warning: '1h'" not in shown.err
    assert len(kb("revert", "--since", "1h", "--dry-run", "--json").json["points"]) == 2
    assert kb("revert", "--since", "1h").status == 0
    assert scenarios(kb) == ["S-1", "S-3"]


@pytest.mark.sliced
def test_force_takes_no_value_that_came_after_the_expected_record(kb, changed):
    kb("set", "SCN-1", "title=Device of a friend")
    assert kb("revert", "2", "--force", "--dry-run", "--expected-seq", "4").status == 0
    kb("set", "SCN-1", "title=Device of a neighbour")
    ran = kb("revert", "2", "--force", "--expected-seq", "4")
    assert ran.status == 12
    assert "'SCN-1' changed at seq 5, after 4." in ran.err
    for seq, said in (("-1", "There is no seq -1; the head is 5."), ("9", "There is no seq 9 yet; the head is 5.")):
        assert said in kb("revert", "2", "--force", "--expected-seq", seq).err
    assert kb("show", "SCN-1", "--json").json["entity"]["title"] == "Device of a neighbour"


@pytest.mark.sliced
def test_a_dry_run_of_a_revert_says_what_would_change_and_writes_nothing(kb, changed):
    ran = kb("revert", "3", "--dry-run")
    assert (ran.status, ran.out) == (0, "Would change main at seq 3: 1 updated.\n")
    assert owner(kb) == "ada"
    assert len(kb("log", "--json").json["records"]) == 3


@pytest.mark.sliced
def test_several_records_are_undone_by_one(kb, changed):
    answer = kb("revert", "2", "3", "--json").json
    assert (answer["seq"], answer["deleted"], answer["updated"]) == (4, ["SCN-1"], ["REQ-1"])


@pytest.mark.sliced
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


@pytest.mark.sliced
def test_a_way_back_of_nothing_but_what_is_known_of_a_file_does_not_say_that_nothing_changed(kb, changed):
    path = changed / "docs/requirements/login.md"
    path.write_text(path.read_text(encoding="utf-8") + "\nMore words.\n", encoding="utf-8")
    assert kb("sync").status == 0
    seq = kb("log", "--json").json["records"][0]["seq"]
    refused = kb("revert", str(seq))
    assert refused.status == 64
    assert f"Record {seq} changed no entity and no edge, only what is known of files" in refused.err
    assert kb("rollback", str(seq - 1)).out == f"main at seq {seq + 1}: only what is known of files.\n"


def test_records_that_are_not_there_are_refused(kb, changed):
    assert kb("revert", "99").status == 64
    assert kb("revert", "x").status == 2
    assert kb("revert").status == 2
    assert kb("rollback", "--to", "99").status == 64
    assert kb("rollback").status == 2


@pytest.mark.sliced
def test_a_rollback_brings_everything_back_and_erases_nothing(kb, changed):
    answer = kb("rollback", "--to", "1", "--json").json
    assert (answer["seq"], answer["deleted"], answer["updated"]) == (4, ["SCN-1"], ["REQ-1"])
    assert kb("diff", "1", "--json").json["entities"] == []
    assert kb("query", "--at", "3", "--json").json["total"] == 4


@pytest.mark.sliced
def test_what_files_state_is_warned_about_and_comes_back_with_the_next_sync(kb, changed):
    ran = kb("rollback", "--to", "0")
    assert ran.status == 0
    assert "warning: " in ran.err
    assert "docs/requirements/login.md" in ran.err
    assert kb("query", "--at", "4", "--json").json["total"] == 0
    assert kb("query", "--json").json["freshness"] == "overlay"
    kb("sync")
    assert kb("query", "--json").json["total"] == 3


@pytest.fixture
def without_document(kb, synced):
    """Records 4 to 6 change REQ-7 and an edge to it; its document was deleted since, and record 3 changes REQ-1."""
    document = synced / "docs/requirements/7.md"
    document.write_text("---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("sync").status == 0
    for key in ("REQ-1", "REQ-7"):
        request = {"entities": [{"id": key, "attributes": {"size": 1}}]}
        assert kb("apply", "-", stdin=json.dumps(request)).status == 0
    assert kb("link", "REQ-1", "depends_on", "REQ-7").status == 0
    assert kb("unlink", "REQ-1", "depends_on", "REQ-7").status == 0
    document.unlink()


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "afterwards"),
    [(("revert", "4"), 17), (("revert", "4", "3"), 17), (("revert", "6"), 17), (("rollback", "3"), 0)],
)
@pytest.mark.usefixtures("without_document")
def test_an_undo_that_changes_what_no_file_states_any_more_is_refused_until_that_is_recorded(kb, words, afterwards):
    for options in ((), ("--dry-run",)):
        ran = kb(*words, *options)
        assert (ran.status, "No file states 'REQ-7' any more" in ran.err) == (19, True)
        assert "hint: Run `kb sync` first." in ran.err
    assert len(kb("log", "--json").json["records"]) == 6
    assert kb("sync").status == 0
    ran = kb(*words)
    assert (ran.status, "REQ-7" in ran.err) == (afterwards, afterwards != 0)


@pytest.mark.sliced
@pytest.mark.usefixtures("without_document")
def test_an_undo_that_does_not_change_what_no_file_states_any_more_is_taken(kb):
    assert kb("revert", "3", "--json").json["updated"] == ["REQ-1"]
    assert kb("revert", "5", "--json").status == 0
    assert kb("rollback", "1", "--json").json["deleted"] == ["REQ-7"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("options", [(), ("--files",)])
@pytest.mark.parametrize("words", [("revert", "7"), ("rollback", "6")])
def test_an_undo_of_a_rename_in_a_document_that_was_deleted_is_refused_until_that_is_recorded(
    kb, synced, without_document, words, options
):
    document = synced / "docs/requirements/7.md"
    document.write_text("---\nid: REQ-7\ntitle: T\nstatus: open\n---\n")
    assert kb("rename", "REQ-7", "REQ-8").status == 0
    document.unlink()
    ran = kb(*words, *options)
    assert (ran.status, "docs/requirements/7.md is not there any more" in ran.err) == (19, True)
    assert "`kb sync` records that it is gone." in ran.err
