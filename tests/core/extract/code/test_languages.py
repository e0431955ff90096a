"""The symbols of each language against lists made by hand.

A source file names its symbols itself: in the line where one begins stands ``#: NAME KIND`` or ``//: NAME KIND``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kbcore.extract.code.extractor import module_of
from kbcore.extract.facts import SourceFile

SOURCES = sorted((Path(__file__).parent / "sources").iterdir())
_LISTED = re.compile(r"(?://|#): (.+?) (\w+)(?= //:|\s*$)")
RECALL = 0.98


def listed(text: str) -> set[tuple[str, str, int]]:
    return {
        (name, kind, number) for number, line in enumerate(text.split("\n"), 1) for name, kind in _LISTED.findall(line)
    }


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name.removesuffix(".txt"))
def test_exactly_the_symbols_that_are_listed_are_found(path):
    data = path.read_bytes()
    wanted = listed(data.decode())
    module = module_of(SourceFile(path.name.removesuffix(".txt"), data), {})
    found = {(one.name, one.kind, one.line) for one in module.symbols}
    assert module.fault_line == 0
    assert len(found) == len(module.symbols)
    assert found - wanted == set(), "precision is 1"
    assert len(found & wanted) / len(wanted) >= RECALL, sorted(wanted - found)
    assert len(wanted) >= 35


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name.removesuffix(".txt"))
def test_comments_and_line_breaks_change_no_digest(path):
    name = path.name.removesuffix(".txt")
    text = path.read_text(encoding="utf-8")
    mark = "#" if name.endswith(".py") else "//"
    with_comments = re.sub(r"\n\n", f"\n\n{mark} a remark about what follows\n\n", _LISTED.sub("", text))

    def digests(source: str) -> list[tuple[str, str, str]]:
        found = module_of(SourceFile(name, source.encode()), {}).symbols
        return [(one.name, one.signature_hash, one.body_hash) for one in found]

    if '"""' in text and not name.endswith(".py"):
        with_comments = text.replace("\n\n", "\n\n\n")
    assert digests(with_comments) == digests(text)
