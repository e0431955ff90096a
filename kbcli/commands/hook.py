"""``kb hook``: what git's hooks run. Hidden: nobody types it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kbcli.context import session_of

SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}


def run(
    ctx: typer.Context,
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="post-checkout, post-merge, post-rewrite or post-commit.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENT", help="What git hands to the hook.")
    ] = None,
) -> int:
    """Keep the branch's store in step with the tree; git's hooks run this. The status is always 0."""
    from kbcli import hookrun

    words = [event, *(arguments or [])]
    return hookrun.run(words, session_of(ctx).env) if hookrun.is_event(words) else 0
