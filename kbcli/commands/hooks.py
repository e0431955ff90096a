"""``kb hooks``: install, remove or look at the git hooks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of, run_by_default
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.hooks import HookResult
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore.git import Repository

app = group_of("Install, remove or show the git hooks; without a command, show them.")


_PATH = typer.Option("--hooks-path", metavar="DIR", help="Use only the hook files in this folder.")


@app.command("install", cls=HelpfulCommand)
def install(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> int:
    """Have git run KB, by its configuration or in the hook files that it runs; other hooks and lines stay."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    return _show_results(session, hooks.install(repo, session.env, hooks_path=folder, fallback=hooks.own_program()))


@app.command("uninstall", cls=HelpfulCommand)
def uninstall(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> int:
    """Take KB out of git's configuration and out of the hook files; other hooks and lines stay."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    return _show_results(session, hooks.uninstall(repo, session.env, hooks_path=folder))


@app.command("status", cls=HelpfulCommand)
def status(ctx: typer.Context, hooks_path: Annotated[str | None, _PATH] = None) -> int:
    """Say whether git runs the hooks, and write nothing."""
    from kbcli import hooks

    session, repo, folder = _place(ctx, hooks_path)
    return _show_results(session, hooks.status(repo, session.env, hooks_path=folder, fallback=hooks.own_program()))


run_by_default(app, status)


def _place(ctx: typer.Context, hooks_path: str | None) -> tuple[Session, Repository, Path | None]:
    session = session_of(ctx)
    repo = session.workspace_as_it_is().repo
    return session, repo, session.start / hooks_path if hooks_path else None


def _show_results(session: Session, results: Sequence[HookResult]) -> int:
    """Show the state of the hooks, and return the status to end with."""
    from kbcli.invocation import exits

    output = session.output
    if output.is_json:
        output.document({"hooks": [result.as_json() for result in results]})
    else:
        show_hooks(output, results)
    return exits.status_of_hooks(results)


def show_hooks(output: Output, results: Sequence[HookResult]) -> None:
    """Show the state of the hooks; what the system refused also with ``--quiet``. A text for several comes once."""
    from kbcli.messages.lines import hook_line
    from kbcore.text.escaping import escape_lines

    for result, following in zip_longest(results, results[1:]):
        if result.state == "failed":
            output.warn(f"{hook_line(result)}: {escape_lines(result.hint)}")
            continue
        output.say(hook_line(result))
        if result.remedy and (following is None or following.remedy != result.remedy):
            output.note(escape_lines(result.hint))
    for note in dict.fromkeys(result.note for result in results if result.note):
        output.say(escape_lines(note))
