"""What comparing a store with its second witness costs, and when a commit is noted. ``tests/fault`` has the losses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.storage import layout
from tests.support.faultfs import LoggingFs
from tests.support.project import Project

NOTED = "main.json"


@pytest.fixture
def fs() -> LoggingFs:
    return LoggingFs()


@pytest.fixture
def project(tmp_path: Path, fs: LoggingFs) -> Iterator[Project]:
    made = Project(tmp_path / "repo", fs=fs)
    made.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    yield made
    made.close()


def test_a_head_that_others_have_replaced_since_is_compared_without_the_journal(
    project: Project, fs: LoggingFs
) -> None:
    workspace = project.workspace()
    old = workspace.store("main").head()
    project.apply(entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
    witness = project.workspace().witness("main")
    fs.calls.clear()
    assert witness.check(old) is None
    assert ("open", layout.HEAD) in fs.calls
    assert not [name for kind, name in fs.calls if kind == "open" and name.startswith("journal")]


def test_a_commit_is_noted_once_and_before_the_lock_is_free(project: Project, fs: LoggingFs) -> None:
    fs.calls.clear()
    project.apply(entities=[{"id": "B", "type": "req", "title": "T", "status": "open"}])
    written = [at for at, call in enumerate(fs.calls) if call == ("pwrite", NOTED)]
    released = max(at for at, call in enumerate(fs.calls) if call == ("flock", layout.LOCK))
    published = max(at for at, (kind, name) in enumerate(fs.calls) if (kind, name) == ("replace", layout.HEAD))
    assert len(written) == 1
    assert published < written[0] < released


def test_a_refusal_looks_at_no_copies(project: Project, fs: LoggingFs) -> None:
    witness = project.workspace().witness("main")
    head = project.workspace().store("main").head()
    fs.calls.clear()
    witness.refuse(head)
    assert "listdir" not in {kind for kind, _ in fs.calls}
    witness.check(head)
    assert "listdir" in {kind for kind, _ in fs.calls}
