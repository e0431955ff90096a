"""The request of ``kb_history``: its arguments checked against its action, and its points as seqs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from kbcore.errors import InvalidQuery, Problem
from kbcore.errors.remedies import kb
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbmcp.tools.argument_models import HistoryArguments
from kbmcp.tools.call import Call
from kbmcp.tools.hints import of_tools
from kbmcp.tools.refusals import limit_problems, refused_arguments, wrong_kind

if TYPE_CHECKING:
    from kbcore.store.history.log import RecordFilter
    from kbcore.view.view import View

_OF_PROPOSALS: Final = ("proposed", "accept", "reject")
_ONLY_FOR: Final = {
    "id": ("log", "who", *_OF_PROPOSALS),
    "field": ("who",),
    "to": ("diff", "rollback"),
    **dict.fromkeys(("message", "dry_run"), ("revert", "rollback", "accept", "reject")),
    "files": ("revert", "rollback"),
    "force": ("revert",),
    **dict.fromkeys(("cursor", "limit"), ("log", "show", "diff", "proposed")),
    **dict.fromkeys(("since", "until"), ("log", "diff", "revert")),
    **dict.fromkeys(("actor", "session"), ("log", "diff", "revert", *_OF_PROPOSALS)),
}
"""The actions that an argument applies to."""
_WITHOUT_SEQ: Final = frozenset({"log", "who", "rollback"})
"""The actions that take no `seq`."""


class HistoryRequest(NamedTuple):
    """The request, with seqs for the points that were named. ``to`` is None for the head."""

    action: str
    id: str
    field: str
    seq: int
    to: int | None
    actor: str
    session: str
    limit: int
    message: str
    dry_run: bool
    force: bool
    files: bool
    mark: str
    """The identity of the request in cursors: the texts of the points, not what they mean by now."""
    begun: cursors.Cursor | None
    """The cursor that was sent."""

    @property
    def is_narrowed(self) -> bool:
        """Return whether only records of one actor or session are requested."""
        return bool(self.actor or self.session)

    def selection(self, low: int, high: int) -> RecordFilter:
        """Return the records that are meant, after one seq and up to another."""
        from kbcore.store.history.log import RecordFilter
        from kbcore.store.history.when import When

        return RecordFilter(actor=self.actor, session=self.session, since=When("", seq=low), until=When("", seq=high))


def read_request(call: Call, asked: HistoryArguments) -> HistoryRequest:
    """Return what is asked for with seqs for the points; which instant or record one means is noted.

    With a cursor they are those of the first page, whatever was written since.

    Raises: ``InvalidQuery`` for what is no point, and for a cursor of another request; as ``moment.after`` and
    ``moment.up_to``.
    """
    from kbcore.store.history import moment
    from kbcore.store.history.when import When, point_in

    asked = _with_range_split(call, asked)
    what = (asked.action, asked.id, asked.field, asked.seq, asked.to, asked.since, asked.until)
    session = _session_of(call, asked)
    mark = cursors.request_mark((call.branch, *what, asked.actor, session))
    begun = cursors.decode(asked.cursor, mark) if asked.cursor else None
    points: dict[str, When] = {}
    problems = list[Problem]()
    for name in ("since", "until", "seq", "to"):
        text = getattr(asked, name)
        if text is not None and begun is None and not (name in {"seq", "to"} and isinstance(text, int)):
            try:
                points[name] = point_in(call.workspace, call.branch, str(text))
            except InvalidQuery as error:
                problems.append(Problem(f"$.{name}", "bad_value", error.message, error.remedy))
    if problems:
        raise refused_arguments(problems)

    def seqs_in(view: View) -> dict[str, int]:
        call.notes.extend(moment.clock_notes(view, *points.values()))
        found: dict[str, int] = {}
        for name, point in points.items():
            if name == "seq" and asked.action == "diff":
                found[name], said, _ = moment.beginning(view, point)
            elif name in {"seq", "to"}:
                found[name], said, _ = moment.Meant(point.seq) if point.seq is not None else moment.meant(view, point)
            else:
                said = moment.said_of(view, point, is_since=name == "since")
                found[name] = moment.after(view, point) if name == "since" else moment.up_to(view, point)
            call.notes.extend(filter(None, [said]))
        return found

    seqs = call.store.read(seqs_in) if points else {}
    seq = asked.seq if isinstance(asked.seq, int) else seqs.get("seq", seqs.get("since", 0))
    to = asked.to if isinstance(asked.to, int) else seqs.get("to", seqs.get("until"))
    if begun:
        since, _, until = begun.basis.partition(".")
        seq, to = int(since), int(until) if until else None
    return HistoryRequest(
        action=asked.action,
        id=asked.id,
        field=asked.field,
        seq=seq,
        to=to,
        actor=asked.actor,
        session=session,
        limit=asked.limit,
        message=asked.message,
        dry_run=asked.dry_run,
        force=asked.force,
        files=asked.files,
        mark=mark,
        begun=begun,
    )


def _session_of(call: Call, asked: HistoryArguments) -> str:
    """Return the session that is meant: of a revert of several records that names nobody, this connection's."""
    is_own = asked.action == "revert" and selects_records(asked) and not (asked.actor or asked.session)
    return call.author.session if is_own else call.session_named(asked.session)


