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

    The stores of all branches are searched, their histories, the files of all worktrees, and the commits of all local
    and remote-tracking branches. Another request meanwhile, on any branch and in any worktree of this clone, gets
    another one. Without --prefix it is that of most entities of the type.
    """
    import msgspec

    from kbcli.messages.lines import seen_line
    from kbcore.editing.creation import take_id
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    opened = session.open_to_read()
    session.begin_request(writes=not dry_run)  # the reservation is of the clone, not of the branch
    taken = take_id(opened.target, kind, prefix, dry_run=dry_run)
    if session.output.is_json:
        found = {
            "last": msgspec.to_builtins(taken.last) if taken.last else None,
            "not_looked_at": [msgspec.to_builtins(one) for one in taken.not_seen],
        }
        session.output.document({"branch": opened.branch, "id": taken.id, "reserved": not dry_run} | found)
        return
    for one in taken.not_seen:
        named = f"the {one.kind} {one.name}" if one.name else f"each {one.kind}"
        session.output.warn(escape_controls(f"{named} was not looked at: {one.reason}"))
    if taken.last:
        session.output.note(f"note: {escape_controls(seen_line(taken.last))}")
    session.output.data(f"{escape_controls(taken.id)}\n")
