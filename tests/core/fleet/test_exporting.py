"""Exports to a fleet: what is written, what is not, and what a reader sees when one is ended in the middle."""

from __future__ import annotations

import contextlib
import errno
import shutil
import threading
from pathlib import Path

import msgspec
import pytest

from kbcore import __version__
from kbcore.clock import SystemClock
from kbcore.errors import FormatTooNew, InvalidQuery, StorageError, Unavailable
from kbcore.fleet import exporting, head
from kbcore.fleet.exporting import ExportRequest, usual_repo_name
from kbcore.fleet.place import FolderPlace, UrlPlace, read_part
from kbcore.share.unshared import find_unshared
from kbcore.store import branches
from kbcore.store.write_request import Author
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.database import scratch_folder
from kbcore.view.parquet import KINDS, database_of_parts, open_parts
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, NoSyncFs
from tests.support.effort.scale import spread
from tests.support.fleet.s3_server import URL
from tests.support.repository.fleets import export
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git


def place_of(folder, fs=None):
    return FolderPlace(fs or NoSyncFs(), SystemClock(), folder)


def files_in(folder):
    return {
        str(path.relative_to(folder)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }


def rows(place, sql, repo="acme/one", branch="main"):
    """Return what a reader of the head finds."""
    path = head.head_path(repo, branch)
    found = head.decode(place.read(path, 2**20), path)
    with scratch_folder() as folder:
        paths = {kind: [] for kind in KINDS}
        for number, part in enumerate(found.parts):
            name = f"{folder}/{number}.parquet"
            Path(name).write_bytes(read_part(place, part))
            paths[part.kind].append(name)
        basis = msgspec.structs.replace(Basis, seq=found.seq)
        with contextlib.closing(database_of_parts()) as shared, open_parts(shared, paths, basis) as view:
            return view.rows(sql)


Basis = BaseStamp("", "", 0, "", "", "", 0)
IDS = "select id, title from node order by id"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "fleet"


def test_an_export_without_news_writes_nothing(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    assert export(project, place_of(folder)).is_new
    before = files_in(folder)
    calls = FailingFs(-1)
    again = export(project, place_of(folder, calls))
    assert (again.written, again.bytes) == ((), 0)
    assert files_in(folder) == before
    assert not {kind for kind, _ in calls.calls} & {"write", "pwrite", "replace", "mkdir"}


def test_a_refresh_writes_only_what_is_new(project, folder):
    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(300)})
    first = export(project, place_of(folder))
    project.sync({"docs/requirements/1.md": req("REQ-1", title="Other"), "docs/requirements/2.md": None})
    again = export(project, place_of(folder))
    assert {one.kind: one.rows for one in again.written} == {"entity": 3, "source": 3, "record": 1}
    assert again.bytes < first.bytes
    assert again.head.parts[: len(first.head.parts)] == first.head.parts
    found = dict(rows(place_of(folder), IDS))
    assert len(found) == 299
    assert found["REQ-1"] == "Other"


def test_many_refreshes_are_written_as_one(project, folder, monkeypatch):
    monkeypatch.setattr(exporting, "MAX_PARTS", 6)
    for number in range(4):
        project.sync({f"docs/requirements/{number}.md": req(f"REQ-{number}")})
        found = export(project, place_of(folder))
        assert len(found.head.parts) <= 8
    assert len(rows(place_of(folder), IDS)) == 4


def test_a_store_that_is_thrown_away_writes_nothing_where_the_facts_are_the_same(project, folder, tmp_path):
    files = {f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(3)}
    project.sync({**files, "docs/requirements/1.md": req("REQ-1", title="Earlier")})
    project.sync(files)
    export(project, place_of(folder))
    before = files_in(folder)
    for name, content in [("ci", files), ("ci 2", {**files, "docs/requirements/3.md": req("REQ-3")})]:
        other = Project(tmp_path / name)
        other.sync(content)
        found = export(other, place_of(folder), has_history=False)
        other.close()
        if name == "ci":
            assert not found.is_new
            assert files_in(folder) == before
    assert not found.head.has_history
    assert {one.kind for one in found.written} == {"entity", "source"}
    assert len(rows(place_of(folder), IDS)) == 4


