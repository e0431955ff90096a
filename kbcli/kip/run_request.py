"""Carries out requests of KIP for the command line, each on the branch that is meant when it comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcore.errors import KBError, KipRefused

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.kip.request import KipRequest
    from kbcore.kip.run import KipAnswer
    from kbcore.view.view import View


def carried_out(session: Session, request: KipRequest) -> tuple[KipAnswer, str]:
    """Return the answer to a request, and the branch that it is about.

    A branch gets its store for its first record; settings and schema are those in force now.

    Raises: as opening a branch.
    """
    from kbcore.kip.run import KipContext, run
    from kbcore.store import branches

    session.begin_request(writes=request.writes)
    workspace = session.workspace.renewed()
    if request.writes and not request.dry_run:
        choice = branches.choose(workspace, session.named_branch)
        session.open_to_write(workspace, choice)
    else:
        open_ = branches.open_to_try if request.writes else branches.open_to_read
        store, choice, ensured = open_(workspace, session.named_branch)
        session.show_ensured(ensured)
        session.note_answering(workspace, choice.branch)
        session.watch(store)
    around = KipContext(
        workspace, choice.branch, session.author, choice.follows_head, files=session.files, is_local=True
    )
    return run(around, request), choice.branch


def names(session: Session) -> tuple[list[str], list[str]]:
    """Return the concept types and the predicates of the branch; none where nothing can be read."""
    from kbcore.kip.names import type_names
    from kbcore.store import branches

    def of_schema(view: View) -> tuple[list[str], list[str]]:
        schema = view.schema(session.workspace.schema)
        return sorted(type_names(schema).of_kip), sorted(schema.edges)

    try:
        store, _, _ = branches.open_to_read(session.workspace, session.named_branch)
        return store.read(of_schema)
    except KBError:
        return [], []


def status_of(answer: KipAnswer) -> int:
    """Return the exit status of an answer: that of KB's error in it, else that of a refusal by KIP."""
    from kbcli.invocation import exits

    if not answer.is_error:
        return exits.DONE
    responses = answer.response.get("result")
    failed = responses[-1] if isinstance(responses, list) and "error" not in answer.response else answer.response
    code = failed["error"].get("data", {}).get("kb_code", KipRefused.code)
    return exits.statuses().get(code, KipRefused.exit_status)
