"""Documents are written all or none, and only as they were read; what they say then is one record."""

from __future__ import annotations

import pytest

from kbcore.answers import Outcome
from kbcore.editing.documents import FileEdit, Target, commit, framed
from kbcore.errors import BranchMoved, InvalidChangeset, StaleBase, StorageError
from kbcore.store import Author
from tests.support.project import Project, req
from tests.support.saving import saving_while_written

ONE, TWO = "docs/requirements/a.md", "docs/requirements/b.md"


def target(project: Project, branch: str = "main") -> Target:
    read = project.workspace().store(branch).read
    return Target(project.workspace(), branch, Author("ann", "cli", "kb/test"), read, follows_head=True)


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
        pytest.raises(StaleBase, match=r"b\.md has changed") as told,
    ):
        commit(target(project), edits, framed(target(project), message="m", dry_run=False))
    assert "Nothing was written" in told.value.hint
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

    with saving_while_written(TWO, save), pytest.raises(StorageError) as told:
        commit(target(project), edits, framed(target(project), message="m", dry_run=False))
    assert told.value.message.endswith("could not be put back: docs/requirements/a.md.")
    assert "Nothing was written" not in told.value.hint
    assert (project.root / ONE).read_text() == req("A", owner="bob")
    assert (project.root / TWO).read_text() == req("B")


def test_documents_of_a_branch_that_is_not_checked_out_are_not_written(project: Project) -> None:
    project.sync({ONE: req("A")})
    project.switch("other", create=True)
    with pytest.raises(BranchMoved):
        written(project, [edit(ONE, req("A"), req("A", owner="ann"))])
    assert (project.root / ONE).read_text() == req("A")


CYCLE = "acyclic (error): depends_on goes in a circle: A → B → A."


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
