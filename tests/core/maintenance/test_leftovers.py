"""Files that nobody will ask for are removed from the cache; those that may still be written, or are recent, stay."""

from __future__ import annotations

import os
from pathlib import Path

from kbcore.maintenance.leftovers import RemovedFiles, sweep
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project

DAY_S = 24 * 3600


def put(project: Project, name: str, *, days: float) -> Path:
    path = caches_at(project.root) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    at_s = project.machine.clock.epoch_ns() / 1e9 - days * DAY_S
    os.utime(path, (at_s, at_s))
    return path


def test_what_is_old_and_unfinished_or_was_reported_long_ago_is_removed_and_nothing_else(project: Project) -> None:
    gone = [
        *(put(project, name, days=2) for name in ("stamps.1-ab.tmp", "main/s.2-cd.tmp", "main/.view-3-ef.duckdb")),
        put(project, "bugs/kb-bug-old.txt", days=30),
    ]
    kept = [
        *(put(project, name, days=0.5) for name in ("stamps.4-ab.tmp", "main/.view-5-ef.duckdb")),
        *(put(project, name, days=90) for name in ("main/view.duckdb", "stamps", "main/deep/down/x.tmp", "x.txt")),
        put(project, "bugs/kb-bug-new.txt", days=20),
    ]
    assert sweep(project.workspace(), "bugs", dry_run=True) == RemovedFiles(unfinished=3, reports=1)
    assert all(path.exists() for path in gone)
    assert sweep(project.workspace(), "bugs") == RemovedFiles(unfinished=3, reports=1)
    assert not any(path.exists() for path in gone)
    assert all(path.exists() for path in kept)
    assert sweep(project.workspace(), "bugs") == RemovedFiles(unfinished=0, reports=0)
