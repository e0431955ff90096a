"""Plan the entities that a client writes: fields named are replaced, all others stay as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.model import verdict
from kbcore.model.changeset import SET_BY_KB, EntityWrite
from kbcore.model.concepts import DEFINING, ORIGIN, STYLE_WORDS, TYPE, Concept, how_to_add, is_well_named
from kbcore.model.graph import CORE_FIELDS, FORMER_IDS, FORMER_KEY, STAMPS, Node, former_ids, former_ids_of
from kbcore.model.record import PutNode
from kbcore.model.schema import (
    CORE,
    GENERATED_DIGITS,
    HIDDEN,
    ORDER,
    TASK,
    EdgeType,
    EntityType,
    allowed_values_hint,
    attribute_problem,
    is_hidden,
)
from kbcore.model.values import is_same, normal_time
from kbcore.store.planning.conflicts import choose, settle
from kbcore.store.planning.plan_builder import PlanBuilder, members_wanted
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import shortened
from kbcore.view.numbering import check_new_id, marked_prefix

_MAX_TITLE_CHARS: Final = 80


def plan_entity(found: PlanBuilder, item: EntityWrite) -> None:
    """Add the operation that writes one entity, or the problems that prevent it."""
    old = found.state.nodes.get(item.id)
    if old and item.mode == "create":
        _refuse_existing(found, item, old)
        return
    if old is None and item.id and _is_refused(found, item):
        return
    definition = _definition(found, item, old)
    fields, owners = (old.fields, old.owners) if old else ({}, {})
    wanted, unset = choose(found, item, old, *_wanted(item, fields, owners))
    if old is None and definition:
        wanted = _name_in_id(item.id, definition) | _memo_defaults(found, item, definition) | wanted
    shown = _shown(old)
    values = {name: value for name, value in wanted.items() if name not in shown or not is_same(shown[name], value)}
    settle(found, item, old, wanted, values=values, unset=unset)
    if item.is_import:
        _check_claims(found, item, values)
    else:
        _keep_former_ids(found, item, old, values, unset)
        _keep_verdict(found, item, old, values, unset)
        found.keep_marks(item, values, unset)
    _refuse_hidden(found, item, old, [*values, *unset])
    if definition is None:
        found.doubtful.add(item.id)
        values.pop("type", None)
    else:
        _check_required(found, item, definition, {**fields, **wanted}, unset)
        _check_attributes(found, item, definition, wanted)
        _check_status(found, item, definition, wanted)
        if definition.origin != ORIGIN:
            found.check_provenance(item, values)
        if definition.name in DEFINING:
            _check_definition(found, item, definition.name, {**fields, **wanted})
    found.check_owned(item, item.id, owners, [*values, *unset])
    found.check_source(item, values)
    found.note_overwritten(old, in_quotes(item.id), [*values, *unset])
    if definition and item.id and (values or unset):
        if "type" in values:
            found.types[item.id] = definition.name
        found.ops.append(PutNode(id=item.id, base=old.version if old else 0, set=values, unset=tuple(unset)))


def _is_refused(found: PlanBuilder, item: EntityWrite) -> bool:
    """Note what is wrong with the id of an entity that does not exist, if anything is."""
    key = item.id
    if key in found.around.former:
        now = in_quotes(found.around.former[key])
        message = f"{in_quotes(key)} is a former id of {now}, and names no other entity."
        found.wrong(f"{item.path}.id", "former_id", message, f"Write to {now}, or choose another id.", subject=key)
        return True
    if item.mode == "update":
        _refuse_missing(found, item)
        return True
    # A mark is still there where nothing will be written, because of other problems.
    fault = None if item.is_import or marked_prefix(key) else check_new_id(key)
    if fault:
        found.doubtful.add(key)
        found.wrong(f"{item.path}.id", "bad_id", f"{in_quotes(key)} cannot be an id: {fault}.", subject=key)
    return fault is not None


def _check_claims(found: PlanBuilder, item: EntityWrite, values: Mapping[str, Any]) -> None:
    """Refuse former ids that another entity has, or had."""
    claimed = [one for one in former_ids_of(values) if one != item.id]
    holders = found.around.holders(claimed) if claimed else {}
    for former in claimed:
        first = found.claimed.setdefault(former, item.id)
        holder = former if former in found.written else holders.get(former, first)
        if holder == item.id:
            continue
        other = "the id of another entity" if holder == former else f"a former id of {in_quotes(holder)}"
        message = f"{in_quotes(former)} in `{FORMER_KEY}` of {in_quotes(item.id)} is {other}."
        found.wrong(
            f"{item.path}.{FORMER_IDS}", "former_id", message, f"Remove it from `{FORMER_KEY}`.", subject=item.id
        )


def _keep_former_ids(
    found: PlanBuilder, item: EntityWrite, old: Node | None, values: Mapping[str, Any], unset: list[str]
) -> None:
    """Refuse former ids that a client states: no file could define an entity with one of them any more.

    They stay where a client replaces all attributes and does not name them. One that another entity has, as older
    versions of KB allowed, can be taken out. Those of an entity that the changeset deletes may come to another one.
    """
    if old and FORMER_IDS in old.owners:
        return  # a file states them
    if FORMER_IDS in unset and FORMER_KEY not in item.objects.get("attributes", {}):
        unset[:] = [name for name in unset if name != FORMER_IDS]
    if FORMER_IDS in values or FORMER_IDS in unset:
        before, after = former_ids(old), former_ids_of(values)
        out = [one for one in before if one not in after]
        holders = found.around.holders(out) if out else {}
        if {*after} < {*before} and all(holders.get(one, item.id) != item.id for one in out):
            return
        left = {one for key in found.deleted for one in former_ids(found.state.nodes.get(key))}
        if {*before} <= {*after} <= {*before, *left}:
            return
        message = f"`{FORMER_KEY}` is set by KB and by documents, not by a client."
        hint = f"Leave it out; {kb('rename', 'OLD', 'NEW')} gives an entity another id."
        found.wrong(f"{item.path}.{FORMER_IDS}", SET_BY_KB, message, hint)


def _keep_verdict(
    found: PlanBuilder, item: EntityWrite, old: Node | None, values: Mapping[str, Any], unset: list[str]
) -> None:
    """Refuse a verdict that a client states or removes; it stays where a client replaces all attributes."""
    named = {f"attributes.{key}" for key in item.objects.get("attributes", {})}
    unset[:] = [name for name in unset if name not in verdict.FIELDS or name in named]
    owners = old.owners if old else {}
    for name in sorted(verdict.FIELDS & {*values, *unset} - owners.keys()):
        found.wrong(f"{item.path}.{name}", SET_BY_KB, verdict.set_by_results(name), verdict.SET_HINT)


def _refuse_existing(found: PlanBuilder, item: EntityWrite, old: Node) -> None:
    """Note that an entity which is to be created exists already, and who created it."""
    made = found.around.writer(old.created_seq, old.id).words()
    file = f", and {in_quotes(old.path)} states it" if old.path else ""
    title = f" {in_quotes(shortened(str(old.fields['title']), _MAX_TITLE_CHARS))}" if old.fields.get("title") else ""
    called = found.around.called(old.type)
    message = f"{in_quotes(item.id)} exists already: the {called}{title}, created {made}{file}."
    hint = "Choose another id for a new entity. To change this one, read it, then send only what changes as an update."
    found.wrong(f"{item.path}.id", "exists", message, hint, old.path, subject=item.id)


def _refuse_hidden(found: PlanBuilder, item: EntityWrite, old: Node | None, names: Sequence[str]) -> None:
    """Note that an entity which a client would change is one of a hidden type."""
    if old and old.is_hidden and names:
        message = f"{in_quotes(item.id)} is a {old.type} of the Prolog workspace, which is never changed."
        found.wrong(f"{item.path}.id", "hidden_type", message, "Remove it, and add another one.", subject=item.id)


def _refuse_missing(found: PlanBuilder, item: EntityWrite) -> None:
    """Note that an entity which is to be changed does not exist, and whether it was removed."""
    found.doubtful.add(item.id)
    seq = found.around.gone.get(item.id)
    now = found.around.later(item.id) if seq else ""
    removed = f"; it was removed {found.around.writer(seq, item.id).words()}" if seq else ""
    removed = f"; it was renamed to {in_quotes(now)}" if now else removed
    hint = f'{found.hint_for_id(item.id)}To create it, use the mode "create" or "upsert".'
    message = f"There is no entity {in_quotes(item.id)}{removed}."
    found.wrong(f"{item.path}.id", "not_found", message, hint, subject=item.id)


def _name_in_id(key: str, definition: EntityType) -> dict[str, str]:
    """Return the name that a new concept of KIP's has by its id, ``Type:name``, for who does not say it."""
    name = key.removeprefix(f"{definition.name}:") if definition.origin == ORIGIN else key
    return {"name": name} if name not in {key, ""} else {}


