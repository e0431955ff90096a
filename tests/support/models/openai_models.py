"""Models on a server of ``chat_server``, and questions to them."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest

from kbcore.dml.model import Message, ModelFailed, ToolSpec, Turn
from kbcore.dml.openai_model import OpenAIModel, Retries
from tests.support.models.chat_server import CANARY, ChatServer

QUICK = Retries(attempts=3, first_wait_s=0.001, longest_wait_s=0.01)
ASK = [Message("system", "Be short."), Message("user", "Say it.")]
FINISH = ToolSpec(
    "finish",
    "End the task.",
    {
        "type": "object",
        "properties": {"success": {"type": "boolean"}},
        "required": ["success"],
        "additionalProperties": False,
    },
)
TRANSPORTS = pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])
"""The cases of a test: the answer is one JSON document, or a stream."""


def model_of(server: ChatServer, *, env: Mapping[str, str] | None = None, **settings: Any) -> OpenAIModel:
    """Return a model on a server, which repeats requests quickly."""
    found = {"retries": QUICK, "timeout_s": 20.0, "base_url": server.url} | settings
    return OpenAIModel("a-model", env={"KB_DML_API_KEY": CANARY} if env is None else env, **found)


def ask(
    model: OpenAIModel,
    *,
    streams: bool = False,
    messages: list[Message] | None = None,
    parts: list[str] | None = None,
) -> Turn:
    """Return the turn of a model, asked with ``messages``; ``parts`` gets the parts of a stream."""
    notes = [] if parts is None else parts

    async def tell(text: str) -> None:
        notes.append(text)

    given = messages or ASK
    return run(model.stream(given, [FINISH], tell) if streams else model.complete(given, [FINISH]))


def run(asked: Coroutine[Any, Any, Turn]) -> Turn:
    """Run a request to its end."""
    return asyncio.run(asked)


def failure_of(model: OpenAIModel, *, streams: bool = False) -> ModelFailed:
    """Return why a model fails."""
    with pytest.raises(ModelFailed) as caught:
        ask(model, streams=streams)
    return caught.value
