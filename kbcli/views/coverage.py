"""A report of coverage in every format: JSON, a table, Markdown and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.messages.empty_results import no_content_message
from kbcli.terminal import tables
from kbcore.model.schema import ASPECTS
from kbcore.query.coverage import By, Counts, CoverageGroup, Requirement, Tally, UnknownFilter
from kbcore.text.escaping import in_quotes, json_text
from kbcore.text.suggest import is_it
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.sync.overlay import FileState

_SHOWN_IDS: Final = 2
_NO_FILE: Final = "No file from which facts come is at {} or like it."
_NONE: Final = "(none)"
_NO_REQUIREMENTS: Final = (
    "There are no requirements yet: documents in docs/requirements/ become some with {sync}, "
    "entities of type req with `kb apply`."
)
_ASPECT_HEAD: Final = tuple(name.upper() for name in ASPECTS)
_SHORT_HEAD: Final = ("SPEC", "VERIF", "IMPL")
_STATES: Final = {"yes": "yes", "no": "no", "not_applicable": "n/a"}
_VERIFIED: Final = "verified"
_NUMBERS: Final = ("yes", "no", "not_applicable", "percent")


class CoverageReport(msgspec.Struct, frozen=True):
    """The request and its result. ``lacked`` are the aspects that every row must lack."""

    seq: int
    by: By
    counts: Counts
    requirements: list[Requirement]
    """Those that are rows, where each is one."""
    groups: list[CoverageGroup]
    """Those that are rows, where requirements are grouped."""
    lacked: tuple[str, ...]
    is_filtered: bool
    at: str | None = None
    """The point that was asked for."""
    unknown: tuple[UnknownFilter, ...] = ()
    """Filters of which no requirement knows anything; looked up where none matches."""

    @property
    def is_empty(self) -> bool:
        """Return whether no requirement matches, not even a retired one."""
        return not (self.counts.total.requirements or self.counts.retired or self.counts.proposed)


def show(session: Session, branch: str, report: CoverageReport, files: FileState, format_: str) -> None:
    """Write a report for people, or in the format of another program."""
    output = session.output
    output.is_paged = format_ == "table"
    if output.is_json:
        output.document({"branch": branch} | files.as_json() | _document(report))
        return
    if format_ == "csv":
        output.stream(tables.comma_separated(*_columns(report)))
    elif format_ == "tsv":
        columns, values = _columns(report)
        output.stream(f"{line}\n" for line in tables.tab_separated([name.upper() for name in columns], values))
        _show_rest(session, report, has_rows=bool(values))
    else:
        head, rows = _rows(report)
        if rows and format_ == "markdown":
            output.stream(tables.markdown(head, rows))
        elif rows:
            if _is_cut(head, rows, output.width):
                head, rows = _rows(report, is_short=True)
            output.data("".join(line + "\n" for line in output.table(head, rows)))
        _show_rest(session, report, has_rows=bool(rows))
    session.show_files(branch, files)


def _document(report: CoverageReport) -> dict[str, Any]:
    rows = (
        {"requirements": [one.as_json() for one in report.requirements]}
        if report.by == "requirement"
        else {"groups": [{"name": one.name, **one.as_json()} for one in report.groups]}
    )
    return {
        "by": report.by,
        "total": report.counts.total.as_json(),
        "retired": report.counts.retired,
        **({"proposed": report.counts.proposed} if report.counts.proposed else {}),
        **rows,
    }


def _is_cut(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> bool:
    """Return whether a table is too wide for its main content: the names of the aspects, and the total of each."""
    shown = tables.laid_out(head, rows, width)
    at = head.index(_ASPECT_HEAD[0])
    numbers = slice(at, at + len(_ASPECT_HEAD))
    return any(
        cell not in "\n".join(lines)
        for row, lines in ((head, shown[0]), (rows[-1], shown[-1]))
        for cell in row[numbers]
    )


def _rows(report: CoverageReport, *, is_short: bool = False) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the rows of a table; with ``is_short`` states as one word, shares in percent, and nothing else."""
    total = report.counts.total
    aspects = _SHORT_HEAD if is_short else _ASPECT_HEAD
    said = _share if is_short else _tally
    sums = tuple(f"{said(total.tallies[name])}{_failing(total, name)}" for name in ASPECTS)
    if report.by == "requirement":
        if is_short:
            head: tuple[str, ...] = ("ID", *aspects)
            rows = [(one.id, *(_state(one, name) for name in ASPECTS)) for one in report.requirements]
            last: tuple[str, ...] = ("TOTAL", *sums)
        else:
            head = ("ID", *aspects, "PRIORITY", "TITLE")
            rows = [
                (one.id, *(_cell(one, name) for name in ASPECTS), one.priority, one.title)
                for one in report.requirements
            ]
            last = ("TOTAL", *sums, "", pluralize(total.requirements, "requirement"))
    else:
        head = (report.by.upper(), "REQUIREMENTS", *aspects)
        rows = [
            (
                _named(one.name),
                str(one.requirements),
                *(f"{said(one.tallies[name])}{_failing(one, name)}" for name in ASPECTS),
            )
            for one in report.groups
        ]
        last = ("TOTAL", str(total.requirements), *sums)
    return head, [*rows, last] if rows else []


