"""Coverage: which requirements are specified, verified and implemented, one by one and in groups.

Of each aspect a requirement has it, lacks it, or need not have it; what is there counts, whatever is said about it. So
the three numbers of a tally add up to its requirements, and a percentage is of those that need the aspect.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from kbcore.model.not_applicable import reason
from kbcore.model.proposals import ANY, OF_LINK, of_node
from kbcore.model.schema import ASPECTS
from kbcore.model.statuses import RETIRED, has_status
from kbcore.model.verdict import REQUIREMENT
from kbcore.query import sql
from kbcore.query.known import known_paths
from kbcore.query.owning import read_owners
from kbcore.query.request import Query
from kbcore.query.verdicts import FailingTest, failing_tests
from kbcore.text.code_owners import CodeOwners
from kbcore.text.suggest import near_ones
from kbcore.view.tables import Rows

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

    @property
    def total(self) -> CoverageGroup:
        """Return the group of all of them, each once."""
        return _group(None, self.states)

    @property
    def states(self) -> list[_States]:
        """Return the states of each of the requirements."""
        return [(tuple([one.state(aspect) for aspect in ASPECTS]), bool(one.failing)) for one in self.requirements]


def read(rows: Rows, at: int | None, asked: Query = Query()) -> Covered:  # noqa: B008 - it cannot be changed
    """Return the requirements as of a seq (None: the head) that a checked query of entities means.

    Its walk and its text are not looked at. Two statements, linear in requirements and their edges.
    """
    statement = sql.statement(at)
    conditions = sql.filters(statement, msgspec.structs.replace(asked, type=REQUIREMENT, from_id=""))
    new = f"(select n.id from {statement.node} n where {ANY} and {of_node('n')})"  # noqa: S608 - fixed names
    shown = [
        f"(select edge, {near} as id, list({far} order by {far}) filter (where not is_new) as ids, "  # noqa: S608
        f"list({far} order by {far}) filter (where is_new) as others from "
        f"(select type as edge, from_id, to_id, {OF_LINK} or {far} in {new} as is_new "
        f"from {statement.link} where is_resolved and type = '{edge}') group by 1, 2)"
        for edge, near, far in ENDS.values()
    ]
    joins = " ".join(f"left join {part} {name} on {name}.id = n.id" for name, part in zip(ASPECTS, shown, strict=True))
    select = (
        "select n.id, coalesce(n.title, ''), coalesce(n.status, ''), coalesce(n.priority, ''), n.tags, "  # noqa: S608
        f"{', '.join(f'{name}.ids' for name in ASPECTS)}, {', '.join(f'{name}.others' for name in ASPECTS)}, "
        f"{', '.join(reason('n.attributes', name) for name in ASPECTS)}, {of_node('n')}, "
        f"{has_status('n.status', RETIRED)} "
        f"from {statement.node} n {joins} where {' and '.join(conditions)} "
        "order by n.id"
    )
    found = rows(select, statement.params)
    failing = failing_tests(rows, at)
    present = [row for row in found if not row[-1]]
    requirements = [_requirement(row, failing.get(row[0], ())) for row in present if not row[-2]]
    return Covered(requirements, len(found) - len(present), len(present) - len(requirements))


class Unknown(msgspec.Struct, frozen=True):
    """A tag, a status or a path that no requirement has, and those like it that some have."""

    name: Literal["tag", "status", "path"]
    value: str
    near: tuple[str, ...]


def unknown_filters(rows: Rows, at: int | None, asked: Query) -> list[Unknown]:
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
        found += [Unknown(name, value, near_ones(value, there)) for value in values if value not in there]
    if asked.path and not asked.paths:
        known = known_paths(rows)
        found += [Unknown("path", value, near_ones(value, known)) for value in asked.path]
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


def read_components(rows: Rows, at: int | None) -> dict[str, tuple[str, ...]]:
    """Return the components that each requirement belongs to, in order.

    It belongs to a component that itself, or a symbol that implements it, names: by an edge ``relates_to`` with the
    component, either way, or by the attribute ``component``, a text or a list of texts. One statement.
    """
    statement = sql.statement(at)
    link, node = statement.link, statement.node
    named = "json_extract_string(n.attributes, '/component')"
    listed = "json_extract_string(n.attributes, '$.component[*]')"
    related = " union ".join(
        f"select h.req, c.id from holder h join {link} l on l.{near} = h.id and l.is_resolved "  # noqa: S608 - fixed names
        f"and l.type = 'relates_to' join {node} c on c.id = l.{far} and c.type = 'component'"
        for near, far in _HOLDERS
    )
    found = rows(
        f"with holder as (select id as req, id from {node} where type = 'req' union "  # noqa: S608 - fixed names
        f"select to_id, from_id from {link} where is_resolved and type = 'implements'), "
        f"named as (select h.req, unnest(case json_type(n.attributes, '/component') when 'ARRAY' then {listed} "
        f"when 'VARCHAR' then [{named}] else [] end) as id from holder h join {node} n on n.id = h.id) "
        f"select req, id from named where trim(id) != '' union {related} order by all",
        statement.params,
    )
    components: dict[str, list[str]] = {}
    for req, component in found:
        components.setdefault(req, []).append(component)
    return {req: tuple(names) for req, names in components.items()}


def read_folders(rows: Rows, at: int | None) -> dict[str, tuple[str, ...]]:
    """Return the folder of the file that states each requirement, ``.`` for the top; none where no file does."""
    statement = sql.statement(at)
    found = rows(
        f"select n.id, n.path from {statement.node} n "  # noqa: S608 - fixed names
        f"where n.type = {statement.bind(REQUIREMENT)} and n.path <> ''",
        statement.params,
    )
    return {id_: (path.rpartition("/")[0] or ".",) for id_, path in found}


def read_members(
    rows: Rows, at: int | None, by: By, ids: Collection[str], of_files: CodeOwners
) -> dict[str, tuple[str, ...]]:
    """Return what these requirements belong to: components, owners or folders; none for the other ways to group."""
    if by == "component":
        return read_components(rows, at)
    if by == "folder":
        return read_folders(rows, at)
    owned = read_owners(rows, at, ids, of_files) if by == "owner" else {}
    return {id_: one.owners for id_, one in owned.items()}


def groups(covered: Covered, by: By, groups_of: Mapping[str, Sequence[str]]) -> list[CoverageGroup]:
    """Return the requirements in groups, those that belong nowhere last; one in several groups counts in each.

    ``groups_of`` has the components, the owners or the folders of requirements by their ids, for these three.
    """
    names: Mapping[By, Callable[[Requirement], Iterable[str]]] = {
        "requirement": lambda one: (one.id,),
        "component": lambda one: groups_of.get(one.id, ()),
        "owner": lambda one: groups_of.get(one.id, ()),
        "folder": lambda one: groups_of.get(one.id, ()),
        "tag": lambda one: one.tags,
        "priority": lambda one: (one.priority.lower(),) if one.priority else (),
    }
    names_of = names[by]
    members: defaultdict[str | None, list[_States]] = defaultdict(list)
    for requirement, states in zip(covered.requirements, covered.states, strict=True):
        for name in (*names_of(requirement),) or (None,):
            members[name].append(states)
    return [_group(name, members[name]) for name in sorted(members, key=lambda name: _place(name, by))]


def _place(name: str | None, by: By) -> tuple[bool, int, str]:
    is_ranked = by == "priority" and name in _PRIORITIES
    return name is None, _PRIORITIES.index(name or "") if is_ranked else len(_PRIORITIES), name or ""


def _group(name: str | None, states: Iterable[_States]) -> CoverageGroup:
    """Return what can be said of some requirements together. Of the states of many there are few different ones."""
    counts = Counter(states)
    tallies = {}
    for at, aspect in enumerate(ASPECTS):
        numbers = {"yes": 0, "no": 0, "not_applicable": 0}
        for (found, _), count in counts.items():
            numbers[found[at]] += count
        tallies[aspect] = Tally(**numbers)
    failing = sum(count for (_, is_failing), count in counts.items() if is_failing)
    return CoverageGroup(name, counts.total(), tallies, failing)


def lacking(covered: Covered, aspects: Sequence[str]) -> Covered:
    """Return only the requirements that lack every one of these aspects."""
    kept = [one for one in covered.requirements if all(one.state(aspect) == "no" for aspect in aspects)]
    return Covered(kept, covered.retired, covered.proposed)
