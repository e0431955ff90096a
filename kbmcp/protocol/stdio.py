"""Carries MCP messages over two descriptors, one JSON message to a line.

Only whole messages are written, one after the other. When the client closes its end, or the process is asked to stop,
no more is read, the open requests are answered, and the streams end: within two seconds, so that requests that take
longer are stopped, and say so. Requests that last until then are notified.
"""

from __future__ import annotations

import asyncio
import os
import queue
import select
import stat
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self, TypeVar

import anyio
import anyio.to_thread
import mcp_types as types
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from kbcore.errors import ResourceLimit
from kbcore.process.system_limits import exhausted
from kbcore.text.escaping import escaped_json
from kbmcp.protocol.json_rpc import (
    MAX_MESSAGE_BYTES,
    LineOutline,
    Message,
    MessageBatch,
    RefusedLine,
    error_answer,
    read_line,
    refuse_long,
    refuse_repeated,
)
from kbmcp.protocol.worker_threads import retried_without_memory

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]

T = TypeVar("T")

END_OF_INPUT: Final = "notifications/kb/end_of_input"
"""Comes last, where a request is open that only ends with the connection: it is to be answered now."""
_LASTING: Final = "subscriptions/listen"

STOP: Final = "notifications/kb/stop"
"""Comes last, where requests are open a while after the last message: they are to be stopped now."""

FINISH_S: Final = 0.8
"""The time that open requests may take after the last message."""
STOPPED_S: Final = 0.4
"""The time that stopped requests may take to answer."""
LAST_WORDS_S: Final = 0.3
"""The time that the client may take to read the last output when the server has ended."""
_CHUNK_BYTES: Final = 1024 * 1024
_LONG_LINE_BYTES: Final = 64 * 1024
"""A longer line is read in a thread, so that the other requests go on meanwhile."""


class _OpenBatch:
    """The requests of a batch that wait for an answer, and the answers that there are."""

    def __init__(self, batch: MessageBatch) -> None:
        self.waiting = [one.id for one in batch.messages if isinstance(one, types.JSONRPCRequest)]
        self.answers: list[types.JSONRPCMessage] = [*batch.answers]


