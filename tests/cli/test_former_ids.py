"""A former id, and an id of later, mean the entity in every command that takes an id, and the answer says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.rules import RULES
from tests.support.processes.cli import write
from tests.support.repository.repos import commit_files, git

NOW = "'REQ-1' is called 'REQ-7' now."
THEN = "'REQ-7' was called 'REQ-1' at seq 1."
DOCUMENT = "docs/requirements/login.md"


def rename_login(root: Path, kb: Callable[..., str]) -> None:
    kb("rename", "REQ-1", "REQ-7")
    kb("query")  # so that no copy has to build a view first


@pytest.fixture
def renamed(grown: Callable[..., Path]) -> Path:
    """The repository with documents, in which REQ-1 is called REQ-7."""
    return grown(rename_login)


@pytest.mark.sliced(6)
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["show", "REQ-1"], "REQ-7\n"),
        (["impact", "REQ-1"], "REQ-7 ← depends_on ← REQ-2"),
        (["graph", "REQ-1"], '["REQ-7'),
        (["check", "REQ-1"], f"{len(RULES)} rules ran"),
        (["log", "REQ-1", "--oneline"], "rename REQ-1 to REQ-7"),
        (["query", "--id", "REQ-1"], "REQ-7\t"),
        (["query", "--where", "id=REQ-1"], "REQ-7\t"),
        (["query", "--has", "depends_on:REQ-1"], "REQ-2\t"),
        (["query", "--from", "REQ-1", "--reverse"], "REQ-2\t"),
        (["query", "edge", "--where", "to=REQ-1"], "REQ-2\tdepends_on\tREQ-7"),
        (["query", "edge", "--where", "from=REQ-1 OR to=REQ-1"], "REQ-2\tdepends_on\tREQ-7"),
        (["set", "REQ-1", "title=T", "--dry-run"], "+title: T"),
        (["link", "REQ-1", "supersedes", "REQ-2", "--dry-run"], "edges: "),
        (["confirm", "REQ-1"], "nothing to change"),
        (["confirm", "REQ-2", "depends_on", "REQ-1"], "nothing to change"),
        (["kip", 'FIND(?a.id) WHERE {?a {id: "REQ-1"}}'], "REQ-7"),
        (["kip", 'FIND(?a.id) WHERE {?a {type: "Requirement", name: "REQ-1"}}'], "REQ-7"),
        (["kip", 'FIND(?a.id) WHERE {?a {name: "REQ-1"}}'], "REQ-7"),
        (["kip", 'FIND(?a.id) WHERE {(?a, "depends_on", {id: "REQ-1"})}'], "REQ-2"),
        (["kip", 'EXPORT ?a WHERE {?a {id: "REQ-1"}}'], "REQ-7"),
        (["kip", 'DESCRIBE NEIGHBOURHOOD {id: "REQ-1"}'], "REQ-7"),
    ],
    ids=lambda one: " ".join(one)[:40] if isinstance(one, list) else "",
)
def test_a_former_id_means_the_entity_and_the_answer_names_it_once(kb, renamed, words, shown):
    ran = kb(*words)
    assert ran.status == 0, ran.err
    assert shown in ran.out
    assert ran.err.count(NOW) == 1


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["query", "--id", "REQ-7"], "REQ-1\t"),
        (["query", "edge", "--where", "to=REQ-7"], "REQ-2\tdepends_on\tREQ-1"),
        (["impact", "REQ-7"], "REQ-1 ← depends_on ← REQ-2"),
        (["graph", "REQ-7"], '["REQ-1'),
    ],
)
def test_as_of_a_seq_before_the_rename_the_later_id_means_the_entity(kb, renamed, words, shown):
    kb("set", "REQ-7", "title=T")
    ran = kb(*words, "--at", "1")
    assert (ran.status, shown in ran.out, ran.err.count(THEN)) == (0, True, 1), ran.err
    ran = kb("query", "--id", "REQ-1", "--at", "2")
    assert ("REQ-7\t" in ran.out, "'REQ-1' was called 'REQ-7' at seq 2." in ran.err) == (True, True)
    assert "was called" not in kb("query", "--id", "REQ-1", "--at", "1").err
    ran = kb("kip", 'FIND(?a.id) WHERE {?a {id: "REQ-7"}} AT 1')
    assert ("REQ-1" in ran.out, THEN in ran.err) == (True, True)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("id_", ["REQ-1", "REQ-7"])
def test_the_log_of_an_entity_has_its_changes_under_its_former_id(kb, synced, id_):
    kb("set", "REQ-1", "priority=high")
    kb("link", "REQ-1", "supersedes", "REQ-2")
    kb("rename", "REQ-1", "REQ-7")
    for detail, name in (("--stat", "touched"), ("-p", "operations")):
        renamed, linked, changed, *_ = kb("log", id_, detail, "--json").json["records"]
        assert "REQ-7" in [one["id"] for one in renamed[name]]
        assert len(linked[name]) == 1
        assert [one["id"] for one in changed[name]] == ["REQ-1"]
    assert "~ REQ-1\n" in kb("log", id_).out
    assert "+ REQ-1 supersedes REQ-2\n" in kb("show", id_).out


@pytest.mark.sliced
def test_what_was_accepted_of_an_entity_stays_accepted_where_it_is_renamed(kb, synced):
    document = synced / DOCUMENT
    write(synced, {DOCUMENT: document.read_text().replace("id: REQ-1\n", "id: REQ-1\nlinks: [NONE-1]\n")})
    assert "NONE-1" in kb("sync").err
    assert "NONE-1" in kb("check").out
    kb("check", "--write-baseline")
    for renames in ((), ("rename", "REQ-1", "REQ-7")):
        assert not renames or kb(*renames).status == 0
        ran = kb("sync")
        assert "NONE-1" not in ran.out + ran.err
        assert "NONE-1" not in kb("check").out


@pytest.mark.sliced
def test_a_rename_makes_no_violation_new_since_a_point_or_for_a_commit(kb, synced):
    document = synced / DOCUMENT
    gone = document.read_text().replace("id: REQ-1\n", "id: REQ-1\nlinks: [NONE-1]\n")
    commit_files(
        synced, {DOCUMENT: gone, "docs/requirements/2.md": "---\nid: R-2\ntitle: T\nlinks: [REQ-1, NONE-2]\n---\n"}
    )
    kb("sync")
    before = kb("status", "--json").json["seq"]
    assert kb("rename", "REQ-1", "REQ-7").status == 0
    for asked in ((), ("--since", str(before)), ("--since", "HEAD")):
        found = kb("check", *asked, "--rule", "unresolved-reference", "--json").json
        assert [one["id"] for one in found["violations"]] == ([] if asked else ["R-2", "REQ-7"])
        assert found.get("fixed", []) == []
    git(synced, "add", "-A")
    found = kb("check", "--staged", "--rule", "unresolved-reference", "--json").json
    assert (found["violations"], found["fixed"]) == ([], [])
    write(synced, {DOCUMENT: document.read_text().replace("NONE-1", "NONE-1, NONE-3")})
    [new] = kb("check", "--since", str(before), "--rule", "unresolved-reference", "--json").json["violations"]
    assert new["values"][-1] == "NONE-3"


@pytest.mark.sliced
def test_the_history_goes_through_renames_and_names_them(kb, synced):
    kb("apply", "-", stdin='{"entities": [{"id": "REQ-1", "severity": "high"}]}')
    kb("rename", "REQ-1", "REQ-7")
    page = kb("show", "REQ-7").out
    history = page[page.index("History (3)") :]
    assert (
        history.index("> renamed from REQ-1") < history.index("severity: (none) -> high") < history.index("+ created")
    )
    assert "- deleted" not in page
    patch = kb("log", "REQ-7", "-p").out
    assert patch.index("> REQ-1 -> REQ-7") < patch.index("~ REQ-1 ") < patch.index("+ REQ-1 ")
    stat = kb("log", "REQ-7", "--stat").out
    assert stat.index("> REQ-1 -> REQ-7") < stat.index("~ REQ-1\n") < stat.index("+ REQ-1")


@pytest.mark.sliced
def test_an_entity_whose_rename_was_undone_has_one_history_and_is_not_gone(kb, renamed):
    kb("apply", "-", stdin='{"entities": [{"id": "REQ-7", "severity": "high"}]}')
    kb("revert", "2", "--files")
    page = kb("show", "REQ-1").out
    history = page[page.index("History (4)") :]
    assert history.index("> renamed from REQ-7") < history.index("severity") < history.index("> renamed from REQ-1")
    said = "'REQ-7' is called 'REQ-1' since seq 4, which undid its rename."
    assert said in kb("show", "REQ-7").err
    assert said in kb("query", "--id", "REQ-7").err
    kb("rename", "REQ-1", "REQ-8")
    assert said.replace("REQ-1", "REQ-8") in kb("show", "REQ-7").err


@pytest.mark.sliced
def test_confirm_says_that_a_rename_in_files_is_not_recorded_yet(kb, synced):
    path = synced / DOCUMENT
    kb("set", "REQ-1", "owner=ann")
    path.write_text(path.read_text().replace("id: REQ-1", "id: REQ-10\nformer_ids: [REQ-1]"))
    for words in (["REQ-10"], ["REQ-2", "depends_on", "REQ-10"], ["REQ-2"]):
        ran = kb("confirm", *words)
        assert ran.status != 0
        assert "is not recorded yet" in ran.err or "not recorded yet" in ran.err, ran.err
        assert "kb sync" in ran.err


def test_delete_names_the_file_that_states_what_no_record_has_yet(kb, synced):
    write(synced, {"docs/requirements/10.md": "---\nid: REQ-10\ntitle: T\nstatus: open\n---\n"})
    ran = kb("delete", "REQ-10", "--yes")
    assert "'docs/requirements/10.md' states 'REQ-10', but it is not recorded yet." in ran.err


@pytest.mark.sliced(1)
@pytest.mark.parametrize(("mode", "type_"), [("upsert", ""), ("update", ""), ("update", '"type": "req", ')])
def test_an_update_under_a_former_id_leads_to_the_entity_with_a_warning(kb, renamed, mode, type_):
    ran = kb("apply", "-", stdin=f'{{"entities": [{{"id": "REQ-1", {type_}"severity": "high"}}], "mode": "{mode}"}}')
    assert (ran.status, ran.err.count(NOW)) == (0, 1), ran.err
    assert "REQ-7\t" in kb("query", "--where", "severity=high").out


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "items",
    [
        '{"id": "REQ-1", "type": "req", "title": "T", "status": "open"}',
        '{"id": "REQ-1", "severity": "high", "create": true}',
        '{"id": "REQ-1", "severity": "high"}, {"id": "REQ-7", "severity": "low"}',
    ],
)
def test_what_could_make_an_entity_with_a_former_id_is_refused(kb, renamed, items):
    before = kb("status", "--json").json["seq"]
    ran = kb("apply", "-", stdin=f'{{"entities": [{items}]}}')
    assert "is a former id of 'REQ-7', and names no other entity." in ran.err
    assert (ran.status != 0, kb("status", "--json").json["seq"]) == (True, before)


@pytest.mark.parametrize("words", [["delete", "REQ-1", "--yes"], ["rename", "REQ-1", "REQ-8"]])
def test_a_deletion_and_a_rename_under_a_former_id_name_the_present_one(kb, renamed, words):
    ran = kb(*words)
    assert ran.status != 0
    assert NOW in ran.err
