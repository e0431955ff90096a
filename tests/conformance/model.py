"""A model that follows a script, over HTTP on loopback, in the forms of four makers: it calls some tools, then ends.

It keeps every request, so that what a client gave it is known.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

NAME = "scripted"
SAID = "All is done."
_CALLED = re.compile(r'"call_\d+"')
Call = tuple[str, dict[str, Any] | str]
"""The name of a tool, and its arguments; a text where the tool takes one instead of JSON.

A tool of a namespace of Responses is ``NAMESPACE/NAME``.
"""


@dataclass
class ScriptedModel:
    """The calls of tools that it makes one after the other, and the requests so far, as JSON texts."""

    calls: list[Call]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def answer(self, path: str, body: dict[str, Any]) -> list[tuple[str, Any]]:
        """Return the events that answer a request: a call of the tool where it is offered and was not called yet."""
        text = json.dumps(body)
        self.requests.append(text)
        made = text.count('"functionResponse"') or len(set(_CALLED.findall(text)))
        is_offered = made < len(self.calls) and f'"{self.calls[made][0].rpartition("/")[2]}"' in text
        at = made if is_offered else None
        if path.endswith("/responses"):
            return _responses(self, at)
        if "enerateContent" in path:
            return _gemini(self, at)
        if path.endswith("/messages"):
            return _messages(self, at)
        return _chat(self, at)


@contextmanager
def serving(model: ScriptedModel) -> Iterator[ScriptedModel]:
    """Let a model answer on a free port of loopback for the length of the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            path = self.path.partition("?")[0]
            if path.endswith(("count_tokens", ":countTokens")):
                self._say(b'{"input_tokens": 1, "totalTokens": 1}', "application/json")
                return
            events = model.answer(path, body)
            is_stream = bool(body.get("stream")) or "streamGenerateContent" in path
            if is_stream:
                lines = (f"event: {name}\n" * bool(name) + f"data: {_text(data)}\n\n" for name, data in events)
                self._say("".join(lines).encode(), "text/event-stream")
            else:
                self._say(json.dumps(events[-1][1]).encode(), "application/json")

        def do_GET(self) -> None:
            self._say(b'{"data": [], "models": []}', "application/json")

        def _say(self, data: bytes, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing: the requests are kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    model.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _text(data: Any) -> str:
    return data if isinstance(data, str) else json.dumps(data)


def _responses(model: ScriptedModel, at: int | None) -> list[tuple[str, Any]]:
    """Return the events of OpenAI's Responses."""
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": None,
             "output_tokens_details": None}  # fmt: skip
    item: dict[str, Any]
    if at is None:
        item = {"type": "message", "role": "assistant", "id": "m1", "content": [{"type": "output_text", "text": SAID}]}
    else:
        full_name, arguments = model.calls[at]
        namespace, _, name = full_name.rpartition("/")
        item = {"id": f"i{at}", "call_id": f"call_{at}", "name": name}
        item |= {"namespace": namespace} if namespace else {}
        if isinstance(arguments, str):
            item |= {"type": "custom_tool_call", "input": arguments}
        else:
            item |= {"type": "function_call", "arguments": json.dumps(arguments)}
    done = {"type": "response.completed", "response": {"id": "r1", "usage": usage, "output": [item]}}
    return [
        ("response.created", {"type": "response.created", "response": {"id": "r1"}}),
        ("response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}),
        ("response.completed", done),
    ]


def _gemini(model: ScriptedModel, at: int | None) -> list[tuple[str, Any]]:
    """Return the chunk of Gemini."""
    part: dict[str, Any] = {"text": SAID}
    if at is not None:
        name, arguments = model.calls[at]
        part = {"functionCall": {"name": name, "args": arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return [("", {"candidates": [candidate], "usageMetadata": usage})]


def _chat(model: ScriptedModel, at: int | None) -> list[tuple[str, Any]]:
    """Return the chunks of OpenAI's chat completions."""
    delta: dict[str, Any] = {"role": "assistant", "content": SAID}
    if at is not None:
        name, arguments = model.calls[at]
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": 0, "id": f"call_{at}", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": NAME}
    end = {"index": 0, "delta": {}, "finish_reason": "stop" if at is None else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return [
        ("", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}),
        ("", {**head, "choices": [end], "usage": usage}),
        ("", "[DONE]"),
    ]


def _messages(model: ScriptedModel, at: int | None) -> list[tuple[str, Any]]:
    """Return the events of Anthropic's Messages; the last one has the whole message, for a client without a stream."""
    usage = {"input_tokens": 1, "output_tokens": 1}
    empty: dict[str, Any] = {"type": "text", "text": ""}
    more: dict[str, Any] = {"type": "text_delta", "text": SAID}
    whole: dict[str, Any] = {"type": "text", "text": SAID}
    if at is not None:
        name, arguments = model.calls[at]
        empty = {"type": "tool_use", "id": f"call_{at}", "name": name, "input": {}}
        more = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        whole = {**empty, "input": arguments}
    reason = "end_turn" if at is None else "tool_use"
    head = {"id": "m1", "type": "message", "role": "assistant", "model": NAME, "usage": usage, "stop_sequence": None}
    found: list[tuple[str, Any]] = [
        ("message_start", {"message": {**head, "content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": empty}),
        ("content_block_delta", {"index": 0, "delta": more}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}),
        ("message_stop", {**head, "content": [whole], "stop_reason": reason}),
    ]
    return [
        (name, {"type": name, **data} if name != "message_stop" else {**data, "type": name}) for name, data in found
    ]
