"""A model that follows a script, in place of a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from kbcore.dml import Message, ToolCall, ToolSpec, Turn, Usage

Step = Turn | Exception | Callable[[Sequence[Message], Sequence[ToolSpec]], Turn]
"""A turn, an error that is raised in its place, or a function of what the model is asked."""

USED = Usage(10, 5)
"""The tokens of each turn that ``says`` makes."""
_numbers = count(1)


class Script:
    """A model that takes one turn after the other from a script, and notes what it was asked.

    A script whose turns are used up raises ``AssertionError``: it was asked more often than the test expects.
    """

    def __init__(self, *steps: Step, forever: Step | None = None) -> None:
        self._steps = [*steps]
        self._forever = forever
        self.asked: list[list[Message]] = []
        """The messages of each request."""
        self.offered: list[list[ToolSpec]] = []
        """The tools of each request."""

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next turn."""
        self.asked.append([*messages])
        self.offered.append([*tools])
        step = self._steps.pop(0) if self._steps else self._forever
        assert step is not None, f"the script has no turn for {messages[-1].text!r}"
        if isinstance(step, Exception):
            raise step
        return step(messages, tools) if callable(step) else step

    @property
    def left(self) -> int:
        """Return how many turns were not asked for."""
        return len(self._steps)

    def tool_names(self, at: int) -> list[str]:
        """Return the names of the tools that were offered with a request."""
        return [tool.name for tool in self.offered[at]]

    def conversation(self, at: int) -> list[str]:
        """Return the messages of a request as `role: text`, without the instructions that come first."""
        return [f"{one.role}: {one.text}" for one in self.asked[at][1:]]


def call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a call of a tool."""
    return ToolCall(f"call-{next(_numbers)}", name, arguments)


def store(name: str, value: Any) -> ToolCall:
    """Return the call that stores an output."""
    return call("set_result", variable=name, value=value)


def finish(success: Any = True) -> ToolCall:
    """Return the call that ends a task."""
    return call("finish", success=success)


def says(text: str = "", *calls: ToolCall) -> Turn:
    """Return a turn with a text and calls of tools."""
    return Turn(text, calls, USED)


def does(*calls: ToolCall) -> Turn:
    """Return a turn with calls alone."""
    return says("", *calls)


def done(**results: Any) -> Turn:
    """Return a turn that stores outputs and ends the task."""
    return does(*(store(name, value) for name, value in results.items()), finish())


GIVES_UP = does(finish(success=False))
