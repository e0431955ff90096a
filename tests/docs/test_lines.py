"""Lines of the documentation have at most 140 characters."""

from __future__ import annotations

import pytest

from tests.docs.test_links import PAGES
from tests.support.docs.console import ROOT

MAX_CHARS = 140


def long_lines(text: str) -> list[int]:
    """Return the numbers of the long lines, without rows of tables and code blocks: those cannot be broken."""
    found = []
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif len(line) > MAX_CHARS and not is_code and not line.startswith("|"):
            found.append(number)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_line_is_too_long(page):
    name = page.relative_to(ROOT).as_posix()
    assert [f"{name}:{number}" for number in long_lines(page.read_text(encoding="utf-8"))] == []


def test_only_text_counts():
    long = "x" * (MAX_CHARS + 1)
    assert long_lines(f"{long}\n| {long} |\n```text\n{long}\n```\n{long[1:]}\n{long}\n") == [1, 7]