def _with_range_split(call: Call, asked: HistoryArguments) -> HistoryArguments:
    """Return what is asked for with both ends of a range ``A..B`` in ``since`` as ``since`` and ``until``.

    An end that names the branch that is answered for is its head, as one that is left out.

    Raises: ``InvalidQuery`` where ``until`` is given too, for three dots, and for a range that ends at another branch.
    """
    from kbcore.ids import check_branch_name
    from kbcore.store.history.when import range_of

    ends = None
    if isinstance(asked.since, str):
        try:
            ends = range_of(asked.since)
        except InvalidQuery as error:
            raise refused_arguments([Problem("$.since", "bad_value", error.message, error.remedy)]) from error
    if ends is None:
        return asked
    first, last = ends
    if asked.until is not None:
        message = f"{in_quotes(str(asked.since))} says until when, and `until` does too."
        raise refused_arguments([Problem("$.until", "contradiction", message, "Leave out one of them.")])
    if last == call.branch:
        last = ""
    if last and check_branch_name(last) is None and call.workspace.folders.has_store(last):
        message = f"{in_quotes(last)} is another branch than {in_quotes(call.branch)}, which is answered for."
        hint = f"End the range at {in_quotes(call.branch)}, a seq, a time or a commit."
        raise refused_arguments([Problem("$.since", "bad_value", message, hint)])
    return asked.model_copy(update={"since": first or None, "until": last or None})


def selects_records(asked: HistoryArguments) -> bool:
    """Tell whether a revert names its records by who wrote them, or when, and not by a seq.

    Without an actor and a session those of this connection are meant.
    """
    has_time = asked.since is not None or asked.until is not None
    return bool(asked.actor or asked.session or (asked.seq is None and has_time))


def misfits(asked: HistoryArguments) -> Iterator[Problem]:
    """Yield what does not fit the action: an argument that would be passed over would give a wrong answer."""
    yield from limit_problems(asked.limit)
    action = asked.action
    if not asked.id and action == "who":
        yield Problem(
            "$.id",
            "missing_argument",
            "The action who needs `id`, that of an entity.",
            of_tools("{kb_query} finds it."),
        )
    selects = action == "revert" and selects_records(asked)
    begins = action == "diff" and bool(asked.since is not None or asked.actor or asked.session)
    if action in {"accept", "reject"} and not (asked.id or asked.actor or asked.session or asked.seq):
        hint = f"{kb('review')} lists what is proposed."
        message = f"The action {action} needs `id`, `seq`, `actor` or `session`: what is meant."
        yield Problem("$.id", "missing_argument", message, hint)
    if asked.seq is None and action not in {*_WITHOUT_SEQ, *_OF_PROPOSALS} and not (begins or selects):
        hint = f"{kb('log')} finds it, then action {action} takes it as `seq`."
        hint += "" if action == "show" else " Or give a time as `since`, such as 1h or yesterday."
        yield Problem("$.seq", "missing_argument", f"The action {action} needs `seq`, the number of a record.", hint)
    if isinstance(asked.seq, str) and asked.seq.strip().isdecimal() and action in {"show", "revert"}:
        yield wrong_kind("$.seq", ("a whole number",), asked.seq, f"Write {asked.seq.strip()} without quotes.")
    if asked.to is None and action == "rollback":
        hint = "A seq, a time such as 2026-01-31, or a revision of git; 0 is the beginning."
        yield Problem("$.to", "missing_argument", "The action rollback needs `to`, the point to go back to.", hint)
    yield from _inapplicable(asked, selects=selects)


def _inapplicable(asked: HistoryArguments, *, selects: bool) -> Iterator[Problem]:
    """Yield the arguments that the action does not take, or not together."""
    action = asked.action
    for name, actions in _ONLY_FOR.items():
        if (
            getattr(asked, name) not in {"", None, HistoryArguments.model_fields[name].default}
            and action not in actions
        ):
            hint = f"Only the action {' or '.join(actions)} takes it. Leave it out."
            yield Problem(f"$.{name}", "not_for_action", f"`{name}` does not apply to the action {action}.", hint)
    if asked.seq is not None and action in _WITHOUT_SEQ:
        hint = "Action show takes it; log lists the records before it with `cursor` and `limit`."
        hint = "The action rollback takes the point as `to`." if action == "rollback" else hint
        yield Problem("$.seq", "not_for_action", f"`seq` does not apply to the action {action}.", hint)
    if action == "revert":
        others = ("seq", "files") if selects else ("since", "until")
        given = {one: getattr(asked, one) for one in others}
        for name in (one for one, value in given.items() if value is not None and value is not False):  # 0 is a seq
            hint = "Name one record by `seq`, or all by `since`, `until`, `actor` and `session`."
            how = "of several records" if selects else "by `seq`"
            yield Problem(f"$.{name}", "not_for_action", f"`{name}` does not apply to a revert {how}.", hint)
    for name, other in (("seq", "since"), ("to", "until")):
        if action == "diff" and getattr(asked, name) is not None and getattr(asked, other) is not None:
            hint = f"Leave out `{name}` or `{other}`."
            yield Problem(f"$.{other}", "not_for_action", f"`{name}` and `{other}` both say the same end.", hint)
