"""Many processes on one branch: nothing lost, nothing twice, no gap in seq. The fault suite goes further."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.storage import journal
from kbcore.storage.fs import RealFs
from tests.support.places import stores_at
from tests.support.project import Project, req
from tests.support.repos import git_env

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project whose file system does each thing in one step, as other processes may rely on."""
    made = Project(tmp_path / "a project", fs=RealFs())
    yield made
    made.close()


def start(project: Project, what: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.support.worker", str(project.root), what, name, str(count)],
        cwd=ROOT,
        env=git_env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finished(workers: list[subprocess.Popen[str]]) -> set[str]:
    """Return what the workers acknowledged; each must have ended well."""
    acknowledged: set[str] = set()
    for worker in workers:
        out, err = worker.communicate(timeout=120)
        assert worker.returncode == 0, err
        acknowledged.update(out.split())
    return acknowledged


def records(project: Project, branch: str = "main") -> list[int]:
    directory = stores_at(project.root) / branch
    fs = RealFs()
    return [entry.frame.seq for entry in journal.scan(fs, directory, journal.read_head(fs, directory))]


def test_writers_and_syncs_at_once_lose_nothing(project: Project) -> None:
    project.apply(entities=[{"id": "first", "type": "req", "title": "t", "status": "open"}])
    workers = [start(project, "apply", f"w{number}", 15) for number in range(2)]
    workers += [start(project, "sync", f"s{number}", 5) for number in range(2)]
    acknowledged = finished(workers)
    seqs = records(project)
    assert seqs == list(range(1, len(seqs) + 1))
    project.close()
    project.sync()
    present = {row[0] for row in project.view().rows("select id from node")}
    assert acknowledged <= present
    assert present == acknowledged | {"first"}


def test_two_first_syncs_of_a_new_branch_give_one_store(project: Project) -> None:
    project.apply(entities=[{"id": "first", "type": "req", "title": "t", "status": "open"}])
    project.switch("feature/new", create=True)
    finished([start(project, "sync", f"s{number}", 2) for number in range(3)])
    assert len(records(project, "feature%2fnew")) >= 2
    assert project.node("first")
    assert {f"s{worker}-{number}" for worker in range(3) for number in range(2)} <= {
        row[0] for row in project.view().rows("select id from node")
    }


def test_a_record_once_written_never_changes(project: Project) -> None:
    path = stores_at(project.root) / "main/journal-0000000001.jsonl"
    project.sync({"docs/requirements/1.md": req("A")})
    written = path.read_bytes()
    project.apply(entities=[{"id": "B", "type": "req", "title": "t", "status": "open"}])
    project.sync({"docs/requirements/1.md": None})
    project.delete(entities=[{"id": "B"}])
    assert path.read_bytes().startswith(written)


def test_an_agents_write_survives_a_sync_that_runs_at_the_same_time(project: Project) -> None:
    project.sync({f"docs/requirements/{number}.md": req(f"R{number}", title="Old") for number in range(50)})
    project.write({f"docs/requirements/{number}.md": req(f"R{number}", title="New") for number in range(50)})
    worker = start(project, "sync", "other", 3)
    for number in range(20):
        project.apply(entities=[{"id": f"R{number}", "owner": "agent"}])
    finished([worker])
    project.sync()
    nodes = project.view().nodes([f"R{number}" for number in range(50)])
    assert {node.fields["title"] for node in nodes} == {"New"}
    assert {node.id for node in nodes if node.fields.get("owner") == "agent"} == {f"R{number}" for number in range(20)}
