"""The pipes of one connection: which requests the end of input waits for."""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Iterator
from typing import NamedTuple

import anyio
import anyio.to_thread
import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from kbmcp.protocol.stdio import Pipes

END_S = 5.0
"""Well below the time that requests in hand are given."""

LONG = "x" * 1_000_000
"""More than any pipe takes."""


class Ends(NamedTuple):
    """The ends of two pipes: those of the server for reading and writing, and those of the client."""

    reads: int
    client_writes: int
    writes: int
    client_reads: int


@pytest.fixture
def ends() -> Iterator[Ends]:
    reads, client_writes = os.pipe()
    client_reads, writes = os.pipe()
    yield Ends(reads, client_writes, writes, client_reads)
    os.close(client_reads)
    for thread in threading.enumerate():  # one that still writes would go on in a pipe that gets the same number
        if thread.name == "kb-mcp output":
            thread.join(END_S)
    for fd in (reads, writes):
        os.close(fd)


def line(method: str, key: int | str | None = None, **params: object) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if key is None else {"id": key})
    return json.dumps(message).encode() + b"\n"


def read_line(fd: int) -> bytes:
    text = b""
    while not text.endswith(b"\n"):
        assert select.select([fd], [], [], END_S)[0], "nothing was written"
        text += os.read(fd, 65536)
    return text


def answer(key: int | str) -> SessionMessage:
    return SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=key, result={}))


def test_the_number_1_and_the_text_1_are_two_requests(ends):
    async def talk() -> None:
        reads, client_writes, writes, _ = ends
        async with Pipes(reads, writes).open() as (incoming, outgoing), incoming, outgoing:
            os.write(client_writes, line("ping", 1) + line("ping", "1"))
            os.close(client_writes)
            assert [(await incoming.receive()).message.id for _ in range(2)] == [1, "1"]
            await outgoing.send(answer("1"))
            with anyio.move_on_after(0.1) as waiting:
                await incoming.receive()
            assert waiting.cancelled_caught
            await outgoing.send(answer(1))
            with pytest.raises(anyio.EndOfStream), anyio.fail_after(END_S):
                await incoming.receive()

    anyio.run(talk)


@pytest.mark.parametrize(("sent", "cancelled"), [(2, "2"), ("2", 2), ("2", "2")])
def test_what_is_cancelled_is_not_waited_for_however_its_id_is_spelled(sent, cancelled, ends):
    """The dispatcher of ``mcp`` cancels the request 2 for the text "2" as well, and never answers it."""

    async def talk() -> None:
        reads, client_writes, writes, _ = ends
        async with Pipes(reads, writes).open() as (incoming, outgoing), incoming, outgoing:
            os.write(client_writes, line("ping", sent))
            for odd in ([2], {"2": 2}, None, True):
                os.write(client_writes, line("notifications/cancelled", requestId=odd))
            os.write(client_writes, line("notifications/cancelled", requestId=cancelled))
            os.close(client_writes)
            for _ in range(6):
                await incoming.receive()
            with pytest.raises(anyio.EndOfStream), anyio.fail_after(END_S):
                await incoming.receive()

    anyio.run(talk)


def test_non_blocking_streams_are_waited_for(ends):
    """Whoever shares a pipe or a terminal with the server sets this for the server as well."""

    async def talk() -> None:
        reads, client_writes, writes, _ = ends
        for fd in (reads, writes):
            os.set_blocking(fd, False)
        async with Pipes(reads, writes).open() as (incoming, outgoing), incoming, outgoing:
            with anyio.move_on_after(0.1) as waiting:
                await incoming.receive()
            assert waiting.cancelled_caught
            os.write(client_writes, line("ping", 1))
            assert (await incoming.receive()).message.id == 1
            os.close(client_writes)
            long = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": "x" * 300_000})
            await outgoing.send(SessionMessage(long))
            assert len(await anyio.to_thread.run_sync(read_line, ends.client_reads)) > 300_000
            with pytest.raises(anyio.EndOfStream), anyio.fail_after(END_S):
                await incoming.receive()

    anyio.run(talk)


@pytest.mark.parametrize("tail", ["", "{"])
def test_a_last_line_without_an_end_is_answered_when_it_is_whole(tail, ends):
    async def talk() -> None:
        async with Pipes(ends.reads, ends.writes).open() as (incoming, outgoing), incoming, outgoing:
            os.write(ends.client_writes, line("ping", 1) + line("ping", 2).rstrip() + tail.encode())
            os.close(ends.client_writes)
            assert (await incoming.receive()).message.id == 1
            await outgoing.send(answer(1))
            if not tail:
                assert (await incoming.receive()).message.id == 2
                await outgoing.send(answer(2))
            with pytest.raises(anyio.EndOfStream), anyio.fail_after(END_S):
                await incoming.receive()

    anyio.run(talk)


def test_a_client_that_does_not_read_is_not_waited_for_when_the_server_has_ended(ends, monkeypatch):
    monkeypatch.setattr("kbmcp.protocol.stdio.LAST_WORDS_S", 0.05)

    async def talk() -> None:
        with anyio.fail_after(END_S):
            async with Pipes(ends.reads, ends.writes).open() as (incoming, outgoing), incoming, outgoing:
                os.write(ends.client_writes, line("ping", 1))
                os.close(ends.client_writes)
                await incoming.receive()
                await outgoing.send(SessionMessage(types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"x": LONG})))

    anyio.run(talk)
    read_line(ends.client_reads)  # lets the thread go before its pipe is closed and the number is another file's


def test_requests_that_cannot_be_read_keep_no_server_whose_client_does_not_read(ends, monkeypatch):
    monkeypatch.setattr("kbmcp.protocol.stdio.LAST_WORDS_S", 0.05)

    async def talk() -> None:
        with anyio.fail_after(END_S):
            async with Pipes(ends.reads, ends.writes).open() as (incoming, outgoing), incoming, outgoing:
                await outgoing.send(SessionMessage(types.JSONRPCNotification(jsonrpc="2.0", method=LONG)))
                os.write(ends.client_writes, b'{"id": 1, "method": 2}\n' * 10 + line("ping", 2))
                os.close(ends.client_writes)
                assert (await incoming.receive()).message.id == 2

    anyio.run(talk)


@pytest.mark.parametrize("error", [MemoryError(), ValueError("a bug")])
def test_a_message_that_cannot_be_written_ends_the_server_with_an_error(error, ends, capfd):
    """Whatever fails while a message is handed over: nobody waits for ever, and nothing follows a part of a message."""

    def fail(data):
        os.write(ends.writes, data[:10])
        raise error

    async def talk():
        pipes = Pipes(ends.reads, ends.writes)
        pipes._output.write_at_once = fail
        with anyio.fail_after(END_S):
            await until_the_end(pipes)

    async def until_the_end(pipes):
        async with pipes.open() as (incoming, outgoing), incoming, outgoing:
            os.write(ends.client_writes, line("ping", 1) + line("ping", 2))
            await incoming.receive()
            await incoming.receive()
            long = types.JSONRPCResponse(jsonrpc="2.0", id=1, result={"text": LONG})
            await outgoing.send(SessionMessage(long))  # in the thread
            await outgoing.send(answer(2))
            with pytest.raises(anyio.EndOfStream):
                await incoming.receive()

    anyio.run(talk)
    os.close(ends.client_writes)
    assert len(os.read(ends.client_reads, 65536)) == 10
    assert "an answer cannot be written, and the server ends" in capfd.readouterr().err