def _memo_defaults(found: PlanBuilder, item: EntityWrite, definition: EntityType) -> dict[str, Any]:
    """Return what a new note or task has where its writer does not say it: a status, and a place in the list."""
    if item.is_import or not definition.is_memo:
        return {}
    values: dict[str, Any] = {} if "status" in item.removed else {"status": definition.status_default}
    is_ordered = definition.name == TASK and definition.attributes[ORDER] == CORE.entities[TASK].attributes[ORDER]
    if is_ordered and ORDER not in item.objects.get("attributes", {}):
        values[f"attributes.{ORDER}"] = found.next_task()
    return values


def _definition(found: PlanBuilder, item: EntityWrite, old: Node | None) -> EntityType | None:
    """Return the type after the changeset, None when it is not known: that is a problem, or comes from one."""
    name = item.values.get("type", old.type if old and item.is_whole else None)
    if name is None and not item.is_whole:
        return None
    if name is None:
        hint = f"{in_quotes(item.id)} is new: say what it is. {did_you_mean('', found.schema.entities)}"
        message = f"`type` of {in_quotes(item.id)} is missing."
        found.wrong(f"{item.path}.type", "missing_field", message, hint, subject=item.id)
        return None
    definition = HIDDEN[name] if is_hidden(name, item.id) else found.schema.entities.get(name)
    if definition is None and name in HIDDEN:
        hint = f"An id of one is `{name}:` and {GENERATED_DIGITS} hexadecimal digits in small letters."
        message = f"{in_quotes(item.id)} is no id of an entity of KB's own type {in_quotes(name)}."
        found.wrong(f"{item.path}.id", "invalid_id", message, hint, subject=item.id)
    elif definition is None:
        hint = f"{did_you_mean(name, found.schema.entities)} {how_to_add(TYPE, name)}"
        found.wrong(f"{item.path}.type", "unknown_type", f"There is no entity type {in_quotes(name)}.", hint)
    return definition


