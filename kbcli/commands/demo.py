"""`kb demo`: sets the example project up in a directory of its own and takes the tour on it, with real processes.

Everything shown is what the programs answered. Nothing outside of that directory is read or written, the user's git
configuration included.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from kbcli.demo import project, tour
from kbcli.invocation.context import session_of
from kbcli.terminal.output import Output
from kbcore.errors import InvalidQuery
from kbcore.text.escaping import escape_controls, escape_lines

if TYPE_CHECKING:
    from kbcli.demo import client

FAILED: Final = 1
_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "kb": (sys.executable, "-m", "kbcli.app"),
    "kb-mcp": (sys.executable, "-m", "kbmcp.server"),
}


class ShownStep(msgspec.Struct, frozen=True):
    """A step as it ended; ``is_expected`` says whether it ended as the tour expects."""

    typed: str
    answer: str
    is_expected: bool


def run(
    ctx: typer.Context,
    into: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Set the project up there; DIR must be empty or absent."),
    ] = None,
) -> int:
    """Show KB at work on an example project, in a directory of its own, which stays for you to look around in."""
    session = session_of(ctx)
    home = _place(session.start, into)
    child_env = project.child_env(session.env, home)
    project.set_up(home, child_env)
    guide = _Guide(session.output, home, child_env, _program(session.env))
    failures = [step for part in tour.PARTS for step in guide.take(part) if not step.is_expected]
    guide.close(failures)
    return FAILED if failures else 0


def _place(start: Path, into: str | None) -> Path:
    """Return the new or empty directory for the project.

    Raises: ``InvalidQuery`` when the user's choice cannot be it.
    """
    if into is None:
        return Path(tempfile.mkdtemp(prefix="kb-demo-")) / "waymark"
    home = start / into
    if home.exists() and (not home.is_dir() or any(home.iterdir())):
        raise InvalidQuery(f"--into: {escape_controls(str(home))} is not an empty directory.", hint="Name a new one.")
    return home


def _program(env: Mapping[str, str]) -> str:
    """Return how the user calls ``kb``: by its name where PATH has it, else by its place."""
    beside = Path(sys.executable).parent / "kb"
    is_needed = shutil.which("kb", path=env.get("PATH", os.defpath)) is None and beside.is_file()
    return str(beside) if is_needed else "kb"


class _Guide:
    """Takes the steps one by one, and shows each as it ends."""

    def __init__(self, output: Output, home: Path, env: Mapping[str, str], program: str) -> None:
        self._output = output
        self._program = program
        self._home = home
        self._env = env
        self._done: list[ShownStep] = []

    def take(self, part: tour.TourPart) -> list[ShownStep]:
        """Take the steps of one part and return how they ended."""
        self._show("", self._output.styled(f"== {part.title} ==", "bold"))
        ended = []
        for step in part.steps:
            if step.why:
                self._show("", self._output.styled(step.why, "cyan"))
            if isinstance(step, tour.TourCommand):
                ended.append(self._command(step))
            elif isinstance(step, tour.Edit):
                ended.append(self._edit(step))
            else:
                ended.extend(self._talk(step))
        self._done += ended
        return ended

    def close(self, failures: list[ShownStep]) -> None:
        """Say where everything is and what to try, or what went wrong."""
        if self._output.is_json:
            steps = [msgspec.to_builtins(step) for step in self._done]
            self._output.document({"directory": str(self._home), "ok": not failures, "steps": steps})
            return
        if failures:
            self._show("", f"{len(failures)} of {len(self._done)} steps ended otherwise than they should:")
            for step in failures:
                self._output.error(escape_controls(step.typed))
            return
        place, kb = shlex.quote(str(self._home)), shlex.quote(self._program)
        self._show(
            "",
            self._output.styled("That was it.", "bold") + " The project stays where it is, until you delete it:",
            f"  cd {place}",
            "Then, for example:",
            f"  {kb} query req --lacks ^implements",
            f"  {kb} query --text clock",
            f"  {kb} log TEST-006",
            f"  rm -r {place}",
        )

    def _command(self, step: tour.TourCommand) -> ShownStep:
        self._show(f"$ {step.line}")
        words = shlex.split(step.line)
        status, answer = project.spawn([*_PROGRAMS.get(words[0], words[:1]), *words[1:]], self._home, self._env)
        self._answer(answer)
        is_expected = status == step.status and all(text in answer for text in step.shows)
        if status and status == step.status:
            self._show(f"(status {status})")
        return self._shown(step.line, answer, is_expected, f"It ended with status {status}.")

    def _edit(self, step: tour.Edit) -> ShownStep:
        (self._home / step.path).write_text(step.text, encoding="utf-8")
        self._show(f"$ $EDITOR {step.path}")
        self._answer(step.text)
        return self._shown(step.path, step.text, is_expected=True)

    def _talk(self, step: tour.Talk) -> list[ShownStep]:
        from kbcli.demo import client

        self._show(f"$ {step.line}")
        program, *arguments = (*_PROGRAMS[step.line],)
        server = client.ServerProgram(program, tuple(arguments), self._env, self._home)
        calls = [client.ServerCall(call.tool, call.arguments) for call in step.calls]
        said = client.converse(server, tour.AGENT, calls)
        self._show(f"connected over stdio, MCP {said.protocol}; tools: {', '.join(said.tools)}")
        before = [None, *step.calls]
        return [self._call(*one) for one in zip(step.calls, said.answers, before, strict=False)]

    def _call(self, call: tour.TourCall, answer: client.ToolAnswer, before: tour.TourCall | None) -> ShownStep:
        text = tour.shown_json(answer.document)
        is_again = before is not None and before.arguments == call.arguments
        self._show("", self._output.styled(call.why, "cyan"))
        self._show(f"--> {call.tool} {'(as before)' if is_again else tour.shown_json(call.arguments)}")
        self._answer(f"<-- {'error ' if answer.is_error else ''}{text}\n")
        is_expected = answer.is_error == call.is_error and all(part in text for part in call.shows)
        return self._shown(call.tool, text, is_expected, "The answer is not what it should be.")

    def _shown(self, typed: str, answer: str, is_expected: bool, fault: str = "") -> ShownStep:
        if not is_expected:
            self._output.error(f"The tour did not expect this. {fault}")
        return ShownStep(typed, answer, is_expected)

    def _answer(self, text: str) -> None:
        if text.strip():
            self._show(escape_lines(text.rstrip("\n")))

    def _show(self, *lines: str) -> None:
        for line in lines:
            self._output.say_as_it_is(line)
        self._output.flush()
