"""The entities that files state: who owns which id, and the fields that each file sets and withdraws. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from kbcore.extract.facts import StatedEntity
from kbcore.extract.fields import rejected_secrets
from kbcore.ids import check_id
from kbcore.model.concepts import TYPE, how_to_add
from kbcore.model.graph import FORMER_IDS, STAMPS, Node, former_ids, former_ids_of
from kbcore.model.record import DropNode, Operation, PutNode
from kbcore.model.schema import EntityType, Schema, allowed_values_hint
from kbcore.model.state import State
from kbcore.model.values import is_same
from kbcore.sync.entity_renames import Past
from kbcore.sync.fields import stated_by_clients, stated_fields, unfit_fields
from kbcore.sync.id_ownership import FileReading, HeldBack, claims_of, lost_owners
from kbcore.text import conflict_markers
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import REPEATED_ID, FileProblem, Severity
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import is_or_are, no_status_of, pluralize, some_of

DUPLICATE: Final = "duplicate_id"
UNRECORDED: Final = "unrecorded_id"
"""Of an id that the records have in a file which is not as they know it, and which is not read now."""
CLAIMED: Final = "claimed_id"
COMMITTED_BY: Final = "metadata.committed_by"
"""The author of the commit that brought the document of an entity."""
_MOST_NAMED: Final = 10


class EntityPlan(msgspec.Struct):
    """The result for the files' entities.

    ``accepted`` maps a path to the ids that it states and keeps, in order; ``types`` an id to its type after the sync
    where that changes (None: it goes); ``held`` are those from which nothing may be taken away.
    """

    ops: list[Operation]
    accepted: dict[str, dict[str, None]]
    types: dict[str, str | None]
    held: HeldBack
    problems: list[tuple[str, FileProblem]]
    warnings: list[str]
    holders: _IdHolders
    absorbed: Mapping[str, Sequence[Node]]
    """As ``RenamePlan``."""


class _IdHolders:
    """The entity of an id after the sync, else the one that had it before."""

    def __init__(
        self,
        claims: Mapping[str, str],
        lost: Mapping[str, AbstractSet[str]],
        state: State,
        past: Past,
    ) -> None:
        self._claims = claims
        self._lost = lost
        self._nodes = state.nodes
        self._renamed = past.renamed
        self._claimed = past.claimed

    def file_of(self, former: str) -> str:
        """Return the file that states the entity with a former id, "" for none: what only clients gave is no reason.

        An id that a change of a client gives to an entity is left out of the former ids of another one.
        """
        node = self._nodes.get("" if self._claimed.get(former) else self._renamed.get(former, ""))
        return node.path if node and node.id != former else ""

    def other(self, key: str, former: str) -> str:
        """Return who has a former id that a file states of an entity, "" where no other entity has."""
        node = self._nodes.get(former) if self._claimed.get(former, True) else None
        if former == key:
            return ""
        if self._claimed.get(former):
            return f"is the id of another entity{_in_file(self._claims.get(former, ''))}"
        if node and (former in self._claims or node.path not in self._lost.get(former, ())):
            return f"is the id of another entity{_in_file(self._claims.get(former, node.path))}"
        holder = self._renamed.get(former, "")
        if holder != key and (path := self._claims.get(holder) or self.file_of(former)):
            return f"is a former id of {in_quotes(holder)}{_in_file(path)}"
        if former in self._claims and not holder:
            return f"is the id of another entity{_in_file(self._claims[former])}"
        return ""


def _in_file(path: str) -> str:
    return f", in {in_quotes(path)}" if path else ""


def plan_entities(
    readings: Sequence[FileReading],
    gone: frozenset[str],
    state: State,
    schema: Schema,
    past: Past,
    *,
    absorbed: Mapping[str, Sequence[Node]] | None = None,
    changed: AbstractSet[str] = frozenset(),
) -> EntityPlan:
    """Return the operations that bring the entities of these files to what the files say.

    ``absorbed`` are as ``RenamePlan`` has them; ``changed`` are files, not read now, that are not as they are recorded.
    """
    held = HeldBack(readings)
    claims = claims_of(readings, gone, state, held, lambda entity: _is_enough(entity, schema))
    lost = lost_owners(readings, gone, state, claims, held)
    holders = _IdHolders(claims, lost, state, past)
    plan = EntityPlan([], {}, {}, held, [], [], holders, absorbed or {})
    stated_by = {key: claims[key] for key in claims if key in state.nodes}
    others = []
    files = {reading.path for reading in readings}
    plan.ops += _releases(state, past)
    for reading in readings:
        accepted = plan.accepted.setdefault(reading.path, {})
        for entity in [one for one in reading.facts.entities if not one.is_part]:
            if claims[entity.id] != reading.path:
                others.append((reading, entity))
            elif entity.id in accepted:
                message = f"The id {in_quotes(entity.id)} is in this file twice."
                problem = FileProblem(entity.line, REPEATED_ID, message, "Give each its own id.")
                plan.problems.append((reading.path, problem))
            else:
                node = state.nodes.get(entity.id)
                case = _Case(plan, reading, entity, node, past, is_dated=is_dated(node, reading.path, files))
                if _plan_entity(case, schema, lost.get(entity.id, frozenset())):
                    accepted[entity.id] = None
                    stated_by[entity.id] = reading.path
    _plan_others(plan, others, stated_by, schema, past, changed=changed)
    for key, owners in lost.items():
        if owners and key not in claims:
            _drop(plan, state.nodes[key], schema, owners, past)
    _plan_parts(plan, readings, state, schema, past)
    _note_kept(plan, state)
    return plan


def is_dated(node: Node | None, path: str, files: Collection[str]) -> bool:
    """Tell whether an entity has git's dates of its file: it is new, or was that of another file that is there.

    ``node`` is the entity with its id, and ``files`` are those that are read. A file that is moved keeps the dates.
    """
    return node is None or (node.path != path and node.path in files)


def _is_enough(entity: StatedEntity, schema: Schema) -> bool:
    """Tell whether a file states of an entity what a new one needs."""
    definition = schema.entities.get(entity.type)
    if definition is None or check_id(entity.id):
        return False
    return {*definition.required_fields} - {"status"} <= stated_fields(entity, definition)[0].keys()


def _releases(state: State, past: Past) -> list[Operation]:
    """Return the operations that take former ids from those that have them, where these state them themselves."""
    taken: dict[str, set[str]] = {}
    for former, holder in past.released.items():
        taken.setdefault(holder, set()).add(former)
    ops: list[Operation] = []
    for holder, ids in taken.items():
        node = state.nodes.get(holder)
        if node and FORMER_IDS not in node.owners:
            left = [one for one in former_ids(node) if one not in ids]
            values, unset = ({FORMER_IDS: left}, ()) if left else ({}, (FORMER_IDS,))
            ops.append(PutNode(id=holder, base=node.version, set=values, unset=unset))
    return ops


def _note_kept(plan: EntityPlan, state: State) -> None:
    """Note the entities that are kept because an entry whose id could not be read may be one of them."""
    kept: dict[str, list[str]] = {path: [] for path in plan.held.unidentified}
    if not kept:
        return
    for key, node in state.nodes.items():
        if node.path in kept and plan.held.may_be_unidentified(node.path, node):
            kept[node.path].append(key)
    for path, ids in kept.items():
        if ids:
            named = some_of(sorted(ids), _MOST_NAMED)
            message = (
                f"{pluralize(len(ids), 'entity')} that the file no longer states {is_or_are(len(ids))} kept: {named}."
            )
            hint = f"{plan.held.how_to_identify(path)}: they may be these."
            plan.problems.append((path, FileProblem(0, "kept_entities", message, hint, "warning")))


def _plan_others(
    plan: EntityPlan,
    others: Sequence[tuple[FileReading, StatedEntity]],
    stated_by: dict[str, str],
    schema: Schema,
    past: Past,
    *,
    changed: AbstractSet[str],
) -> None:
    """Plan entities of files that do not keep their ids: one is kept where its owner does not state enough."""
    for reading, entity in others:
        if stated_by.get(entity.id) in changed:
            file = in_quotes(stated_by[entity.id])
            message = f"The records have the id {in_quotes(entity.id)} in {file}, which has changed or is gone since."
            hint = "A sync that reads both files settles it; until then this one is left out."
            plan.problems.append((reading.path, FileProblem(entity.line, UNRECORDED, message, hint, id=entity.id)))
        elif entity.id in stated_by:
            message = f"The id {in_quotes(entity.id)} is already stated by {stated_by[entity.id]}."
            hint = "Give one of the two another id; until then this one is left out."
            plan.problems.append((reading.path, FileProblem(entity.line, DUPLICATE, message, hint, id=entity.id)))
        elif _plan_entity(_Case(plan, reading, entity, None, past), schema, frozenset()):
            # What the first file states of it cannot be recorded.
            plan.accepted[reading.path][entity.id] = None
            stated_by[entity.id] = reading.path


class _Case:
    """One entity of one file, and the node that has its id, or had it before its file was removed.

    ``is_dated`` is as the function says.
    """

    def __init__(
        self,
        plan: EntityPlan,
        reading: FileReading,
        entity: StatedEntity,
        node: Node | None,
        past: Past,
        *,
        is_dated: bool = True,
    ) -> None:
        self.plan = plan
        self.path = reading.path
        self.entity = entity
        self.node = node
        self.past = past
        self.is_dated = is_dated
        self.problems = reading.facts.problems

    def wrong(self, name: str, code: str, message: str, hint: str, *, values: tuple[str, ...] = ()) -> None:
        """Note an error at the line that states a field; nothing is then taken away from the entity."""
        line = self.entity.lines.get(name, self.entity.line)
        key = "" if name == "id" else self.entity.id  # an entry without an id that can be used may be any entity
        self.plan.problems.append((self.path, FileProblem(line, code, message, hint, id=key, values=values)))
        self.plan.held.add(self.path, self.entity.id)

    @property
    def is_held(self) -> bool:
        """Return whether nothing may be taken away from the entity."""
        return self.plan.held.has(self.path, self.entity.id, self.node)

    def note(self, code: str, message: str, hint: str, severity: Severity = "note") -> None:
        """Note something that keeps nothing from being recorded."""
        problem = FileProblem(self.entity.line, code, message, hint, severity, id=self.entity.id)
        self.plan.problems.append((self.path, problem))


def _plan_entity(case: _Case, schema: Schema, lost: frozenset[str]) -> bool:
    """Plan one entity of one file. Returns whether the entity is kept; what is wrong with it is in the plan."""
    entity, node, path = case.entity, case.node, case.path
    definition = _definition(case, schema)
    if definition is None:
        _take_over(case, lost, {})
        return False
    wanted, faults = stated_fields(entity, definition)
    wanted = {**_committer(case, lost), **wanted}
    _check_status(case, definition, wanted.get("status"))
    for name, fault in faults.items():
        more = allowed_values_hint(definition, name, entity.fields[name])
        hint = f"Correct it; until then the last known value is kept. {more}".rstrip()
        case.wrong(name, "bad_value", f"`{name}` {fault}.", hint)
        line = entity.lines.get(name, entity.line)
        secrets = rejected_secrets(name, entity.fields[name], line, entity.id)
        case.plan.problems += [(path, one) for one in secrets]
    _leave_out_claimed(case, wanted)
    known = _shown(node)
    owners = node.owners if node else {}
    mine = {name for name, owner in owners.items() if owner == path or owner in lost}
    present: AbstractSet[str] = wanted.keys()
    if known:
        present = present | (known.keys() if case.is_held else known.keys() - mine)
        present -= _outdated_default(case, schema)
    regained = _regained(case, schema, wanted)
    default = _default(case, definition, present | regained.keys() if regained else present)
    if default is None:
        return False
    given = {**_dates(case, wanted), **regained, **default}
    if case.is_held:
        _take_over(case, lost, wanted)
    unset = () if case.is_held else tuple(sorted(mine - wanted.keys() - given.keys()))
    values = wanted
    if known:
        values = {
            name: value
            for name, value in wanted.items()
            if name not in known or not is_same(known[name], value) or owners.get(name) != path
        }
    own = stated_by_clients(node, schema.entities.get(node.type), case.past.unsaid) if node else {}
    _tell(case, own, values)
    base = node.version if node else 0
    if values or unset:
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=values, unset=unset, src=path))
    if given:
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=given))
    if node is None or node.type != entity.type:
        case.plan.types[entity.id] = entity.type
    return True


def _dates(case: _Case, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return when git says that the file came and last changed, as far as the file does not say so."""
    dates = case.past.dates.get(case.path) if case.is_dated else None
    found = {"created_at": dates.created_at, "updated_at": dates.updated_at} if dates else {}
    return {name: value for name, value in found.items() if name not in wanted}


