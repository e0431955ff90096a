"""``kb check``: run the rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcli.context import Session
    from kbcore.rules import Report


def run(
    ctx: typer.Context,
    *,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule; may be repeated.")
    ] = None,
    format_: Annotated[Literal["text", "json"], typer.Option("--format", help="How to write it.")] = "text",
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option("--fail-on", help="What makes the status 1.")
    ] = "error",
) -> int:
    """Run the rules over the branch, KB's own and the project's.

    Ends with status 1 when a violation counts as a failure, or when a rule could not run.
    """
    import msgspec

    from kbcli import exits
    from kbcore.checks import run_checks

    session = session_of(ctx)
    session.output.is_json = session.output.is_json or format_ == "json"
    opened = session.open_to_read()
    with session.output.waiting("Checking"):
        seq, report = opened.store.read(lambda view: (view.seq, run_checks(opened.workspace, view, only=rule or [])))
    if session.output.is_json:
        shown = msgspec.to_builtins(report)
        session.output.document({"branch": opened.branch, "seq": seq, **shown})
    else:
        _tell(session, f"{opened.branch} at seq {seq}", report)
    return exits.DONE if report.passes(fail_on) else exits.VIOLATIONS


def _tell(session: Session, where: str, report: Report) -> None:
    from kbcli.wording import counted, problem_line
    from kbcore.visible import visible

    output = session.output
    output.is_paged = True
    for one in report.violations:
        colour: Literal["red", "yellow"] = "red" if one.severity == "error" else "yellow"
        subject = "" if one.id in {"", one.source} or one.message.startswith(one.id) else f"{one.id}: "
        text = problem_line(one.source, 0, f"{subject}{one.message}", one.hint) + visible(f" [{one.rule}]")
        output.data(f"{output.styled(one.severity, colour)} {text}\n")
    for run_ in report.rules:
        if run_.status == "not_run":
            output.warn(visible(f"the rule {run_.id} could not run: {run_.reason}"))
    runs = [run_.status for run_ in report.rules]
    how = f"{counted(runs.count('ran'), 'rule')} ran"
    how += f", {runs.count('not_run')} could not run" if "not_run" in runs else ""
    errors = sum(one.severity == "error" for one in report.violations)
    warnings = len(report.violations) - errors
    found = [counted(errors, "error")] * bool(errors) + [counted(warnings, "warning")] * bool(warnings)
    output.say(visible(f"{where}: {', '.join(found) or 'no violations'} ({how})"))
