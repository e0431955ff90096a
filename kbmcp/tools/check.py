"""Carries out ``kb_check``: runs the rules and gives what they found, worst first.

With a point in `since`, only what is new since then is reported, with `actor` or `session` only of what these
changed. With a revision in `against`, only what a merge with it would not bring together is. Without a limit, equal
problems are one entry, as in a report for people. With one, each violation is an entry, and a page begins after the
last violation that was shown, so that none is missed or shown twice although the branch may change between two pages. A
rule that could not run, or had nothing to look at, is named in every answer.

Where the files cannot be judged, no answer is ``ok``: it is of the records alone, with the code that ``kb check`` ends
with, and says where they can be judged later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from kbcore import limits
from kbcore.errors import FilesUnknown, InvalidQuery, NotFound, Problem
from kbcore.store import unread_stores
from kbcore.text import cursor as cursors
from kbcore.text.wording import more_without_effect, pluralize
from kbmcp.tools.answers import PAGE_CHARS, Payload, cut_deep, fit, leading, length_of
from kbmcp.tools.argument_models import CheckArguments
from kbmcp.tools.call import Call
from kbmcp.tools.hints import in_tool_words
from kbmcp.tools.refusals import limit_problems, refused_arguments

if TYPE_CHECKING:
    from kbcore.rules.registry import CheckReport, RuleRun, Violation
    from kbcore.store.history.log import RecordFilter
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

Key = tuple[str, int, str, int, str, str, tuple[str, ...], str]

_NOTE_CHARS: Final = 1_000
_MORE_CHARS: Final = 2_000
_PAGE: Final = 100
"""The number of violations of a page where the cursor is given without a limit."""
_PLACES: Final = 4
"""The number of others that are named of equal ones."""
_ONLY_COUNTS: Final = "`statistics` counts every violation."
_RECORDS_ONLY: Final = "`ok` is null: the files cannot be judged, and the violations are those of the records."
_LATER: Final = "If git has begun something, `git status` says how to end it; call this tool again then."


def check(call: Call, asked: CheckArguments, problems: Sequence[Problem]) -> Payload:
    """Return a page of what breaks the rules.

    Raises: ``InvalidQuery`` for arguments that are wrong, with those that are known already, or a cursor that does not
    fit; ``NotFound`` where only rules, ids or paths are unknown, of one of these arguments; ``InvalidConfig``.
    """
    from kbcore.sync.active_extractors import settings_faults
    from kbcore.sync.pending import nothing_read

    found = [*problems, *(limit_problems(asked.limit) if asked.limit is not None else ())]
    if asked.statistics and (asked.limit is not None or asked.cursor):
        found.append(Problem("$.statistics", "contradiction", _ONLY_COUNTS, "Leave out `limit` and `cursor`."))
    if asked.since is not None and asked.against is not None:
        message = (
            "Either what is new since a point is reported, or what a merge with a revision would not bring together."
        )
        found.append(Problem("$.against", "contradiction", message, "Leave out `since` or `against`."))
    if asked.since is None:
        for name in (one for one in ("actor", "session") if getattr(asked, one)):
            message = f"`{name}` selects among changes since a point."
            found.append(Problem(f"$.{name}", "missing_argument", message, "Add `since`, or leave it out."))

    def judged(view: View, state: FileState) -> Payload:
        is_compared = asked.against is not None
        if state.freshness == "unknown" and is_compared and _is_checked_out(call):
            raise FilesUnknown(
                f"The files cannot be judged, so nothing was compared. {state.reason}",
                hint=_LATER if state.is_retryable else "",
            )
        shown = _page(call, asked, view, _meant(call, asked, view, found)) | state.as_json()
        if state.freshness == "unknown" and not is_compared:
            notes = [_RECORDS_ONLY, _LATER if state.is_retryable else "", shown.get("note", "")]
            shown |= {"ok": None, "code": FilesUnknown.code, "note": " ".join(filter(None, notes))}
        said = [f"{fault.message} {fault.remedy}" for fault in settings_faults(call.workspace)]
        said += [f"{one.place}: {one.message} {one.remedy}" for one in call.workspace.cut_values()]
        if not state.seq and state.freshness == "current":
            said.append(nothing_read(call.workspace))
        call.notes.extend(one for one in said if one)
        return shown

    return call.files.read(call.workspace, call.branch, judged, time_s=limits.FILES_CHECK_S)


def _is_checked_out(call: Call) -> bool:
    """Tell whether the branch counts with its files: another one is compared as its last commit has it."""
    return call.workspace.repo.has_worktree and call.workspace.head().branch == call.branch


class _Meant(NamedTuple):
    """The targets of a report: ids, with those of the paths and globs, and sentences on paths without facts."""

    ids: list[str]
    paths: list[str]
    globs: list[str]
    notes: list[str]


def _meant(call: Call, asked: CheckArguments, view: View, problems: Sequence[Problem]) -> _Meant:
    """Return what the arguments mean in the branch.

    Raises: ``InvalidQuery`` with everything that is wrong with the arguments, the ``problems`` that are known already
    among it; ``NotFound`` where only rules, ids or paths are unknown, of one of these arguments; ``InvalidConfig``.
    """
    from kbcore.checks import check_ids, check_rules
    from kbcore.checks.introduced.point import point_of
    from kbcore.checks.targets import files_of_repository, targets_of
    from kbcore.query.former_ids import called, said

    workspace = call.workspace
    present = called(view, asked.ids)
    ids, paths, globs, notes = [present.get(one, one) for one in asked.ids], list[str](), list[str](), list[str]()
    errors = list[InvalidQuery | NotFound]()
    wrong = [*problems]

    @contextmanager
    def noting(argument: str, code: str) -> Iterator[None]:
        try:
            yield
        except (InvalidQuery, NotFound) as error:
            errors.append(error)
            own = error.details or [Problem(f"$.{argument}", code, error.message, error.remedy)]
            wrong.extend(own)

    with noting("rules", "unknown_rule"):
        check_rules(workspace, asked.rules)
    with noting("ids", "unknown_id"):
        check_ids(view, ids)
    with noting("since", "bad_value"):
        if asked.since is not None:
            point_of(workspace, view, call.branch, str(asked.since))
    with noting("actor", "unknown_actor"):
        _by(call, asked).check_known(view, call.author.session)
    with noting("paths", "unknown_id"):
        if asked.paths:
            root = workspace.repo.worktree if workspace.repo.has_worktree else workspace.repo.git_dir
            found = targets_of(
                view, asked.paths, root, root, lambda some: files_of_repository(workspace, some), argument="paths"
            )
            ids, notes = [*ids, *found.ids, *found.unknown], found.notes()
            paths, globs = found.paths, found.globs
    if asked.cursor and not asked.statistics:
        with noting("cursor", "bad_value"):
            cursors.decode(asked.cursor, _mark(call, asked))
    if len(errors) == 1 and len(wrong) == max(1, len(errors[0].details)):
        raise errors[0]
    if wrong:
        raise refused_arguments(wrong)
    call.notes.extend(said(present))
    return _Meant(ids, paths, globs, notes)


def _page(call: Call, asked: CheckArguments, view: View, meant: _Meant) -> Payload:
    from kbcore.checks import idle_suppressions, run_checks
    from kbcore.checks.grouping import is_cut, statistics
    from kbcore.rules.registry import of_severity

    since: Payload = {}
    if asked.against is not None:
        report, since = _compared(call, asked, view, meant, asked.against)
    elif asked.since is None:
        report = run_checks(
            call.workspace, view, branch=call.branch, only=asked.rules, ids=meant.ids, may_be_unknown=True
        )
    else:
        report, since = _new(call, asked, view, meant)
    report = of_severity(report, asked.severity) if asked.severity else report
    notes = [" ".join(meant.notes)[: _NOTE_CHARS // 3]]
    shown: Payload = {
        "branch": call.branch,
        "seq": view.seq,
        "ok": report.ok,
        **since,
        "total": len(report.violations),
        "violations": [],
        "rules_run": sum(run.status == "ran" for run in report.rules),
    }
    notable = [_run_json(run) for run in report.rules if run.status in {"not_run", "not_applicable"} or run.is_slow]
    shown |= {"rules": notable} if notable else {}
    counts = {"suppressed": report.suppressed, "in_baseline": report.in_baseline, "proposed": report.proposed}
    counts["of_other_severity"] = report.of_other_severity
    shown |= {name: count for name, count in counts.items() if count}
    shown = cut_deep(shown, PAGE_CHARS // 2)
    if asked.statistics:
        del shown["violations"]
        found = [dict(zip(("rule", "severity", "count"), row, strict=True)) for row in statistics(report.violations)]
        shown = fit(shown | {"statistics": found}, [("statistics", shown)])
    elif asked.limit is not None or asked.cursor:
        notes.insert(0, _listed(call, asked, view, report, shown))
    else:
        notes.insert(0, _grouped(call, view, report, shown))
    if is_cut(report.violations):
        notes.append("A file has more problems than KB keeps: the counts have one for all the others of it.")
    if not (asked.ids or asked.paths or since):
        idle = [f"{one.path}: {one.message} {one.remedy}".rstrip() for one in idle_suppressions(call.workspace, view)]
        notes.append(_first(idle, _NOTE_CHARS // 3))
    # Named in a check, because nothing else reads the files there.
    notes.append(" ".join(map(str, unread_stores.find_unread(call.workspace.folders)))[: _NOTE_CHARS // 2])
    if said := " ".join(filter(None, notes)):
        shown["note"] = said
    return shown


def _new(call: Call, asked: CheckArguments, view: View, meant: _Meant) -> tuple[CheckReport, Payload]:
    """Return the violations that there were not at a point, and which point it is, with how many others are fixed."""
    from kbcore.checks.introduced.since import check_since
    from kbcore.checks.targets import concerning

    by = _by(call, asked)
    found = check_since(call.workspace, view, call.branch, str(asked.since), only=asked.rules, changed_by=by)
    report = found.found.report
    if asked.ids or asked.paths:
        report = concerning(report, meant.ids, meant.paths, meant.globs)
    call.notes.extend(found.point.notes)
    point = {"seq": found.point.seq} | ({"commit": found.point.commit} if found.point.commit else {})
    point |= by.writer.as_json()
    return report, {"since": point, "fixed": len(found.found.fixed)}


def _compared(call: Call, asked: CheckArguments, view: View, meant: _Meant, ref: str) -> tuple[CheckReport, Payload]:
    """Return what a merge with a revision would not bring together, and what was compared."""
    from kbcore.checks.against.findings import check_against
    from kbcore.checks.targets import concerning

    found = check_against(call.workspace, view, call.branch, ref, only=asked.rules)
    report = found.report
    if asked.ids or asked.paths:
        report = concerning(report, meant.ids, meant.paths, meant.globs)
    return report, {"against": {"ref": ref, "commit": found.commit, "bases": list(found.bases)}}


def _by(call: Call, asked: CheckArguments) -> RecordFilter:
    """Return the records whose changes are reported on."""
    from kbcore.store.history.log import RecordFilter

    return RecordFilter(actor=asked.actor, session=call.session_named(asked.session))


def _first(idle: Sequence[str], most_chars: int) -> str:
    """Return the first suppressions without effect, as many as find room, and how many more there are."""
    ends = [*accumulate(len(one) + 1 for one in idle)]
    if not idle or ends[-1] <= most_chars:
        return " ".join(idle)
    kept = sum(end + len(more_without_effect(len(idle))) <= most_chars for end in ends)
    return " ".join([*idle[:kept], more_without_effect(len(idle) - kept, is_more=kept > 0)])


def _with_lines(call: Call, view: View, violations: Sequence[Violation]) -> list[Violation]:
    from kbcore.checks.introduced.lines import with_lines
    from kbcore.checks.introduced.reading import facts_now

    sources = {one.source for one in violations if one.source}
    return with_lines(violations, facts_now(call.workspace, view, call.branch, sources))


def _grouped(call: Call, view: View, report: CheckReport, shown: Payload) -> str:
    """Fill in an entry for each rule and equal problem, as a report for people has them; returns what to say of it."""
    from kbcore.checks.grouping import grouped

    groups = grouped(report.violations)
    entries = [one for group in groups for one in group.shown]
    named = [one for entry in entries for one in (entry.first, *entry.elsewhere[:_PLACES])]
    line_of = dict(zip(named, _with_lines(call, view, named), strict=True))
    rows: list[Any] = []
    for entry in entries:
        row = violation_json(call, line_of[entry.first])
        if entry.others:
            others = [_place_json(line_of[one]) for one in entry.elsewhere[:_PLACES]]
            row |= {"count": 1 + len(entry.others), **({"others": others} if others else {})}
        rows.append(row)
    room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS - _MORE_CHARS
    shown["violations"] = rows[: leading(rows, room)] or [cut_deep(one, room) for one in rows[:1]]
    left = Counter({group.rule: group.hidden for group in groups if group.hidden})
    for entry in entries[len(shown["violations"]) :]:
        left[entry.first.rule] += 1 + len(entry.others)
    if left:
        shown["more"] = cut_deep(dict(left), _MORE_CHARS)
    if left or any("count" in row for row in shown["violations"]):
        return "Equal problems are one entry; `limit`, with `rules` or `paths`, lists each violation by itself."
    return ""


def _place_json(one: Violation) -> Payload:
    """Return which entity a violation is about and where, without what its entry says already."""
    place: Payload = {"id": one.subject}
    place |= {"source": one.source} if one.source not in {"", one.id} else {}
    return place | ({"line": one.line} if one.line else {})


def _listed(call: Call, asked: CheckArguments, view: View, report: CheckReport, shown: Payload) -> str:
    """Fill in a page of violations, each by itself, and the cursor of the next; returns what to say of it."""
    digest = _mark(call, asked)
    keyed = [(_key(report, one), one) for one in report.violations]
    keyed.sort(key=lambda pair: pair[0])
    left = keyed
    if asked.cursor:
        last = _decoder.decode(cursors.decode(asked.cursor, digest).last)
        left = [pair for pair in keyed if pair[0] > last]
    page = _with_lines(call, view, [one for _, one in left[: asked.limit or _PAGE]])
    rows: list[Any] = [violation_json(call, one) for one in page]
    shown |= {"next_cursor": None} if keyed else {}
    room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS
    shown["violations"] = rows[: leading(rows, room)] or [cut_deep(one, room) for one in rows[:1]]
    count = len(shown["violations"])
    if count == len(left):
        return ""
    last = msgspec.json.encode(left[count - 1][0]).decode()
    shown["next_cursor"] = cursors.encode(cursors.Cursor(digest, view.seq, len(keyed), last))
    many = pluralize(len(left), "violation")
    return f"{count} of {many} shown; for more, repeat the call with this next_cursor as `cursor`."


def _mark(call: Call, asked: CheckArguments) -> str:
    """Return the identity of the call in its cursors."""
    by = _by(call, asked).writer
    return cursors.request_mark(
        (
            call.branch,
            asked.rules,
            asked.ids,
            asked.paths,
            asked.severity,
            asked.since,
            asked.against,
            *by.as_json().items(),
        )
    )


def violation_json(call: Call, one: Violation) -> Payload:
    """Return a violation as JSON, its remedy in the words of the tools."""
    remedy = call.workspace.located(one.remedy, call.branch)
    return one.as_json() | {"hint": in_tool_words(remedy, is_dotted=call.is_dotted, is_read_only=call.is_read_only)}


def _run_json(run: RuleRun) -> Payload:
    """Return how a rule was run as JSON; its time only where an agent should know of it."""
    found: Payload = msgspec.to_builtins(run)
    if not run.is_slow:
        del found["seconds"]
    return found


_decoder = msgspec.json.Decoder(Key)


def _key(report: CheckReport, one: Violation) -> Key:
    from kbcore.rules.registry import place_of

    order = [run.id for run in report.rules]
    return (one.severity, order.index(one.rule), *place_of(one))
