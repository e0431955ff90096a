"""A rename: files and records name the new id in one record, and a refused one changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.editing import renaming
from kbcore.editing.undoing import in_files, undo
from kbcore.errors import (
    DerivedFact,
    IntegrityViolation,
    InvalidChangeset,
    InvalidQuery,
    NotFound,
    NotSynced,
)
from kbcore.model.graph import Node
from kbcore.query import Query
from kbcore.query.empty_result import filters_of, unknown_ids
from kbcore.store.answers import EdgeCounts, summarize_at
from kbcore.store.history.authorship import authorship
from kbcore.store.history.compare import count_differences, diff, differences_from
from kbcore.store.history.log import RecordFilter, count_operations, log, no_such_entity, operations_from
from kbcore.store.history.touched import TouchedElement, touched
from kbcore.store.write_request import Author
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.view import View
from tests.core.editing.renamed import (
    CHECK,
    EDGE,
    FILES,
    LOGIN,
    LOGOUT,
    SYMBOLS,
    facts,
    files_after,
    renamed,
    target,
    texts,
)
from tests.support.disk.saving import seeing_calls, writing_before_lock
from tests.support.processes.cli import environment
from tests.support.repository.project import Project
from tests.support.repository.repos import git


def test_an_id_that_another_file_states_too_is_refused_with_that_file(filled: Project) -> None:
    filled.sync({"docs/requirements/other.md": LOGIN})
    before = texts(filled)
    for dry_run in (True, False):
        with pytest.raises(
            IntegrityViolation, match=r"'REQ-1' is the id in docs/requirements/other.md:2 too"
        ) as refused:
            renamed(filled, dry_run=dry_run)
        assert "Give that one another id" in refused.value.hint
    assert texts(filled) == before
    filled.sync({"docs/requirements/other.md": LOGIN.replace("REQ-1", "REQ-8")})
    assert renamed(filled).outcome.seq == filled.seq()
    assert filled.sync().problems == ()


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


@pytest.mark.sliced(1)
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
    assert touched(view, [3], limit=9)[3] == [TouchedElement("renamed", "REQ-7", was="REQ-1")]
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
    last, selection = filled.seq(), RecordFilter(actor="bob")
    for low, high, shown in ((first, last, "REQ-8"), (last, first, "REQ-1")):
        found = diff(filled.view(), low, high, changed_by=selection)
        assert [one["id"] for one in found["entities"]] == [shown]
        assert [(one["from"], one["to"]) for one in found["edges"]] == [(shown, "REQ-2")]


def test_a_rename_says_which_lines_of_tracked_files_still_name_the_earlier_id(filled: Project) -> None:
    filled.write({"src/a.py": "# kb: implements REQ-1\n", "src/b.py": "# REQ-1, REQ-10 and REQ-1-x\n# X-REQ-1\n"})
    git(filled.root, "add", "src", "docs/requirements")
    written = renamed(filled)
    places = "docs/requirements/login.md:9, docs/requirements/logout.md:8, src/a.py:1, src/b.py:1"
    said = f"4 lines in 4 files still name 'REQ-1': {places}. It still means 'REQ-7'."
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


@pytest.mark.sliced(2)
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


def test_a_former_id_names_no_new_entity_of_a_client_and_one_of_a_file_takes_it(filled: Project) -> None:
    renamed(filled)
    with pytest.raises(IntegrityViolation, match="is a former id of 'REQ-7'"):
        filled.apply(entities=[{"id": "REQ-1", "type": "req", "title": "T", "status": "open"}])
    with pytest.raises(NotFound):
        filled.delete(entities=[{"id": "REQ-1"}])
    with pytest.raises(IntegrityViolation, match="is a former id of 'REQ-7'"):
        renamed(filled, "REQ-2", "REQ-1")
    again = filled.sync({"docs/requirements/again.md": LOGIN})
    found = [(path, one.code) for path, one in again.problems if one.severity == "error"]
    assert found == [("docs/requirements/login.md", "claimed_id")]
    assert filled.node("REQ-1").path == "docs/requirements/again.md"
    assert "attributes.former_ids" not in filled.node("REQ-7").fields
    assert filled.sync({"docs/requirements/again.md": None}).outcome.deleted == ("REQ-1",)
    assert filled.view().renamed(["REQ-1"]) == {"REQ-1": "REQ-7"}


def test_an_edge_to_a_former_id_leads_to_the_entity(filled: Project) -> None:
    renamed(filled)
    outcome = filled.apply(edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}])
    assert outcome.warnings == (
        "'REQ-1' is called 'REQ-7' now.",
        "acyclic (error): depends_on forms a cycle: REQ-2 → REQ-7 → REQ-2.",
    )
    filled.sync({"docs/requirements/new.md": LOGOUT.replace("id: REQ-2", "id: REQ-3")})
    assert filled.link("REQ-3", "depends_on", "REQ-7").is_resolved
    assert filled.link("REQ-7", "depends_on", "REQ-2").is_resolved


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
        with pytest.raises(InvalidChangeset, match="`former_ids` is set by KB") as reported:
            filled.apply(entities=[{"id": key, "attributes": {"former_ids": value}}])
        assert [(one.path, one.code) for one in reported.value.details] == [
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


@pytest.mark.sliced
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


def test_an_entity_that_was_renamed_and_removed_is_gone_since_its_removal(project: Project) -> None:
    project.apply(entities=[{"id": "A", "type": "req", "title": "t", "status": "open"}])
    for old, new in (("A", "B"), ("B", "C")):
        renamed(project, old, new)
    project.apply(entities=[{"id": "D", "type": "req", "title": "t", "status": "open"}])
    assert no_such_entity(project.view(), "A").message == "'A' is called 'C' now."
    project.delete(entities=[{"id": "C"}])
    view = project.view()
    for key in ("A", "B"):
        assert no_such_entity(view, key).message == f"'{key}' was renamed to 'C', which was removed at seq 5."
        assert no_such_entity(view, key).hint == "`kb show 5` shows what happened."
    assert no_such_entity(view, "C").message == "'C' was removed at seq 5."
    assert [one.lacking() for one in filters_of(view, Query(ids=("A",)))] == [
        "'A' was renamed to 'C', which is gone since seq 5."
    ]


@pytest.mark.parametrize("is_synced", [False, True], ids=["in the files", "recorded"])
def test_an_id_that_no_file_states_any_more_as_a_former_one_is_that_of_a_renamed_entity(
    filled: Project, is_synced: bool
) -> None:
    renamed(filled, "REQ-1", "REQ-7")
    document = next(path for path in filled.root.rglob("*.md") if "former_ids: [REQ-1]" in path.read_text())
    document.write_text(document.read_text().replace("former_ids: [REQ-1]\n", ""))
    if is_synced:
        filled.sync()
    said = "'REQ-1' was renamed to 'REQ-7', and is no former id of it any more."

    def read(view: View) -> None:
        assert (no_such_entity(view, "REQ-1").message, no_such_entity(view, "REQ-1").hint) == (
            said,
            "`kb show REQ-7` shows it.",
        )
        assert unknown_ids(view, Query(ids=("REQ-1",))) == [said]
        with pytest.raises(NotFound, match="was renamed to 'REQ-7'"):
            authorship(view, "REQ-1")

    WorktreeFiles().read(filled.workspace(), "main", lambda view, _: read(view), time_s=60.0)
    if is_synced:
        with pytest.raises(NotFound, match="There is no entity 'REQ-1'; it was renamed to 'REQ-7'"):
            filled.apply(entities=[{"id": "REQ-1", "owner": "ann"}], mode="update")


@pytest.mark.parametrize("files", [2, 12])
def test_a_rename_asks_for_the_extractors_as_often_for_many_files_as_for_few(project: Project, files: int) -> None:
    texts = {f"docs/requirements/{n}.md": LOGOUT.replace("REQ-2", f"REQ-{n}") for n in range(2, files + 1)}
    project.sync({"docs/requirements/login.md": LOGIN, **texts})
    lock = project.workspace().folders.cache_dir / "no lock"
    with seeing_calls(lock, extractors_of.__code__) as calls:
        assert len(renamed(project, new="REQ-99").edits) == files
    assert len(calls) <= 3
