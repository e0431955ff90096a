"""The runner of the official conformance suite: it says when it could not run, and takes no error for a success."""

from __future__ import annotations

import yaml

from tests.conformance import __main__ as runner
from tests.conformance import npm
from tests.mcp.agents import ROOT


def test_a_machine_without_npm_is_told_plainly(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert runner.main() == 3
    assert "NOT RUN, npm is not on the PATH" in capsys.readouterr().err
    assert "NOT RUN" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_programs_that_npm_cannot_bring_are_told_likewise(monkeypatch, capsys, tmp_path):
    program = tmp_path / "npm"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(npm, "FOLDER", tmp_path / "conformance")
    assert runner.main() == 3
    assert "NOT RUN, npm cannot bring the programs: it ended with status 7" in capsys.readouterr().err


def test_a_check_that_passed_on_the_text_of_an_error_is_seen():
    def checks(*, is_error: bool):
        return [{"id": "x", "status": "SUCCESS", "details": {"result": {"isError": is_error}}}]

    assert list(runner._hollow({"tools-call-simple-text": checks(is_error=True)}))
    assert not list(runner._hollow({"tools-call-simple-text": checks(is_error=False)}))
    assert not list(runner._hollow({"tools-call-error": checks(is_error=True)}))


def test_what_is_expected_to_fail_has_a_reason_and_belongs_to_a_run():
    expected = yaml.safe_load((ROOT / "tests" / "conformance" / "expected.yml").read_text(encoding="utf-8"))
    assert set(expected) == set(runner.RUNS)
    assert {suite for suite, _ in runner.RUNS.values()} == set(npm.SUITES)
    assert all(len(reason) > 20 for run in expected.values() for keys in run.values() for reason in keys.values())
