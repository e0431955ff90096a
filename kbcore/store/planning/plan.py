"""Turn a client's changeset into operations, or into the list of everything that is wrong with it. Pure.

The state passed in has what ``reads`` lists; nothing is written here.
"""

from __future__ import annotations

from typing import Final

from kbcore.ids import is_link_id
from kbcore.model.bare_links import resolve
from kbcore.model.changeset import Changeset, EdgeDelete, EdgeWrite, EntityDelete, EntityWrite
from kbcore.model.folding import apply
from kbcore.model.graph import Link, Node
from kbcore.model.read_set import ReadSet
from kbcore.model.state import Changes, Draft, State
from kbcore.store.planning.definitions import check_defined
from kbcore.store.planning.deletions import plan_edge_deletion, plan_entity_deletions
from kbcore.store.planning.edges import check_resolved_edges, check_written, plan_edge, plan_repeated
from kbcore.store.planning.entities import plan_entity
from kbcore.store.planning.plan_builder import STALE_REMEDY, PlanBuilder, PlanContext, edge_words, future_seq_problem
from kbcore.store.planning.secrets import check_secrets
from kbcore.text.escaping import in_quotes

_UNKNOWN: Final = frozenset({""})
"""The name of an item of a changeset that could not be read."""


def reads(changeset: Changeset) -> ReadSet:
    """Return the keys that planning this changeset reads."""
    edges: list[EdgeWrite | EdgeDelete] = [*changeset.edges, *changeset.edge_deletes]
    ends = {end for edge in edges for end in (edge.from_id, edge.to_id)}
    written = {item.id for item in changeset.entities}
    deleted = {item.id for item in changeset.entity_deletes}
    typed = {item.id: item.values["type"] for item in changeset.entities if "type" in item.values}
    stated = [
        *(item.values.get("source") for item in changeset.entities),
        *(item.values.get("source") for item in changeset.edges),
    ]
    return ReadSet(
        nodes=frozenset(written | deleted | ends) - _UNKNOWN,
        links=frozenset({edge.id for edge in edges} | {end for end in ends if is_link_id(end)}) - _UNKNOWN,
        touching=frozenset(deleted | {edge.id for edge in edges}) - _UNKNOWN,
        sources=frozenset(source for source in stated if source),
        typed={key: name for key, name in typed.items() if key},
    )


def plan(changeset: Changeset, state: State, around: PlanContext) -> Draft:
    """Return the operations that carry the changeset out; the state is changed to what it will be.

    Raises: ``InvalidChangeset``, ``NotFound``, ``StaleBase``, ``DerivedFact`` or ``IntegrityViolation``, with every
    problem: those of shape, which the changeset comes with, and those of meaning.
    """
    found = PlanBuilder(state, around, changeset)
    _check_stale(found, changeset)
    for entity in changeset.entities:
        plan_entity(found, entity)
    for edge in changeset.edges:
        plan_edge(found, edge)
    plan_repeated(found, changeset)
    for item in changeset.edge_deletes:
        plan_edge_deletion(found, item, cascade=changeset.cascade)
    plan_entity_deletions(found, changeset.entity_deletes, cascade=changeset.cascade)
    ops = [*found.ops, *resolve(state, found.types, around.schema)]
    changes = apply(state, around.stamp, ops)
    _check_after(found, changeset, changes)
    check_secrets(found, changeset)
    found.refuse()
    found.warn_overwritten()
    changed = {change.key for change in changes.nodes}
    changed_links = {change.key for change in changes.links}
    return Draft(
        ops=tuple(ops),
        changes=changes,
        loaded=state.loaded,
        unchanged=tuple(item.id for item in changeset.entities if item.id not in changed),
        edges_unchanged=sum(edge.id not in changed_links for edge in changeset.edges),
        warnings=tuple(found.warnings),
    )


def _check_stale(found: PlanBuilder, changeset: Changeset) -> None:
    """Note everything that the changeset names and that changed after the client read it."""
    nodes, links, seq = found.state.nodes, found.state.links, changeset.expected_seq
    head = found.around.stamp.seq - 1
    if seq is not None and seq > head:
        found.problems.append(future_seq_problem(seq, head))
    elif seq is not None:
        _check_pruned(found, changeset, seq)
        for entity in changeset.entities:
            node = nodes.get(entity.id)
            version = node.version if node else found.around.gone.get(entity.id, 0)
            if version > seq:
                what = "changed" if node else "was removed"
                _stale(found, entity.path, entity.id, f"{in_quotes(entity.id)} {what} at seq {version}, after {seq}.")
        for edge in changeset.edges:
            link = links.get(edge.id)
            version = link.version if link else found.around.gone.get(edge.id, 0)
            if version > seq:
                what = "changed" if link else "was removed"
                _stale(found, edge.path, edge.id, f"{edge_words(edge)} {what} at seq {version}, after {seq}.")
    for item in changeset.entity_deletes:
        _check_version(found, item, nodes.get(item.id), in_quotes(item.id))
    for one in changeset.edge_deletes:
        _check_version(found, one, links.get(one.id), edge_words(one))


def _check_pruned(found: PlanBuilder, changeset: Changeset, seq: int) -> None:
    """Note when it is not known any more whether what the changeset names was removed after the client read it."""
    if seq >= found.around.pruned:
        return
    named = {one.id: in_quotes(one.id) for one in changeset.entities} | {
        one.id: edge_words(one) for one in changeset.edges
    }
    known = found.state.nodes.keys() | found.state.links.keys() | found.around.gone.keys() | _UNKNOWN
    unknown = [words for key, words in named.items() if key not in known]
    if unknown:
        message = (
            f"Whether {unknown[0]} was removed after {seq} cannot be determined: that part of the history was removed."
        )
        _stale(found, "$.expected_seq", "", message)


def _check_version(found: PlanBuilder, item: EntityDelete | EdgeDelete, now: Node | Link | None, words: str) -> None:
    if now and item.expected_version not in {None, now.version}:
        _stale(found, item.path, item.id, f"{words} is at version {now.version}, not {item.expected_version}.")


def _stale(found: PlanBuilder, path: str, subject: str, message: str) -> None:
    found.wrong(path, "stale", message, STALE_REMEDY, subject=subject)


def _check_after(found: PlanBuilder, changeset: Changeset, changes: Changes) -> None:
    """Note what can only be seen in the state after the whole changeset."""
    check_written(found, changeset.edges)
    named: list[EntityWrite | EntityDelete] = [*changeset.entities, *changeset.entity_deletes]
    check_defined(found, changes, {item.id: item.path for item in named})
    items: list[EntityWrite | EdgeWrite] = [*changeset.entities, *changeset.edges]
    check_resolved_edges(found, changes, {item.id: item.path for item in items if item.id})
