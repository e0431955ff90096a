"""The report of a branch: all that its pages show, read at one seq."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore import __version__
from kbcore.pages.entity import EntityPage, read_entity_pages
from kbcore.pages.overview import Overview, read_overview
from kbcore.query import coverage
from kbcore.query.conflicts import ContestedValue, find_conflicts
from kbcore.query.coverage import By, CoverageGroup, Covered
from kbcore.query.matrix import Matrix, MatrixRequest, read_matrix
from kbcore.query.subject import COLUMNS, Subject, subject_of
from kbcore.rules import CheckReport
from kbcore.text.code_owners import NONE, CodeOwners
from kbcore.view.view import View

GROUPS: Final[tuple[By, ...]] = ("owner", "tag", "component", "folder", "priority")
"""The groupings of requirements on the page of coverage."""
_NAMES: Final = f"select {COLUMNS} from node n order by n.id"  # noqa: S608 - fixed names


class TracedMatrix(msgspec.Struct, frozen=True):
    """A matrix of a report, and what it was asked for by."""

    asked: MatrixRequest
    found: Matrix

    def as_json(self) -> dict[str, Any]:
        """Return the matrix as JSON, with its type, its path and the type at the end of that."""
        to = {"to": self.asked.to} if self.asked.to else {}
        return {"type": self.asked.rows.type, "path": list(self.asked.steps), **to, **self.found.as_json()}


class BranchReport(msgspec.Struct, frozen=True):
    """All that the pages of a branch show, read at one seq.

    ``at`` is the time of its last record, ``commit`` the commit that this was recorded at ("" where none is known).
    ``groups`` has the requirements by each of ``GROUPS``, ``changes`` what differs
    since ``since`` as ``kb diff`` has it, None where no point was given. ``names`` has every entity, ``entities`` the
    page of each, or none where these would be too many. ``records_only_reason`` is a sentence that says why the report
    has not what the files say, "" where it has.
    """

    branch: str
    seq: int
    at: str
    commit: str
    overview: Overview
    covered: Covered
    groups: Mapping[By, list[CoverageGroup]]
    check: CheckReport
    conflicts: tuple[ContestedValue, ...]
    names: Sequence[Subject]
    entities: Mapping[str, EntityPage]
    matrices: Sequence[TracedMatrix] = ()
    since: str = ""
    changes: Mapping[str, Any] | None = None
    version: str = __version__
    records_only_reason: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "branch": self.branch,
            "seq": self.seq,
            "at": self.at,
            **({"commit": self.commit} if self.commit else {}),
            "kb": self.version,
            **({"note": self.records_only_reason} if self.records_only_reason else {}),
            "overview": self.overview.as_json(),
            "requirements": [one.as_json() for one in self.covered.requirements],
            "coverage": {
                by: [{"name": one.name, **one.as_json()} for one in groups] for by, groups in self.groups.items()
            },
            "check": self.check.as_json(),
            "conflicts": [one.as_json() for one in self.conflicts],
            **({"matrices": [one.as_json() for one in self.matrices]} if self.matrices else {}),
            "entities": {id_: page.as_json() for id_, page in self.entities.items()},
            **({"since": self.since, "changes": dict(self.changes)} if self.changes is not None else {}),
        }


def read_report(
    view: View,
    branch: str,
    check: CheckReport,
    of_files: CodeOwners = NONE,
    *,
    matrices: Sequence[MatrixRequest] = (),
    max_pages: int | None = None,
) -> BranchReport:
    """Return the report of the branch of a view, whose rules were run; ``of_files`` are the owners of its files.

    Of more than ``max_pages`` entities no page is read (None: however many they are). The number of statements does not
    depend on the number of entities.
    """
    covered = coverage.read(view.rows, None)
    conflicts = tuple(find_conflicts(view))
    names = [subject_of(row) for row in view.rows(_NAMES, [])]
    has_pages = max_pages is None or len(names) <= max_pages
    return BranchReport(
        branch,
        view.seq,
        *read_last_record(view),
        read_overview(view, coverage.count(view.rows, None), check, conflicts),
        covered,
        coverage.count_groups(view.rows, None, GROUPS, of_files=of_files),
        check,
        conflicts,
        names,
        read_entity_pages(view, [one.id for one in names], check) if has_pages else {},
        [TracedMatrix(one, read_matrix(view.rows, None, one)) for one in matrices],
    )


def read_last_record(view: View) -> tuple[str, str]:
    """Return the time of the last record, and the last commit that one was recorded at, "" where there is none."""
    [(at, commit)] = view.rows(
        "select coalesce(max(written_at), ''), coalesce(max_by(commit, seq), '') from record", []
    )
    return at, commit
