"""`kb rename`, and its undoing by `kb revert` and `kb rollback`."""

from __future__ import annotations

import json

import pytest

from tests.cli.editing import DOCUMENT, client, read_all, records, shown, suspect
from tests.support.processes.cli import DOCUMENTS, LOGIN, write
from tests.support.repository.repos import git


def naming(new):
    """Return the documents that link to REQ-1, with another id in its place."""
    return {path: text.replace("REQ-1", new) for path, text in DOCUMENTS.items() if path != DOCUMENT}


@pytest.mark.sliced
def test_a_renamed_entity_is_found_and_its_history_shown_under_both_ids(kb, synced):
    ran = kb("rename", "REQ-1", "REQ-7")
    assert ran.out.startswith("main at seq 2: 1 renamed (REQ-1 -> REQ-7).\nWritten: ")
    assert kb("show", "REQ-1").out.startswith("REQ-7\n")
    assert shown(kb, "REQ-1")["id"] == "REQ-7"
    assert [one["seq"] for one in kb("log", "REQ-7", "--json").json["records"]] == [2, 1]
    assert kb("query", "--has", "depends_on:REQ-1", "--json").json["entities"][0]["id"] == "REQ-2"
    assert kb("query", "--id", "REQ-1", "--at", "1", "--json").json["entities"][0]["id"] == "REQ-1"
    assert "'REQ-1' is called 'REQ-7' now." in kb("rename", "REQ-1", "REQ-8").err
    assert "former id" in kb("new", "req", "--title", "T", "--id", "REQ-1").err
    following = kb("id", "next", "req")
    assert (following.status, following.out) == (0, "REQ-8\n"), following


@pytest.mark.sliced
@pytest.mark.parametrize(("name", "place"), [("z.md", "z.md:2"), ("a.md", "a.md")])
def test_an_id_that_a_file_states_too_which_is_not_synced_is_refused(kb, synced, name, place):
    write(synced, {f"docs/requirements/{name}": LOGIN})
    for options in ([], ["--dry-run"]):
        ran = kb("rename", "REQ-1", "REQ-7", *options)
        assert (ran.status, f"the id in docs/requirements/{place} too" in ran.err) == (11, True)
    assert (synced / DOCUMENT).read_text() == LOGIN


