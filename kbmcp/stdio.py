"""Carries MCP messages over two descriptors, one JSON message to a line.

Only whole messages are written, one after the other. When the client closes its end, or the process is asked to stop,
no more is read, the requests in hand are answered, and the streams end. Requests that last until then hear of it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import select
import stat
import sys
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from kbcore.visible import escaped_json
from kbmcp.unreadable import refusal_of

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

END_OF_INPUT: Final = "notifications/kb/end_of_input"
"""Comes last, where a request is open that only ends with the connection: it is to be answered now."""
_LASTING: Final = "subscriptions/listen"

MAX_MESSAGE_BYTES: Final = 32 * 1024 * 1024
FINISH_S: Final = 12.0
"""How long requests in hand may take after the last message; longer than a write waits for its lock."""
LAST_WORDS_S: Final = 1.0
"""How long the client may take to read what is being written when the server has ended."""
_CHUNK_BYTES: Final = 1024 * 1024


class Pipes:
    """The two ends of one connection, and the requests that wait for an answer."""

    def __init__(self, reads_fd: int, writes_fd: int) -> None:
        self._reads_fd = reads_fd
        self._writes_fd = writes_fd
        is_pipe = stat.S_ISFIFO(os.fstat(writes_fd).st_mode)
        self._at_once_bytes = getattr(select, "PIPE_BUF", 0) if is_pipe else 0
        self._waiting: set[types.RequestId] = set()
        """Ids as they were sent: the number 1 and the text "1" are two requests."""
        self._lasting: set[types.RequestId] = set()
        """Those of them that are answered only when the connection ends."""
        self._settled = anyio.Event()
        self._listening = anyio.CancelScope()
        self._turn = anyio.Lock()
        self.is_writing = False
        """True while a thread hands a message to the operating system; it may never come back from that."""

    def stop(self) -> None:
        """Read no more; what is in hand is finished."""
        self._listening.cancel()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Give the streams of messages, for as long as the context lasts."""
        found, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, taken = anyio.create_memory_object_stream[SessionMessage](0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._read, found, tasks)
            tasks.start_soon(self._write, taken)
            yield incoming, outgoing
            self.stop()
            # The client may never read what is still under way.
            tasks.cancel_scope.deadline = anyio.current_time() + LAST_WORDS_S

    async def _read(self, found: MemoryObjectSendStream[SessionMessage | Exception], tasks: TaskGroup) -> None:
        heard, lines = anyio.create_memory_object_stream[bytes](0)
        loop = asyncio.get_running_loop()
        threading.Thread(target=_listen, args=(self._reads_fd, heard, loop), name="kb-mcp input", daemon=True).start()
        async with found, heard, lines:
            try:
                with self._listening:
                    async for line in lines:
                        with anyio.CancelScope(shield=True):  # a message is taken whole or not at all
                            await self._take(line, found, tasks)
            except anyio.BrokenResourceError:
                return  # the server has ended; nobody takes messages any more
            with anyio.move_on_after(FINISH_S):
                if self._lasting:
                    await found.send(SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=END_OF_INPUT)))
                while self._waiting:
                    self._settled = anyio.Event()
                    await self._settled.wait()

    async def _take(
        self, line: bytes, found: MemoryObjectSendStream[SessionMessage | Exception], tasks: TaskGroup
    ) -> None:
        try:
            message = types.jsonrpc_message_adapter.validate_json(line.decode(errors="replace"), by_name=False)
        except ValueError:
            await self._refuse(line, tasks)
            return
        if isinstance(message, types.JSONRPCRequest):
            self._waiting.add(message.id)
            if message.method == _LASTING:
                self._lasting.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle(self._cancelled((message.params or {}).get("requestId")))
        await found.send(SessionMessage(message))

    async def _refuse(self, line: bytes, tasks: TaskGroup) -> None:
        """Answer a request that cannot be read, if it can be told which one it is; other noise is only noted."""
        refusal = await anyio.to_thread.run_sync(refusal_of, line)  # a long line takes its time
        if refusal is not None:
            tasks.start_soon(self._put, refusal)  # reading goes on, and can be ended, whether or not the client reads
        elif line.strip():
            _note(f"a line of {len(line)} bytes is no message of MCP and was left out")

    async def _write(self, taken: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with taken:
            async for item in taken:
                await self._put(item.message)

    async def _put(self, message: types.JSONRPCMessage) -> None:
        text = escaped_json(message.model_dump_json(by_alias=True, exclude_unset=True)) + "\n"
        try:
            async with self._turn:
                data = text.encode()
                if self._takes_at_once(len(data)):
                    self._hand_over(data)
                else:
                    self.is_writing = True  # before the thread begins: all may end meanwhile
                    await anyio.to_thread.run_sync(self._hand_over, data, abandon_on_cancel=True)
        except OSError as error:  # the client is gone: nobody waits for anything any more
            _note(f"the client no longer reads: {error.strerror}")
            self._waiting.clear()
            self.stop()
        if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            self._settle(message.id)

    def _takes_at_once(self, length_bytes: int) -> bool:
        """Tell whether so many bytes can be written without any wait, so that no thread is needed for it.

        A pipe that is ready takes ``PIPE_BUF`` bytes, as POSIX says of poll and write; nobody else writes to this one.
        """
        return length_bytes <= self._at_once_bytes and bool(select.select((), (self._writes_fd,), (), 0)[1])

    def _hand_over(self, data: bytes) -> None:
        try:
            while data:
                try:
                    data = data[os.write(self._writes_fd, data) :]
                except BlockingIOError:  # as in `_read_chunk`
                    select.select((), (self._writes_fd,), ())
        finally:
            self.is_writing = False

    def _cancelled(self, key: Any) -> types.RequestId | None:
        """Return the id of the request that is cancelled: the dispatcher takes the text "1" for the number 1."""
        alike = [one for one in self._waiting if str(one) == str(key)]
        return key if key in alike else next(iter(alike), None)

    def _settle(self, key: types.RequestId | None) -> None:
        if key is not None:
            self._waiting.discard(key)
            self._lasting.discard(key)
        self._settled.set()


def _note(text: str) -> None:
    sys.stderr.write(f"kb-mcp: {text}\n")
    sys.stderr.flush()


def _listen(fd: int, heard: MemoryObjectSendStream[bytes], loop: asyncio.AbstractEventLoop) -> None:
    """Read lines in a thread of their own, which may wait for ever, and hand each to the loop."""
    try:
        for line in _lines(fd):
            _in_loop(loop, heard.send(line))
        _in_loop(loop, heard.aclose())
    except (RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError, concurrent.futures.CancelledError):
        return  # the loop has ended meanwhile


def _lines(fd: int) -> Iterator[bytes]:
    parts: list[bytes] = []
    length = 0
    while chunk := _read_chunk(fd):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            if length + len(piece) <= MAX_MESSAGE_BYTES:
                yield b"".join((*parts, piece))
            else:
                _note(f"a message of more than {MAX_MESSAGE_BYTES} bytes was left out")
            parts, length = [], 0
        length += len(rest)
        if length <= MAX_MESSAGE_BYTES:
            parts.append(rest)
    if parts and length <= MAX_MESSAGE_BYTES:
        yield b"".join(parts)  # what is not whole, as of a client that died, is no message


def _read_chunk(fd: int) -> bytes:
    while True:
        try:
            return os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            # Who shares the pipe or the terminal with this process may want no waits there, now or later. To set it
            # otherwise would make that process wait.
            select.select((fd,), (), ())
        except OSError:  # a terminal that was hung up reads as an error; it is the end all the same
            return b""


def _in_loop(loop: asyncio.AbstractEventLoop, what: Coroutine[Any, Any, None]) -> None:
    try:
        asyncio.run_coroutine_threadsafe(what, loop).result()
    finally:
        what.close()
