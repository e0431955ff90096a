"""Proofs find what is wrong, name the place, and never call unproven what was not looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from kbcore.errors import UnknownBranch
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.proof import Verified, verify_branch
from kbcore.model import canonical
from kbcore.model.record import Record, encode
from kbcore.storage import compaction, journal
from kbcore.view import replay
from kbcore.view.cache_files import VIEW
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project
from tests.support.repository.stores import view_of


def filled(project: Project) -> Path:
    """Write four records with a snapshot in between, publish the view, and return the store's directory."""
    for number in range(1, 5):
        project.apply(entities=[{"id": f"N{number}", "type": "req", "title": "T", "status": "open"}])
        if number == 2:
            compact(project.workspace(), "main")
    store = project.workspace().store("main")
    store.close()
    (caches_at(project.root) / "main" / VIEW).unlink(missing_ok=True)
    view_of(store)
    store.close()
    return store.directory


def verify(project: Project, **asked: Any) -> Verified:
    return verify_branch(project.workspace(), "main", **asked)


def checks(proof: Verified) -> dict[str, str]:
    return {check.name: check.status for check in proof.checks}


def errors(proof: Verified) -> list[str]:
    return [one.code for one in proof.findings if one.severity == "error"]


def test_a_sound_store_is_proven_in_every_part(project: Project) -> None:
    directory = filled(project)
    proof = verify(project, with_view=True)
    assert proof.is_sound
    assert checks(proof) == {"journal": "ran", "replay": "ran", "snapshots": "ran", "view": "ran"}
    assert (proof.seq, proof.good_seq, proof.records, proof.snapshots) == (4, 4, 4, 1)
    assert proof.hash == journal.read_head(project.machine.fs, directory).hash
    assert proof.as_json()["ok"] is True


def test_a_proof_writes_nothing(project: Project) -> None:
    filled(project)

    def seen() -> dict[str, tuple[int, int]]:
        files = [path for path in (project.root / ".kb").rglob("*") if path.is_file()]
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in files}

    before = seen()
    verify(project, with_view=True)
    assert seen() == before


def test_a_damaged_record_ends_the_replay_before_it_and_is_named(project: Project) -> None:
    directory = filled(project)
    segment = directory / "journal-0000000003.jsonl"
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(lines[0] + lines[1].replace(b'"N4"', b'"X4"'))
    proof = verify(project, with_view=True)
    assert not proof.is_sound
    assert proof.good_seq == 3
    assert errors(proof) == ["journal_corrupt"]
    (finding,) = (one for one in proof.findings if one.severity == "error")
    assert (finding.file, finding.line, finding.offset) == (str(segment), 2, len(lines[0]))
    assert checks(proof) == {"journal": "ran", "replay": "not_run", "snapshots": "ran", "view": "not_run"}


def test_a_snapshot_that_replay_cannot_reach_is_not_called_proven(project: Project) -> None:
    directory = filled(project)
    segment = directory / "journal-0000000001.jsonl"
    segment.write_bytes(segment.read_bytes().replace(b'"N1"', b'"X1"', 1))
    proof = verify(project)
    assert proof.good_seq == 0
    assert proof.snapshots == 0
    assert checks(proof) == {"journal": "ran", "replay": "not_run", "snapshots": "not_run"}


