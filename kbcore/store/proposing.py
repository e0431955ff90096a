"""Writes of actors whose facts are only proposed until somebody accepts them: what they plan becomes proposals.

The settings (``ReviewSettings``) say whose. Documents are reviewed with git, and what a merge, a report of tests or a
sleep cycle writes is nobody's own statement: only what clients state goes this way.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.config.settings import ReviewSettings
from kbcore.errors import ReviewRequired
from kbcore.errors.remedies import kb
from kbcore.ids import link_id
from kbcore.model.folding import apply
from kbcore.model.graph import is_proposed_mark
from kbcore.model.proposals import MARK, NotProposable, Proposals, as_proposals
from kbcore.model.read_set import needs
from kbcore.model.record import DML, DropNode, Operation, PutNode, StateLink
from kbcore.model.schema import HIDDEN
from kbcore.model.state import Draft, Stamp
from kbcore.rules.edge_confirmation import suspect_edges
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Planner
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import is_or_are, it_or_them, pluralize
from kbcore.view.view import View

_OF_AGENTS: Final = ("mcp:", DML)
"""The beginnings of the sources of what agents write."""


def may_accept(settings: ReviewSettings, author: Author) -> bool:
    """Tell whether an author may accept what is proposed."""
    return settings.may_accept(author.actor, is_agent=author.source.startswith(_OF_AGENTS))


def proposing(workspace: Workspace, author: Author, plan: Planner) -> Planner:
    """Return the planner of an author: what it plans is proposed, where the settings say so.

    It raises ``ReviewRequired`` where the author accepts something and may not, or what cannot be proposed.
    """
    settings = workspace.config.review
    is_proposer = settings.is_proposer(author.actor)
    if not is_proposer and may_accept(settings, author):
        return plan

    def covers(type_: str) -> bool:
        return is_proposer and type_ not in HIDDEN and settings.covers(type_)

    def planned(view: View, stamp: Stamp) -> Draft:
        draft = plan(view, stamp)
        _refuse_decision(draft)
        try:
            proposals = as_proposals(draft.ops, draft.changes, covers)
        except NotProposable as error:
            raise _not_proposable(*error.args) from error
        _refuse_confirmation(view, proposals)
        return draft if proposals.ops == draft.ops else _draft_of(view, stamp, draft, proposals)

    return planned


def _refuse_decision(draft: Draft) -> None:
    """Refuse a write by which an element that is proposed would be accepted. Raises: ``ReviewRequired``."""
    gone = {op.id for op in draft.ops if type(op) is DropNode}
    for op in draft.ops:
        if (type(op) is PutNode or type(op) is StateLink) and MARK in op.unset:
            key = op.id if type(op) is PutNode else f"{op.from_id} {op.type} {op.to_id}"
            if key not in gone:
                raise _not_proposable(key, "is accepted")


def _refuse_confirmation(view: View, proposals: Proposals) -> None:
    """Refuse proposals for suspect edges: whoever writes such an edge confirms it. Raises: ``ReviewRequired``."""
    written = {
        link_id(op.type, op.kind, op.from_id, op.to_id): f"{op.from_id} {op.type} {op.to_id}"
        for op in proposals.ops
        if type(op) is StateLink and op.base and any(map(is_proposed_mark, op.set))
    }
    for one in suspect_edges(view.rows, [*written]) if written else ():
        raise _not_proposable(written[one.id], "is suspect, and would be confirmed")


def _not_proposable(key: str, what: str) -> ReviewRequired:
    return ReviewRequired(f"{in_quotes(key)} {what} by this write, which its actor may not decide.")


def _draft_of(view: View, stamp: Stamp, planned: Draft, proposals: Proposals) -> Draft:
    ops: tuple[Operation, ...] = proposals.ops
    state = view.gather(needs(ops))
    loaded = msgspec.structs.replace(state.loaded, enough_for=ops)
    changes = apply(state, stamp, ops)
    left = {one.key for one in planned.changes.nodes} - {one.key for one in changes.nodes}
    return Draft(
        ops,
        changes,
        loaded,
        unchanged=(*planned.unchanged, *sorted(left)),
        edges_unchanged=planned.edges_unchanged + len(planned.changes.links) - len(changes.links),
        warnings=(*planned.warnings, *_sentences(proposals)),
    )


def _sentences(proposals: Proposals) -> list[str]:
    """Return what of a write is proposed, as warnings of its answer."""
    found = []
    parts = [(proposals.elements, "new fact"), (proposals.fields, "change")]
    named = [pluralize(number, words) for number, words in parts if number]
    if named:
        them = it_or_them(proposals.elements + proposals.fields)
        found.append(f"Only proposed: {' and '.join(named)}. A person accepts or rejects {them}: {kb('review')}.")
    if number := proposals.confirmations:
        left_out = f"{pluralize(number, 'confirmation')} {is_or_are(number)} left out"
        found.append(f"{left_out}: a person confirms edges of accepted facts.")
    return found
