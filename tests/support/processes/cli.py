"""Runs ``kb`` for tests: in a process of its own, or as the installed program where its start is what matters."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.processes.forked import Forked, stand_in
from tests.support.repository.places import caches_at
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]

LOGIN = "---\nid: REQ-1\ntitle: Log in\nstatus: open\ntags: [auth, web]\n---\n# Log in\n"
LOGOUT = "---\nid: REQ-2\ntitle: Log out\nstatus: done\ntags: [auth]\nlinks: [REQ-1]\n---\n"
LOGIN_TEST = "---\nid: TEST-1\ntitle: Login works\nstatus: active\nkind: e2e\nlinks: [REQ-1]\n---\n"
DOCUMENTS = {
    "docs/requirements/login.md": LOGIN,
    "docs/requirements/logout.md": LOGOUT,
    "docs/tests/login.md": LOGIN_TEST,
}
WINE = "likes(ann, X) :- wine(X).\nwine(red).\nwine(white).\n"
"""Clauses of Prolog."""


def worded(text: str) -> str:
    """Return an answer, after a look that every command in it was worded (``kbcore.errors.remedies``)."""
    assert not re.search(r"(?:\x02|\\x02|\\u0002)[CWR]\[", text), text
    return text


class Ran(NamedTuple):
    """The result of a call of ``kb``."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return the one JSON document on standard output."""
        assert self.out.endswith("\n"), self
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """Return the body of the error document."""
        return self.json["error"]


def write(root: Path, files: Mapping[str, str | None]) -> None:
    """Write files below a folder; None deletes one."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_text(content, encoding="utf-8")


def refresh_view(root: Path, kb: Callable[..., object]) -> None:
    """Let the view that is kept be that of the head, so that copies of the repository need build none."""
    shutil.rmtree(caches_at(root))
    kb("query")


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment in which nothing of the user's reaches ``kb``."""
    env = git_env({"KB_ACTOR": "tester", "PYTHONPATH": str(ROOT), "COLUMNS": "80"})
    return {name: value for name, value in env.items() if name not in {"NO_COLOR", "PAGER"}} | dict(extra or {})


def program() -> list[str]:
    """Return the command that starts ``kb``: the installed script beside this Python, else its module."""
    script = Path(sys.executable).with_name("kb")
    return [str(script)] if script.is_file() else [sys.executable, "-m", "kbcli.app"]


def path_with_kb(*, before: Path | None = None) -> str:
    """Return a PATH on which ``kb`` has imported what it needs, for what is started by others.

    ``before`` is a folder whose programs come before those of the machine, but for ``kb``.
    """
    return os.pathsep.join(map(str, filter(None, [stand_in("kb").parent, before, os.environ["PATH"]])))


def run_kb(cwd: Path, *words: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
    """Run ``kb`` as a process of its own that has imported what it needs; what is about its start starts it."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin.encode())
        given.seek(0)
        streams = [file.fileno() for file in (given, out, err)]
        status = Forked("kb", words, env or environment(), cwd, streams).wait()
        out.seek(0)
        err.seek(0)
        return Ran(status, worded(out.read().decode()), worded(err.read().decode()))
