"""``kb share``: write the changes of people and agents into files that are committed with the code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.share.sharing import Shared
    from kbcore.share.unshared import Unshared
    from kbcore.view.claim_index import HeldChange


def run(
    ctx: typer.Context,
    *,
    actor: Annotated[
        list[str] | None,
        typer.Option("--actor", metavar="NAME", help="Share only the changes of this actor; may be repeated."),
    ] = None,
    again: Annotated[
        list[str] | None,
        typer.Option(
            "--again", metavar="CHANGE", help="Share a change again whose file was taken back; may be repeated."
        ),
    ] = None,
    is_list: Annotated[
        bool, typer.Option("--list", help="List what is not shared, and what was taken back; write nothing.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Write the changes of people and agents into change files.

    Those that no file holds are written, and the files are staged. There is one file for each actor, below
    .kb/changes. Commit it with the code: where the file is, the changes hold. What `share.actors` and
    `share.types` in .kb/config.json leave out stays in this clone.
    """
    from kbcli.invocation import exits
    from kbcore.share.sharing import share

    session = session_of(ctx)
    if is_list:
        if actor or again or dry_run:
            raise typer.BadParameter("--list can only be used alone.")
        return _list(session)
    opened = session.open(dry_run=dry_run)
    found = share(opened.workspace, opened.branch, again=again or (), actors=actor or (), dry_run=dry_run)
    if session.output.is_json:
        session.output.document(_document(found, dry_run=dry_run))
    else:
        from kbcli.messages import shared

        for line in shared.written_lines(found, dry_run=dry_run):
            session.output.say(line)
        for line in shared.fault_lines(found.withheld):
            session.output.warn(line)
    return exits.VIOLATIONS if found.faults else exits.DONE


def _list(session: Session) -> int:
    """List the changes that no committed file holds, and those that were in one that is gone."""
    from kbcli.invocation import exits
    from kbcli.messages import shared
    from kbcore.share.unshared import find_unshared, find_withdrawn
    from kbcore.store import branches

    session.is_read_only = True
    session.begin_request(writes=False)
    choice = branches.choose(session.workspace, session.named_branch)
    branches.for_reading(session.workspace, choice)
    unshared = find_unshared(session.workspace, choice.branch)
    withdrawn = find_withdrawn(session.workspace, choice.branch)
    output = session.output
    if output.is_json:
        output.document(
            {
                "branch": choice.branch,
                "unshared": [
                    {**_change(one), "file": one.file, "reason": one.withheld, "place": one.place} for one in unshared
                ],
                "withdrawn": [_change(one) for one in withdrawn],
            }
        )
        return exits.DONE
    rows = [shared.row(one) for one in unshared]
    if rows:
        output.stream(f"{line}\n" for line in output.list_lines(("SEQ", "TIME", "ACTOR", "STATE", "MESSAGE"), rows))
    if withdrawn:
        output.say(shared.withdrawn_line(len(withdrawn)))
        taken_back = [(one.change.id[:12], one.change.at, one.change.actor, one.change.message) for one in withdrawn]
        output.stream(f"{line}\n" for line in output.list_lines(("CHANGE", "TIME", "ACTOR", "MESSAGE"), taken_back))
    if not unshared and not withdrawn:
        output.say("Every change is shared, or there is none.")
    for line in shared.fault_lines(unshared):
        output.warn(line)
    return exits.DONE


def _document(found: Shared, *, dry_run: bool) -> dict[str, Any]:
    return {
        "dry_run": dry_run,
        "files": [
            {"path": path, "changes": [_change(one) for one in changes]} for path, changes in found.files.items()
        ],
        "staged": sorted({one.file for one in found.before}),
        "withheld": [{**_change(one), "reason": one.withheld, "place": one.place} for one in found.withheld],
    }


def _change(one: Unshared | HeldChange) -> dict[str, Any]:
    change = one.change
    return {
        "change": change.id,
        "seq": one.seq,
        "at": change.at,
        "actor": change.actor,
        "message": change.message,
    }
