"""docs/durability.md names the tests that hold each promise; both the promises and the tests must be there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "durability.md").read_text(encoding="utf-8")
MARK = re.compile(r"""mark\.fault\(["'](\w+)["']\)""")


def rows(section: str) -> list[list[str]]:
    """Return the cells of every row of the tables below a heading."""
    _, _, rest = PAGE.partition(f"\n## {section}\n")
    lines = rest.partition("\n## ")[0].splitlines()
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in lines if re.match(r"\| (\d|[A-Z]\d)", line)
    ]


PROMISED = [row for row in rows("Tests of the promises") if row[0][0].isdigit()]
TESTS = {row[0]: re.findall(r"`([^`]+)`", row[2]) for row in rows("Tests of the promises") if len(row) == 3}


def marked() -> dict[str, set[str]]:
    """Return the files that carry each mark of a fault test."""
    found: dict[str, set[str]] = {}
    for path in (ROOT / "tests" / "fault").glob("test_*.py"):
        for name in MARK.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, set()).add(path.relative_to(ROOT).as_posix())
    return found


def test_each_promise_names_the_tests_that_hold_it() -> None:
    _, _, rest = PAGE.partition("\n## What is promised\n")
    promises = re.findall(r"^(\d+)\. ", rest.partition("\n## ")[0], flags=re.MULTILINE)
    assert promises == [row[0].split()[0] for row in PROMISED] == [str(number) for number in range(1, 11)]
    for row in PROMISED:
        names = row[1].split()
        assert names, row
        assert set(names) <= TESTS.keys(), row


def test_each_test_that_is_named_is_there_and_no_other() -> None:
    assert {name: set(files) for name, files in TESTS.items()} == marked()
