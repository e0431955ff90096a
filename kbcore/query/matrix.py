"""A traceability matrix: which entities of one type lead to which ones of another, over a path of edges.

A row is linked, not linked, or need not be linked; so the three numbers of a matrix add up to its rows. A link that
exists counts, whatever is said about it, unless it is only proposed or leads to what is. Retired entities have no row
and are counted, and so are proposed ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery, Problem
from kbcore.model.not_applicable import reason_sql
from kbcore.model.proposals import of_link, of_node
from kbcore.model.schema import Schema
from kbcore.model.statuses import RETIRED, has_status
from kbcore.model.verdict import REQUIREMENT
from kbcore.query import sql
from kbcore.query.coverage import ENDS, State
from kbcore.query.request import Query, refuse
from kbcore.query.subject import Subject, read_subjects
from kbcore.query.walk import AGAINST, WalkStatement
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.view.tables import Rows

ALL_ROWS: Final = 10_000_000
"""More rows than a branch can have, for a matrix without pages."""

ASPECT_STEPS: Final[Mapping[str, str]] = {
    aspect: edge if near == "from_id" else f"{AGAINST}{edge}" for aspect, (edge, near, _) in ENDS.items()
}
"""The step from a requirement to what shows each aspect of it."""


class MatrixRequest(msgspec.Struct, frozen=True):
    """A traceability matrix: the rows, the steps from each, and the type of what is at their end.

    ``rows`` is a checked query of entities; its walk and its text are not looked at. Each of ``steps`` is an edge type,
    with a leading ``^`` to go against the edge. ``to`` is "" for entities of every type.
    """

    rows: Query
    steps: tuple[str, ...]
    to: str = ""
    only: tuple[State, ...] = ()
    """The states of the rows to show; none means all. The numbers are of all rows."""
    limit: int = limits.DEFAULT_PAGE_ROWS
    offset: int = 0

    @property
    def title(self) -> str:
        """Return the path that it follows, as a reader sees it."""
        return " → ".join(filter(None, (self.rows.type or "every type", *self.steps, self.to)))


class MatrixRow(msgspec.Struct, frozen=True):
    """An entity, what it leads to, how many that are, and why it need not lead to anything ("" where nothing says so).

    At most ``MAX_MATRIX_CELLS`` of ``ends`` are named.
    """

    subject: Subject
    ends: tuple[Subject, ...]
    count: int
    reason: str

    @property
    def state(self) -> State:
        """Return whether the row is linked."""
        if self.count:
            return "yes"
        return "not_applicable" if self.reason else "no"

    def as_json(self) -> dict[str, Any]:
        """Return the row as JSON."""
        found: dict[str, Any] = {
            **self.subject.as_json(),
            "state": self.state,
            "linked": [one.as_json() for one in self.ends],
        }
        found |= {"linked_total": self.count} if self.count > len(self.ends) else {}
        return found | ({"reason": self.reason} if self.reason else {})


class Matrix(msgspec.Struct, frozen=True):
    """A page of the rows, in the order of ids, and the numbers of all rows by their state.

    ``shown`` is the number of the rows of all pages.
    """

    rows: list[MatrixRow]
    yes: int
    no: int
    not_applicable: int
    retired: int
    proposed: int
    shown: int

    def as_json(self) -> dict[str, Any]:
        """Return the matrix as JSON."""
        numbers = {name: getattr(self, name) for name in ("yes", "no", "not_applicable", "retired", "proposed")}
        return {**numbers, "total": self.shown, "rows": [row.as_json() for row in self.rows]}


def matrix_in(words: str, schema: Schema) -> MatrixRequest:
    """Return the matrix that words mean: a type, the edges of a path, and perhaps the type at its end.

    Raises: ``InvalidQuery`` with every problem.
    """
    type_, *steps = words.split() or [""]
    to = ""
    if len(steps) > 1 and steps[-1] in schema.entities and steps[-1] not in schema.edges:
        to = steps.pop()
    if type_ not in schema.entities:
        message = f"There is no entity type {in_quotes(type_)}."
        refuse([Problem("$.type", "unknown_type", message, did_you_mean(type_, schema.entities))])
    return check_matrix(MatrixRequest(Query(type=type_), tuple(steps), to, limit=ALL_ROWS), schema)


def check_matrix(wanted: MatrixRequest, schema: Schema) -> MatrixRequest:
    """Return a request whose edges and types exist. Raises: ``InvalidQuery`` with every problem."""
    problems = []
    if not 1 <= len(wanted.steps) <= limits.MAX_MATRIX_STEPS:
        message = f"A matrix takes 1 to {limits.MAX_MATRIX_STEPS} steps, not {len(wanted.steps)}."
        problems.append(
            Problem("$.steps", "out_of_range", message, "Name the edges from a row to a column, such as `verified_by`.")
        )
    for at, step in enumerate(wanted.steps):
        edge = step.removeprefix(AGAINST)
        if edge not in schema.edges:
            message = f"There is no edge type {in_quotes(edge)}."
            problems.append(Problem(f"$.steps[{at}]", "unknown_edge", message, did_you_mean(edge, schema.edges)))
    if wanted.to and wanted.to not in schema.entities:
        message = f"There is no entity type {in_quotes(wanted.to)}."
        problems.append(Problem("$.to", "unknown_type", message, did_you_mean(wanted.to, schema.entities)))
    refuse(problems)
    if wanted.rows.is_edge:
        raise InvalidQuery("The rows of a matrix are entities.", hint="Name an entity type.")
    return wanted


def read_matrix(rows: Rows, at: int | None, wanted: MatrixRequest) -> Matrix:
    """Return the matrix of a checked request as of a seq (None: the head). Two statements."""
    statement = sql.statement(at)
    conditions = sql.filters(statement, msgspec.structs.replace(wanted.rows, from_id="")) or ["true"]
    ends = _ends(statement, wanted)
    state = "case when coalesce(e.count, 0) > 0 then 'yes' when reason is not null then 'not_applicable' else 'no' end"
    chosen = f"state {statement.among(wanted.only)}" if wanted.only else "true"
    shown = f"is_row and {chosen}"
    asked = (
        f"with chosen as (select n.id, {_reason(wanted)} as reason, {has_status('n.status', RETIRED)} as is_retired, "  # noqa: S608 - fixed names
        f"{of_node('n')} as is_proposed from {statement.node} n where {' and '.join(conditions)}), {ends}, "
        f"judged as (select n.*, e.ends, coalesce(e.count, 0) as count, {state} as state, "
        "not (is_retired or is_proposed) as is_row from chosen n left join grouped e using (id)), "
        "numbers as (select "
        "count(*) filter (where is_row and state = 'yes'), count(*) filter (where is_row and state = 'no'), "
        "count(*) filter (where is_row and state = 'not_applicable'), count(*) filter (where is_retired), "
        "count(*) filter (where is_proposed and not is_retired), "
        f"count(*) filter (where {shown}) from judged), "
        f"page as (select n.id, n.ends, n.count, coalesce(n.reason, '') from judged n where {shown} "
        f"order by n.id limit {statement.bind(wanted.limit)} offset {statement.bind(wanted.offset)}) "
        "select numbers.*, page.* from numbers left join page on true order by page.id nulls last"
    )
    found = rows(asked, statement.params)
    numbers, page = found[0][:6], [cells[6:] for cells in found if cells[6] is not None]
    subjects = read_subjects(rows, sorted({id_ for row in page for id_ in (row[0], *(row[1] or ()))}), at)
    return Matrix(
        [
            MatrixRow(subjects[id_], tuple([subjects[one] for one in ends or ()]), count, why)
            for id_, ends, count, why in page
        ],
        *numbers,
    )


def _reason(wanted: MatrixRequest) -> str:
    """Return SQL for why a row need not be linked: a requirement may say so of its aspects."""
    aspect = next((name for name, step in ASPECT_STEPS.items() if (step,) == wanted.steps), None)
    if aspect is None or wanted.rows.type != REQUIREMENT:
        return "null::varchar"
    return reason_sql("n.attributes", aspect)


def _ends(statement: WalkStatement, wanted: MatrixRequest) -> str:
    """Return the parts of a statement of which ``grouped`` has the ends of each row, and their number."""
    parts = ["step0 as (select id, id as end_id from chosen)"]
    for number, step in enumerate(wanted.steps):
        near, far = ("to_id", "from_id") if step.startswith(AGAINST) else ("from_id", "to_id")
        edge = statement.bind(step.removeprefix(AGAINST))
        parts.append(
            f"step{number + 1} as (select distinct s.id, l.{far} as end_id from step{number} s "  # noqa: S608 - fixed names
            f"join {statement.link} l on l.{near} = s.end_id "
            f"where l.is_resolved and l.type = {edge} and not {of_link('l')})"
        )
    of_type = f" where n.type = {statement.bind(wanted.to)}" if wanted.to else ""
    parts.append(
        f"ended as (select s.id, n.id as end_id from step{len(wanted.steps)} s "  # noqa: S608 - fixed names
        f"join {statement.node} n on n.id = s.end_id and not {of_node('n')}{of_type})"
    )
    parts.append(
        f"grouped as (select id, (list(end_id order by end_id))[:{limits.MAX_MATRIX_CELLS}] as ends, "  # noqa: S608 - fixed names
        "count(*) as count from ended group by id)"
    )
    return ", ".join(parts)
