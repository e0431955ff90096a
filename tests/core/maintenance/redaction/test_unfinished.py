"""The remains of a redaction that did not end, and repairs, backups and proofs of a redacted store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.maintenance import redaction
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.repair import rebuild_head
from kbcore.maintenance.salvage import salvage
from kbcore.storage import frame, head, layout, recovery
from kbcore.store.branches import lost
from kbcore.view.cache_files import CacheFiles
from kbcore.view.history import state_at
from tests.core.maintenance.redaction.redacting import (
    SECRET,
    again,
    entity,
    head_of,
    is_gone,
    pattern,
    redact,
    verify,
)
from tests.support.disk.secrets import files_with
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


def test_files_that_a_crash_left_are_removed_by_the_next_write_and_named_before(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    old = {path.name: path.read_bytes() for path in directory.glob("*.jsonl")}
    redact(filled, pattern())
    for name, data in old.items():
        (directory / name).write_bytes(data)
    assert {one.code for one in verify(filled).findings} >= {"redaction_unfinished"}
    filled.apply(entities=[entity("REQ-8")])
    assert is_gone(filled)


def test_a_cached_view_of_before_is_not_used_and_is_deleted_by_the_next_reader(filled: Project) -> None:
    cached = caches_at(filled.root) / "main" / "view.duckdb"
    data = cached.read_bytes()
    redact(filled, pattern())
    filled.close()
    cached.write_bytes(data)
    (cached.parent / "ahead-3-0123456789ab.duckdb").write_bytes(data)
    (cached.parent / "redacted").unlink(missing_ok=True)
    fresh = again(filled)
    assert fresh.node("REQ-1").fields["title"] == "Log in with [redacted]!"  # type: ignore[union-attr]
    assert is_gone(fresh)
    assert not list(cached.parent.glob("ahead-*"))
    fresh.close()


def test_another_process_with_an_open_view_follows_and_answers_without_it(filled: Project) -> None:
    other = again(filled)
    assert other.node("REQ-1").fields["title"] == f"Log in with {SECRET}!"  # type: ignore[union-attr]
    redact(filled, pattern())
    assert other.node("REQ-1").fields["title"] == "Log in with [redacted]!"  # type: ignore[union-attr]
    assert other.workspace().store("main").notices == []
    assert other.apply(entities=[entity("REQ-4")]).seq == 5
    other.close()
    assert is_gone(filled)
    assert lost.losses(filled.workspace()) == []


def test_an_open_view_of_before_is_not_published_any_more(filled: Project) -> None:
    other = again(filled)
    store = other.workspace().store("main")
    assert other.view().seq == 3
    other.apply(entities=[entity(f"MANY-{number}", title=SECRET) for number in range(2_100)])  # a tail worth publishing
    redact(filled, pattern())
    store._parts.views.publish_when_due()  # as one whose head was read before
    assert list(caches_at(filled.root).rglob("*.duckdb")) == []
    other.close()
    assert is_gone(filled)


def test_a_file_that_was_written_while_something_was_redacted_is_not_kept(filled: Project) -> None:
    cache = CacheFiles(filled.machine.fs, caches_at(filled.root) / "main")
    cache.last_redaction = lambda: "the id before it"

    def write(path: Path) -> None:
        path.write_text(SECRET)

    cache.publish(cache.path, write, lambda path: path)
    assert not cache.path.exists()
    cache.redactions.seen = "the id before it"
    cache.publish(cache.path, write, lambda path: path)
    assert cache.path.exists()


def test_the_note_of_an_unfinished_redaction_is_shown_by_the_doctor(filled: Project) -> None:
    (filled.workspace().folders.data_dir / redaction.BEGUN).write_text('{"kb":"redacting","at":"2026-11-20"}')
    assert "redaction_unfinished" in {one.code for one in diagnose(filled.workspace()).findings}
    redact(filled, pattern())
    assert "redaction_unfinished" not in {one.code for one in diagnose(filled.workspace()).findings}


def test_a_damaged_store_is_named_and_the_others_are_redacted(filled: Project) -> None:
    git(filled.root, "branch", "other")
    filled.apply(branch="other", entities=[entity("REQ-7", title=SECRET)])
    filled.close()
    path = filled.workspace().folders.directory_of("other") / head_of(filled, "other").head.file
    path.write_bytes(path.read_bytes().replace(b"REQ-7", b"REQ-8"))
    answer = redaction.redact(filled.workspace(), "main", pattern(), AUTHOR)
    assert {one.branch: bool(one.error) for one in answer.stores} == {"main": False, "other": True}
    assert not answer.is_whole
    assert redaction.unfinished(filled.workspace())


# Repairs of a redacted store


def test_a_salvage_of_a_redacted_store_keeps_what_is_proven(filled: Project) -> None:
    redact(filled, pattern())
    filled.apply(entities=[entity("REQ-8")])
    filled.apply(entities=[entity("REQ-9")])
    filled.close()
    path = filled.workspace().folders.directory_of("main") / head_of(filled).head.file
    path.write_bytes(path.read_bytes().replace(b"Title of REQ-8", b"Title of REQ-x"))
    made = salvage(filled.workspace(), "main", AUTHOR)
    assert [(hole.first, hole.last) for hole in made[0].holes] == [(5, 5)]
    assert {"REQ-1", "REQ-9"} <= state_at(filled.view(), filled.seq()).nodes.keys()
    proof = verify(filled)
    assert proof.is_sound, proof.findings
    assert is_gone(filled)


@pytest.mark.parametrize("content", [b"", b"{}\n"])
def test_a_new_head_of_a_redacted_store_names_the_new_files(filled: Project, content: bytes) -> None:
    directory = filled.workspace().folders.directory_of("main")
    old = {path.name: path.read_bytes() for path in directory.glob("*.jsonl")}
    redact(filled, pattern())
    filled.close()
    for name, data in old.items():  # a crash has left them
        (directory / name).write_bytes(data)
    (directory / "head.json").write_bytes(content)
    assert rebuild_head(filled.workspace(), "main", AUTHOR).done
    assert head_of(filled).generation == 1
    assert filled.node("REQ-1").fields["title"] == "Log in with [redacted]!"  # type: ignore[union-attr]
    filled.apply(entities=[entity("REQ-8")])
    assert [path.name for path in directory.glob("journal-*.jsonl") if SECRET.encode() in path.read_bytes()] == []
    assert verify(filled).is_sound


def test_a_new_head_copies_nothing_that_a_crash_left(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    old = {path.name: path.read_bytes() for path in directory.glob("*.jsonl")}
    redact(filled, pattern())
    filled.apply(entities=[entity("REQ-8")])
    filled.close()
    for name, data in old.items():
        (directory / name).write_bytes(data)
    last = directory / head_of(filled).head.file
    last.write_bytes(last.read_bytes()[:-20])  # what the head names is gone, so a new head is made and the rest copied
    assert rebuild_head(filled.workspace(), "main", AUTHOR).done
    assert is_gone(filled)


def test_a_backup_of_a_redacted_store_comes_back_sound(filled: Project, tmp_path: Path) -> None:
    redact(filled, pattern())
    back_up(filled.workspace(), tmp_path / "kb.backup", tool="kb/test")
    filled.apply(entities=[entity("REQ-8")])
    restore(filled.workspace(), tmp_path / "kb.backup", AUTHOR, replaces=True)
    assert verify(filled).is_sound
    assert files_with(SECRET, tmp_path / "kb.backup") == []
    assert is_gone(filled)


def tampered(project: Project, change: Any) -> set[str]:
    """Rewrite the last segment of a redacted store with another payload of each record; return what is found."""
    directory, of = project.workspace().folders.directory_of("main"), head_of(project)
    prev, data = of.active.base_hash, b""
    for line in (directory / of.head.file).read_bytes().splitlines(keepends=True):
        old = frame.peek(line)
        assert old is not None
        said = change(old.seq, json.loads(old.rec))
        new, made = frame.encode(old.seq, prev, json.dumps(said, separators=(",", ":")).encode())
        prev, data = new.sum, data + made
    (directory / of.head.file).write_bytes(data)
    tip = msgspec.structs.replace(of.head, hash=prev, length=len(data))
    (directory / layout.HEAD).write_bytes(head.encode(msgspec.structs.replace(of, head=tip)))
    # The second witness finds it as well.
    return {one.code for one in verify(project).findings if one.severity == "error"} - {"store_went_back"}


@pytest.fixture
def plain(project: Project) -> Project:
    project.apply(entities=[entity("REQ-1", title=SECRET)])
    project.apply(entities=[entity("REQ-2", title="two")])
    redact(project, pattern())
    return project


def test_a_redacted_record_that_was_changed_since_is_found(plain: Project) -> None:
    def change(seq: int, said: dict[str, Any]) -> dict[str, Any]:
        if seq == 1:
            said["ops"][0]["set"]["title"] = "[redacted] really"
        return said

    assert tampered(plain, change) == {"redaction_differs"}


def test_another_record_that_was_changed_in_the_rewritten_files_is_found(plain: Project) -> None:
    def change(seq: int, said: dict[str, Any]) -> dict[str, Any]:
        if seq == 2:
            said["ops"][0]["set"]["title"] = "three"
        return said

    assert tampered(plain, change) == {"redaction_differs"}


def test_a_redacted_record_that_no_record_documents_is_found(plain: Project) -> None:
    def change(seq: int, said: dict[str, Any]) -> dict[str, Any]:
        return said | ({"redacted": ["ops.0.set.title"]} if seq == 2 else {})

    assert tampered(plain, change) == {"redaction_unnamed", "redaction_differs"}


def test_a_store_whose_redaction_is_not_documented_is_found(plain: Project) -> None:
    def change(seq: int, said: dict[str, Any]) -> dict[str, Any]:
        said.pop("redaction", None)
        return said

    assert tampered(plain, change) == {"redaction_unnamed", "redaction_unknown"}


def test_superseded_files_are_none_where_nothing_was_redacted(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    assert recovery.superseded(filled.machine.fs, directory, head_of(filled)) == []
    assert stores_at(filled.root).is_dir()
