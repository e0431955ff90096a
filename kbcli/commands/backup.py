"""``kb backup``: write the stores of branches into one file."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Branches, backup_file


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The backup to write.")],
    *,
    only: Branches = None,
    force: Annotated[bool, typer.Option("--force", help="Replace FILE if it exists.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Prove what would be backed up; write nothing.")] = False,
) -> None:
    """Write the stores of branches into one file, with their history, and read it back.

    All branches, unless some are named. Others may write meanwhile: each branch is copied as of one moment. A
    damaged store is refused. Only you may read the file. `kb restore FILE` brings the branches back, and with --dry-run
    it proves the file.
    """
    from kbcli.messages.lines import size
    from kbcore.maintenance.backup import back_up
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    session = session_of(ctx)
    path = backup_file(session, file)
    session.is_read_only = dry_run
    output, workspace = session.output, session.workspace
    names = only or ([session.named_branch] if session.named_branch else [])
    with output.waiting("Backing up"):
        done = back_up(workspace, path, names, tool=session.author.tool, replaces=force, dry_run=dry_run)
    if output.is_json:
        output.document(done.as_json())
        return
    for one in done.branches:
        output.say(escape_controls(f"{one.branch} at seq {one.seq}: {size(one.length_bytes)}."))
    verb = "would be written to" if dry_run else "written to"
    output.say(
        escape_controls(
            f"{pluralize(len(done.branches), 'branch')} {verb} {file}{'' if dry_run else ', and read back'}."
        )
    )