def test_a_lasting_store_brings_history_to_what_one_in_ci_wrote(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(folder), has_history=False)
    found = export(project, place_of(folder))
    assert found.head.has_history
    assert rows(place_of(folder), "select count(*) from record") == [(1,)]


def test_settings_that_changed_are_exported(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    first = export(project, place_of(folder))
    project.write({".kb/config.json": '{"rules": {"orphans": "off"}}'})
    again = export(project, place_of(folder))
    assert again.head.settings != first.head.settings
    assert again.head.parts == first.head.parts
    assert b"orphans" in read_part(place_of(folder), again.head.settings)


def points(project, folder):
    """Return how many calls an export makes."""
    counting = FailingFs(-1)
    export(project, place_of(folder, counting))
    return len(counting.calls)


@pytest.mark.slow
def test_a_reader_sees_the_head_before_wherever_an_export_is_ended(project, tmp_path):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(tmp_path / "first"))
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    shutil.copytree(tmp_path / "first", tmp_path / "counted")
    count = points(project, tmp_path / "counted")
    assert count > 20
    for number, at in enumerate(spread(range(count), 12)):
        folder = shutil.copytree(tmp_path / "first", tmp_path / str(number))
        fs = CrashingFs(at, inner=NoSyncFs())
        with pytest.raises(Crash):
            export(project, place_of(folder, fs))
        fs.close_all()
        assert [id_ for id_, _ in rows(place_of(folder), IDS)] in (["REQ-1"], ["REQ-1", "REQ-2"])
        export(project, place_of(folder))
        assert len(rows(place_of(folder), IDS)) == 2


class FullFs(FailingFs):
    """A disk that is full from one call on: files are still removed."""

    def _run(self, kind, method, args):
        return method(*args) if kind == "unlink" else super()._run(kind, method, args)


def test_a_full_disk_leaves_a_whole_head_and_nothing_else(project, tmp_path):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(tmp_path / "first"))
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    shutil.copytree(tmp_path / "first", tmp_path / "counted")
    failed = 0
    for number, at in enumerate(spread(range(points(project, tmp_path / "counted")), 8)):
        folder = shutil.copytree(tmp_path / "first", tmp_path / str(number))
        try:
            export(project, place_of(folder, FullFs(at, errno.ENOSPC, lasting=True, inner=NoSyncFs())))
        except Unavailable:
            failed += 1
        assert not [name for name in files_in(folder) if name.endswith(".tmp")]
        assert [id_ for id_, _ in rows(place_of(folder), IDS)] in (["REQ-1"], ["REQ-1", "REQ-2"])
    assert failed