def _committer(case: _Case, lost: AbstractSet[str]) -> dict[str, Any]:
    """Return who brought the entity's file: as git says, else as it is known from when the entity was new."""
    if case.node and not case.is_dated:
        is_mine = case.node.owners.get(COMMITTED_BY) in {case.path, *lost}
        return {COMMITTED_BY: case.node.fields[COMMITTED_BY]} if is_mine else {}
    dates = case.past.dates.get(case.path)
    return {COMMITTED_BY: dates.author} if dates and dates.author else {}


def _plan_parts(plan: EntityPlan, readings: Sequence[FileReading], state: State, schema: Schema, past: Past) -> None:
    mains = {key: path for path, ids in plan.accepted.items() for key in ids}
    for reading in readings:
        for entity in reading.facts.entities:
            if entity.is_part:
                node = state.nodes.get(entity.id)
                main = mains.get(entity.id) or (node.path if node else "")
                _plan_part(_Case(plan, reading, entity, node, past), schema, main)


def _plan_part(case: _Case, schema: Schema, main: str) -> None:
    """Plan what a file states of an entity that another file, ``main``, defines; without that it states nothing."""
    entity, node, path = case.entity, case.node, case.path
    type_ = case.plan.types.get(entity.id, node.type if node and node.path else None)
    definition = schema.entities.get(type_) if type_ else None
    if definition is None:
        message = f"It states a part of {in_quotes(entity.id)}, which no other file states."
        case.note("part_without_whole", message, "It counts as soon as the file that it belongs to is read.")
        return
    wanted, faults = stated_fields(entity, definition)
    del wanted["type"]
    for name, fault in faults.items():
        case.wrong(name, "bad_value", f"`{name}` {fault}.", "Correct it; until then the last known value is kept.")
    owners = node.owners if node else {}
    known = _shown(node)
    values = {
        name: value for name, value in wanted.items() if owners.get(name) != path or not is_same(known.get(name), value)
    }
    mine = {name for name, owner in owners.items() if owner == path}
    unset = () if case.is_held else tuple(sorted(mine - wanted.keys()))
    if values or unset:
        base = node.version if node else 0
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=values, unset=unset, src=path))
        # The entity is that of its own file, and a new one has the dates of both.
        dates = [case.past.dates[one].updated_at for one in (path, main) if node is None and one in case.past.dates]
        stamps = {"source": main} | ({"updated_at": max(dates)} if dates else {})
        case.plan.ops.append(PutNode(id=entity.id, base=base, set=stamps))
    case.plan.accepted[path][entity.id] = None