@pytest.mark.sliced
def test_a_former_id_names_what_to_set_and_to_confirm(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    assert kb("set", "REQ-1", "title=Log in again").status == 0
    assert (shown(kb, "REQ-7")["title"], suspect(kb)) == ("Log in again", 1)
    assert kb("confirm", "REQ-2", "depends_on", "REQ-1").status == 0
    assert suspect(kb) == 0


@pytest.mark.sliced
def test_a_revert_of_a_rename_shows_the_change_of_the_files_and_makes_it_when_asked(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    for options in ([], ["--dry-run"]):
        ran = kb("revert", "2", *options)
        assert ran.status == 15
        assert "-id: REQ-7\n+id: REQ-1\n" in ran.out
        assert "`kb revert 2 --files`" in ran.err
    assert kb("revert", "2", "--files", "--dry-run").status == 0
    assert kb("revert", "2", "--json").error["files"][0]["path"] == DOCUMENT
    assert len(records(kb)) == 2
    assert kb("revert", "2", "--files").status == 0
    assert (synced / DOCUMENT).read_text() == LOGIN
    assert shown(kb, "REQ-1")["id"] == "REQ-1"
    assert kb("sync", "--json").json["seq"] == 3


@pytest.mark.sliced
def test_a_rename_before_another_one_is_refused_by_name_and_undone_once(kb, synced):
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-7", "REQ-8")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "REQ-7 was renamed to REQ-8 by record 3." in ran.err) == (17, True)
    assert kb("revert", "3", "--files").status == 0
    assert kb("revert", "2", "--files").status == 0
    assert "Record 2 is undone already" in kb("revert", "2", "--files").err
    assert (synced / DOCUMENT).read_text() == LOGIN


@pytest.mark.sliced(1)
@pytest.mark.parametrize("files", [[], ["--files"]])
def test_a_rename_that_files_name_is_undone_by_itself_alone(kb, synced, files):
    kb("rename", "REQ-1", "REQ-7")
    client(kb)
    ran = kb("revert", "3", "2", *files)
    assert (ran.status, "Undo it by itself, with the files: `kb revert 2 --files`." in ran.err) == (15, True)
    assert (len(records(kb)), shown(kb, "REQ-9")["id"]) == (3, "REQ-9")
    client(kb, "REQ-10")
    assert kb("revert", "4", "3", *files).status == 0


def renamed_login(title="Log in", new="REQ-11"):
    return LOGIN.replace("id: REQ-1", f"id: {new}\nformer_ids: [REQ-1]").replace("Log in\nstatus", f"{title}\nstatus")


@pytest.mark.sliced
def test_a_rollback_that_renamed_what_files_name_and_more_is_undone_in_the_steps_that_its_revert_names(kb, synced):
    files = {path: (synced / path).read_text() for path in DOCUMENTS}
    kb("rename", "REQ-1", "REQ-11")
    kb(
        "apply",
        "-",
        stdin=json.dumps(
            {"entities": [{"id": one, "type": "req", "title": one, "status": "open"} for one in ("N-1", "N-2")]}
        ),
    )
    ran = kb("rollback", "1", "--files")
    assert (ran.status, {path: (synced / path).read_text() for path in DOCUMENTS}) == (0, files)
    assert kb("sync", "--json").json["seq"] == 4
    for options in [], ["--files"], ["--dry-run"], ["--force"]:
        ran = kb("revert", "4", *options)
        assert ran.status == 15
        assert "It renamed what files name: REQ-11 to REQ-1. It changed more: N-1 (deleted), N-2 (deleted)." in ran.err
        assert "`kb rename REQ-1 REQ-11` gives the earlier id back, in the files too. Then `kb revert 4`" in ran.err
    assert len(records(kb)) == 4
    assert kb("revert", "4", "--json").error["renamed"] == {"REQ-11": "REQ-1"}
    assert kb("rename", "REQ-1", "REQ-11").status == 0
    ran = kb("revert", "4", "--files")
    assert (ran.status, ran.out) == (0, "main at seq 6: 2 created.\n")
    assert "--files changed no file" in ran.err
    assert [shown(kb, one)["id"] for one in ("N-1", "N-2", "REQ-11")] == ["N-1", "N-2", "REQ-11"]


@pytest.mark.sliced
def test_a_sync_of_a_rename_and_a_title_is_not_undone_in_part(kb, synced):
    write(synced, {DOCUMENT: renamed_login("Enter"), **naming("REQ-11")})
    kb("sync")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "It changed more: `title` of REQ-11." in ran.err) == (15, True)
    assert "title: Enter" in (synced / DOCUMENT).read_text()
    kb("rename", "REQ-11", "REQ-1")
    ran = kb("revert", "2")
    assert (ran.status, f"This changes facts of files: {DOCUMENT}." in ran.err) == (0, True)
    assert ran.out == "main at seq 4: 1 updated.\n"


@pytest.mark.sliced
def test_a_sync_of_two_renames_is_undone_by_two(kb, synced):
    logout = DOCUMENTS["docs/requirements/logout.md"]
    both = naming("REQ-11")["docs/requirements/logout.md"].replace("id: REQ-2", "id: REQ-12\nformer_ids: [REQ-2]")
    write(synced, {DOCUMENT: renamed_login(), **naming("REQ-11"), "docs/requirements/logout.md": both})
    kb("sync")
    ran = kb("revert", "2", "--files")
    assert (ran.status, "`kb rename REQ-11 REQ-1`, `kb rename REQ-12 REQ-2` give the earlier" in ran.err) == (15, True)
    assert "undoes the rest" not in ran.err
    kb("rename", "REQ-11", "REQ-1")
    assert kb("revert", "2", "--files").status == 0  # nothing but the other one is left
    assert (synced / "docs/requirements/logout.md").read_text() == logout
    assert "Record 2 is undone already" in kb("revert", "2").err


def test_a_sync_of_a_rename_and_a_move_of_its_document_is_undone_in_the_file(kb, synced):
    moved = "docs/requirements/enter.md"
    write(synced, {DOCUMENT: None, moved: renamed_login(), **naming("REQ-11")})
    kb("sync")
    assert kb("revert", "2", "--files").status == 0
    assert (synced / moved).read_text() == LOGIN
    assert kb("sync", "--json").json["seq"] == 3


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "left"), [(["2", "--force"], ["REQ-8"]), (["3", "2"], ["REQ-8"]), (["1", "2", "3"], [])]
)
def test_a_rename_whose_entity_was_deleted_since_is_reverted_together_with_others(kb, ready, words, left):
    client(kb, "REQ-8")
    kb("rename", "REQ-8", "REQ-9")
    kb("delete", "REQ-9", "--yes")
    ran = kb("revert", "2")
    assert (ran.status, "Record 3 removed REQ-9." in ran.err, "`kb revert 3 2`" in ran.err) == (17, True, True)
    assert kb("revert", *words).status == 0
    assert [one["id"] for one in kb("query", "--json").json["entities"]] == left


