"""A second reader of a fleet, written from docs/fleet-format.md alone: DuckDB and Python, and nothing of KB."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import unquote

import duckdb

from kbcore.clock import SystemClock
from kbcore.fleet.exporting import ExportRequest, export
from kbcore.fleet.place import FolderPlace
from kbcore.store import branches
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import req


def read_fleet(folder, at=None):
    """Return, for each head, what the rows of each kind say: the key of each, and its title where it has one."""
    found = {}
    for path in sorted(folder.glob("heads/*/*.json")):
        head = json.loads(path.read_text())
        assert head["format"] == 1
        names = [part.partition("=")[2] for part in path.relative_to(folder / "heads").with_suffix("").parts]
        assert list(map(unquote, names)) == [head["repo"], head["branch"]]
        paths = {}
        for part in head["parts"]:
            data = (folder / part["path"]).read_bytes()
            assert (len(data), hashlib.sha256(data).hexdigest()) == (part["bytes"], part["sha256"])
            paths.setdefault(part["kind"], []).append(str(folder / part["path"]))
        seq = head["seq"] if at is None else at
        rows = {}
        with duckdb.connect() as connection:
            for kind, key, shown in (("entity", "id", "title"), ("edge", "id", "type"), ("source", "path", "hash")):
                counted, latest = {}, connection.read_parquet(paths.get(kind, [])) if kind in paths else None
                listed = latest.project(f"{key}, version, ended, {shown}").fetchall() if latest else []
                for name, version, ended, value in listed:
                    other = counted.get((name, version), (None, value))[0]
                    ends = [one for one in (other, ended) if one is not None]
                    counted[name, version] = (min(ends) if ends else None, value)
                rows[kind] = {
                    name: value
                    for (name, version), (ended, value) in counted.items()
                    if version <= seq and (ended is None or ended > seq)
                }
            rows["record"] = len(connection.read_parquet(paths["record"]).fetchall()) if "record" in paths else 0
        found[head["repo"], head["branch"]] = rows
    return found


def test_a_reader_written_from_the_page_finds_the_facts_of_now_and_then(project, tmp_path):
    folder = tmp_path / "fleet"
    steps = [
        {"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2")},
        {"docs/requirements/1.md": req("REQ-1", title="Other"), "docs/requirements/2.md": None},
        {"docs/requirements/2.md": req("REQ-2", title="Again", relates_to="REQ-1")},
    ]
    for step in steps:
        project.sync(step)
        workspace = project.workspace()
        store, choice, _ = branches.open_branch(workspace, None)
        place = FolderPlace(NoSyncFs(), SystemClock(), folder)
        asked = ExportRequest("acme/é pay", "feature/x")
        store.read(lambda view: export(workspace, choice.branch, view, place, asked))  # noqa: B023 - called at once
    of = ("acme/é pay", "feature/x")
    assert read_fleet(folder)[of]["entity"] == {"REQ-1": "Other", "REQ-2": "Again"}
    assert read_fleet(folder)[of]["record"] == 3
    assert read_fleet(folder, at=2)[of]["entity"] == {"REQ-1": "Other"}
    assert read_fleet(folder, at=1)[of]["entity"] == {"REQ-1": "Title of REQ-1", "REQ-2": "Title of REQ-2"}
    view = project.view()
    for kind, table, cells in (("edge", "link", "id, type"), ("source", "source", "path, hash")):
        assert read_fleet(folder)[of][kind] == dict(view.rows(f"select {cells} from {table}"))
