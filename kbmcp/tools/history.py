"""Carries out ``kb_history``: the log, one record, a comparison of two points, who wrote an entity, and the review.

History never changes, so a page continues where the one before ended, whatever is written meanwhile. No more is read
than a page shows; the first page counts all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kbcore.errors import NotFound, Problem
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbmcp.tools.answers import PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.tools.argument_models import HistoryArguments
from kbmcp.tools.call import Call
from kbmcp.tools.entity_parts import cut_value
from kbmcp.tools.hints import of_tools
from kbmcp.tools.history_request import HistoryRequest, misfits, read_request
from kbmcp.tools.refusals import refused_arguments
from kbmcp.tools.undo import revert_records, roll_back_to, target_of
from kbmcp.tools.write import answer_of

if TYPE_CHECKING:
    from kbcore.store.history.log import RecordFilter
    from kbcore.store.review import Proposal
    from kbcore.view.view import View


Rows = Iterable[tuple[int, str, Any]]
"""The rows from where a page begins: the place after each, its key, and itself."""

_NOTE_CHARS: Final = 700
_WHO_CHARS: Final = 230
"""The most characters of the rows of an answer of action who: with the rest, without the id, 100 tokens."""
_WHY_CHARS: Final = 102
"""The number of characters of the message of a record that are shown there, as JSON."""
_ACTOR_CHARS: Final = 50
"""The number of characters of the name of its actor, likewise."""
_MORE_CHARS: Final = 60
"""The characters that are reserved for a few fields, and for the number of further ones."""
_READ_AT_ONCE: Final = 64
"""Rows: most pages hold fewer, and a list of so many keys is still found by its index."""


def history(call: Call, asked: HistoryArguments, problems: Sequence[Problem]) -> Payload:
    """Return what the action asks for.

    Raises: ``InvalidQuery`` for arguments that do not fit the action, with those that are known to be wrong already;
    ``NotFound``; ``HistoryPruned``; what reverting raises.
    """
    known = {problem.path for problem in problems}
    found = [*problems, *(problem for problem in misfits(asked) if problem.path not in known)]
    if found:
        raise refused_arguments(found)
    wanted = read_request(call, asked)
    if asked.action == "log":
        return call.store.read(lambda view: _log(call, wanted, view))
    if asked.action == "who":
        return call.store.read(lambda view: _who(call, wanted, view))
    if asked.action == "show":
        return _reading_record(call, wanted)
    if asked.action == "diff":
        return _reading(call, [wanted.seq, wanted.to], lambda view: _diff(call, wanted, view))
    if asked.action == "proposed":
        return call.store.read(lambda view: _proposed(call, wanted, view))
    if asked.action in {"accept", "reject"}:
        return _decide(call, wanted)
    return revert_records(call, wanted) if asked.action == "revert" else roll_back_to(call, wanted)


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


def _reading_record(call: Call, asked: HistoryRequest) -> Payload:
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


def _stated(call: Call, asked: HistoryRequest, view: View, found: Payload) -> Payload:
    page, operations = _Page(asked, view.seq), found.pop("operations")
    rows = ((after, "operations", one) for after, one in enumerate(operations[page.place :], page.place + 1))
    shown: Payload = cut_deep({"branch": call.branch, **found}, PAGE_CHARS // 2)
    return page.answer(shown, ["operations"], rows, len(operations))


class _Page:
    """The start of a page of rows, and the part of it that fits.

    Its cursor holds how many rows were shown before, and the place to go on: how much was looked at for them; and the
    seqs between which records are meant.
    """

    def __init__(self, asked: HistoryRequest, head: int) -> None:
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


def _log(call: Call, asked: HistoryRequest, view: View) -> Payload:
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


def _proposed(call: Call, asked: HistoryRequest, view: View) -> Payload:
    page, found = _Page(asked, view.seq), _proposals(asked, view)
    rows = ((after, "proposals", one.as_json()) for after, one in enumerate(found[page.start :], page.start + 1))
    return page.answer({"branch": call.branch, "seq": view.seq}, ["proposals"], rows, len(found))


def _say_if_empty(call: Call, asked: HistoryRequest, view: View, selection: RecordFilter, found: Sequence[Any]) -> None:
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
    from kbcore.query.former_ids import called, said

    found = called(view, [key])
    call.notes.extend(said(found))
    return found.get(key, key)


def _who(call: Call, asked: HistoryRequest, view: View) -> Payload:
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
        shown["actor"] = cut_value(shown["actor"], _ACTOR_CHARS)
    lists = {name: shown.pop(name) for name in ("fields", "files") if name in shown}
    message = shown.get("message", "")
    room = min(_WHY_CHARS, _WHO_CHARS - _MORE_CHARS - length_of(shown | {"message": ""}))
    if length_of(message) > room:
        shown["message"] = cut_value(message, room)
    for name, items in lists.items():
        more = {f"more_{name}": len(items)}
        kept = leading(items, _WHO_CHARS - length_of(shown | more | {name: []}))
        shown |= {name: items[:kept]} if kept else {}
        shown |= {f"more_{name}": len(items) - kept} if kept < len(items) else {}
    return shown


def _show(call: Call, asked: HistoryRequest, view: View) -> Payload:
    from kbcore.store.history.log import count_operations, operations_from, record_facts
    from kbcore.store.history.reach import check_record

    page, seq = _Page(asked, view.seq), asked.seq
    check_record(view, seq)
    shown: Payload = {"branch": call.branch, **record_facts(call.store, view, seq)}
    shown = cut_deep(shown, PAGE_CHARS // 2)
    found = operations_from(view, seq, page.place, at_once=min(asked.limit, _READ_AT_ONCE))
    rows = ((after, "operations", operation) for after, operation in found)
    return page.answer(shown, ["operations"], rows, page.total(lambda: count_operations(view, seq)))


def _diff(call: Call, asked: HistoryRequest, view: View) -> Payload:
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


def _proposals(asked: HistoryRequest, view: View) -> list[Proposal]:
    """Return what is proposed and requested: of an entity and its edges, of a record, or of a writer.

    Raises: ``NotFound`` for an id that no entity or edge has.
    """
    from kbcore.store.review import ProposalFilter, find_proposals, with_present_names

    ids, seqs = (asked.id,) if asked.id else (), (asked.seq,) if asked.seq else ()
    wanted = ProposalFilter(ids, seqs, (), asked.actor, asked.session)
    return find_proposals(view, with_present_names(view, wanted))


def _decide(call: Call, asked: HistoryRequest) -> Payload:
    """Accept or reject what is requested. Raises: ``ReviewRequired``; ``NotFound``; as ``WriteTarget.apply``."""
    from kbcore.errors.remedies import kb
    from kbcore.store.review import check_reviewer, deciding_changeset

    check_reviewer(call.workspace, call.author)
    found, head = call.store.read(lambda view: (_proposals(asked, view), view.recorded_seq))
    if not found:
        raise NotFound("Nothing of what you name is proposed.", hint=f"{kb('review')} lists what is proposed.")
    accepted, rejected = (found, []) if asked.action == "accept" else ([], found)
    changeset = deciding_changeset(accepted, rejected, seq=head, message=asked.message, dry_run=asked.dry_run)
    return answer_of(call, target_of(call).apply(changeset))
