"""The record of a branch that a point means; and reading as of it, also next to damage.

Order is seq, never the clock: a time means the last record that was written by then, and a time that a wrong clock gave
is passed over. A commit means the last record that was made while it was checked out and has its files.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple, TypeVar

from kbcore.errors import Damaged, HistoryPruned, InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.storage.places import record_range
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.reach import is_pruned
from kbcore.store.history.when import SHOWN_COMMIT, When, no_such_point, when_of
from kbcore.text.escaping import in_quotes
from kbcore.view.as_of import sources
from kbcore.view.gaps import out_of_reach
from kbcore.view.history import check_reach, last_by
from kbcore.view.view import View

T = TypeVar("T")

_NAMED = f"{kb('doctor')} names the records of such clocks."
_COMMITS = "select commit, max(seq) from record where commit <> '' and seq <= ? group by commit"
_TAKEN_IN = """
with made as (select seq from record where commit = $1 and seq <= $2),
taken as (select version as seq, path, hash from (select path, hash, version from source
  union all select path, hash, version from source_history) where version in (from made)),
change as (select * from taken
  union all select ended, path, null from source_history
    where ended in (from made) and (ended, path) not in (select seq, path from taken))
select seq, path, hash from made left join change using (seq) order by seq
"""
"""The files that each record made at a commit took in, with the SHA-256, null for one that was gone; a row of nulls for
a record that took in none."""
_TRIED = 2
"""So many commits with records are looked at for a record with the files of one."""
WITHOUT_RECORD = "commit_without_record"
"""The member of an error's data with the commit at which, and before which, no record was made."""
_FROM_START = "0 is the branch before its first record."


class Meant(NamedTuple):
    """The record that a point means, and why, in words; nothing need be said of a seq."""

    seq: int
    said: str = ""
    is_of_documents: bool = False
    """There is no such record: the answer is of the documents of a commit alone."""


def seq_at(view: View, point: When | str, *, now: str = "") -> int:
    """Return the seq that a point means. Raises: as ``meant``."""
    return meant(view, point, now=now).seq


def meant(view: View, point: When | str, *, now: str = "") -> Meant:
    """Return the record that a point means: the last one up to the end of the time, or at the commit.

    A text is a seq or a time of UTC; ``now`` is as in ``when_of``.

    Raises: ``InvalidQuery`` for a text that is neither, and for what is before the first record or beyond the head;
    ``HistoryPruned``.
    """
    when = when_of(point, now=now) if isinstance(point, str) else point
    if when is None:
        raise no_such_point(str(point))
    if when.seq is not None:
        if when.seq > view.recorded_seq:
            raise InvalidQuery(f"There is no record {when.seq} yet.", hint=f"The head is at seq {view.recorded_seq}.")
        check_reach(view, when.seq)
        return Meant(when.seq)
    if not view.recorded_seq:
        message = f"The branch has no record yet, so none of {in_quotes(when.text)}."
        raise InvalidQuery(message, hint=f"{kb('sync')} reads documents, and {kb('apply')} applies a changeset.")
    found = _at_time(view, when) if when.end else _shared(view, when) if when.shared else _at_commit(view, when)
    check_reach(view, found.seq)
    return found


def beginning(view: View, point: When) -> Meant:
    """Return the record that a comparison begins with: as ``meant``, but of a time before all records none.

    Raises: as ``meant``.
    """
    if point.end and not is_pruned(view) and not last_by(view, point.end, before=True):
        _check_past(view, point)
        return Meant(0, said_of(view, point, is_since=False))
    return meant(view, point)


def after(view: View, point: When) -> int:
    """Return the last seq before what is since a point: 0 where that is all.

    A time begins with its first instant: since a day is since its midnight. Raises: as ``meant``.
    """
    if not point.end:
        return meant(view, point).seq
    _check_past(view, point)
    return last_by(view, point.begin, before=True) or 0


def up_to(view: View, point: When) -> int:
    """Return the last seq of what is until a point: 0 where there is nothing. Raises: as ``meant``."""
    return last_by(view, point.end, before=True) or 0 if point.end else meant(view, point).seq


def said_of(view: View, point: When, *, is_since: bool) -> str:
    """Return which instant or record the beginning or the end of a selection is; "" for a seq. Raises: as ``meant``."""
    if not point.end:
        return meant(view, point).said
    return (
        f"{in_quotes(point.text)} is {f'since {_shown(point.begin)}' if is_since else f'before {_shown(point.end)}'}."
    )