@pytest.mark.parametrize("words", [["4", "3", "2"], ["2", "3", "4"]])
def test_a_revert_of_a_rename_and_of_the_removal_since_changes_the_links_in_the_other_files(kb, synced, words):
    others = naming("REQ-1")
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-7", "REQ-9")
    write(synced, {DOCUMENT: None})
    kb("sync")
    renamed = {path: (synced / path).read_text() for path in others}
    linking = {path for path, text in others.items() if "REQ-1" in text}
    ran = kb("revert", *words, "--files", "--dry-run")
    assert (ran.status, ran.out.count("+++ ")) == (0, len(linking))
    assert {path: (synced / path).read_text() for path in others} == renamed
    ran = kb("revert", *words, "--files")
    assert (ran.status, "--files changed no file" in ran.err) == (0, False)
    assert f"This changes facts of files: {DOCUMENT}. " in ran.err
    assert {path: (synced / path).read_text() for path in others} == others
    assert kb("diff", "1", "--json").json["entities"] == []
    write(synced, {DOCUMENT: LOGIN})
    assert kb("sync", "--json").json["seq"] == 5


def test_a_forced_revert_of_a_rename_changes_a_link_that_was_made_since(kb, synced):
    new = "docs/requirements/new.md"
    kb("rename", "REQ-1", "REQ-9")
    write(synced, {new: "---\nid: REQ-5\ntitle: N\nstatus: open\nlinks: [REQ-9]\n---\nWas REQ-9.\n"})
    kb("sync")
    write(synced, {DOCUMENT: None})
    kb("sync")
    before = (synced / new).read_text()
    assert kb("revert", "2", "--files").status == 17
    assert (synced / new).read_text() == before
    assert kb("revert", "2", "--force", "--files").status == 0
    assert (synced / new).read_text() == before.replace("[REQ-9]", "[REQ-1]")
    write(synced, {DOCUMENT: LOGIN})
    kb("sync")
    assert [(one["to"], "unresolved" in one) for one in kb("show", "REQ-5", "--json").json["edges"]] == [
        ("REQ-1", False)
    ]


