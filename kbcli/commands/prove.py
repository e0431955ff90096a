"""``kb prove``: what the jobs of an agent cost with KB, with a memory server, and with Markdown files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Session
    from kbcli.prove.job import Job, System
    from kbcli.prove.report import ProveReport

FAILED = 1


def run(
    ctx: typer.Context,
    *,
    job: Annotated[
        list[str] | None,
        typer.Option("--job", metavar="N", help="Only this job, by its number or name; may be repeated."),
    ] = None,
    system: Annotated[
        Literal["kb", "memory", "markdown"] | None, typer.Option("--system", help="Only with this system.")
    ] = None,
    client: Annotated[
        str | None,
        typer.Option(
            "--client",
            metavar="CLIENT",
            help="Have claude-code, codex, gemini or opencode do them, with its own model.",
        ),
    ] = None,
    format_: Annotated[
        Literal["table", "json", "markdown"] | None, typer.Option("--format", help="Default: table.")
    ] = None,
) -> int:
    """Do 20 jobs of an agent, and count their calls and tokens.

    Each job is a script of calls, done with KB over MCP, with the server-memory of the Model Context Protocol, and with
    Markdown files and a shell. A check of the answers and of the result says whether it is done. Four characters of the
    calls and of their answers count as one token; no model is asked.

    With --client, that program of yours gets the requests instead, one run for each job, in a project where KB is
    installed for it. Its model decides on the calls, and costs what it costs; what it asks KB is counted.

    It works in copies of the example project, and deletes them. server-memory runs where `mcp-server-memory` is on the
    PATH. The status is 1 where a job is not done with KB.
    """
    from kbcli.invocation.bounds import check_format
    from kbcli.prove import report
    from kbcli.prove.job import SYSTEMS
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    session.output.is_json = session.output.is_json or format_ == "json"
    if client is not None and system is not None:
        raise InvalidQuery("--client and --system exclude each other.", hint="A client does the jobs with KB alone.")
    systems = [one for one in SYSTEMS if system in {None, one}]
    jobs = _jobs(job or [])
    found = _prove(session, jobs, systems) if client is None else _prove_with(session, jobs, client)
    if session.output.is_json:
        session.output.document(found.as_json())
    elif format_ == "markdown":
        session.output.data(report.markdown(found) + "\n")
    else:
        for line in session.output.table(report.head(found), report.rows(found)):
            session.output.say_as_it_is(line)
        for note in report.notes(found):
            session.output.say(note)
    ended = {*report.DONE, "not run"}
    return FAILED if any(one.system in {"kb", "client"} and one.verdict not in ended for one in found.results) else 0


def _jobs(named: list[str]) -> Sequence[Job]:
    """Return the jobs of these numbers and names, all where none is given. Raises: ``InvalidQuery``."""
    from kbcli.prove.report import JOBS
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean

    known = {str(at): one.name for at, one in enumerate(JOBS, start=1)}
    names = [known.get(one, one) for one in named]
    for one in names:
        if one not in known.values():
            hint = did_you_mean(one, known.values())
            raise InvalidQuery(f"--job: there is no job {in_quotes(one)}.", hint=f"{hint} Or give a number: 1 to 20.")
    return [one for one in JOBS if not names or one.name in names]


def _prove(session: Session, jobs: Sequence[Job], systems: Sequence[System]) -> ProveReport:
    import tempfile
    from pathlib import Path

    from kbcli.prove import run as running
    from kbcli.prove.report import ProveReport
    from kbcli.prove.scene import Scene
    from kbcore import __version__

    memory = running.find_memory(session.env.get("PATH")) if "memory" in systems else None
    versions = {"KB": __version__} | ({"server-memory": running.version_of(memory)} if memory else {})
    with session.output.waiting("Doing jobs"), tempfile.TemporaryDirectory(prefix="kb-prove-") as folder:
        runner = running.ProveRunner(Scene(Path(folder), session.env), memory)
        results = [runner.run(job, system) for job in jobs for system in systems]
        listing = {one: tokens for one in systems if (tokens := runner.listing_tokens(one))}
    return ProveReport(session.machine.clock.now()[:10], versions, listing, results)


def _prove_with(session: Session, jobs: Sequence[Job], client: str) -> ProveReport:
    import tempfile
    from pathlib import Path

    from kbcli.prove.client_run import ClientRunner
    from kbcli.prove.report import ProveReport
    from kbcli.prove.scene import Scene
    from kbcore import __version__

    runner = ClientRunner(client, session.env)
    made = tempfile.TemporaryDirectory(prefix="kb-prove-", ignore_cleanup_errors=True)  # as in `Situation`
    with session.output.waiting("Doing jobs"), made as folder:
        scene = Scene(Path(folder), session.env)
        results = [runner.run(scene, job) for job in jobs]
    versions = {"KB": __version__, client: runner.version()}
    return ProveReport(session.machine.clock.now()[:10], versions, {}, results)
