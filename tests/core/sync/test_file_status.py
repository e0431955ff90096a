"""The status of files in a state: the same whether it is in the base of a view or came after it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import ResourceLimit, StatementTimeout, StorageError
from kbcore.model.record import ReadSource
from kbcore.sync import run
from kbcore.sync.difference import RECONSIDERED
from kbcore.sync.file_status import file_status
from kbcore.sync.pending import recorded_files
from kbcore.view.tables import ELEMENTS
from kbcore.view.view import View
from tests.support.generators.histories import basis_at, entries_of, laws, records
from tests.support.repository.project import Project, req
from tests.support.views.grown import built

PATHS = (None, (), ("docs/a.md",), ("docs/a.md", "import"))
PLACES = (None, ("docs",), ("",), ("docs/a.md",), ("doc", "docs/b's.md"))
CODES = sorted(RECONSIDERED)


def coded(op: object) -> object:
    """Return an operation whose problems are such as other files may fix, if it has any."""
    if not isinstance(op, ReadSource):
        return op
    notes = [msgspec.structs.replace(note, code=CODES[note.line % len(CODES)]) for note in op.problems]
    return msgspec.structs.replace(op, problems=tuple(notes))


def statuses(view: View) -> list[object]:
    return [
        *(file_status(view, paths) for paths in PATHS),
        *(sorted(recorded_files(view, below)) for below in PLACES),
    ]


@laws(20)
@given(records(max_size=5), st.integers(0, 5))
def test_what_came_after_a_base_is_reported_like_what_is_in_it(history, position) -> None:
    entries = entries_of([[coded(op) for op in ops] for ops in history])
    first = min(position, len(entries))
    with built(entries, len(entries)) as whole, built(entries, first) as view:
        view.extend(iter(entries[first:]), basis_at(entries, len(entries)))
        wanted = statuses(whole)
        assert statuses(view) == wanted
        for table in ELEMENTS:  # and when SQL has seen it
            assert len(view.rows(f"select * from {table}")) == len(whole.rows(f"select * from {table}"))
        assert statuses(view) == wanted
        assert wanted[len(PATHS)] == wanted[len(PATHS) + 2], "the root is everything"


def test_columns_without_the_key_are_refused(project: Project) -> None:
    """A later element replaces that of the base by its key."""
    project.sync({"docs/requirements/a.md": req("REQ-A")})
    with pytest.raises(ValueError, match="type is not the key of node"):
        project.workspace().store("main").read(lambda view: view.cells("node", ["type"], ("true", []), bool))


@pytest.mark.parametrize(
    "error", [StatementTimeout("too late"), ResourceLimit("no memory"), StorageError("no disk"), MemoryError()]
)
def test_a_sync_that_was_written_is_answered_although_nothing_can_be_read_after_it(
    project: Project, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(run, "file_status", fail)
        answer = project.sync({"docs/requirements/a.md": req("REQ-A")})
        assert (answer.outcome.applied, answer.outcome.seq) == (True, 1)
        [warning] = answer.outcome.warnings
        assert warning.startswith("The files are recorded.")
        with pytest.raises(type(error)):
            project.sync()
    assert project.node("REQ-A") is not None


def test_a_bug_after_a_sync_was_written_is_raised(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError

    monkeypatch.setattr(run, "file_status", fail)
    with pytest.raises(ValueError):  # noqa: PT011 - any one
        project.sync({"docs/requirements/a.md": req("REQ-A")})