def _leave_out_claimed(case: _Case, wanted: dict[str, Any]) -> None:
    """Take the former ids that another entity has out of what is wanted of this one, and note each."""
    entity, stated = case.entity, former_ids_of(wanted)
    kept = []
    for former in stated:
        other = case.plan.holders.other(entity.id, former)
        if not other:
            kept.append(former)
            continue
        message = f"{in_quotes(former)} in `former_ids` of {in_quotes(entity.id)} {other}."
        hint = "Remove it from `former_ids` here, or change the id there; until then it is left out."
        line = entity.lines.get(FORMER_IDS, entity.line)
        problem = FileProblem(line, CLAIMED, message, hint, id=entity.id, values=(former,))
        case.plan.problems.append((case.path, problem))
    if len(kept) < len(stated):
        wanted.pop(FORMER_IDS)
        wanted |= {FORMER_IDS: kept} if kept else {}


def _tell(case: _Case, own: Mapping[str, Any], values: Mapping[str, Any]) -> None:
    """Warn of what the file takes over from clients (``own``)."""
    for name, value in values.items():
        if name in own and not is_same(own[name], value):
            message = f"{case.path} now states `{name}` of {case.entity.id}, which was {own[name]!r}."
            case.plan.warnings.append(message)


def _check_status(case: _Case, definition: EntityType, status: str | None) -> None:
    if status and definition.statuses and status not in definition.statuses:
        message = no_status_of(status, definition.name)
        case.note("unknown_status", message, f"Use one of: {', '.join(definition.statuses)}.", "warning")


