from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kbcli import app
from tests.cli.history import three_records
from tests.support.logic.engines import ENGINES, engine_variables
from tests.support.processes.cli import DOCUMENTS, Ran, environment, worded, write
from tests.support.repository.places import STORES_NAME
from tests.support.repository.repos import copy_model, make_repository


@pytest.fixture
def user(monkeypatch):
    """The environment of a user of whom nothing is known but a name."""
    _be_a_user(monkeypatch)
    return monkeypatch


def _be_a_user(patch: pytest.MonkeyPatch) -> None:
    wanted = environment()
    for name in os.environ:
        if not name.startswith("KB_TEST_"):  # they name folders of this run
            patch.delenv(name)
    for name, value in wanted.items():
        patch.setenv(name, value)


@pytest.fixture
def home(user, tmp_path) -> Path:
    """The home folder of a user whose PATH holds this very KB."""
    folder = tmp_path / "home"
    folder.mkdir()
    user.setenv("HOME", str(folder))
    user.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    user.setattr("kbcli.invocation.client_surroundings._platform", lambda: "linux")
    return folder


@pytest.fixture(params=ENGINES)
def engine(request, user):
    """The variables of a Prolog engine, which ``kb`` uses in this test."""
    found = engine_variables(request.param)
    for name, value in found.items():
        user.setenv(name, value)
    return found


@pytest.fixture
def any_engine(user):
    """One Prolog engine, whichever this machine has."""
    for name, value in engine_variables("auto").items():
        user.setenv(name, value)


@pytest.fixture(scope="session")
def models(tmp_path_factory) -> Path:
    """Repositories made once, of which tests get copies: plain, with KB set up, and with documents taken in.

    The latter two were read from, so that not every copy has to build a view first.
    """
    folder = tmp_path_factory.mktemp("models")
    plain = make_repository(folder / "plain")
    with pytest.MonkeyPatch.context() as patch:
        _be_a_user(patch)
        for name, words in (("ready", ("init", "--no-hooks")), ("synced", ("sync",))):
            made = shutil.copytree(folder / "ready" if name == "synced" else plain, folder / name, symlinks=True)
            write(made, DOCUMENTS if name == "synced" else {})
            _done(made, *words)
            _done(made, "query")
    return folder


def _done(root: Path, *words: str, stdin: str = "") -> str:
    """Run ``kb`` at the top of a model, insist that it succeeds and return what it printed."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(root), contextlib.redirect_stdout(out):
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        assert app.main(words) == 0
    return out.getvalue()


Grow = Callable[[Path, Callable[..., str]], None]


@pytest.fixture
def grown(models, root) -> Callable[..., Path]:
    """Return what lets ``root`` be a copy of a model that a function makes, once, of the one with documents."""

    def copied(grow: Grow, beginning: str = "synced") -> Path:
        model = models / grow.__name__
        if not model.exists():
            shutil.copytree(models / beginning, model, symlinks=True)
            with pytest.MonkeyPatch.context() as patch:
                _be_a_user(patch)
                grow(model, partial(_done, model))
        return copy_model(model, root)

    return copied


@pytest.fixture
def root(models, tmp_path: Path) -> Path:
    """A repository on main with one commit."""
    return copy_model(models / "plain", tmp_path / "repo")


@pytest.fixture
def kb(user, capfd, root):
    """Run ``kb`` in this process, by default at the top of ``root``; what it recorded there is worded too."""

    def run(*words: str | Path, cwd: Path | None = None, stdin: str = "") -> Ran:
        user.chdir(cwd or root)
        user.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        capfd.readouterr()
        status = app.main([str(word) for word in words])
        out, err = capfd.readouterr()
        return Ran(status, worded(out), worded(err))

    yield run
    for journal in (root / STORES_NAME).glob("*/journal-*.jsonl"):
        worded(journal.read_text(encoding="utf-8", errors="replace"))


@pytest.fixture
def ready(models, root) -> Path:
    """The repository with KB set up, without hooks."""
    return copy_model(models / "ready", root)


@pytest.fixture
def synced(models, root) -> Path:
    """The repository with two requirements and a test taken in."""
    return copy_model(models / "synced", root)


@pytest.fixture
def recorded(grown) -> Path:
    """The repository with three records: a sync, a changeset, and a sync that changes one field."""
    return grown(three_records)
