"""``kb hook``: the command of the git hooks. Hidden: it is not typed."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kbcli.invocation.context import session_of

SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}


def run(
    ctx: typer.Context,
    event: Annotated[
        str, typer.Argument(metavar="EVENT", help="post-checkout, post-merge, post-rewrite, post-commit or pre-commit.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENT", help="The arguments that git passes to the hook.")
    ] = None,
) -> int:
    """Keep the branch's store in step with the tree; git's hooks run this. The status is always 0."""
    from kbcli.invocation import git_hook

    words = [event, *(arguments or [])]
    return git_hook.run(words, session_of(ctx).env) if git_hook.is_event(words) else 0
