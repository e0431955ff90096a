"""Reports of line coverage: Cobertura and lcov."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.results.reading import report_of
from kbcore.results.reported import CoveredLines, ReportFault

COBERTURA = """<?xml version="1.0"?>
<!DOCTYPE coverage SYSTEM "http://example.org/coverage-04.dtd">
<coverage line-rate="0.5" version="1"><sources><source>/ci/src</source></sources><packages><package name="shop">
<classes><class name="Cart" filename="shop/cart.py" line-rate="0.5"><methods><method name="a"><lines>
<line number="3" hits="2"/></lines></method></methods>
<lines><line number="3" hits="2"/><line number="4" hits="0"/></lines></class>
<class name="None" filename="shop/none.py"><lines><line number="1" hits="0"/></lines></class></classes>
</package></packages></coverage>
"""
LCOV = """TN:it has a total
SF:src/cart.js
FN:1,total
DA:1,1
DA:2,0
DA:3,4,abc
end_of_record
SF:src/b.js
DA:1,0
end_of_record
"""


def read(text: str | bytes) -> list[CoveredLines]:
    return list(report_of(io.BytesIO(text.encode() if isinstance(text, str) else text)).covered)


def test_the_lines_that_ran_are_read_from_cobertura_with_the_folders_of_its_sources():
    assert read(COBERTURA) == [CoveredLines("shop/cart.py", frozenset({3}), folders=("/ci/src",))]


def test_the_lines_that_ran_are_read_from_lcov_with_the_name_of_the_test():
    assert read(LCOV) == [CoveredLines("src/cart.js", frozenset({1, 3}), "it has a total")]


def test_a_record_of_lcov_that_does_not_end_is_refused():
    with pytest.raises(ReportFault, match="does not end"):
        read("TN:\nSF:src/cart.js\nDA:1,1\n")


def test_a_line_without_a_number_is_refused_with_its_line():
    with pytest.raises(ReportFault) as refused:
        read(COBERTURA.replace('number="4"', 'number="four"'))
    assert (refused.value.code, refused.value.line) == ("malformed_report", 6)


def test_both_reports_of_coverage_py_are_read(tmp_path: Path):
    (tmp_path / "cart.py").write_text("def total(items):\n    return sum(items)\n\n\ndef unused():\n    return 1\n")
    (tmp_path / "run.py").write_text("from cart import total\ntotal([1])\n")
    for words in (["run", "--include=cart.py", "run.py"], ["xml", "-o", "c.xml"], ["lcov", "-o", "c.lcov"]):
        subprocess.run(
            [sys.executable, "-m", "coverage", *words, "--rcfile=/dev/null"],
            cwd=tmp_path,
            check=True,
            capture_output=True,
        )
    for name in ("c.xml", "c.lcov"):
        [found] = read((tmp_path / name).read_bytes())
        assert (found.file, found.lines) == ("cart.py", {1, 2, 5}), name
