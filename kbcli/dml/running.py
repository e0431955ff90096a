"""Runs a program for the command line: its events are shown as they come, and the status says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.dml.event_view import EventView
from kbcli.dml.program_tools import RunTools, ToolChoice
from kbcli.dml.user_input import UserInput
from kbcli.input import changeset_file
from kbcli.invocation import exits
from kbcore.dml import Budget, Model, run_dml
from kbcore.dml.events import Event, Outcome, error_event
from kbcore.dml.model import Message, ModelFailed, ToolSpec, Turn
from kbcore.dml.openai_model import MODEL_VARIABLE, OpenAIModel
from kbcore.dml.recording import RunName, new_run
from kbcore.dml.run import Run
from kbcore.dml.shipped import PREFIX, shipped, shipped_code
from kbcore.errors import Interrupted, InvalidQuery, KBError
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.dml.recorder import Recorder
    from kbcli.invocation.context import Session

FAILED: Final = exits.VIOLATIONS
"""The status of a run whose program failed."""
_OF_STDIN: Final = "stdin"


class _NoModel:
    """The place of a model where none is named: a program without tasks needs none."""

    async def complete(self, _: Sequence[Message], __: Sequence[ToolSpec]) -> Turn:
        """Raise ``ModelFailed``, which says how to name one."""
        raise ModelFailed("no model is named", hint=f"Name one with `--model NAME`, or set {MODEL_VARIABLE}.")


class RunRequest(msgspec.Struct, frozen=True):
    """What the command line asks for."""

    file: str
    params: Mapping[str, Any]
    args: Sequence[Any]
    tools: ToolChoice
    model: Model
    model_name: str
    budget: Budget
    workspace: Path | None
    stream: bool = False
    trace: bool = False
    record: bool = False


def run_program(session: Session, asked: RunRequest) -> int:
    """Run a program, and return the status to exit with.

    Raises: ``KBError`` where nothing was run, or the run could not be recorded; ``KeyboardInterrupt``.
    """
    code = code_of(asked.file, session.start)
    _check_allowed(asked)
    name = new_run(name_of(asked.file))
    tools = RunTools(asked.tools, session.start, session.env, name, session.named_branch)
    try:
        recorder = _recorder(session, asked, name, code)
        view = EventView(session.output)
        run = _run_of(session, asked, code, tools)
        outcome = asyncio.run(_shown(run, view))
        if recorder:
            recorder.end(run, outcome)
        data = {"spent": run.spent.as_json(), "run": name.id}
        view.show(Event("finished", outcome=outcome, data=data))
        if recorder:
            recorder.say_how_to_revert()
        if run.error is not None:
            session.writes = False  # the run may have written, and what it wrote stays
            return run.error.exit_status if session.output.is_json else session.show_error(run.error)
        return exits.DONE if outcome == "success" else FAILED
    finally:
        tools.close()


def show_unrun(session: Session, error: KBError) -> int:
    """Show as events that a program was not run, and return the status of the error."""
    view = EventView(session.output)
    view.show(error_event(error))
    view.show(Event("finished", outcome="error"))
    return error.exit_status


def interrupted() -> Interrupted:
    """Return the error of a run that a signal has ended."""
    return Interrupted("The run was interrupted.", hint="Run it again.")


def code_of(file: str, folder: Path) -> str:
    """Return a program: that of a file, of standard input (`-`), or a shipped one (`kb:NAME`).

    Raises: ``InvalidQuery``, ``NotFound``, ``LimitExceeded``.
    """
    if file.startswith(PREFIX):
        return shipped_code(file.removeprefix(PREFIX))
    return changeset_file.text_in(file, folder)


def model_of(name: str, base_url: str, env: Mapping[str, str]) -> tuple[Model, str]:
    """Return the model that is named, and its name; the key is read from the environment when it is asked.

    Raises: ``KBError`` where what it needs is not installed.
    """
    chosen = name or env.get(MODEL_VARIABLE, "")
    if not chosen:
        return _NoModel(), ""
    return OpenAIModel(chosen, env=env, base_url=base_url), chosen


def name_of(file: str) -> str:
    """Return the name of a program in records and messages."""
    if file.startswith(PREFIX):
        return file
    return _OF_STDIN if file == changeset_file.STDIN else Path(file).name


def folder_of(session: Session, name: str) -> Path:
    """Return the folder whose files a program may have. Raises: ``InvalidQuery`` where it is none."""
    folder = session.start / name
    if not folder.is_dir():
        message = f"--workspace: there is no folder {escape_controls(str(folder))}."
        raise InvalidQuery(message, hint="Name a folder that exists.")
    return folder


def _check_allowed(asked: RunRequest) -> None:
    """Refuse to run a shipped program without what it needs. Raises: ``InvalidQuery``."""
    if not asked.file.startswith(PREFIX):
        return
    program = shipped(asked.file.removeprefix(PREFIX))
    policy = asked.tools.policy
    refused = [name for name in program.tools if policy.refusal(name)]
    refused += [name for name in program.writing if not asked.tools.allows_writing(name) and name not in refused]
    if refused:
        options = " ".join(f"--allow {name}" for name in program.tools)
        raise InvalidQuery(f"{asked.file} needs the tools {', '.join(program.tools)}.", hint=f"Run it with {options}.")


def _run_of(session: Session, asked: RunRequest, code: str, tools: RunTools) -> Run:
    reads_program = asked.file == changeset_file.STDIN
    return run_dml(
        code,
        params=asked.params,
        args=asked.args,
        model=asked.model,
        tools=tools.toolset,
        workspace=asked.workspace,
        on_input=None if reads_program else UserInput(session.output).ask,
        budget=asked.budget,
        stream=asked.stream,
        trace=asked.trace,
        tool_calls=asked.trace,
        file=escape_controls(asked.file),
        env=session.env,
    )


async def _shown(run: Run, view: EventView) -> Outcome:
    """Show the events of a run but the last one and, where it is text, the error, and return how it ended."""
    outcome: Outcome = "error"
    events = aiter(run)
    try:
        async for event in events:
            if event.type == "finished":
                outcome = event.outcome or "error"
            else:
                view.show(event)
    finally:
        await run.aclose()
    return outcome


def _recorder(session: Session, asked: RunRequest, name: RunName, code: str) -> Recorder | None:
    if not asked.record:
        return None
    from kbcli.dml.recorder import Recorder

    recorder = Recorder(session, name)
    recorder.begin(code, asked.params, asked.model_name)
    return recorder
