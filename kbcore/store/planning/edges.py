"""Plan the edges that a client writes, and check the ends of all that become resolved, after the whole changeset."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kbcore.errors.remedies import kb
from kbcore.ids import is_link_id
from kbcore.model.changeset import Changeset, EdgeWrite
from kbcore.model.concepts import ORIGIN, PREDICATE, how_to_add
from kbcore.model.content import confirmed_content
from kbcore.model.graph import CLIENT, STAMPS, Link
from kbcore.model.record import ConfirmLink, PutNode, StateLink
from kbcore.model.schema import LINK
from kbcore.model.state import Changes
from kbcore.model.values import is_same, normal_time
from kbcore.store.planning.conflicts import choose, settle
from kbcore.store.planning.plan_builder import PlanBuilder, edge_words, members_wanted
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean, is_it


def plan_edge(found: PlanBuilder, item: EdgeWrite) -> None:
    """Add the operation that states one edge, or the problems that prevent it."""
    if not _is_defined(found, item) or not item.id:
        return
    old = found.state.links.get(item.id)
    is_there = old is not None and old.is_resolved
    if old and is_there and item.mode == "create":
        made = found.around.writer(old.created_seq, old.id).words()
        message = f"The edge {edge_words(item)} exists already, created {made}."
        hint = "Leave it out; to change its values, send it as an update."
        found.wrong(item.path, "exists", message, hint, subject=item.id)
        return
    if not is_there and item.mode == "update":
        seq = found.around.gone.get(item.id)
        removed = f"; it was removed {found.around.writer(seq, item.id).words()}" if seq else ""
        hint = 'To create it, use the mode "create" or "upsert".'
        message = f"There is no edge {edge_words(item)}{removed}."
        found.wrong(item.path, "not_found", message, hint, subject=item.id)
        return
    fields, owners = (old.fields, old.owners) if old else ({}, {})
    wanted, unset = choose(found, item, old, *_wanted(item, fields, owners))
    shown = _shown(old)
    values = {name: value for name, value in wanted.items() if name not in shown or not is_same(shown[name], value)}
    settle(found, item, old, wanted, values=values, unset=unset)
    if not item.is_import:
        found.keep_marks(item, values, unset)
    found.check_owned(item, edge_words(item), owners, [*values, *unset])
    found.check_source(item, values)
    if found.schema.edges[item.type].origin != ORIGIN:
        found.check_provenance(item, values)
    found.note_overwritten(old, edge_words(item), [*values, *unset])
    if old and not values and not unset:
        found.repeated[item.path] = old
        return
    found.ops.append(
        StateLink(
            type=item.type,
            kind=item.kind,
            from_id=item.from_id,
            to_id=item.to_id,
            base=old.version if old else 0,
            set=values,
            unset=tuple(unset),
        )
    )


def plan_repeated(found: PlanBuilder, changeset: Changeset) -> None:
    """Add what it means to write edges as they stand already, once all else that the changeset writes is planned.

    An edge whose target has changed since is confirmed, and nothing else: who states it stays. Any other is from now on
    stated by the client as well, if it was not. A change of the target that came after what the client read is not
    confirmed: the changeset is refused.
    """
    repeated = found.repeated.values()
    suspect = found.around.suspect([link.id for link in repeated]) if repeated else dict[str, int]()
    paths, read_seq = {edge.id: edge.path for edge in changeset.edges}, changeset.expected_seq
    changed = {op.id for op in found.ops if isinstance(op, PutNode) and {*op.set, *op.unset} - {*STAMPS}}
    for link in repeated:
        changed_seq = suspect.get(link.id, 0)
        if read_seq is not None and changed_seq > read_seq:
            message = f"{in_quotes(link.to_id)} changed at seq {changed_seq}, after {read_seq}."
            found.wrong(paths[link.id], "stale", message, "Read it again, and confirm the edge if it still applies.")
        is_suspect = link.id in suspect or (link.is_resolved and link.to_id in changed)
        if is_suspect or all(statement.src != CLIENT for statement in link.statements):
            named = (link.type, link.from_id, link.to_id, link.version, link.kind)
            found.ops.append(ConfirmLink(*named, _seen(found, link)) if is_suspect else StateLink(*named))


def _seen(found: PlanBuilder, link: Link) -> str:
    """Return what the target of an edge is after the changeset; "" where it is an edge."""
    target = found.state.nodes.get(link.to_id)
    if target is None:
        return ""
    return confirmed_content(target, found.ops, next(iter(found.around.sources([target.path])), None))


def _is_defined(found: PlanBuilder, item: EdgeWrite) -> bool:
    if not item.type:
        return False
    definition = found.schema.edges.get(item.type)
    if definition is None:
        hint = f"{_near(found, item)} {how_to_add(PREDICATE, item.type)}"
        found.wrong(f"{item.path}.type", "unknown_edge", f"There is no edge type {in_quotes(item.type)}.", hint)
        return False
    if definition.needs_kind and not item.kind and item.is_whole:
        hint = 'Say how the two relate, e.g. "kind": "see_also".'
        found.wrong(f"{item.path}.kind", "missing_field", f"`{item.type}` needs a `kind`.", hint)
    elif item.kind and not definition.needs_kind:
        found.wrong(f"{item.path}.kind", "unknown_field", f"`{item.type}` has no `kind`.", "Leave `kind` out.")
    return True


def _near(found: PlanBuilder, item: EdgeWrite) -> str:
    """Return what may have been meant by the type of an edge that there is not."""
    from_type, to_type = _end_type(found, item.from_id), _end_type(found, item.to_id)
    if from_type and to_type:
        ahead, back = found.schema.edges_like(item.type, from_type, to_type)
        if ahead or back:
            return is_it(ahead) or _swapped(item, back[0])
    return did_you_mean(item.type, found.schema.edges)


def _swapped(item: EdgeWrite, name: str) -> str:
    """Return the hint that an edge of this type leads from the one end to the other."""
    typed = f"{name}:{item.kind}" if item.kind else name
    return f"`{name}` leads the other way: {kb('link', item.to_id, typed, item.from_id)}."


def _wanted(item: EdgeWrite, fields: Mapping[str, Any], owners: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    wanted = {name: normal_time(value) if name == "created_at" else value for name, value in item.values.items()}
    unset = [name for name in item.removed if name in fields]
    members, gone = members_wanted(item, fields, owners)
    return wanted | members, [*unset, *gone]


def _shown(old: Link | None) -> dict[str, Any]:
    if old is None:
        return {}
    via = next((statement.via for statement in old.statements if statement.src == CLIENT), None)
    stamps = {"created_at": old.created_at, "created_by": old.created_by, "source": via}
    return {**old.fields, **stamps}


def check_written(found: PlanBuilder, items: Iterable[EdgeWrite]) -> None:
    """Note what is wrong with the ends of the edges that a changeset names, in the state after it."""
    edges = list(items)
    found.doubtful |= {item.id for item in edges if item.id and not found.state.exists(item.id)}
    for item in edges:
        for side, end in (("from", item.from_id), ("to", item.to_id)):
            if end and not found.state.exists(end) and not found.is_doubtful(end):
                what = "edge" if is_link_id(end) else "entity"
                hint = found.hint_for_id(end) + "To make it, create it before the edge or in the same write."
                found.wrong(f"{item.path}.{side}", "unknown_entity", f"There is no {what} {in_quotes(end)}.", hint)
        _check_fit(found, item)


def _check_fit(found: PlanBuilder, item: EdgeWrite) -> None:
    definition = found.schema.edges.get(item.type)
    from_type, to_type = _end_type(found, item.from_id), _end_type(found, item.to_id)
    if definition and from_type and to_type and not found.schema.fits(item.type, from_type, to_type):
        message = f"{_leads(found, item.type)}, not {_way(found, from_type, to_type)}."
        is_swapped = found.schema.fits(item.type, to_type, from_type)
        hint = _swapped(item, item.type) if is_swapped else _fitting(found, from_type, to_type)
        found.wrong(item.path, "endpoint_type", message, hint)


def check_resolved_edges(found: PlanBuilder, changes: Changes, paths: Mapping[str, str]) -> None:
    """Note the edges that are resolved after the changeset and do not fit, because of new or retyped ends.

    ``paths`` has the place of each element that the changeset names; the edges among these are left to
    ``check_written``.
    """
    retyped = [
        change.key
        for change in changes.nodes
        if change.after and not (change.before and change.before.type == change.after.type)
    ]
    links = {link.id: link for key in retyped for link in found.state.links_of(key)}
    links |= {one.key: one.after for one in changes.links if one.after and not (one.before and one.before.is_resolved)}
    for link in links.values():
        ends = _end_type(found, link.from_id), _end_type(found, link.to_id)
        if link.id in paths or not link.is_resolved or not all(ends) or found.schema.fits(link.type, *map(str, ends)):
            continue
        key = _cause(found, link, paths)
        files = [statement.src for statement in link.statements if statement.src != CLIENT]
        stated = f" (stated by {', '.join(map(in_quotes, files))})" if files else ""
        message = (
            f"{edge_words(link)}{stated} would be resolved and does not fit: "
            f"{_leads(found, link.type)}, not {_way(found, *map(str, ends))}."
        )
        remedy = f"correct the link in {files[0]} and {kb('sync', lead='run')}" if files else "delete that edge"
        is_entity = key in found.state.nodes
        first = f"{remedy[0].upper()}{remedy[1:]} first."
        hint = f"Give {key} another type, or {remedy} first." if is_entity else first
        path = f"{paths[key]}.type" if is_entity else paths.get(key, "$")
        found.wrong(path, "endpoint_type", message, hint, files[0] if files else "")


def _cause(found: PlanBuilder, link: Link, paths: Mapping[str, str]) -> str:
    """Return the id of what the changeset names and this edge depends on, perhaps by way of other edges."""
    for end in (link.from_id, link.to_id):
        if end in paths:
            return end
        below = found.state.links.get(end)
        key = _cause(found, below, paths) if below else ""
        if key:
            return key
    return ""


def _leads(found: PlanBuilder, edge_type: str) -> str:
    definition = found.schema.edges.get(edge_type)
    if definition is None:
        return f"`{edge_type}` is no edge of the schema"
    return f"`{edge_type}` leads from {definition.way_between(found.around.called)}"


def _way(found: PlanBuilder, from_type: str, to_type: str) -> str:
    called = found.around.called
    return f"from {called(from_type)} to {called(to_type)}"


def _end_type(found: PlanBuilder, end: str) -> str | None:
    """Return the type of what an id names in the state as it is now, or None when it names nothing or is in doubt."""
    if end in found.doubtful:
        return None
    node = found.state.nodes.get(end)
    if node:
        return node.type
    return LINK if found.state.exists(end) else None


def _fitting(found: PlanBuilder, from_type: str, to_type: str) -> str:
    straight = [name for name in found.schema.edges if found.schema.admits(name, from_type, to_type)]
    swapped = [
        f"{name} (ends swapped)"
        for name in found.schema.edges
        if name not in straight and found.schema.admits(name, to_type, from_type)
    ]
    return f"These fit: {', '.join([*straight, *swapped])}."
