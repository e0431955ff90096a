"""The links that files state, resolved as far as their ends are known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.bare import Edge, edge_meant, resolve
from kbcore.extract.facts import FileProblem, StatedLink
from kbcore.ids import check_id, link_id
from kbcore.model import CLIENT, Link
from kbcore.record import Operation, StateLink, WithdrawLink
from kbcore.schema import Schema
from kbcore.state import State
from kbcore.suggest import did_you_mean
from kbcore.sync.entities import EntityPlan, Reading
from kbcore.values import field_problem, value_problem

UNRESOLVED_PATH: Final = "unresolved_path"


class Stated(msgspec.Struct, frozen=True):
    """A link as it is to stand on behalf of a file."""

    edge: Edge
    said: str
    fields: dict[str, Any]


class LinkPlan(msgspec.Struct):
    """The operations that bring the links of the files to what the files say, and what is wrong with them."""

    ops: list[Operation]
    problems: list[tuple[str, FileProblem]]


class Surroundings(msgspec.Struct, frozen=True):
    """What the links are resolved against; ``ids_of_path`` maps a document to the entities that it defines."""

    state: State
    schema: Schema
    entities: EntityPlan
    ids_of_path: Mapping[str, Sequence[str]]

    def type_of(self, end: str) -> str | None:
        """Return the type that an id will have after the sync, or None when it will not exist."""
        if end in self.entities.types:
            return self.entities.types[end]
        node = self.state.nodes.get(end)
        return node.type if node else None


def plan_links(readings: Sequence[Reading], gone: frozenset[str], around: Surroundings) -> LinkPlan:
    """Return the operations for the links that these files state, stated, or left open until now."""
    plan = LinkPlan([], [])
    standing: dict[str, dict[str, Link]] = {}
    for link in around.state.links.values():
        for statement in link.statements:
            if statement.src != CLIENT:
                standing.setdefault(statement.src, {})[link.id] = link
    for reading in readings:
        known = standing.get(reading.path, {})
        wanted: dict[str, Stated] = {}
        for one in reading.facts.links:
            stated = _stated(plan, reading.path, one, around, known)
            if stated:
                wanted.setdefault(link_id(*stated.edge), stated)
        if reading.path not in around.entities.partial:
            plan.ops.extend(_withdrawal(known[key], reading.path) for key in known if key not in wanted)
        for key, stated in wanted.items():
            op = _statement(reading.path, stated, around.state.links.get(key))
            if op:
                plan.ops.append(op)
    for path in sorted(gone):
        plan.ops.extend(_withdrawal(link, path) for link in standing.get(path, {}).values())
    planned = gone | {reading.path for reading in readings if reading.path not in around.entities.partial}
    plan.ops.extend(resolve(around.state, around.entities.types, around.schema, skip=planned))
    return plan


def _stated(
    plan: LinkPlan, path: str, link: StatedLink, around: Surroundings, known: Mapping[str, Link]
) -> Stated | None:
    """Return what a link of a file means now, or None when it cannot be taken in."""

    def wrong(code: str, message: str, hint: str, severity: Any = "error") -> None:
        plan.problems.append((path, FileProblem(link.line, code, message, hint, severity)))

    if link.subject not in around.entities.accepted.get(path, ()):
        return None
    target = link.target
    if link.is_path:
        ids = around.ids_of_path.get(target, ())
        if len(ids) == 1:
            target = ids[0]
        else:
            message = f"{target} defines {'several entities' if ids else 'no entity that is known'}."
            hint = (
                "Name an id; the link stays unresolved until then." if ids else "It resolves once that file is synced."
            )
            wrong(UNRESOLVED_PATH, message, hint, "warning")
    fault = check_id(target)
    if fault:
        wrong("bad_id", f"{target!r} cannot be an id: {fault}.", "Name the id of an entity.")
        return None
    fields = {}
    for name, value in link.fields.items():
        problem = field_problem(name, value) if name == "confidence" else value_problem(value)
        if problem:
            wrong(problem.code, f"`{name}` of the link to {target} {problem.message}.", problem.hint)
        else:
            fields[name] = value
    types = (around.type_of(link.subject), around.type_of(target))
    if link.type is None:
        return _bare(link.subject, target, types, fields, around, known)
    edge = around.schema.edges.get(link.type)
    if edge is None:
        hint = did_you_mean(link.type, around.schema.edges) + " A new edge goes into .kb/schema/."
        wrong("unknown_edge", f"There is no edge type {link.type!r}.", hint)
        return None
    ends, end_types = (link.subject, target), types
    if link.reverse:
        ends, end_types = (target, link.subject), (types[1], types[0])
    if end_types[0] and end_types[1] and not around.schema.fits(link.type, end_types[0], end_types[1]):
        wants = f"{' or '.join(edge.from_types)} to {' or '.join(edge.to_types)}"
        message = f"`{link.type}` leads from {wants}, not from {end_types[0]} {ends[0]} to {end_types[1]} {ends[1]}."
        wrong("endpoint_type", message, "Name another edge, or only the id: KB then takes the edge that fits.")
        return None
    kind = (link.kind or "link") if edge.needs_kind else ""
    return Stated((link.type, kind, *ends), "", fields)


def _bare(  # noqa: PLR0913, PLR0917 - the parts of one link
    subject: str,
    target: str,
    types: tuple[str | None, str | None],
    fields: dict[str, Any],
    around: Surroundings,
    known: Mapping[str, Link],
) -> Stated:
    """Return what a bare link means; while an end is missing it keeps the edge that it had."""
    if None in types:
        for link in known.values():
            is_same = {link.from_id, link.to_id} == {subject, target}
            if is_same and link.type and any(statement.said == subject for statement in link.statements):
                return Stated((link.type, link.kind, link.from_id, link.to_id), subject, fields)
    return Stated(edge_meant(around.schema, (subject, target), types), subject, fields)


def _statement(path: str, stated: Stated, old: Link | None) -> StateLink | None:
    mine = {name for name, owner in (old.owners if old else {}).items() if owner == path}
    values = {
        name: value
        for name, value in stated.fields.items()
        if old is None or name not in mine or old.fields.get(name) != value
    }
    unset = tuple(sorted(mine - stated.fields.keys()))
    is_said = old is not None and any((one.src, one.said) == (path, stated.said) for one in old.statements)
    if is_said and not values and not unset:
        return None
    name, kind, from_id, to_id = stated.edge
    return StateLink(
        type=name,
        kind=kind,
        from_id=from_id,
        to_id=to_id,
        base=old.version if old else 0,
        set=values,
        unset=unset,
        src=path,
        said=stated.said,
    )


def _withdrawal(link: Link, path: str) -> WithdrawLink:
    return WithdrawLink(
        type=link.type, kind=link.kind, from_id=link.from_id, to_id=link.to_id, base=link.version, src=path
    )