def test_a_snapshot_that_says_something_else_than_the_journal_is_found(project: Project) -> None:
    project.apply(entities=[{"id": "A", "type": "req", "title": "T", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")

    def wrong(head: Any) -> Any:
        folded = replay.folded(project.machine.fs, directory, head)
        node = msgspec.structs.replace(folded.state.nodes["A"], fields={"title": "Another"})
        folded.state.nodes["A"] = node
        return canonical.lines(folded.state, folded.known)

    compaction.compact(project.machine.fs, directory, project.machine.clock, wrong, wait_s=0)
    proof = verify(project)
    assert errors(proof) == ["snapshot_differs"]
    assert "Fact 1 of snapshot-0000000001.jsonl" in proof.findings[0].message


def test_a_damaged_snapshot_is_found_once_and_the_journal_is_still_proven(project: Project) -> None:
    directory = filled(project)
    path = directory / "snapshot-0000000002.jsonl"
    path.write_bytes(path.read_bytes().replace(b"N1", b"X1", 1))
    proof = verify(project)
    assert errors(proof) == ["snapshot_corrupt"]
    assert (proof.good_seq, proof.snapshots) == (4, 0)


def test_the_snapshot_of_a_pruned_history_is_the_beginning_and_its_loss_is_the_end(project: Project) -> None:
    directory = filled(project)
    compact(project.workspace(), "main", prune_before=5)
    proof = verify(project)
    assert proof.is_sound
    assert (proof.history_from, proof.good_seq) == (4, 4)
    assert [one.code for one in proof.findings] == ["history_pruned"]
    (directory / "snapshot-0000000004.jsonl").unlink()
    proof = verify(project)
    assert not proof.is_sound
    assert checks(proof)["replay"] == "not_run"


def test_a_record_of_a_newer_kb_is_not_checked_rather_than_sound(project: Project) -> None:
    directory = filled(project)
    newer = Record(schema=99, changeset_id="x", digest="", at="2099-01-01", actor="", source="", tool="", ops=())
    with journal.writing(project.machine.fs, directory, project.machine.clock) as writer:
        writer.append(encode(newer), newer.at)
    proof = verify(project)
    assert not proof.is_sound
    assert [(one.severity, one.code) for one in proof.findings] == [("not_checked", "format_too_new")]
    assert (proof.good_seq, checks(proof)["replay"]) == (4, "not_run")


def test_a_lost_head_leaves_everything_unproven(project: Project) -> None:
    (filled(project) / "head.json").unlink()
    proof = verify(project)
    assert not proof.is_sound
    assert proof.seq is None
    assert set(checks(proof).values()) == {"not_run"}


def test_a_view_that_differs_from_a_rebuilt_one_is_found(project: Project) -> None:
    import duckdb

    filled(project)
    path = caches_at(project.root) / "main" / VIEW
    with duckdb.connect(str(path)) as connection:
        connection.execute("update node set title = 'Wrong' where id = 'N1'")
        connection.execute("delete from record where seq = 2")
    proof = verify(project, with_view=True)
    assert errors(proof) == ["view_differs"]
    assert "node, record" in proof.findings[0].message
    assert "Delete" in proof.findings[0].remedy


def test_a_view_that_cannot_be_read_is_only_a_warning(project: Project) -> None:
    filled(project)
    path = caches_at(project.root) / "main" / VIEW
    path.write_bytes(b"no database" * 100)
    proof = verify(project, with_view=True)
    assert proof.is_sound
    assert [(one.severity, one.code) for one in proof.findings] == [("warning", "view_damaged")]


def test_a_view_that_is_ahead_of_the_journal_is_found(project: Project) -> None:
    directory = filled(project)
    kept = (directory / "head.json").read_bytes()
    project.apply(entities=[{"id": "N9", "type": "req", "title": "T", "status": "open"}])
    store = project.workspace().store("main")
    store.close()
    (caches_at(project.root) / "main" / VIEW).unlink()
    view_of(store)
    store.close()
    (directory / "head.json").write_bytes(kept)
    proof = verify(project, with_view=True)
    assert "view_ahead" in errors(proof)
    view_of(store)
    assert [(one.severity, one.code) for one in verify(project, with_view=True).findings] == [
        ("note", "beyond_head"),
        ("warning", "view_ahead"),
    ], "it is still reported after it was set aside"


def test_without_a_cache_the_view_is_reported_as_not_checked(project: Project) -> None:
    filled(project)
    (caches_at(project.root) / "main" / VIEW).unlink()
    proof = verify(project, with_view=True)
    assert checks(proof)["view"] == "not_run"


def test_a_branch_without_a_store_is_unknown(project: Project) -> None:
    with pytest.raises(UnknownBranch):
        verify_branch(project.workspace(), "nowhere")
