"""A language model as a program sees it: messages and tools in, one turn out. Plain data and two protocols."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

Role = Literal["system", "user", "assistant", "tool"]


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool that a model asks for. ``problem`` says why its arguments could not be read, "" as a rule."""

    id: str
    name: str
    arguments: dict[str, Any]
    problem: str = ""


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation. ``calls`` are those of the assistant; a tool's message answers ``call_id``."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool: str = ""
    """The name of the tool that the message is of."""


class ToolSpec(msgspec.Struct, frozen=True):
    """A tool that is offered to a model. ``parameters`` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one turn or of many, and what they cost in US dollars; None where no price is known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Return the sum; the cost of one is enough to have a cost."""
        known = [one.cost_usd for one in (self, other) if one.cost_usd is not None]
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            sum(known) if known else None,
        )

    @property
    def tokens(self) -> int:
        """Return all tokens."""
        return self.input_tokens + self.output_tokens


class Turn(msgspec.Struct, frozen=True):
    """One answer of a model: text, calls of tools, or both."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()


class ModelFailed(Exception):
    """The model could not be asked, or its answer not be read. Raised in the program, where ``catch/3`` may see it.

    The message is a part of a sentence, without a full stop; ``hint`` says what to do, "" where nobody knows.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@runtime_checkable
class Model(Protocol):
    """A language model, or a script in its place."""

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next turn of a conversation.

        Raises:
            ModelFailed: transport or provider failed, after what retries there are.
        """
        ...


@runtime_checkable
class StreamingModel(Model, Protocol):
    """A model that can tell its text while it comes."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_text: Callable[[str], Awaitable[None]]
    ) -> Turn:
        """Return as ``complete``; each part of the text is given to ``on_text`` before.

        Raises: as ``complete``.
        """
        ...
