"""A rename changes the id of an entity wherever it is named, and nothing else; the old id goes on to mean it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.editing import renaming
from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import in_files, rename, undo
from kbcore.editing.setting import SetResult
from kbcore.errors import (
    DerivedFact,
    IntegrityViolation,
    InvalidChangeset,
    InvalidQuery,
    NotFound,
    NotSynced,
    StaleBase,
)
from kbcore.model.graph import Node
from kbcore.query import Query
from kbcore.query.empty_result import filters_of
from kbcore.rules.stale_edges import stale_edges
from kbcore.store.answers import EdgeCounts, summarize_at
from kbcore.store.history.compare import count_differences, diff, differences_from
from kbcore.store.history.log import Selection, count_operations, log, missing, operations_from
from kbcore.store.history.touched import Touched, touched
from kbcore.store.write_request import Author
from kbcore.sync.begun_renames import BegunRename, begun, note_begun, read_begun
from kbcore.sync.overlay import WorktreeFiles
from kbcore.sync.pending import wanted
from kbcore.view.scratch_copy import scratch_copy
from tests.support.disk.saving import saving_while_written, seeing_calls, writing_before_lock
from tests.support.processes.cli import environment
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git

LOGIN = "---\nid: REQ-1  # never reused\ntitle: Log in\nstatus: open\n---\n# Log in\n\nSince REQ-1 was split.\n"
LOGOUT = "---\nid: REQ-2\ntitle: Log out\nstatus: open\ndepends_on:\n  - REQ-1 # first\n---\nsee REQ-1\n"
CHECK = "---\nid: TEST-1\ntitle: T\nstatus: active\nlinks: [REQ-1, REQ-10]\n---\n"
SYMBOLS = "symbols:\n- title: login\n  id: S-1\n  links:\n  - REQ-1\n"
FILES = {
    "docs/requirements/login.md": LOGIN,
    "docs/requirements/logout.md": LOGOUT,
    "docs/tests/t.md": CHECK,
    "docs/symbols.yaml": SYMBOLS,
}
EDGE = {"type": "relates_to", "kind": "example", "from": "REQ-1", "to": "REQ-2", "confidence": 0.5}


def target(project: Project) -> WriteTarget:
    branch = project.workspace().head().branch
    read = project.workspace().store(branch).read
    return WriteTarget(project.workspace(), branch, Author("ann", "cli", "kb/test"), read, follows_head=True)


def renamed(project: Project, old: str = "REQ-1", new: str = "REQ-7", **options: Any) -> SetResult:
    return rename(target(project), old, new, **options)


def texts(project: Project) -> dict[str, str]:
    return {path: (project.root / path).read_text() for path in FILES}


def facts(project: Project) -> tuple[dict[str, Any], set[tuple[Any, ...]]]:
    """Return what is stated now, by whom and when it was made, without seqs and times of updates."""
    view = project.view()
    nodes = {
        row[0]: row[1:]
        for row in view.rows("select id, type, title, status, priority, attributes, owners, path, created_at from node")
    }
    columns = "type, kind, from_id, to_id, is_resolved, confidence, statements, created_at, created_by"
    return nodes, set(view.rows(f"select {columns} from link"))


@pytest.fixture
def filled(project: Project) -> Project:
    project.sync(FILES)
    project.apply(entities=[{"id": "REQ-1", "priority": "must"}], edges=[EDGE])
    return project


def test_files_and_records_name_the_new_id_in_one_record_and_nothing_else_changes(filled: Project) -> None:
    nodes, links = facts(filled)
    written = renamed(filled)
    assert written.outcome.seq == filled.seq() == 3
    assert texts(filled) == {
        "docs/requirements/login.md": LOGIN.replace("id: REQ-1", "id: REQ-7").replace(
            "open\n", "open\nformer_ids: [REQ-1]\n"
        ),
        "docs/requirements/logout.md": LOGOUT.replace("- REQ-1", "- REQ-7"),
        "docs/tests/t.md": CHECK.replace("[REQ-1,", "[REQ-7,"),
        "docs/symbols.yaml": SYMBOLS.replace("REQ-1", "REQ-7"),
    }
    now_nodes, now_links = facts(filled)
    before, after = nodes.pop("REQ-1"), now_nodes.pop("REQ-7")
    assert now_nodes == nodes
    assert json.loads(after[4]) == {"former_ids": ["REQ-1"]}
    assert (after[:4], after[6:]) == (before[:4], before[6:])
    swapped = {
        tuple("REQ-7" if cell == "REQ-1" else str(cell).replace('"REQ-1"', '"REQ-7"') for cell in link)
        for link in links
    }
    assert {tuple(map(str, link)) for link in now_links} == swapped
    assert not filled.sync().outcome.applied  # the files say what is recorded
    assert not filled.sync(rebuild=True).outcome.applied


def test_running_text_stays_and_a_file_that_links_by_a_path_alone_is_not_written(filled: Project) -> None:
    linked = "Since REQ-1 see [out](logout.md).\n"
    far = "---\nid: FAR\ntitle: Far\nstatus: open\n---\nREQ-1 is [here](login.md), as [REQ-1] says.\n"
    filled.sync({"docs/requirements/login.md": LOGIN + linked, "docs/requirements/far.md": far})
    place = filled.root / "docs/requirements/far.md"
    written_ns = place.stat().st_mtime_ns
    done = renamed(filled)
    assert place.stat().st_mtime_ns == written_ns
    assert "docs/requirements/far.md" not in {edit.path for edit in done.edits}
    assert texts(filled)["docs/requirements/login.md"].endswith(linked)
    mentions = filled.view().rows("select from_id, to_id from link where type = 'mentions'")
    assert {*mentions} == {("REQ-7", "REQ-2"), ("FAR", "REQ-7")}
    assert filled.sync().is_idle


def test_a_dry_run_writes_neither_files_nor_records(filled: Project) -> None:
    before = texts(filled)
    planned = renamed(filled, dry_run=True)
    assert planned.outcome.renamed == {"REQ-1": "REQ-7"}
    assert (texts(filled), filled.seq()) == (before, 2)


@pytest.mark.parametrize("by_sync", [False, True])
def test_a_rename_counts_as_one_in_its_answer_and_in_the_history(filled: Project, by_sync: bool) -> None:
    outcome = filled.sync(files_after(filled)).outcome if by_sync else renamed(filled).outcome
    assert outcome.renamed == {"REQ-1": "REQ-7"}
    assert (outcome.created, outcome.updated, outcome.deleted) == ((), (), ())
    assert msgspec.structs.replace(outcome.edges, unchanged=0) == EdgeCounts()
    view = filled.view()
    summary = {"created": 0, "updated": 0, "deleted": 0, "renamed": 1, "edges": 0}
    assert log(view, limit=1)[0]["summary"] == summary
    assert summarize_at(view, 3).renamed == outcome.renamed
    assert touched(view, [3], limit=9)[3] == [Touched("renamed", "REQ-7", was="REQ-1")]
    assert count_operations(view, 3) == len([*operations_from(view, 3, 0, at_once=2)])
    for low, high in ((2, 3), (3, 2), (1, 3)):
        found = diff(view, low, high)
        [one] = [one for one in found["entities"] if one["change"] != "updated"]
        ids = ("REQ-1", "REQ-7") if low < high else ("REQ-7", "REQ-1")
        assert (one["change"], one["was"], one["id"]) == ("renamed", *ids)
        paged = [one for _, _, one in differences_from(view, low, high, 0, at_once=2)]
        assert sorted(map(str, paged)) == sorted(map(str, [*found["entities"], *found["edges"]]))
        assert count_differences(view, low, high) == len(paged)


@pytest.mark.parametrize("id_", ["REQ-1", "REQ-7"])
def test_a_diff_of_one_actor_has_what_this_actor_changed_under_earlier_ids(filled: Project, id_: str) -> None:
    first = filled.seq()
    renames = [("REQ-1", "REQ-7"), ("REQ-7", "REQ-8")]
    for old, new in renames:
        if old == id_:
            edge = EDGE | {"from": id_, "confidence": 0.75}
            filled.apply(author=Author("bob", "cli", "kb/test"), entities=[{"id": id_, "owner": "o"}], edges=[edge])
        renamed(filled, old, new)
    last, selection = filled.seq(), Selection(actor="bob")
    for low, high, shown in ((first, last, "REQ-8"), (last, first, "REQ-1")):
        found = diff(filled.view(), low, high, changed_by=selection)
        assert [one["id"] for one in found["entities"]] == [shown]
        assert [(one["from"], one["to"]) for one in found["edges"]] == [(shown, "REQ-2")]


def test_a_rename_says_which_lines_of_tracked_files_still_name_the_earlier_id(filled: Project) -> None:
    filled.write({"src/a.py": "# kb: implements REQ-1\n", "src/b.py": "# REQ-1, REQ-10 and REQ-1-x\n# X-REQ-1\n"})
    git(filled.root, "add", "src", "docs/requirements")
    written = renamed(filled)
    places = "docs/requirements/login.md:9, docs/requirements/logout.md:8, src/a.py:1, src/b.py:1"
    said = f"4 lines in 4 files still name 'REQ-1': {places}. It goes on to mean 'REQ-7'."
    assert written.outcome.warnings == (said,)


def test_the_former_ids_of_a_document_are_no_lines_that_still_name_the_earlier_id(project: Project) -> None:
    path = "docs/requirements/login.md"
    project.sync({path: "---\nid: REQ-1\ntitle: A\nstatus: open\nformer_ids:\n- REQ-0\n---\n"})
    git(project.root, "add", "docs")
    assert renamed(project).outcome.warnings == ()
    assert (project.root / path).read_text().endswith("former_ids:\n- REQ-0\n- REQ-1\n---\n")
    project.write({"a.py": "# REQ-7\n"})
    project.sync({path: (project.root / path).read_text() + "- REQ-7 in a list\n"})
    git(project.root, "add", "a.py")
    [said] = renamed(project, "REQ-7", "REQ-8").outcome.warnings
    assert said.startswith(f"2 lines in 2 files still name 'REQ-7': a.py:1, {path}:10.")


def test_an_undone_rename_leaves_every_file_and_every_fact_as_they_were(filled: Project) -> None:
    before, known = texts(filled), facts(filled)
    renamed(filled)
    shown = undo(target(filled), 3, dry_run=True)
    assert shown is not None
    assert "-id: REQ-7  # never reused\n+id: REQ-1  # never reused\n" in shown.edits[0].diff()
    assert filled.seq() == 3
    undo(target(filled), 3)
    assert (texts(filled), facts(filled)) == (before, known)
    assert not filled.sync().outcome.applied
    assert undo(target(filled), 2) is None


def test_a_revert_of_a_revert_renames_the_files_again(filled: Project) -> None:
    renamed(filled)
    after, known = texts(filled), facts(filled)
    undo(target(filled), 3)
    again = undo(target(filled), 4)
    assert again is not None
    assert (again.old, again.new, again.outcome.renamed) == ("REQ-1", "REQ-7", {"REQ-1": "REQ-7"})
    assert (texts(filled), facts(filled)) == (after, known)
    assert not filled.sync().outcome.applied
    undo(target(filled), 5)
    assert texts(filled) == FILES


def test_a_second_rename_keeps_both_former_ids_and_one_back_frees_none(filled: Project) -> None:
    renamed(filled)
    renamed(filled, "REQ-7", "REQ-8")
    assert filled.view().renamed(["REQ-1", "REQ-7", "REQ-8"]) == {"REQ-1": "REQ-8", "REQ-7": "REQ-8"}
    renamed(filled, "REQ-8", "REQ-1")
    assert filled.view().renamed(["REQ-1", "REQ-7", "REQ-8"]) == {"REQ-7": "REQ-1", "REQ-8": "REQ-1"}
    assert not filled.sync().outcome.applied


def test_an_entity_of_a_manifest_keeps_its_former_id_in_the_store(filled: Project) -> None:
    renamed(filled, "S-1", "S-2")
    assert (filled.root / "docs/symbols.yaml").read_text() == SYMBOLS.replace("S-1", "S-2")
    assert filled.view().renamed(["S-1"]) == {"S-1": "S-2"}
    assert not filled.sync().outcome.applied


def test_an_entity_that_no_file_names_is_renamed_in_the_store_alone(filled: Project) -> None:
    filled.apply(entities=[{"id": "A", "type": "symbol", "title": "a", "status": "active", "attributes": {"size": 3}}])
    written = renamed(filled, "A", "B")
    assert not written.edits
    node = filled.node("B")
    assert isinstance(node, Node)
    assert node.fields["attributes.size"] == 3
    assert filled.node("A") is None
    assert undo(target(filled), written.outcome.seq) is None  # the revert of any record does it


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("REQ-1", "REQ-2", IntegrityViolation),
        ("REQ-1", "REQ-1", InvalidQuery),
        ("REQ-1", " x", InvalidQuery),
        ("REQ-1", "{n}", InvalidQuery),
        ("REQ-1", "REQ-{m}", InvalidQuery),
        ("REQ-5", "REQ-6", NotFound),
        ("REQ-1", "a: b # c", DerivedFact),
    ],
)
def test_an_id_that_cannot_be_given_is_refused_and_nothing_is_written(
    filled: Project, old: str, new: str, error: type[Exception]
) -> None:
    before = texts(filled)
    with pytest.raises(error):
        renamed(filled, old, new)
    assert (texts(filled), filled.seq()) == (before, 2)


def test_a_new_id_that_ends_in_a_mark_gets_the_next_free_number_once(filled: Project) -> None:
    tried = renamed(filled, "REQ-2", "REQ-{n}", dry_run=True).outcome
    first = renamed(filled, "REQ-2", "REQ-{n}", changeset_id="c").outcome
    again = renamed(filled, "REQ-2", "REQ-{n}", changeset_id="c").outcome
    assert tried.renamed == first.renamed == again.renamed == {"REQ-2": "REQ-11"}
    assert tried.ids == first.ids == {"REQ-{n}": "REQ-11"}
    assert again.duplicate
    assert "id: REQ-11\n" in texts(filled)["docs/requirements/logout.md"]


def test_a_file_that_says_something_else_than_the_records_refuses_the_rename(filled: Project) -> None:
    filled.write({"docs/tests/t.md": CHECK.replace("active", "draft")})
    with pytest.raises(NotSynced, match=r"docs/tests/t\.md"):
        renamed(filled)
    assert (filled.root / "docs/requirements/login.md").read_text() == LOGIN


def test_a_former_id_names_no_new_entity_of_a_client_or_a_file(filled: Project) -> None:
    renamed(filled)
    with pytest.raises(IntegrityViolation, match="is a former id of 'REQ-7'"):
        filled.apply(entities=[{"id": "REQ-1", "type": "req", "title": "T", "status": "open"}])
    with pytest.raises(NotFound):
        filled.delete(entities=[{"id": "REQ-1"}])
    with pytest.raises(IntegrityViolation, match="is a former id of 'REQ-7'"):
        renamed(filled, "REQ-2", "REQ-1")
    again = filled.sync({"docs/requirements/again.md": LOGIN})
    assert [one.code for _, one in again.problems if one.severity == "error"] == ["former_id"]
    assert filled.node("REQ-1") is None


def test_an_edge_to_a_former_id_leads_to_the_entity(filled: Project) -> None:
    renamed(filled)
    outcome = filled.apply(edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}])
    assert outcome.warnings == (
        "'REQ-1' is called 'REQ-7' now.",
        "acyclic (error): depends_on goes in a circle: REQ-2 → REQ-7 → REQ-2.",
    )
    filled.sync({"docs/requirements/new.md": LOGOUT.replace("id: REQ-2", "id: REQ-3")})
    assert filled.link("REQ-3", "depends_on", "REQ-7").is_resolved
    assert filled.link("REQ-7", "depends_on", "REQ-2").is_resolved


def test_files_of_a_clone_that_lacks_the_record_resolve_a_former_id_that_a_document_states(project: Project) -> None:
    project.sync({"docs/requirements/logout.md": LOGOUT, "docs/requirements/login.md": LOGIN})
    moved = LOGIN.replace("id: REQ-1", "id: REQ-7").replace("open\n", "open\nformer_ids: [REQ-1]\n")
    project.sync({"docs/requirements/login.md": moved})
    assert project.link("REQ-2", "depends_on", "REQ-7").is_resolved
    project.sync({"docs/requirements/login.md": LOGIN})
    assert project.link("REQ-2", "depends_on", "REQ-1").is_resolved
    assert project.view().renamed(["REQ-1"]) == {}


def files_after(project: Project, old: str = "REQ-1", new: str = "REQ-7") -> dict[str, str | bytes | None]:
    """Return what a rename writes into the files, without writing it."""
    return {one.path: one.after for one in renamed(project, old, new, dry_run=True).edits}


def test_files_in_which_an_entity_was_renamed_elsewhere_keep_what_clients_stated_of_it(filled: Project) -> None:
    filled.apply(edges=[{"type": "implements", "from": "S-1", "to": "REQ-1", "attributes": {"by": "ann"}}])
    before = facts(filled)
    synced = filled.sync(files_after(filled))
    assert synced.outcome.warnings == ()
    assert (synced.outcome.renamed, synced.as_json()["deleted"]) == ({"REQ-1": "REQ-7"}, 0)
    assert filled.link("S-1", "implements", "REQ-7").fields["attributes.by"] == "ann"
    now = facts(filled)
    filled.sync(dict(FILES))
    assert facts(filled) == before
    renamed(filled)
    assert facts(filled) == now
    assert not filled.sync(rebuild=True).outcome.applied


def test_a_rename_that_git_merges_keeps_what_clients_stated_on_the_branch_that_takes_it_in(filled: Project) -> None:
    git(filled.root, "add", ".")
    git(filled.root, "commit", "-qm", "documents")
    filled.switch("f", create=True)
    filled.sync()
    renamed(filled)
    git(filled.root, "commit", "-qam", "rename")
    filled.switch("main")
    filled.apply(
        entities=[{"id": "REQ-1", "attributes": {"k": "mine"}}],
        edges=[{"type": "implements", "from": "S-1", "to": "REQ-1"}],
    )
    created_at = filled.node("REQ-1").created_at
    git(filled.root, "merge", "-q", "f")
    filled.sync()
    node = filled.node("REQ-7")
    assert (node.fields["attributes.k"], node.fields["priority"], node.created_at) == ("mine", "must", created_at)
    assert filled.link("S-1", "implements", "REQ-7").is_resolved
    assert filled.node("REQ-1") is None


def test_the_document_that_is_renamed_may_come_after_those_that_name_it(filled: Project) -> None:
    filled.apply(edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1", "attributes": {"by": "ann"}}])
    after = files_after(filled)
    own = after.pop("docs/requirements/login.md")
    filled.sync(after)
    filled.sync({"docs/requirements/login.md": own})
    link = filled.link("REQ-2", "depends_on", "REQ-7")
    assert (link.fields["attributes.by"], link.is_resolved) == ("ann", True)
    assert {one.src for one in link.statements} == {"", "docs/requirements/logout.md"}
    assert filled.node("REQ-7").fields["priority"] == "must"
    assert not filled.sync(rebuild=True).outcome.applied


def test_a_document_may_move_in_the_commit_that_renames_its_entity(filled: Project) -> None:
    own = files_after(filled)["docs/requirements/login.md"]
    filled.sync({"docs/requirements/login.md": None, "docs/requirements/sign-in.md": own})
    node = filled.node("REQ-7")
    assert (node.path, node.fields["priority"]) == ("docs/requirements/sign-in.md", "must")
    assert set(node.owners.values()) == {"docs/requirements/sign-in.md"}


def test_a_former_id_that_is_still_stated_stays_an_entity_of_its_own(filled: Project) -> None:
    other = LOGOUT.replace("id: REQ-2", "id: REQ-9\nformer_ids: [REQ-1]")
    filled.sync({"docs/requirements/logout.md": other})
    assert filled.node("REQ-1").fields["priority"] == "must"
    assert "priority" not in filled.node("REQ-9").fields


@pytest.mark.parametrize("last", ["docs/requirements/logout.md", "docs/tests/t.md"])
def test_a_rename_succeeds_where_a_watcher_records_the_files_while_they_are_written(filled: Project, last: str) -> None:
    filled.apply(edges=[{"type": "implements", "from": "S-1", "to": "REQ-1", "attributes": {"by": "ann"}}])
    other = Project(filled.root, is_new=False)
    try:
        with saving_while_written(last, other.sync):
            written = renamed(filled)
    finally:
        other.close()
    assert any("Another process recorded changes" in one for one in written.outcome.warnings)
    assert filled.node("REQ-7").fields["priority"] == "must"
    assert filled.link("S-1", "implements", "REQ-7").fields["attributes.by"] == "ann"
    assert filled.node("REQ-1") is None
    assert not filled.sync(rebuild=True).outcome.applied


def noted(project: Project) -> tuple[BegunRename, ...]:
    workspace = project.workspace()
    return read_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree)


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_sync_removes_the_note_of_a_rename_that_it_records_or_finds_recorded(
    filled: Project, is_recorded: bool
) -> None:
    written = renamed(filled, dry_run=not is_recorded)
    note = begun("REQ-1", "REQ-7", ("REQ-1",), [(edit.path, edit.after) for edit in written.edits])
    workspace = filled.workspace()
    note_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree, [note])
    files = {edit.path: edit.after for edit in written.edits}
    filled.sync(files, dry_run=True)
    assert noted(filled) == (note,)
    assert filled.sync(files).outcome.applied is not is_recorded
    assert noted(filled) == ()
    assert filled.view().renamed(["REQ-1"]) == {"REQ-1": "REQ-7"}


def test_a_sync_keeps_the_note_of_a_rename_that_is_not_recorded(filled: Project) -> None:
    note = begun("REQ-1", "REQ-7", ("REQ-1",), [("docs/requirements/login.md", b"not written yet")])
    workspace = filled.workspace()
    note_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree, [note])
    filled.sync()
    assert noted(filled) == (note,)


def test_a_rename_whose_files_are_put_back_leaves_no_note(filled: Project) -> None:
    before = texts(filled)

    def save() -> None:
        filled.write({"docs/tests/t.md": CHECK + "more\n"})

    with saving_while_written("docs/requirements/login.md", save), pytest.raises(StaleBase):
        renamed(filled)
    assert texts(filled) == before | {"docs/tests/t.md": CHECK + "more\n"}
    assert noted(filled) == ()


def test_the_files_that_an_undone_rename_changes_are_named_up_to_a_limit(filled: Project) -> None:
    more = {f"docs/requirements/m{number:02}.md": LOGOUT.replace("REQ-2", f"M-{number}") for number in range(20)}
    filled.sync(more)
    error = in_files(3, renamed(filled, dry_run=True).edits)
    assert len(error.message) < 500
    assert "and 14 more" in error.message


@pytest.mark.parametrize("value", ["REQ-30", ["REQ-30"], ["S-1", "REQ-30"]])
def test_a_client_cannot_keep_the_document_of_another_entity_out_by_former_ids(filled: Project, value: Any) -> None:
    renamed(filled, "S-1", "S-2")
    for key in ("REQ-2", "S-2"):
        with pytest.raises(InvalidChangeset, match="`former_ids` is set by KB") as told:
            filled.apply(entities=[{"id": key, "attributes": {"former_ids": value}}])
        assert [(one.path, one.code) for one in told.value.details] == [
            ("$.entities[0].attributes.former_ids", "set_by_kb")
        ]
    filled.sync({"docs/requirements/30.md": LOGOUT.replace("REQ-2", "REQ-30")})
    assert filled.node("REQ-30") is not None


def test_former_ids_stay_where_a_client_sends_an_entity_back_or_replaces_its_attributes(filled: Project) -> None:
    renamed(filled, "S-1", "S-2")
    assert not filled.apply(entities=[{"id": "S-2", "attributes": {"former_ids": ["S-1"]}}]).applied
    filled.apply(entities=[{"id": "S-2", "replace": True, "attributes": {"size": 3}}])
    assert filled.view().renamed(["S-1"]) == {"S-1": "S-2"}
    with pytest.raises(InvalidChangeset, match="`former_ids` is set by KB"):
        filled.apply(entities=[{"id": "S-2", "attributes": {"former_ids": None}}])


def hub(project: Project, edges: int) -> None:
    """Make an entity HUB that so many others link to."""
    leaves = [{"id": f"L-{at}", "type": "req", "title": "leaf", "status": "open"} for at in range(edges)]
    links = [{"type": "relates_to", "kind": "see", "from": leaf["id"], "to": "HUB"} for leaf in leaves]
    entity = {"id": "HUB", "type": "req", "title": "hub", "status": "open"}
    project.apply(entities=[entity, *leaves], edges=links)


def lock_of(project: Project) -> Path:
    return project.workspace().store("main").directory / "lock"


def test_a_rename_of_an_entity_with_many_edges_is_planned_before_the_branch_is_locked(project: Project) -> None:
    hub(project, 30)
    plan = next(one for one in renaming._planner.__code__.co_consts if getattr(one, "co_name", "") == "plan")
    with seeing_calls(lock_of(project), plan) as are_locked:
        renamed(project, "HUB", "HUB-2")
    assert are_locked == [False]
    assert len(project.edges("HUB-2")) == 30


@pytest.mark.parametrize(("end", "is_far"), [("HUB", False), ("OTHER", True)])
def test_what_another_process_writes_before_the_lock_is_kept_by_a_rename(
    project: Project, end: str, is_far: bool
) -> None:
    hub(project, 300)
    project.apply(entities=[{"id": key, "type": "req", "title": key, "status": "open"} for key in ("OTHER", "NEW")])
    other = Project(project.root, is_new=False)
    edge = {"type": "depends_on", "from": "NEW", "to": end}
    try:
        with writing_before_lock(lock_of(project), lambda: other.apply(edges=[edge])):
            outcome = renamed(project, "HUB", "HUB-2").outcome
    finally:
        other.close()
    assert outcome.seq == project.seq() == 4
    assert ("NEW", "depends_on", end if is_far else "HUB-2", True) in project.edges("NEW")
    assert len(project.edges("HUB-2")) == (300 if is_far else 301)
    assert project.link("L-7", "relates_to", "HUB-2").version == 4
    assert not project.edges("HUB")


def test_processes_that_rename_and_write_at_once_lose_nothing(project: Project) -> None:
    hub(project, 2000)

    def started(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "kbcli.app", "-C", str(project.root), *words]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(), text=True)

    running = [started("rename", "HUB", "HUB-2"), started("rename", "L-1", "L-ONE")]
    running += [started("link", f"L-{at}", "depends_on", "L-9") for at in range(20, 24)]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * len(running), said
    assert len(project.edges("HUB-2")) == 2000
    assert not project.edges("HUB")
    assert {one[0] for one in project.edges("L-9") if one[1] == "depends_on"} == {f"L-{at}" for at in range(20, 24)}
    assert ("L-ONE", "relates_to", "HUB-2", True) in project.edges("L-ONE")


@pytest.mark.parametrize("between", [None, LOGOUT.replace("REQ-2", "REQ-8")])
def test_client_facts_come_back_where_the_old_file_is_synced_as_gone_before_the_new_one_comes(
    filled: Project, between: str | None
) -> None:
    filled.apply(edges=[{"type": "implements", "from": "S-1", "to": "REQ-1", "attributes": {"by": "ann"}}])
    own = files_after(filled)["docs/requirements/login.md"]
    filled.sync({"docs/requirements/login.md": between})
    assert filled.node("REQ-1") is None
    assert not filled.link("S-1", "implements", "REQ-1").is_resolved
    answer = filled.sync({"docs/requirements/sign-in.md": own})
    node = filled.node("REQ-7")
    assert node is not None
    assert node.fields["priority"] == "must"
    assert any("REQ-7 is back, with what clients had stated of it: priority" in one for one in answer.outcome.warnings)
    link = filled.link("S-1", "implements", "REQ-7")
    assert (link.is_resolved, link.fields["attributes.by"]) == (True, "ann")
    assert not filled.edges("REQ-1")
    assert not filled.sync(rebuild=True).outcome.applied


def test_what_clients_stated_of_an_entity_that_was_renamed_since_does_not_come_to_another_one(filled: Project) -> None:
    filled.sync(files_after(filled))
    other = LOGOUT.replace("id: REQ-2", "id: REQ-9\nformer_ids: [REQ-1]")
    filled.sync({"docs/requirements/nine.md": other})
    assert filled.node("REQ-7").fields["priority"] == "must"
    assert "priority" not in filled.node("REQ-9").fields


def suspect_edges(project: Project) -> set[tuple[str, str, str]]:
    return {(one.from_id, one.type, one.to_id) for one in stale_edges(project.view().rows)}


@pytest.fixture
def doubted(filled: Project) -> Project:
    """Change REQ-1, so that what files and clients state about it is suspect; REQ-2 is as it was."""
    filled.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-2"}])
    filled.sync({"docs/requirements/login.md": LOGIN.replace("Log in", "Sign in")})
    assert suspect_edges(filled) == {
        ("REQ-2", "depends_on", "REQ-1"),
        ("S-1", "implements", "REQ-1"),
    }
    return filled


def test_a_rename_and_its_undoing_leave_suspect_edges_suspect_and_make_no_others_suspect(doubted: Project) -> None:
    before = suspect_edges(doubted)
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in before}
    seq = renamed(doubted).outcome.seq
    assert suspect_edges(doubted) == now
    assert not doubted.sync().outcome.applied
    renamed(doubted, "REQ-2", "REQ-8")
    assert suspect_edges(doubted) == {tuple("REQ-8" if end == "REQ-2" else end for end in edge) for edge in now}
    renamed(doubted, "REQ-8", "REQ-2")
    undo(target(doubted), seq)
    assert suspect_edges(doubted) == before


def test_a_suspect_edge_names_the_record_that_confirmed_it_and_not_a_rename(filled: Project) -> None:
    seq = filled.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-2"}]).seq
    renamed(filled, "REQ-2", "REQ-8")
    renamed(filled, "TEST-1", "TEST-9")
    filled.apply(entities=[{"id": "REQ-8", "severity": "high"}])
    renamed(filled, "REQ-8", "REQ-2")
    found = {(one.from_id, one.kind): one.confirmed_seq for one in stale_edges(filled.view().rows)}
    assert found["TEST-9", "see"] == seq


def test_an_edge_that_is_confirmed_after_a_rename_is_not_suspect(doubted: Project) -> None:
    renamed(doubted)
    doubted.apply(edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-7"}])
    assert suspect_edges(doubted) == {("S-1", "implements", "REQ-7")}


def test_a_rename_that_a_sync_takes_in_leaves_suspect_edges_suspect(doubted: Project) -> None:
    after = files_after(doubted)
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in suspect_edges(doubted)}
    doubted.sync({"docs/requirements/login.md": after["docs/requirements/login.md"]})
    assert suspect_edges(doubted) == now


def counted_suspects(project: Project, ids: list[str] | None = None) -> tuple[set[str], int]:
    """Return the entities that suspect edges come from, and how many statements it took to find them."""
    asked: list[str] = []
    view = project.view()

    def rows(sql: str, params: Any) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return view.rows(sql, params)

    return {one.from_id for one in stale_edges(rows, ids)}, len(asked)


def pairs(project: Project, count: int) -> None:
    """State requirements A-n that depend on B-n."""
    project.apply(
        entities=[
            {"id": f"{end}-{n}", "type": "req", "title": f"t{n}", "status": "open"}
            for end in "AB"
            for n in range(count)
        ],
        edges=[{"type": "depends_on", "from": f"A-{n}", "to": f"B-{n}"} for n in range(count)],
    )


def test_many_renames_take_no_more_statements_where_nothing_was_suspect_when_it_was_renamed(project: Project) -> None:
    pairs(project, 12)
    renamed(project, "B-0", "C-0")
    once = counted_suspects(project)
    for n in range(1, 12):
        renamed(project, f"B-{n}", f"C-{n}")
        renamed(project, f"C-{n}", f"D-{n}")
    assert once[0] == set()
    assert counted_suspects(project) == once
    assert counted_suspects(project, [link.id for link in project.view().touching(["D-3"])]) == once
    project.apply(entities=[{"id": "D-5", "title": "other"}])
    assert counted_suspects(project) == ({"A-5"}, once[1])


def test_edges_that_were_suspect_before_many_renames_take_no_more_statements(project: Project) -> None:
    pairs(project, 4)
    project.apply(entities=[{"id": f"B-{n}", "title": "other"} for n in range(4)])
    once = counted_suspects(project)
    for n in range(4):
        renamed(project, f"B-{n}", f"C-{n}")
    for n in range(8):
        renamed(project, f"{'D' if n else 'C'}-{n}", f"D-{n + 1}")
    renamed(project, "A-0", "A-9")
    assert once[0] == {"A-0", "A-1", "A-2", "A-3"}
    assert counted_suspects(project) == ({"A-9", "A-1", "A-2", "A-3"}, once[1])


def test_an_edge_confirmed_between_two_renames_is_not_suspect_after_them(project: Project) -> None:
    pairs(project, 2)
    project.apply(entities=[{"id": "B-0", "title": "other"}, {"id": "B-1", "title": "other"}])
    renamed(project, "B-0", "C-0")
    renamed(project, "B-1", "C-1")
    project.apply(entities=[{"id": "A-0", "title": "fits what it depends on now"}])
    project.apply(edges=[{"type": "depends_on", "from": "A-1", "to": "C-1"}])
    assert suspect_edges(project) == set()
    renamed(project, "C-0", "D-0")
    renamed(project, "C-1", "D-1")
    assert suspect_edges(project) == set()
    project.apply(entities=[{"id": "D-1", "title": "another"}])
    renamed(project, "D-1", "E-1")
    assert suspect_edges(project) == {("A-1", "depends_on", "E-1")}


def test_an_edge_is_suspect_whose_target_a_sync_renames_and_changes_at_once(project: Project) -> None:
    project.sync(FILES)
    after = files_after(project)
    text = after["docs/requirements/login.md"]
    assert isinstance(text, bytes)
    assert suspect_edges(project) == set()
    project.sync({**after, "docs/requirements/login.md": text.replace(b"Log in", b"Sign in")})
    assert ("S-1", "implements", "REQ-7") in suspect_edges(project)


def test_an_edge_is_not_suspect_whose_target_a_sync_renames_and_moves_to_another_file(project: Project) -> None:
    project.sync(FILES)
    after = files_after(project)
    text = after.pop("docs/requirements/login.md")
    project.sync({**after, "docs/requirements/login.md": None, "docs/requirements/seven.md": text})
    assert project.node("REQ-1") is None
    assert suspect_edges(project) == set()


def test_a_new_entity_with_the_earlier_id_of_another_one_has_no_part_in_its_history(doubted: Project) -> None:
    renamed(doubted)
    text = (doubted.root / "docs/requirements/login.md").read_text().replace("former_ids: [REQ-1]\n", "")
    doubted.sync({"docs/requirements/login.md": text})
    again = LOGIN.replace("Log in", "Anew")
    doubted.sync({"docs/requirements/again.md": again})
    doubted.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-1"}])
    before = {("REQ-2", "depends_on", "REQ-7"), ("S-1", "implements", "REQ-7")}
    assert suspect_edges(doubted) == before
    doubted.sync({"docs/requirements/again.md": again.replace("Anew", "Newer")})
    assert suspect_edges(doubted) == before | {("TEST-1", "relates_to", "REQ-1")}


def test_suspect_edges_are_the_same_in_every_view_and_at_every_seq(doubted: Project) -> None:
    known = {doubted.seq(): suspect_edges(doubted)}
    for step in (
        lambda: renamed(doubted),
        lambda: renamed(doubted, "REQ-2", "REQ-8"),
        lambda: doubted.apply(entities=[{"id": "REQ-8", "priority": "must"}]),
        lambda: undo(target(doubted), doubted.seq() - 1),
        lambda: doubted.apply(edges=[{"type": "implements", "from": "S-1", "to": "REQ-7"}]),
    ):
        step()
        known[doubted.seq()] = suspect_edges(doubted)
    moved = doubted.view().rows("select seq, moved from record order by seq")
    for cache in caches_at(doubted.root).iterdir():
        shutil.rmtree(cache) if cache.is_dir() else cache.unlink()
    again = Project(doubted.root, is_new=False)
    try:
        view = again.view()
        assert view.rows("select seq, moved from record order by seq") == moved
        for seq, edges in known.items():
            with scratch_copy(view, seq) as past:
                assert {(one.from_id, one.type, one.to_id) for one in stale_edges(past.rows)} == edges, seq
    finally:
        again.close()


def test_a_rename_in_files_that_are_not_synced_leaves_suspect_edges_suspect(doubted: Project) -> None:
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in suspect_edges(doubted)}
    doubted.write({"docs/requirements/login.md": files_after(doubted)["docs/requirements/login.md"]})
    workspace, files = doubted.workspace(), WorktreeFiles()
    try:
        found, freshness = files.read(
            workspace,
            "main",
            lambda view, state: (
                {(one.from_id, one.type, one.to_id) for one in stale_edges(view.rows)},
                state.freshness,
            ),
            time_s=60.0,
        )
    finally:
        files.close()
    assert (found, freshness) == (now, "overlay")


def test_an_entity_that_was_renamed_and_removed_is_gone_since_its_removal(project: Project) -> None:
    project.apply(entities=[{"id": "A", "type": "req", "title": "t", "status": "open"}])
    for old, new in (("A", "B"), ("B", "C")):
        renamed(project, old, new)
    project.apply(entities=[{"id": "D", "type": "req", "title": "t", "status": "open"}])
    assert missing(project.view(), "A").message == "'A' is called 'C' now."
    project.delete(entities=[{"id": "C"}])
    view = project.view()
    for key in ("A", "B"):
        assert missing(view, key).message == f"'{key}' was renamed to 'C', which is gone since seq 5."
        assert missing(view, key).hint == "`kb show 5` shows what happened."
    assert missing(view, "C").message == "'C' is gone since seq 5."
    assert [one.lacking() for one in filters_of(view, Query(ids=("A",)))] == [
        "'A' was renamed to 'C', which is gone since seq 5."
    ]


@pytest.mark.parametrize("files", [2, 12])
def test_a_rename_asks_for_the_extractors_as_often_for_many_files_as_for_few(project: Project, files: int) -> None:
    texts = {f"docs/requirements/{n}.md": LOGOUT.replace("REQ-2", f"REQ-{n}") for n in range(2, files + 1)}
    project.sync({"docs/requirements/login.md": LOGIN, **texts})
    lock = project.workspace().folders.cache_dir / "no lock"
    with seeing_calls(lock, wanted.__code__) as calls:
        assert len(renamed(project, new="REQ-99").edits) == files
    assert len(calls) <= 3
