"""The edges that a write makes suspect are those that the rule finds after it and did not find before it."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks import judge
from kbcore.checks.branch_files import tree_of
from kbcore.checks.introduced import written
from kbcore.checks.introduced.compare import introduced
from kbcore.editing.documents import WriteTarget, commit, framed
from kbcore.editing.file_edits import FileEdit
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.rules import CheckReport
from kbcore.view.view import View
from tests.support.generators.histories import laws
from tests.support.repository.project import AUTHOR, Project, req

FIRST, SECOND, SYMBOLS = "docs/requirements/a.md", "docs/requirements/b.md", "docs/symbols.yaml"
FILES = {
    FIRST: req("REQ-1"),
    SECOND: req("REQ-2", depends_on="[REQ-1]"),
    SYMBOLS: "symbols:\n- {id: S, title: S, links: [REQ-1]}\n- {id: T, title: T, links: [REQ-2]}\n",
}
CLIENT = "REQ-3"
EDGE = {"type": "depends_on", "from": CLIENT, "to": "REQ-1"}


@pytest.fixture
def filled(project: Project) -> Project:
    fill(project)
    return project


def fill(project: Project) -> None:
    project.sync(FILES)
    project.apply(entities=[{"id": CLIENT, "type": "req", "title": CLIENT, "status": "open"}], edges=[EDGE])


def target(project: Project) -> WriteTarget:
    workspace = project.workspace()
    return WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=True)


def set_(project: Project, key: str, *words: str, dry_run: bool = False) -> list[str]:
    """Return the warnings of suspect edges that setting fields gives."""
    return suspects(set_fields(target(project), key, words, dry_run=dry_run).outcome.warnings)


def suspects(warnings: Sequence[str]) -> list[str]:
    return [one for one in warnings if one.startswith("suspect-edge")]


def found_since(project: Project, seq: int) -> list[str]:
    """Return the warnings that the rule itself gives, run over everything at a seq and now."""
    workspace, now = project.workspace(), project.view()

    def found(view: View) -> CheckReport:
        return judge(workspace, view, tree_of(workspace, "main"), only=["suspect-edge"], is_own=True)

    with workspace.store("main").view_until(seq) as before:
        return [*written.by_rule(introduced(found(before), found(now), now.renamed).report.violations)]


def test_a_field_set_in_a_document_makes_the_edges_to_it_suspect(filled: Project) -> None:
    expected = "suspect-edge (warning): REQ-2 depends_on REQ-1, but REQ-1 has changed at seq 3; "
    for dry_run in (True, False):
        [warning] = set_(filled, "REQ-1", "status=draft", dry_run=dry_run)
        assert warning.startswith(expected)
        assert "(2 more; " in warning
    assert found_since(filled, 2) == [warning]
    assert set_(filled, "REQ-1", "status=open") == [], "its fields are again what was confirmed, but not its text"


def test_a_document_that_was_put_back_is_what_was_confirmed(filled: Project) -> None:
    filled.sync({FIRST: req("REQ-1", body="more")})
    filled.sync({FIRST: FILES[FIRST]})
    assert found_since(filled, 2) == []
    outcome = filled.apply(entities=[{"id": "REQ-1", "owner": "ann"}])
    assert suspects(outcome.warnings) == found_since(filled, 4) != []


@pytest.mark.sliced
def test_an_edge_to_another_text_is_suspect_and_is_not_said_again(filled: Project) -> None:
    filled.sync({FIRST: FILES[FIRST] + "More.\n"})
    assert found_since(filled, 2) != []
    assert set_(filled, "REQ-1", "status=draft") == found_since(filled, 3) == []
    assert suspects(filled.apply(entities=[{"id": "REQ-1", "owner": "ann"}]).warnings) == []


@pytest.mark.sliced
def test_a_document_with_another_text_alone_makes_the_edges_to_it_suspect(filled: Project) -> None:
    edit = FileEdit(FIRST, FILES[FIRST].encode(), FILES[FIRST].replace("open", "'open'").encode())
    for dry_run in (True, False):
        outcome = commit(target(filled), [edit], framed(target(filled), message="m", dry_run=dry_run))
        assert len(suspects(outcome.warnings)) == 1
    assert suspects(outcome.warnings) == found_since(filled, 2)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ends", [("REQ-1", "REQ-9"), (CLIENT, "REQ-8")], ids=["target", "source"])
def test_an_edge_that_was_suspect_before_a_rename_is_not_said_after_it(filled: Project, ends: tuple[str, str]) -> None:
    set_(filled, "REQ-1", "status=draft")
    rename(target(filled), *ends)
    key = ends[1] if ends[0] == "REQ-1" else "REQ-1"
    assert suspects(filled.apply(entities=[{"id": key, "owner": "ann"}]).warnings) == found_since(filled, 4) == []
    assert set_(filled, key, "title=Other") == []


@pytest.mark.sliced(1)
@pytest.mark.parametrize("ends", [("REQ-1", "REQ-9"), (CLIENT, "REQ-8")], ids=["target", "source"])
def test_an_edge_that_was_not_suspect_before_a_rename_is_said_after_it(filled: Project, ends: tuple[str, str]) -> None:
    rename(target(filled), *ends)
    key = ends[1] if ends[0] == "REQ-1" else "REQ-1"
    [warning] = suspects(filled.apply(entities=[{"id": key, "owner": "ann"}]).warnings)
    assert [warning] == found_since(filled, 3)


@pytest.mark.sliced
def test_an_edge_that_was_suspect_before_its_file_moved_is_not_said_after_it(filled: Project) -> None:
    set_(filled, "REQ-1", "status=draft")
    filled.sync({SECOND: None, "docs/requirements/moved.md": FILES[SECOND]})
    assert suspects(filled.apply(entities=[{"id": "REQ-1", "owner": "ann"}]).warnings) == found_since(filled, 4) == []


_STATUS = st.sampled_from(["draft", "open"])
_KEY = st.sampled_from(["REQ-1", "REQ-2", CLIENT])
_step = st.one_of(
    st.tuples(st.just("set"), _KEY, st.builds("status={}".format, _STATUS)),
    st.tuples(st.just("set"), _KEY, st.builds("title={}".format, st.sampled_from(["Other", "Title"]))),
    st.tuples(st.just("apply"), _KEY, st.sampled_from(["ann", "bob"])),
    st.tuples(st.just("write"), st.sampled_from([FIRST, SECOND]), st.sampled_from(["", "More.\n"])),
    st.tuples(st.just("restore"), st.sampled_from(sorted(FILES)), st.just("")),
    st.tuples(st.just("confirm"), st.just("REQ-1"), st.just("")),
    st.tuples(st.just("rename"), _KEY, st.just("REQ-10")),
)


@pytest.mark.sliced
@laws(15)
@given(st.lists(_step, min_size=2, max_size=7))
def test_the_warnings_are_those_of_the_rule_run_whole_before_and_after(steps: list[tuple[str, str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "repo")
        fill(project)
        for step in steps:
            seq = project.seq()
            warnings = taken(project, *step)
            if warnings is not None and project.seq() > seq:
                assert warnings == found_since(project, seq), f"{step} at seq {seq} of {steps}"
        project.close()


def taken(project: Project, what: str, name: str, value: str) -> list[str] | None:
    """Carry out a step, and return its warnings of suspect edges; None for one that has none by design."""
    now = present(project)
    if what == "set":
        tried = set_(project, now[name], value, dry_run=True)
        done = set_(project, now[name], value)
        assert tried == done
        return done
    if what == "apply":
        return suspects(project.apply(entities=[{"id": now[name], "owner": value}]).warnings)
    if what == "confirm":
        edge = EDGE | {"from": now[CLIENT], "to": now["REQ-1"]}
        return suspects(project.apply(edges=[edge]).warnings)
    if what == "rename":
        rename(target(project), now[name], f"{value}{project.seq()}")
        return None
    text = (project.root / name).read_text()
    content: Any = text.removesuffix("More.\n") + value if what == "write" else _restored(name, text, now)
    project.sync({name: content})
    return None


def present(project: Project) -> dict[str, str]:
    """Return the ids that entities have now by those that they had first."""
    keys = ["REQ-1", "REQ-2", CLIENT]
    return dict.fromkeys(keys) | {key: key for key in keys} | project.view().renamed(keys)


def _restored(name: str, present_text: str, now: dict[str, str]) -> str:
    """Return the first text of a file with the ids of now, and with the former ids that it states."""
    text = FILES[name]
    for key, id_ in now.items():
        text = text.replace(key, id_)
    former = re.search(r"^former_ids: .*\n", present_text, re.MULTILINE)
    return text.replace("\n---\n", f"\n{former[0]}---\n", 1) if former else text
