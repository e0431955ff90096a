"""Reads one line of input as a JSON-RPC message, as a batch of messages, or as the error to answer with.

Every request gets an answer, however broken, deep or long it is: with the id of the request where it
can be found, else with the id null, as JSON-RPC 2.0 says.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import mcp_types as types
import msgspec

from kbcore.errors import KBError, ResourceLimit
from kbcore.limits import MIB
from kbcore.text.escaping import in_quotes

MAX_MESSAGE_BYTES: Final = 32 * MIB
MAX_LEVELS: Final = 201
"""The depth to which lists and objects of a message may be nested, for the parser of pydantic that reads them."""
MAX_BATCH: Final = 256

BATCHES: Final = "2025-03-26"
"""The only version of the protocol that has batches."""

_NO_JSON: Final = "The line is not valid JSON: a message is one line of JSON in UTF-8."
_UNREADABLE: Final = "The request cannot be read: {}."
_NOT_UNICODE: Final = "a text in it has incomplete Unicode characters"
_FAULTS: Final = {
    "jsonrpc": '`jsonrpc` must be "2.0"',
    "method": "`method` must be a string",
    "params": "`params` must be an object",
}
_MISSING: Final = "`{}` is missing"
_NO_OBJECT: Final = "a message is a JSON object"
_SAME_ID: Final = "Another request with this `id` has no answer yet. This one was not run: use a new `id`."
_NO_ID: Final = "The request cannot be read: the `id` of a request is a string or an integer, and not null."
_TOO_DEEP: Final = "The request cannot be read: its lists and objects are nested {} levels deep; at most {} are read."
_TOO_LONG: Final = "The request is longer than {} bytes. Split it into several requests."
_REPEATED: Final = "The request cannot be read: the key {} occurs twice in one object."
_NO_NUMBER: Final = "The request cannot be read: JSON has no number {}."
_TWO_KINDS: Final = "`method` cannot be in one message with `result` or `error`"
_LONG_NUMBER: Final = "The request cannot be read: it has an integer of {} digits; at most {} are read."
_NO_BATCH: Final = "A batch is not a message of this protocol version, only of {}. Send each request by itself."
_LONG_BATCH: Final = "A batch of {} messages cannot be read: at most {} are. Split it into several."
_EMPTY_BATCH: Final = "A batch cannot be empty."
_INITIALIZE: Final = "`initialize` cannot be part of a batch. Send it by itself."

_SHOWN_KEY: Final = 60
_ANSWERS: Final = frozenset({"result", "error"})
_KINDS: Final = frozenset({"method", "result", "error"})
_KEYS: Final = frozenset({b'"id"', b'"method"', b'"result"', b'"error"'})
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_MARK: Final = re.compile(rb'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?P<ends>"|\\?\Z))|(?P<opens>[\[{]+)|[\]}]+', re.DOTALL)
_REST_OF_TEXT: Final = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*(?P<ends>"|\\?\Z)', re.DOTALL)
_VALUE: Final = re.compile(rb'\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]{1,300}(?![0-9.eE]))', re.DOTALL)
_HELD_BYTES: Final = 4096
"""The number of bytes of an outline that are kept until more arrives; no id is longer."""

Message = types.JSONRPCMessage
Pairs = Iterable[tuple[str, Any]]
"""The members of an object in their order; a key may occur twice."""


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that is no message. ``answer`` is None where the client expects none: then ``note`` says what it was."""

    answer: types.JSONRPCError | None
    note: str = ""


class MessageBatch(msgspec.Struct, frozen=True):
    """The messages of a batch, and the answers to those parts of it that are none."""

    messages: Sequence[Message]
    answers: Sequence[types.JSONRPCError]


def read_line(line: bytes, protocol_version: str) -> Message | MessageBatch | RefusedLine | None:
    """Return what a line says under this version of the protocol; None for an empty one."""
    if not line.strip():
        return None
    try:
        text = line.decode()
        message = types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _read_other(line, protocol_version)
    keys = _Keys()
    # The parser of pydantic takes the last of two members with one key, and takes NaN for a number. A parse error has
    # the id null, and no client would know which request it answers: so what is wrong is named under the request's id.
    try:
        json.loads(text, object_pairs_hook=keys.take, parse_constant=keys.take_constant)
    except ValueError:
        return _refuse_number(text)
    if keys.fault:
        return _refused(keys.fault, keys.outermost)
    if not _is_whole(message, dict(keys.outermost)):
        return _refused("", keys.outermost)
    return message


