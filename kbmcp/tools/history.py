"""Carries out ``kb_history``: the log, one record, a comparison of two points, who wrote an entity, and undoing.

History never changes, so a page continues where the one before ended, whatever is written meanwhile. No more is read
than a page shows; the first page counts all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kbcore.errors import InvalidQuery, Problem
from kbcore.remedies import kb
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of
from kbmcp.tools.answers import PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.tools.argument_models import HistoryArguments
from kbmcp.tools.call import Call
from kbmcp.tools.hints import of_tools
from kbmcp.tools.refusals import limit_problems, refused_arguments
from kbmcp.tools.truncation import shortened
from kbmcp.tools.write import answer_of

if TYPE_CHECKING:
    from kbcore.editing.documents import WriteTarget
    from kbcore.store.history.log import Selection
    from kbcore.view.view import View

_MOST_NAMED: Final = 10

Rows = Iterable[tuple[int, str, Any]]
"""The rows from where a page begins: the place after each, its key, and itself."""

_WITH_FILES: Final = "Send it again with `files` true: it changes them back as well."
_NOTE_CHARS: Final = 700
_WHO_CHARS: Final = 230
"""The most characters of the rows of an answer of action who: with the rest, without the id, 100 tokens."""
_WHY_CHARS: Final = 102
"""The number of characters of the message of a record that are shown there, as JSON."""
_ACTOR_CHARS: Final = 50
"""The number of characters of the name of its actor, likewise."""
_MORE_CHARS: Final = 60
"""The characters that are reserved for a few fields, and for the number of further ones."""
_ONLY_FOR: Final = {
    "id": ("log", "who"),
    "field": ("who",),
    "to": ("diff", "rollback"),
    "message": ("revert", "rollback"),
    "dry_run": ("revert", "rollback"),
    "files": ("revert", "rollback"),
    "cursor": ("log", "show", "diff"),
    "limit": ("log", "show", "diff"),
    **dict.fromkeys(("since", "until", "actor", "session"), ("log", "diff")),
}
"""The actions that an argument applies to."""
_WITHOUT_SEQ: Final = frozenset({"log", "who", "rollback"})
"""The actions that take no `seq`."""
_READ_AT_ONCE: Final = 64
"""Rows: most pages hold fewer, and a list of so many keys is still found by its index."""


def history(call: Call, asked: HistoryArguments, problems: Sequence[Problem]) -> Payload:
    """Return what the action asks for.

    Raises: ``InvalidQuery`` for arguments that do not fit the action, with those that are known to be wrong already;
    ``NotFound``; ``HistoryPruned``; what reverting raises.
    """
    known = {problem.path for problem in problems}
    found = [*problems, *(problem for problem in _misfits(asked) if problem.path not in known)]
    if found:
        raise refused_arguments(found)
    wanted = _wanted(call, asked)
    if asked.action == "log":
        return call.store.read(lambda view: _log(call, wanted, view))
    if asked.action == "who":
        return call.store.read(lambda view: _who(call, wanted, view))
    if asked.action == "show":
        return _reading_record(call, wanted)
    if asked.action == "diff":
        return _reading(call, [wanted.seq, wanted.to], lambda view: _diff(call, wanted, view))
    return _revert(call, wanted) if asked.action == "revert" else _rollback(call, wanted)


class _Wanted(NamedTuple):
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
    files: bool
    mark: str
    """The identity of the request in cursors: the texts of the points, not what they mean by now."""
    begun: cursors.Cursor | None
    """The cursor that was sent."""

    @property
    def is_narrowed(self) -> bool:
        """Return whether only records of one actor or session are requested."""
        return bool(self.actor or self.session)

    def selection(self, low: int, high: int) -> Selection:
        """Return the records that are meant, after one seq and up to another."""
        from kbcore.store.history.log import Selection
        from kbcore.store.history.when import When

        return Selection(actor=self.actor, session=self.session, since=When("", seq=low), until=When("", seq=high))


def _wanted(call: Call, asked: HistoryArguments) -> _Wanted:
    """Return what is asked for with seqs for the points; which instant or record one means is noted.

    With a cursor they are those of the first page, whatever was written since.

    Raises: ``InvalidQuery`` for what is no point, and for a cursor of another request; as ``moment.after`` and
    ``moment.up_to``.
    """
    from kbcore.store.history import moment
    from kbcore.store.history.when import When, point_in

    asked = _parted(call, asked)
    what = (asked.action, asked.id, asked.field, asked.seq, asked.to, asked.since, asked.until)
    mark = cursors.request_mark((call.branch, *what, asked.actor, asked.session))
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
            if name in {"seq", "to"}:
                found[name], said = (point.seq, "") if point.seq is not None else moment.meant(view, point)
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
    return _Wanted(
        action=asked.action,
        id=asked.id,
        field=asked.field,
        seq=seq,
        to=to,
        actor=asked.actor,
        session=asked.session,
        limit=asked.limit,
        message=asked.message,
        dry_run=asked.dry_run,
        files=asked.files,
        mark=mark,
        begun=begun,
    )


def _parted(call: Call, asked: HistoryArguments) -> HistoryArguments:
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


def _misfits(asked: HistoryArguments) -> Iterator[Problem]:
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
    if asked.seq is None and action not in _WITHOUT_SEQ and not (action == "diff" and asked.since is not None):
        hint = f"{kb('log')} finds it, then action {action} takes it as `seq`."
        yield Problem("$.seq", "missing_argument", f"The action {action} needs `seq`, the number of a record.", hint)
    if isinstance(asked.seq, str) and action in {"show", "revert"}:
        hint = (
            f"Write {asked.seq} without quotes."
            if asked.seq.isdecimal()
            else of_tools("{kb_history} with action log finds it.")
        )
        yield Problem("$.seq", "wrong_type", "`seq` must be a whole number, not text.", hint)
    if asked.to is None and action == "rollback":
        hint = "A seq, a time such as 2026-01-31, or a revision of git; 0 is the beginning."
        yield Problem("$.to", "missing_argument", "The action rollback needs `to`, the point to go back to.", hint)
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
    for name, other in (("seq", "since"), ("to", "until")):
        if action == "diff" and getattr(asked, name) is not None and getattr(asked, other) is not None:
            hint = f"Leave out `{name}` or `{other}`."
            yield Problem(f"$.{other}", "not_for_action", f"`{name}` and `{other}` both say the same end.", hint)


def _reading(call: Call, seqs: Sequence[int | None], use: Callable[[View], Payload]) -> Payload:
    """Return ``use(view)``; where only records before a damage are requested, also despite that damage.

    None means the head. Raises: as ``use``; the journal's own error.
    """
    from kbcore.errors import Damaged, HistoryPruned
    from kbcore.store.history.moment import read_at

    try:
        return call.store.read(use)
    except (Damaged, HistoryPruned) as error:
        known = [seq for seq in seqs if seq is not None]
        if len(known) < len(seqs):
            raise
        refused = error
    try:
        return read_at(call.store, str(max(known)), lambda view, _: use(view))
    except HistoryPruned as error:
        # The second error is about the state at one seq, the first one about the request.
        raise (refused if isinstance(refused, HistoryPruned) else error) from None


def _reading_record(call: Call, asked: _Wanted) -> Payload:
    """Return a record; where nothing proves what it changed, with what it states. Raises: as ``_reading``."""
    from kbcore.errors import HistoryPruned
    from kbcore.store.history.log import stated_json

    seq = asked.seq
    try:
        return _reading(call, [seq], lambda view: _show(call, asked, view))
    except HistoryPruned:

        def stated(view: View) -> Payload | None:
            found = stated_json(call.store, view, seq)
            return None if found is None else _stated(call, asked, view, found)

        shown = call.store.read(stated)
        if shown is None:
            raise
        return shown


def _stated(call: Call, asked: _Wanted, view: View, found: Payload) -> Payload:
    page, operations = _Page(asked, view.seq), found.pop("operations")
    rows = ((after, "operations", one) for after, one in enumerate(operations[page.place :], page.place + 1))
    shown: Payload = cut_deep({"branch": call.branch, **found}, PAGE_CHARS // 2)
    return page.answer(shown, ["operations"], rows, len(operations))


class _Page:
    """The start of a page of rows, and the part of it that fits.

    Its cursor holds how many rows were shown before, and the place to go on: how much was looked at for them; and the
    seqs between which records are meant.
    """

    def __init__(self, asked: _Wanted, head: int) -> None:
        self._digest = asked.mark
        self._basis = f"{asked.seq}.{'' if asked.to is None else asked.to}"
        self._limit = asked.limit
        self._found = asked.begun
        shown, _, place = self._found.last.partition(".") if self._found else ("0", "", "0")
        self.start = int(shown)
        self.place = int(place or shown)
        self.head = self._found.seq if self._found else head
        """The head at the first page; later records are on no page."""

    def total(self, count: Callable[[], int]) -> int:
        """Return how many rows all pages have together, counted for the first of them."""
        return self._found.total if self._found else count()

    def answer(self, shown: Payload, keys: Sequence[str], rows: Rows, total: int) -> Payload:
        """Return the whole answer: what every page shows, the rows that fit, under their keys, and how to go on."""
        room = PAGE_CHARS - length_of(shown) - _NOTE_CHARS
        lists: dict[str, list[Any]] = {key: [] for key in keys}
        notes, taken, following, place = list[str](), 2, self.start, self.place
        for after, key, row in islice(rows, self._limit):
            taken += length_of(row) + 1
            is_first = following == self.start
            if taken > room and not is_first:
                break
            lists[key].append(row if taken <= room else cut_deep(row, room))
            following, place = following + 1, after
            if taken > room:
                notes.append(
                    of_tools("Long values are cut: {kb_query} with `ids`, `fields` and `at` gives them in full.")
                )
                break
        cursor = None
        if following < total:
            cursor = cursors.encode(cursors.Cursor(self._digest, self.head, total, f"{following}.{place}", self._basis))
            notes.append(f"{total - following} of {total} follow: repeat the call with this next_cursor as `cursor`.")
        note = {"note": " ".join(notes)} if notes else {}
        return {**shown, "total": total, **lists, "next_cursor": cursor, **note}


def _log(call: Call, asked: _Wanted, view: View) -> Payload:
    from kbcore.store.history.log import log, seqs_about
    from kbcore.store.history.reach import not_listed

    asked = asked._replace(id=_present(call, view, asked.id))
    page, rest = _Page(asked, view.seq), not_listed(view)
    first = max(rest.pruned_before, asked.seq + 1)
    last = page.head if asked.to is None else min(page.head, asked.to)
    selection = asked.selection(first - 1, last)
    seqs: Sequence[int] = selection.seqs(view)[::-1] if asked.is_narrowed else range(last, first - 1, -1)
    if asked.id:
        among = frozenset(seqs) if asked.is_narrowed else seqs
        seqs = [seq for seq in reversed(seqs_about(view, asked.id)) if seq in among]
    elif rest.gaps:
        seqs = [seq for seq in seqs if not any(gap.first <= seq <= gap.last for gap in rest.gaps)]
    _say_if_empty(call, asked, view, selection, seqs)
    before_seq = seqs[page.start] + 1 if page.start < len(seqs) else 1
    records = log(view, selection, id=asked.id, limit=asked.limit, before_seq=before_seq)
    rows = ((after, "records", record) for after, record in enumerate(records, page.start + 1))
    shown: Payload = {"branch": call.branch, "seq": page.head, **rest.as_json()}
    return page.answer(shown, ["records"], rows, len(seqs))


def _say_if_empty(call: Call, asked: _Wanted, view: View, selection: Selection, found: Sequence[Any]) -> None:
    """Say which filters keep all records out, and which actor may be meant, where nothing was found."""
    if asked.action == "log" and asked.to is not None and asked.to < asked.seq:
        call.notes.append(
            f"Nothing can be found: `since` begins after seq {asked.seq}, and `until` ends at seq {asked.to}."
        )
        return
    first, last = selection.bounds(view)
    if found or first >= last or not asked.is_narrowed:
        return
    filters = [f"`{name}` {in_quotes(value)}" for name in ("id", "actor", "session") if (value := getattr(asked, name))]
    said = f"Nothing from seq {first + 1} to seq {last} matches {' and '.join(filters)}."
    call.notes.append(f"{said} {selection.near_actors(view)}".rstrip())


def _present(call: Call, view: View, key: str) -> str:
    """Return the id that an entity has now, and say it where that is another one."""
    from kbcore.query.former import called, said

    found = called(view, [key])
    call.notes.extend(said(found))
    return found.get(key, key)


def _who(call: Call, asked: _Wanted, view: View) -> Payload:
    """Return who wrote an entity, or one field of it, as short as an agent can take it along with each question."""
    from kbcore.store.history.authorship import authorship, written_json

    key = _present(call, view, asked.id)
    rows = [_brief(written_json(view, one)) for one in authorship(view, key, asked.field)]
    shown: Payload = {"branch": call.branch, "seq": view.seq, "id": key}
    shown |= {"field": asked.field} if asked.field else {}
    kept = max(1, leading(rows, _WHO_CHARS))
    return shown | {"written": rows[:kept]} | ({"earlier": len(rows) - kept} if kept < len(rows) else {})


def _brief(row: Payload) -> Payload:
    """Return who wrote fields, within the room for all rows: the record whole, then as much of the rest as fits."""
    shown = dict(row)
    if length_of(shown.get("actor", "")) > _ACTOR_CHARS:
        shown["actor"] = shortened(shown["actor"], _ACTOR_CHARS)
    lists = {name: shown.pop(name) for name in ("fields", "files") if name in shown}
    message = shown.get("message", "")
    room = min(_WHY_CHARS, _WHO_CHARS - _MORE_CHARS - length_of(shown | {"message": ""}))
    if length_of(message) > room:
        shown["message"] = shortened(message, room)
    for name, items in lists.items():
        more = {f"more_{name}": len(items)}
        kept = leading(items, _WHO_CHARS - length_of(shown | more | {name: []}))
        shown |= {name: items[:kept]} if kept else {}
        shown |= {f"more_{name}": len(items) - kept} if kept < len(items) else {}
    return shown


def _show(call: Call, asked: _Wanted, view: View) -> Payload:
    from kbcore.store.history.log import count_operations, operations_from, record_facts
    from kbcore.store.history.reach import check_record

    page, seq = _Page(asked, view.seq), asked.seq
    check_record(view, seq)
    shown: Payload = {"branch": call.branch, **record_facts(call.store, view, seq)}
    shown = cut_deep(shown, PAGE_CHARS // 2)
    found = operations_from(view, seq, page.place, at_once=min(asked.limit, _READ_AT_ONCE))
    rows = ((after, "operations", operation) for after, operation in found)
    return page.answer(shown, ["operations"], rows, page.total(lambda: count_operations(view, seq)))


def _diff(call: Call, asked: _Wanted, view: View) -> Payload:
    from kbcore.store.history.compare import count_differences, diff, differences_from
    from kbcore.store.history.moment import seq_at

    page = _Page(asked, view.seq)
    low = seq_at(view, str(asked.seq))
    high = page.head if asked.to is None else seq_at(view, str(asked.to))
    if asked.is_narrowed:
        selection = asked.selection(low, high)
        found = diff(view, low, high, changed_by=selection)
        listed = [(key, one) for key in ("entities", "edges") for one in found[key]]
        _say_if_empty(call, asked, view, selection, listed)
        shown = {"branch": call.branch, "seq": page.head, "from": low, "to": high}
        rest = ((after, *one) for after, one in enumerate(listed[page.place :], page.place + 1))
        return page.answer(shown, ["entities", "edges"], rest, page.total(lambda: len(listed)))
    rows = differences_from(view, low, high, page.place, at_once=_READ_AT_ONCE)
    shown = {"branch": call.branch, "seq": page.head, "from": low, "to": high}
    return page.answer(shown, ["entities", "edges"], rows, page.total(lambda: count_differences(view, low, high)))


def _revert(call: Call, asked: _Wanted) -> Payload:
    from kbcore.checks.introduced.written import revert
    from kbcore.editing.renaming import LargerRecord, in_files, in_steps, undo
    from kbcore.store.history.undo import UndoOptions

    only_shown = asked.dry_run or not asked.files
    written = undo(_target(call), asked.seq, message=asked.message, dry_run=only_shown)
    if isinstance(written, LargerRecord):
        error = in_steps(written, [asked.seq])
        ids = [f"{in_quotes(now)} the id {in_quotes(before)}" for now, before in written.renames.items()]
        then = " Then the revert of the record undoes the rest." if written.rest else ""
        error.remedy = f"{of_tools('{kb_upsert}')} with `rename` gives {some_of(ids, _MOST_NAMED)} back.{then}"
        raise error
    if written is not None:
        if asked.files or asked.dry_run:
            return answer_of(call, written.outcome, [edit.path for edit in written.edits])
        error = in_files(asked.seq, written.edits)
        error.remedy = _WITH_FILES
        raise error
    options = UndoOptions(message=asked.message, dry_run=asked.dry_run)
    outcome = revert(call.workspace, call.branch, call.author, [asked.seq], options, follows_head=call.follows_head)
    return answer_of(call, outcome)


def _rollback(call: Call, asked: _Wanted) -> Payload:
    from kbcore.checks.introduced.written import rollback
    from kbcore.editing.renaming import in_files_since, roll_back
    from kbcore.store.history.undo import UndoOptions

    to_seq = asked.to or 0
    options = UndoOptions(message=asked.message, dry_run=asked.dry_run)
    shown = UndoOptions(message=asked.message, dry_run=asked.dry_run or not asked.files)
    written = roll_back(_target(call), to_seq, shown)
    if written is not None:
        if asked.files or asked.dry_run:
            return answer_of(call, written.outcome, [edit.path for edit in written.edits])
        error = in_files_since(to_seq, written.edits)
        error.remedy = _WITH_FILES
        raise error
    outcome = rollback(call.workspace, call.branch, call.author, to_seq, options, follows_head=call.follows_head)
    return answer_of(call, outcome)


def _target(call: Call) -> WriteTarget:
    from kbcore.editing.documents import WriteTarget

    return WriteTarget(call.workspace, call.branch, call.author, call.read, call.follows_head)