@pytest.mark.parametrize("where", ["folder", "s3"])
def test_two_exports_at_once_leave_a_whole_head(project, folder, where, request):
    if where == "s3":
        request.getfixturevalue("s3")

    def place():
        return UrlPlace(URL) if where == "s3" else place_of(folder)

    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(20)})
    found, others = [], [Project(project.root, is_new=False) for _ in range(4)]

    def run(one):
        found.append(export(one, place()))

    threads = [threading.Thread(target=run, args=(one,)) for one in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in others:
        one.close()
    assert len(found) == len(others)
    assert len(rows(place(), IDS)) == 20
    if where == "folder":  # which is locked meanwhile
        assert [one.is_new for one in found].count(True) == 1


def test_a_later_head_of_the_same_store_is_not_replaced_by_an_earlier_one(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    export(project, place_of(folder))
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    with store.view_until(1) as view:
        found = exporting.export(workspace, choice.branch, view, place_of(folder), ExportRequest("acme/one", "main"))
    assert not found.is_new
    assert len(rows(place_of(folder), IDS)) == 2


def test_a_later_head_without_history_is_not_replaced_by_an_earlier_state_of_its_store(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    export(project, place_of(folder), has_history=False)
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    asked = ExportRequest("acme/one", "main", has_history=False)
    with store.view_until(1) as view:
        found = exporting.export(workspace, choice.branch, view, place_of(folder), asked)
    assert not found.is_new
    assert len(rows(place_of(folder), IDS)) == 2


def test_a_later_head_of_another_store_that_is_replaced_is_named(project, folder, tmp_path):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(folder))
    clone = Project(tmp_path / "clone")
    clone.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2")})
    later = export(clone, place_of(folder))
    clone.close()
    assert later.replaced is None
    found = export(project, place_of(folder))
    assert found.replaced == later.head
    assert export(project, place_of(folder)).replaced is None


def test_parts_from_before_something_was_made_private_are_named_once(project, folder):
    project.apply(entities=[{"id": "ADR-1", "type": "adr", "title": MARKER, "status": "accepted"}])
    assert not export(project, place_of(folder)).had_more
    project.write({".kb/config.json": '{"share": {"actors": ["nobody"]}}'})
    found = export(project, place_of(folder))
    assert (found.left_out, found.had_more) == (1, True)
    assert rows(place_of(folder), IDS) == []
    project.apply(entities=[{"id": "ADR-2", "type": "adr", "title": MARKER, "status": "accepted"}])
    assert not export(project, place_of(folder)).had_more
    for above in folder.iterdir():
        shutil.rmtree(above / head.repo_folder("acme/one"))
    again = export(project, place_of(folder))
    assert not again.had_more
    assert rows(place_of(folder), IDS) == []


MARKER = "for-eve-alone"


def test_what_is_not_shared_is_not_exported(project, folder):
    project.write({".kb/config.json": '{"share": {"mode": "ask", "actors": ["ann"], "types": ["req", "adr"]}}'})
    ann, eve = Author("ann", "cli", "t"), Author("eve", "cli", "t")
    project.sync({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": req("REQ-2")})
    project.apply(author=ann, entities=[{"id": "ADR-1", "type": "adr", "title": "Public", "status": "accepted"}])
    project.apply(
        author=eve,
        entities=[
            {"id": f"ADR-{MARKER}", "type": "adr", "title": MARKER, "status": "accepted"},
            {"id": "ADR-1", "type": "adr", "tags": [MARKER], "attributes": {"why": MARKER}},
            {"id": "REQ-1", "type": "req", "metadata": {"note": MARKER}},
        ],
        edges=[
            {"type": "relates_to", "kind": "see", "from": "ADR-1", "to": f"ADR-{MARKER}"},
            {"type": "relates_to", "kind": "see", "from": "REQ-1", "to": "REQ-2", "attributes": {"why": MARKER}},
        ],
        message=MARKER,
    )
    project.apply(
        author=ann, entities=[{"id": "SYM-1", "type": "symbol", "title": f"{MARKER} by type", "status": "active"}]
    )
    found = export(project, place_of(folder))
    assert found.left_out
    assert not found.head.has_history
    place = place_of(folder)
    assert [id_ for id_, _ in rows(place, IDS)] == ["ADR-1", "REQ-1", "REQ-2"]
    for table in ("node", "link", "source", "record", "node_history", "link_history"):
        assert MARKER not in repr(rows(place, f"select * from {table}"))
    assert not any(MARKER.encode() in content for content, _ in files_in(folder).values())
    before = files_in(folder)
    assert not export(project, place).is_new
    assert files_in(folder) == before


def test_a_refresh_judges_new_changes_alone_until_one_is_withheld(project, folder):
    project.write({".kb/config.json": '{"share": {"mode": "ask", "actors": ["ann"]}}'})
    ann, eve = Author("ann", "cli", "t"), Author("eve", "cli", "t")

    def adr(author, key, **said):
        project.apply(author=author, entities=[{"id": key, "type": "adr", "status": "accepted", **said}])

    adr(ann, "ADR-1", title="One")
    first = export(project, place_of(folder)).head
    assert (first.kb, first.has_history) == (__version__, True)
    adr(ann, "ADR-2", title="Two")
    asked = [one.seq for one in find_unshared(project.workspace(), "main", since=first.seq)]
    assert asked == [first.seq + 1]
    second = export(project, place_of(folder))
    assert (second.head.has_history, second.left_out) == (True, 0)
    assert second.head.parts[: len(first.parts)] == first.parts
    adr(eve, "ADR-1", title="One", tags=[MARKER])
    third = export(project, place_of(folder))
    assert (third.head.has_history, third.left_out) == (False, 1)
    assert rows(place_of(folder), "select id, tags from node order by id") == [("ADR-1", []), ("ADR-2", None)]
    assert not any(MARKER.encode() in content for content, _ in files_in(folder).values())
    adr(ann, "ADR-3", title="Three")
    fourth = export(project, place_of(folder))
    assert (fourth.head.has_history, fourth.left_out) == (False, 1)
    assert len(rows(place_of(folder), IDS)) == 3


def test_what_was_judged_by_a_type_is_judged_again_when_a_document_changes_the_type(project, folder):
    project.write({".kb/config.json": '{"share": {"mode": "ask", "types": ["req"]}}'})
    project.sync({"docs/requirements/1.md": req("X-1")})
    project.apply(entities=[{"id": "X-1", "type": "req", "metadata": {"note": "of a client"}}])
    project.apply(entities=[{"id": "X-1", "metadata": {"note": MARKER}}])
    assert export(project, place_of(folder)).head.has_history
    project.sync({"docs/requirements/1.md": None, "docs/tests/1.md": req("X-1")})
    assert not export(project, place_of(folder)).head.has_history
    assert MARKER not in repr(rows(place_of(folder), "select * from node"))


@pytest.mark.parametrize("how", ["missing", "cut", "flipped"])
def test_a_damaged_part_is_refused_and_written_again_by_force(project, folder, how):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    part = next(one for one in export(project, place_of(folder)).head.parts if one.kind == "entity")
    path, data = folder / part.path, (folder / part.path).read_bytes()
    if how == "missing":
        path.unlink()
    else:
        path.write_bytes(data[:-1] if how == "cut" else bytes([data[0], data[1] ^ 1]) + data[2:])
    with pytest.raises(StorageError, match=r"part-1-.*(is missing|does not have the bytes)") as refused:
        rows(place_of(folder), IDS)
    assert "--force" in refused.value.remedy
    export(project, place_of(folder), is_whole=True)
    assert path.read_bytes() == data
    assert len(rows(place_of(folder), IDS)) == 1


def test_a_head_that_is_too_large_to_be_read_is_replaced_by_force(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(folder))
    path = folder / head.head_path("acme/one", "main")
    path.write_bytes(b" " * (head.MAX_HEAD_BYTES + 1))
    with pytest.raises(StorageError, match="larger"):
        export(project, place_of(folder))
    export(project, place_of(folder), is_whole=True)
    assert len(rows(place_of(folder), IDS)) == 1


def test_a_head_of_a_later_format_is_refused(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    found = export(project, place_of(folder)).head
    path = head.head_path("acme/one", "main")
    (folder / path).write_bytes(head.encode(msgspec.structs.replace(found, format=head.FORMAT + 1)))
    with pytest.raises(FormatTooNew, match="has format 2"):
        export(project, place_of(folder))


@pytest.mark.parametrize("name", ["", " x", "a\nb", "x" * 201, "é" * 34, "/" * 67])
def test_a_name_that_cannot_be_one_is_refused(project, folder, name):
    with pytest.raises(InvalidQuery):
        export(project, place_of(folder), repo=name)
    with pytest.raises(InvalidQuery):
        export(project, place_of(folder), branch=name)
    assert not folder.exists()


@pytest.mark.parametrize("name", ["x" * 200, "é" * 33])
def test_the_longest_names_are_exported(project, folder, name):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(folder), repo=name, branch=name)
    assert len(rows(place_of(folder), IDS, name, name)) == 1


def test_names_with_any_signs_stay_below_the_place(project, folder):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, place_of(folder), repo="../a/é'", branch="feature/%2e..")
    assert {path.name for path in folder.iterdir()} == {
        "heads",
        "settings",
        "kind=entity",
        "kind=source",
        "kind=record",
    }
    assert len(rows(place_of(folder), IDS, "../a/é'", "feature/%2e..")) == 1


def test_a_url_is_a_place(project):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    place = UrlPlace(f"memory://{id(project)}/kb")
    assert export(project, place).is_new
    assert not export(project, place).is_new
    assert place.heads() == [head.head_path("acme/one", "main")]
    assert len(rows(place, IDS)) == 1
    with pytest.raises(InvalidQuery, match="is not reached"):
        UrlPlace("nowhere://x/y")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("git@forge.example:acme/pay.git", "acme/pay"),
        ("https://forge.example/group/acme/pay/", "acme/pay"),
        ("ssh://git@forge.example:22/acme/pay.git", "acme/pay"),
        ("/srv/pay.git", "a project"),
        ("", "a project"),
    ],
)
def test_a_repository_has_the_name_of_its_remote(project, url, name):
    if url:
        git(project.root, "config", "remote.origin.url", url)
    assert usual_repo_name(project.workspace()) == name
