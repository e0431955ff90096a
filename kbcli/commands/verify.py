"""``kb verify``: prove the journal, record by record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.maintenance.proof import Verified


def run(ctx: typer.Context) -> int:
    """Prove the journal, record by record: every digest, every file, every snapshot by replay, and the cached view.

    Changes nothing. What is damaged ends with the status of that damage; a note in the cache keeps writers from it.
    Stores in the trash are not proven; `kb branch trash --verify` does that.
    """
    from kbcli.invocation import exits
    from kbcore.maintenance.findings import damaged_journals
    from kbcore.maintenance.proof import verify_branch
    from kbcore.storage import known_damage
    from kbcore.store import branches
    from kbcore.text.wording import is_or_are, pluralize

    session = session_of(ctx)
    session.is_read_only = session.has_reported_losses = True
    workspace = session.workspace
    choice = branches.choose(workspace, session.named_branch)
    with session.output.waiting("Proving the journal"):
        proof = verify_branch(workspace, choice.branch, with_view=True)
    not_proven = _in_trash(session)
    directory, cache = workspace.folders.directory_of(choice.branch), workspace.folders.cache_of(choice.branch)
    known_damage.renew(session.real_fs, directory, cache, damaged_journals(proof.findings, choice.branch))
    if session.output.is_json:
        session.output.document(proof.as_json() | {"trash_not_proven": not_proven})
    else:
        _show(session, proof)
        if not_proven:
            stores = pluralize(not_proven, "store")
            how = "`kb branch trash --verify` does it"
            session.output.note(f"note: {stores} in the trash {is_or_are(not_proven)} not proven; {how}.")
    return exits.status_of(proof.findings)


def _in_trash(session: Session) -> int | None:
    """Return how many stores are in the trash; None, with a warning, where it cannot be listed."""
    from kbcore.errors import StorageError
    from kbcore.store.branches import store_moves
    from kbcore.text.escaping import escape_controls

    try:
        return len(store_moves.in_trash(session.workspace))
    except StorageError as error:
        session.output.warn(escape_controls(error.message))
        return None


def _show(session: Session, proof: Verified) -> None:
    from kbcli.invocation.exits import statuses
    from kbcore.text.escaping import escape_controls, problem_line
    from kbcore.text.wording import pluralize

    output, codes = session.output, statuses()
    for finding in proof.findings:
        place = "" if finding.code in codes else finding.file  # the message of an error names its file
        line = problem_line(place, max(finding.line, 0) if place else 0, finding.message, finding.remedy)
        if finding.severity in {"error", "not_checked"}:
            output.error(line)
        elif finding.severity == "warning":
            output.warn(line)
        else:
            output.note(f"{finding.severity}: {line}")
    output.say(escape_controls(_summary(proof, pluralize(proof.records, "record"))))


def _summary(proof: Verified, records: str) -> str:
    """Return the result of the proof in one sentence."""
    if proof.seq is None:
        return f"{proof.branch}: nothing could be proven without its head."
    if proof.is_sound:
        return f"{proof.branch} at seq {proof.seq}: sound ({records} checked)."
    if proof.good_seq == proof.seq:
        return f"{proof.branch} at seq {proof.seq}: not sound, but every record is good ({records} checked)."
    good = f"good up to seq {proof.good_seq}" if proof.good_seq else "no state is proven"
    return f"{proof.branch}: damaged; {good} ({records} checked)."