def _cell(one: Requirement, aspect: str) -> str:
    ids: Sequence[str] = getattr(one, aspect)
    if ids:
        more = f" +{len(ids) - _SHOWN_IDS}" if len(ids) > _SHOWN_IDS else ""
        failing = f" ({len(one.failing)} failing)" if aspect == _VERIFIED and one.failing else ""
        return ", ".join(ids[:_SHOWN_IDS]) + more + failing
    return f"n/a: {one.not_applicable[aspect]}" if aspect in one.not_applicable else "no"


def _state(one: Requirement, aspect: str) -> str:
    is_failing = aspect == _VERIFIED and one.failing
    marks = [", failing"] * bool(is_failing) + [f", {len(one.proposed[aspect])} proposed"] * (aspect in one.proposed)
    return f"{_STATES[one.state(aspect)]}{''.join(marks)}"


def _failing(group: CoverageGroup, aspect: str) -> str:
    return f", {group.failing} failing" if aspect == _VERIFIED and group.failing else ""


def _tally(tally: Tally) -> str:
    share = f"{tally.yes}/{tally.needed} {_share(tally)}" if tally.needed else ""
    waived = f"{tally.not_applicable} n/a" if tally.not_applicable else ""
    return ", ".join(part for part in (share, waived) if part) or "-"


def _share(tally: Tally) -> str:
    return f"{tally.percent:g}%" if tally.needed else "-"


def _columns(report: CoverageReport) -> tuple[tuple[str, ...], list[list[str]]]:
    """Return a report as other programs want it: states as words, numbers each in a column."""
    if report.by == "requirement":
        head = ("id", "title", "status", "priority", "tags", *ASPECTS, *(f"{name}_by" for name in ASPECTS))
        return (*head, "not_applicable", "failing", "proposed"), [
            [
                *(one.id, one.title, one.status, one.priority, json_text(one.tags)),
                *(one.state(name) for name in ASPECTS),
                *(json_text(getattr(one, name)) for name in ASPECTS),
                json_text(one.not_applicable),
                json_text([test.id for test in one.failing]),
                json_text(one.proposed),
            ]
            for one in report.requirements
        ]
    columns = (report.by, "requirements", *(f"{name}_{number}" for name in ASPECTS for number in _NUMBERS), "failing")
    return columns, [
        [one.name or "", str(one.requirements), *_numbers([one.tallies[name] for name in ASPECTS]), str(one.failing)]
        for one in report.groups
    ]


def _named(name: str | None) -> str:
    """Return the name of a group; one that is named like the rest is in quotation marks."""
    return _NONE if name is None else in_quotes(name) if name == _NONE else name


def _numbers(tallies: Sequence[Tally]) -> list[str]:
    values = [tally.as_json()[number] for tally in tallies for number in _NUMBERS]
    return ["" if value is None else str(value) for value in values]


def _show_rest(session: Session, report: CoverageReport, *, has_rows: bool) -> None:
    counts, output = report.counts, session.output
    if not report.seq:
        output.note(no_content_message(report.at, session.sync_command()))
    elif report.is_empty:
        output.note(
            "No requirement matches." if report.is_filtered else _NO_REQUIREMENTS.format(sync=session.sync_command())
        )
        for one in report.unknown:
            said = _NO_FILE if one.name == "path" else f"No requirement has the {one.name} {{}}."
            output.note(f"  {said.format(in_quotes(one.value))} {is_it(one.near)}".rstrip())
    elif not has_rows:
        what = " and ".join(report.lacked)
        output.note(f"None that matches lacks being {what}." if what else "Every requirement that matches is retired.")
    if counts.proposed:
        output.note(f"{pluralize(counts.proposed, 'requirement')} left out that nobody has accepted.")
    if counts.retired:
        output.note(f"{pluralize(counts.retired, 'retired requirement')} left out.")
