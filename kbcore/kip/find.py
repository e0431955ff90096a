"""FIND answered from a view: one command to one statement, its rows to the shapes of KIP, page by page.

All pages of one answer are of the same seq, whatever is written in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kbcore.config.settings import KipLimits
from kbcore.errors import InvalidQuery
from kbcore.kip import algebra, narrowing
from kbcore.kip import syntax as s
from kbcore.kip.checking import check_query, check_size, check_variables
from kbcore.kip.elements import link_json, node_json
from kbcore.kip.errors import SYNTAX, refused
from kbcore.kip.names import TypeNames
from kbcore.kip.paging import START_OVER, cursor_in, mark_of
from kbcore.kip.run_statement import StatementView, ask, prepared, too_many
from kbcore.kip.sql.groups import solve
from kbcore.kip.sql.projection import ProjectedCell, Selected, ValueSlice, select, select_variables
from kbcore.kip.sql.statement import SqlStatement
from kbcore.kip.steps import Translation
from kbcore.model.schema import Schema
from kbcore.text import cursor as cursors
from kbcore.view.gaps import out_of_reach
from kbcore.view.tables import LINK, NODE, link_of, node_of

_ASK_LESS: Final = "Ask for less with LIMIT and continue with CURSOR, or count with COUNT."
_NARROW: Final = (
    "Narrow WHERE, for example by a name or a FILTER: all that it finds counts, also what LIMIT leaves out."
)
_DEFAULT: Final = KipLimits()
_ALL: Final = ValueSlice()
_RECOUNTED: Final = 1000
"""After so many records the links are counted again."""

_Row = Sequence[Any]

_decode = msgspec.json.Decoder().decode


class FindAnswer(msgspec.Struct, frozen=True):
    """The answer of FIND, in the shape of KIP. ``next_cursor`` is "" on the last page; it is of ``seq``."""

    result: Any
    next_cursor: str
    seq: int


def find(
    view: StatementView,
    schema: Schema,
    query: s.FindCommand,
    *,
    at: int | None = None,
    limits: KipLimits = _DEFAULT,
    now: str = "",
) -> FindAnswer:
    """Answer a bound FIND from a view, as of a seq (None is the head); ``now`` is the time that NOW() means.

    ``schema`` is that of the branch: ``concepts.extended`` with the definitions that the branch adds.

    Raises: ``KipRefused`` with the offset of the place, which ``errors.placing`` turns into line and column:
    KIP_1001 for what cannot be used so and for a cursor that does not fit, KIP_2001 for a type or predicate that is
    not defined, KIP_3001 for a variable that nothing binds, KIP_4001 and KIP_4002 beyond the limits.
    ``HistoryPruned`` for a seq before the history that was kept.
    """
    seq, offset, now = _begins(view, query, at, now)
    wanted = min(query.limit.value if query.limit else limits.rows + 1, limits.rows + 1)
    page = (offset, wanted + 1)
    selected = compiled(view, schema, query, None if seq == view.seq else seq, page, limits=limits, now=now)
    rows = ask(view, schema, (selected.sql, selected.params), limits, tree=query)
    if min(len(rows), wanted) > limits.rows:
        raise too_many(limits, query.at, _ASK_LESS)
    more = len(rows) > wanted
    names = prepared(view, schema).known.names
    token = _cursor(view, query, seq, offset + wanted, now) if more else ""
    return FindAnswer(_shaped(rows[:wanted], selected, names), token, seq)


def compiled(
    view: StatementView,
    schema: Schema,
    query: s.FindCommand,
    at: int | None = None,
    page: tuple[int, int] = (0, 2),
    *,
    limits: KipLimits = _DEFAULT,
    now: str = "",
) -> Selected:
    """Return the statement of a bound FIND, as of a seq (None is the head).

    ``page`` is how many rows are left out and how many are asked for. What the query names is looked up in the view,
    and the statement is of use at this head only. Raises: ``KipRefused`` as ``find`` does.
    """
    check_size(query)
    known = prepared(view, schema).known
    translation = Translation(schema, known.names)
    steps, bound = translation.steps(query.where)
    check_query(translation, query, bound)
    if at is None:
        steps = _narrowed(view, schema, steps, limits, query)
    st = SqlStatement(known, at, now=now)
    return select(st, solve(st, steps), query, page)


def solutions(
    view: StatementView,
    schema: Schema,
    group: s.ClauseGroup,
    variables: tuple[s.Variable, ...],
    *,
    limits: KipLimits = _DEFAULT,
    page: ValueSlice = _ALL,
    now: str = "",
) -> list[dict[str, str | None]]:
    """Return the distinct values of these variables in the solutions of a bound WHERE, ordered by them.

    A value is the id of a node or link, the name of a predicate, or None where the variable stays open. Elements of the
    vocabulary that are not stored are among them. ``page`` narrows the values of the first variable; one that says how
    many are wanted is cut there, instead of refused beyond the limit of rows.

    Raises: ``KipRefused`` as ``find`` does; KIP_3001 for a variable that WHERE does not bind.
    """
    check_size(group)
    known = prepared(view, schema).known
    steps, bound = Translation(schema, known.names).steps(group)
    check_variables(variables, group, bound)
    steps = _narrowed(view, schema, steps, limits, group)
    st = SqlStatement(known, now=now)
    names = tuple(dict.fromkeys(one.name for one in variables))
    most = limits.rows + 1 if page.most is None else page.most
    asked = select_variables(st, solve(st, steps), names, most, page)
    rows = ask(view, schema, asked, limits, tree=group)
    if page.most is None and len(rows) > limits.rows:
        raise too_many(limits, group.at, _NARROW)
    return [dict(zip(names, row, strict=True)) for row in rows]


def _narrowed(
    view: StatementView,
    schema: Schema,
    steps: tuple[algebra.Step, ...],
    limits: KipLimits,
    tree: s.FindCommand | s.ClauseGroup,
) -> tuple[algebra.Step, ...]:
    """Return the steps with the ids that look-ups find, where the store is so large that this saves time."""
    counted = "select count(*) from link"
    links: int = view.once("kip links", view.seq // _RECOUNTED, lambda _: view.rows(counted)[0][0])
    if links < narrowing.LEAST_LINKS:
        return steps
    known = prepared(view, schema).known
    return narrowing.narrowed(known, steps, lambda asked: ask(view, schema, asked, limits, tree=tree))


def _begins(view: StatementView, query: s.FindCommand, at: int | None, now: str) -> tuple[int, int, str]:
    """Return the seq that is answered for, how many rows went before, and the time that NOW() means on all pages."""
    seq, offset = view.seq if at is None else at, 0
    if query.cursor is not None:
        place = query.cursor.at
        cursor = cursor_in(query.cursor, mark_of(view.basis.store_id, query), view.overlay_mark)
        seq, offset, now = cursor.seq, int(cursor.last), cursor.basis or now
        if seq > view.seq or (at is not None and at != seq):
            message = (
                f"The cursor belongs to seq {seq}, and the branch is at {view.recorded_seq if at is None else at}."
            )
            raise refused(SYNTAX, message, at=place, hint=START_OVER)
    elif at is not None and at > view.recorded_seq:
        head = view.recorded_seq
        raise InvalidQuery(f"There is no seq {at} yet; the head is {head}.", hint=f"Ask for one up to {head}.")
    if seq < view.basis.history_from:
        raise out_of_reach(view.rows, view.basis.history_from, seq)
    return seq, offset, now


def _cursor(view: StatementView, query: s.FindCommand, seq: int, offset: int, now: str) -> str:
    overlay = view.overlay_mark if seq > view.recorded_seq else ""
    return cursors.encode(cursors.Cursor(mark_of(view.basis.store_id, query), seq, 0, str(offset), now, overlay))


def _shaped(rows: Sequence[_Row], selected: Selected, names: TypeNames) -> Any:
    """Return the result of FIND: aggregates alone are scalars, everything else is a list over the rows."""
    readers = [_reader(cell, names) for cell in selected.cells]
    if selected.is_single:
        columns: list[Any] = [read(rows[0]) for read in readers]
    else:
        columns = [[read(row) for row in rows] for read in readers]
    return columns[0] if len(columns) == 1 else columns


def _reader(cell: ProjectedCell, names: TypeNames) -> Callable[[_Row], Any]:
    """Return what reads one expression out of a row."""
    at = cell.start
    if cell.shape in {"text", "count"}:
        return lambda row: row[at]
    if cell.shape == "json":
        return lambda row: None if row[at] is None else _decode(row[at])
    if cell.shape in {"sum", "average"}:
        return lambda row: _total(row[at], row[at + 1], row[at + 2], is_average=cell.shape == "average")
    return _element(cell, names)


def _element(cell: ProjectedCell, names: TypeNames) -> Callable[[_Row], Any]:
    """Return what reads an element; one of several rows is made once."""
    at, width = cell.start, len(NODE)
    made: dict[str, Any] = {}

    def read(row: _Row) -> Any:
        starts = {"node": (at, None), "link": (None, at), "end": (at, at + width)}[cell.shape]
        for start, is_node in zip(starts, (True, False), strict=True):
            if start is None or row[start] is None:
                continue
            key = row[start]
            if key not in made:
                whole = row[start : start + (width if is_node else len(LINK))]
                made[key] = node_json(node_of(whole), names) if is_node else link_json(link_of(whole))
            return made[key][cell.member] if cell.member else made[key]
        return None

    return read


def _total(whole: int | None, rest: float | None, count: int, *, is_average: bool) -> float | None:
    """Return a sum, or the average of ``count`` numbers; whole numbers have a whole sum, none the sum 0."""
    total = int(whole or 0) if rest is None else int(whole or 0) + rest
    if not is_average:
        return total
    return total / count if count else None
