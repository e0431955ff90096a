"""The jobs of worker processes: what each is asked and answers, and the functions that both sides share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from kbcore.extract.facts import Extractor, Facts
from kbcore.extract.registry import BUILT_IN
from kbcore.sync.reading import FileContent, FileToRead, read_content

_UNSENDABLE: Final = (OverflowError, UnicodeEncodeError, TypeError, RecursionError)
"""Facts that hold such a value are read where they are used."""


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


Job = UseExtractors | ReadFiles

_encoder: Final = msgspec.msgpack.Encoder()
_job: Final = msgspec.msgpack.Decoder(Job)
_contents: Final = msgspec.msgpack.Decoder(list[EncodedContent | None])
_facts: Final = msgspec.msgpack.Decoder(Facts)


def encode(job: Job) -> bytes:
    """Return the message of a job or of a preparation."""
    return _encoder.encode(job)


def decode_contents(answer: bytes) -> list[EncodedContent | None]:
    """Return the answer to ``ReadFiles``."""
    return _contents.decode(answer)


def decode_facts(encoded: bytes) -> Facts:
    """Return the facts of one file."""
    return _facts.decode(encoded)


class JobRunner:
    """The worker's side: what it was prepared with."""

    def __init__(self) -> None:
        self._extractors: Sequence[tuple[Extractor, Mapping[str, Any]]] = ()

    def answer(self, message: bytes) -> bytes:
        """Carry out one message and return the answer."""
        job = _job.decode(message)
        if isinstance(job, UseExtractors):
            self._extractors = [(BUILT_IN[name], settings) for name, settings in job.extractors]
            return b""
        return _encoder.encode([_encoded(self._read(file, job.now_ns)) for file in job.files])

    def _read(self, file: FileToRead, now_ns: int) -> FileContent:
        return read_content(file, *self._extractors[file.extractor], now_ns)


def _encoded(content: FileContent) -> EncodedContent | None:
    try:
        facts = b"" if content.facts is None else _encoder.encode(content.facts)
    except _UNSENDABLE:
        return None
    return EncodedContent(content.hash, content.looks, facts, content.is_gone)