def refuse_long(outline: LineOutline, lacking: ResourceLimit | None = None) -> RefusedLine:
    """Return what to answer to a message of more than ``MAX_MESSAGE_BYTES``, or for which something is ``lacking``."""
    if lacking is None:
        return _refused(_TOO_LONG.format(MAX_MESSAGE_BYTES), outline.members.items())
    return _refused(f"{lacking.message} {lacking.hint}", outline.members.items(), types.INTERNAL_ERROR)


def refuse_repeated(request: types.JSONRPCRequest) -> RefusedLine:
    """Return what to answer to a request whose id is that of another one, which is not answered yet."""
    return RefusedLine(error_answer(types.INVALID_REQUEST, _SAME_ID, request.id))


def error_answer(
    code: int, message: str, key: types.RequestId | None, error: KBError | None = None
) -> types.JSONRPCError:
    """Return an error as the answer to the request of this id; ``error`` is the error of KB in it."""
    if error is None:
        return types.JSONRPCError(jsonrpc="2.0", id=key, error=types.ErrorData(code=code, message=message))
    data = types.ErrorData(code=code, message=message, data={"error": error.as_json()})
    return types.JSONRPCError(jsonrpc="2.0", id=key, error=data)


class LineOutline:
    """The nesting depth of a line, and the members of its outermost object that say which request it is.

    The line is fed in pieces of any size. No depth and no length is too much: little of it is kept.
    """

    def __init__(self) -> None:
        self.levels = 0
        self.members: dict[str, Any] = {}
        """``id`` and ``method`` where they are a text or an integer; ``result`` and ``error`` with no value."""
        self._level = 0
        self._held = b""
        self._is_in_text = False

    def feed(self, piece: bytes, *, is_last: bool = False) -> None:
        """Take the next piece of the line."""
        data, self._held, at = self._held + piece, b"", 0
        if self._is_in_text:
            rest = _REST_OF_TEXT.match(data)
            at = rest.end() if rest else len(data)
            self._is_in_text = rest is None or rest["ends"] != b'"'
            if self._is_in_text:
                self._held = data[-1:] if rest and rest["ends"] else b""
                return
        for mark in _MARK.finditer(data, at):
            is_cut = not is_last and mark["text"] is not None and mark["ends"] != b'"'
            if is_cut and len(data) - mark.start() > _HELD_BYTES:
                self._is_in_text, self._held = True, data[-1:] if mark["ends"] else b""
                return
            is_key = self._level == 1 and mark["text"] is not None and mark[0] in _KEYS
            if is_cut or (is_key and not is_last and len(data) - mark.end() < _HELD_BYTES):
                self._held = data[mark.start() :]
                return
            self._take(mark, data)

    def _take(self, mark: re.Match[bytes], data: bytes) -> None:
        if mark["opens"]:
            self._level += len(mark[0])
            self.levels = max(self.levels, self._level)
        elif not mark["text"]:
            self._level -= len(mark[0])
        elif self._level == 1 and mark[0] in _KEYS:
            key = mark[0].decode()[1:-1]
            value = _VALUE.match(data, mark.end())
            if key in _ANSWERS and data[mark.end() : mark.end() + _HELD_BYTES].lstrip().startswith(b":"):
                self.members[key] = None
            elif key not in _ANSWERS and value:
                with contextlib.suppress(ValueError):  # a text with escapes that mean nothing is no id
                    self.members[key] = json.loads(value[1].decode(errors="replace"), strict=False)


def _is_whole(message: Message, members: Mapping[str, Any]) -> bool:
    """Return whether a message matches its members.

    With an id that is none, a request reads as a notification; with the members of an answer, it is two messages.
    """
    is_one = len(members.keys() & _KINDS) == 1
    return is_one and not (isinstance(message, types.JSONRPCNotification) and "id" in members)


def _read_other(line: bytes, protocol_version: str) -> MessageBatch | RefusedLine:
    """Read a line that is not one valid message."""
    outline = LineOutline()
    outline.feed(line, is_last=True)
    if outline.levels > MAX_LEVELS:
        return _refused(_TOO_DEEP.format(outline.levels, MAX_LEVELS), outline.members.items())
    keys = _Keys()
    try:
        text = line.decode()
    except ValueError:
        return RefusedLine(error_answer(types.PARSE_ERROR, _NO_JSON, None))
    try:
        found = json.loads(text, object_pairs_hook=keys.take, parse_constant=keys.take_constant)
    except ValueError:
        return _refuse_number(text)
    if isinstance(found, list):
        return _read_batch(found, keys, protocol_version)
    if not isinstance(found, dict):
        return RefusedLine(error_answer(types.INVALID_REQUEST, _UNREADABLE.format(_NO_OBJECT), None))
    return _refused(keys.fault, keys.outermost)


