"""Every command and every tool of the default toolset works where nothing may start or import an engine of Prolog."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.fault import test_large
from tests.fault.test_large import COMMANDS, Shape, made, requests, run
from tests.support.processes import session
from tests.support.processes.cli import environment

SMALL = Shape(300, 3, 1, 1)
PROLOG = "prolog"
"""The command that needs an engine."""


@pytest.fixture
def fenced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository. Each program that is started writes down that an engine was, and cannot import the engines."""
    programs, modules = tmp_path / "programs", tmp_path / "modules"
    for folder in (programs, modules):
        folder.mkdir()
    for name in ("swipl", "node", "npm"):
        (programs / name).write_text(f"#!/bin/sh\necho {name} >>'{tmp_path}/started'\nexit 1\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    (modules / "sitecustomize.py").write_text("import sys\nsys.modules['kbcore.logic.engine'] = None\n")
    root = tmp_path / "repo"
    made(root, SMALL)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def with_fence(extra: Mapping[str, str] | None = None) -> dict[str, str]:
        env = environment(extra)
        return env | {"PYTHONPATH": f"{modules}{os.pathsep}{env['PYTHONPATH']}"}

    for starter in (test_large, session):
        monkeypatch.setattr(starter, "environment", with_fence)
    return root


@pytest.mark.sliced
def test_no_command_but_one_needs_an_engine(fenced: Path) -> None:
    asked = [words for each in COMMANDS.values() if not isinstance(each, str) for words in each if words[0] != PROLOG]
    assert {words: fault for words in asked if (fault := run(fenced, words))} == {}
    assert not (fenced.parent / "started").exists()


@pytest.mark.sliced
def test_no_tool_prompt_or_resource_of_the_default_toolset_needs_an_engine(fenced: Path) -> None:
    server = session.Session(fenced)
    try:
        answers = [server.ask(method, params) for method, params in requests(server)]
    finally:
        server.kill()
        server.close()
    assert [one["content"][0]["text"] for one in answers if one.get("isError")] == []
    assert not (fenced.parent / "started").exists()


def test_the_fence_finds_an_import_and_a_start(fenced: Path) -> None:
    script = "import subprocess; subprocess.run(['swipl'])\nimport kbcore.logic.workspace"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=test_large.environment(), capture_output=True, text=True, check=False)
    assert "import of kbcore.logic.engine halted" in done.stderr
    assert (fenced.parent / "started").read_text(encoding="utf-8") == "swipl\n"