def _at_time(view: View, when: When) -> Meant:
    """Return the last record up to the end of a time."""
    _check_past(view, when)
    found = last_by(view, when.end, before=True)
    if not found:
        if is_pruned(view):
            what = f"the state at {when.text.strip()}"
            raise out_of_reach(view.rows, view.basis.history_from, 0, what=what)
        first = view.rows("select min(written_at) from record where seq <= ?", [view.recorded_seq])[0][0]
        message = f"{in_quotes(when.text)} is before the first record, which was written at {_shown(first)}."
        raise InvalidQuery(message, hint=_FROM_START)
    return Meant(
        found, f"{in_quotes(when.text)} is before {_shown(when.end)}: seq {found} is the last record until then."
    )


def _shown(time: str) -> str:
    """Return a time without a fraction of a second where that is zero."""
    return time.replace(".000000Z", "Z")


def _check_past(view: View, when: When) -> None:
    """Refuse a time that is yet to come, unless a record has a later one. Raises: ``InvalidQuery``."""
    if when.is_future and when.begin > _latest(view):
        hint = f"The head is at seq {view.recorded_seq}; give that for the present state."
        raise InvalidQuery(f"{in_quotes(when.text)} is yet to come.", hint=hint)


def _shared(view: View, when: When) -> Meant:
    """Return the last record that a branch shares with another one."""
    found = when.shared(view) if when.shared else None
    if not found:
        message = f"This branch shares no record with {in_quotes(when.other)}."
        raise InvalidQuery(message, hint=f"{kb('branch', 'diff', 'A', 'B')} compares two branches.")
    return Meant(found, f"Seq {found} is the last record that is also in {in_quotes(when.other)}.")


def _at_commit(view: View, when: When) -> Meant:
    """Return the record with the files of a commit, made while it or its newest ancestor with records was checked out.

    What is written before a commit is made at its parent: where all records at it have what was committed later, the
    record is one at an ancestor. Where none has its files, it is the last one at it, or else at that ancestor.
    """
    name = f"{in_quotes(when.text)} is commit {when.commit[:SHOWN_COMMIT]}"
    if when.is_checked_out:
        seq = view.recorded_seq
        return Meant(seq, f"{name}, which is checked out: seq {seq} is the last record.")
    made: dict[str, int] = dict(view.rows(_COMMITS, [view.recorded_seq]))
    listed = (commit for commit in when.ancestors() if commit in made) if made else ()
    near = [*islice(listed, _TRIED)]
    paths = set[str]()
    for commit in near:
        seq = _with_files(view, when, commit, paths)
        if seq:
            later = " with its files; later ones have what was committed later, or never"
            more = later if made[commit] > seq or commit != near[0] else ""
            return Meant(seq, f"{name}{_which(when, commit, near[0], seq)}{more}.")
    if near:
        seq = made[near[0]]
        said = f"{name}{_which(when, near[0], near[0], seq)}"
        return Meant(seq, f"{said}. No record near it has its files as git has them.")
    raise InvalidQuery(
        f"{name}, and no record of this branch was made at it or at an ancestor of it.",
        hint=f"Give a seq or a time; `git show -s --format=%cI {when.commit[:SHOWN_COMMIT]}` says when it was made. "
        "Records made by an earlier KB, or where git had no commit, name none.",
        data={WITHOUT_RECORD: when.commit},
    )


def _which(when: When, commit: str, newest: str, seq: int) -> str:
    """Return which record it is; ``newest`` is the newest commit, of this one and its ancestors, with a record."""
    if commit == when.commit:
        return f": seq {seq} is the last record made at it"
    ancestor = f"at its ancestor {commit[:SHOWN_COMMIT]}"
    if newest == when.commit:
        return f": seq {seq} is the last record made {ancestor}"
    return f", at which no record was made: seq {seq} is the last one {ancestor}"


def _with_files(view: View, when: When, commit: str, paths: set[str]) -> int:
    """Return the last record made at a commit after which the files that were taken in are those of the point.

    0 where there is none. ``paths`` are those that later records took in; the files of these records are added.
    """
    rows = view.rows(_TAKEN_IN, [commit, view.recorded_seq])
    paths |= {path for _, path, _ in rows if path}
    before = f"select path, hash from {sources(rows[0][0] - 1)} where path in (select unnest(?::varchar[]))"  # noqa: S608
    now, wanted = dict(view.rows(before, [sorted(paths)])), when.hashes(paths)
    wrong = {path for path in paths if now.get(path) != wanted.get(path)}
    found = 0
    for seq, changes in groupby(rows, itemgetter(0)):
        for _, path, hash_ in changes:
            (wrong.discard if wanted.get(path) == hash_ else wrong.add)(path)
        found = found if wrong else seq
    return found


