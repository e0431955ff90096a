"""Reports in JUnit XML, as the common runners write them."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import junitparser
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.results.reading import report_of
from kbcore.results.reported import ReportedOutcome

JEST = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="jest tests" tests="2" failures="1" errors="0" time="1.2">
  <testsuite name="a cart" errors="0" failures="1" skipped="0" timestamp="2026-01-31T12:00:00" time="0.9" tests="2">
    <testcase classname="a cart is empty at first" name="a cart is empty at first" time="0.01"></testcase>
    <testcase classname="a cart has a total" name="a cart has a total" time="0.02">
      <failure>Error: expect(received).toBe(expected)

Expected: 4
    at Object.toBe (t/cart.test.js:4:5)</failure>
    </testcase>
  </testsuite>
</testsuites>
"""
GO = """<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3" failures="1">
  <testsuite tests="3" failures="1" time="0.004" name="example.com/shop/cart" timestamp="2026-01-31T12:00:00+01:00">
    <properties><property name="go.version" value="go1.25"></property></properties>
    <testcase classname="example.com/shop/cart" name="TestTotal" time="0.000">
      <failure message="Failed" type="">=== RUN   TestTotal
    cart_test.go:12: got 3, want 4</failure>
    </testcase>
    <testcase classname="example.com/shop/cart" name="TestTotal/empty" time="0.000"></testcase>
    <testcase classname="example.com/shop/cart" name="TestLater" time="0"><skipped message="later"></skipped></testcase>
  </testsuite>
</testsuites>
"""
SUREFIRE = """<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="com.acme.CartTest" time="1,234.5" tests="4" errors="1" skipped="1" failures="1">
  <properties><property name="java.version" value="21"/></properties>
  <testcase name="hasTotal" classname="com.acme.CartTest" time="0.021">
    <failure message="expected: &lt;4&gt; but was: &lt;3&gt;" type="x"><![CDATA[at com]]></failure>
    <system-out><![CDATA[<error message="not one"/>]]></system-out>
  </testcase>
  <testcase name="breaks" classname="com.acme.CartTest" time="1,234.5">
    <error type="java.lang.NullPointerException">npe</error></testcase>
  <testcase name="later" classname="com.acme.CartTest" time="0"><skipped/></testcase>
  <testcase name="flaky" classname="com.acme.CartTest" time="0.1">
    <flakyFailure message="once" type="x"><stackTrace>at com</stackTrace></flakyFailure>
  </testcase>
</testsuite>
"""


def read(text: str | bytes) -> list[ReportedOutcome]:
    data = text.encode() if isinstance(text, str) else text
    return list(report_of(io.BytesIO(data)).outcomes)


def test_a_report_of_jest_has_sentences_as_names_and_the_first_paragraph_of_a_failure():
    passed, failed = read(JEST)
    assert (passed.name, passed.outcome, passed.duration_s) == ("a cart is empty at first", "passed", 0.01)
    assert (failed.outcome, failed.message) == ("failed", "Error: expect(received).toBe(expected)")
    assert failed.at == "", "a time without an offset may be of any zone"


def test_a_report_of_go_says_what_failed_in_the_text():
    failed, part, skipped = read(GO)
    assert failed.scope == "example.com/shop/cart"
    assert failed.message.endswith("cart_test.go:12: got 3, want 4")
    assert failed.at == "2026-01-31T11:00:00.000000Z"
    assert (part.name, part.outcome) == ("TestTotal/empty", "passed")
    assert (skipped.outcome, skipped.message) == ("skipped", "later")


def test_a_report_of_surefire_has_failures_errors_skipped_and_repeated_tests():
    failed, broken, skipped, flaky = read(SUREFIRE)
    assert (failed.outcome, failed.message) == ("failed", "expected: <4> but was: <3>")
    assert (broken.outcome, broken.message, broken.duration_s) == ("error", "npe", 1234.5)
    assert [skipped.outcome, flaky.outcome] == ["skipped", "passed"]


