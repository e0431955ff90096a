"""Writes the baseline: what is wrong now, so that later reports have only what comes after it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kbcli.check.request import CheckRequest
    from kbcli.invocation.context import Session

_QUESTION: Final = "Accept what the rules find now, so that `kb check` reports only what comes later? [y]es, [n]o"


def write(session: Session, asked: CheckRequest) -> int:
    """Write what is wrong now as the baseline; it keeps what it has of rules that could not run, and they are named.

    Raises: ``InvalidConfig`` where the baseline that is there is needed for that, and cannot be read;
    ``FilesUnknown`` where the files cannot be judged.
    """
    from kbcli.check.run import CheckRun, judged
    from kbcli.invocation import exits
    from kbcli.views.reports.text import warn_of_rules
    from kbcore.checks import write_baseline
    from kbcore.store.settings_files import BASELINE
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    opened = session.open_to_read()
    workspace, output = opened.workspace, session.output
    with output.waiting("Checking"):
        content, _, _ = judged(opened, CheckRun(opened, asked), asked)
    path = f"{workspace.settings_name}/{BASELINE}"
    count = write_baseline(workspace, content.report)
    if output.is_json:
        output.document({"path": path, "violations": count})
        return exits.DONE
    warn_of_rules(output, content)
    output.say(
        escape_controls(
            f"{pluralize(count, 'violation')} written to {path}; commit it. `kb check` reports only others."
        )
    )
    return exits.DONE


def offer(session: Session) -> None:
    """Ask at a terminal whether to write the baseline of a KB without one, and say elsewhere which command does."""
    import typer

    from kbcli.check.request import CheckRequest
    from kbcore.errors import FilesUnknown
    from kbcore.text.escaping import escaped_sentence

    output = session.output
    if not output.is_interactive or output.is_quiet:
        output.say("`kb check --write-baseline` accepts what the rules find now; later runs report what is new.")
        return
    output.flush()
    try:
        answer = typer.prompt(_QUESTION, default="n", err=True, show_default=False).strip().lower()[:1]
    except typer.Abort:
        output.note("")
        return
    if answer != "y":
        return
    try:
        write(session, CheckRequest([], None, staged=False, format="text", fail_on="error"))
    except FilesUnknown as error:
        output.warn(escaped_sentence(f"{error.message} Run `kb sync`, then `kb check --write-baseline`."))
