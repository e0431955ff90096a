"""A language model by OpenAI's API of chat completions, at any base URL: retries, keys, and what its failures say.

Invariant: the key is read when the model is asked, and is in no object that stays, nor in any text: what a server says
is shown without the pieces of the key that it holds.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from kbcore.dml.model import Message, ModelFailed, ToolSpec, Turn
from kbcore.errors import InvalidQuery
from kbcore.secrets import masked
from kbcore.text.escaping import escape_and_cut, in_quotes
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.dml.openai_client import Endpoint, RequestFailure

MODEL_VARIABLE: Final = "KB_DML_MODEL"
URL_VARIABLE: Final = "KB_DML_BASE_URL"
KEY_VARIABLE: Final = "KB_DML_API_KEY"
DEFAULT_URL: Final = "https://api.openai.com/v1"
_SHOWN_CHARS: Final = 400
"""Of what a server says."""
_KEY_PIECE_CHARS: Final = 8
"""As many characters of a key in a row are taken out of a text."""
_LEAST_KEY_CHARS: Final = 4
"""A shorter key, which a server on this machine may ask for, protects nothing, and its letters are in every text."""
_HINTS: Final = {
    "key": f"Look at the key in {KEY_VARIABLE}, and whether it may use this model.",
    "name": f"Look at the name of the model and at the URL: that of most servers ends in /v1 ({URL_VARIABLE}).",
    "moved": f"Set {URL_VARIABLE} to the URL that the server answers at; KB follows no redirect.",
    "quota": "Look at the balance and the limits of the account.",
    "context": "Use `push_context` before the task, shorten what its tools return, or take a model that reads more.",
    "request": "Look whether this model and server support tools; the message names what they refuse.",
    "filtered": "Change what the task asks for, or take another model.",
    "cut_off": "Ask for less in one task, or take a model that may say more.",
    "unreadable": f"Look whether the URL is that of an OpenAI-compatible API: most end in /v1 ({URL_VARIABLE}).",
    "too_large": f"Look whether the URL is that of an OpenAI-compatible API: most end in /v1 ({URL_VARIABLE}).",
    "rate": "Run it again later, or with fewer runs at a time.",
    "server": "Run it again later.",
    "connection": f"Look whether the server runs, and at the URL ({URL_VARIABLE}).",
    "timeout": "Run it again later, or take a model that answers faster.",
    "broken": "Run it again, without streaming if it was on.",
}


class Retries(msgspec.Struct, frozen=True):
    """The number of times a request is sent, and the waits in between: each twice as long as the one before.

    A server that asks for a wait gets it, up to the longest one. If it asks for a longer one, the request fails.
    """

    attempts: int = 5
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0


class OpenAIModel:
    """A ``StreamingModel`` of an OpenAI-compatible server. It needs the extra `dml`."""

    def __init__(
        self,
        name: str = "",
        *,
        env: Mapping[str, str],
        base_url: str = "",
        timeout_s: float = 300.0,
        retries: Retries | None = None,
    ) -> None:
        """Make a model; nothing is imported or sent yet.

        Args:
            name: of the model, as its server has it; ``KB_DML_MODEL`` by default.
            env: the environment. ``KB_DML_API_KEY`` is read from it whenever the model is asked.
            base_url: of the server; ``KB_DML_BASE_URL`` by default, and OpenAI's own without one.
            timeout_s: the longest time from sending one request to the end of its answer.
            retries: what is done after failures that may pass.

        Raises:
            InvalidQuery: no model is named, or the URL is none.
        """
        self._name = name or env.get(MODEL_VARIABLE, "")
        self._url = _checked_url(base_url or env.get(URL_VARIABLE, "") or DEFAULT_URL)
        self._env = env
        self._timeout_s = timeout_s
        self._retries = retries or Retries()
        self._endpoint: Endpoint | None = None
        if not self._name:
            raise InvalidQuery("No model is named.", hint=f"Name it, or set {MODEL_VARIABLE}.")

    def __repr__(self) -> str:
        """Return it by name and URL."""
        return f"{type(self).__name__}({self._name!r}, {self._url!r})"

    async def complete(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        """Return the next turn of a conversation. Raises: ``ModelFailed``."""
        return await self._next_turn(messages, tools, None)

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_text: Callable[[str], Awaitable[None]]
    ) -> Turn:
        """Return as ``complete``; each part of the text is given to ``on_text`` before.

        Where an answer breaks off and the request is sent again, the new text begins on a line of its own.

        Raises:
            ModelFailed: as ``complete``.
        """
        return await self._next_turn(messages, tools, on_text)

    async def _next_turn(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        on_text: Callable[[str], Awaitable[None]] | None,
    ) -> Turn:
        """Ask until there is a turn, or a failure that does not pass. Raises: ``ModelFailed``."""
        key = self._key()
        if self._endpoint is None:
            self._endpoint = await asyncio.to_thread(_endpoint, self._name, self._url, self._timeout_s)
        attempt = 1
        while not isinstance(ended := await _asked(self._endpoint, key, messages, tools, on_text), Turn):
            wait_s = self._wait_s(ended, attempt)
            if wait_s is None:
                raise self._failed(ended, attempt, key)
            await asyncio.sleep(wait_s)
            attempt += 1
        return ended

    def _key(self) -> str:
        """Return the key, "" without one. Raises: ``ModelFailed`` for what cannot be sent."""
        key = self._env.get(KEY_VARIABLE, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise ModelFailed(f"{KEY_VARIABLE} holds characters that no key has", hint=_HINTS["key"])
        return key

    def _wait_s(self, failure: RequestFailure, attempt: int) -> float | None:
        """Return how long to wait before the next attempt, None where there is none."""
        retries = self._retries
        if not failure.may_pass or attempt >= retries.attempts:
            return None
        if failure.wait_s is not None:
            return failure.wait_s if failure.wait_s <= retries.longest_wait_s else None
        most: float = min(retries.longest_wait_s, retries.first_wait_s * 2.0 ** min(attempt - 1, 100))
        return most * random.uniform(0.75, 1.0)  # noqa: S311 - so that many runs do not send at the same time

    def _failed(self, failure: RequestFailure, attempts: int, key: str) -> ModelFailed:
        """Return the error for a failure that is the last one."""
        said = " ".join(masked(without_key(failure.said, key)).split())
        often = f" (after {pluralize(attempts, 'attempt')})" if attempts > 1 else ""
        wait_s = failure.wait_s
        wait = ""
        if wait_s is not None and wait_s > self._retries.longest_wait_s:
            wait = f"; it asks to wait {wait_s:,.0f} s"
        hint = _HINTS[failure.kind]
        if failure.kind == "key" and not key:
            hint = f"Set {KEY_VARIABLE}: it is not set."
        shown = escape_and_cut(said, _SHOWN_CHARS).rstrip(". ")
        return ModelFailed(f"`{self._name}` at {self._url} {shown}{wait}{often}", hint=hint)


async def _asked(
    endpoint: Endpoint,
    key: str,
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    on_text: Callable[[str], Awaitable[None]] | None,
) -> Turn | RequestFailure:
    """Return what one request gives; a text that breaks off gets a line break."""
    is_told = False
    async with aclosing(endpoint.ask(key, messages, tools, is_streaming=on_text is not None)) as parts:
        async for part in parts:
            if isinstance(part, str) and on_text is not None:
                await on_text(part)
                is_told = True
            elif not isinstance(part, str):
                if on_text is not None and is_told and not isinstance(part, Turn):
                    await on_text("\n")
                return part
    raise RuntimeError("a request has ended with neither a turn nor a failure")


def _endpoint(name: str, url: str, timeout_s: float) -> Endpoint:
    """Import what asks a server. Raises: ``ModelFailed`` where the extra is missing."""
    try:
        from kbcore.dml.openai_client import Endpoint  # noqa: PLC0415 - it imports what takes seconds
    except ImportError as error:
        message = f"what asks a model is not installed ({error})"
        raise ModelFailed(message, hint='Install it with `pip install "kb-memory[dml]"`.') from error
    return Endpoint(name, url, timeout_s)


def _checked_url(url: str) -> str:
    """Return a base URL without a slash at its end. Raises: ``InvalidQuery`` for one with more than host and path."""
    try:
        parts = urlsplit(url)
        is_base = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_base = False
    if not is_base or not url.isprintable():
        hint = f"It is like https://host/v1 ({URL_VARIABLE})."
        raise InvalidQuery(f"{in_quotes(masked(url))} is no URL of a server of models.", hint=hint)
    if parts.username is not None or parts.query or parts.fragment:
        hint = f"Give host and path alone; a key is read from {KEY_VARIABLE}."
        shown = f"{parts.scheme}://{parts.hostname}"
        raise InvalidQuery(f"The URL at {in_quotes(shown)} holds a user, a query or a fragment.", hint=hint)
    return url.rstrip("/")


def without_key(text: str, key: str) -> str:
    """Return a text in which each piece of the key is `…`: servers repeat a key, and some a part of it."""
    size = min(len(key), _KEY_PIECE_CHARS)
    if size < _LEAST_KEY_CHARS:
        return text
    pieces = {key[at : at + size] for at in range(len(key) - size + 1)}
    shown: list[str] = []
    hidden_to = 0
    for at, character in enumerate(text):
        if text[at : at + size] in pieces:
            if at >= hidden_to:
                shown.append("…")
            hidden_to = at + size
        if at >= hidden_to:
            shown.append(character)
    return "".join(shown)
