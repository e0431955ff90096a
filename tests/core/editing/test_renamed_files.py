"""A rename that comes with files: from a clone, a merge, a watcher or a killed command."""

from __future__ import annotations

import pytest

from kbcore.errors import DerivedFact, StaleBase
from kbcore.sync.begun_renames import BegunRename, begun, note_begun, read_begun
from tests.core.editing.renamed import (
    CHECK,
    FILES,
    LOGIN,
    LOGOUT,
    facts,
    files_after,
    renamed,
    texts,
)
from tests.support.disk.saving import saving_while_written
from tests.support.repository.project import Project
from tests.support.repository.repos import git


def test_files_of_a_clone_that_lacks_the_record_resolve_a_former_id_that_a_document_states(project: Project) -> None:
    project.sync({"docs/requirements/logout.md": LOGOUT, "docs/requirements/login.md": LOGIN})
    moved = LOGIN.replace("id: REQ-1", "id: REQ-7").replace("open\n", "open\nformer_ids: [REQ-1]\n")
    project.sync({"docs/requirements/login.md": moved})
    assert project.link("REQ-2", "depends_on", "REQ-7").is_resolved
    project.sync({"docs/requirements/login.md": LOGIN})
    assert project.link("REQ-2", "depends_on", "REQ-1").is_resolved
    assert project.view().renamed(["REQ-1"]) == {}


@pytest.mark.parametrize("head", ["", "---\nowner: ann\n---\n"], ids=["no front matter", "id from the file's name"])
def test_a_document_that_cannot_be_renamed_names_an_edit_that_keeps_what_clients_stated(
    project: Project, head: str
) -> None:
    config = '{"extractors": {"markdown": {"idFromFilename": true}}}'
    body, name = "# Use A\n\n- Status: accepted\n", "docs/adr/0001-a.md"
    project.sync({".kb/config.json": config, name: head + body})
    project.apply(entities=[{"id": "0001-a", "severity": "high"}])
    with pytest.raises(DerivedFact) as refused:
        renamed(project, "0001-a", "ADR-1")
    lines = "id: ADR-1", "former_ids: [0001-a]"
    assert refused.value.hint.startswith(
        f"Write `{lines[0]}` and `{lines[1]}` into the front matter of '{name}' in one"
    )
    project.sync({name: f"---\n{lines[0]}\n{lines[1]}\n---\n{body}"})
    assert project.node("ADR-1").fields["severity"] == "high"
    assert project.node("0001-a") is None


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


@pytest.mark.sliced(1)
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


@pytest.mark.sliced(1)
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
    assert any(
        "REQ-7 takes over REQ-1, with what clients had stated of it: priority" in one for one in answer.outcome.warnings
    )
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


def test_a_refusal_of_a_rename_names_the_line_that_would_say_something_else(project: Project) -> None:
    name = "docs/requirements/x.md"
    link = "  - {{type: relates_to, kind: see, target: {}, note: REQ-1}}"
    text = f"---\nid: X\ntitle: x\nstatus: open\ndepends_on: REQ-1\nlinks:\n{link}\n---\n"
    project.sync({"docs/requirements/login.md": LOGIN, name: text.format("REQ-1")})
    with pytest.raises(DerivedFact, match=f"{name}:7: ") as refused:
        renamed(project, "REQ-1", "REQ-7")
    assert refused.value.hint == (
        "Name 'REQ-7' in this link by hand, and run `kb sync`: it is unresolved then. Then rename again."
    )
    project.sync({name: text.format("REQ-7")})
    renamed(project, "REQ-1", "REQ-7")
    edges = {("X", "depends_on", "REQ-7", True), ("X", "relates_to", "REQ-7", True)}
    assert project.edges("REQ-7") == edges


def test_a_refusal_of_a_rename_names_the_entity_that_would_say_something_else(project: Project) -> None:
    name = "docs/symbols.yaml"
    text = "symbols:\n  - {id: a, file: src/a.py}\n  - {id: b, file: src/b.py, owner: b}\n"
    project.sync({name: text})
    with pytest.raises(DerivedFact, match=f"{name}:3: ") as refused:
        renamed(project, "b", "c")
    assert "another entity" in refused.value.hint
