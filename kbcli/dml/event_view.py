"""The events of a run as they are shown: text for people, or one JSON document on each line for programs.

Texts of models and programs are data, and never act on a terminal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcore.text.escaping import escape_controls, escape_lines, json_text

if TYPE_CHECKING:
    from kbcli.terminal.output import Output
    from kbcore.dml.events import Event


class EventView:
    """Shows events one after the other: outputs and answers on standard output, all else on standard error."""

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
