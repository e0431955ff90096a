"""The links that files state, resolved as far as their ends are known. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from kbcore.extract.code import extractor as code
from kbcore.extract.facts import StatedLink
from kbcore.extract.sources import extractor as sources
from kbcore.ids import check_id, link_id
from kbcore.model.bare_links import Edge, edge_meant, resolve
from kbcore.model.concepts import PREDICATE, how_to_add
from kbcore.model.graph import CLIENT, Link
from kbcore.model.record import Operation, StateLink, WithdrawLink
from kbcore.model.schema import Schema
from kbcore.model.state import State
from kbcore.model.values import field_problem, value_problem
from kbcore.sync.entities import EntityPlan
from kbcore.sync.id_ownership import FileReading
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem, Severity
from kbcore.text.suggest import did_you_mean, is_it

UNRESOLVED_PATH: Final = "unresolved_path"
MISFIT: Final = "endpoint_type"
CONTESTED: Final = "contested_field"
_LEFT_OUT: Final = "Until then the link is left out."


class LinkInFile(msgspec.Struct, frozen=True):
    """A link as a file states it, in this line."""

    edge: Edge
    said: str
    fields: dict[str, Any]
    line: int


class LinkPlan(msgspec.Struct):
    """The operations that bring the links of the files to what the files say, and what is wrong with them."""

    ops: list[Operation]
    problems: list[tuple[str, FileProblem]]


class LinkContext(msgspec.Struct, frozen=True):
    """The context in which links are resolved; ``ids_of_path`` maps a document to the entities that it defines."""

    state: State
    schema: Schema
    entities: EntityPlan
    ids_of_path: Mapping[str, Collection[str]]
    former: Mapping[str, str] = {}
    """The present id of each entity that was renamed, by a former one."""
    claimed: Mapping[str, str | None] = {}
    """The type after the sync of each entity that changes of clients give, change or take away (None)."""

    def type_of(self, end: str) -> str | None:
        """Return the type that an id will have after the sync, or None when it will not exist."""
        if end in self.claimed:
            return self.claimed[end]
        if end in self.entities.types:
            return self.entities.types[end]
        node = self.state.nodes.get(end)
        return node.type if node else None

    def is_held(self, path: str, link: Link) -> bool:
        """Return whether a file, which does not state a link now, may do so in what could not be read of it."""
        held, nodes = self.entities.held, self.state.nodes
        return any(held.has(path, end, nodes.get(end)) for end in (link.from_id, link.to_id))


def plan_links(readings: Sequence[FileReading], gone: frozenset[str], around: LinkContext) -> LinkPlan:
    """Return the operations for the links that these files state, stated, or left open until now."""
    plan = LinkPlan([], [])
    present = _links_by_file(around.state)
    stated = {reading.path: _wanted(plan, reading, around) for reading in readings}
    withdrawn = [(path, link) for path in gone for link in present.get(path, {}).values()]
    kept: set[tuple[str, str]] = set()
    for path, wanted in stated.items():
        for key, link in present.get(path, {}).items():
            if key not in wanted:
                if around.is_held(path, link):
                    kept.add((path, key))
                else:
                    withdrawn.append((path, link))
    plan.ops += [_withdrawal(link, path) for path, link in sorted(withdrawn, key=lambda one: (one[0], one[1].id))]
    claims = _Claims(plan, around.state, {**{path: {} for path in gone}, **stated})
    made = [
        _statement(path, one, around.state.links.get(key), claims.held(path, key, one))
        for path, wanted in stated.items()
        for key, one in wanted.items()
    ]
    # What one file takes back may be what another one says: that comes after.
    statements = [op for op in made if op]
    plan.ops += [op for op in statements if op.unset] + [op for op in statements if not op.unset]
    plan.ops += resolve(
        around.state,
        {**around.entities.types, **around.claimed},
        around.schema,
        skip=gone,
        keeps=lambda link, one: one.src in stated and (one.src, link.id) not in kept,
    )
    return plan


def _wanted(plan: LinkPlan, reading: FileReading, around: LinkContext) -> dict[str, LinkInFile]:
    """Return the links that a file states now, by key."""
    wanted: dict[str, LinkInFile] = {}
    joined: set[frozenset[str]] = set()
    for one in sorted(reading.facts.links, key=lambda link: link.in_text):
        stated = _stated(_Case(plan, reading, one, around))
        if stated is None:
            continue
        ends = frozenset(stated.edge[2:])
        if not one.in_text:
            joined.add(ends)
        elif len(ends) == 1 or ends in joined:
            # The text says no more than the file does elsewhere.
            continue
        wanted.setdefault(link_id(*stated.edge), stated)
    return wanted


class _Claims:
    """The owners of the fields of a link: the first file that states one, for as long as it states it.

    ``now`` is what the files say that are read now, those that are gone included.
    """

    def __init__(self, plan: LinkPlan, state: State, now: Mapping[str, Mapping[str, LinkInFile]]) -> None:
        self._plan = plan
        self._state = state
        self._now = now
        self._claimed: dict[tuple[str, str], str] = {}

    def held(self, path: str, key: str, stated: LinkInFile) -> set[str]:
        """Return the fields of a link that are not this file's to state; it is reported where it says otherwise."""
        held = set()
        for name, value in stated.fields.items():
            owner = self._owner(key, name) or self._claimed.setdefault((key, name), path)
            if owner == path:
                continue
            held.add(name)
            link = self._now[owner][key] if owner in self._now else self._state.links[key]
            if link.fields[name] != value:
                message = f"{owner} states `{name}` of the same link as {link.fields[name]!r}, which is kept."
                hint = "State it in one of the two files, or alike in both."
                self._plan.problems.append((path, FileProblem(stated.line, CONTESTED, message, hint, "warning")))
        return held

    def _owner(self, key: str, name: str) -> str:
        """Return the file that stated a field and still does, "" when there is none."""
        link = self._state.links.get(key)
        owner = link.owners.get(name, "") if link else ""
        if owner not in self._now:
            return owner
        stated = self._now[owner].get(key)
        return owner if stated and name in stated.fields else ""


