"""A server with OpenAI's API of chat completions on loopback, which answers from a script, as JSON or as a stream.

It runs in a thread and keeps what it was asked. It ends with its ``with`` block, and the answers that wait end with it.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

CANARY = "sk-canary-7f3a91c04be2d65884"
"""A key that no text may hold."""


@dataclass(frozen=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def conversation(self) -> list[tuple[str, str]]:
        """Return role and text of each message."""
        return [(one["role"], one.get("content") or "") for one in self.body["messages"]]

    @property
    def tools(self) -> list[str]:
        return [one["function"]["name"] for one in self.body.get("tools", [])]


@dataclass(frozen=True)
class Said:
    """An answer of the model. ``calls`` are names and arguments, as a value or as the text that is sent."""

    text: str | None = None
    calls: Sequence[tuple[str, Any]] = ()
    finish: str | None = "stop"
    usage: tuple[int, int] | None = (10, 5)
    refusal: str | None = None
    ids: Sequence[str] = ()
    cut_after: int | None = None
    """The events of a stream after which the connection is reset."""
    ends_early: bool = False
    """The stream ends without finish reason."""


@dataclass(frozen=True)
class Raw:
    """An answer as bytes."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"


@dataclass(frozen=True)
class Reset:
    """A connection that is reset before anything is said."""


@dataclass(frozen=True)
class Stall:
    """An answer that does not end: headers, ``after``, then ``again`` and again, until the server ends."""

    after: bytes = b""
    again: bytes = b""


Answer = Said | Raw | Reset | Stall


def error(status: int, message: str, *, code: str | None = None, **headers: str) -> Raw:
    """Return an answer with an error in the form of OpenAI."""
    body = {"error": {"message": message, "type": "some_error", "param": None, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Raw(json.dumps(body).encode(), status, named)


class ChatServer:
    """A server that gives one answer after the other; a function is called with what was asked."""

    def __init__(self, *answers: Answer | Callable[[Asked], Answer]) -> None:
        self.asked: list[Asked] = []
        self.open_connections = 0
        self.is_ending = threading.Event()
        self.changed = threading.Condition()
        self._answers = list(answers)
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.is_ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer_to(self, asked: Asked) -> Answer:
        """Return the next answer of the script."""
        with self.changed:
            self.asked.append(asked)
            self.changed.notify_all()
        if not self._answers:
            return error(418, "The script has no more answers.")
        answer = self._answers.pop(0)
        return answer(asked) if callable(answer) else answer

    def was_asked(self, within_s: float = 10.0) -> bool:
        """Wait until something was asked; tell whether that is so."""
        with self.changed:
            return self.changed.wait_for(lambda: bool(self.asked), within_s)

    def count(self, change: int) -> None:
        """Note that a connection was opened (1) or closed (-1)."""
        with self.changed:
            self.open_connections += change
            self.changed.notify_all()

    def has_closed_all(self, within_s: float = 10.0) -> bool:
        """Wait until no connection is open; tell whether that is so."""
        with self.changed:
            return self.changed.wait_for(lambda: self.open_connections == 0, within_s)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, chat: ChatServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chat = chat


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    @property
    def _chat(self) -> ChatServer:
        return self.server.chat

    def setup(self) -> None:
        self._chat.count(1)
        super().setup()

    def finish(self) -> None:
        with suppress(OSError):
            super().finish()
        self._chat.count(-1)

    def handle(self) -> None:
        with suppress(OSError):  # the client has gone
            super().handle()

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, body)
        answer = self._chat.answer_to(asked)
        if isinstance(answer, Said) and body.get("stream"):
            self._stream(answer, body)
        elif isinstance(answer, Said):
            self._send(Raw(json.dumps(_completion(answer, body)).encode()))
        elif isinstance(answer, Raw):
            self._send(answer)
        elif isinstance(answer, Stall):
            self._stall(answer)
        else:
            self._reset()

    def _send(self, answer: Raw) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("content-type", answer.content_type)
        self.send_header("content-length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def _stream(self, answer: Said, body: dict[str, Any]) -> None:
        self._begin_stream()
        for number, event in enumerate(_events(answer, body)):
            if number == answer.cut_after:
                self._reset()
                return
            self._write(b"data: " + json.dumps(event).encode() + b"\n\n")
        if not answer.ends_early:
            self._write(b"data: [DONE]\n\n")
        self._write(b"")

    def _stall(self, answer: Stall) -> None:
        self._begin_stream()
        if answer.after:
            self._write(answer.after)
        self.connection.settimeout(0.05)
        while not self._chat.is_ending.is_set():
            try:
                if self.connection.recv(1) == b"":
                    break
            except TimeoutError:
                if answer.again:
                    self._write(answer.again)
        self.close_connection = True

    def _begin_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _write(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()


def _calls(answer: Said) -> list[dict[str, Any]]:
    return [
        {
            "id": answer.ids[at] if at < len(answer.ids) else f"call_{at}",
            "type": "function",
            "function": {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)},
        }
        for at, (name, given) in enumerate(answer.calls)
    ]


def _usage(answer: Said) -> dict[str, int] | None:
    if answer.usage is None:
        return None
    put_in, put_out = answer.usage
    return {"prompt_tokens": put_in, "completion_tokens": put_out, "total_tokens": put_in + put_out}


def _finish(answer: Said) -> str | None:
    return "tool_calls" if answer.calls and answer.finish == "stop" else answer.finish


def _completion(answer: Said, body: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer), "logprobs": None}
    found = {"id": "c-1", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
    return found | ({} if answer.usage is None else {"usage": _usage(answer)})


def _events(answer: Said, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the events of a stream: the text by words, the arguments of a call in two pieces."""
    first = {"id": "c-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}

    def event(finish: str | None = None, **delta: Any) -> dict[str, Any]:
        return {**first, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield event(role="assistant", content="")
    for word in (answer.text or "").split(" ") if answer.text else []:
        yield event(content=word if word == (answer.text or "").split(" ", maxsplit=1)[0] else f" {word}")
    if answer.refusal:
        yield event(refusal=answer.refusal)
    for at, call in enumerate(_calls(answer)):
        given = call["function"]["arguments"]
        half = len(given) // 2
        yield event(tool_calls=[{**call, "index": at, "function": {**call["function"], "arguments": given[:half]}}])
        yield event(tool_calls=[{"index": at, "function": {"arguments": given[half:]}}])
    if answer.ends_early:
        return
    yield event(_finish(answer))
    if answer.usage is not None and body.get("stream_options", {}).get("include_usage"):
        yield {**first, "choices": [], "usage": _usage(answer)}
