"""``kb kip``: run KIP on the branch, with one command, a file of them, or at a prompt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.errors import KipRefused
    from kbcore.kip.request import KipRequest

_COMMAND = typer.Argument(metavar="COMMAND|-", help="One command of KIP, or several; - is standard input.")
_FILE = typer.Option("-f", "--file", metavar="FILE|-", help="A file of commands, which run one after the other.")
_PARAM = typer.Option(
    "--param", metavar="NAME=VALUE", help="The value of :NAME: JSON if it is JSON, else text; may be repeated."
)
_DRY_RUN = typer.Option("--dry-run", help="Check what would be written in full, and write nothing.")


def run(
    ctx: typer.Context,
    command: Annotated[str | None, _COMMAND] = None,
    *,
    file: Annotated[str | None, _FILE] = None,
    param: Annotated[list[str] | None, _PARAM] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
) -> int:
    """Run commands of KIP on the branch: FIND, UPSERT, UPDATE, MERGE, DELETE, EXPORT, DESCRIBE and SEARCH.

    Without a command it shows a prompt, at which commands may run over several lines. Each command that writes is one
    record, all of it or nothing; the first one that fails ends the run. With --json the answer is that of execute_kip.
    """
    from kbcore.errors import InvalidQuery, KipRefused

    session = session_of(ctx)
    if command is not None and file is not None:
        raise InvalidQuery("A command and --file contradict each other.", hint="Give one of the two.")
    from kbcli.invocation.parameters import parameters_of
    from kbcli.kip.requests import request_of

    parameters = parameters_of(param or ())
    if command is None and file is None and session.output.is_interactive and not session.output.is_json:
        from kbcli.kip.prompt import converse

        return converse(session, parameters, dry_run=dry_run)
    text = _text(session, command, file)
    try:
        request = request_of(text, parameters, dry_run=dry_run)
    except KipRefused as error:
        status = _refuse(session, error)
        if command in {None, "-"} and not session.output.is_json:
            session.output.error_detail("No command of the text was run: the whole text is parsed first.")
        return status
    return _answer(session, request)


def _text(session: Session, command: str | None, file: str | None) -> str:
    from kbcli.input import changeset_file

    if command not in {None, changeset_file.STDIN}:
        return str(command)
    return changeset_file.text_in(file or changeset_file.STDIN, session.start)


def _refuse(session: Session, error: KipRefused) -> int:
    from kbcli.kip import answers
    from kbcore.kip.errors import envelope

    body = envelope(error)
    if session.output.is_json:
        session.output.document(body)
    else:
        answers.write_error(session.output, body["error"])
    return error.exit_status


def _answer(session: Session, request: KipRequest) -> int:
    from kbcli.kip.answers import write_answer
    from kbcli.kip.run_request import carried_out, status_of

    answer, branch = carried_out(session, request)
    if session.output.is_json:
        session.output.document(answer.response)
    else:
        write_answer(session, request, answer, branch)
    return status_of(answer)
