"""Reports of which lines ran: Cobertura XML, as coverage.py and others write it, and lcov."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kbcore.results.reported import CoveredLines, ReportFault
from kbcore.results.xml_stream import Element

ROOT: Final = "coverage"
WITH_TEXT: Final = frozenset({"source"})
OF_COBERTURA: Final = frozenset({"line-rate", "lines-valid", "lines-covered"})
"""Attributes of the root by one of which Cobertura's is known: other tools have a root of the same name."""
LCOV_BEGINS: Final = re.compile(r"(?:TN|SF):")
_NUMBER: Final = re.compile("[0-9]{1,18}")
_DA: Final = re.compile(r"DA:(?P<line>\d{1,9}),(?P<hits>-?\d{1,18})(?:,.*)?")


def of_cobertura(found: Iterable[Element]) -> Iterator[CoveredLines]:
    """Yield the lines that ran of each file. Raises: what reading the elements raises."""
    folders: list[str] = []
    name, lines = "", set[int]()
    for one in found:
        if one.tag == "source" and one.is_end and one.text.strip():
            folders.append(one.text.strip())
        elif one.tag == "class" and one.is_end:
            if name and lines:
                yield CoveredLines(name, frozenset(lines), folders=tuple(folders))
            name, lines = "", set()
        elif one.tag == "class":
            name, lines = one.attributes.get("filename", ""), set()
        elif one.tag == "line" and not one.is_end:
            number, hits = one.attributes.get("number", ""), one.attributes.get("hits", "")
            if not (_NUMBER.fullmatch(number) and _NUMBER.fullmatch(hits)):
                message = "a `line` has no number, or no number of times that it ran"
                raise ReportFault("malformed_report", message, "Have the tool write the report again.", one.line)
            if int(hits) > 0:
                lines.add(int(number))


def of_lcov(found: Iterable[str]) -> Iterator[CoveredLines]:
    """Yield the lines that ran of each file, with the name of the test where one is given.

    Raises: ``ReportFault`` for a record that does not end.
    """
    test, name, lines, number = "", "", set[int](), 0
    for number, line in enumerate(found, 1):  # noqa: B007 - the number of the last one counts
        text = line.strip()
        if text.startswith("TN:"):
            test = text.removeprefix("TN:").partition(",")[0].strip()
        elif text.startswith("SF:"):
            name, lines = text.removeprefix("SF:").strip(), set()
        elif hit := _DA.fullmatch(text):
            if int(hit["hits"]) > 0:
                lines.add(int(hit["line"]))
        elif text == "end_of_record":
            if name and lines:
                yield CoveredLines(name, frozenset(lines), test)
            name, lines = "", set()
    if name:
        message = "the last record does not end (`end_of_record`)"
        raise ReportFault("malformed_report", message, "Have the tool write the report again.", number)
