"""Lines that are no message: each gets the error of JSON-RPC that fits, and no line is a reason to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbmcp.protocol.json_rpc import BATCHES, MAX_BATCH, LineOutline, MessageBatch, RefusedLine, read_line, refuse_long

MODERN = "2025-06-18"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def refused(line: bytes, version: str = MODERN) -> RefusedLine:
    found = read_line(line, version)
    assert isinstance(found, RefusedLine)
    return found


def answered(line: bytes, version: str = MODERN) -> tuple[int, Any]:
    """Return the code and the id of the error that a line is answered with."""
    answer = refused(line, version).answer
    assert answer is not None
    return answer.error.code, answer.id


@pytest.mark.parametrize(
    "line",
    [
        rb'{"jsonrpc":"2.0","id":3,"method":"tools/c\all"}',
        rb'{"jsonrpc":"2.0","id":"\q","method":"ping"',
        rb'{"id":"\u12","method":"x"}',
        b'{"id":"\xff\\',
        b"garbage",
        b"{",
        b'[{"jsonrpc":"2.0","id":5,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":5,"method":"ping"}}',
        b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"\xff"}}',
        "{'jsonrpc':'2.0'}".encode("utf-16"),
    ],
)
def test_invalid_json_is_a_parse_error_without_an_id(line: bytes) -> None:
    assert answered(line) == (-32700, None)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"id":3,"method":"ping"}', 3),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', "a"),
        (b'{"jsonrpc":"2.0","id":4,"method":"ping","params":[1]}', 4),
        (b'{"jsonrpc":"2.0","id":5,"method":6}', 5),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', None),
        (b'{"jsonrpc":"2.0","method":1,"params":"bar"}', None),
        (b'{"id":1}', 1),
        (b'{"jsonrpc":"2.0","id":15}', 15),
        (b"{}", None),
        (b"null", None),
        (b"5", None),
        (b'"text"', None),
        (b"[]", None),
    ],
)
def test_json_that_is_no_request_is_an_invalid_request_with_its_id_if_it_has_one(line: bytes, key: Any) -> None:
    assert answered(line) == (-32600, key)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":3,"result":5}',
        b'{"id":3,"error":"no"}',
        b'{"method":"notifications/cancelled"}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}',
    ],
)
def test_answers_and_notifications_that_cannot_be_read_get_no_answer(line: bytes) -> None:
    found = refused(line)
    assert found.answer is None
    assert found.note


@pytest.mark.parametrize("line", [b"", b"  ", b"\r"])
def test_an_empty_line_is_nothing(line: bytes) -> None:
    assert read_line(line, MODERN) is None


@pytest.mark.parametrize(
    ("line", "key", "named"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}', 1, "'a'"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', 1, "'method'"),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', None, "'id'"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":[{"q":{"\\u0061":1,"a":2}}]}', 1, "'a'"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"\\u001b":1,"\\u001b":2}}', 1, r"'\x1b'"),
    ],
)
def test_a_key_that_occurs_twice_is_refused_and_named(line: bytes, key: Any, named: str) -> None:
    answer = refused(line).answer
    assert answer is not None
    assert (answer.error.code, answer.id) == (-32600, key)
    assert f"the key {named} occurs twice" in answer.error.message


def test_a_batch_is_read_under_its_protocol_version_and_refused_under_every_other() -> None:
    line = json.dumps([PING, 1, {"jsonrpc": "2.0", "method": "notifications/x"}, {"id": 7, "method": "ping"}]).encode()
    found = read_line(line, BATCHES)
    assert isinstance(found, MessageBatch)
    assert [getattr(one, "id", None) for one in found.messages] == [1, None]
    assert [(one.error.code, one.id) for one in found.answers] == [(-32600, None), (-32600, 7)]
    for version in ("", "2024-11-05", MODERN, "2025-11-25", "2026-07-28"):
        assert answered(line, version) == (-32600, None)


@pytest.mark.parametrize("line", [b"[]", json.dumps([PING] * (MAX_BATCH + 1)).encode(), b'[{"a":1,"a":2}]'])
def test_a_batch_that_is_empty_or_too_long_or_repeats_a_key_is_one_invalid_request(line: bytes) -> None:
    assert answered(line, BATCHES) == (-32600, None)


def test_initialize_is_refused_in_a_batch() -> None:
    found = read_line(json.dumps([{**PING, "method": "initialize"}]).encode(), BATCHES)
    assert isinstance(found, MessageBatch)
    assert not found.messages
    assert [(one.error.code, one.id) for one in found.answers] == [(-32600, 1)]


LONG = (
    (b'{"jsonrpc":"2.0","id":11,"method":"ping","params":{"x":"%s"}}', 11),
    (b'{"method":"ping","params":{"x":"%s","id":5,"y":"\\"id\\":6"},"jsonrpc":"2.0","id":"last"}', "last"),
    (b'{"method":"ping","params":{"\\\\":"\\\\","x":"%s\\\\"},"id":  12}', 12),
    (b'{"method":"ping","params":["%s"],"id":null}', None),
)


@pytest.mark.parametrize(("line", "key"), LONG)
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_the_id_of_a_request_that_is_too_long_is_found_in_pieces_of_any_size(line: bytes, key: Any, step: int) -> None:
    whole = line % (b'y\\"' * 5000)
    outline = LineOutline()
    for at in range(0, len(whole), step):
        outline.feed(whole[at : at + step])
    outline.feed(b"", is_last=True)
    answer = refuse_long(outline).answer if key is not None else None
    assert answer is None or (answer.error.code, answer.id) == (-32600, key)
    assert outline.members.get("id") == key


def test_an_answer_that_is_too_long_gets_no_answer() -> None:
    outline = LineOutline()
    outline.feed(b'{"jsonrpc":"2.0","id":1,"result":{"x":"%s"}}' % (b"y" * 5000), is_last=True)
    assert refuse_long(outline).answer is None


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":[-%s]}}', 5),
        (b'{"jsonrpc":"2.0","params":{"a":%s},"id":"x","method":"tools/call"}', "x"),
        (b'{"id":7,"params":{"a":%s}}', 7),
        (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}', None),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":%s}}]', None),
    ],
)
def test_an_integer_of_too_many_digits_is_named_in_the_answer_to_its_request(line: bytes, key: object) -> None:
    read = read_line(line % (b"9" * 5000), BATCHES)
    assert isinstance(read, RefusedLine)
    assert read.answer is not None
    assert (read.answer.error.code, read.answer.id) == (-32600, key)
    assert read.answer.error.message == (
        "The request cannot be read: it has an integer of 5000 digits; at most 4300 are read."
    )


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":[%s]}}', 5),
        (b'{"jsonrpc":"2.0","params":{"arguments":{"x":%s}},"id":"x","method":"tools/call"}', "x"),
        (b'{"jsonrpc":"2.0","id":6,"method":"ping","more":%s}', 6),
        (b'{"id":7,"params":{"a":%s}}', 7),
        (b'{"jsonrpc":"2.0","id":8,"method":"ping","params":[%s,1' + b"9" * 5000 + b"]}", 8),
        (b'{"jsonrpc":"2.0","id":%s,"method":"ping"}', None),
        (b'[{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":%s}}]', None),
    ],
)
def test_a_number_that_json_does_not_have_is_named_in_the_answer_to_its_request(
    line: bytes, key: object, number: bytes
) -> None:
    answer = refused(line % number, BATCHES).answer
    assert answer is not None
    assert (answer.error.code, answer.id) == (-32600, key)
    assert f"JSON has no number {number.decode()}." in answer.error.message


@pytest.mark.parametrize("number", [b"NaN", b"-Infinity"])
def test_a_notification_with_a_number_that_json_does_not_have_gets_no_answer(number: bytes) -> None:
    assert refused(b'{"jsonrpc":"2.0","method":"notifications/x","params":{"a":%s}}' % number).answer is None


@pytest.mark.parametrize(
    "answer", [b'"result":{}', b'"error":{"code":1,"message":"x"}', b'"result":5', b'"error":null']
)
def test_a_request_with_members_of_an_answer_is_no_request(answer: bytes) -> None:
    found = refused(b'{"jsonrpc":"2.0","id":5,"method":"ping",%s}' % answer).answer
    assert found is not None
    assert (found.error.code, found.id) == (-32600, 5)
    assert "`method` cannot be in one message with `result` or `error`" in found.error.message
    batch = read_line(b'[{"jsonrpc":"2.0","id":5,"method":"ping",%s}]' % answer, BATCHES)
    assert isinstance(batch, MessageBatch)
    assert ([(one.error.code, one.id) for one in batch.answers], batch.messages) == ([(-32600, 5)], [])


def test_an_answer_with_a_result_and_an_error_is_left_out() -> None:
    assert refused(b'{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"x"}}').answer is None
