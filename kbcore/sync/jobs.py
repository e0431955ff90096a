"""The jobs of worker processes: what each is asked and answers. ``job_runner`` carries them out."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kbcore.extract.facts import Facts
from kbcore.git.file_dates import DocumentDates
from kbcore.model.schema import Schema
from kbcore.model.state import Stamp
from kbcore.sync.reading import FileContent, FileToRead
from kbcore.text.problems import FileProblem

OPERATIONS: Final = ("put", "state", "read")
"""The kinds of the operations of a first sync, in their order: of entities, of edges, and of files."""

_UNSENDABLE: Final = (OverflowError, UnicodeEncodeError, TypeError, RecursionError)
"""Errors of encoding for facts with a value that cannot be sent, such as a number of many digits."""


class UseExtractors(msgspec.Struct, frozen=True, tag=True):
    """Preparation: the extractors with their settings; jobs name one by its number. Only KB's own are named."""

    extractors: list[tuple[str, dict[str, Any]]]


class ReadFiles(msgspec.Struct, frozen=True, tag=True):
    """The job to read files; the answer is an ``EncodedContent`` for each, None for one that has to be read here."""

    now_ns: int
    files: list[FileToRead]


class EncodedContent(msgspec.Struct, frozen=True, array_like=True):
    """A ``FileContent`` whose facts are encoded: most are needed by another process, or later."""

    hash: str
    looks: tuple[int, int, int, int] | None
    facts: bytes
    is_gone: bool


class EntityList(msgspec.Struct, frozen=True):
    """The entities that files state: the id of each, the path of the file that keeps it, and its type by a number.

    They are in the order of files and of their entries. ``unkept`` are those that cannot be recorded.
    """

    ids: list[str] = []
    paths: list[str] = []
    type_numbers: list[int] = []
    types: list[str] = []
    unkept: list[str] = []


class PrepareFirst(msgspec.Struct, frozen=True, tag=True):
    """Preparation of ``PlanPart``."""

    schema: Schema
    stamp: Stamp
    entities: EntityList


class PlanPart(msgspec.Struct, frozen=True, tag=True):
    """The job to plan a part of a first sync; the answer is a ``JobResult``, None where its files have no room.

    ``files`` has path, hash, mark of the extractor and encoded facts of each, ``dates`` what git knows of some of them.
    """

    number: int
    folder: str
    files: list[tuple[str, str, str, bytes]]
    dates: dict[str, DocumentDates] = {}


class JobResult(msgspec.Struct, frozen=True, array_like=True):
    """The result for some files.

    Its operations and rows are in files (``part_file``). ``created`` are entities, ``link_keys`` edges, and
    ``with_fields`` those of them of which a file states fields. ``unresolved`` are edges, each with whether it leads to
    a page that is no entity. ``is_plain`` is false where a part cannot say what comes of its files.
    """

    vocabulary: int
    created: list[str]
    link_keys: list[str]
    with_fields: list[str]
    unresolved: list[tuple[str, bool]]
    problems: list[tuple[str, FileProblem]]
    warnings: list[str]
    is_plain: bool
    row_bytes: int = 0


Job = UseExtractors | ReadFiles | PrepareFirst | PlanPart

_encoder: Final = msgspec.msgpack.Encoder()
_job: Final = msgspec.msgpack.Decoder(Job)
_contents: Final = msgspec.msgpack.Decoder(list[EncodedContent | None])
_facts: Final = msgspec.msgpack.Decoder(Facts)
_part: Final = msgspec.msgpack.Decoder(JobResult | None)


def encode(job: Job) -> bytes:
    """Return the message of a job or of a preparation."""
    return _encoder.encode(job)


def decode(message: bytes) -> Job:
    """Return the job or preparation of a message."""
    job: Job = _job.decode(message)
    return job


def decode_contents(answer: bytes) -> list[EncodedContent | None]:
    """Return the answer to ``ReadFiles``."""
    return _contents.decode(answer)


def decode_facts(encoded: bytes) -> Facts:
    """Return the facts of one file."""
    return _facts.decode(encoded)


def decode_part(answer: bytes) -> JobResult | None:
    """Return the answer to ``PlanPart``."""
    part: JobResult | None = _part.decode(answer)
    return part


def encode_content(content: FileContent) -> EncodedContent | None:
    """Return the content of a file for another process; None where that has to read it itself."""
    facts = encode_facts(content.facts)
    if content.facts is not None and not facts:
        return None
    return EncodedContent(content.hash, content.looks, facts, content.is_gone)


def encode_answer(answer: list[EncodedContent | None] | JobResult | None) -> bytes:
    """Return the message of an answer."""
    return _encoder.encode(answer)


def encode_facts(facts: Facts | None) -> bytes:
    """Return the facts of a file for another process; "" for none, and for facts that cannot be sent."""
    try:
        return b"" if facts is None else _encoder.encode(facts)
    except _UNSENDABLE:
        return b""


def part_file(folder: str, kind: str, number: int) -> str:
    """Return the path of a file of a part: the rows of a table, as lines of JSON, or operations of a kind.

    Operations, of the kinds of ``OPERATIONS``, are JSON with commas between them.
    """
    return f"{folder}/{kind}-{number}.json"