def _take_over(case: _Case, lost: frozenset[str], wanted: Mapping[str, Any]) -> None:
    """Make a file that moved, and could not be read completely, own what is kept of it until it can be."""
    known, node = _shown(case.node), case.node
    if node is None:
        return
    kept = {name: known[name] for name, owner in node.owners.items() if owner in lost and name not in wanted}
    if kept:
        case.plan.ops.append(PutNode(id=node.id, base=node.version, set=kept, src=case.path))


def _definition(case: _Case, schema: Schema) -> EntityType | None:
    fault = check_id(case.entity.id)
    if fault:
        case.wrong("id", "bad_id", f"{in_quotes(case.entity.id)} cannot be an id: {fault}.", "Choose another id.")
        return None
    definition = schema.entities.get(case.entity.type)
    if definition is None:
        near = did_you_mean(case.entity.type, schema.entities)
        hint = f"{near} {how_to_add(TYPE, case.entity.type, by_record=False)}"
        message = f"There is no entity type {in_quotes(case.entity.type)}."
        case.wrong("type", "unknown_type", message, hint, values=(case.entity.type,))
    return definition


def _default(case: _Case, definition: EntityType, present: AbstractSet[str]) -> dict[str, Any] | None:
    """Return substitutes for required fields that are not stated; None when the entity is not possible."""
    default = {}
    for name in definition.required_fields:
        if name in present:
            continue
        if name == "status":
            default["status"] = definition.status_default
            message = f"No status is stated; {case.entity.id} gets {in_quotes(definition.status_default)}."
            case.note("default_status", message, "Add `status:` to say otherwise.")
            continue
        causes = {f"missing_{name}", conflict_markers.CODE}
        if name not in case.entity.lines and not any(one.code in causes for one in case.problems):
            message = f"`{name}` of {case.entity.id} is missing."
            case.wrong(name, "missing_field", message, f"Add `{name}:` to the file.")
        if case.node is None:
            return None
    return default


