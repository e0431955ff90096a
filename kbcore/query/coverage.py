"""Coverage: which requirements are specified, verified and implemented, one by one and in groups.

Of each aspect a requirement has it, lacks it, or need not have it; what is there counts, whatever is said about it. So
the three numbers of a tally add up to its requirements, and a percentage is of those that need the aspect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.model.not_applicable import reason_sql
from kbcore.model.proposals import ANY, OF_LINK, of_node
from kbcore.model.schema import ASPECTS
from kbcore.model.statuses import RETIRED, has_status
from kbcore.model.verdict import REQUIREMENT
from kbcore.query import sql, walk
from kbcore.query.data_names import known_paths
from kbcore.query.owners import owners_of_file
from kbcore.query.request import Query
from kbcore.query.verdicts import FailingTest, failing_tests
from kbcore.text.code_owners import NONE, CodeOwners
from kbcore.text.suggest import near_ones
from kbcore.view.tables import FILE_OF, Rows

State = Literal["yes", "no", "not_applicable"]
By = Literal["requirement", "component", "tag", "priority", "owner", "folder"]
_States = tuple[tuple[State, ...], bool]
"""The status of each aspect of a requirement, and whether a test of it is failing."""

ENDS: Final = {
    "specified": ("specified_by", "from_id", "to_id"),
    "verified": ("verified_by", "from_id", "to_id"),
    "implemented": ("implements", "to_id", "from_id"),
}
"""The edge that shows each aspect, the end where the requirement is, and the other one."""
_PRIORITIES: Final = ("must", "should", "could", "wont", "won't")
"""Comes first, in this order; other priorities follow by name."""
_HOLDERS: Final = ("from_id", "to_id"), ("to_id", "from_id")
_STATE_COLUMNS: Final = f"{', '.join(ASPECTS)}, is_failing"
_NO_FILE: Final = "''"
_IS_SHOWN: Final = f"not ({has_status('n.status', RETIRED)}) and not {of_node('n')}"
_NAMES: Final[Mapping[By, str]] = {
    "requirement": "n.id",
    "tag": "unnest(if(len(n.tags) > 0, n.tags, [null]))",
    "priority": "nullif(n.priority, '')",
    "component": "c.id",
    "owner": "nullif(n.owner, '')",
    "folder": "if(n.path = '', null, coalesce(nullif(regexp_extract(n.path, '(?s)^(.*)/', 1), ''), '.'))",
}
"""The names of the groups of a requirement ``n``, none by null."""


class Requirement(msgspec.Struct, frozen=True):
    """A requirement, the ids of what shows each aspect, and why it need not have one."""

    id: str
    title: str
    status: str
    priority: str
    tags: tuple[str, ...]
    specified: tuple[str, ...]
    verified: tuple[str, ...]
    implemented: tuple[str, ...]
    not_applicable: dict[str, str]
    failing: tuple[FailingTest, ...] = ()
    """Those of the tests in ``verified`` that failed when they were last run."""
    proposed: dict[str, tuple[str, ...]] = {}
    """By aspect, what would show it once somebody accepts it: an edge or its other end is only proposed."""

    def state(self, aspect: str) -> State:
        """Return the status of an aspect."""
        if getattr(self, aspect):
            return "yes"
        return "not_applicable" if aspect in self.not_applicable else "no"

    def shown_by(self) -> dict[str, Any]:
        """Return what shows each aspect, and why it need not have one, as JSON."""
        shown: dict[str, Any] = {name: list(getattr(self, name)) for name in ASPECTS}
        shown |= {"failing": [one.as_json() for one in self.failing]} if self.failing else {}
        shown |= {"proposed": {name: list(ids) for name, ids in self.proposed.items()}} if self.proposed else {}
        return shown | ({"not_applicable": self.not_applicable} if self.not_applicable else {})

    def as_json(self) -> dict[str, Any]:
        """Return the requirement as JSON."""
        shown = {**msgspec.to_builtins(self), "failing": [one.as_json() for one in self.failing]}
        return {name: value for name, value in shown.items() if value or name != "proposed"}


class Tally(msgspec.Struct, frozen=True):
    """Numbers of requirements with an aspect, without, and exempt from it."""

    yes: int
    no: int
    not_applicable: int

    @property
    def needed(self) -> int:
        """Return how many need it."""
        return self.yes + self.no

    @property
    def percent(self) -> float | None:
        """Return how many of those that need it have it, rounded down to a tenth; None where none needs it."""
        return self.yes * 1000 // self.needed / 10 if self.needed else None

    def as_json(self) -> dict[str, Any]:
        """Return the numbers as JSON."""
        return {**msgspec.to_builtins(self), "percent": self.percent}


class CoverageGroup(msgspec.Struct, frozen=True):
    """Requirements that have something in common; ``name`` is None for those that have nothing of the kind.

    ``failing`` counts those that are verified by a test that failed when it was last run.
    """

    name: str | None
    requirements: int
    tallies: dict[str, Tally]
    failing: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return the group as JSON, without its name."""
        tallies = {name: one.as_json() for name, one in self.tallies.items()}
        return {"requirements": self.requirements, **tallies, "failing": self.failing}


