"""Documents are written all or none, and only as they were read; what they say then is one record."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbcore.editing import document_lock
from kbcore.editing.creation import Wish, make
from kbcore.editing.documents import WriteTarget, commit, framed
from kbcore.editing.file_edits import FileEdit
from kbcore.editing.renaming import rename
from kbcore.editing.setting import set_fields
from kbcore.editing.undoing import undo
from kbcore.errors import (
    BranchMoved,
    DerivedFact,
    Interrupted,
    InvalidChangeset,
    InvalidQuery,
    LockTimeout,
    NotSynced,
    StaleBase,
)
from kbcore.process.interrupting import Stopped
from kbcore.store.answers import Outcome
from kbcore.store.write_request import Author
from tests.support.disk.saving import saving_while_written
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git

ONE, TWO = "docs/requirements/a.md", "docs/requirements/b.md"


def target(project: Project, branch: str = "main") -> WriteTarget:
    read = project.workspace().store(branch).read
    return WriteTarget(project.workspace(), branch, Author("ann", "cli", "kb/test"), read, follows_head=True)


def edit(path: str, old: str | None, new: str) -> FileEdit:
    return FileEdit(path, None if old is None else old.encode(), new.encode())


def written(project: Project, edits: list[FileEdit], *, dry_run: bool = False) -> Outcome:
    return commit(target(project), edits, framed(target(project), message="m", dry_run=dry_run))


def test_files_are_written_and_recorded_as_one_record(project: Project) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})
    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(TWO, req("B"), req("B", owner="ann"))]
    planned = written(project, edits, dry_run=True)
    assert (planned.updated, planned.applied, project.seq()) == (("A", "B"), False, 1)
    assert (project.root / ONE).read_text() == req("A")
    assert written(project, edits).seq == project.seq() == 2
    assert not project.sync().outcome.applied


def test_a_file_that_changed_since_it_was_read_refuses_all_of_them(project: Project) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})
    project.write({TWO: req("B", owner="bob")})
    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(TWO, req("B"), req("B", owner="ann"))]
    with pytest.raises(StaleBase):
        written(project, edits)
    assert (project.root / ONE).read_text() == req("A")
    assert (project.root / TWO).read_text() == req("B", owner="bob")
    assert project.seq() == 1


def test_a_new_file_never_takes_the_place_of_another_and_what_was_written_before_it_is_put_back(
    project: Project,
) -> None:
    project.sync({ONE: req("A")})
    project.write({TWO: "mine\n"})
    new = "docs/requirements/c.md"
    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(new, None, req("C")), edit(TWO, None, req("B"))]
    with pytest.raises(StaleBase):
        written(project, edits)
    assert (project.root / ONE).read_text() == req("A")
    assert (project.root / TWO).read_text() == "mine\n"
    assert not (project.root / new).exists()
    assert project.seq() == 1


def test_a_document_that_is_saved_while_others_are_written_is_kept_and_the_others_are_put_back(
    project: Project,
) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})
    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(TWO, req("B"), req("B", owner="ann"))]
    with (
        saving_while_written(ONE, lambda: project.write({TWO: req("B", owner="bob")})),
        pytest.raises(StaleBase, match=r"b\.md has changed") as reported,
    ):
        commit(target(project), edits, framed(target(project), message="m", dry_run=False))
    assert "Nothing was written" in reported.value.hint
    assert (project.root / TWO).read_text() == req("B", owner="bob")
    assert (project.root / ONE).read_text() == req("A")
    assert project.seq() == 1


def test_what_was_saved_in_a_file_that_was_written_is_not_undone_and_the_error_names_the_file(project: Project) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})
    three = "docs/requirements/c.md"
    project.sync({three: req("C")})
    edits = [edit(path, req(key), req(key, owner="ann")) for path, key in ((ONE, "A"), (TWO, "B"), (three, "C"))]

    def save() -> None:
        project.write({ONE: req("A", owner="bob")})
        (project.root / three).unlink()

    with saving_while_written(TWO, save), pytest.raises(StaleBase) as reported:
        commit(target(project), edits, framed(target(project), message="m", dry_run=False))
    assert reported.value.message.endswith("could not be put back: docs/requirements/a.md.")
    assert "Nothing was written" not in reported.value.hint
    assert (project.root / ONE).read_text() == req("A", owner="bob")
    assert (project.root / TWO).read_text() == req("B")


def test_a_stop_names_a_written_file_that_somebody_saved_and_puts_the_others_back(project: Project) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})

    def stop() -> None:
        project.write({ONE: "mine\n"})
        raise Stopped

    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(TWO, req("B"), req("B", owner="ann"))]
    with saving_while_written(TWO, stop), pytest.raises(Interrupted, match=f"had written {ONE}, and could") as raised:
        written(project, edits)
    assert raised.value.applied == "yes"
    assert [(project.root / path).read_text() for path in (ONE, TWO)] == ["mine\n", req("B")]


@pytest.mark.parametrize("path", [ONE, TWO])
def test_a_stop_while_files_are_written_puts_them_back(project: Project, path: str) -> None:
    project.sync({ONE: req("A"), TWO: req("B")})

    def stop() -> None:
        raise Stopped

    edits = [edit(ONE, req("A"), req("A", owner="ann")), edit(TWO, req("B"), req("B", owner="ann"))]
    with saving_while_written(path, stop), pytest.raises(Stopped):
        written(project, edits)
    assert [(project.root / one).read_text() for one in (ONE, TWO)] == [req("A"), req("B")]
    assert project.sync().is_idle


def test_documents_of_a_branch_that_is_not_checked_out_are_not_written(project: Project) -> None:
    project.sync({ONE: req("A")})
    project.switch("other", create=True)
    with pytest.raises(BranchMoved):
        written(project, [edit(ONE, req("A"), req("A", owner="ann"))])
    assert (project.root / ONE).read_text() == req("A")


CYCLE = "acyclic (error): depends_on forms a cycle: A → B → A."


def test_a_write_and_a_dry_run_say_which_rules_they_newly_break(project: Project) -> None:
    project.sync({ONE: req("A", depends_on="B"), TWO: req("B")})
    edits = [edit(TWO, req("B"), req("B", depends_on="A"))]
    assert CYCLE in written(project, edits, dry_run=True).warnings
    assert CYCLE in written(project, edits).warnings
    after = written(project, [edit(TWO, req("B", depends_on="A"), req("B", depends_on="A", owner="ann"))])
    assert CYCLE not in after.warnings, "it was broken before"


def test_a_new_document_is_judged_as_it_will_be_also_in_a_dry_run(project: Project) -> None:
    project.sync({ONE: req("A", title="Same")})
    edits = [edit(TWO, None, req("B", title="Same"))]
    for dry_run in (True, False):
        said = written(project, edits, dry_run=dry_run).warnings
        assert any(one.startswith("duplicate-title (warning): A and B") for one in said)
        assert not any("missing-file" in one for one in said)


def test_a_status_that_no_entity_of_its_type_has_is_a_warning_unless_its_rule_is_off(project: Project) -> None:
    project.write({".kb/schema/own.yaml": "entities: {req: {statuses: [draft, open, done]}}\n"})
    project.sync({ONE: req("A")})
    edits = [edit(ONE, req("A"), req("A").replace("status: open", "status: finished"))]
    assert [one.split(":")[0] for one in written(project, edits, dry_run=True).warnings] == ["unknown-status (warning)"]
    project.write({".kb/config.json": '{"rules": {"unknown-status": "off"}}'})
    assert written(project, edits).warnings == ()


def test_an_edit_after_which_its_file_could_not_be_read_whole_is_refused(project: Project) -> None:
    project.write({".kb/schema/own.yaml": "entities: {req: {attributes: {size: {type: text, required: true}}}}\n"})
    project.sync({ONE: req("A", size="L")})
    for dry_run in (True, False):
        with pytest.raises(InvalidChangeset, match=f"^{ONE}:.*size"):
            written(project, [edit(ONE, req("A", size="L"), req("A"))], dry_run=dry_run)
    assert (project.root / ONE).read_text() == req("A", size="L")
    assert project.seq() == 1


EDITS = {
    "set": lambda where, dry_run: set_fields(where, "A", ["owner=ann"], dry_run=dry_run),
    "new": lambda where, dry_run: make(where, Wish("req", title="n", key="N"), dry_run=dry_run),
    "rename": lambda where, dry_run: rename(where, "A", "C", dry_run=dry_run),
    "undo": lambda where, dry_run: undo(where, 2, dry_run=dry_run),
}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("verb", EDITS)
def test_an_edit_waits_for_whoever_edits_documents_of_the_worktree_and_a_dry_run_does_not(
    project: Project, verb: str
) -> None:
    project.write({".kb/config.json": '{"lockWaitSeconds": 0}'})
    project.sync({ONE: req("A0"), TWO: req("B", depends_on="A0")})
    rename(target(project), "A0", "A")
    before = {path: (project.root / path).read_bytes() for path in (ONE, TWO)}
    with document_lock.held(project.workspace(), command="kb other", dry_run=False):
        with pytest.raises(LockTimeout, match=r"is held by kb other \(process"):
            EDITS[verb](target(project), False)
        EDITS[verb](target(project), True)
    assert {path: (project.root / path).read_bytes() for path in before} == before
    assert project.seq() == 2
    EDITS[verb](target(project), False)
    assert project.seq() == 3


def test_documents_of_another_worktree_are_edited_meanwhile(project: Project, tmp_path: Path) -> None:
    project.write({".kb/config.json": '{"lockWaitSeconds": 0}'})
    project.sync({ONE: req("A")})
    git(project.root, "add", ".")
    git(project.root, "commit", "--quiet", "-m", "a")
    git(project.root, "worktree", "add", "--quiet", "-b", "other", tmp_path / "beside")
    other = Project(tmp_path / "beside", is_new=False)
    other.sync()
    with document_lock.held(project.workspace(), command="kb other", dry_run=False):
        assert set_fields(target(other, "other"), "A", ["owner=ann"]).outcome.updated == ("A",)
    other.close()


BROKEN = {
    "a conflict": ("status: open\n<<<<<<< HEAD\nowner: m\n=======\nowner: x\n>>>>>>> x", 5, "a git merge stopped here"),
    "YAML": ("status: open\ntags: [a, b", 5, "not valid YAML"),
    "a key twice": ("status: open\nowner: m\nowner: x", 6, "`owner` is there twice"),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("verb", ["set", "rename"])
def test_a_document_that_cannot_be_read_whole_is_not_edited_whether_or_not_the_records_know_it(
    project: Project, fault: str, is_known: bool, verb: str
) -> None:
    front, line, said = BROKEN[fault]
    project.sync({ONE: req("A")})
    text = req("A").replace("status: open", front)
    project.write({ONE: text})
    if is_known:
        project.sync()
    seq = project.seq()
    with pytest.raises(NotSynced if (verb, is_known) == ("rename", False) else DerivedFact) as reported:
        EDITS[verb](target(project), False)
    if isinstance(reported.value, DerivedFact):
        assert re.match(rf"{ONE}:{line}: .*{said}.*KB edits no file that cannot be read whole", reported.value.message)
    assert (project.root / ONE).read_text() == text
    assert project.seq() == seq


def test_a_conflict_that_a_code_fence_shows_does_not_keep_a_document_from_being_edited(project: Project) -> None:
    shown = "\n```\n<<<<<<< a\n=======\n>>>>>>> b\n```\n"
    project.sync({ONE: req("A") + shown})
    set_fields(target(project), "A", ["owner=ann"])
    assert (project.root / ONE).read_text() == req("A", owner="ann") + shown


def test_a_document_that_is_read_whole_and_lacks_something_is_edited(project: Project) -> None:
    project.sync({ONE: req("A")})
    without = req("A").replace("title: Title of A\n", "")
    project.sync({ONE: without})
    assert [note.code for note in project.view().sources([ONE])[0].problems] == ["missing_title"]
    set_fields(target(project), "A", ["owner=ann"])
    assert (project.root / ONE).read_text() == without.replace("status: open\n", "status: open\nowner: ann\n")


ELSEWHERE = {
    "set": lambda where: set_fields(where, "A", ["owner=ann"]),
    "set what was renamed": lambda where: set_fields(where, "C", ["owner=ann"]),
    "new": lambda where: make(where, Wish("req", title="n", key="N")),
    "rename": lambda where: rename(where, "A", "D"),
    "undo": lambda where: undo(where, 2),
}


@pytest.mark.sliced(2)
@pytest.mark.parametrize("verb", ELSEWHERE)
def test_documents_of_a_named_branch_that_is_not_checked_out_are_refused_with_what_is(
    project: Project, verb: str
) -> None:
    project.sync({ONE: req("A")})
    git(project.root, "add", ".")
    git(project.root, "commit", "--quiet", "-m", "a")
    project.switch("other", create=True)
    project.sync()
    if verb in {"set what was renamed", "undo"}:
        rename(target(project, "other"), "A", "C")
        git(project.root, "commit", "--quiet", "-am", "c")
    project.switch("main")
    with pytest.raises(InvalidQuery) as reported:
        ELSEWHERE[verb](target(project, "other")._replace(follows_head=False))
    assert (
        reported.value.message
        == "KB changes documents of main, which is checked out; it does not change those of other."
    )
    assert "in a worktree of other" in reported.value.hint
    assert not reported.value.retryable
    assert (project.root / ONE).read_text() == req("A")


def test_what_no_document_states_is_changed_on_a_branch_that_is_not_checked_out(project: Project) -> None:
    project.sync({ONE: req("A")})
    project.switch("other", create=True)
    project.apply(entities=[{"id": "S-1", "type": "symbol", "title": "s", "status": "open"}])
    project.switch("main")
    where = target(project, "other")._replace(follows_head=False)
    assert set_fields(where, "S-1", ["owner=ann"]).outcome.updated == ("S-1",)
    assert rename(where, "S-1", "S-2").outcome.applied
