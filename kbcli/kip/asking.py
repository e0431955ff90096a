"""Carries out requests of KIP for the command line, each on the branch that is meant when it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcore.errors import KBError, KipRefused

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.kip.request import Request
    from kbcore.kip.run import Answer
    from kbcore.view.view import View


def carried_out(session: Session, request: Request) -> tuple[Answer, str]:
    """Return the answer to a request, and the branch that it speaks of.

    A branch gets its store when something is written, not by a dry run; settings and schema are those in force now.

    Raises: as opening a branch.
    """
    from kbcore import branches
    from kbcore.kip.run import Surroundings, run

    session.begin_request(writes=request.writes)
    workspace = session.workspace.renewed()
    open_ = branches.open_to_read
    if request.writes:
        open_ = branches.open_to_try if request.dry_run else branches.open_branch
    store, choice, ensured = open_(workspace, session.named_branch)
    session.tell_ensured(ensured)
    session.note_answering(workspace, choice.branch)
    session.watch(store)
    around = Surroundings(
        workspace, store, choice.branch, session.author, choice.follows_head, files=session.files, is_local=True
    )
    return run(around, request), choice.branch


def names(session: Session) -> tuple[list[str], list[str]]:
    """Return the concept types and the predicates of the branch; none where nothing can be read."""
    from kbcore import branches
    from kbcore.kip.names import type_names

    def of_schema(view: View) -> tuple[list[str], list[str]]:
        schema = view.schema(session.workspace.schema)
        return sorted(type_names(schema).of_kip), sorted(schema.edges)

    try:
        store, _, _ = branches.open_to_read(session.workspace, session.named_branch)
        return store.read(of_schema)
    except KBError:
        return [], []


def status_of(answer: Answer) -> int:
    """Return the exit status of an answer: that of the error of KB's that it tells, else that of what KIP refuses."""
    from kbcli import exits

    if not answer.is_error:
        return exits.DONE
    responses = answer.response.get("result")
    failed = responses[-1] if isinstance(responses, list) and "error" not in answer.response else answer.response
    code = failed["error"].get("data", {}).get("kb_code", KipRefused.code)
    return exits.statuses().get(code, KipRefused.exit_status)