class Covered(msgspec.Struct, frozen=True):
    """The requirements that are asked about, in the order of ids, and how many are left out.

    ``retired`` by their status, ``proposed`` because nobody has accepted them.
    """

    requirements: list[Requirement]
    retired: int
    proposed: int = 0


class Counts(msgspec.Struct, frozen=True):
    """The same without the requirements themselves: the group of all of them, each once, and how many are left out."""

    total: CoverageGroup
    retired: int
    proposed: int = 0


class RequirementPart(msgspec.Struct, frozen=True):
    """The part of some requirements that lacks each of some aspects, and has a priority ("" for any).

    With ``has_hole`` each of them lacks some aspect.
    """

    lacks: tuple[str, ...] = ()
    has_hole: bool = False
    priority: str = ""


def read(rows: Rows, at: int | None, asked: Query = Query()) -> Covered:  # noqa: B008 - it cannot be changed
    """Return the requirements as of a seq (None: the head) that a checked query of entities means.

    Its walk and its text are not looked at. Two statements, linear in requirements and their edges.
    """
    statement = sql.statement(at)
    among = statement.among(asked.ids) if asked.ids else ""
    return _read(rows, at, statement, _conditions(statement, asked), among)


def read_part(
    rows: Rows,
    at: int | None,
    asked: Query,
    part: RequirementPart,
    *,
    limit: int = limits.MAX_PAGE_ROWS,
    offset: int = 0,
) -> tuple[list[Requirement], int]:
    """Return a page of those of the requirements of ``read`` that a part means, and how many these are.

    At most five statements.
    """
    statement = sql.statement(at)
    judged = _judged(statement, asked, aspects=ASPECTS if part.has_hole else part.lacks)
    where = _where(statement, part)
    found = rows(
        f"{judged} select n.id, count(*) over () from judged n where {where} "  # noqa: S608 - fixed names
        f"order by n.id limit {statement.bind(limit)} offset {statement.bind(offset)}",
        statement.params,
    )
    if not found:
        return [], count(rows, at, asked, part).total.requirements if offset else 0
    statement = sql.statement(at)
    among = statement.among([id_ for id_, _ in found])
    return _read(rows, at, statement, [f"n.id {among}"], among).requirements, found[0][1]


def count(rows: Rows, at: int | None, asked: Query = Query(), part: RequirementPart = RequirementPart()) -> Counts:  # noqa: B008 - as ``read``
    """Return the numbers of the requirements of ``read`` that a part means; ``retired`` is of all. Two statements."""
    statement, failing = sql.statement(at), failing_tests(rows, at)
    judged = _judged(statement, asked, failing)
    where = _where(statement, part)
    found = rows(
        f"{judged} select is_retired, is_proposed, {_STATE_COLUMNS}, count(*) from judged n "  # noqa: S608 - fixed names
        f"where is_retired or is_proposed or {where} group by all",
        statement.params,
    )
    states: Counter[_States] = Counter()
    left_out: Counter[str] = Counter()
    for is_retired, is_proposed, *cells, number in found:
        if is_retired or is_proposed:
            left_out["retired" if is_retired else "proposed"] += number
        else:
            states[_states_of(cells)] += number
    return Counts(_group(None, states), left_out["retired"], left_out["proposed"])


