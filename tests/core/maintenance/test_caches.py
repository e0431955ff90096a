"""Findings about the text index; ``test_doctor`` has those about views."""

from __future__ import annotations

from pathlib import Path

import duckdb

from kbcore.maintenance.caches import cache_findings
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.findings import DoctorFinding
from kbcore.query import Query
from kbcore.sync.searching import search
from kbcore.view.cache_files import TEXT
from kbcore.view.text_index_cache import BODIES
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project, req


def found(project: Project) -> dict[str, DoctorFinding]:
    return {one.code: one for one in cache_findings(project.workspace(), "main")}


def another_database(path: Path) -> bytes:
    with duckdb.connect(str(path)) as other:
        other.execute("create table t as select 1")
    return path.read_bytes()


def test_the_text_index_is_shown_and_a_damaged_one_is_a_warning_and_nothing_worse(project: Project) -> None:
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    project.view()
    assert "text" not in found(project)
    workspace = project.workspace()
    store = workspace.store("main")
    store.read(lambda view: search(workspace, store, "main", view, Query(text="t")))
    assert "at seq 1 holds 1 entity in" in found(project)["text"].message
    path = caches_at(project.root) / "main" / TEXT
    log = path.with_name(f"{TEXT}-wal")
    log.write_bytes(b"")
    assert "another program wrote to it" in found(project)["text_damaged"].message
    log.unlink()
    assert "text_damaged" not in found(project)
    for content in (another_database(project.root / "x.duckdb"), b"no database" * 100, b""):
        path.write_bytes(content)
        assert found(project)["text_damaged"].severity == "warning"
    assert path.exists()


def test_damage_of_the_documents_that_are_kept_is_reported_once_and_of_no_branch(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A"), "docs/requirements/b.md": req("B")})
    workspace = project.workspace()
    store = workspace.store("main")
    store.read(lambda view: search(workspace, store, "main", view, Query(text="title")))
    [whole] = (one for one in diagnose(workspace).findings if one.code == "documents")
    assert whole.message.startswith("Search keeps the text of 2 documents for all branches, in ")
    (caches_at(project.root) / BODIES).write_bytes(b"no database" * 100)
    assert found(project)["text"].severity == "ok"
    [damaged] = (one for one in diagnose(workspace).findings if one.code == "documents_damaged")
    assert (damaged.severity, damaged.branch) == ("warning", "")
    assert BODIES in damaged.file
