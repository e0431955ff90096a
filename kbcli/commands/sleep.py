"""``kb sleep``: keep in order what agents remember, and list what needs judgement."""

from __future__ import annotations

from typing import Annotated

import typer

from kbcli.invocation.context import session_of


def run(
    ctx: typer.Context,
    *,
    phase: Annotated[
        list[int] | None, typer.Option("--phase", metavar="N", help="Only this phase, 1 to 9; may be repeated.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done; write nothing.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Also within the interval since the last cycle.")] = False,
) -> None:
    """Maintain the memory of agents in KIP, as far as that needs no judgement, and list what does.

    A cycle has nine phases: look, tasks, Unsorted, what has no domain, old events, duplicates, confidence, domains, and
    the maintenance log. Each is one record, which `kb revert` can undo. Facts that files state are not changed. Only
    one cycle of a branch runs at a time, and the next one waits for `sleep.intervalHours`.
    """
    from kbcli.messages import sleep_report
    from kbcore.kip.sleep.cycle import SleepOptions
    from kbcore.kip.sleep.cycle import run as sleep

    session = session_of(ctx)
    opened = session.open(dry_run=dry_run)
    options = SleepOptions(tuple(phase or ()), dry_run, force)
    with session.output.waiting("Sleeping"):
        report = sleep(
            opened.workspace, opened.branch, session.author, options, follows_head=opened.choice.follows_head
        )
    if session.output.is_json:
        session.output.document(report.as_json())
    elif not session.output.is_quiet:
        sleep_report.show(session.output, report)