def count_groups(
    rows: Rows,
    at: int | None,
    by: Sequence[By],
    asked: Query = Query(),  # noqa: B008 - as ``read``
    of_files: CodeOwners = NONE,
) -> dict[By, list[CoverageGroup]]:
    """Return the requirements of ``read`` in groups by each of ``by``, those that belong nowhere last.

    One in several groups counts in each. ``of_files`` are the owners of files. A component is one that a requirement,
    or a symbol that implements it, names: by an edge ``relates_to`` with the component, either way, or by the attribute
    ``component``, a text or a list of texts. A folder is that of the file that states a requirement, ``.`` for the top.
    Two statements.
    """
    statement, failing = sql.statement(at), failing_tests(rows, at)
    judged = _judged(statement, asked, failing)
    parts, component = _components(statement) if "component" in by else ("", "")
    joined: dict[By, str] = {"component": f" left join {component} c on c.req = n.id"}
    files: dict[By, str] = {"owner": FILE_OF} if of_files.mark else {}
    named = " union all ".join(
        f"select '{one}' as kind, {_NAMES[one]} as name, {files.get(one, _NO_FILE)} as file, {_STATE_COLUMNS} "  # noqa: S608
        f"from kept n{joined.get(one, '')}"
        for one in by
    )
    found = rows(
        f"{judged}, kept as (select * from judged where not (is_retired or is_proposed)){parts} "  # noqa: S608 - fixed names
        f"select kind, name, if(name is null, file, ''), {_STATE_COLUMNS}, count(*) from ({named}) group by all",
        statement.params,
    )
    members: dict[By, defaultdict[str | None, Counter[_States]]] = {one: defaultdict(Counter) for one in by}
    owners_of = cache(lambda file: owners_of_file(file, of_files))
    for one, name, file, *cells, number in found:
        names: tuple[str | None, ...] = (name.lower() if one == "priority" and name else name,)
        if file and (given := owners_of(file)) is not None:
            names = given.owners
        for each in names:
            members[one][each][_states_of(cells)] += number
    return {
        one: [_group(name, states[name]) for name in sorted(states, key=lambda name: _place(name, one))]
        for one, states in members.items()
    }


def read_choices(rows: Rows, at: int | None) -> tuple[list[str], list[str]]:
    """Return the tags and the priorities that requirements have, in order. One statement."""
    statement = sql.statement(at)
    kept = f"from {statement.node} n where n.type = {statement.bind(REQUIREMENT)} and {_IS_SHOWN}"
    found = rows(
        f"select distinct 0, unnest(n.tags) {kept} union all "
        f"select distinct 1, n.priority {kept} and n.priority <> '' order by all",
        statement.params,
    )
    tags, priorities = ([name for kind, name in found if kind == wanted] for wanted in (0, 1))
    return tags, priorities


def _conditions(statement: walk.WalkStatement, asked: Query) -> list[str]:
    return sql.filters(statement, msgspec.structs.replace(asked, type=REQUIREMENT, from_id=""))


def _new(statement: walk.WalkStatement) -> str:
    """Return a relation of the entities that nobody has accepted."""
    return f"(select n.id from {statement.node} n where {ANY} and {of_node('n')})"  # noqa: S608 - fixed names


