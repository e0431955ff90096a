"""One request to a server with OpenAI's API of chat completions: a conversation in, the parts of a turn out.

The only module that imports pydantic-ai, openai and httpx2. It is imported when a model is asked for the first time,
because that takes seconds. Of pydantic-ai it uses single requests alone: retries and the loop of a task are KB's.

Invariant: a request has the headers of HTTP and the key, and nothing else of the environment; no redirect is followed.
All connections are closed when a request ends, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from typing import Any, Final, Literal, NoReturn

import httpx2
import msgspec
from pydantic_ai import exceptions
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    PartDeltaEvent,
    PartStartEvent,
    SystemPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from kbcore.dml.model import Message, ToolCall, ToolSpec, Turn, Usage
from kbcore.dml.values import MAX_VALUE_NESTING, NotAValue, fault_of, integer_of
from kbcore.limits import MAX_MODEL_ANSWER_BYTES, MIB

FailureKind = Literal[
    "key", "name", "quota", "context", "request", "moved",  # the request, or what it is sent to, has to be changed
    "filtered", "cut_off", "unreadable", "too_large",  # of the answer
    "rate", "server", "connection", "timeout", "broken",  # the same request may succeed later
]  # fmt: skip
_PASSING: Final[frozenset[FailureKind]] = frozenset({"rate", "server", "connection", "timeout", "broken"})
_KINDS: Final[tuple[tuple[type[Exception], FailureKind], ...]] = (
    (exceptions.ModelAuthenticationError, "key"),
    (exceptions.ModelNotFoundError, "name"),
    (exceptions.ModelQuotaExceededError, "quota"),
    (exceptions.ModelContextWindowExceededError, "context"),
    (exceptions.ModelRequestRejectedError, "request"),
    (exceptions.ModelRateLimitError, "rate"),
    (exceptions.ModelUnavailableError, "server"),
    (exceptions.ModelServerError, "server"),
    (exceptions.ModelHTTPError, "request"),
    (exceptions.ModelRequestTimeout, "timeout"),
    (exceptions.ModelTimeoutError, "timeout"),
    (exceptions.ModelConnectionError, "connection"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (exceptions.ModelAPIError, "broken"),
)
"""The first class that fits decides; an error of no such class is an answer that the library cannot read."""
_PASSING_STATUSES: Final = frozenset({408, 409, 425})
_HEADERS: Final = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent"}
)
"""The headers of the client of openai that are sent, some of them from the environment."""
_PROVIDER: Final = "server"
"""The name of no provider that the library knows: prices are found by the URL alone, and a model on the user's own
machine that is named as one of OpenAI's has none."""
_NO_KEY: Final = "none"
"""The client of openai refuses to be made without a key; it is not sent."""
_NOTED_BYTES: Final = 1000
"""Of an answer, for the message about one that cannot be read."""
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that servers take (OpenAI API reference, "Create chat completion", tools)."""
_NO_RESULT: Final = "The result of this call is not known yet."


class RequestFailure(msgspec.Struct, frozen=True):
    """A request that failed. ``said`` goes on with a sentence that begins with the model; it may hold the key."""

    kind: FailureKind
    said: str
    wait_s: float | None = None
    """The wait that the server asks for."""

    @property
    def may_pass(self) -> bool:
        """Tell whether the same request may succeed later."""
        return self.kind in _PASSING


class AnswerTooLarge(Exception):
    """The server sends more than an answer may have."""


class Endpoint:
    """A model of a server. ``timeout_s`` is the longest time for one request, its answer included."""

    def __init__(self, name: str, url: str, timeout_s: float) -> None:
        self._name = name
        self._url = url
        self._settings = ModelSettings(timeout=timeout_s, request_timeout=timeout_s, max_retries=0)
        self._timeout_s = timeout_s
        self._tls = httpx2.create_ssl_context()

    async def ask(
        self, key: str, messages: Sequence[Message], tools: Sequence[ToolSpec], *, is_streaming: bool
    ) -> AsyncGenerator[str | Turn | RequestFailure]:
        """Yield the next turn of a conversation, or why there is none; before it, if streaming, the parts of its text.

        Whoever stops reading before the end has to close it (``contextlib.aclosing``).
        """
        given = _conversation(messages)
        offered = ModelRequestParameters(function_tools=[_definition(tool) for tool in tools])
        ended: ModelResponse | RequestFailure
        beginning = bytearray()
        async with self._http_client(key, beginning) as http:
            model = self._chat_model(http)
            try:
                if is_streaming:
                    async with model_request_stream(
                        model, given, model_settings=self._settings, model_request_parameters=offered, instrument=False
                    ) as stream:
                        async for event in stream:
                            if part := _text_of(event):
                                yield _whole(part)
                        ended = stream.get()
                else:
                    ended = await model_request(
                        model, given, model_settings=self._settings, model_request_parameters=offered, instrument=False
                    )
            except Exception as error:  # noqa: BLE001 - the library may raise anything on a strange answer
                ended = _failure(error, self._timeout_s, bytes(beginning))
        names = {_sent_name(tool.name): tool.name for tool in tools}
        yield _turn(ended, names) if isinstance(ended, ModelResponse) else ended

    def _http_client(self, key: str, beginning: bytearray) -> httpx2.AsyncClient:
        """Return a client for one request, which notes the beginning of the answer."""

        async def sign(request: httpx2.Request) -> None:
            for name in [name for name in request.headers if name not in _HEADERS]:
                del request.headers[name]
            request.headers["accept-encoding"] = "identity"
            if key:
                request.headers["authorization"] = f"Bearer {key}"

        async def limit(response: httpx2.Response) -> None:
            if isinstance(response.stream, httpx2.AsyncByteStream):
                response.stream = _Limited(response.stream, beginning)

        return httpx2.AsyncClient(
            verify=self._tls, follow_redirects=False, event_hooks={"request": [sign], "response": [limit]}
        )

    def _chat_model(self, http: httpx2.AsyncClient) -> OpenAIChatModel:
        """Return the model of the library. A stream without a finish reason has broken off, so it is an error."""
        profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
        provider = OpenAICompatibleProvider(
            _PROVIDER, base_url=self._url, api_key=_NO_KEY, http_client=http, profile=profile
        )
        return OpenAIChatModel(self._name, provider=provider)


class _Limited(httpx2.AsyncByteStream):
    """The bytes of an answer, up to the most that it may have. The first ones are noted."""

    def __init__(self, stream: httpx2.AsyncByteStream, beginning: bytearray) -> None:
        self._stream = stream
        self._beginning = beginning

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MAX_MODEL_ANSWER_BYTES
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise AnswerTooLarge
            self._beginning += chunk[: _NOTED_BYTES - len(self._beginning)]
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# The request


def _conversation(messages: Sequence[Message]) -> list[ModelMessage]:
    """Return the messages as the library has them.

    Servers refuse a call without a result. A task inside of a tool sees the call of that tool, whose result is not
    known yet: such a call gets a result that says so.
    """
    found: list[ModelMessage] = []
    open_calls: list[ToolCall] = []
    for message in messages:
        if message.role == "tool":
            open_calls = [call for call in open_calls if call.id != message.call_id]
        else:
            found += _unknown_results(open_calls)
            open_calls = [*message.calls]
        if (one := _message(message)) is not None:
            found.append(one)
    return [*found, *_unknown_results(open_calls)]


def _unknown_results(calls: Sequence[ToolCall]) -> list[ModelMessage]:
    return [ModelRequest(parts=[ToolReturnPart(_sent_name(call.name), _NO_RESULT, call.id)]) for call in calls]


def _message(message: Message) -> ModelMessage | None:
    """Return a message as the library has it, None for one of the assistant that says nothing."""
    if message.role == "assistant":
        said: list[ModelResponsePart] = [TextPart(message.text)] if message.text else []
        said += [ToolCallPart(_sent_name(call.name), call.arguments, call.id) for call in message.calls]
        return ModelResponse(parts=said) if said else None
    part: ModelRequestPart
    if message.role == "system":
        part = SystemPromptPart(message.text)
    elif message.role == "user":
        part = UserPromptPart(message.text)
    else:
        part = ToolReturnPart(_sent_name(message.tool), message.text, message.call_id)
    return ModelRequest(parts=[part])


def _sent_name(name: str) -> str:
    """Return the name of a tool as it is sent: one that servers refuse, such as `größe`, becomes a digest."""
    return name if _NAME.fullmatch(name) else f"tool_{hashlib.sha256(_whole(name).encode()).hexdigest()[:16]}"


def _definition(tool: ToolSpec) -> ToolDefinition:
    """Return a tool as the library has it; its schema is sent as it is (``strict`` would let the library change it)."""
    return ToolDefinition(
        name=_sent_name(tool.name), description=tool.description, parameters_json_schema=tool.parameters, strict=False
    )


# The answer


def _text_of(event: object) -> str:
    """Return the text that an event of a stream brings; "" for other events."""
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


def _turn(response: ModelResponse, names: Mapping[str, str]) -> Turn | RequestFailure:
    """Return what a model said. A finish reason that nobody knows is as good as `stop`.

    ``names`` has those of the offered tools by the ones that were sent.
    """
    details = response.provider_details or {}
    refusal = details.get("refusal")
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart)) or refusal or ""
    is_cut = response.finish_reason == "length"
    parts = [part for part in response.parts if isinstance(part, ToolCallPart)]
    if response.finish_reason == "content_filter" and not refusal:
        return RequestFailure("filtered", "was stopped by the content filter of its provider")
    if details.get("finish_reason") == "error":
        return RequestFailure("broken", "ended its answer with an error")
    if is_cut and not text and not parts:
        return RequestFailure("cut_off", "used all tokens that its answer may have before it said anything")
    return Turn(_whole(text), tuple(_call(part, names, is_cut=is_cut) for part in parts), _usage(response))


def _call(part: ToolCallPart, names: Mapping[str, str], *, is_cut: bool) -> ToolCall:
    """Return a call of a tool. One whose arguments are no JSON object has a problem instead of them."""
    given = part.args if part.args is not None else ""
    arguments: Any = given
    problem = ""
    try:
        if isinstance(given, str):
            is_said = bool(given.strip()) or is_cut
            arguments = json.loads(given, parse_constant=_refuse, parse_int=integer_of) if is_said else {}
        if isinstance(arguments, dict):
            json.dumps(arguments, ensure_ascii=False).encode()
            problem = fault_of(arguments)
        else:
            problem = f"they are of the type {type(arguments).__name__}, and no object of JSON"
    except NotAValue as error:
        problem = str(error)
    except RecursionError:
        problem = f"it is nested more than {MAX_VALUE_NESTING} times"
    except UnicodeEncodeError:
        problem = "they hold half of a surrogate pair"
    except ValueError as error:
        problem = "the answer was cut off before they ended" if is_cut else f"they are no JSON ({error})"
    name = names.get(part.tool_name, _whole(part.tool_name))
    return ToolCall(_whole(part.tool_call_id), name, {} if problem else arguments, problem)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no value of JSON")


def _whole(text: str) -> str:
    """Return a text in which a half of a surrogate pair is joined to the other one, or is U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _usage(response: ModelResponse) -> Usage:
    """Return the tokens of an answer, and its cost where the library has a price for this model at this URL."""
    try:
        cost = float(response.cost().total_price)
    except (LookupError, ValueError, AssertionError):  # unknown model or server, no usage, no name of a model
        cost = None
    return Usage(response.usage.input_tokens, response.usage.output_tokens, cost)


