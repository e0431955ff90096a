"""Carries out ``kb_check``: runs the rules and gives what they found page by page, worst first.

A page goes on behind the last violation that was shown, so that none is missed or shown twice although the branch may
change between two pages. A rule that could not run is named on every page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import cursor as cursors
from kbcore import limits
from kbcore.errors import InvalidQuery
from kbmcp.calls import Call
from kbmcp.replies import PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.wire import CheckArguments

if TYPE_CHECKING:
    from kbcore.rules.registry import Report, Violation
    from kbcore.view.view import View

Key = tuple[str, int, str, str, str]

_NOTE_CHARS: Final = 600


def check(call: Call, asked: CheckArguments) -> Payload:
    """Return a page of what breaks the rules.

    Raises: ``NotFound`` for an unknown rule; ``InvalidConfig``; ``InvalidQuery`` for a cursor that does not fit.
    """
    if not 1 <= asked.limit <= limits.MAX_PAGE_ROWS:
        raise InvalidQuery(f"The limit must be from 1 to {limits.MAX_PAGE_ROWS}, not {asked.limit}.")
    return call.store.read(lambda view: _page(call, asked, view))


def _page(call: Call, asked: CheckArguments, view: View) -> Payload:
    from kbcore.checks import run_checks

    report = run_checks(call.workspace, view, only=asked.rules, ids=frozenset(asked.ids) or None)
    digest = cursors.digest_of((call.branch, asked.rules, asked.ids))
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
        "rules": [msgspec.to_builtins(run) for run in report.rules],
        "next_cursor": None,
    }
    shown = cut_deep(shown, PAGE_CHARS // 2)
    rows: list[Any] = [msgspec.to_builtins(one) for _, one in left[: asked.limit]]
    room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS
    shown["violations"] = rows[: leading(rows, room)] or [cut_deep(one, room) for one in rows[:1]]
    count = len(shown["violations"])
    if count < len(left):
        last = msgspec.json.encode(left[count - 1][0]).decode()
        shown["next_cursor"] = cursors.encode(cursors.Cursor(digest, view.seq, len(keyed), last))
        shown["note"] = (
            f"{count} violations shown, {len(left) - count} more follow: "
            "repeat the call with this next_cursor as `cursor`."
        )
    return shown


_decoder = msgspec.json.Decoder(Key)


def _key(report: Report, one: Violation) -> Key:
    order = [run.id for run in report.rules]
    return (one.severity, order.index(one.rule), one.id, one.message, one.source)
