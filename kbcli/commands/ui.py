"""``kb ui``: show the branch in the browser, live."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbcli.invocation.context import Session

_MAX_PORT = 65_535


def run(
    ctx: typer.Context,
    *,
    port: Annotated[int, typer.Option("--port", metavar="N", help="The port; 0 is any that is free.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Only print the address.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Offer forms that change entities and revert records.")
    ] = False,
) -> int:
    """Show the branch in the browser, live, until interrupted: the pages of the report, the history, and what changes.

    It only reads, unless --write, and listens on 127.0.0.1 alone. The address that it prints opens it in one browser,
    once; nobody else gets an answer.
    """
    from kbcli.invocation import exits
    from kbcli.invocation.bounds import check_bounds
    from kbcli.invocation.signals import Deadline
    from kbweb.server.opening import open_browser
    from kbweb.server.reading import ReadTarget
    from kbweb.server.serve import ExplorerServer

    session, ending = session_of(ctx), Deadline()
    check_bounds("--port", port, _MAX_PORT, "any that is free", least=0)
    session.open_to_read()
    target = ReadTarget(session.start, session.named_branch, session.machine, session.author, session.git_places)
    server = ExplorerServer(target, port, _reporting(session), writes=write)
    with ending.by_signals(server.stop):
        address = server.address()
        if session.output.is_json:
            session.output.document({"url": address, "port": server.port})
        else:
            session.output.say(f"The explorer is at {address}")
            session.output.note("The address opens it once. Ctrl-C ends it.")
        session.output.flush()
        if not no_open and not open_browser(server.address()):
            session.output.note("No browser was found to open it with.")
        server.run()
    return exits.DONE


def _reporting(session: Session) -> Callable[[BaseException], None]:
    """Return what says that a page failed unexpectedly, and writes a report of it."""
    from kbcli.invocation.bug_report import show_bug

    def report(error: BaseException) -> None:
        show_bug(session.output, error, session.words, session.cache())

    return report
