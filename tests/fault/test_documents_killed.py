"""F1: SIGKILL between the files that a command writes, and between them and the record: the next sync loses nothing."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kbcore.sync.begun_renames import read_begun
from tests.fault.conftest import Tally
from tests.support.effort.scale import SEED, spread, tries
from tests.support.processes.cli import environment, run_kb
from tests.support.repository.project import Project, document, req

KILLED = """
import os, signal, sys
left = [int(sys.argv.pop(1))]
def at(event, args):
    if event == "os.rename" and "/docs/" in str(args[1]):
        left[0] -= 1
        left[0] < 0 and os.kill(os.getpid(), signal.SIGKILL)
    if event == "os.rename" and str(args[1]).endswith("head.json"):
        os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(at)
from kbcli.app import main
main()
"""
"""A command that is killed before it replaces one more than so many documents, at the latest before the head moves."""

FILES = {
    "docs/requirements/a.md": req("REQ-2", depends_on="[REQ-1]"),
    "docs/requirements/login.md": req("REQ-1", links="[S-1]"),
    "docs/tests/t.md": document("TEST-1", title="T", status="active", links="[REQ-1, S-1, C-1]"),
    "docs/symbols.yaml": "symbols:\n- title: login\n  id: S-1\n  links: [REQ-1]\n- title: out\n  id: S-2\n",
}
"""C-1 is in no file; S-1 is in one that has no place for former ids."""
CLIENT = {
    "entities": [
        {"id": "C-1", "type": "symbol", "title": "c", "status": "active", "attributes": {"size": 3}},
        {"id": "REQ-1", "priority": "must", "attributes": {"k": "mine"}},
        {"id": "S-1", "attributes": {"k": "mine"}},
    ],
    "edges": [
        {"type": "relates_to", "kind": "see", "from": one, "to": "REQ-2", "attributes": {"by": "ann"}}
        for one in ("REQ-1", "S-1", "C-1")
    ],
}
RENAMES = {"REQ-1": 4, "S-1": 3, "C-1": 1}
"""The number of documents that the rename of each of them writes."""


@contextmanager
def opened(root: Path) -> Iterator[Project]:
    project = Project(root, is_new=False)
    try:
        yield project
    finally:
        project.close()


def killed(root: Path, documents: int, *words: str) -> bool:
    """Run a command that is killed after so many documents; return whether it was."""
    command = [sys.executable, "-c", KILLED, str(documents), "-C", str(root), *words]
    return subprocess.run(command, env=environment(), capture_output=True, check=False).returncode == -signal.SIGKILL


def run(root: Path, *words: str) -> None:
    done = run_kb(root, *words)
    assert done.status == 0, done.err


def leftovers(root: Path) -> list[str]:
    """Return the names of what a write that was killed left beside documents."""
    return sorted(one.name for one in (root / "docs").rglob(".*.kb-*"))


def facts(project: Project) -> tuple[Sequence[Any], Sequence[Any]]:
    """Return what is stated, by whom and since when."""
    view = project.view()
    nodes = view.rows("select id, type, title, status, priority, attributes, owners, path, created_at from node")
    links = view.rows("select type, kind, from_id, to_id, is_resolved, attributes, created_at, created_by from link")
    return sorted(map(str, nodes)), sorted(map(str, links))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    project = Project(tmp_path / "kept")
    project.sync(FILES)
    project.apply(**CLIENT)
    project.close()
    return tmp_path / "kept"


def copied(root: Path, name: str) -> Path:
    return Path(shutil.copytree(root, root.with_name(name), symlinks=True))


@pytest.mark.sliced
@pytest.mark.fault("F1")
def test_a_rename_that_is_killed_after_any_of_its_files_is_finished_by_the_next_sync(kept: Path, tally: Tally) -> None:
    points = [(old, at) for old, files in RENAMES.items() for at in range(1, files + 1)]
    random.Random(SEED).shuffle(points)
    last = [(old, RENAMES[old]) for old in RENAMES]  # all files are written, and the record is not
    for old, at in [*last, *(one for one in points if one not in last)][: tries(3, len(points))]:
        whole, dead = copied(kept, f"whole-{old}-{at}"), copied(kept, f"dead-{old}-{at}")
        run(whole, "rename", old, "NEW-1")
        if not killed(dead, at, "rename", old, "NEW-1"):
            tally.violated((old, at), "it was not killed")
        with opened(whole) as one, opened(dead) as other:
            other.sync()
            workspace = other.workspace()
            if read_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree):
                tally.violated((old, at), "the note of the rename is left")
            wanted, found = facts(one), facts(other)
            if found != wanted:
                tally.violated((old, at), {*map(str, found[0] + found[1])} ^ {*map(str, wanted[0] + wanted[1])})
            if other.view().renamed([old]) != {old: "NEW-1"}:
                tally.violated((old, at), "the former id is lost")
            if other.sync(rebuild=True).outcome.applied:
                tally.violated((old, at), "another sync changes it")
        shutil.rmtree(whole)
        shutil.rmtree(dead)
        tally.tried()
    tally.done(at_least=3)


@pytest.mark.sliced
@pytest.mark.fault("F1")
def test_a_rollback_of_renames_that_is_killed_after_any_of_its_files_loses_no_entity(kept: Path, tally: Tally) -> None:
    olds = list(RENAMES)
    with opened(kept) as project:
        seq, before = project.seq(), facts(project)
    for number, old in enumerate(olds):
        run(kept, "rename", old, f"NEW-{number}")
    for at in spread(range(1, len(FILES) + 1), 2):
        dead = copied(kept, f"dead-{at}")
        if not killed(dead, at, "rollback", str(seq), "--files"):
            shutil.rmtree(dead)
            break
        with opened(dead) as project:
            project.sync()
            for number, old in enumerate(olds):
                if len(project.view().nodes([old, f"NEW-{number}"])) != 1:
                    tally.violated((old, at), "it is not one entity")
        run(dead, "rollback", str(seq), "--files")
        with opened(dead) as project:
            if facts(project) != before:
                tally.violated(at, "the records are not as they were")
            # After a sync, documents that were not written keep the later ids.
            if at == len(FILES) and {path: (dead / path).read_text() for path in FILES} != FILES:
                tally.violated(at, "the files are not as they were")
            if at == len(FILES) and project.sync(rebuild=True).outcome.applied:
                tally.violated(at, "another sync changes it")
        shutil.rmtree(dead)
        tally.tried()
    tally.done(at_least=2)


@pytest.mark.sliced(1)
@pytest.mark.fault("F1")
@pytest.mark.parametrize("command", ["rename", "revert", "rollback"])
def test_what_was_killed_after_any_of_its_files_is_finished_by_the_same_command(
    kept: Path, tally: Tally, command: str
) -> None:
    """It writes four documents. That killed after the first one is killed once more."""
    words = ["rename", "REQ-1", "NEW-1"]
    with opened(kept) as project:
        seq = project.seq()
    if command != "rename":
        for number, old in enumerate(RENAMES if command == "rollback" else ["REQ-1"]):
            run(kept, "rename", old, f"NEW-{number}")
        words = ["revert", str(seq + 1), "--files"] if command == "revert" else ["rollback", str(seq), "--files"]
    whole = copied(kept, "whole")
    run(whole, *words)
    with opened(whole) as project:
        wanted = facts(project), {path: (whole / path).read_text() for path in FILES}
    for at in spread(range(1, len(FILES)), 1):
        dead = copied(kept, f"dead-{at}")
        if not killed(dead, at, *words) or (at == 1 and not killed(dead, 1, *words)):
            tally.violated((command, at), "it was not killed")
        if not leftovers(dead):
            tally.violated((command, at), "the kill left nothing beside a document")
        run(dead, *words)
        if leftovers(dead):
            tally.violated((command, at), f"left beside documents: {leftovers(dead)}")
        with opened(dead) as project:
            found = facts(project), {path: (dead / path).read_text() for path in FILES}
            if found != wanted:
                tally.violated((command, at), "it is not finished")
            if project.sync(rebuild=True).outcome.applied:
                tally.violated((command, at), "another sync changes it")
            workspace = project.workspace()
            if read_begun(workspace.machine.fs, workspace.folders.cache_dir, workspace.repo.worktree):
                tally.violated((command, at), "the note of the renames is left")
        shutil.rmtree(dead)
        tally.tried()
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("F1")
def test_what_set_and_new_wrote_before_they_were_killed_is_recorded_by_the_next_sync(kept: Path, tally: Tally) -> None:
    before = [*(kept / "docs/requirements").iterdir()]
    assert killed(kept, 1, "set", "REQ-1", "status=done")
    assert killed(kept, 9, "new", "req", "--id", "REQ-5", "--title", "made")
    assert len([*(kept / "docs/requirements").iterdir()]) == len(before) + 1
    with opened(kept) as project:
        assert project.node("REQ-5") is None
        project.sync()
        node = project.node("REQ-1")
        assert node is not None
        if (node.fields["status"], node.fields["attributes.k"]) != ("done", "mine"):
            tally.violated("set", node.fields)
        if project.node("REQ-5") is None:
            tally.violated("new", "it is not there")
    tally.tried(2)
    tally.done(at_least=2)
