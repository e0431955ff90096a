"""Documents as text, and what is extracted of them."""

from __future__ import annotations

from kbcore.extract.facts import SourceFile
from kbcore.extract.markdown import EXTRACTOR

PATH = "docs/requirements/login.md"


def extract(text, *, path=PATH, type="req", **settings):  # noqa: A002 - the name of the field
    data = text if isinstance(text, bytes) else text.encode()
    return EXTRACTOR.extract(SourceFile(path, data, type), settings)


def front(*lines):
    return "\n".join(["---", "id: REQ-1", "title: T", *lines, "---", "Body", ""])


def faults(facts):
    return [(problem.line, problem.code) for problem in facts.problems]