def _links_by_file(state: State) -> dict[str, dict[str, Link]]:
    """Return the links that each file states now."""
    found: dict[str, dict[str, Link]] = {}
    for link in state.links.values():
        for statement in link.statements:
            if statement.src != CLIENT:
                found.setdefault(statement.src, {})[link.id] = link
    return found


class _Case:
    """One link of one file."""

    def __init__(
        self,
        plan: LinkPlan,
        reading: FileReading,
        link: StatedLink,
        around: LinkContext,
    ) -> None:
        self.plan = plan
        self.path = reading.path
        self.extractor = reading.extractor.rpartition("/")[0]
        self.link = link
        self.around = around

    def wrong(self, code: str, message: str, hint: str, severity: Severity = "error") -> None:
        """Note a problem at the line of the link."""
        self.plan.problems.append(
            (self.path, FileProblem(self.link.line, code, message, hint, severity, id=self.link.subject))
        )


def _stated(case: _Case) -> LinkInFile | None:
    """Return what a link of a file means now, or None when it cannot be recorded."""
    link, around = case.link, case.around
    if link.is_of_others:
        ends = (_present(case, link.subject), _target(case))
        return None if ends[0] == ends[1] else LinkInFile((link.type or "", link.kind, *ends), "", {}, link.line)
    if link.subject not in around.entities.accepted.get(case.path, ()):
        return None
    target = _target(case)
    types = (around.type_of(link.subject), around.type_of(target))
    fault = None if types[1] else check_id(target)
    if fault and link.in_text:
        return None
    if fault:
        case.wrong("bad_id", f"{target!r} cannot be an id: {fault}.", f"Name the id of an entity. {_LEFT_OUT}")
        return None
    fields = _fields(case, target)
    if link.type is None:
        return _bare(case, target, types, fields)
    return _typed(case, link.type, target, types, fields)


def _target(case: _Case) -> str:
    """Return the id that a link points at; a path means the entity that its document defines."""
    target = case.link.target
    if not case.link.is_path:
        return _present(case, target)
    ids = case.around.ids_of_path.get(target, ())
    if len(ids) == 1:
        return next(iter(ids))
    if case.link.in_text:
        return target
    if ids:
        hint = f"Name one of their ids: {', '.join(islice(ids, 10))}."
        case.wrong(UNRESOLVED_PATH, f"{target} defines several entities.", hint, "warning")
    else:
        hint = "The link resolves once that file is synced; or name an id."
        case.wrong(UNRESOLVED_PATH, f"{target} defines no entity that is known.", hint, "warning")
    return target