def _judged(
    statement: walk.WalkStatement,
    asked: Query,
    failing: Mapping[str, Sequence[FailingTest]] = {},
    aspects: Collection[str] = ASPECTS,
) -> str:
    """Return the beginning of a statement that has ``judged``: the requirements, each with the state of some aspects.

    A column is named as each aspect; ``is_failing``, ``is_retired`` and ``is_proposed`` are conditions.
    """
    conditions = " and ".join(_conditions(statement, asked))
    shown = [
        f"{aspect}_shown as (select {near} as id, {far} as end_id from {statement.link} where is_resolved "  # noqa: S608
        f"and type = '{edge}' and not {OF_LINK} and {far} not in {_new(statement)})"
        for aspect, (edge, near, far) in ENDS.items()
        if aspect in aspects
    ]
    states = [
        f"case when n.id in (select id from {aspect}_shown) then 'yes' "  # noqa: S608 - fixed names
        f"when {reason_sql('n.attributes', aspect)} is not null then 'not_applicable' else 'no' end as {aspect}"
        for aspect in aspects
    ]
    is_failing = "false"
    if failing:
        pairs = [(id_, test.id) for id_, tests in failing.items() for test in tests]
        ids, ends = (f"unnest({statement.bind(list(each))}::varchar[])" for each in zip(*pairs, strict=True))
        is_failing = (
            f"n.id in (select f.id from (select {ids} as id, {ends} as test) f "  # noqa: S608 - fixed names
            "join verified_shown v on v.id = f.id and v.end_id = f.test)"
        )
    columns = ["n.*", *states, f"{is_failing} as is_failing", f"{has_status('n.status', RETIRED)} as is_retired"]
    judged = (
        f"judged as (select {', '.join(columns)}, {of_node('n')} as is_proposed "  # noqa: S608 - fixed names
        f"from {statement.node} n where {conditions})"
    )
    return f"with {', '.join([*shown, judged])}"


def _where(statement: walk.WalkStatement, part: RequirementPart) -> str:
    """Return the condition that a part means a requirement ``n``."""
    lacks = {aspect: f"n.{aspect} = 'no'" for aspect in ASPECTS}
    found = ["not (is_retired or is_proposed)", *(lacks[aspect] for aspect in part.lacks)]
    if part.has_hole:
        found.append(f"({' or '.join(lacks.values())})")
    if part.priority:
        found.append(f"n.priority = {statement.bind(part.priority)}")
    return f"({' and '.join(found)})"


def _states_of(cells: Sequence[Any]) -> _States:
    *states, is_failing = cells
    return tuple(states), is_failing


def _read(
    rows: Rows, at: int | None, statement: walk.WalkStatement, conditions: Sequence[str], among: str = ""
) -> Covered:
    """Return the requirements for which conditions hold; ``among`` is that on their ids, where there is one."""
    new = _new(statement)
    shown = [
        f"(select edge, {near} as id, list({far} order by {far}) filter (where not is_new) as ids, "  # noqa: S608
        f"list({far} order by {far}) filter (where is_new) as others from "
        f"(select type as edge, from_id, to_id, {OF_LINK} or {far} in {new} as is_new "
        f"from {statement.link} where is_resolved and type = '{edge}'{f' and {near} {among}' if among else ''}) "
        "group by 1, 2)"
        for edge, near, far in ENDS.values()
    ]
    joins = " ".join(f"left join {part} {name} on {name}.id = n.id" for name, part in zip(ASPECTS, shown, strict=True))
    select = (
        "select n.id, coalesce(n.title, ''), coalesce(n.status, ''), coalesce(n.priority, ''), n.tags, "  # noqa: S608
        f"{', '.join(f'{name}.ids' for name in ASPECTS)}, {', '.join(f'{name}.others' for name in ASPECTS)}, "
        f"{', '.join(reason_sql('n.attributes', name) for name in ASPECTS)}, {of_node('n')}, "
        f"{has_status('n.status', RETIRED)} "
        f"from {statement.node} n {joins} where {' and '.join(conditions)} "
        "order by n.id"
    )
    found = rows(select, statement.params)
    failing = failing_tests(rows, at, [row[0] for row in found] if among else None)
    present = [row for row in found if not row[-1]]
    requirements = [_requirement(row, failing.get(row[0], ())) for row in present if not row[-2]]
    return Covered(requirements, len(found) - len(present), len(present) - len(requirements))