@pytest.mark.sliced
def test_a_rollback_over_renames_shows_the_change_of_the_files_and_makes_it_when_asked(kb, synced):
    before = read_all(synced)
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-2", "REQ-8")
    kb("rename", "REQ-7", "REQ-9")
    renamed = read_all(synced)
    for options in ([], ["--dry-run"]):
        ran = kb("rollback", "1", *options)
        assert ran.status == 15
        assert "-id: REQ-9\n" in ran.out
        assert "+id: REQ-1\n" in ran.out
        assert "`kb rollback 1 --files`" in ran.err
    assert {one["path"] for one in kb("rollback", "1", "--json").error["files"]} == {*before}
    ran = kb("rollback", "1", "--files", "--dry-run")
    assert (ran.status, "+id: REQ-1\n" in ran.out) == (0, True)
    assert "Would change main at seq 4: 2 renamed (REQ-8 -> REQ-2, REQ-9 -> REQ-1).\n" in ran.out
    assert (read_all(synced), len(records(kb))) == (renamed, 4)
    ran = kb("rollback", "1", "--files")
    assert (ran.status, ran.err) == (0, "")
    assert "Written: " in ran.out
    assert read_all(synced) == before
    assert kb("diff", "1", "--json").json["entities"] == []
    assert kb("sync", "--json").json["seq"] == 5


@pytest.mark.sliced
def test_a_rollback_over_the_rename_of_an_entity_whose_document_is_gone_changes_the_links_in_the_other_files(
    kb, synced
):
    others = naming("REQ-1")
    kb("rename", "REQ-1", "REQ-7")
    kb("rename", "REQ-7", "REQ-9")
    write(synced, {DOCUMENT: None})
    kb("sync")
    linking = {path for path, text in others.items() if "REQ-1" in text}
    ran = kb("rollback", "1", "--json")
    assert (ran.status, {one["path"] for one in ran.error["files"]}) == (15, linking)
    ran = kb("rollback", "1", "--files")
    assert (ran.status, "--files changed no file" in ran.err) == (0, False)
    assert {path: (synced / path).read_text() for path in others} == others
    assert kb("diff", "1", "--json").json["entities"] == []
    write(synced, {DOCUMENT: LOGIN})
    assert kb("sync", "--json").json["seq"] == 5


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_back", [False, True], ids=["deleted", "undone, then deleted"])
def test_a_rollback_changes_no_file_for_an_entity_that_has_its_earlier_id_again_or_that_no_file_names(
    kb, synced, is_back
):
    client(kb, "N-1")
    kb("rename", "N-1", "N-2")
    if is_back:
        kb("rename", "N-2", "N-1")
    kb("delete", "N-1" if is_back else "N-2", "--yes")
    ran = kb("rollback", "2", "--files")
    assert (ran.status, "--files changed no file" in ran.err) == (0, True)
    assert shown(kb, "N-1")["id"] == "N-1"
    assert read_all(synced) == DOCUMENTS


@pytest.mark.sliced
def test_a_rollback_takes_every_point_and_says_which_seq_is_meant(kb, synced):
    git(synced, "add", "-A")
    git(synced, "commit", "-qm", "one")
    git(synced, "commit", "-qm", "two", "--allow-empty")
    client(kb)
    ran = kb("rollback", "now", "--dry-run")
    assert (ran.status, "seq 2 is the last record until then." in ran.err) == (0, True)
    assert "nothing to change" in ran.out
    ran = kb("rollback", "--to", "now")
    assert (ran.status, "seq 2 is the last record until then." in ran.err) == (0, True)
    ran = kb("rollback", "1", "--dry-run")
    assert (ran.status, ran.out) == (0, "Would change main at seq 2: 1 deleted.\n")
    assert len(records(kb)) == 2
    assert kb("rollback", "HEAD", "--dry-run", "--json").json["points"]
    assert kb("rollback", "nowhere").status == kb("diff", "nowhere").status
    for words in [], ["1", "--to", "1"], [""]:
        assert kb("rollback", *words).status in {2, 64}
    ran = kb("rollback", "1", "--files")
    assert (ran.status, ran.out) == (0, "main at seq 3: 1 deleted.\n")
    assert "--files changed no file" in ran.err
