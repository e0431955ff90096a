"""Files that are reports, and the messages about those that are not, or are meant to do harm."""

from __future__ import annotations

import io
import itertools
import os
import tracemalloc
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.process import interrupting
from kbcore.results.reading import opened, report_of
from kbcore.results.reported import ReportFault

CASE = '<testcase classname="a" name="b"/>'
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE testsuites [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f'<testsuites><testsuite name="&b;">{CASE}</testsuite></testsuites>'
)
FILE_ENTITY = '<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite name="&x;"/>'


def consumed(data: bytes) -> int:
    report = report_of(io.BytesIO(data))
    return len(list(report.outcomes)) + len(list(report.covered))


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("", "empty_report", "it is empty"),
        (" \n\n", "empty_report", "nothing but white space"),
        (LAUGHS, "document_type", "document type with definitions"),
        (FILE_ENTITY, "document_type", "document type with definitions"),
        (f"<testsuite>{CASE}", "malformed_xml", "no complete XML"),
        ("<testsuite><testcase name=a/></testsuite>", "malformed_xml", "no valid XML"),
        ("<testsuite>\x1b[31m</testsuite>", "malformed_xml", "no valid XML"),
        ('<testsuite name="&#27;"/>', "malformed_xml", "no valid XML"),
        ('<?xml version="1.0" encoding="klingon"?><testsuite/>', "malformed_xml", ""),
        (f"<testsuite>{'<a>' * 300}", "too_deep", "nested more than"),
        ("<report name='x'><package/></report>", "other_format", "JaCoCo"),
        ('<coverage generated="1"><project/></coverage>', "other_format", "not Cobertura's"),
        ("<html><body/></html>", "other_format", "a page of HTML"),
        ("<pom/>", "other_format", "the root is 'pom'"),
        ('{"Action":"run"}', "other_format", "JSON"),
        ("Hello\nworld\n", "other_format", "it begins with 'Hello'"),
        ("\x00\x01\x02", "other_format", "it begins with"),
    ],
)
def test_what_is_no_report_is_refused_with_the_reason_and_a_remedy(text, code, words):
    with pytest.raises(ReportFault) as refused:
        consumed(text.encode())
    assert refused.value.code == code
    assert words in refused.value.message
    assert refused.value.remedy


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_a_report_may_have_any_encoding_that_it_says(encoding):
    name = "Café"
    declared = "iso-8859-1" if encoding == "latin-1" else encoding.removesuffix("-sig")
    text = f'<?xml version="1.0" encoding="{declared}"?><testsuite><testcase name="{name}"/></testsuite>'
    [one] = report_of(io.BytesIO(text.encode(encoding))).outcomes
    assert one.name == name


def test_a_document_type_that_only_names_a_file_is_passed_over():
    assert consumed(f'<!DOCTYPE testsuite SYSTEM "no/such.dtd"><testsuite>{CASE}</testsuite>'.encode()) == 1


@pytest.mark.slow
def test_a_long_report_is_read_in_memory_that_does_not_grow_with_it(tmp_path: Path):
    path = tmp_path / "long.xml"
    with path.open("w") as file:
        file.write("<testsuite>")
        for _ in range(20_000):
            file.write(f'{CASE[:-2]}><failure message="m">{"text " * 100}</failure>')
            file.write(f"<system-out>{'x' * 400}</system-out></testcase>")
        file.write("</testsuite>")
    tracemalloc.start()
    try:
        with opened(str(path)) as report:
            assert sum(1 for _ in report.outcomes) == 20_000
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert path.stat().st_size > 15 * limits.MIB
    assert peak_bytes < 4 * limits.MIB


def test_the_text_of_a_failure_is_looked_at_up_to_a_limit():
    data = b"<testsuite><testcase name='a'><failure>%b</failure></testcase></testsuite>" % (b"x" * limits.MIB)
    [one] = report_of(io.BytesIO(data)).outcomes
    assert len(one.message) == limits.MAX_REPORTED_TEXT_CHARS


def test_a_pipe_and_a_folder_are_refused_and_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", "."):
        with pytest.raises((ReportFault, OSError)), opened(str(tmp_path / name)):
            pass


def test_a_report_beyond_the_limit_is_refused_by_its_size(tmp_path: Path):
    path = tmp_path / "huge.xml"
    path.touch()
    os.truncate(path, limits.MAX_REPORT_BYTES + 1)
    with pytest.raises(ReportFault, match="the limit is"), opened(str(path)):
        pass


@pytest.mark.parametrize(
    "data", [f"<testsuite>{CASE * 5000}</testsuite>", "ok 1 - a\n" * 10, "TN:\nSF:a\nDA:1,1\nend_of_record\n" * 10]
)
def test_a_report_that_is_being_read_is_left_when_the_work_is_stopped(data):
    work = interrupting.CurrentWork()
    report = report_of(io.BytesIO(data.encode()))
    read = itertools.chain(report.outcomes, report.covered)
    with interrupting.done_for(work), pytest.raises(interrupting.Stopped):
        [work.stop() for _ in read]
