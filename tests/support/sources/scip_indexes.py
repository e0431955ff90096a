"""SCIP indexes as the library of Protocol Buffers writes and reads them, and those that real indexers wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

FIXTURES: Final = Path(__file__).parents[2] / "core" / "extract" / "scip" / "fixtures"
DEFINITION: Final = 1
_TEXT, _NUMBER, _MESSAGE = 9, 5, 11
_ONE, _MANY = 1, 3
_MESSAGES: Final[dict[str, list[tuple[str, int, int, int, str]]]] = {
    "Index": [("metadata", 1, _ONE, _MESSAGE, "Metadata"), ("documents", 2, _MANY, _MESSAGE, "Document")],
    "Metadata": [("project_root", 3, _ONE, _TEXT, "")],
    "Document": [
        ("relative_path", 1, _ONE, _TEXT, ""),
        ("occurrences", 2, _MANY, _MESSAGE, "Occurrence"),
        ("symbols", 3, _MANY, _MESSAGE, "SymbolInformation"),
        ("language", 4, _ONE, _TEXT, ""),
        ("text", 5, _ONE, _TEXT, ""),
    ],
    "Occurrence": [
        ("range", 1, _MANY, _NUMBER, ""),
        ("symbol", 2, _ONE, _TEXT, ""),
        ("symbol_roles", 3, _ONE, _NUMBER, ""),
        ("enclosing_range", 7, _MANY, _NUMBER, ""),
    ],
    "SymbolInformation": [
        ("symbol", 1, _ONE, _TEXT, ""),
        ("documentation", 3, _MANY, _TEXT, ""),
        ("relationships", 4, _MANY, _MESSAGE, "Relationship"),
        ("kind", 5, _ONE, _NUMBER, ""),
        ("signature_documentation", 7, _ONE, _MESSAGE, "Document"),
    ],
    "Relationship": [("symbol", 1, _ONE, _TEXT, ""), ("is_implementation", 3, _ONE, 8, "")],
}
"""The fields of scip.proto that tests need: name, number, label, type and message."""


def _pool() -> descriptor_pool.DescriptorPool:
    file = descriptor_pb2.FileDescriptorProto(name="scip.proto", package="scip", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, label, type_, of in fields:
            more = {"type_name": f".scip.{of}"} if of else {}
            message.field.add(name=field, number=number, label=label, type=type_, **more)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


Index: Final[Any] = message_factory.GetMessageClass(_pool().FindMessageTypeByName("scip.Index"))


def written(*documents: dict[str, Any]) -> bytes:
    """Return an index with these documents, with the names of fields that the format has."""
    found: bytes = Index(metadata={"project_root": "file:///shop"}, documents=documents).SerializeToString()
    return found


def defined(symbol: str, at: list[int], around: Iterable[int] = ()) -> dict[str, Any]:
    """Return the definition of a symbol."""
    return {"symbol": symbol, "range": at, "enclosing_range": [*around], "symbol_roles": DEFINITION}


def named(symbol: str, at: list[int]) -> dict[str, Any]:
    """Return a reference to a symbol."""
    return {"symbol": symbol, "range": at}


def sources(name: str) -> Iterator[tuple[str, str]]:
    """Yield path and text of each source file of a fixture."""
    for path in sorted((FIXTURES / name).rglob("*.txt")):
        yield path.relative_to(FIXTURES / name).as_posix().removesuffix(".txt"), path.read_text()


def index_of(name: str) -> bytes:
    """Return the index that the indexer of the language wrote for a fixture."""
    return (FIXTURES / name / "index.scip").read_bytes()
