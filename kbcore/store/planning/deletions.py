"""Plan what a client removes: never a file's fact, and nothing that others point at without ``cascade``."""

from __future__ import annotations

from collections.abc import Sequence

from kbcore.errors import DerivedFact
from kbcore.errors.remedies import by_front_end, kb
from kbcore.model.changeset import EdgeDelete, EntityDelete
from kbcore.model.graph import CLIENT, Link
from kbcore.model.record import DropNode, WithdrawLink
from kbcore.store.planning.plan_builder import PlanBuilder, edge_words, stated_problem
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbcore.text.wording import some_of

_SHOWN = 10


def plan_edge_deletion(found: PlanBuilder, item: EdgeDelete, *, cascade: bool) -> None:
    """Add the withdrawal of a client's edge, or the problems that prevent it."""
    if not item.id:
        return
    link = found.state.links.get(item.id)
    words = edge_words(item)
    if link is None:
        found.wrong(item.path, "not_found", f"There is no edge {words}.", _nearest(found, item), subject=item.id)
        return
    files = _files(link)
    if len(files) == len(link.statements):
        message = f"The edge {words} is stated by {_quoted(files)}."
        hint = f"Remove it from {in_quotes(files[0])} and {kb('sync', lead='run')}."
        found.wrong(item.path, DerivedFact.code, message, hint, files[0], subject=item.id)
        return
    if files:
        found.warnings.append(f"{words} still exists: {_quoted(files)} states it as well.")
    else:
        _remove_links(found, item.path, link.id, words, cascade=cascade, leaving={link.id})
    _withdraw(found, link)


def _quoted(files: Sequence[str]) -> str:
    return ", ".join(map(in_quotes, files))


def plan_entity_deletions(found: PlanBuilder, items: Sequence[EntityDelete], *, cascade: bool) -> None:
    """Add the removal of entities and of their own edges, or the problems that prevent it."""
    leaving = {item.id for item in items}
    for item in items:
        node = found.state.nodes.get(item.id)
        if not item.id:
            continue
        if node is None:
            now = found.around.former.get(item.id)
            hint = f"Name it by the id {in_quotes(now)}." if now else found.hint_for_id(item.id).strip()
            message = f"There is no entity {in_quotes(item.id)}."
            if now:
                message = f"{in_quotes(item.id)} is called {in_quotes(now)} now."
            found.wrong(f"{item.path}.id", "not_found", message, hint, subject=item.id)
            continue
        stated = sorted(set(node.owners.values()))
        if stated:
            found.problems.append(stated_problem(item.path, item.id, stated))
            continue
        _remove_links(found, item.path, item.id, item.id, cascade=cascade, leaving=leaving)
        found.note_removed(node, in_quotes(item.id))
        found.ops.append(DropNode(id=item.id, base=node.version))
        found.types[item.id] = None


def _nearest(found: PlanBuilder, item: EdgeDelete) -> str:
    """Return a hint for an edge that is not there: a type or an end that is not there either, or where to look."""
    if item.type not in found.schema.edges:
        return f"There is no edge type {in_quotes(item.type)} either. {did_you_mean(item.type, found.schema.edges)}"
    for end in (item.from_id, item.to_id):
        if not found.state.exists(end):
            return f"There is no {in_quotes(end)} either. {found.hint_for_id(end)}".strip()
    return f"{kb('show', item.from_id)} lists the edges of {item.from_id}, each with its kind."


def _remove_links(found: PlanBuilder, path: str, key: str, words: str, *, cascade: bool, leaving: set[str]) -> None:
    """Remove the links of what is about to be removed, or note who still points at it."""
    pointing = []
    for link in found.state.links_of(key):
        files = _files(link)
        other = link.from_id if link.to_id == key else link.to_id
        is_pointed_at = link.to_id == key or bool(files)
        if link.is_resolved and is_pointed_at and other not in leaving and not cascade:
            pointing.append(edge_words(link))
            continue
        if files:
            found.warnings.append(f"{edge_words(link)} is stated by {_quoted(files)} and stays, unresolved.")
        if len(files) < len(link.statements):
            _remove_links(found, path, link.id, words, cascade=cascade, leaving={*leaving, link.id})
            _withdraw(found, link)
    if pointing:
        message = f"{words} is still pointed at: {some_of(pointing, _SHOWN)}."
        option = by_front_end("use --cascade", "set `cascade` to true")
        remedy = f"Remove these edges first, or {option}, which removes them too."
        found.wrong(path, "in_use", message, remedy, subject=key)


def _files(link: Link) -> list[str]:
    return [statement.src for statement in link.statements if statement.src != CLIENT]


def _withdraw(found: PlanBuilder, link: Link) -> None:
    """Add the withdrawal of a client's statement, once."""
    if link.id not in found.withdrawn:
        found.withdrawn.add(link.id)
        found.note_removed(link, edge_words(link))
        found.ops.append(
            WithdrawLink(type=link.type, kind=link.kind, from_id=link.from_id, to_id=link.to_id, base=link.version)
        )
