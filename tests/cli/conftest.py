from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from kbcli import app
from tests.support.cli import DOCUMENTS, Ran, environment, write
from tests.support.repos import make_repository


@pytest.fixture
def user(monkeypatch):
    """The environment of a user of whom nothing is known but a name."""
    wanted = environment()
    for name in os.environ:
        monkeypatch.delenv(name)
    for name, value in wanted.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository on main with one commit."""
    return make_repository(tmp_path / "repo")


@pytest.fixture
def kb(user, capfd, root):
    """Run ``kb`` in this process, by default at the top of ``root``."""

    def run(*words: str | Path, cwd: Path | None = None, stdin: str = "") -> Ran:
        user.chdir(cwd or root)
        user.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capfd.readouterr()
        status = app.main([str(word) for word in words])
        out, err = capfd.readouterr()
        return Ran(status, out, err)

    return run


@pytest.fixture
def ready(kb, root) -> Path:
    """The repository with KB set up, without hooks."""
    assert kb("init", "--no-hooks").status == 0
    return root


@pytest.fixture
def synced(kb, ready) -> Path:
    """The repository with two requirements and a test taken in."""
    write(ready, DOCUMENTS)
    done = kb("sync")
    assert done.status == 0, done
    return ready
