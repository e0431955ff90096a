"""Whose fact is it: what sync takes in, keeps, hands over and lets go."""

from __future__ import annotations

import os

import pytest

from kbcore.errors import BranchMoved, DerivedFact, InvalidQuery
from kbcore.store import branches
from kbcore.sync.answer import UnresolvedLink
from kbcore.sync.run import SyncOptions, check_worktree, sync
from tests.support.disk.unlistable import refuse_listing
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project, document, req
from tests.support.repository.repos import git

REQS = "docs/requirements"
TESTS = "docs/tests"


def test_a_sync_is_one_record_and_an_unchanged_one_writes_none(project: Project) -> None:
    files = {f"{REQS}/{number}.md": req(f"REQ-{number}") for number in range(5)}
    first = project.sync(files)
    assert (first.outcome.seq, len(first.outcome.created), first.changed) == (1, 5, 5)
    again = project.sync()
    assert (again.outcome.seq, again.outcome.applied, again.changed) == (1, False, 0)
    assert project.sync(rebuild=True).outcome.seq == 1


def test_a_changed_field_updates_only_its_entity_and_keeps_created_at(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    before = project.node("REQ-1")
    answer = project.sync({f"{REQS}/1.md": req("REQ-1", status="done")})
    after = project.node("REQ-1")
    assert answer.outcome.updated == ("REQ-1",)
    assert before
    assert after
    assert (after.fields["status"], after.created_at, after.created_seq) == ("done", before.created_at, 1)
    assert after.updated_at > before.updated_at
    assert project.node("REQ-2").version == 1


def test_a_file_owns_exactly_the_fields_that_it_states(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1", owner="ann", estimate="3")})
    project.apply(entities=[{"id": "REQ-1", "severity": "high", "attributes": {"note": "mine"}}])
    project.sync({f"{REQS}/1.md": req("REQ-1", priority="must")})
    fields = project.node("REQ-1").fields
    assert "owner" not in fields
    assert "attributes.estimate" not in fields
    assert (fields["severity"], fields["attributes.note"], fields["priority"]) == ("high", "mine", "must")


def test_a_client_cannot_change_what_a_file_states_and_the_error_names_the_file(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    with pytest.raises(DerivedFact) as refused:
        project.apply(
            entities=[{"id": "REQ-1", "title": "Mine"}, {"id": "REQ-2", "type": "req", "title": "T", "status": "x"}]
        )
    assert (refused.value.details[0].place, refused.value.details[0].path) == (f"{REQS}/1.md:3", "$.entities[0].title")
    assert f"{REQS}/1.md:3" in refused.value.message
    assert project.node("REQ-2") is None
    with pytest.raises(DerivedFact):
        project.delete(entities=[{"id": "REQ-1"}])
    assert project.seq() == 1


def test_a_client_may_repeat_what_a_file_states(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    outcome = project.apply(entities=[{"id": "REQ-1", "title": "Title of REQ-1", "owner": "bob"}])
    assert outcome.updated == ("REQ-1",)


def test_a_file_that_states_a_clients_field_takes_it_over_with_a_warning(project: Project) -> None:
    project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "From a client", "status": "open", "owner": "bob"}])
    answer = project.sync({f"{REQS}/1.md": req("REQ-1", owner="ann")})
    assert any("`owner` of REQ-1, which was 'bob'" in warning for warning in answer.outcome.warnings)
    node = project.node("REQ-1")
    assert (node.fields["owner"], node.owners["owner"]) == ("ann", f"{REQS}/1.md")
    assert node.created_seq == 1


def test_a_deleted_document_takes_its_entity_and_leaves_others_edges_unresolved(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2", links="[REQ-1]")})
    project.apply(edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}])
    answer = project.sync({f"{REQS}/1.md": None})
    assert answer.outcome.deleted == ("REQ-1",)
    assert project.edges("REQ-1") == {("REQ-2", "", "REQ-1", False), ("REQ-1", "depends_on", "REQ-2", False)}
    assert UnresolvedLink("REQ-2", "", "", "REQ-1", f"{REQS}/2.md", "REQ-2") in answer.unresolved
    back = project.sync({f"{REQS}/1.md": req("REQ-1")})
    assert back.unresolved == ()
    assert {resolved for *_, resolved in project.edges("REQ-1")} == {True}


