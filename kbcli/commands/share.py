"""``kb share``: write the changes of people and agents into files that are committed with the code, and pack these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.command_tree import WITHOUT_COMMAND, HelpfulCommand, group_of
from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.share.sharing import Shared
    from kbcore.share.unshared import Unshared
    from kbcore.view.claim_index import HeldChange


app = group_of(
    """Write the changes of people and agents into change files.

    Those that no file holds are written, and the files are staged. There is one file for each actor, below
    .kb/changes. Commit it with the code: where the file is, the changes hold. What `share.actors` and
    `share.types` in .kb/config.json leave out stays in this clone."""
)


@app.callback(**WITHOUT_COMMAND)
def run(
    ctx: typer.Context,
    *,
    actor: Annotated[
        list[str] | None,
        typer.Option(
            "--actor",
            metavar="NAME",
            help="Share only the changes of this actor, also what was private when it was written; may be repeated.",
        ),
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
) -> int | None:
    """Write the changes of people and agents into change files, unless a command of the group is typed."""
    if ctx.invoked_subcommand:
        if actor or again or is_list or dry_run:
            raise typer.BadParameter(f"Give options after the command: `kb share {ctx.invoked_subcommand} OPTION`.")
        return None
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


@app.command("pack", cls=HelpfulCommand)
def pack(
    ctx: typer.Context,
    *,
    before: Annotated[
        str,
        typer.Option(
            "--before",
            metavar="TIME",
            help="Pack what is older: 90d, 12w, or a time such as 2026-01-31.",
            show_default=False,
        ),
    ] = "",
    dry_run: DryRun = False,
) -> None:
    """Replace old change files by one pack for each month, and stage both.

    Only files that HEAD has are packed, and only those of which every change is older than --before. The changes stay
    what they are. Files of which packs hold all changes already are removed too; without --before, only those are.
    """
    from kbcli.invocation.points import refuse_empty
    from kbcli.messages import shared
    from kbcore.share import packing

    refuse_empty(ctx)
    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    time = packing.time_of(opened.workspace, before) if before else ""
    packed = packing.pack(opened.workspace, opened.branch, time, dry_run=dry_run)
    if session.output.is_json:
        packs = [{"path": path, "changes": number} for path, number in packed.packs.items()]
        session.output.document(
            {"dry_run": dry_run, "packs": packs, "removed": [*packed.removed], "left": [*packed.left]}
        )
        return
    for line in shared.packed_lines(packed, dry_run=dry_run, is_timed=bool(before)):
        session.output.say(line)


def _list(session: Session) -> int:
    """List the changes that no committed file holds, and those that were in one that is gone."""
    from kbcli.invocation import exits
    from kbcli.messages import shared
    from kbcore.share.unshared import find_unshared, find_withdrawn
    from kbcore.share.worktree_changes import new_files
    from kbcore.store import branches

    session.is_read_only = True
    session.begin_request(writes=False)
    choice = branches.choose(session.workspace, session.named_branch)
    branches.for_reading(session.workspace, choice)
    new = new_files(session.workspace, choice.branch)
    unshared = find_unshared(session.workspace, choice.branch, new=new)
    withdrawn = find_withdrawn(session.workspace, choice.branch, new)
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
    for line in shared.private_lines(unshared):
        output.say(line)
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
