"""The result of ``kb results``, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kbcore.errors.remedies import for_shell
from kbcore.model.verdict import FAILING, OUTCOMES
from kbcore.text.escaping import escape_controls, escaped_sentence
from kbcore.text.wording import is_or_are, pluralize, shortened, some_of

if TYPE_CHECKING:
    from kbcore.results.collecting import Unmatched
    from kbcore.results.recording import Flip
    from kbcore.results.taking import ReadReport, ResultsAnswer
    from kbcore.watch.reports import ReportEvent, ReportsFollowed, ReportsRefused

_SHOWN: Final = 10
_NAMED: Final = 3
_MESSAGE_CHARS: Final = 160
_HOW_TO_MATCH: Final = (
    "A test of source code is known where `extractors.code.tests` means its file and `kb sync` has read it; another "
    "one says in `automated_by` what runs it."
)


def lines(answer: ResultsAnswer) -> Iterator[str]:
    """Yield what was recorded, what turned, and what coverage suggests."""
    outcome, recorded = answer.recorded.outcome, answer.recorded
    where = f"{outcome.branch} at seq {outcome.seq}"
    would = "would change" if outcome.dry_run else "changed"
    counts = f"{pluralize(len(recorded.flips), 'verdict')} {would}"
    kept = f", {recorded.unchanged} as before" if recorded.unchanged else ""
    yield escape_controls(f"{where}: {counts}{kept}, from {_reports(answer)}.")
    for one in answer.new_failures[:_SHOWN]:
        yield escape_controls(f"  fails now: {_said(one)}")
    yield from _more(len(answer.new_failures), "fails now")
    for one in answer.other_failures[:_SHOWN]:
        yield escape_controls(f"  fails otherwise: {_said(one)}")
    yield from _more(len(answer.other_failures), "fails otherwise")
    for one in answer.fixed[:_SHOWN]:
        before = one.before.failing_since() if one.before else ""
        yield escape_controls(f"  {one.after.outcome} again: {one.id}, which failed {before}".rstrip())
    yield from _more(len(answer.fixed), "failed before")
    if answer.suggestions is not None:
        yield from _suggestions(answer)


def _reports(answer: ResultsAnswer) -> str:
    """Return the reports, and the tests in them by outcome."""
    count = sum(answer.tests.values())
    reports = pluralize(len(answer.reports), "report")
    if not count and any(one.source_files for one in answer.reports):
        return f"{reports} of coverage"
    others = [f"{answer.tests[one]} {one}" for one in OUTCOMES if one != "passed" and answer.tests[one]]
    said = f" ({', '.join(others)})" if others else ""
    return f"{reports} with {pluralize(count, 'test')}{said}"


def _said(flip: Flip) -> str:
    message = flip.after.message.partition("\n")[0]
    return f"{flip.id}: {shortened(message, _MESSAGE_CHARS)}" if message else flip.id


def _more(count: int, what: str) -> Iterator[str]:
    if count > _SHOWN:
        yield f"  {what}: {count - _SHOWN} more; `--json` lists them"


def _suggestions(answer: ResultsAnswer) -> Iterator[str]:
    found = answer.suggestions
    if found is None or not found.count:
        return
    yield f"{pluralize(found.count, 'edge')} may hold, as the reports show; none was stated:"
    for one in found.first[:_SHOWN]:
        yield escape_controls(f"  {for_shell(one.command).strip('`')}  # {one.reason}")
    if found.count > _SHOWN:
        yield f"  {found.count - _SHOWN} more; `--json` lists them"


def warnings(answer: ResultsAnswer) -> Iterator[str]:
    """Yield what is recorded nowhere, and why."""
    recorded = answer.recorded
    for warning in recorded.outcome.warnings:
        yield escaped_sentence(warning)
    if answer.unmatched_count:
        failing = f", {answer.unmatched_failing} of them failing" if answer.unmatched_failing else ""
        count = pluralize(answer.unmatched_count, "reported test")
        verb = "matches" if answer.unmatched_count == 1 else "match"
        named = ", ".join(map(_unmatched, answer.unmatched[:_NAMED]))
        such = "" if answer.unmatched_count <= _NAMED else "for example "
        yield escaped_sentence(f"{count} {verb} no test of the branch{failing}: {such}{named}. {_HOW_TO_MATCH}")
    if answer.unknown_ids:
        named = some_of(answer.unknown_ids, _NAMED)
        yield escaped_sentence(f"The reports give ids that no test has: {named}.")
    if answer.suggestions is not None and answer.suggestions.unknown:
        named = some_of(answer.suggestions.unknown, _NAMED)
        yield escaped_sentence(f"The reports name requirements that there are not: {named}.")
    if recorded.stated:
        id_, path = next(iter(recorded.stated.items()))
        count = pluralize(len(recorded.stated), "verdict")
        yield escaped_sentence(f"{count} {is_or_are(len(recorded.stated))} stated by files, such as {id_} by {path}.")
    if recorded.earlier:
        count = pluralize(len(recorded.earlier), "verdict")
        named = some_of(recorded.earlier, _NAMED)
        yield escaped_sentence(f"{count} {is_or_are(len(recorded.earlier))} of a later run than the report: {named}.")
    if recorded.gone:
        count = pluralize(len(recorded.gone), "test")
        named = some_of(recorded.gone, _NAMED)
        yield escaped_sentence(f"{count} went while the reports were read, and got no verdict: {named}.")
    for report in answer.reports:
        for note in report.notes:
            yield escaped_sentence(f"{report.file}: {note}")


def _unmatched(one: Unmatched) -> str:
    name = shortened(one.name, _MESSAGE_CHARS) if one.name.strip() else "one without a name"
    place = f"{one.report}:{one.line}" if one.line else one.report
    either = f", may be {some_of(one.candidates, _NAMED)}" if one.candidates else ""
    return f"{name} ({place}{either})"


def notes(answer: ResultsAnswer) -> Iterator[str]:
    """Yield what a person may want to know besides."""
    from kbcore.results.reading import OF_COVERAGE

    empty = [one for one in answer.reports if _is_empty(one)]
    if empty:
        yield escape_controls(f"{some_of([one.file for one in empty], _NAMED)}: complete, and without any test.")
    found = answer.suggestions
    if found is None or not any(one.format in OF_COVERAGE for one in answer.reports):
        return
    if found.fault:
        yield escaped_sentence(f"Coverage suggests no edge. {found.fault.message} {found.fault.hint}")
    elif not found.symbols:
        known = f"{pluralize(found.unknown_files, 'file')} of the coverage {is_or_are(found.unknown_files)} not known"
        yield f"Coverage suggests no edge: no known function ran ({known}). `extractors.code.paths` means source files."
    elif not found.count:
        yield f"Coverage suggests no new edge for what ran: {pluralize(found.symbols, 'known function')}."


def _is_empty(report: ReadReport) -> bool:
    return not (report.tests or report.source_files)


def followed(event: ReportsFollowed) -> str:
    """Return that reports are followed from now on."""
    files = some_of(event.files, _NAMED) if event.files else "none is there yet"
    return escape_controls(f"Following {pluralize(len(event.files), 'report')}: {files}.")


def refused(event: ReportsRefused) -> str:
    """Return why reports could not be taken in."""
    return escaped_sentence(f"{event.error.message} {event.error.hint}".strip())


def event_json(event: ReportEvent) -> dict[str, Any]:
    """Return an event of ``kb results --watch`` as JSON."""
    from kbcore.watch.reports import ReportsFollowed, ReportsTaken

    if isinstance(event, ReportsFollowed):
        return {"event": "following", "at": event.at, "files": list(event.files)}
    if isinstance(event, ReportsTaken):
        return {"event": "results", "at": event.at, **event.answer.as_json()}
    return {"event": "refused", "at": event.at, "error": event.error.as_json()}


def verdict_words(outcome: str, since: str) -> str:
    """Return a verdict as a cell of a table: ``passed``, or ``failed since …``."""
    return f"{outcome} {since}".rstrip() if outcome in FAILING else outcome
