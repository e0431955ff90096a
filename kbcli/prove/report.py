"""The list of all jobs, the results of those that were run, and their tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcli.prove import reading_jobs, writing_jobs
from kbcli.prove.job import Result, System, Verdict
from kbcore.text.wording import pluralize

JOBS: Final = (*reading_jobs.JOBS, *writing_jobs.JOBS)
"""The jobs, in their order."""
LABELS: Final[Mapping[System, str]] = {
    "kb": "KB",
    "memory": "server-memory",
    "markdown": "Markdown and grep",
    "client": "the client",
}
DONE: Final[tuple[Verdict, ...]] = ("done", "by reading")
_LINE_CHARS: Final = 140
_MARKS: Final[Mapping[Verdict, str]] = {"by reading": ", by reading", "wrong": ", wrong"}


class Total(msgspec.Struct, frozen=True):
    """The cost of all jobs that were done or tried with a system, and how many of them have each verdict."""

    calls: int
    tokens: int
    verdicts: dict[str, int]


class ProveReport(msgspec.Struct, frozen=True):
    """Results with the day and the versions that they are of. ``listing`` has the tokens of each list of tools."""

    date: str
    versions: dict[str, str]
    listing: dict[System, int]
    results: list[Result]

    @property
    def systems(self) -> list[System]:
        """Return the systems that have results, in their order."""
        return [system for system in LABELS if any(one.system == system for one in self.results)]

    def of(self, job: str) -> dict[System, Result]:
        """Return the results of a job."""
        return {one.system: one for one in self.results if one.job == job}

    def total(self, system: System) -> Total:
        """Return the total of a system."""
        own = [one for one in self.results if one.system == system]
        verdicts = dict[str, int]()
        for one in own:
            verdicts[one.verdict] = verdicts.get(one.verdict, 0) + 1
        return Total(sum(one.calls for one in own), sum(one.tokens for one in own), verdicts)

    def dearer(self, other: System) -> list[str]:
        """Return the jobs that KB and another system do, and that take more tokens with KB."""
        both = [(found.get("kb"), found.get(other)) for found in map(self.of, self.jobs)]
        return [
            kb.job
            for kb, theirs in both
            if kb and theirs and {kb.verdict, theirs.verdict} <= {*DONE} and kb.tokens > theirs.tokens
        ]

    @property
    def jobs(self) -> list[str]:
        """Return the names of the jobs that have results, in their order."""
        return list(dict.fromkeys(one.job for one in self.results))

    def as_json(self) -> dict[str, Any]:
        """Return all of it, with the totals."""
        totals = {system: msgspec.to_builtins(self.total(system)) for system in self.systems}
        losses = {system: self.dearer(system) for system in self.systems if system != "kb"}
        return {**msgspec.to_builtins(self), "totals": totals, "dearer_with_kb": losses}


def read(path: Path) -> ProveReport:
    """Return a report that was stored as JSON. Raises: ``OSError``, ``DecodeError``."""
    return msgspec.json.decode(path.read_bytes(), type=ProveReport)


def cell(result: Result | None) -> str:
    """Return a result in few words: calls, tokens, and what is not as it should be."""
    if result is None:
        return ""
    if not result.calls:
        return result.verdict
    return f"{pluralize(result.calls, 'call')}, {result.tokens:,}{_MARKS.get(result.verdict, '')}"


def rows(report: ProveReport) -> Iterator[list[str]]:
    """Yield a row for each job, and one for the totals."""
    for name in report.jobs:
        found = report.of(name)
        yield [name, *(cell(found.get(system)) for system in report.systems)]
    totals = [report.total(system) for system in report.systems]
    yield ["all", *(f"{pluralize(one.calls, 'call')}, {one.tokens:,}" if one.calls else "" for one in totals)]


def head(report: ProveReport) -> list[str]:
    """Return the heads of the columns."""
    return ["job", *(LABELS[system] for system in report.systems)]


def notes(report: ProveReport) -> Iterator[str]:
    """Yield sentences on what a table does not say: verdicts, losses, reasons, versions."""
    for system in report.systems:
        verdicts = ", ".join(f"{number} {name}" for name, number in report.total(system).verdicts.items())
        listing = report.listing.get(system, 0)
        listed = f" Its list of tools takes {listing:,} tokens more, once a session." if listing else ""
        yield f"{LABELS[system]}: {verdicts}.{listed}"
    for system in report.systems:
        if dearer := report.dearer(system):
            yield f"KB takes more tokens than {LABELS[system]} for {', '.join(dearer)}."
    reasons = dict[tuple[System, str, str], list[str]]()
    for one in report.results:
        if one.why:
            reasons.setdefault((one.system, one.verdict, one.why), []).append(one.job)
    for (system, verdict, why), names in reasons.items():
        yield f"{', '.join(names)}: {verdict} with {LABELS[system]}. {why}"
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    yield f"Measured on {report.date} with {versions}."


def markdown(report: ProveReport) -> str:
    """Return the table, with what was asked for, and the notes as a list."""
    requests = {job.name: job.request for job in JOBS}
    first, *others = head(report)
    lines = [_row([first, "request", *others]), _row(["---"] * (len(others) + 2))]
    lines += [_row([name, requests.get(name, ""), *cells]) for name, *cells in rows(report)]
    return "\n".join([*lines, "", *map(_item, notes(report))])


def _item(text: str) -> str:
    """Return an item of a list, in lines as wide as those of the documentation."""
    return textwrap.fill(
        f"- {text}", _LINE_CHARS, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