@pytest.mark.parametrize(
    "attributes", ['status="notrun"', 'status="skipped"', 'result="suppressed"', 'status="disabled"']
)
def test_a_test_that_was_not_run_is_skipped(attributes):
    [one] = read(f'<testsuite><testcase name="a" {attributes}/></testsuite>')
    assert one.outcome == "skipped"


def test_ids_come_from_properties_and_the_file_from_the_suite():
    [one] = read(
        '<testsuites><testsuite name="s" file="t/a.py"><testcase name="a"><properties>'
        '<property name="kb" value="TEST-1, TEST-2"/><property name="test_key">TEST-3</property>'
        '<property name="other" value="TEST-9"/></properties></testcase></testsuite></testsuites>'
    )
    assert (one.ids, one.file, one.scope) == (("TEST-1", "TEST-2", "TEST-3"), "t/a.py", "s")


def test_a_report_without_tests_is_complete():
    assert read('<testsuites name="none"/>') == []


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon", ""])
def test_a_time_that_is_no_duration_is_left_out(text):
    [one] = read(f'<testsuite><testcase name="a" time="{text}"/></testsuite>')
    assert one.duration_s is None


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\x85\u2028\ufffe\uffff"), max_size=20)


@given(st.lists(st.tuples(TEXT, TEXT, st.sampled_from(["passed", "failed", "error", "skipped"]), TEXT), max_size=6))
def test_another_reader_of_junit_xml_finds_the_same_tests_and_outcomes(cases):
    tags = {"failed": "failure", "error": "error", "skipped": "skipped"}
    inner = "".join(
        f"<testcase classname={quoteattr(scope)} name={quoteattr(name)}>"
        + (f"<{tags[outcome]} message={quoteattr(message)}/>" if outcome in tags else "")
        + "</testcase>"
        for scope, name, outcome, message in cases
    )
    xml = f'<testsuites><testsuite name="s">{inner}</testsuite></testsuites>'
    kinds = {junitparser.Failure: "failed", junitparser.Error: "error", junitparser.Skipped: "skipped"}
    others = [
        (case.name, kinds[type(case.result[0])] if case.result else "passed")
        for suite in junitparser.JUnitXml.fromstring(xml.encode())
        for case in suite
    ]
    assert [(one.name, one.outcome) for one in read(xml)] == others


def test_a_real_report_of_pytest_is_read(tmp_path: Path):
    (tmp_path / "test_a.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_n(n): assert n == 1\n"
        "class TestIn:\n"
        "    def test_id(self, record_property): record_property('kb', 'TEST-1')\n"
        "def test_later(): pytest.skip('later')\n"
        "@pytest.fixture\n"
        "def broken(): raise ValueError('no')\n"
        "def test_broken(broken): pass\n"
    )
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--junit-xml=r.xml", "-c", "/dev/null", "--rootdir=."]
    subprocess.run([sys.executable, *words], cwd=tmp_path, check=False, capture_output=True)
    found = read((tmp_path / "r.xml").read_bytes())
    assert [(one.scope, one.name, one.outcome) for one in found] == [
        ("test_a", "test_n[1]", "passed"),
        ("test_a", "test_n[2]", "failed"),
        ("test_a.TestIn", "test_id", "passed"),
        ("test_a", "test_later", "skipped"),
        ("test_a", "test_broken", "error"),
    ]
    assert found[1].message.startswith("assert 2 == 1")
    assert found[2].ids == ("TEST-1",)
    assert found[0].at.endswith("Z")


@pytest.mark.parametrize("name", ["requirement", "Requirements", "verifies"])
def test_a_property_names_the_requirements_that_a_test_verifies(name: str) -> None:
    inner = f'<property name="{name}" value="REQ-1, REQ-2"/><property name="other" value="REQ-3"/>'
    text = f'<testsuite><testcase name="a"><properties>{inner}</properties></testcase></testsuite>'
    [found] = report_of(io.BytesIO(text.encode())).outcomes
    assert (found.requirements, found.ids) == (("REQ-1", "REQ-2"), ())
