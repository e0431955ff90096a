"""The programs that write hooks themselves, where they are installed: KB is run, whoever came first.

``KB_TEST_HOOK_PROGRAMS`` is the path to look for them in; without it, PATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.support.repository.hooks import ENV, calls, install, status, uninstall
from tests.support.repository.repos import run_git

PLACES = os.environ.get("KB_TEST_HOOK_PROGRAMS", os.environ.get("PATH", ""))
CHAINED = """\
repos:
- repo: local
  hooks:
  - id: x
    name: x
    language: system
    entry: "true"
    stages: [post-checkout]
    always_run: true
    pass_filenames: false
"""
INSTALLS = {
    "pre-commit": ([".pre-commit-config.yaml", CHAINED], ["install", "-t", "post-checkout", "-t", "pre-commit"]),
    "prek": ([".pre-commit-config.yaml", CHAINED], ["install", "-t", "post-checkout", "-t", "pre-commit"]),
    "lefthook": (["lefthook.yml", "post-checkout:\n  commands:\n    x:\n      run: touch own\n"], ["install"]),
    "husky": (["package.json", "{}"], []),
    "simple-git-hooks": (["package.json", '{"simple-git-hooks": {"post-checkout": "touch own"}}'], []),
}
WITH_A_COMMAND_OF_ITS_OWN = {"lefthook", "simple-git-hooks"}


def run_program(name: str, root: Path, env: dict[str, str]) -> None:
    (file, text), arguments = INSTALLS[name]
    program = shutil.which(name, path=PLACES)
    if program is None:
        pytest.skip(f"{name} is not installed")
    if not (root / file).exists():
        (root / file).write_text(text)
    (root / "node_modules").mkdir(exist_ok=True)
    subprocess.run([program, *arguments], cwd=root, env=env, check=True, capture_output=True)


def add_by_hand(name: str, root: Path, env: dict[str, str]) -> None:
    """Do what the remedy says, to the configuration that is there."""
    snippet = status(root)[0].hint.partition("\n")[2]
    path = root / INSTALLS[name][0][0]
    if name == "lefthook":
        config = yaml.safe_load(path.read_text())
        config["post-checkout"]["commands"] |= yaml.safe_load(snippet)["commands"]
        path.write_text(yaml.safe_dump(config))
    else:
        path.write_text(path.read_text().replace("touch own", f"{snippet} touch own"))
    run_program(name, root, env)


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "second"])
@pytest.mark.parametrize("name", INSTALLS)
def test_kb_is_run_with_the_program_and_removed_again(root, program, tmp_path, name, is_first):
    home = tmp_path / "home"
    home.mkdir()
    env = ENV | {"HOME": str(home), "PATH": f"{program.parent}:{PLACES}:{ENV['PATH']}"}
    if not is_first:
        install(root)
    run_program(name, root, env)
    install(root)
    if status(root)[0].state != "active":
        add_by_hand(name, root, env)
    assert status(root)[0].state == "active"
    done = run_git(root, "switch", "-c", "feature", env=env)
    assert done.returncode == 0, done.stderr
    assert [call.partition(": ")[2].split()[:2] for call in calls(program)] == [["hook", "post-checkout"]]
    assert (root / "own").exists() == (name in WITH_A_COMMAND_OF_ITS_OWN)
    uninstall(root)
    if status(root)[0].state == "absent":
        run_git(root, "switch", "main", env=env)
        assert len(calls(program)) == 1
