"""The law of going back with the files: records and files are as they were, whatever was renamed, set and put."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.editing.undoing import roll_back
from kbcore.errors import KBError
from kbcore.store.history.undo import UndoOptions, rollback
from kbcore.store.write_request import Author
from kbcore.view.history import state_at
from tests.support.generators.histories import content, laws
from tests.support.repository.project import Project, document

LAWS = laws(6)
FILES = {
    "docs/requirements/a.md": document("REQ-1", title="A", status="open", links="[REQ-2]"),
    "docs/requirements/b.md": document("REQ-2", title="B", status="open"),
    "docs/tests/t.md": "---\nid: TEST-1\ntype: test\ntitle: T\nlinks: [REQ-1, REQ-2]\n---\n",
}
ENTITIES = ("REQ-1", "REQ-2", "TEST-1", "OWN")
STEPS = st.one_of(
    st.tuples(st.just("rename"), st.sampled_from(ENTITIES), st.sampled_from(["N-1", "N-2", *ENTITIES])),
    st.tuples(st.just("set"), st.sampled_from(ENTITIES), st.sampled_from(["x", "y"])),
    st.tuples(st.just("put"), st.sampled_from(["OWN", "OTHER"]), st.sampled_from(["x", "y"])),
    st.tuples(st.just("back"), st.integers(0, 9), st.just("")),
)


def target(project: Project) -> WriteTarget:
    workspace = project.workspace()
    branch = workspace.head().branch
    return WriteTarget(workspace, branch, Author("ann", "cli", "kb/test"), workspace.store(branch).read, True)


def texts(project: Project) -> dict[str, bytes]:
    return {path: (project.root / path).read_bytes() for path in FILES}


def back(project: Project, seq: int) -> None:
    at = target(project)
    if roll_back(at, seq, UndoOptions()) is None:
        rollback(at.workspace, at.branch, at.author, seq, follows_head=True)


def carry_out(project: Project, kind: str, key: str | int, value: str) -> None:
    """Carry out a step; one that cannot be is refused and changes nothing."""
    if isinstance(key, int):
        back(project, 2 + key % (project.seq() - 1))
    elif kind == "put":
        fields = {"type": "req", "title": value, "status": "open"}
        project.apply(
            entities=[{"id": key, **fields}], edges=[{"type": "relates_to", "kind": "why", "from": key, "to": "REQ-2"}]
        )
    else:
        now = project.view().renamed([key]).get(key, key)
        if kind == "rename":
            rename(target(project), now, value)
        else:
            set_fields(target(project), now, [f"priority={value}"])


@pytest.mark.sliced
@LAWS
@given(st.lists(STEPS, max_size=5), st.integers(0, 9))
@example([("rename", "REQ-1", "N-1"), ("rename", "REQ-2", "N-2"), ("rename", "N-1", "REQ-7")], 0)
@example([("rename", "REQ-1", "N-1"), ("back", 0, ""), ("rename", "REQ-2", "N-1"), ("set", "OWN", "x")], 0)
@example([("put", "OTHER", "x"), ("rename", "OWN", "N-1"), ("rename", "TEST-1", "N-2"), ("put", "OTHER", "y")], 1)
def test_going_back_with_the_files_leaves_records_and_files_as_they_were(steps, chosen) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "repo")
        try:
            project.sync(FILES)
            # What the sets change is of the store: only renames are undone in files.
            owned = [{"id": key, "priority": "must"} for key in ("REQ-1", "REQ-2", "TEST-1")]
            own = {"id": "OWN", "type": "req", "title": "Own", "status": "open", "priority": "must"}
            edge = {"type": "relates_to", "kind": "why", "from": "OWN", "to": "REQ-1"}
            project.apply(entities=[*owned, own], edges=[edge])
            past = {project.seq(): texts(project)}
            for kind, key, value in steps:
                try:
                    carry_out(project, kind, key, value)
                except KBError as error:
                    assert error.code in {"integrity_violation", "invalid_query", "not_found"}  # noqa: PT017 - most steps work
                past[project.seq()] = texts(project)
            seqs = sorted(past)
            seq = seqs[chosen % len(seqs)]
            back(project, seq)
            view = project.view()
            assert content(state_at(view, view.seq)) == content(state_at(view, seq))
            assert texts(project) == past[seq]
            assert not project.sync(rebuild=True).outcome.applied
        finally:
            project.close()