# What went wrong


def _failure(error: Exception, timeout_s: float, beginning: bytes) -> RequestFailure:
    """Return an error of the library as data; ``beginning`` is that of the answer."""
    status = getattr(error, "status_code", None) or getattr(error.__cause__, "status_code", None)
    if any(isinstance(one, AnswerTooLarge) for one in _causes(error)):
        return RequestFailure(
            "too_large", f"sent more than the {MAX_MODEL_ANSWER_BYTES // MIB} MiB that an answer may have"
        )
    kind: FailureKind = next((kind for class_, kind in _KINDS if isinstance(error, class_)), "unreadable")
    if isinstance(status, int):
        kind = "moved" if status < 400 else "server" if status in _PASSING_STATUSES else kind  # noqa: PLR2004 - HTTP
        return RequestFailure(kind, f"answered with the status {status}{_message_of(error)}", _wait_s(error))
    if kind == "timeout":
        return RequestFailure(kind, f"gave no complete answer within {timeout_s:g} seconds")
    if kind == "connection":
        is_reached = getattr(error, "phase", "read") not in {"pool", "connect"}
        said = "closed the connection" if is_reached else "could not be reached"
        return RequestFailure(kind, f"{said}: {_innermost(error)}")
    if kind in {"broken", "unreadable"}:
        text = beginning.decode("utf-8", "replace").strip()
        said = "an answer that is not complete" if kind == "broken" else "an answer that is no chat completion"
        begins = f"begins with: {text}" if text else "is empty"
        return RequestFailure(kind, f"gave {said} ({_first_line(error)}). The answer {begins}", _wait_s(error))
    return RequestFailure(kind, f"ended its answer with an error: {error}", _wait_s(error))


def _wait_s(error: Exception) -> float | None:
    return error.retry_after if isinstance(error, exceptions.ModelAPIError) else None


def _message_of(error: Exception) -> str:
    """Return what a server says about its status, after a colon; "" where it says nothing."""
    body = getattr(error, "body", None)
    for name in ("error", "message"):
        body = body.get(name, body) if isinstance(body, dict) else body
    said = body if isinstance(body, str) else "" if body is None else json.dumps(body, default=str)
    return f": {said}" if said.strip() else ""


def _first_line(error: Exception) -> str:
    """Return the beginning of an error's text, which may go on with all that is wrong with an answer."""
    return str(error).partition("\n")[0] or type(error).__name__


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and the errors that it was raised from, the innermost last."""
    found = [error]
    while (cause := found[-1].__cause__ or found[-1].__context__) is not None and cause not in found:
        found.append(cause)
    return found


def _innermost(error: Exception) -> str:
    """Return the text of the innermost error that has one."""
    return next((str(one) for one in reversed(_causes(error)) if str(one)), type(error).__name__)
