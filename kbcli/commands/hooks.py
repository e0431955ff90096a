"""``kb hooks``: install, remove or look at the git hooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.options import session_of
from kbcli.tree import Command, group_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcli.hooks import HookResult
    from kbcore.git import Repository

app = group_of("Install, remove or look at the git hooks.")
_PATH = typer.Option("--hooks-path", metavar="DIR", help="The folder; by default the one that git uses.")


@app.command("install", cls=Command)
def install(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> None:
    """Add KB's lines to the hooks that git runs; other lines stay."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    _tell(session, hooks.install(repo, session.env, hooks_path=folder, fallback=hooks.own_program()))


@app.command("uninstall", cls=Command)
def uninstall(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> None:
    """Take KB's lines out of the hooks; other lines stay."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    _tell(session, hooks.uninstall(repo, session.env, hooks_path=folder))


@app.command("status", cls=Command)
def status(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> None:
    """Say how the hooks stand, and write nothing."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    _tell(session, hooks.status(repo, session.env, hooks_path=folder, fallback=hooks.own_program()))


def _place(ctx: typer.Context, hooks_path: str | None) -> tuple[Session, Repository, Path | None]:
    from kbcore import git

    session = session_of(ctx)
    repo = git.find_repository(session.start, **session.git_places)
    return session, repo, session.start / hooks_path if hooks_path else None


def _tell(session: Session, results: Sequence[HookResult]) -> None:
    import msgspec

    from kbcli.wording import hook_line
    from kbcore.visible import visible_lines

    output = session.output
    if output.is_json:
        output.document({"hooks": [msgspec.to_builtins(result) for result in results]})
        return
    for result in results:
        output.say(hook_line(result))
        if result.remedy:
            output.note(visible_lines(result.remedy))