def _present(case: _Case, key: str) -> str:
    """Return an id, of an entity that was renamed its present one."""
    is_there = key not in case.around.former or case.around.type_of(key)
    return key if is_there else case.around.former[key]


def _fields(case: _Case, target: str) -> dict[str, Any]:
    fields = {}
    for name, stated in case.link.fields.items():
        value = _number(stated) if name == "confidence" else stated
        fault = field_problem(name, value) if name == "confidence" else value_problem(value)
        if fault:
            case.wrong(fault.code, f"`{name}` of the link to {target} {fault.message}.", fault.hint)
        else:
            fields[name] = value
    return fields


def _number(stated: Any) -> Any:
    """Return the number that a text in a file means; anything else as it is, to be refused by name."""
    try:
        return float(stated) if isinstance(stated, str) else stated
    except ValueError:
        return stated


def _typed(
    case: _Case, name: str, target: str, types: tuple[str | None, str | None], fields: dict[str, Any]
) -> LinkInFile | None:
    schema = case.around.schema
    edge = schema.edges.get(name)
    if edge is None:
        hint = f"{_near(case, name, target, types)} {how_to_add(PREDICATE, name, by_record=False)} {_LEFT_OUT}"
        case.wrong("unknown_edge", f"There is no edge type {name!r}.", hint)
        return None
    (from_id, from_type), (to_id, to_type) = (case.link.subject, types[0]), (target, types[1])
    if case.link.reverse:
        (from_id, from_type), (to_id, to_type) = (to_id, to_type), (from_id, from_type)
    if from_type and to_type and not schema.fits(name, from_type, to_type):
        if case.link.in_text:
            return None
        message = f"`{name}` leads from {edge.way}, not from {from_type} {from_id} to {to_type} {to_id}."
        hint = f"{_only_id(case, target, types) or 'Name another edge.'} {_LEFT_OUT}"
        case.wrong(MISFIT, message, hint)
        return None
    if case.link.kind and not edge.needs_kind:
        message = f"`{name}` has no kinds, so that {in_quotes(case.link.kind)} is left out."
        case.wrong("no_kind", message, "Leave the kind out, or name `relates_to` with it.", "warning")
    kind = (case.link.kind or "link") if edge.needs_kind else ""
    return LinkInFile((name, kind, from_id, to_id), "", fields, case.link.line)


def _near(case: _Case, name: str, target: str, types: tuple[str | None, str | None]) -> str:
    """Return what may have been meant by the name of an edge that there is not."""
    schema, (subject_type, target_type) = case.around.schema, types
    if subject_type and target_type:
        ahead, back = schema.edges_like(name, subject_type, target_type)
        if ahead:
            return is_it(ahead)
        only = _only_id(case, target, types)
        if back and only:
            return only
    return did_you_mean(name, schema.edges)


def _only_id(case: _Case, target: str, types: tuple[str | None, str | None]) -> str:
    """Return the hint that a link without a type means an edge, "" where an end is missing."""
    name, kind, from_id, to_id = edge_meant(case.around.schema, (case.link.subject, target), types)
    if not name:
        return ""
    way = f"{f'{name}:{kind}' if kind else name}` from {from_id} to {to_id}."
    if case.extractor == code.NAME:
        return f"Write `kb: {'^' if to_id == case.link.subject else ''}{name} {target}`: that is `{way}"
    if case.extractor == sources.NAME:
        return f"Name another edge in `links` of the source: `{way}"
    return f"Write only the id, `links: [{target}]`: that is `{way}"


def _bare(case: _Case, target: str, types: tuple[str | None, str | None], fields: dict[str, Any]) -> LinkInFile:
    """Return what a bare link means; while an end is missing that is no edge."""
    subject = case.link.subject
    return LinkInFile(edge_meant(case.around.schema, (subject, target), types), subject, fields, case.link.line)


def _statement(path: str, stated: LinkInFile, old: Link | None, held: set[str]) -> StateLink | None:
    """Return what makes a file state a link so, None where it does; ``held`` are fields that another file states."""
    mine = {name for name, owner in (old.owners if old else {}).items() if owner == path}
    values = {
        name: value
        for name, value in stated.fields.items()
        if name not in held and (old is None or name not in mine or old.fields.get(name) != value)
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
