"""Carries out ``kb_check``: runs the rules and gives what they found page by page, worst first.

A page goes on behind the last violation that was shown, so that none is missed or shown twice although the branch may
change between two pages. A rule that could not run, or had nothing to look at, is named on every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import cursor as cursors
from kbcore import limits, relocation
from kbcore.errors import FilesUnknown, Problem
from kbcore.phrases import counted
from kbmcp.calls import Call
from kbmcp.explaining import limit_problems, refused_arguments
from kbmcp.hints import in_tool_words
from kbmcp.replies import PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.wire import CheckArguments

if TYPE_CHECKING:
    from kbcore.rules.registry import Report, RuleRun, Violation
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

Key = tuple[str, int, str, str, str]

_NOTE_CHARS: Final = 600
_LATER: Final = "Call it again when that is over."


def check(call: Call, asked: CheckArguments, problems: Sequence[Problem]) -> Payload:
    """Return a page of what breaks the rules.

    Raises: ``InvalidQuery`` for arguments that are wrong, with those that are known already, or a cursor that does not
    fit; ``NotFound`` for unknown rules or ids; ``InvalidConfig``.
    """
    from kbcore.sync.pending import faults_of, nothing_read

    found = [*problems, *limit_problems(asked.limit)]
    if found:
        raise refused_arguments(found)

    def judged(view: View, state: FileState) -> Payload:
        if state.freshness == "unknown" and not state.is_asked:
            raise FilesUnknown(f"The files cannot be judged, so no rule was run. {state.reason}", hint=_LATER)
        shown = _page(call, asked, view) | state.as_json()
        said = [f"{fault.message} {fault.hint}" for fault in faults_of(call.workspace)]
        if not state.seq and state.freshness == "current":
            said.append(nothing_read(call.workspace))
        call.notes.extend(one for one in said if one)
        return shown

    return call.files.read(call.workspace, call.branch, judged, time_s=limits.FILES_CHECK_S)


def _page(call: Call, asked: CheckArguments, view: View) -> Payload:
    from kbcore.checks import run_checks
    from kbcore.introduced.lines import lines_of
    from kbcore.introduced.reading import facts_now
    from kbcore.query.former import called, said

    call.notes.extend(said(called(view, asked.ids)))
    report = run_checks(call.workspace, view, branch=call.branch, only=asked.rules, ids=asked.ids)
    digest = cursors.request_mark((call.branch, asked.rules, asked.ids))
    keyed = [(_key(report, one), one) for one in report.violations]
    keyed.sort(key=lambda pair: pair[0])
    left = keyed
    if asked.cursor:
        last = _decoder.decode(cursors.decode(asked.cursor, digest).last)
        left = [pair for pair in keyed if pair[0] > last]
    shown: Payload = {
        "branch": call.branch,
        "seq": view.seq,
        "ok": report.ok,
        "total": len(keyed),
        "violations": [],
        "rules_run": sum(run.status == "ran" for run in report.rules),
    }
    notable = [_run_json(run) for run in report.rules if run.status in {"not_run", "not_applicable"} or run.is_slow]
    shown |= {"rules": notable} if notable else {}
    shown |= {"next_cursor": None} if keyed else {}
    counts = {"suppressed": report.suppressed, "in_baseline": report.in_baseline}
    shown |= {name: count for name, count in counts.items() if count}
    shown = cut_deep(shown, PAGE_CHARS // 2)
    page = [one for _, one in left[: asked.limit]]
    lines = lines_of(page, facts_now(call.workspace, view, call.branch, {one.source for one in page if one.source}))
    rows: list[Any] = [violation_json(call, one) | ({"line": lines[one]} if one in lines else {}) for one in page]
    room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS
    shown["violations"] = rows[: leading(rows, room)] or [cut_deep(one, room) for one in rows[:1]]
    count = len(shown["violations"])
    if count < len(left):
        last = msgspec.json.encode(left[count - 1][0]).decode()
        shown["next_cursor"] = cursors.encode(cursors.Cursor(digest, view.seq, len(keyed), last))
        shown["note"] = (
            f"{count} of {counted(len(left), 'violation')} shown; for more, repeat the call with this next_cursor as "
            "`cursor`."
        )
    # Named in a check, because nothing else reads what lies there.
    if unread := " ".join(map(str, relocation.beside(call.workspace)))[: _NOTE_CHARS // 2]:
        shown["note"] = f"{shown.get('note', '')} {unread}".strip()
    return shown


def violation_json(call: Call, one: Violation) -> Payload:
    """Return a violation as JSON, its remedy in the words of the tools."""
    found: Payload = msgspec.to_builtins(one)
    return found | {"hint": in_tool_words(one.hint, is_dotted=call.is_dotted, is_read_only=call.is_read_only)}


def _run_json(run: RuleRun) -> Payload:
    """Return how a rule was run as JSON; its time only where an agent should know of it."""
    found: Payload = msgspec.to_builtins(run)
    if not run.is_slow:
        del found["seconds"]
    return found


_decoder = msgspec.json.Decoder(Key)


def _key(report: Report, one: Violation) -> Key:
    from kbcore.rules.rule import in_order

    order = [run.id for run in report.rules]
    return (one.severity, order.index(one.rule), one.id, in_order(one.message), one.source)
