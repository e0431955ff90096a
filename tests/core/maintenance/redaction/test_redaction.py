"""A redaction takes a secret out of every file of a clone, keeps all else, and stays proven."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import ContentRedacted, FormatTooNew
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.model import record
from kbcore.storage import frame, head, journal
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.history import undo
from kbcore.store.history.compare import diff
from kbcore.store.history.log import log, record_json
from kbcore.store.history.moment import read_at
from kbcore.store.write_request import Request
from kbcore.view.history import state_at
from tests.core.maintenance.redaction.redacting import (
    SECRET,
    again,
    entity,
    folders,
    head_of,
    is_gone,
    pattern,
    preview,
    records,
    redact,
    verify,
)
from tests.support.disk.secrets import files_with
from tests.support.generators.histories import lines_of
from tests.support.repository.project import AUTHOR, Project, document
from tests.support.repository.repos import git
from tests.support.repository.stores import planner


def test_a_secret_is_in_no_file_afterwards_and_the_store_is_sound(filled: Project) -> None:
    assert files_with(SECRET, *folders(filled)) != []
    before = [lines_of(state_at(filled.view(), seq)) for seq in range(4)]
    answer = redact(filled, pattern())
    assert [(one.branch, one.seq, one.records) for one in answer.stores] == [("main", 4, 2)]
    assert is_gone(filled)
    proof = verify(filled)
    assert proof.is_sound, proof.findings
    assert (proof.seq, proof.snapshots) == (4, 1)
    after = [lines_of(state_at(filled.view(), seq)) for seq in range(4)]
    assert after == [[line.replace(SECRET.encode(), b"[redacted]") for line in one] for one in before]
    assert is_gone(filled)  # what was cached since does not have it either


def test_a_redacted_record_names_its_places_and_the_last_one_names_it(filled: Project) -> None:
    redact(filled, pattern())
    one, two, three, last = records(filled)
    assert one.redacted == ("ops.0.set.title", "digest")
    assert {"message", "ops.0.set.tags", "ops.0.set.attributes.deep", "digest"} <= {*two.redacted}
    assert (one.digest, two.digest, three.redacted) == ("", "", ())
    assert three.digest
    made = last.redaction
    assert made is not None
    assert (made.first, [each.seq for each in made.records], made.since) == (1, [1, 2], 1)
    assert last.source == record.REDACTION
    assert SECRET not in str(last)


def test_no_file_and_no_note_has_a_hash_of_before(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    old = [each.frame.sum for each in journal.scan(filled.machine.fs, directory, head_of(filled))]
    assert all(files_with(one, *folders(filled)) for one in old)
    redact(filled, pattern())
    assert [one for one in old if files_with(one, *folders(filled))] == []


def test_no_value_of_the_chain_depends_on_what_was_taken_out(filled: Project, tmp_path: Path) -> None:
    """Two stores that differ in the secret alone, redacted at the same moments, are the same bytes."""
    directory = filled.workspace().folders.directory_of("main")
    other = tmp_path / "other"
    shutil.copytree(filled.root, other, symlinks=True)
    twin = again(filled, other)
    there = twin.workspace().folders.directory_of("main")
    replaced = "correct-horse-b4"
    _with_other_secret(there, replaced)
    redact(filled, pattern())
    redact(twin, pattern(replaced))
    one, two = (
        list(journal.scan(filled.machine.fs, place, head.read(filled.machine.fs, place)))
        for place in (directory, there)
    )
    assert [each.frame.sum for each in one[:3]] == [each.frame.sum for each in two[:3]]
    twin.close()


def _with_other_secret(directory: Path, secret: str) -> None:
    """Rewrite a store as if another secret had been written."""
    from tests.core.storage.making import FS

    of = head.read(FS, directory)
    prev, sums = of.lineage, {}
    segments = []
    for part in of.segments:
        data, base = b"", prev
        length = part.sealed.length if part.sealed else of.head.length
        for line in (directory / part.file).read_bytes()[:length].splitlines(keepends=True):
            old = frame.peek(line)
            assert old is not None
            new, line = frame.encode(old.seq, prev, old.rec.replace(SECRET.encode(), secret.encode()))  # noqa: PLW2901
            sums[old.seq] = prev = new.sum
            data += line
        (directory / part.file).write_bytes(data)
        sealed = msgspec.structs.replace(part.sealed, length=len(data), hash=prev) if part.sealed else None
        segments.append(msgspec.structs.replace(part, base_hash=base, sealed=sealed))
        tip = msgspec.structs.replace(of.head, hash=prev, length=len(data))
    new = msgspec.structs.replace(of, segments=tuple(segments), head=tip, snapshots=())
    (directory / "head.json").write_bytes(head.encode(new))


def test_an_older_kb_refuses_a_redacted_store(filled: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    redact(filled, pattern())
    directory = filled.workspace().folders.directory_of("main")
    monkeypatch.setattr(head, "KNOWN_FEATURES", head.KNOWN_FEATURES - {head.REDACTED})
    with pytest.raises(FormatTooNew, match="redacted"):
        head.read(filled.machine.fs, directory)


def test_a_store_without_redaction_has_the_same_head_as_before(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    assert b"redacted" not in (directory / "head.json").read_bytes()


def test_history_time_travel_and_differences_answer_without_it(filled: Project) -> None:
    redact(filled, pattern())
    store, _, _ = branches.open_branch(filled.workspace(), None)
    for seq in range(1, 5):
        assert SECRET not in str(store.read(lambda view, seq=seq: record_json(store, view, seq)))
    shown = store.read(lambda view: record_json(store, view, 1))
    assert shown["redacted"] == ["ops.0.set.title", "digest"]
    assert shown["operations"][0]["after"]["title"] == "Log in with [redacted]!"
    assert SECRET not in str(store.read(log))
    assert "[redacted]" in str(store.read(lambda view: diff(view, 0, 3)))
    assert "[redacted]" in str(read_at(store, "1", lambda view, seq: lines_of(state_at(view, seq))))


def test_a_redacted_record_cannot_be_reverted_and_another_can(filled: Project) -> None:
    redact(filled, pattern())
    workspace = filled.workspace()
    with pytest.raises(ContentRedacted, match="record 1 wrote was redacted"):
        undo.revert(workspace, "main", AUTHOR, [1], follows_head=True)
    assert undo.revert(workspace, "main", AUTHOR, [3], follows_head=True).applied
    undo.rollback(workspace, "main", AUTHOR, 0, follows_head=True)
    undo.rollback(workspace, "main", AUTHOR, 3, follows_head=True)
    assert is_gone(filled)
    assert verify(filled).is_sound


def test_a_changeset_that_is_sent_again_is_refused_and_brings_nothing_back(filled: Project) -> None:
    redact(filled, pattern())
    with pytest.raises(ContentRedacted, match="took effect at seq 1"):
        filled.apply(changeset_id="one", entities=[entity("REQ-1", title=f"Log in with {SECRET}!")])
    assert filled.apply(changeset_id="three", entities=[entity("REQ-3")]).duplicate
    assert filled.seq() == 4
    assert is_gone(filled)


def test_a_write_without_a_digest_is_answered_again_after_its_record_was_redacted(filled: Project) -> None:
    redact(filled, pattern())
    store = filled.workspace().store("main")
    again = store.commit(AUTHOR, Request("one"), planner([]), branch="main")
    assert (again.seq, again.duplicate) == (1, True)


def test_a_write_after_a_redaction_goes_on(filled: Project) -> None:
    redact(filled, pattern())
    assert filled.apply(entities=[entity("REQ-4")]).seq == 5
    compact(filled.workspace(), "main")
    filled.apply(entities=[entity("REQ-5")])
    assert verify(filled).is_sound
    assert lost.losses(filled.workspace()) == []
    names = {path.name for path in filled.workspace().folders.directory_of("main").iterdir()}
    assert {"journal-0000000001-r1.jsonl", "journal-0000000003-r1.jsonl", "journal-0000000006.jsonl"} <= names


def test_the_values_of_one_entity_go_by_its_id_also_under_its_former_one(project: Project) -> None:
    place = "docs/requirements/a.md"
    project.sync({place: document("REQ-1", title="first", status="open", owner="ada")})
    project.apply(entities=[entity("REQ-2", title="other")])
    project.sync({place: document("REQ-9", title="second", status="open", former_ids="[REQ-1]")})
    answer = redact(project, Wanted("entity", "REQ-9"))
    assert answer.stores[0].records == 2
    assert any(place in one for one in answer.elsewhere)
    state = state_at(project.view(), 3)
    assert state.nodes["REQ-9"].fields["title"] == "[redacted]"
    assert state.nodes["REQ-9"].fields["attributes.former_ids"] == ["REQ-1"]
    assert state.nodes["REQ-9"].fields["type"] == "req"
    assert state_at(project.view(), 1).nodes["REQ-1"].fields["owner"] == "[redacted]"
    assert state.nodes["REQ-2"].fields["title"] == "other"
    assert verify(project).is_sound


def test_only_a_named_field_goes(project: Project) -> None:
    project.apply(entities=[entity("REQ-1", title="stays", attributes={"token": SECRET, "other": "x"})])
    redact(project, Wanted("entity", "REQ-1", fields=("token",)))
    fields = state_at(project.view(), 1).nodes["REQ-1"].fields
    assert (fields["title"], fields["attributes.token"], fields["attributes.other"]) == ("stays", "[redacted]", "x")
    assert is_gone(project)


def test_the_values_of_one_record_go_in_every_branch_that_has_it(filled: Project) -> None:
    git(filled.root, "branch", "other")
    filled.apply(branch="other", entities=[entity("REQ-7")])
    answer = redact(filled, Wanted("record", seq=2))
    assert {one.branch for one in answer.stores} == {"main", "other"}
    for branch in ("main", "other"):
        found = records(filled, branch)
        assert found[1].message == "[redacted]"
        assert found[0].redacted == ()
        assert verify(filled, branch).is_sound
    # The value of the first record is another one, and was not asked for: the preview says where it stays.
    assert [one.also_in for one in preview(filled, Wanted("record", seq=1)).stores] == [(), ()]


def test_a_preview_names_records_fields_and_branches_and_never_the_secret(filled: Project) -> None:
    before = filled.workspace().folders.directory_of("main").joinpath("head.json").read_bytes()
    found = preview(filled, pattern())
    assert SECRET not in str(found.as_json())
    assert [one.seq for one in found.stores[0].records] == [1, 2]
    assert "REQ-1 title" in found.stores[0].records[0].places
    assert found.stores[0].snapshots == 1
    assert any("Revoke" in one for one in found.elsewhere)
    assert filled.workspace().folders.directory_of("main").joinpath("head.json").read_bytes() == before


def test_branches_keep_their_common_history(filled: Project) -> None:
    git(filled.root, "branch", "other")
    filled.apply(branch="other", entities=[entity("REQ-7")])
    redact(filled, pattern())
    assert is_gone(filled)
    one, two = (
        [each.frame.sum for each in journal.scan(filled.machine.fs, place, head.read(filled.machine.fs, place))]
        for place in (filled.workspace().folders.directory_of(name) for name in ("main", "other"))
    )
    assert one[:3] == two[:3]
    assert head_of(filled, "other").origin.hash == two[2]  # type: ignore[union-attr]
    assert verify(filled, "other").is_sound
