"""The runner of the official conformance suite: it says when it could not run, and takes no error for a success."""

from __future__ import annotations

import anyio
import pytest
import yaml
from mcp.client.client import Client

from tests.conformance import __main__ as runner
from tests.conformance import npm
from tests.mcp.agents import ROOT
from tests.support.repository.project import Project


def test_a_missing_npm_is_reported(monkeypatch, capsys):
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert runner.main() == 3
    assert "NOT RUN, npm is not on the PATH" in capsys.readouterr().err
    assert "NOT RUN" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_programs_that_npm_cannot_install_are_reported(monkeypatch, capsys, tmp_path):
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


@pytest.mark.sliced
def test_what_the_scenarios_call_by_name_answers_without_npm(tmp_path):
    """The suite itself needs npm; that its prompts, resources and tools still fit KB's own tables does not."""

    async def answers(url: str) -> None:
        async with Client(url) as client:
            for prompt in (await client.list_prompts()).prompts:
                given = {one.name: "REQ-1" for one in prompt.arguments or () if one.required}
                assert (await client.get_prompt(prompt.name, given)).messages
            for resource in (await client.list_resources()).resources:
                assert (await client.read_resource(resource.uri)).contents
            for tool in (await client.list_tools()).tools:
                if tool.name.startswith("test_"):
                    done = await client.call_tool(tool.name, {})
                    assert done.is_error == (tool.name == "test_error_handling"), tool.name

    project = Project(tmp_path / "project")
    project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "Sign in", "status": "open"}])
    project.close()
    with runner._serving(project.root) as url:
        anyio.run(answers, url)
