"""Suspect edges over renames: neither made nor taken away by one."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from kbcore.editing.undoing import undo
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.sync.overlay import WorktreeFiles
from kbcore.view.scratch_copy import scratch_copy
from tests.core.editing.renamed import FILES, LOGIN, files_after, renamed, target
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project


def suspects_of(project: Project) -> set[tuple[str, str, str]]:
    return {(one.from_id, one.type, one.to_id) for one in suspect_edges(project.view().rows)}


@pytest.fixture
def doubted(filled: Project) -> Project:
    """Change REQ-1, so that what files and clients state about it is suspect; REQ-2 is as it was."""
    filled.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-2"}])
    filled.sync({"docs/requirements/login.md": LOGIN.replace("Log in", "Sign in")})
    assert suspects_of(filled) == {
        ("REQ-2", "depends_on", "REQ-1"),
        ("S-1", "implements", "REQ-1"),
    }
    return filled


@pytest.mark.sliced
def test_a_rename_and_its_undoing_leave_suspect_edges_suspect_and_make_no_others_suspect(doubted: Project) -> None:
    before = suspects_of(doubted)
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in before}
    seq = renamed(doubted).outcome.seq
    assert suspects_of(doubted) == now
    assert not doubted.sync().outcome.applied
    renamed(doubted, "REQ-2", "REQ-8")
    assert suspects_of(doubted) == {tuple("REQ-8" if end == "REQ-2" else end for end in edge) for edge in now}
    renamed(doubted, "REQ-8", "REQ-2")
    undo(target(doubted), seq)
    assert suspects_of(doubted) == before


def test_a_suspect_edge_names_the_record_that_confirmed_it_and_not_a_rename(filled: Project) -> None:
    seq = filled.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-2"}]).seq
    renamed(filled, "REQ-2", "REQ-8")
    renamed(filled, "TEST-1", "TEST-9")
    filled.apply(entities=[{"id": "REQ-8", "severity": "high"}])
    renamed(filled, "REQ-8", "REQ-2")
    found = {(one.from_id, one.kind): one.confirmed_seq for one in suspect_edges(filled.view().rows)}
    assert found["TEST-9", "see"] == seq


@pytest.mark.sliced
def test_an_edge_that_is_confirmed_after_a_rename_is_not_suspect(doubted: Project) -> None:
    renamed(doubted)
    doubted.apply(edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-7"}])
    assert suspects_of(doubted) == {("S-1", "implements", "REQ-7")}


def test_a_rename_that_a_sync_takes_in_leaves_suspect_edges_suspect(doubted: Project) -> None:
    after = files_after(doubted)
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in suspects_of(doubted)}
    doubted.sync({"docs/requirements/login.md": after["docs/requirements/login.md"]})
    assert suspects_of(doubted) == now


def counted_suspects(project: Project, ids: list[str] | None = None) -> tuple[set[str], int]:
    """Return the entities that suspect edges come from, and how many statements it took to find them."""
    asked: list[str] = []
    view = project.view()

    def rows(sql: str, params: Any) -> list[tuple[Any, ...]]:
        asked.append(sql)
        return view.rows(sql, params)

    return {one.from_id for one in suspect_edges(rows, ids)}, len(asked)


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


@pytest.mark.sliced
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
    assert suspects_of(project) == set()
    renamed(project, "C-0", "D-0")
    renamed(project, "C-1", "D-1")
    assert suspects_of(project) == set()
    project.apply(entities=[{"id": "D-1", "title": "another"}])
    renamed(project, "D-1", "E-1")
    assert suspects_of(project) == {("A-1", "depends_on", "E-1")}


def test_an_edge_is_suspect_whose_target_a_sync_renames_and_changes_at_once(project: Project) -> None:
    project.sync(FILES)
    after = files_after(project)
    text = after["docs/requirements/login.md"]
    assert isinstance(text, bytes)
    assert suspects_of(project) == set()
    project.sync({**after, "docs/requirements/login.md": text.replace(b"Log in", b"Sign in")})
    assert ("S-1", "implements", "REQ-7") in suspects_of(project)


def test_an_edge_is_not_suspect_whose_target_a_sync_renames_and_moves_to_another_file(project: Project) -> None:
    project.sync(FILES)
    after = files_after(project)
    text = after.pop("docs/requirements/login.md")
    project.sync({**after, "docs/requirements/login.md": None, "docs/requirements/seven.md": text})
    assert project.node("REQ-1") is None
    assert suspects_of(project) == set()


def test_a_new_entity_with_the_earlier_id_of_another_one_has_no_part_in_its_history(doubted: Project) -> None:
    renamed(doubted)
    text = (doubted.root / "docs/requirements/login.md").read_text().replace("former_ids: [REQ-1]\n", "")
    doubted.sync({"docs/requirements/login.md": text})
    again = LOGIN.replace("Log in", "Anew")
    doubted.sync({"docs/requirements/again.md": again})
    doubted.apply(edges=[{"type": "relates_to", "kind": "see", "from": "TEST-1", "to": "REQ-1"}])
    before = {("REQ-2", "depends_on", "REQ-7"), ("S-1", "implements", "REQ-7")}
    assert suspects_of(doubted) == before
    doubted.sync({"docs/requirements/again.md": again.replace("Anew", "Newer")})
    assert suspects_of(doubted) == before | {("TEST-1", "relates_to", "REQ-1")}


@pytest.mark.sliced
def test_suspect_edges_are_the_same_in_every_view_and_at_every_seq(doubted: Project) -> None:
    known = {doubted.seq(): suspects_of(doubted)}
    for step in (
        lambda: renamed(doubted),
        lambda: renamed(doubted, "REQ-2", "REQ-8"),
        lambda: doubted.apply(entities=[{"id": "REQ-8", "priority": "must"}]),
        lambda: undo(target(doubted), doubted.seq() - 1),
        lambda: doubted.apply(edges=[{"type": "implements", "from": "S-1", "to": "REQ-7"}]),
    ):
        step()
        known[doubted.seq()] = suspects_of(doubted)
    moved = doubted.view().rows("select seq, moved from record order by seq")
    for cache in caches_at(doubted.root).iterdir():
        shutil.rmtree(cache) if cache.is_dir() else cache.unlink()
    again = Project(doubted.root, is_new=False)
    try:
        view = again.view()
        assert view.rows("select seq, moved from record order by seq") == moved
        for seq, edges in known.items():
            with scratch_copy(view, seq) as past:
                assert {(one.from_id, one.type, one.to_id) for one in suspect_edges(past.rows)} == edges, seq
    finally:
        again.close()


@pytest.mark.sliced
def test_a_rename_in_files_that_are_not_synced_leaves_suspect_edges_suspect(doubted: Project) -> None:
    now = {tuple("REQ-7" if end == "REQ-1" else end for end in edge) for edge in suspects_of(doubted)}
    doubted.write({"docs/requirements/login.md": files_after(doubted)["docs/requirements/login.md"]})
    workspace, files = doubted.workspace(), WorktreeFiles()
    try:
        found, freshness = files.read(
            workspace,
            "main",
            lambda view, state: (
                {(one.from_id, one.type, one.to_id) for one in suspect_edges(view.rows)},
                state.freshness,
            ),
            time_s=60.0,
        )
    finally:
        files.close()
    assert (found, freshness) == (now, "overlay")