def _wanted(
    item: EntityWrite, fields: Mapping[str, Any], owners: Mapping[str, str]
) -> tuple[dict[str, Any], list[str]]:
    """Return the flat fields that the item sets, and those that it removes."""
    wanted = {name: normal_time(value) if CORE_FIELDS[name] == "time" else value for name, value in item.values.items()}
    unset = [name for name in item.removed if name in CORE_FIELDS and name in fields]
    members, gone = members_wanted(item, fields, owners)
    return wanted | members, [*unset, *gone]


def _shown(old: Node | None) -> dict[str, Any]:
    if old is None:
        return {}
    stamps: dict[str, Any] = {name: getattr(old, name) for name in STAMPS}
    return {**old.fields, **stamps}


def _check_required(
    found: PlanBuilder,
    item: EntityWrite,
    definition: EntityType,
    fields: Mapping[str, Any],
    unset: Sequence[str],
) -> None:
    needed = definition.required_fields
    for name in ("type", *needed):
        if name in item.removed or name in unset:
            message = f"`{name}` of {in_quotes(item.id)} is required and cannot be removed."
            found.wrong(f"{item.path}.{name}", "required_field", message, "Give it another value.", subject=item.id)
        elif name not in fields and item.is_whole:
            wanted = [one for one in needed if one not in fields or one in item.values]
            hint = f"Add `{name}`; a {found.around.called(definition.name)} needs {', '.join(wanted)}."
            message = f"`{name}` of {in_quotes(item.id)} is missing."
            found.wrong(f"{item.path}.{name}", "missing_field", message, hint, subject=item.id)


def _check_status(found: PlanBuilder, item: EntityWrite, definition: EntityType, wanted: Mapping[str, Any]) -> None:
    status = wanted.get("status")
    if status is not None and definition.statuses and status not in definition.statuses:
        hint = f"Use one of: {', '.join(definition.statuses)}."
        message = f"{in_quotes(status)} is no status of a {found.around.called(definition.name)}."
        found.wrong(f"{item.path}.status", "unknown_status", message, hint)


def _check_definition(found: PlanBuilder, item: EntityWrite, kind: str, fields: Mapping[str, Any]) -> None:
    """Note why a type or predicate could not be used under the name that it is given."""
    name = str(fields.get("name") or item.id.removeprefix(f"{kind}:"))
    known: Mapping[str, EntityType | EdgeType] = found.schema.entities if kind == TYPE else found.schema.edges
    what = "type" if kind == TYPE else "predicate"
    if not is_well_named(Concept(kind, name, {})):
        example = "such as UserPreference" if kind == TYPE else "such as works_on"
        message = f"{in_quotes(name)} is no name of a {what}: it is not in {STYLE_WORDS[kind]}."
        hint = f"Write it in {STYLE_WORDS[kind]}, {example}."
        found.wrong(f"{item.path}.name", "bad_type_name", message, hint, subject=item.id)
    elif name in known and known[name].origin != ORIGIN:
        where = known[name].origin or "KB itself"
        message = f"The {what} {in_quotes(name)} is defined by {where} already."
        hint = "Use it as it is, or choose another name."
        found.wrong(f"{item.path}.name", "defined_already", message, hint, subject=item.id)


def _check_attributes(found: PlanBuilder, item: EntityWrite, definition: EntityType, wanted: Mapping[str, Any]) -> None:
    for name, attribute in definition.attributes.items():
        field = f"attributes.{name}"
        fault = attribute_problem(attribute, wanted[field]) if field in wanted else ""
        if fault:
            message = f"`{field}` of {in_quotes(item.id)} {fault}."
            hint = allowed_values_hint(definition, field, wanted[field]) or attribute.description
            found.wrong(f"{item.path}.{field}", "wrong_type", message, hint, subject=item.id)
