"""Runs a program for the command line: its events are shown as they come, and the status says how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.dml.program_tools import RunTools, ToolChoice
from kbcli.dml.user_input import UserInput
from kbcli.input import changeset_file
from kbcli.invocation import exits
from kbcore.dml import Budget, Model, recording, run_dml
from kbcore.dml.events import Event, Outcome, error_event
from kbcore.dml.model import Message, ModelFailed, ToolSpec, Turn
from kbcore.dml.openai_model import MODEL_VARIABLE, OpenAIModel
from kbcore.dml.recording import RunName, new_run
from kbcore.dml.run import Run
from kbcore.dml.shipped import PREFIX, shipped, shipped_code
from kbcore.errors import Interrupted, InvalidQuery, KBError
from kbcore.text.escaping import escape_controls, escape_lines, json_text

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output

FAILED: Final = exits.VIOLATIONS
"""The status of a run whose program failed."""
_OF_STDIN: Final = "stdin"


class _NoModel:
    """The place of a model where none is named: a program without tasks needs none."""

    async def complete(self, _: Sequence[Message], __: Sequence[ToolSpec]) -> Turn:
        """Raise ``ModelFailed``, which says how to name one."""
        raise ModelFailed("no model is named", hint=f"Name one with `--model NAME`, or set {MODEL_VARIABLE}.")


class RunRequest(msgspec.Struct, frozen=True):
    """The request of the command line."""

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
    code = program_text(asked.file, session.start)
    _check_allowed(asked)
    name = new_run(program_name(asked.file))
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


def program_text(file: str, folder: Path) -> str:
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


def program_name(file: str) -> str:
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
    recorder = Recorder(session, name)
    recorder.begin(code, asked.params, asked.model_name)
    return recorder


class EventView:
    """Shows events one after the other: outputs and answers on standard output, all else on standard error.

    Texts of models and programs are data, and never act on a terminal.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._is_in_stream = False
        """The last thing that was shown is a part of what a model says, without the end of its line."""

    def show(self, event: Event) -> None:
        """Show an event at once. Raises: ``OutputClosed``, ``OutputFailed``."""
        if self._output.is_json:
            self._output.data(json_text(event.as_json()) + "\n")
        elif event.type == "stream":
            self._is_in_stream = True
            self._output.part(escape_lines(event.content))
        else:
            self._end_stream()
            self._show_text(event)
        self._output.flush()

    def _end_stream(self) -> None:
        if self._is_in_stream:
            self._is_in_stream = False
            self._output.part("\n")

    def _show_text(self, event: Event) -> None:
        output, content = self._output, event.content
        if event.type in {"output", "answer"}:
            text = escape_lines(content)
            output.data(text if text.endswith("\n") else f"{text}\n")
        elif event.type == "log":
            said = escape_lines(content)
            if event.code == "warning":
                output.warn(said)
            else:
                output.note(said if not event.code else f"note: {said}")
        elif event.type == "tool_call":
            output.note_always(escape_controls(f"call: {content} {json_text(event.data['arguments'])}"))
        elif event.type == "trace":
            output.note_always(escape_controls(f"trace: {content} {json_text(event.data)}"))
        elif event.type == "finished" and event.outcome == "failure":
            output.note("The program failed: it found no way to do what it was asked.")


class Recorder:
    """The event of one run. A run that is killed leaves its beginning."""

    def __init__(self, session: Session, run: RunName) -> None:
        """Open the branch. Raises: as opening a branch to write."""
        from kbcore.kip.run import KipContext

        opened = session.open()
        self._session = session
        self._run = run
        self._clock = session.machine.clock
        self._around = KipContext(opened.workspace, opened.branch, recording.author_of(run), opened.choice.follows_head)
        self._began_s = self._clock.monotonic_s()

    def begin(self, code: str, params: Mapping[str, Any], model: str) -> None:
        """Record that a program is run. Raises: ``KBError``."""
        at = self._clock.now()
        recording.record(self._around, self._run, recording.begun(self._run, code, params, model, at))
        self._session.signals.renew()  # a signal ends the run, although something was written

    def end(self, run: Run, outcome: Outcome) -> None:
        """Record how it ended. Raises: ``KBError``."""
        duration_s = self._clock.monotonic_s() - self._began_s
        recording.record(self._around, self._run, recording.ended(run, outcome, self._clock.now(), duration_s))

    def say_how_to_revert(self) -> None:
        """Say under which session the run is recorded."""
        from kbcore.errors.remedies import for_shell, kb

        undo = for_shell(self._session.located(kb("revert", "--session", self._run.id)))
        self._session.output.note(f"note: The run is recorded as {self._run.id}; {undo} takes back all that it wrote.")
