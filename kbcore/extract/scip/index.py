"""The content of a SCIP index for each source file: definitions, references, and what implements what.

https://github.com/sourcegraph/scip/blob/main/scip.proto is the format. One document is read at a time; nothing of the
index is kept but what the caller keeps. Positions are one number, ``line << 32 | column``, both from 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec

from kbcore.extract.scip import wire
from kbcore.extract.scip.wire import BrokenIndexError

_METADATA, _DOCUMENT = 1, 2
_PATH, _OCCURRENCE, _INFORMATION, _LANGUAGE, _TEXT = 1, 2, 3, 4, 5
_RANGE, _SYMBOL, _ROLES, _ENCLOSING = 1, 2, 3, 7
_NAME, _RELATIONSHIP, _KIND, _SIGNATURE = 1, 4, 5, 7
_IS_IMPLEMENTATION: Final = 3
_DEFINITION, _IMPORT, _FORWARD = 0x1, 0x2, 0x40
_ON_ONE_LINE, _ON_LINES = 3, 4
_LOCAL: Final = b"local "


class Span(NamedTuple):
    """A range of positions, without its end."""

    start: int
    end: int


class Occurrence(NamedTuple):
    """A place where a symbol is defined or named; ``around`` is the whole definition where the index has it."""

    symbol: str
    at: Span
    around: Span | None


class Information(msgspec.Struct, frozen=True):
    """The facts of a symbol in an index beside its places: ``kind`` is a number of the format, 0 for none."""

    kind: int = 0
    signature: str = ""
    implemented: tuple[str, ...] = ()


class IndexedFile(msgspec.Struct):
    """One document of an index: the first definition of each symbol, and all references, without local symbols."""

    path: str
    language: str
    definitions: dict[str, Occurrence]
    references: list[Occurrence]
    information: dict[str, Information]


def files(data: bytes) -> Iterator[IndexedFile]:
    """Yield the documents of an index. Raises: ``BrokenIndexError``."""
    is_index = False
    for key, value in wire.fields(data):
        if key == _DOCUMENT:
            is_index = True
            yield _file(wire.message(value))
        elif key == _METADATA:
            is_index = True
            wire.message(value)
    if not is_index:
        raise BrokenIndexError("it has neither metadata nor documents")


def _file(data: bytes) -> IndexedFile:
    found = IndexedFile("", "", {}, [], {})
    for key, value in wire.fields(data):
        if key == _OCCURRENCE:
            _take_occurrence(found, wire.message(value))
        elif key == _INFORMATION:
            _take_information(found, wire.message(value))
        elif key == _PATH:
            found.path = wire.text(value)
        elif key == _LANGUAGE:
            found.language = wire.text(value)
    return found


def _take_occurrence(found: IndexedFile, data: bytes) -> None:
    named, roles = b"", 0
    at: list[int | bytes] = []
    around: list[int | bytes] = []
    for key, value in wire.fields(data):
        if key == _RANGE:
            at.append(value)
        elif key == _SYMBOL:
            named = wire.message(value)
        elif key == _ROLES:
            roles = wire.number(value)
        elif key == _ENCLOSING:
            around.append(value)
    if not named or named.startswith(_LOCAL):
        return
    one = Occurrence(wire.text(named), _span(at), _span(around) if around and roles & _DEFINITION else None)
    if roles & _DEFINITION:
        found.definitions.setdefault(one.symbol, one)
    elif not roles & (_IMPORT | _FORWARD):
        found.references.append(one)


def _span(stated: list[int | bytes]) -> Span:
    listed = [one for value in stated for one in wire.numbers(value)]
    if len(listed) == _ON_ONE_LINE:
        line, start, end = listed
        return Span(line << 32 | start, line << 32 | end)
    if len(listed) == _ON_LINES:
        return Span(listed[0] << 32 | listed[1], listed[2] << 32 | listed[3])
    raise BrokenIndexError(f"a range has {len(listed)} numbers instead of three or four")


def _take_information(found: IndexedFile, data: bytes) -> None:
    symbol, kind, signature = "", 0, ""
    implemented: list[str] = []
    for key, value in wire.fields(data):
        if key == _NAME:
            symbol = wire.text(value)
        elif key == _KIND:
            kind = wire.number(value)
        elif key == _SIGNATURE:
            signature = next((wire.text(one) for name, one in wire.fields(wire.message(value)) if name == _TEXT), "")
        elif key == _RELATIONSHIP:
            implemented += _implemented(wire.message(value))
    if symbol and not symbol.startswith(_LOCAL.decode()):
        found.information.setdefault(symbol, Information(kind, signature, tuple(implemented)))


def _implemented(data: bytes) -> list[str]:
    """Return the symbol that a relationship says is implemented, nothing for another relationship."""
    target, is_implementation = "", 0
    for key, value in wire.fields(data):
        if key == _NAME:
            target = wire.text(value)
        elif key == _IS_IMPLEMENTATION:
            is_implementation = wire.number(value)
    return [target] if is_implementation else []