class UnknownFilter(msgspec.Struct, frozen=True):
    """A tag, a status or a path that no requirement has, and those like it that some have."""

    name: Literal["tag", "status", "path"]
    value: str
    near: tuple[str, ...]


def unknown_filters(rows: Rows, at: int | None, asked: Query) -> list[UnknownFilter]:
    """Return which tags, status and paths of a checked query no requirement has as of a seq (None: the head)."""
    named: list[tuple[Literal["tag", "status"], str, Sequence[str]]] = [
        ("tag", "unnest(n.tags)", asked.tags),
        ("status", "n.status", [asked.status] if asked.status else []),
    ]
    found = []
    for name, column, values in named:
        statement = sql.statement(at)
        of_requirements = f"from {statement.node} n where n.type = {statement.bind(REQUIREMENT)}"
        known = [row[0] for row in rows(f"select distinct {column} {of_requirements}", statement.params)]
        there = sorted(filter(None, known))
        found += [UnknownFilter(name, value, near_ones(value, there)) for value in values if value not in there]
    if asked.path and not asked.paths:
        known = known_paths(rows)
        found += [UnknownFilter("path", value, near_ones(value, known)) for value in asked.path]
    return found


def _requirement(row: Sequence[Any], failing: tuple[FailingTest, ...]) -> Requirement:
    id_, title, status, priority, tags, *rest = row
    ids, others, reasons = (rest[at * len(ASPECTS) : (at + 1) * len(ASPECTS)] for at in range(3))
    # Branches of 100,000 requirements are read: what is empty, as it mostly is, is not gone through.
    said = {name: why for name, why in zip(ASPECTS, reasons, strict=True) if why} if any(reasons) else {}
    proposed = {name: tuple(one) for name, one in zip(ASPECTS, others, strict=True) if one} if any(others) else {}
    specified, verified, implemented = [tuple(one) if one else () for one in ids]
    failing = tuple([one for one in failing if one.id in verified]) if failing else ()
    labels = tuple(tags) if tags else ()
    return Requirement(id_, title, status, priority, labels, specified, verified, implemented, said, failing, proposed)


def _components(statement: walk.WalkStatement) -> tuple[str, str]:
    """Return the parts of a statement, and a relation after them of ``req`` and ``id`` of a component, each once."""
    link, node = statement.link, statement.node
    named = "json_extract_string(n.attributes, '/component')"
    listed = "json_extract_string(n.attributes, '$.component[*]')"
    related = " union ".join(
        f"select h.req, c.id from holder h join {link} l on l.{near} = h.id and l.is_resolved "  # noqa: S608 - fixed names
        f"and l.type = 'relates_to' join {node} c on c.id = l.{far} and c.type = 'component'"
        for near, far in _HOLDERS
    )
    return (
        f", holder as (select id as req, id from {node} where type = 'req' union "  # noqa: S608 - fixed names
        f"select to_id, from_id from {link} where is_resolved and type = 'implements'), "
        f"named as (select h.req, unnest(case json_type(n.attributes, '/component') when 'ARRAY' then {listed} "
        f"when 'VARCHAR' then [{named}] else [] end) as id from holder h join {node} n on n.id = h.id), "
        f"component as (select req, id from named where trim(id) != '' union {related})"
    ), "component"


def _place(name: str | None, by: By) -> tuple[bool, int, str]:
    is_ranked = by == "priority" and name in _PRIORITIES
    return name is None, _PRIORITIES.index(name or "") if is_ranked else len(_PRIORITIES), name or ""


def _group(name: str | None, counts: Counter[_States]) -> CoverageGroup:
    """Return what can be said of some requirements together, of which so many have the same states."""
    tallies = {}
    for at, aspect in enumerate(ASPECTS):
        numbers = {"yes": 0, "no": 0, "not_applicable": 0}
        for (found, _), count in counts.items():
            numbers[found[at]] += count
        tallies[aspect] = Tally(**numbers)
    failing = sum(count for (_, is_failing), count in counts.items() if is_failing)
    return CoverageGroup(name, counts.total(), tallies, failing)