def _regained(case: _Case, schema: Schema, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Return what clients had stated of the entities that this one takes over, and nobody states of it; warn of it.

    One that is back takes over itself. Of what several have, it gets that of the one that went by its latest id.
    """
    absorbed = case.plan.absorbed.get(case.entity.id, ())
    if not absorbed:
        return {}
    node, unsaid = case.node, case.past.unsaid
    has = {*wanted}
    if node:
        has |= node.owners.keys() | stated_by_clients(node, schema.entities.get(node.type), unsaid).keys()
    found: dict[str, Any] = {}
    for one in absorbed:
        stated = stated_by_clients(one, schema.entities.get(one.type), unsaid)
        own = {name: value for name, value in stated.items() if name not in has and name not in found}
        unfit = unfit_fields(own, schema.entities[case.entity.type])
        regained = {name: value for name, value in own.items() if name not in unfit}
        found |= regained
        taken = f"{case.entity.id} " + ("is back" if one.id == case.entity.id else f"takes over {one.id}")
        if regained:
            case.plan.warnings.append(f"{taken}, with what clients had stated of it: {', '.join(regained)}.")
        if unfit:
            faults = "; ".join(f"`{name}` {fault}" for name, fault in unfit.items())
            message = f"{taken} as a {case.entity.type}, without what clients had stated and this type does not allow"
            case.plan.warnings.append(f"{message}: {faults}. The history has it.")
    return found


def _outdated_default(case: _Case, schema: Schema) -> set[str]:
    """Return the status as one that is not stated, where it is not the default of the entity's type any more."""
    node = case.node
    if node is None or "status" in node.owners or "status" in case.entity.fields:
        return set()
    if node.id not in case.past.unsaid and node.type == case.entity.type:
        return set()
    by_clients = stated_by_clients(node, schema.entities.get(node.type), case.past.unsaid)
    is_default = node.fields.get("status") == schema.entities[case.entity.type].status_default
    return set() if is_default or "status" in by_clients else {"status"}


def _shown(node: Node | None) -> dict[str, Any]:
    if node is None:
        return {}
    owned_stamps: dict[str, Any] = {name: getattr(node, name) for name in STAMPS if name in node.owners}
    return {**node.fields, **owned_stamps}


def _drop(plan: EntityPlan, node: Node, schema: Schema, owners: frozenset[str], past: Past) -> None:
    """Remove an entity whose file is gone or states it no more; where others state it too, what those had stated."""
    if node.path in owners:
        plan.ops.append(DropNode(id=node.id, base=node.version))
        plan.types[node.id] = None
        kept = stated_by_clients(node, schema.entities.get(node.type), past.unsaid)
        if node.is_of_code:
            kept.pop(FORMER_IDS, None)  # a sync noted them
        if kept and all(node.id != one.id for absorbed in plan.absorbed.values() for one in absorbed):
            message = f"{node.id} was removed with {node.path}, and what clients stated of it: {', '.join(kept)}."
            plan.warnings.append(
                f"{message} It comes back with the id, or with a document that has it in `former_ids`; until then "
                "the history has it."
            )
    else:
        unset = tuple(sorted(name for name, owner in node.owners.items() if owner in owners))
        plan.ops.append(PutNode(id=node.id, base=node.version, unset=unset))
