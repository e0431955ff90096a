"""A redaction takes a secret out of every file of a clone, keeps all else, and stays proven."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import ContentRedacted, FormatTooNew, InvalidQuery, NotFound
from kbcore.maintenance import redaction
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.proof import Verified, verify_branch
from kbcore.maintenance.redaction import Preview, RedactAnswer, Wanted
from kbcore.maintenance.repair import rebuild_head
from kbcore.maintenance.salvage import salvage
from kbcore.model import record
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Create, EntityRef, SetField, identified
from kbcore.storage import frame, head, journal, layout, recovery
from kbcore.storage.head import Head
from kbcore.store import branches
from kbcore.store.branches import lost, trash
from kbcore.store.folders import DATA
from kbcore.store.history import undo
from kbcore.store.history.compare import diff
from kbcore.store.history.log import log, record_json
from kbcore.store.history.moment import read_at
from kbcore.store.pool import Machine
from kbcore.store.write_request import Author, Request
from kbcore.view.cache_files import CacheFiles
from kbcore.view.history import state_at
from tests.support.disk.secrets import files_with
from tests.support.generators.histories import lines_of
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project, document
from tests.support.repository.repos import git, git_env
from tests.support.repository.stores import planner

SECRET = "hunter2-Pa$$w0rd"


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def pattern(text: str = SECRET, *, is_regex: bool = False) -> Wanted:
    return Wanted("pattern", text, is_regex)


def redact(project: Project, wanted: Wanted, branch: str = "main") -> RedactAnswer:
    answer = redaction.redact(project.workspace(), branch, wanted, AUTHOR)
    assert answer.is_whole, answer
    return answer


def preview(project: Project, wanted: Wanted) -> Preview:
    return redaction.preview(project.workspace(), "main", wanted)


def head_of(project: Project, branch: str = "main") -> Head:
    return head.read(project.machine.fs, project.workspace().folders.directory_of(branch))


def verify(project: Project, branch: str = "main") -> Verified:
    return verify_branch(project.workspace(), branch, with_view=True)


def records(project: Project, branch: str = "main") -> list[record.Record]:
    directory, of = project.workspace().folders.directory_of(branch), head_of(project, branch)
    entries = journal.scan(project.machine.fs, directory, of)
    return [record.decode(entry.frame.rec, seq=entry.frame.seq) for entry in entries]


def folders(project: Project) -> tuple[Path, ...]:
    """Return every folder in which KB keeps something of a clone, the notes outside of the repository among them."""
    return project.root / ".git" / DATA, project.root / ".kb", Path(project.machine.env.get("XDG_STATE_HOME", "none"))


def is_gone(project: Project, secret: str = SECRET) -> bool:
    assert files_with(secret, *(one for one in folders(project) if one.is_dir())) == []
    return True


def again(project: Project, root: Path | None = None) -> Project:
    """Return the same repository, or a copy of it, as another process of the same user has it."""
    other = Project(root or project.root, is_new=False)
    other.machine = project.machine
    return other


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository of a user with a folder for the notes of the second witness."""
    made = Project(tmp_path / "a project")
    made.machine = Machine(made.machine.fs, made.machine.clock, git_env({"XDG_STATE_HOME": str(tmp_path / "state")}))
    yield made
    made.close()


@pytest.fixture
def filled(project: Project) -> Project:
    """A store with a secret in values of several kinds, a snapshot after some, and cached files."""
    project.apply(changeset_id="one", entities=[entity("REQ-1", title=f"Log in with {SECRET}!")])
    project.apply(
        changeset_id="two",
        message=f"use {SECRET}",
        entities=[entity("REQ-2", tags=["a", SECRET], attributes={"deep": {"list": [1, {SECRET: f"x{SECRET}y"}]}})],
        edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1", "attributes": {"note": SECRET}}],
    )
    compact(project.workspace(), "main")
    project.apply(changeset_id="three", entities=[entity("REQ-3")])
    project.close()  # the next view is built and published
    project.view()
    return project


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


