"""The answer to a request, command by command, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kbcli.kip import answers
from kbcore.kip import syntax as s
from kbcore.kip.parsing import parse
from kbcore.text.escaping import escape_controls, escaped_sentence

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.kip.request import KipRequest
    from kbcore.kip.run import KipAnswer


def tell_answer(session: Session, request: KipRequest, answer: KipAnswer, branch: str) -> None:
    """Write the answer to each command of a request, and last why one was refused."""
    output = session.output
    responses: list[dict[str, Any]] = answer.response["result"] if request.is_batch else [answer.response]
    has_written = False
    for at, (command, response) in enumerate(zip(request.commands, responses, strict=False)):
        if at and not output.is_quiet:
            output.data("\n")
        if "error" in response:
            answers.tell_error(output, response["error"])
            continue
        tree = parse(command.text, lead=command.lead)
        answers.tell(output, tree, response)
        has_written = has_written or isinstance(tree, s.Upserts | s.Delete | s.Update | s.Merge)
    if has_written:
        told = (
            "Nothing was written: this was a dry run" if request.dry_run else f"Branch {branch} is at seq {answer.seq}"
        )
        output.note(f"{escape_controls(told)}.")
    if answer.files is not None:
        session.tell_files(branch, answer.files)
    for warning in answer.warnings:
        output.warn(escaped_sentence(warning))
