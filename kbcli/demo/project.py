"""The example project, set up as a git repository with one commit, and the environment of the processes that use it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from kbcore.errors import GitUnusable
from kbcore.text.escaping import escape_lines

EXAMPLE: Final = ("resources", "demo")
BRANCH: Final = "main"
_WAIT_S: Final = 120.0
_IDENTITY: Final = (("user.name", "Leila Haddad"), ("user.email", "leila@waymark.example"), ("commit.gpgsign", "false"))


def child_env(env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the environment for the processes of the example: no setting of the user's for git or KB reaches them.

    Their home folder is the git folder of the example, so that nothing is noted in the user's.
    """
    users = ("GIT_", "KB_", "XDG_")
    kept = {name: value for name, value in env.items() if not name.startswith(users)}
    programs = str(Path(sys.executable).parent)
    return {
        **kept,
        "PATH": os.pathsep.join(filter(None, [programs, env.get("PATH", os.defpath)])),
        "HOME": str(home / ".git"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "NO_COLOR": "1",
    }


def set_up(home: Path, env: Mapping[str, str]) -> None:
    """Copy the example project and make it a git repository with one commit.

    Raises: ``GitUnusable``.
    """
    _copy(files("kbcli").joinpath(*EXAMPLE), home)
    commands = [
        ["git", "init", "--quiet"],
        ["git", "symbolic-ref", "HEAD", f"refs/heads/{BRANCH}"],
        *(["git", "config", name, value] for name, value in _IDENTITY),
        ["git", "add", "--all"],
        ["git", "commit", "--quiet", "-m", "Waymark as it is today"],
    ]
    for words in commands:
        status, answer = spawn(words, home, env)
        if status:
            raise GitUnusable(f"`{shlex.join(words)}` ended with status {status}: {escape_lines(answer.strip())}")


def _copy(source: Traversable, target: Path) -> None:
    """Copy a folder of the package, with the user's own permissions, whatever those of the installation are."""
    target.mkdir(parents=True, exist_ok=True)
    for item in source.iterdir():
        if item.is_dir():
            _copy(item, target / item.name)
        else:
            (target / item.name).write_bytes(item.read_bytes())


def spawn(words: Sequence[str], home: Path, env: Mapping[str, str]) -> tuple[int, str]:
    """Run a program to its end and return its status and all that it wrote.

    Raises: ``GitUnusable`` when there is no such program; git is the only one that may be missing.
    """
    try:
        ended = subprocess.run(
            words,
            cwd=home,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_WAIT_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise GitUnusable(f"The program {words[0]!r} is not installed.", hint="Install git.") from error
    return ended.returncode, ended.stdout.decode("utf-8", "backslashreplace")
