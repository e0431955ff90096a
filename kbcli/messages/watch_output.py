"""The output of a watcher, in words, in JSON and as a screen. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kbcli.messages.lines import changes_of, renames_of
from kbcli.messages.sync_result import elsewhere_line, note_line
from kbcli.messages.violations import violation_line
from kbcli.terminal.cells import shortened
from kbcli.terminal.flowing import flowed
from kbcore.sync.paths import is_named
from kbcore.text.escaping import escape_controls, escaped_sentence, problem_line
from kbcore.text.wording import pluralize
from kbcore.watch.events import Checked, Event, Following, Listening, Polling, Resumed, Synced, Waiting

if TYPE_CHECKING:
    from kbcli.terminal.colours import Style
    from kbcore.rules import Violation
    from kbcore.sync.answer import Located, SyncAnswer

_UNREAD: Final = "unreadable-source"

_NAMED: Final = 4
"""The number of ids that are named in the line of a change."""

_NARROW: Final = 60
"""A narrower terminal has a violation in several lines: the place fills one."""

_SHOWN: Final = 20
"""The number of new or fixed violations that are listed at once, and of problems of files."""


class MarkedLine(NamedTuple):
    """One line for people; ``mark`` is written before it, in its colour."""

    text: str
    mark: str = ""
    style: Style = "dim"


class WatchMessages:
    """Says what happens for people, each thing once: what is wrong in a file is an error of a rule as well."""

    def __init__(self, left_of: Callable[[SyncAnswer], Sequence[Located]] = lambda answer: answer.problems) -> None:
        """``left_of`` returns the problems of a sync that the project does not accept."""
        self._left_of = left_of
        self._reported: set[tuple[str, int, str]] = set()
        """The file, the line and the code of each problem of a file."""
        self._hidden: set[str] = set()
        """Folders and files of which it was reported last why they cannot be read."""
        self._unread: set[str] = set()
        """Files of which it was not reported that they cannot be, because of that."""

    def lines_of(self, event: Event) -> list[MarkedLine]:
        """Return what a happening is for people, one line for each thing."""
        if isinstance(event, Following | Synced):
            left = tuple(self._left_of(event.answer))
            event = msgspec.structs.replace(event, answer=msgspec.structs.replace(event.answer, problems=left))
        if isinstance(event, Synced):
            self._reported |= {(path, one.line, one.code) for path, one in event.answer.problems}
            self._hidden = {path for path, problem in event.answer.problems if problem.severity == "error"}
        elif isinstance(event, Checked):
            event = self._not_reported(event)
        return list(_lines(event))

    def _not_reported(self, event: Checked) -> Checked:
        """Return what was not reported yet, with fixed violations worded to match what was reported."""
        unread = {
            one.source
            for one in event.new
            if one.rule == _UNREAD and not self._is_reported(one)
            if self._hidden and is_named(one.source, [*self._hidden])
        }
        new = tuple(
            one for one in event.new if one.rule != _UNREAD or not (self._is_reported(one) or one.source in unread)
        )
        self._reported.difference_update((one.source, one.line, one.code) for one in event.new)
        fixed = tuple(self._read_again(one) for one in event.fixed)
        self._unread |= unread
        self._hidden.clear()
        return msgspec.structs.replace(event, new=new, fixed=fixed)

    def _is_reported(self, one: Violation) -> bool:
        return (one.source, one.line, one.code) in self._reported

    def _read_again(self, one: Violation) -> Violation:
        if one.rule != _UNREAD or one.source not in self._unread:
            return one
        self._unread.discard(one.source)
        return msgspec.structs.replace(one, message="it can be read again.")


def as_json(event: Event) -> dict[str, Any]:
    """Return a happening as one JSON object; ``event`` says which."""
    if isinstance(event, Following):
        return {"event": "following", "at": event.at, "notice": event.notice, **event.answer.as_json()}
    if isinstance(event, Synced):
        outcome = event.answer.outcome
        ids: dict[str, Any] = {name: list(getattr(outcome, name)) for name in ("created", "updated", "deleted")}
        ids |= {"renamed": outcome.renamed} if outcome.renamed else {}
        return {"event": "synced", "at": event.at, "took_ms": event.took_ms, **event.answer.as_json(), "ids": ids}
    if isinstance(event, Checked):
        shown = {name: [one.as_json() for one in getattr(event, name)] for name in ("new", "fixed")}
        where = {"event": "checked", "at": event.at, "branch": event.branch, "seq": event.seq}
        not_run = [{"id": run.id, "reason": run.reason} for run in event.not_run]
        rules = {"not_run": not_run, "run_again": list(event.run_again)}
        return {**where, "is_first": event.is_first, **shown, **_counts(event.present), **rules}
    if isinstance(event, Waiting):
        return {"event": "waiting", "at": event.at, "error": event.error.as_json()}
    if isinstance(event, Resumed):
        return {"event": "resumed", "at": event.at}
    if isinstance(event, Listening):
        return {"event": "listening", "at": event.at}
    return {"event": "polling", "at": event.at, "reason": event.reason}


def screen(last: Sequence[str], present: Sequence[Violation], width: int, height: int) -> list[str]:
    """Return the lines of a whole screen: the current violations, and below them the last messages.

    There is one line less than fits: each line is ended, and what the last one ends would scroll the first one away.
    """
    height -= 1
    counts = _counts(present)
    title = f"{pluralize(counts['errors'], 'error')}, {pluralize(counts['warnings'], 'warning')}"
    room = max(1, height - 3 - min(len(last), max(3, height // 4)))
    listed = _present(sorted(present, key=lambda one: one.severity), width, room)
    below = last[max(0, len(last) - max(0, height - len(listed) - 2)) :]
    lines = [title if present else "No violations.", *listed, "", *below]
    return [shortened(line, width) for line in lines[: max(1, height)]]


def _present(violations: Sequence[Violation], width: int, room: int) -> list[str]:
    """Return the first violations in so many lines, the last of which says how many more there are, if there are."""
    each = [_on_screen(one, width) for one in violations[:room]]
    if sum(map(len, each)) <= room and len(each) == len(violations):
        return [line for lines in each for line in lines]
    fitting = sum(1 for used in accumulate(map(len, each)) if used < room)
    more = f"… and {len(violations) - fitting} more; `kb check` lists them all"
    return [*(line for lines in each[:fitting] for line in lines), more]


def _on_screen(violation: Violation, width: int) -> list[str]:
    """Return a violation as a line to be cut; whole, but without its remedy, where a line hardly holds the place."""
    if width >= _NARROW:
        return [f"{violation.severity:8}{violation_line(violation)}"]
    return flowed(f"{violation.severity} {violation_line(msgspec.structs.replace(violation, remedy=''))}", width)


def _lines(event: Event) -> Iterator[MarkedLine]:
    if isinstance(event, Following | Synced):
        yield from _synced(event)
    elif isinstance(event, Checked):
        yield from _checked(event)
    elif isinstance(event, Waiting):
        hint = f" ({event.error.hint})" if event.error.hint else ""
        yield MarkedLine(escape_controls(f"{_time(event.at)} paused: {event.error.message}{hint}"), "!", "yellow")
    elif isinstance(event, Resumed):
        yield MarkedLine(f"{_time(event.at)} resumed.")
    elif isinstance(event, Listening):
        yield MarkedLine(f"{_time(event.at)} file notifications work again.")
    elif isinstance(event, Polling):
        said = f"file notifications are not available ({event.reason}): files are checked every second."
        yield MarkedLine(escaped_sentence(f"{_time(event.at)} {said}"), "!", "yellow")


def _synced(event: Following | Synced) -> Iterator[MarkedLine]:
    answer = event.answer
    outcome = answer.outcome
    where = f"{_time(event.at)} {outcome.branch} at seq {outcome.seq}: "
    if isinstance(event, Following):
        changes = changes_of(outcome, answer.unresolved_created)
        said = f"following {pluralize(answer.scanned, 'file')}{f'; {changes}' if changes else ''}."
        yield MarkedLine(escaped_sentence(f"{where}{said}{f' {event.notice}' if event.notice else ''}"))
    else:
        yield MarkedLine(escape_controls(f"{where}{_what(answer)} ({event.took_ms} ms)"))
    problems = [one for one in answer.problems if one[1].severity != "note"]
    for path, problem in problems[:_SHOWN]:
        yield MarkedLine(problem_line(path, problem.line, problem.message, problem.hint), "!", "yellow")
    if len(problems) > _SHOWN:
        yield MarkedLine(f"and {len(problems) - _SHOWN} more; `kb sync` lists them all", "!", "yellow")
    if isinstance(event, Following):
        for note in answer.notes:
            yield MarkedLine(note_line(note))
        elsewhere = elsewhere_line(answer.problems_elsewhere, answer.unresolved_elsewhere)
        if elsewhere:
            yield MarkedLine(elsewhere)
    for warning in outcome.warnings:
        yield MarkedLine(escaped_sentence(warning), "!", "yellow")


def _what(answer: SyncAnswer) -> str:
    """Return what changed, by name where it is little."""
    outcome = answer.outcome
    named = [
        f"{', '.join(ids)} {verb}"
        for verb, ids in (("created", outcome.created), ("updated", outcome.updated), ("deleted", outcome.deleted))
        if ids
    ]
    named += [f"{renames_of(outcome.renamed)} renamed"] if outcome.renamed else []
    count = len(outcome.created) + len(outcome.updated) + len(outcome.deleted) + len(outcome.renamed)
    edges = outcome.edges.created + outcome.edges.updated + outcome.edges.deleted
    if 0 < count <= _NAMED:
        return ", ".join(named) + (f"; {pluralize(edges, 'edge')} changed" if edges else "")
    return changes_of(outcome, answer.unresolved_created) or (
        _of_files(answer) if outcome.applied else "nothing changed"
    )


def _of_files(answer: SyncAnswer) -> str:
    """Return what is known of files, where that is all that changed: most are edits of their text."""
    noted = answer.noted
    files = ", ".join(noted) if 0 < len(noted) <= _NAMED else pluralize(len(noted), "file")
    bad = {path for path, problem in answer.problems if problem.severity == "error"}
    if bad and any(is_named(path, [*bad]) for path in noted):
        return f"{files} read with errors, nothing else changed"
    return f"{files} read, nothing else changed"


def _checked(event: Checked) -> Iterator[MarkedLine]:
    for rule in event.run_again:
        yield MarkedLine(escape_controls(f"the rule {rule} can be run again."))
    for run in event.not_run:
        yield MarkedLine(escape_controls(f"the rule {run.id} could not be run: {run.reason}"), "!", "yellow")
    if event.is_first:
        counts = _counts(event.present)
        found = [pluralize(counts[name], name[:-1]) for name in ("errors", "warnings") if counts[name]]
        where = f"{_time(event.at)} {event.branch} at seq {event.seq}"
        yield MarkedLine(escape_controls(f"{where}: {', '.join(found) or 'no violations'}."))
        return
    yield from _listed(event.new, "+ ")
    yield from _listed(event.fixed, "- ")


def _listed(violations: Sequence[Violation], sign: str) -> Iterator[MarkedLine]:
    for one in violations[:_SHOWN]:
        if sign == "- ":
            yield MarkedLine(f"fixed {violation_line(msgspec.structs.replace(one, remedy=''))}", sign, "green")
        else:
            yield MarkedLine(
                f"{one.severity} {violation_line(one)}", sign, "red" if one.severity == "error" else "yellow"
            )
    if len(violations) > _SHOWN:
        yield MarkedLine(f"and {len(violations) - _SHOWN} more", sign)


def _counts(violations: Iterable[Violation]) -> dict[str, int]:
    counts = {"errors": 0, "warnings": 0}
    for one in violations:
        counts[f"{one.severity}s"] += 1
    return counts


def _time(at: str) -> str:
    return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")
