"""A redaction reaches each place that may hold a secret, and refuses patterns that take too much."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import ContentRedacted, InvalidQuery, NotFound
from kbcore.maintenance import redaction_preview
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Create, EntityRef, SetField, identified
from kbcore.storage import head, layout
from kbcore.store import branches
from kbcore.store.branches import lost, trash
from kbcore.store.folders import DATA
from kbcore.store.write_request import Author
from kbcore.view.history import state_at
from tests.core.maintenance.redaction.redacting import (
    SECRET,
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
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project, document
from tests.support.repository.repos import git


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
    assert (
        redaction_preview.meant(project.workspace(), "main", "REQ-1", is_pattern=False, is_regex=False).kind == "entity"
    )
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


def test_change_files_of_the_worktree_are_written_again_under_a_new_name(project: Project) -> None:
    ref = EntityRef("REQ-7", ("@",))
    claims = (
        Create("REQ-7"),
        SetField(ref, "title", now=f"Use {SECRET}", salt="7b1f"),
        SetField(ref, "type", now="req", salt="1"),
    )
    change = identified(Change("", "2026-11-28T12:00:00.000000Z", "ann", "kb/0.1", claims, message=SECRET, salt="e1f2"))
    data = change_file.encode([change])
    old = project.root / ".kb/changes" / change_file.file_path([change], data)
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