def test_stores_in_the_trash_are_redacted_and_come_back_sound(filled: Project, tmp_path: Path) -> None:
    git(filled.root, "branch", "gone")
    filled.apply(branch="gone", entities=[entity("REQ-7", title=SECRET)])
    git(filled.root, "branch", "-D", "gone")
    notes = {path: path.read_bytes() for path in (tmp_path / "state").rglob("gone.json")}
    branches.collect(filled.workspace())
    for path, data in notes.items():  # where the process ends before the note is removed
        path.write_bytes(data)
    old = head.read(filled.machine.fs, trash.find(filled.workspace(), "gone").path).hash  # type: ignore[union-attr]
    assert files_with(old, *folders(filled)) != []
    answer = redact(filled, pattern())
    assert files_with(old, *folders(filled)) == []
    assert {one.place == "branch" for one in answer.stores} == {True, False}
    assert is_gone(filled)
    assert lost.losses(filled.workspace()) == []
    for path, data in notes.items():  # where it ends before the note is written again
        path.write_bytes(data)
    filled.close()
    assert lost.losses(filled.workspace()) == []
    assert branches.restore(filled.workspace(), "gone").seq == 5
    assert verify(filled, "gone").is_sound


def test_copies_in_quarantine_go(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    filled.pool.close()
    with (directory / head_of(filled).head.file).open("ab") as file:
        file.write(b'{"v":1,"seq":9,"prev":"' + SECRET.encode())
    filled.apply(entities=[entity("REQ-5")])
    assert files_with(SECRET, directory / "quarantine") != []
    shown = preview(filled, pattern()).stores[0].quarantine
    assert shown != ()
    (directory / "quarantine/before-rebuild-2026-01234567").mkdir()
    (directory / "quarantine/before-rebuild-2026-01234567/journal-0000000001.jsonl").write_text(SECRET)
    redact(filled, pattern())
    assert is_gone(filled)
    # The names of the others have digests of what was cut off.
    assert head_of(filled).redacted.removes == ("before-rebuild-2026-01234567",)  # type: ignore[union-attr]
    assert list((directory / "quarantine").iterdir()) == []


@pytest.mark.parametrize(
    "place",
    [
        "quarantine/journal-0000000001-at-9-0123456789abcdef.cut",
        "quarantine/before-rebuild-2026-01234567/journal-0000000001.jsonl",
        "snapshot-0000000001.jsonl",
        "snapshot-0000000001.jsonl.tmp",
    ],
)
@pytest.mark.parametrize("spelled", [SECRET, "hunt\\u0065r2-Pa$$w0rd \\n"])
def test_a_file_that_the_store_does_not_use_goes_where_no_record_holds_it(
    project: Project, place: str, spelled: str
) -> None:
    project.apply(entities=[entity("REQ-1")])
    file = project.workspace().folders.directory_of("main") / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{"v":1,"rec":{{"title":"{spelled}')
    shown = preview(project, pattern()).stores[0]
    assert (shown.records, shown.unused != ()) == ((), True)
    answer = redact(project, pattern())
    assert answer.stores[0].records == 0
    assert not file.exists()
    assert records(project)[-1].redaction is not None
    assert verify(project).is_sound
    with pytest.raises(NotFound):
        redact(project, pattern())


def test_an_unfinished_copy_of_a_store_goes(filled: Project) -> None:
    left = filled.workspace().folders.branches_dir / f"{layout.BUILDING_PREFIX}0123456789abcdef"
    left.mkdir()
    (left / "journal-0000000001.jsonl").write_text(SECRET)
    redact(filled, pattern())
    assert is_gone(filled)


def test_stores_that_are_not_in_use_are_named(filled: Project) -> None:
    assert not [one for one in preview(filled, pattern()).elsewhere if "not in use" in one]
    aside, older = filled.root / ".git/kb-moved/branches", filled.root / ".kb/branches"
    shutil.copytree(stores_at(filled.root), aside, symlinks=True)
    shutil.rmtree(older)
    shutil.copytree(stores_at(filled.root), older, symlinks=True)
    said = [one.partition(" has stores")[0] for one in preview(filled, pattern()).elsewhere if "not in use" in one]
    assert said == [str(aside), str(older)]


def test_a_second_redaction_removes_the_digests_that_would_reveal_it(filled: Project) -> None:
    redact(filled, Wanted("entity", "REQ-3"))
    first = records(filled)[3].redaction
    assert first is not None
    assert first.kept
    redact(filled, pattern())
    again = records(filled)[3]
    assert again.redaction is not None
    assert (again.redaction.kept, [one.digest != "" for one in again.redaction.records]) == ("", [True])
    assert "redaction.kept" in again.redacted
    assert verify(filled).is_sound
    redact(filled, Wanted("record", seq=2))  # for the second time
    assert verify(filled).is_sound
    assert head_of(filled).generation == 3
    assert is_gone(filled)


def test_what_a_later_record_shows_of_an_earlier_one_changes_the_earlier_one(project: Project) -> None:
    key = f"Person:~{'0' * 32}"
    project.apply(entities=[entity(key, title="not yet")])
    compact(project.workspace(), "main")
    project.apply(entities=[entity(key, title=f"the digest is of {SECRET}")])
    redact(project, pattern())
    assert records(project)[0].redacted == ("ops.0.id", "digest")
    assert project.node("Person:redacted") is not None
    assert is_gone(project, key)
    assert verify(project).is_sound


def test_pruned_history_is_redacted_in_the_snapshot_that_holds_it(filled: Project) -> None:
    compact(filled.workspace(), "main", prune_before=3)
    before = lines_of(state_at(filled.view(), 3))
    assert redact(filled, pattern()).stores[0].records == 0
    assert is_gone(filled)
    proof = verify(filled)
    assert proof.is_sound, proof.findings
    assert lines_of(state_at(filled.view(), 3)) == [one.replace(SECRET.encode(), b"[redacted]") for one in before]
    with pytest.raises(ContentRedacted):
        filled.apply(changeset_id="one", entities=[entity("REQ-1", title=f"Log in with {SECRET}!")])


def test_a_document_that_holds_it_is_named_and_its_digest_goes(project: Project) -> None:
    project.sync({"docs/requirements/a.md": document("REQ-1", title=f"Use {SECRET}", status="open")})
    assert redaction.meant(project.workspace(), "main", "REQ-1", is_pattern=False, is_regex=False).kind == "entity"
    answer = redact(project, pattern())
    assert any("docs/requirements/a.md:3" in one for one in answer.elsewhere)
    assert state_at(project.view(), 1).sources["docs/requirements/a.md"].hash == ""
    assert is_gone(project)
    project.sync({"docs/requirements/a.md": document("REQ-1", title="Use it", status="open")})
    assert project.node("REQ-1").fields["title"] == "Use it"  # type: ignore[union-attr]
    assert is_gone(project)
    assert verify(project).is_sound


def test_a_secret_in_an_id_a_path_an_actor_and_a_changeset_id_goes(project: Project) -> None:
    word = "s3cretword"
    bot = Author(f"bot {word}", f"mcp:{word}", f"tool/{word}", f"session {word}")
    edges = [{"type": "depends_on", "from": f"REQ-{word}", "to": "REQ-1"}]
    entities = [entity(f"REQ-{word}", title=f"see {word}"), entity("REQ-1"), entity("REQ-redacted")]
    project.apply(author=bot, changeset_id=f"cs-{word}", entities=entities, edges=edges)
    project.apply(edges=[{"type": "relates_to", "kind": word, "from": f"REQ-{word}", "to": "REQ-1"}])
    project.sync({f"docs/requirements/{word}.md": document("REQ-5", title="Five", status="open")})
    (project.root / f"docs/requirements/{word}.md").rename(project.root / "docs/requirements/five.md")
    redact(project, pattern(word))
    assert is_gone(project, word)
    assert verify(project).is_sound
    assert project.edges("REQ-redacted-2") == {
        ("REQ-redacted-2", "depends_on", "REQ-1", True), ("REQ-redacted-2", "relates_to", "REQ-1", True),
    }  # fmt: skip
    assert records(project)[0].changeset_id == "redacted-1"
    project.sync()
    assert verify(project).is_sound
    assert is_gone(project, word)


@pytest.mark.parametrize("text", ["a", "abc", "", "12"])
def test_a_short_pattern_is_refused_with_a_reason(filled: Project, text: str) -> None:
    with pytest.raises(InvalidQuery, match="fewer than 4 characters"):
        preview(filled, pattern(text))


@pytest.mark.parametrize(
    ("text", "words"), [(".*", "empty text"), (".", "single"), ("(", "no regular"), ("[", "no reg")]
)
def test_a_regular_expression_that_takes_all_is_refused(filled: Project, text: str, words: str) -> None:
    with pytest.raises(InvalidQuery, match=words):
        preview(filled, pattern(text, is_regex=True))


@pytest.mark.parametrize("text", ["title", "status", "depends_on", "redacted"])
def test_a_pattern_that_is_part_of_a_name_is_refused_and_nothing_is_written(filled: Project, text: str) -> None:
    of = head_of(filled)
    for ask in (lambda: preview(filled, pattern(text)), lambda: redact(filled, pattern(text))):
        with pytest.raises(InvalidQuery, match="pattern"):
            ask()
    assert head_of(filled) == of


def test_a_secret_that_is_split_over_two_fields_is_not_found_as_one(project: Project) -> None:
    project.apply(entities=[entity("REQ-1", title="hunter2-Pa", owner="$$w0rd")])
    assert preview(project, pattern()).is_empty
    with pytest.raises(NotFound, match="Nothing in the stores") as refused:
        redact(project, pattern())
    assert "give each part" in refused.value.hint
    redact(project, pattern("hunter2-Pa"))
    assert is_gone(project, "hunter2-Pa")


def test_a_regular_expression_takes_out_each_match(project: Project) -> None:
    project.apply(entities=[entity("REQ-1", title="keys AKIA1234567890 and AKIA0987654321", priority="AKIA")])
    redact(project, pattern(r"AKIA\d{10}", is_regex=True))
    assert project.node("REQ-1").fields["title"] == "keys [redacted] and [redacted]"  # type: ignore[union-attr]
    assert project.node("REQ-1").fields["priority"] == "AKIA"  # type: ignore[union-attr]


def test_a_number_that_is_the_secret_goes(project: Project) -> None:
    project.apply(entities=[entity("REQ-1", attributes={"pin": 48151623, "list": [48151623, 7]})])
    redact(project, pattern("48151623"))
    fields = project.node("REQ-1").fields  # type: ignore[union-attr]
    assert (fields["attributes.pin"], fields["attributes.list"]) == ("[redacted]", ["[redacted]", 7])
    assert is_gone(project, "48151623")


_ODD = st.text(
    st.one_of(st.sampled_from("\"'\\\n\t/.*+?[](){}^$|é\u2028😀 aZ0-"), st.characters(codec="utf-8", min_codepoint=32)),
    max_size=12,
)
HOSTILE = st.tuples(_ODD, _ODD).map("hunter2".join).filter(lambda text: text.strip() == text)
"""With a word in the middle that no file of KB has by chance."""


@given(secret=HOSTILE, before=st.text(st.characters(codec="utf-8", categories=["L", "N"]), max_size=3))
def test_any_secret_in_a_value_goes_and_all_else_stays(secret: str, before: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder) / "repo")
        try:
            text = f"{before}{secret}"
            project.apply(entities=[entity("N-1", attributes={"note": text, "list": [text]}), entity("N-2")])
            project.apply(entities=[entity("N-1", attributes={"note": "clean"})])
            project.view()
            stored = state_at(project.view(), 1).nodes["N-1"].fields["attributes.note"]
            other = lines_of(state_at(project.view(), 2))
            if secret not in stored:
                return  # what is stored is in a normal form, which another test looks at
            redact(project, pattern(secret))
            assert files_with(secret, project.root / ".git" / DATA) == []
            assert verify(project).is_sound
            now = state_at(project.view(), 2)
            assert now.nodes["N-2"].fields == {"type": "req", "title": "Title of N-2", "status": "open"}
            assert len(lines_of(now)) == len(other)
        finally:
            project.close()


# What a crash leaves


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


# What verify finds


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


# Change files


def test_change_files_of_the_worktree_are_written_again_under_a_new_name(project: Project) -> None:
    ref = EntityRef("REQ-7", ("@",))
    claims = (
        Create("REQ-7"),
        SetField(ref, "title", now=f"Use {SECRET}", salt="7b1f"),
        SetField(ref, "type", now="req", salt="1"),
    )
    change = identified(Change("", "2026-11-28T12:00:00.000000Z", "ann", "kb/0.1", claims, message=SECRET, salt="e1f2"))
    data = change_file.encode([change])
    old = project.root / ".kb/changes" / change_file.path_of([change], data)
    old.parent.mkdir(parents=True)
    old.write_bytes(data)
    project.apply(entities=[entity("REQ-1")])
    assert preview(project, pattern()).change_files == (str(old),)
    (new,) = redact(project, pattern()).change_files
    assert not old.exists()
    read = change_file.decode(Path(new).read_bytes(), Path(new).relative_to(project.root / ".kb/changes").as_posix())
    assert [one.id for one in read.changes] == [change.id]
    assert read.changes[0].message_hash
    assert is_gone(project)


def test_superseded_files_are_none_where_nothing_was_redacted(filled: Project) -> None:
    directory = filled.workspace().folders.directory_of("main")
    assert recovery.superseded(filled.machine.fs, directory, head_of(filled)) == []
    assert stores_at(filled.root).is_dir()
