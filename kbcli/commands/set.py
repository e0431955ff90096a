"""``kb set``: set fields of one entity."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun, Message


def run(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="ID", help="The entity.")],
    assignments: Annotated[
        list[str],
        typer.Argument(
            metavar="FIELD=VALUE",
            help="FIELD= removes it; FIELD+=A,B and FIELD-=A change a list; FIELD:=JSON gives JSON.",
        ),
    ],
    *,
    message: Message = "",
    dry_run: DryRun = False,
) -> None:
    """Set fields of one entity, as one record.

    What a Markdown document states is changed in its front matter; comments, order and quotation marks stay. What a
    client has set is changed in the store. A field that is none of KB's own is an attribute.
    """
    from kbcore.editing.setting import set_fields

    session = session_of(ctx)
    target = session.open(dry_run=dry_run).target
    with session.output.waiting("Setting"):
        outcome, edits = set_fields(target, key, assignments, message=message, dry_run=dry_run)
    session.show_outcome(outcome, edits)