def test_a_moved_document_moves_its_entity_without_a_deletion(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1", links="[REQ-2]"), f"{REQS}/2.md": req("REQ-2")})
    answer = project.sync({f"{REQS}/1.md": None, f"{REQS}/deep/one.md": req("REQ-1", links="[REQ-2]")})
    node = project.node("REQ-1")
    assert (answer.outcome.deleted, answer.outcome.created) == ((), ())
    assert (node.path, node.created_seq, node.source) == (f"{REQS}/deep/one.md", 1, f"{REQS}/deep/one.md")
    assert [one.src for one in project.link("REQ-1", "depends_on", "REQ-2").statements] == [f"{REQS}/deep/one.md"]


def test_a_document_that_moved_and_broke_is_owned_by_its_new_path(project: Project) -> None:
    project.sync({f"{REQS}/a.md": req("REQ-1", owner="ann", priority="must")})
    project.sync({f"{REQS}/a.md": None, f"{REQS}/b.md": "---\nid: REQ-1\ntitle: [broken\nstatus: open\n---\n"})
    assert set(project.node("REQ-1").owners.values()) == {f"{REQS}/b.md"}
    assert project.node("REQ-1").fields["owner"] == "ann"
    project.sync({f"{REQS}/b.md": req("REQ-1")})
    assert "owner" not in project.node("REQ-1").fields
    project.sync({f"{REQS}/b.md": None, f"{REQS}/c.md": req("REQ-1", type="odd")})
    assert project.node("REQ-1").path == f"{REQS}/c.md"
    project.sync({f"{REQS}/c.md": req("REQ-1", status="done")})
    assert project.node("REQ-1").fields["status"] == "done"
    assert project.sync({f"{REQS}/c.md": None}).outcome.deleted == ("REQ-1",)


def test_a_schema_that_learns_a_type_has_the_files_read_again(project: Project) -> None:
    answer = project.sync({f"{REQS}/1.md": req("X-1", type="risk", level="3")})
    assert [one.code for _, one in answer.problems] == ["unknown_type"]
    schema = "entities:\n  risk: {description: d, attributes: {level: {type: number}}}\n"
    project.sync({".kb/schema/risk.yaml": schema})
    assert project.node("X-1").fields["attributes.level"] == 3


def test_a_link_that_did_not_fit_is_made_when_the_other_end_is_corrected(project: Project) -> None:
    link = "[{type: verified_by, target: T-1}]"
    answer = project.sync({f"{REQS}/1.md": req("REQ-1", links=link), f"{TESTS}/1.md": req("T-1", type="adr")})
    assert [one.code for _, one in answer.problems] == ["endpoint_type"]
    assert project.sync({f"{TESTS}/1.md": req("T-1")}).problems == ()
    assert project.edges("REQ-1") == {("REQ-1", "verified_by", "T-1", True)}


def test_the_same_id_in_two_files_is_that_of_the_first_path_whichever_came_first(project: Project) -> None:
    project.sync({f"{REQS}/b.md": req("REQ-1", owner="b")})
    project.apply(entities=[{"id": "REQ-1", "severity": "high"}])
    for files in ({f"{REQS}/c.md": req("REQ-1", owner="c")}, {f"{REQS}/a.md": req("REQ-1", title="")}):
        answer = project.sync(files)
        assert (*files, "duplicate_id") in [(path, one.code) for path, one in answer.problems]
        assert project.node("REQ-1").fields["owner"] == "b"
    answer = project.sync({f"{REQS}/a.md": req("REQ-1", owner="a")})
    assert {(path, one.code) for path, one in answer.problems} == {(f"{REQS}/{at}.md", "duplicate_id") for at in "bc"}
    assert all(f"{REQS}/a.md" in one.message for _, one in answer.problems)
    assert project.node("REQ-1").fields["owner"] == "a"
    project.sync({f"{REQS}/a.md": None})
    assert project.node("REQ-1").fields["owner"] == "b"
    assert (project.node("REQ-1").fields["severity"], project.node("REQ-1").created_seq) == ("high", 1)


def test_a_file_that_has_an_id_and_is_not_read_whole_keeps_it(project: Project) -> None:
    project.sync({f"{REQS}/z.md": req("REQ-1", owner="ann")})
    before = project.node("REQ-1")
    broken = req("REQ-1", owner="ann").replace("owner: ann", "owner: [ann")
    answer = project.sync({f"{REQS}/z.md": broken, f"{REQS}/a.md": req("REQ-1", title="Copy")})
    assert (f"{REQS}/a.md", "duplicate_id") in [(path, one.code) for path, one in answer.problems]
    now = project.node("REQ-1")
    assert (now.path, now.fields) == (before.path, before.fields)


@pytest.mark.parametrize("is_gone", [False, True])
def test_an_id_whose_recorded_file_is_not_read_and_not_as_recorded_waits_for_it(
    project: Project, is_gone: bool
) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    project.write({f"{REQS}/1.md": None if is_gone else req("REQ-3"), f"{REQS}/2.md": req("REQ-1")})
    answer = project.sync(paths=(f"{REQS}/2.md",))
    assert [(path, one.code) for path, one in answer.problems] == [(f"{REQS}/2.md", "unrecorded_id")]
    assert f"in '{REQS}/1.md', which has changed or is gone since" in answer.problems[0][1].message
    assert project.sync().problems == ()
    assert project.node("REQ-1").path == f"{REQS}/2.md"


def test_an_id_whose_recorded_file_is_not_read_and_as_recorded_is_a_duplicate(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.write({f"{REQS}/2.md": req("REQ-1")})
    answer = project.sync(paths=(f"{REQS}/2.md",))
    assert [(path, one.code) for path, one in answer.problems] == [(f"{REQS}/2.md", "duplicate_id")]


def test_two_new_files_with_one_id_are_decided_by_path(project: Project) -> None:
    answer = project.sync({f"{REQS}/b.md": req("REQ-1", owner="b"), f"{REQS}/a.md": req("REQ-1", owner="a")})
    assert project.node("REQ-1").fields["owner"] == "a"
    assert [path for path, one in answer.problems if one.code == "duplicate_id"] == [f"{REQS}/b.md"]


def test_an_edge_exists_as_long_as_one_source_states_it(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1", links="[TEST-1]"), f"{TESTS}/1.md": req("TEST-1", links="[REQ-1]")})
    project.apply(edges=[{"type": "verified_by", "from": "REQ-1", "to": "TEST-1", "confidence": 0.5}])
    assert len(project.link("REQ-1", "verified_by", "TEST-1").statements) == 3
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{TESTS}/1.md": req("TEST-1")})
    link = project.link("REQ-1", "verified_by", "TEST-1")
    assert [one.source for one in link.statements] == ["cli"]
    assert link.fields == {"confidence": 0.5}
    project.delete(edges=[{"type": "verified_by", "from": "REQ-1", "to": "TEST-1"}])
    assert project.edges("REQ-1") == set()


def test_a_client_cannot_withdraw_a_files_edge(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1", links="[REQ-2]"), f"{REQS}/2.md": req("REQ-2")})
    with pytest.raises(DerivedFact, match=f"{REQS}/1.md"):
        project.delete(edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}])


def test_a_bare_link_takes_the_edge_that_fits_in_whichever_direction(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{TESTS}/1.md": req("TEST-1", links="[REQ-1]")})
    assert project.edges("REQ-1") == {("REQ-1", "verified_by", "TEST-1", True)}


def test_a_bare_link_to_an_unknown_id_becomes_an_edge_when_an_agent_creates_it(project: Project) -> None:
    answer = project.sync({f"{TESTS}/1.md": req("TEST-1", links="[REQ-9]")})
    assert answer.unresolved == (UnresolvedLink("TEST-1", "", "", "REQ-9", f"{TESTS}/1.md", "TEST-1"),)
    outcome = project.apply(entities=[{"id": "REQ-9", "type": "req", "title": "T", "status": "open"}])
    assert outcome.edges.created == 1
    assert project.edges("REQ-9") == {("REQ-9", "verified_by", "TEST-1", True)}
    project.sync(rebuild=True)
    assert project.seq() == 2, "the file's statement is known under its new edge"


def test_a_bare_link_whose_target_changes_its_type_changes_its_edge(project: Project) -> None:
    project.sync({f"{TESTS}/1.md": req("TEST-1", links="[X-1]"), f"{REQS}/1.md": req("X-1")})
    project.sync({f"{REQS}/1.md": req("X-1", type="component")})
    assert project.edges("X-1") == {("TEST-1", "relates_to", "X-1", True)}


def test_a_bad_file_is_reported_with_its_line_and_its_known_facts_are_kept(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1", owner="ann"), f"{REQS}/2.md": req("REQ-2")})
    bad = "---\nid: REQ-1\ntitle: [unclosed\nstatus: done\n---\n"
    answer = project.sync({f"{REQS}/1.md": bad, f"{REQS}/2.md": req("REQ-2", status="done")})
    path, problem = next(one for one in answer.problems if one[1].code == "invalid_yaml")
    assert (path, problem.line, answer.bad) == (f"{REQS}/1.md", 3, 1)
    assert problem.hint
    node = project.node("REQ-1")
    assert (node.fields["title"], node.fields["owner"]) == ("Title of REQ-1", "ann")
    assert project.node("REQ-2").fields["status"] == "done"
    assert not project.view().sources([f"{REQS}/1.md"])[0].is_ok
    again = project.sync()
    assert (again.changed, again.outcome.applied) == (0, False)
    assert [(path, one.code) for path, one in again.problems] == [(f"{REQS}/1.md", "invalid_yaml")]
    fixed = project.sync({f"{REQS}/1.md": req("REQ-1")})
    assert fixed.problems == ()
    assert fixed.bad == 0
    assert "owner" not in project.node("REQ-1").fields


def test_a_file_without_a_status_gets_the_types_default_and_a_client_may_set_it(project: Project) -> None:
    answer = project.sync({f"{TESTS}/1.md": document("TEST-1", title="T")})
    assert [(one.code, one.severity) for _, one in answer.problems] == [("default_status", "note")]
    assert project.node("TEST-1").fields["status"] == "active"
    project.apply(entities=[{"id": "TEST-1", "status": "flaky"}])
    project.sync({f"{TESTS}/1.md": document("TEST-1", title="Other")})
    assert project.node("TEST-1").fields["status"] == "flaky"


def test_a_status_that_a_file_stops_stating_falls_back_to_the_default(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.sync({f"{REQS}/1.md": document("REQ-1", title="Title of REQ-1")})
    node = project.node("REQ-1")
    assert node.fields["status"] == "draft"
    assert "status" not in node.owners


def test_only_the_named_paths_are_synced(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{TESTS}/1.md": req("TEST-1")}, paths=(REQS,))
    assert project.node("REQ-1")
    assert project.node("TEST-1") is None
    project.sync({f"{REQS}/1.md": None}, paths=(TESTS,))
    assert project.node("REQ-1"), "a file outside the named paths is not looked for"
    assert project.node("TEST-1")


def test_a_dry_run_says_what_would_happen_and_writes_nothing(project: Project) -> None:
    answer = project.sync({f"{REQS}/1.md": req("REQ-1")}, dry_run=True)
    assert (answer.outcome.created, answer.outcome.dry_run, answer.outcome.applied) == (("REQ-1",), True, False)
    assert project.seq() == 0
    assert project.sync().outcome.created == ("REQ-1",)


def test_stamps_and_cache_are_only_savings(project: Project) -> None:
    import shutil

    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.close()
    shutil.rmtree(caches_at(project.root))
    assert project.sync().outcome.seq == 1
    assert project.node("REQ-1")


def test_provenance_is_relative_to_the_repository(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    journal = next((stores_at(project.root) / "main").glob("journal-*.jsonl")).read_text()
    assert str(project.root) not in journal
    assert project.node("REQ-1").source == f"{REQS}/1.md"


def test_a_link_by_path_waits_for_the_document_it_names(project: Project) -> None:
    answer = project.sync({f"{REQS}/1.md": req("REQ-1", links="[2.md]")})
    assert [one.code for _, one in answer.problems] == ["unresolved_path"]
    project.sync({f"{REQS}/2.md": req("REQ-2")})
    assert project.edges("REQ-1") == {("REQ-1", "depends_on", "REQ-2", True)}


def test_a_symlink_out_of_the_repository_is_reported_and_not_read(project: Project) -> None:
    outside = project.root.parent / "secret.md"
    outside.write_text(req("REQ-1"))
    (project.root / REQS).mkdir(parents=True)
    (project.root / REQS / "1.md").symlink_to(outside)
    answer = project.sync()
    assert [one.code for _, one in answer.problems] == ["unreadable"]
    assert project.node("REQ-1") is None


def test_a_folder_that_cannot_be_listed_takes_nothing_away(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.sync({f"{REQS}/deep/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    project.write({f"{REQS}/2.md": None})
    refuse_listing(monkeypatch, "deep")
    answer = project.sync()
    assert [(path, one.code) for path, one in answer.problems] == [(f"{REQS}/deep", "unreadable")]
    assert answer.outcome.deleted == ("REQ-2",)
    assert project.node("REQ-1")


def test_a_link_to_a_folder_is_passed_over_and_said(project: Project) -> None:
    (project.root / "elsewhere").mkdir()
    (project.root / "elsewhere/1.md").write_text(req("REQ-1"))
    (project.root / REQS).mkdir(parents=True)
    (project.root / REQS / "linked").symlink_to(project.root / "elsewhere")
    answer = project.sync()
    assert [(path, one.code) for path, one in answer.problems] == [(f"{REQS}/linked", "passed_over")]


def test_sync_writes_only_to_the_branch_whose_files_it_reads(project: Project) -> None:
    git(project.root, "branch", "other")
    workspace = project.workspace()
    branches.ensure(workspace, "other")
    with pytest.raises(InvalidQuery, match="other"):
        check_worktree(workspace, "other")
    with pytest.raises(BranchMoved):
        sync(workspace, "other", AUTHOR, SyncOptions())


def test_a_name_that_is_no_text_is_reported_and_nothing_breaks(project: Project) -> None:
    folder = project.root / REQS / os.fsdecode(b"d\xfe")
    folder.mkdir(parents=True)
    (folder / os.fsdecode(b"\xff.md")).write_text(req("REQ-1"))
    (folder / "fine.md").write_text(req("REQ-2"))
    answer = project.sync()
    assert [one.code for _, one in answer.problems] == ["unreadable", "unreadable"]
    assert all(path.isprintable() for path, _ in answer.problems)
    assert project.sync().outcome.applied is False
    assert project.node("REQ-1") is None


def test_a_manifest_states_symbols_and_their_edges(project: Project) -> None:
    manifest = (
        "symbols:\n  - id: SYM-1\n    name: login\n    kind: function\n    file: src/a.py\n    line: 3\n"
        "    relationships:\n      - {type: implements, target: REQ-1}\n"
    )
    project.sync({f"{REQS}/1.md": req("REQ-1"), "symbols.yaml": manifest})
    assert project.node("SYM-1").fields["attributes.kind"] == "function"
    assert project.edges("SYM-1") == {("SYM-1", "implements", "REQ-1", True)}


def test_hostile_titles_and_tags_come_back_unchanged(project: Project) -> None:
    titles = ["ends in \\", 'it\'s, [a] {b} "c"', "two\nlines", "🚀 émoji", "\u202eright to left", "% _ ' -- ;"]
    tags = ["with space", "with,comma", "apo'strophe", "back\\slash"]
    for number, title in enumerate(titles):
        project.apply(entities=[{"id": f"it's {number}", "type": "req", "title": title, "status": "x", "tags": tags}])
    project.close()
    for number, title in enumerate(titles):
        node = project.node(f"it's {number}")
        assert (node.fields["title"], node.fields["tags"]) == (title, tags)


def test_of_two_files_with_one_id_the_one_that_can_be_taken_in_is_and_once_is_enough(project: Project) -> None:
    broken = "---\nid: X\ntitle: [\n---\n"
    assert not project.sync({f"{REQS}/a.md": broken, f"{REQS}/b.md": broken}).outcome.created
    assert not project.sync().outcome.applied
    assert project.sync({f"{TESTS}/c.md": req("X")}).outcome.created == ("X",)
    again = project.sync({f"{TESTS}/d.md": req("X")})
    assert [one.code for path, one in again.problems if path == f"{TESTS}/d.md"] == ["duplicate_id"]
    assert not project.sync().outcome.applied


def test_links_fit_the_type_of_the_file_that_comes_to_keep_an_id(project: Project) -> None:
    files = {f"{REQS}/r.md": document("R", title="R", status="open", links="[A]"), "docs/adr/a.md": req("A")}
    project.sync(files)
    project.sync({f"{TESTS}/b.md": req("A"), "docs/adr/c.md": req("A")})
    project.sync({"docs/adr/a.md": None})
    assert project.node("A").path == "docs/adr/c.md"
    assert project.edges("R") == {("R", "relates_to", "A", True)}
    project.sync({"docs/adr/c.md": None, f"{REQS}/z.md": req("A")})
    assert project.edges("R") == {("R", "depends_on", "A", True)}


def test_a_link_by_path_follows_the_document_when_it_gets_another_id_or_goes(project: Project) -> None:
    link = document("R", title="R", status="open", links="[a.md]")
    project.sync({f"{REQS}/r.md": link, f"{REQS}/a.md": req("A"), f"{REQS}/b.md": req("B")})
    project.sync({f"{REQS}/a.md": req("B"), f"{REQS}/b.md": req("A")})
    assert {edge[2] for edge in project.edges("R")} == {"B"}
    answer = project.sync({f"{REQS}/a.md": None})
    assert [one.code for path, one in answer.problems if path == f"{REQS}/r.md"] == ["unresolved_path"]
    for options in ({}, {"rebuild": True}):
        assert not project.sync(**options).outcome.applied


@pytest.mark.parametrize(
    ("links", "hint"),
    [
        ("[{verifies: [R]}]", "Write only the id, `links: [R]`: that is `verified_by` from R to T. A new edge type"),
        ("[{verified_by: [R]}]", "Write only the id, `links: [R]`: that is `verified_by` from R to T. Until then"),
        ("[{depend_on: [R]}]", "Did you mean 'depends_on'? A new edge type"),
    ],
)
def test_an_edge_that_leads_the_other_way_is_stated_by_the_id_alone(project: Project, links: str, hint: str) -> None:
    project.sync({"docs/requirements/r.md": req("R")})
    [(_, problem)] = project.sync({"docs/tests/t.md": document("T", title="T", status="active", links=links)}).problems
    assert problem.hint.startswith(hint)
    assert project.sync({"docs/tests/t.md": document("T", title="T", status="active", links="[R]")}).problems == ()
    assert ("R", "verified_by", "T", True) in project.edges("R")
