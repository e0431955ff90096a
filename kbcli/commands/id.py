"""``kb id``: ids that are not in use yet."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of
from kbcli.invocation.context import session_of

app = group_of("Give out ids that are not in use yet.")


@app.callback()
def _ids() -> None:
    """Give out ids that are not in use yet."""


@app.command("next", cls=HelpfulCommand)
def next_id(
    ctx: typer.Context,
    kind: Annotated[str, typer.Argument(metavar="TYPE", help="The type of the entity that gets it.")],
    *,
    prefix: Annotated[str, typer.Option("--prefix", metavar="TEXT", help="How it begins, such as REQ-AUTH-.")] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show it, and reserve nothing.")] = False,
) -> None:
    """Print the next free id of a type, and reserve it for an hour.

    The store, its history and the files of the worktree are searched. Another request meanwhile, on any branch and in
    any worktree of this clone, gets another one. Without --prefix it is that of most entities of the type.
    """
    from kbcore.editing.making import take_id
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    opened = session.open_to_read()
    session.begin_request(writes=not dry_run)  # the reservation is of the clone, not of the branch
    key = take_id(opened.target, kind, prefix, dry_run=dry_run)
    if session.output.is_json:
        session.output.document({"branch": opened.branch, "id": key, "reserved": not dry_run})
    else:
        session.output.data(f"{escape_controls(key)}\n")
