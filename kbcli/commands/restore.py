"""``kb restore``: bring branches back from a backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Branches, backup_file

if TYPE_CHECKING:
    from kbcore.maintenance.backup import RestoredBranch


def run(
    ctx: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file that `kb backup` wrote.")],
    *,
    only: Branches = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Move a store that exists to the trash, and replace it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Prove the backup and show what would be done; change nothing.")
    ] = False,
) -> None:
    """Bring branches back from a backup, after it was proven.

    A store that is there is never overwritten: without --replace nothing is restored, and with it, the present store
    is moved to the trash. Unless it ended with the same record, the restored store gets a new id, and its log says so.
    """
    import shlex

    from kbcore.maintenance.backup import restore
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    session = session_of(ctx)
    path = backup_file(session, file)
    session.is_read_only = dry_run
    output, workspace = session.output, session.workspace
    names = only or ([session.named_branch] if session.named_branch else [])
    with output.waiting("Restoring"):
        done = restore(workspace, path, session.author, names, replaces=replace, dry_run=dry_run)
    if output.is_json:
        output.document(done.as_json())
        return
    for one in done.branches:
        output.say(escape_controls(_sentence(one, dry_run=dry_run)))
        if one.replaced:
            command = f"`kb branch restore {shlex.quote(one.branch)}`"
            output.say(escape_controls(f"The store that was there is in {one.replaced}; {command} brings it back."))
        if one.is_new_epoch and (one.has_present or one.given_up):
            output.warn(escape_controls(_new_id(one, dry_run=dry_run)))
    if dry_run:
        output.say(escape_controls(f"{file} is sound: {pluralize(len(done.branches), 'branch')} of {done.at}."))


def _sentence(one: RestoredBranch, *, dry_run: bool) -> str:
    if not dry_run:
        return f"{one.branch} is restored at seq {one.seq}."
    if not one.has_present:
        return f"{one.branch} would be restored at seq {one.seq}; it has no store now."
    present = "cannot be read" if one.present_seq is None else f"ends at seq {one.present_seq}"
    return f"{one.branch} would be restored at seq {one.seq}; its present store, which {present}, needs --replace."


def _new_id(one: RestoredBranch, *, dry_run: bool) -> str:
    from kbcore.storage.places import record_range

    new_id = "the store would get a new id" if dry_run else "the store has a new id"
    would_be = "would be " if dry_run else ""
    if one.given_up:
        is_one = sum(row.last - row.first + 1 for row in one.given_up) == 1
        ids, are = ("changeset id", "is") if is_one else ("changeset ids", "are")
        rows = [
            (record_range(row.first, row.last) if row.is_first_known else f"records up to {row.last}")
            + (f" of the store {row.store_id[:12]}" * (len(one.given_up) > 1))
            for row in one.given_up
        ]
        return f"{one.branch}: {new_id}; the {ids} of {' and '.join(rows)} {would_be or f'{are} '}forgotten."
    if one.present_seq is None:
        return f"{one.branch}: {new_id}; the changeset ids of later records {would_be or 'are '}forgotten."
    if not one.is_same_store:
        replaces = "would replace" if dry_run else "replaces"
        return f"{one.branch}: {new_id}; the one that it {replaces} is another store, not an earlier one."
    return f"{one.branch}: {new_id}."
