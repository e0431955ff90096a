"""Events of a run while it goes on, in the order in which they came about."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

from kbcore.errors import KBError

EventType = Literal["output", "log", "answer", "input_required", "error", "finished", "stream", "tool_call", "trace"]
Outcome = Literal["success", "failure", "error"]

CHANNELS: Final[frozenset[str]] = frozenset({"stream", "tool_call", "trace"})
"""Events that are only sent where they were asked for."""


class Event(msgspec.Struct, frozen=True):
    """One event. ``content`` is its text; ``data`` has what else belongs to it.

    ``input_required`` has its ``prompt``; ``finished``, which is the last one, its ``outcome``. An ``error`` has the
    ``code`` of the taxonomy (``kbcore.errors``), and a ``log`` that says why something was not done one of its own:
    `blocked`, `unknown_tool`, `tool_failed`, `task_failed`, `warning`.
    """

    type: EventType
    content: str = ""
    prompt: str = ""
    outcome: Outcome | None = None
    code: str = ""
    data: dict[str, Any] = {}

    def as_json(self) -> dict[str, Any]:
        """Return it as a line of `--json` has it: `type`, `content` or what is in its place, then the rest."""
        if self.type == "finished":
            return {"type": self.type, "outcome": self.outcome, **self.data}
        if self.type == "input_required":
            return {"type": self.type, "prompt": self.prompt}
        code = {"code": self.code} if self.code else {}
        return {"type": self.type, "content": self.content, **code, **self.data}


def error_event(error: KBError) -> Event:
    """Return the event that says what ended a run."""
    details = [one.as_json() for one in error.details]
    data: dict[str, Any] = {"hint": error.hint, "details": details} if details else {"hint": error.hint}
    return Event("error", error.message, code=error.code, data=data | error.data)
