"""A place on S3, by a real server on loopback: what is written, in which order, and what a user learns of a fault."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.config.user import UserSettings
from kbcore.errors import InvalidQuery, StorageError
from kbcore.fleet import head, local, reading
from kbcore.fleet.asking import RowsQuestion
from kbcore.fleet.place import UrlPlace, place_at, read_head, read_part
from kbcore.query import Query
from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.fleet.s3_server import BUCKET, SECRET, URL, CuttingProxy, use
from tests.support.repository.fleets import export
from tests.support.repository.project import req
from tests.support.repository.repos import git_env

MACHINE, USER = Machine(NoSyncFs(), SystemClock(), git_env()), UserSettings()


def ids(place, *repos):
    found = reading.find(place, reading.FleetSelection(repos))
    assert not found.failures
    [answer] = local.ask(place, found.heads, RowsQuestion(Query(type="req")), MACHINE, USER)
    return [row["id"] for row in answer.value["rows"]]


class Recording(UrlPlace):
    """A place that notes what is written to it."""

    written: list[str]

    def write(self, path, data):
        super().write(path, data)
        self.written.append(path)


def test_an_export_is_read_again_and_without_news_writes_nothing(project, s3):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    place = Recording(URL.replace("s3://", "S3://"))
    place.written = []
    assert export(project, place).is_new
    first = [*place.written]
    assert [one for one in first if one.endswith(".json")][-1] == first[-1] == head.head_path("acme/one", "main")
    assert len([one for one in first if one.startswith("kind=")]) == 3
    assert ids(UrlPlace(URL)) == ["REQ-1"]
    assert not export(project, place).is_new
    assert place.written == first
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    export(project, place)
    assert place.written[-1] == head.head_path("acme/one", "main")
    assert ids(UrlPlace(URL)) == ["REQ-1", "REQ-2"]


def test_a_head_is_read_by_one_request_and_a_part_by_two(project, s3, monkeypatch):
    import s3fs

    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, UrlPlace(URL))
    [path] = UrlPlace(URL).heads()
    calls, call = [], s3fs.S3FileSystem._call_s3

    async def noted(self, method, *args, **options):
        calls.append(method)
        return await call(self, method, *args, **options)

    monkeypatch.setattr(s3fs.S3FileSystem, "_call_s3", noted)
    place = UrlPlace(URL)
    found = head.decode(read_head(place, path), path)
    assert calls == ["get_object"]
    for part in found.parts:
        read_part(place, part)
    assert calls == ["get_object", *["head_object", "get_object"] * len(found.parts)]


def test_an_empty_head_is_named(project, s3):
    UrlPlace(URL).write(head.head_path("acme/one", "main"), b"")
    [failure] = reading.find(UrlPlace(URL), reading.FleetSelection()).failures
    assert "is no head file" in failure.message


def test_a_bucket_that_is_not_there_is_named_and_not_made(project, s3):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    for url in ("s3://no-such-bucket/kb", "s3://no-such-bucket"):
        with pytest.raises(StorageError, match="s3://no-such-bucket") as refused:
            export(project, UrlPlace(url))
        assert "Make the bucket first" in refused.value.remedy
        with pytest.raises(StorageError, match="s3://no-such-bucket"):
            reading.find(UrlPlace(url), reading.FleetSelection())
    for url in ("s3://", "S3:///kb"):
        with pytest.raises(InvalidQuery, match="names no bucket"):
            place_at(url, Path(), MACHINE.fs, MACHINE.clock)


def test_who_may_only_read_learns_that_and_can_ask(project, s3, monkeypatch):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, UrlPlace(URL))
    use(monkeypatch, s3.key_of_user("reader", ["s3:GetObject", "s3:ListBucket"]))
    s3.check_rights_after(0)
    assert ids(UrlPlace(URL)) == ["REQ-1"]
    assert not export(project, UrlPlace(URL)).is_new
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    with pytest.raises(StorageError, match=f"{URL}/kind=.* is refused") as refused:
        export(project, UrlPlace(URL))
    assert "who exports to write" in refused.value.remedy
    assert "AWS_ACCESS_KEY_ID" in refused.value.remedy
    assert ids(UrlPlace(URL)) == ["REQ-1"]


def test_a_wrong_key_is_named_and_its_secret_is_not(project, s3, monkeypatch):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    s3.check_rights_after(0)
    for act in (lambda: export(project, UrlPlace(URL)), lambda: reading.find(UrlPlace(URL), reading.FleetSelection())):
        with pytest.raises(StorageError, match=URL) as refused:
            act()
        shown = f"{refused.value.message} {refused.value.remedy} {refused.value.__cause__!r}"
        assert "AWS_ACCESS_KEY_ID" in refused.value.remedy
        assert SECRET not in shown
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StorageError, match="credentials") as refused:
        export(project, UrlPlace(URL))
    assert "AWS_ACCESS_KEY_ID" in refused.value.remedy


def test_a_password_in_a_url_is_refused_and_not_repeated():
    with pytest.raises(InvalidQuery, match="has a password") as refused:
        place_at(f"s3://key:{SECRET}@{BUCKET}/kb", Path(), MACHINE.fs, MACHINE.clock)
    assert SECRET not in refused.value.message


def test_a_connection_that_breaks_leaves_the_head_before(project, s3, monkeypatch):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    export(project, UrlPlace(URL))
    project.sync({f"docs/requirements/{n}.md": req(f"REQ-{n}") for n in range(1, 40)})
    with contextlib.closing(CuttingProxy(s3.port)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        proxy.most_bytes = 6000
        with pytest.raises(StorageError, match=URL) as refused:
            export(project, UrlPlace(URL))
        assert "reachable" in refused.value.remedy
        assert proxy.cut
        monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
        assert ids(UrlPlace(URL)) == ["REQ-1"]
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.port}")
        proxy.most_bytes = 0
        assert export(project, UrlPlace(URL)).is_new
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3.url)
    assert len(ids(UrlPlace(URL))) == 39


def test_a_server_that_is_not_there_is_named(s3, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StorageError, match=URL) as refused:
        reading.find(UrlPlace(URL), reading.FleetSelection())
    assert "reachable" in refused.value.remedy


class Killed(Exception):
    """The end of the process."""


class KilledPlace(UrlPlace):
    """A place whose process ends before a write, the first one counted as 0."""

    at = -1

    def write(self, path, data):
        if not self.at:
            raise Killed
        self.at -= 1
        super().write(path, data)


def test_a_reader_sees_the_head_before_wherever_an_export_is_killed(project, s3):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    writes = range(4)  # parts of entities, sources and records, then the head
    for at in writes:
        export(project, UrlPlace(URL), repo=f"acme/{at}")
    project.sync({"docs/requirements/2.md": req("REQ-2")})
    for at in writes:
        place = KilledPlace(URL)
        place.at = at
        with pytest.raises(Killed):
            export(project, place, repo=f"acme/{at}")
        assert ids(UrlPlace(URL), f"acme/{at}") == ["REQ-1"]
        assert export(project, UrlPlace(URL), repo=f"acme/{at}").is_new
        assert ids(UrlPlace(URL), f"acme/{at}") == ["REQ-1", "REQ-2"]
