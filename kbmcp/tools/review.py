"""Carries out the actions proposed, accept and reject of ``kb_history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Call
from kbmcp.tools.history_request import HistoryRequest
from kbmcp.tools.write import answer_of

if TYPE_CHECKING:
    from kbcore.store.review import Proposal
    from kbcore.view.view import View


def proposals(asked: HistoryRequest, view: View) -> list[Proposal]:
    """Return what is proposed and requested: of an entity and its edges, of a record, or of a writer."""
    from kbcore.store.review import ProposalFilter, find_proposals

    ids = (view.renamed([asked.id]).get(asked.id, asked.id),) if asked.id else ()
    seqs = (asked.seq,) if asked.seq else ()
    return find_proposals(view, ProposalFilter(ids, seqs, (), asked.actor, asked.session))


def decide(call: Call, asked: HistoryRequest) -> Payload:
    """Accept or reject what is requested. Raises: ``ReviewRequired``; ``NotFound``; as ``WriteTarget.apply``."""
    from kbcore.errors import NotFound
    from kbcore.errors.remedies import kb
    from kbcore.store.review import check_reviewer, decision
    from kbmcp.tools.undo import target_of

    check_reviewer(call.workspace, call.author)
    found, head = call.store.read(lambda view: (proposals(asked, view), view.recorded_seq))
    if not found:
        raise NotFound("Nothing of what you name is proposed.", hint=f"{kb('review')} lists what is proposed.")
    accepted, rejected = (found, []) if asked.action == "accept" else ([], found)
    changeset = decision(accepted, rejected, seq=head, message=asked.message, dry_run=asked.dry_run)
    return answer_of(call, target_of(call).apply(changeset))