class _Output:
    """Hands messages to the operating system in a thread of its own, which may never come back from that.

    The thread is started with the connection: later there may be no memory for one.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._todo: queue.SimpleQueue[tuple[bytes, Callable[[Exception | None], object]] | None] = queue.SimpleQueue()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="kb-mcp output", daemon=True).start()

    async def write(self, data: bytes) -> None:
        """Wait until a message is passed on; a cancellation does not stop that. Raises: as ``write_at_once``."""
        loop, done = asyncio.get_running_loop(), anyio.Event()
        failed: list[Exception] = []

        def report(error: Exception | None) -> None:
            failed[:] = [error] if error else []
            loop.call_soon_threadsafe(done.set)

        self._todo.put((data, report))
        await done.wait()
        if failed:
            raise failed[0]

    def write_at_once(self, data: bytes) -> None:
        """Hand a message over here. Raises: ``OSError``, ``MemoryError``: the client may have got a part of it."""
        left = memoryview(data)  # whose slices copy nothing
        while left:
            try:
                left = left[os.write(self._fd, left) :]
            except BlockingIOError:  # as in `_read_chunk`
                select.select((), (self._fd,), ())

    def end(self) -> None:
        """Let the thread end when it has passed on its messages."""
        self._todo.put(None)

    def _run(self) -> None:
        while (todo := self._todo.get()) is not None:
            data, report = todo
            error: Exception | None = None
            try:
                self.write_at_once(data)
            except Exception as failure:  # noqa: BLE001 - raised by `write`, which waits for it
                error = failure
            try:
                retried_without_memory(lambda: report(error))  # noqa: B023 - called here
            except RuntimeError:
                return  # the loop has ended meanwhile


class _Input:
    """Reads lines in a thread of its own, which may wait for ever. It is at most one line ahead."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._room = threading.Lock()
        """Held while there is a line that was not taken yet."""
        self._line: bytes | RefusedLine | None = None
        self._has_come = asyncio.Event()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let the thread end when it has read the next line."""
        self._is_closed = True
        with suppress(RuntimeError):  # no line waits
            self._room.release()

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="kb-mcp input", daemon=True).start()

    async def next(self) -> bytes | RefusedLine | None:
        """Return the next line, None at the end; a line is not lost when this is cancelled."""
        await self._has_come.wait()
        line = self._line
        if line is not None:  # the end stays
            self._line = None
            self._has_come.clear()
            self._room.release()
        return line

    def _run(self) -> None:
        try:
            try:
                for line in _lines(self._fd):
                    if not self._put(line):
                        return
            except MemoryError:
                _note("there is no memory to read what the client sends; the server ends")
            self._put(None)
        except RuntimeError:
            return  # the loop has ended meanwhile

    def _put(self, line: bytes | RefusedLine | None) -> bool:
        """Hand a line to the loop when it has taken the one before; False where it takes no more."""
        self._room.acquire()
        if not self._is_closed:
            self._loop.call_soon_threadsafe(self._note_line, line)
        return not self._is_closed

    def _note_line(self, line: bytes | RefusedLine | None) -> None:
        self._line = line
        self._has_come.set()


class Pipes:
    """The two ends of one connection, and the requests that wait for an answer."""

    def __init__(self, reads_fd: int, writes_fd: int, on_end: Callable[[], None] = lambda: None) -> None:
        """``on_end`` is called when nothing more is read."""
        self._on_end = on_end
        self._reads_fd = reads_fd
        self._writes_fd = writes_fd
        is_pipe = stat.S_ISFIFO(os.fstat(writes_fd).st_mode)
        self._at_once_bytes = getattr(select, "PIPE_BUF", 0) if is_pipe else 0
        self._waiting: set[types.RequestId] = set()
        """Ids as they were sent: the number 1 and the text "1" are two requests."""
        self._lasting: set[types.RequestId] = set()
        """Those of them that are answered only when the connection ends."""
        self._batches: list[_OpenBatch] = []
        self._protocol_version = ""
        self._initializing: types.RequestId | None = None
        self._settled = anyio.Event()
        self._listening = anyio.CancelScope()
        self._turn = anyio.Lock(fast_acquire=True)
        self._is_broken = False
        """A message was not written whole: no other one follows it."""
        self._output = _Output(writes_fd)

    def stop(self) -> None:
        """Read no more; open requests are finished."""
        self._listening.cancel()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """Give the streams of messages, for as long as the context lasts."""
        found, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, taken = anyio.create_memory_object_stream[SessionMessage](0)
        self._output.start()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._read, found, tasks)
                tasks.start_soon(self._write, taken)
                yield incoming, outgoing
                self.stop()
                # The client may never read what is still being sent.
                tasks.cancel_scope.deadline = anyio.current_time() + LAST_WORDS_S
        finally:
            self._output.end()

    async def _read(self, found: MemoryObjectSendStream[SessionMessage | Exception], tasks: TaskGroup) -> None:
        lines = _Input(self._reads_fd)
        lines.start()
        async with found:
            try:
                with lines, self._listening:
                    while (line := await lines.next()) is not None:
                        with anyio.CancelScope(shield=True):  # a message is taken whole or not at all
                            await self._take(line, found, tasks)
            except anyio.BrokenResourceError:
                return  # the server has ended; messages are not read any more
            self._on_end()
            for most_s, request in ((FINISH_S, END_OF_INPUT if self._lasting else ""), (STOPPED_S, STOP)):
                with anyio.move_on_after(most_s):
                    if request and self._waiting:
                        await found.send(SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=request)))
                    while self._waiting:
                        self._settled = anyio.Event()
                        await self._settled.wait()

    async def _take(
        self, line: bytes | RefusedLine, found: MemoryObjectSendStream[SessionMessage | Exception], tasks: TaskGroup
    ) -> None:
        read = await self._read_line(line)
        if isinstance(read, RefusedLine):
            self._refuse(read, tasks)
        elif isinstance(read, MessageBatch):
            read = self._without_repeated(read)
            batch = _OpenBatch(read)
            if batch.waiting:
                self._batches.append(batch)
            elif batch.answers:
                tasks.start_soon(self._put_all, batch.answers)
            for message in read.messages:
                await self._hand_on(message, found)
        elif isinstance(read, types.JSONRPCRequest) and read.id in self._waiting:
            self._refuse(refuse_repeated(read), tasks)
        elif read is not None:
            await self._hand_on(read, found)

    def _without_repeated(self, batch: MessageBatch) -> MessageBatch:
        """Return a batch whose ids wait for no answer yet, and are all different; the other requests are refused."""
        waiting = {*self._waiting}
        messages: list[Message] = []
        answers = [*batch.answers]
        for message in batch.messages:
            if not isinstance(message, types.JSONRPCRequest):
                messages.append(message)
            elif message.id in waiting:
                answers += [answer] if (answer := refuse_repeated(message).answer) else []
            else:
                waiting.add(message.id)
                messages.append(message)
        return MessageBatch(messages, answers)

    async def _read_line(self, line: bytes | RefusedLine) -> Message | MessageBatch | RefusedLine | None:
        if isinstance(line, RefusedLine):
            return line
        try:
            if len(line) > _LONG_LINE_BYTES:
                return await anyio.to_thread.run_sync(read_line, line, self._protocol_version)
            return read_line(line, self._protocol_version)
        except (MemoryError, RuntimeError) as error:
            known = exhausted(error, may_be_written=False)
            if known is None:
                raise
            outline = LineOutline()
            outline.feed(line, is_last=True)
            return refuse_long(outline, known)

    def _refuse(self, refused: RefusedLine, tasks: TaskGroup) -> None:
        if refused.answer is None:
            _note(f"left out: {refused.note}")
        else:  # reading continues, and can be ended, whether or not the client reads
            tasks.start_soon(self._put, refused.answer)

    async def _hand_on(self, message: Message, found: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        if isinstance(message, types.JSONRPCRequest):
            self._waiting.add(message.id)
            if message.method == _LASTING:
                self._lasting.add(message.id)
            elif message.method == "initialize":
                self._initializing = message.id
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            await self._cancel((message.params or {}).get("requestId"))
        await found.send(SessionMessage(message))

    async def _write(self, taken: MemoryObjectReceiveStream[SessionMessage]) -> None:
        async with taken:
            async for item in taken:
                await self._put(item.message)

    async def _put(self, message: Message) -> None:
        if isinstance(message, types.JSONRPCResponse) and message.id == self._initializing:
            self._protocol_version = str(message.result.get("protocolVersion", ""))
            self._initializing = None
        if not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            await self._put_text(_text_of(message))
            return
        batch = next((one for one in self._batches if message.id in one.waiting), None)
        if batch is None:
            await self._put_text(_text_of(message))
        else:
            batch.answers.append(message)
            await self._leave(batch, message.id)
        self._settle(message.id)

    async def _leave(self, batch: _OpenBatch, key: types.RequestId | None) -> None:
        """Wait no more for one answer of a batch; the answers are sent when none is missing."""
        batch.waiting = [one for one in batch.waiting if one != key]
        if not batch.waiting:
            self._batches = [one for one in self._batches if one is not batch]
            if batch.answers:
                await self._put_all(batch.answers)

    async def _put_all(self, answers: Sequence[Message]) -> None:
        await self._put_text(b"[" + b",".join(map(_text_of, answers)) + b"]")

    async def _put_text(self, text: bytes) -> None:
        try:
            async with self._turn:
                if self._is_broken:
                    return
                data = text + b"\n"
                if self._takes_at_once(len(data)):
                    self._output.write_at_once(data)
                else:
                    await self._output.write(data)
        except OSError as error:  # the client has disconnected: no answer is expected any more
            self._give_up(f"the client no longer reads: {error.strerror}")
        except Exception as error:  # noqa: BLE001 - reported here; the client may have got a part of the message
            known = exhausted(error, may_be_written=False)
            if known is None:
                traceback.print_exc(file=sys.stderr)
            reason = known.message if known else f"KB failed unexpectedly ({type(error).__name__})."
            self._give_up(f"error: an answer cannot be written, and the server ends. {reason}")

    def _give_up(self, reason: str) -> None:
        """End the connection: no message can follow one that was written in part."""
        _note(reason)
        self._is_broken = True
        self._waiting.clear()
        self._settled.set()
        self.stop()

    def _takes_at_once(self, length_bytes: int) -> bool:
        """Return whether so many bytes can be written without any wait, so that no thread is needed for it.

        A pipe that is ready takes ``PIPE_BUF`` bytes, as POSIX says of poll and write; this one has no other writer.
        """
        return length_bytes <= self._at_once_bytes and bool(select.select((), (self._writes_fd,), (), 0)[1])

    async def _cancel(self, named: Any) -> None:
        """Wait no more for the answer to a request that is cancelled: it may get none."""
        key = self._cancelled(named)
        for batch in [one for one in self._batches if key is not None and key in one.waiting]:
            await self._leave(batch, key)
        self._settle(key)

    def _cancelled(self, key: Any) -> types.RequestId | None:
        """Return the id of the request that is cancelled: the dispatcher takes the text "1" for the number 1."""
        alike = [one for one in self._waiting if str(one) == str(key)]
        return key if key in alike else next(iter(alike), None)

    def _settle(self, key: types.RequestId | None) -> None:
        if key is not None:
            self._waiting.discard(key)
            self._lasting.discard(key)
        self._settled.set()


def _text_of(message: Message) -> bytes:
    """Return a message as JSON; an answer for which there is no memory becomes the error that says so."""
    try:
        return escaped_json(message.model_dump_json(by_alias=True, exclude_unset=True)).encode()
    except MemoryError as error:
        known = exhausted(error, may_be_written=True)
        if known is None or not isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
            raise
        return _text_of(error_answer(types.INTERNAL_ERROR, f"{known.message} {known.hint}", message.id, known))


def _note(text: str) -> None:
    sys.stderr.write(f"kb-mcp: {text}\n")
    sys.stderr.flush()


def _lines(fd: int) -> Iterator[bytes | RefusedLine]:
    """Yield the lines that come; of one that is too long, or for which there is no memory, what to answer to it."""
    parts: list[bytes] = []
    length = 0
    outline: LineOutline | None = None
    buffer = bytearray(_CHUNK_BYTES)
    while chunk := _read_chunk(fd, buffer):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            lacking: ResourceLimit | None = None
            if outline is None and length + len(piece) <= MAX_MESSAGE_BYTES:
                try:
                    line: bytes | RefusedLine = b"".join((*parts, piece))
                except MemoryError as error:
                    lacking = exhausted(error, may_be_written=False)
            if outline is not None or lacking or length + len(piece) > MAX_MESSAGE_BYTES:
                outline = outline or _outline_of(parts)
                outline.feed(piece, is_last=True)
                line = refuse_long(outline, lacking)
            yield line
            parts, length, outline = [], 0, None
        length += len(rest)
        if outline is not None:
            outline.feed(rest)
        elif length <= MAX_MESSAGE_BYTES:
            parts.append(rest)
        else:
            outline = _outline_of([*parts, rest])
            parts = []
    if parts:
        yield b"".join(parts)  # what is not whole, as of a client that died, is no message


def _outline_of(parts: Iterable[bytes]) -> LineOutline:
    outline = LineOutline()
    for part in parts:
        outline.feed(part)
    return outline


def _read_chunk(fd: int, buffer: bytearray) -> bytes:
    while True:
        try:
            length = os.readv(fd, [buffer])
            break
        except BlockingIOError:
            # Who shares the pipe or the terminal with this process may want no waits there, now or later. To set it
            # otherwise would make that process wait.
            select.select((fd,), (), ())
        except OSError:  # a terminal that was hung up reads as an error; it is the end all the same
            return b""
    return retried_without_memory(lambda: bytes(memoryview(buffer)[:length]))