def _latest(view: View) -> str:
    """Return the latest time of a record: that of the last one, unless a clock was wrong."""
    sql = "select max(written_at) from record where seq <= ?"
    return str(view.rows(sql, [view.recorded_seq])[0][0] or "")


def clock_notes(view: View, *points: When | str) -> list[str]:
    """Return what is to be said with an answer as of these times: which may mean another record, as a clock was wrong.

    A seq, a branch or a commit means one record only.
    """
    whens = [when_of(point) if isinstance(point, str) else point for point in points]
    return [said for when in whens if when and when.end and (said := _doubt(view, when.end))]


def _doubt(view: View, end: str) -> str:
    """Return why the time before ``end`` may mean another record than is taken; "" where the clocks agree."""
    seq = last_by(view, end, before=True)
    if not seq:
        return ""
    sql = "select min(seq), max(seq), count(*) from record where seq < ? and written_at >= ?"
    first, last, count = view.rows(sql, [seq, end])[0]
    taken = f"A clock was wrong near the time that was asked for. It is taken to mean seq {seq}"
    if count:
        which = record_range(first, last) if count == last - first + 1 else f"{count} of records {first} to {last}"
        return f"{taken}; {which}, before it, {'has a later time' if count == 1 else 'have later times'}. {_NAMED}"
    clock, at = view.rows("select clock, written_at from record where seq = ?", [seq])[0]
    if not clock:
        return ""
    was = "more than a day behind that" if clock == at else f"at {clock}, behind the time"
    return f"{taken}, and the clock of that record was {was} of an earlier one. {_NAMED}"


def read_at(
    store: BranchStore, point: When | str, use: Callable[[View, int], T], *, notes: list[str] | None = None
) -> T:
    """Return ``use(view, seq)`` for the seq that a point means, also when a later part of the journal is damaged.

    What is to be said with the answer (``clock_notes``) is added to ``notes``.

    Raises: as ``meant``; the journal's own error when the damage lies before that seq.
    """
    return read_meant(store, point, lambda view, found: use(view, found.seq), notes=notes)


def read_meant(
    store: BranchStore, point: When | str, use: Callable[[View, Meant], T], *, notes: list[str] | None = None
) -> T:
    """Return ``use(view, meant)`` as ``read_at`` does, with what is to be said of the point."""
    when = when_of(point) if isinstance(point, str) else point
    is_known = when is not None and when.seq is not None
    found = Meant(when.seq) if when is not None and when.seq is not None else None

    def use_at(view: View) -> T:
        nonlocal found
        found = meant(view, when or point)
        if notes is not None:
            notes.extend(clock_notes(view, when or point))
        return use(view, found)

    try:
        return store.read(use_at)
    except Damaged as error:
        # the error for lost bytes comes before the rest is read, and does not know how far that is good
        if not is_known or found is None or found.seq > error.data.get("good_seq", found.seq):
            raise
    except HistoryPruned as error:
        if found is None:
            raise
        earlier = found
        return _before_gap(store, earlier.seq, lambda view: use(view, earlier), error)
    at = found
    with store.view_until(at.seq) as view:
        return use(view, at)


def read_head(
    store: BranchStore, use: Callable[[View], T], read: Callable[[Callable[[View], T]], T] | None = None
) -> T:
    """Return ``use(view)`` at the head, where it may go on with an answer as of an earlier seq, by a cursor.

    A seq before missing records is answered, or refused, as ``read_at`` does it. ``read`` gives the view of the head,
    where that is not the store's own.

    Raises: what ``use`` and reading the journal raise.
    """
    try:
        return read(use) if read else store.read(use)
    except HistoryPruned as error:
        asked = error.data.get("asked_seq")
        if asked is None:
            raise
        return _before_gap(store, asked, use, error)


def _before_gap(store: BranchStore, seq: int, use: Callable[[View], T], refused: HistoryPruned) -> T:
    """Return ``use(view)`` as of a seq before missing records, if a part of the journal leads to it by itself.

    Raises: ``refused``, or that what is before the seq is not proven.
    """
    if not store.head().holes:
        raise refused
    try:
        at = store.view_until(seq)
    except HistoryPruned:
        raise store.read(lambda view: _unproven(view, seq)) from None
    with at as view:
        try:
            return use(view)
        except HistoryPruned:
            raise refused from None


def _unproven(view: View, seq: int) -> HistoryPruned:
    return out_of_reach(view.rows, view.basis.history_from, seq, is_unproven=True)
