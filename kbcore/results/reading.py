"""A report as a file: which format it has by its content, and its outcomes or lines, read as a stream."""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import stat
from collections.abc import Iterator
from typing import BinaryIO, Final, Literal

import msgspec

from kbcore import limits
from kbcore.process import interrupting
from kbcore.results import junit, line_coverage, tap
from kbcore.results.reported import CoveredLines, ReportedOutcome, ReportFault
from kbcore.results.xml_stream import Element, elements
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import one_of, shortened

Format = Literal["junit", "tap", "cobertura", "lcov"]
_NAMES: Final[dict[Format, str]] = {"junit": "JUnit XML", "tap": "TAP", "cobertura": "Cobertura XML", "lcov": "lcov"}
OF_COVERAGE: Final[tuple[Format, ...]] = ("cobertura", "lcov")
_KNOWN: Final = one_of([*_NAMES.values()])
_REMEDY: Final = f"Name a report in {_KNOWN}."
_INSTEAD: Final = {
    "report": ("JaCoCo", "Convert it to Cobertura XML, or have the build write that."),
    "assemblies": ("xUnit.net", "Have the runner write JUnit XML: `dotnet test --logger junit`."),
    "TestRun": ("TRX", "Have the runner write JUnit XML: `dotnet test --logger junit`."),
    "test-run": ("NUnit 3", "Have the runner write JUnit XML."),
    "test-results": ("NUnit 2", "Have the runner write JUnit XML."),
    "html": ("a page of HTML", "Name the report that the page was made of."),
    "robot": ("Robot Framework", "Have it write JUnit XML with `--xunit FILE`."),
}
"""Roots of XML of other formats, by what they are known, and what to do instead."""
_BEGINNING_BYTES: Final = 4 * limits.KIB
_BYTE_ORDER_MARKS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_MAX_LINE_CHARS: Final = limits.MIB
_SHOWN_CHARS: Final = 60


class OpenReport(msgspec.Struct, frozen=True):
    """A report that is open: its format, and what it says, which is read once.

    ``notes`` has sentences about the run as a whole, complete once all outcomes were taken.
    """

    format: Format
    outcomes: Iterator[ReportedOutcome] = iter(())
    covered: Iterator[CoveredLines] = iter(())
    notes: list[str] = []


@contextlib.contextmanager
def opened(path: str) -> Iterator[OpenReport]:
    """Give the report in a file.

    Raises: ``ReportFault`` when it cannot be used, also while its outcomes are taken; ``OSError``.
    """
    # Not a pipe, which would have to be waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode):
            raise ReportFault("no_file", "it is no regular file", "Name a file; a pipe or a folder is not read.")
        if about.st_size > limits.MAX_REPORT_BYTES:
            message = f"it has {about.st_size} bytes; the limit is {limits.MAX_REPORT_BYTES}"
            raise ReportFault("too_long", message, "Have the tool write a report for each part of the tests.")
        yield report_of(file)


def report_of(file: BinaryIO) -> OpenReport:
    """Return the report in the content of a file, from its beginning. Raises: ``ReportFault``."""
    beginning = file.read(_BEGINNING_BYTES)
    file.seek(0)
    if not beginning.strip():
        message = "it is empty" if not beginning else "it has nothing but white space"
        raise ReportFault("empty_report", message, "Run the tests first, and wait until the report is complete.")
    text = beginning.removeprefix(_BYTE_ORDER_MARKS[0]).lstrip()
    if text.startswith(b"<") or beginning.startswith(_BYTE_ORDER_MARKS[1:]):
        return _of_xml(file)
    return _of_text(file, text.decode("utf-8", "replace"))


def _of_xml(file: BinaryIO) -> OpenReport:
    found = elements(file, junit.WITH_TEXT | line_coverage.WITH_TEXT)
    root = next(found, None)
    if root is None:
        raise ReportFault("malformed_xml", "it has no element", _REMEDY)
    whole = itertools.chain([root], found)
    if root.tag in junit.ROOTS:
        return OpenReport("junit", outcomes=junit.outcomes(whole))
    if root.tag == line_coverage.ROOT and root.attributes.keys() & line_coverage.OF_COBERTURA:
        return OpenReport("cobertura", covered=line_coverage.of_cobertura(whole))
    raise _other_root(root)


def _other_root(root: Element) -> ReportFault:
    if root.tag == line_coverage.ROOT:
        message = "it is a report of coverage, but not Cobertura's: its root has no `line-rate`"
        return ReportFault("other_format", message, "Have the tool write Cobertura XML or lcov.", root.line)
    name, remedy = _INSTEAD.get(root.tag, ("", _REMEDY))
    what = f"it is {name}" if name else "it is no report that KB reads"
    message = f"{what}: the root is {in_quotes(shortened(root.tag, _SHOWN_CHARS))}"
    return ReportFault("other_format", message, remedy, root.line)


def _of_text(file: BinaryIO, beginning: str) -> OpenReport:
    lines = [line.strip() for line in beginning.splitlines()]
    if any(map(line_coverage.LCOV_BEGINS.match, lines)) and not any(map(tap.BEGINS.match, lines)):
        return OpenReport("lcov", covered=line_coverage.of_lcov(_lines(file)))
    if any(map(tap.BEGINS.match, lines)):
        notes: list[str] = []
        return OpenReport("tap", outcomes=tap.outcomes(_lines(file), notes), notes=notes)
    if beginning.startswith(("{", "[")):
        remedy = "Have the runner write JUnit XML: `gotestsum --junitfile FILE`, or Jest's reporter `jest-junit`."
        raise ReportFault("other_format", "it is JSON, which KB does not read as a report", remedy, 1)
    first = shortened(next(filter(None, lines), ""), _SHOWN_CHARS)
    message = f"it is no report that KB reads: it begins with {in_quotes(first)}"
    raise ReportFault("other_format", message, _REMEDY, 1)


def _lines(file: BinaryIO) -> Iterator[str]:
    """Yield the lines of a text; what is no UTF-8 in it is replaced, because tests print what they like."""
    with io.TextIOWrapper(file, encoding="utf-8-sig", errors="replace") as text:
        while line := text.readline(_MAX_LINE_CHARS):
            interrupting.check()
            yield line