def _refuse_number(text: str) -> RefusedLine:
    """Return what to answer to a text that Python does not parse, be it no JSON or an integer with too many digits."""
    keys = _Keys()
    try:
        found = json.loads(
            text, object_pairs_hook=keys.take, parse_int=keys.take_integer, parse_constant=keys.take_constant
        )
    except ValueError:
        return RefusedLine(error_answer(types.PARSE_ERROR, _NO_JSON, None))
    reason = keys.fault or _LONG_NUMBER.format(keys.most_digits, sys.get_int_max_str_digits())
    if isinstance(found, dict):
        return _refused(reason, keys.outermost)
    return RefusedLine(error_answer(types.INVALID_REQUEST, reason, None))


def _read_batch(found: list[Any], keys: _Keys, protocol_version: str) -> MessageBatch | RefusedLine:
    if protocol_version != BATCHES:
        return RefusedLine(error_answer(types.INVALID_REQUEST, _NO_BATCH.format(BATCHES), None))
    if not found or len(found) > MAX_BATCH or keys.fault:
        reason = keys.fault or (_LONG_BATCH.format(len(found), MAX_BATCH) if found else _EMPTY_BATCH)
        return RefusedLine(error_answer(types.INVALID_REQUEST, reason, None))
    messages: list[Message] = []
    answers: list[types.JSONRPCError] = []
    for one in found:
        try:
            message = types.jsonrpc_message_adapter.validate_python(one, by_name=False)
        except ValueError:
            message = None
        if not isinstance(one, dict):
            answers.append(error_answer(types.INVALID_REQUEST, _UNREADABLE.format(_NO_OBJECT), None))
            continue
        if message is None or not _is_whole(message, one):
            refused = _refused("", one.items())
            answers += [refused.answer] if refused.answer else []
            continue
        if isinstance(message, types.JSONRPCRequest) and message.method == "initialize":
            answers.append(error_answer(types.INVALID_REQUEST, _INITIALIZE, message.id))
        else:
            messages.append(message)
    return MessageBatch(messages, answers)


class _Keys:
    """The members of the outermost object of a JSON text, and what the text holds that its parser would let pass."""

    def __init__(self) -> None:
        self.fault = ""
        """The first key that occurs twice in one object, or the first number that JSON does not have."""
        self.outermost: Sequence[tuple[str, Any]] = ()
        self.most_digits = 0

    def take_integer(self, digits: str) -> int | None:
        """Return an integer; None for one with more digits than Python converts."""
        self.most_digits = max(self.most_digits, len(digits.lstrip("-")))
        try:
            return int(digits)
        except ValueError:
            return None

    def take_constant(self, name: str) -> None:
        """Note NaN, Infinity or -Infinity, which Python reads and JSON does not have."""
        self.fault = self.fault or _NO_NUMBER.format(name)

    def take(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return the object of these members; the parser calls it for the outermost one last."""
        found = dict(pairs)
        self.outermost = pairs
        if len(found) < len(pairs) and not self.fault:
            seen: set[str] = set()
            repeated = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
            self.fault = _REPEATED.format(in_quotes(repeated[:_SHOWN_KEY]))
        return found


def _refused(reason: str, pairs: Pairs, code: int = types.INVALID_REQUEST) -> RefusedLine:
    """Return what to do about an object that is no message, by its members; without a reason the first one is found.

    Answers and notifications get no answer: their sender waits for none.
    """
    members = list(pairs)
    named = dict(members)
    if "method" not in named and named.keys() & _ANSWERS:
        return RefusedLine(None, "an answer that is none of JSON-RPC 2.0")
    if "id" not in named and isinstance(named.get("method"), str):
        return RefusedLine(None, "a notification that is none of MCP")
    key = named.get("id")
    is_id = not _HALF_PAIR.search(key) if isinstance(key, str) else isinstance(key, int) and not isinstance(key, bool)
    is_sure = is_id and sum(name == "id" for name, _ in members) == 1
    if not reason:
        reason = _UNREADABLE.format(_fault(named)) if is_id or "id" not in named else _NO_ID
    return RefusedLine(error_answer(code, reason, key if is_sure else None))


def _fault(members: Mapping[str, Any]) -> str:
    """Return what is wrong with the members of a request."""
    for name in ("jsonrpc", "method"):
        if name not in members:
            return _MISSING.format(name)
    wrong = [
        name
        for name, is_right in (
            ("jsonrpc", members["jsonrpc"] == "2.0"),
            ("method", isinstance(members["method"], str)),
            ("params", isinstance(members.get("params", {}), dict)),
        )
        if not is_right
    ]
    if wrong:
        return _FAULTS[wrong[0]]
    return _TWO_KINDS if members.keys() & _ANSWERS else _NOT_UNICODE
