"""XML as a stream of elements, in memory that does not grow with the file.

A document type with definitions of its own is refused, because entities can make a small file endless. One that only
names a file is passed over, and the file is not read. Whoever reads says which elements have text that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO, Final, NamedTuple
from xml.parsers import expat

from kbcore import limits
from kbcore.process import interrupting
from kbcore.results.reported import ReportFault

_MAX_DEPTH: Final = 200
_CHUNK_BYTES: Final = 64 * limits.KIB
WRITE_AGAIN: Final = "Have the tool write the report again, and wait until it is complete."
_WRITE_VALID: Final = (
    "Have the tool write the report again. Characters that XML cannot hold, such as those that colour a terminal, come "
    "from messages of tests: turn colours off."
)
_IS_CUT: Final = frozenset(
    {
        expat.errors.codes[one]
        for one in (
            expat.errors.XML_ERROR_NO_ELEMENTS,
            expat.errors.XML_ERROR_UNCLOSED_TOKEN,
            expat.errors.XML_ERROR_PARTIAL_CHAR,
            expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
        )
    }
)
"""The errors of a file whose end is missing."""


class Element(NamedTuple):
    """The beginning or the end of an element; ``text`` is at the end of one whose text counts."""

    is_end: bool
    tag: str
    attributes: dict[str, str]
    text: str
    line: int


def elements(file: BinaryIO, with_text: frozenset[str] = frozenset()) -> Iterator[Element]:
    """Yield beginnings and ends of elements in their order; tags are without a prefix.

    Raises: ``ReportFault`` for what is no XML, or is not read; ``OSError``.
    """
    stream = _Stream(with_text)
    try:
        while chunk := file.read(_CHUNK_BYTES):
            interrupting.check()
            stream.parser.Parse(chunk, False)
            yield from stream.take()
        stream.parser.Parse(b"", True)
    except expat.ExpatError as error:
        is_cut = error.code in _IS_CUT
        message = f"this is no {'complete' if is_cut else 'valid'} XML: {expat.ErrorString(error.code)}"
        raise ReportFault("malformed_xml", message, WRITE_AGAIN if is_cut else _WRITE_VALID, error.lineno) from error
    except (LookupError, ValueError) as error:  # an encoding that is unknown, or has several bytes for a character
        message = f"this is no XML that can be decoded: {error}"
        raise ReportFault("malformed_xml", message, "Write the report as UTF-8.", 1) from error
    yield from stream.take()


class _Stream:
    """The elements that were met since they were last taken."""

    def __init__(self, with_text: frozenset[str]) -> None:
        self._with_text = with_text
        self._found: list[Element] = []
        self._open: list[tuple[str, list[str] | None]] = []
        self._chars = 0
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._begin
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._text
        self.parser.StartDoctypeDeclHandler = self._document_type
        self.parser.EntityDeclHandler = self._refuse_entities

    def take(self) -> list[Element]:
        taken, self._found = self._found, []
        return taken

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if len(self._open) >= _MAX_DEPTH:
            remedy = "Name a report of a test run: none is nested so deep."
            raise ReportFault("too_deep", f"it is nested more than {_MAX_DEPTH} deep", remedy, line)
        tag = name.rpartition(":")[2]
        self._open.append((tag, [] if tag in self._with_text else None))
        self._chars = 0
        self._found.append(Element(False, tag, attributes, "", line))

    def _end(self, _: str) -> None:
        tag, parts = self._open.pop()
        self._found.append(Element(True, tag, {}, "".join(parts or ()), self.parser.CurrentLineNumber))

    def _text(self, text: str) -> None:
        parts = self._open[-1][1] if self._open else None
        if parts is not None and self._chars < limits.MAX_REPORTED_TEXT_CHARS:
            parts.append(text[: limits.MAX_REPORTED_TEXT_CHARS - self._chars])
            self._chars += len(text)

    def _document_type(self, _name: str, _system: str | None, _public: str | None, has_definitions: int) -> None:
        if has_definitions:
            self._refuse_entities()

    def _refuse_entities(self, *_: Any) -> None:
        message = "it has a document type with definitions of its own, which is not read"
        remedy = "Reports of tests have none: have the tool write the report without it."
        raise ReportFault("document_type", message, remedy, self.parser.CurrentLineNumber)
