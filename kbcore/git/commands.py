"""Runs git; the only place that spawns it.

Only plumbing with fixed arguments, never through a shell; what a repository configures to be run is switched
off, and what the calling process inherited about another repository is not passed on.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import GitUnusable
from kbcore.git.repository import Repository, points_to
from kbcore.git.versions import needed
from kbcore.process import interrupting
from kbcore.process.interrupting import Stopped
from kbcore.process.system_limits import exhausted

GIT_TIMEOUT_S: Final = 30.0
LONG_TIMEOUT_S: Final = 120.0
"""For what git does with many files, or looks for in a long history."""

LOCAL_ENV_VARS: Final = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""The list of `git rev-parse --local-env-vars`: variables of one repository only."""

_UNKNOWN_FORMAT: Final = re.compile(
    r"unknown repository extensions? found:(?P<extensions>[ \w]+)|invalid value for 'extensions\.", re.IGNORECASE
)
_SAFE_FLAGS = ("--no-pager", "-c", "core.fsmonitor=false")
_NO_HOOKS = ("-c", "core.hooksPath=/dev/null")


class GitAnswer(msgspec.Struct, frozen=True):
    """The result of a git command: its exit status and its standard output as it came."""

    status: int
    output: bytes


def run_git(
    repo: Repository,
    env: Mapping[str, str],
    arguments: Sequence[str],
    *,
    allowed: Collection[int] = (0,),
    timeout_s: float = GIT_TIMEOUT_S,
    asked: bytes = b"",
    index: Path | None = None,
) -> GitAnswer:
    """Run ``git ARGUMENTS`` in the repository and return its answer.

    ``env`` is the environment of the calling process, ``asked`` what git reads on standard input, and ``index`` an
    index other than the worktree's own. git finds the repository itself, so that its own refusal of somebody else's
    repository (``safe.directory``) remains.

    Raises:
        GitUnusable: git is missing, did not answer in time, or ended with a status outside ``allowed``.
    """
    command = [_git_program(env), *_SAFE_FLAGS, *_NO_HOOKS, *arguments]
    clean = _clean(env) | ({"GIT_INDEX_FILE": str(index)} if index else {})
    return _spawn(command, run_directory(repo), clean, allowed=allowed, timeout_s=timeout_s, asked=asked)


def run_plain(
    repo: Repository,
    env: Mapping[str, str],
    arguments: Sequence[str],
    *,
    timeout_s: float = GIT_TIMEOUT_S,
    runs_hooks: bool = True,
) -> subprocess.CompletedProcess[bytes]:
    """Run ``git ARGUMENTS`` in the repository and return how it ended, whatever it says.

    Raises:
        GitUnusable: git is missing, or did not answer in time.
    """
    command = [_git_program(env), *_SAFE_FLAGS, *(() if runs_hooks else _NO_HOOKS), *arguments]
    return _run(command, run_directory(repo), _clean(env), timeout_s=timeout_s)


def ask_git_dir(git_dir: Path, env: Mapping[str, str], name: str) -> str | None:
    """Return the last value of a setting, in lower case, that is in force for a git directory; None when it is not set.

    A key without a value is "true".

    Raises:
        GitUnusable: git is missing or cannot read its configuration.
    """
    pattern = f"^{re.escape(name)}$"
    words = [f"--git-dir={git_dir}", "config", "-z", "--get-regexp", pattern]
    command = [_git_program(env), *_SAFE_FLAGS, *words]
    answer = _spawn(command, git_dir, _clean(env), allowed=(0, 1), timeout_s=GIT_TIMEOUT_S)
    values = [entry.partition(b"\n") for entry in answer.output.split(b"\0") if entry]
    if not values:
        return None
    _, has_value, value = values[-1]
    return os.fsdecode(value) if has_value else "true"


def hooks_dir(repo: Repository, env: Mapping[str, str]) -> Path:
    """Return the absolute directory that git runs hooks from in this worktree; it need not exist.

    Raises:
        GitUnusable: git is missing or refuses.
    """
    directory = run_directory(repo)
    # Where core.hooksPath is empty, git says that the folder is this one, and looks for each hook in `/`.
    command = [_git_program(env), *_SAFE_FLAGS, "rev-parse", "--git-path", "hooks/post-checkout"]
    answer = _spawn(command, directory, _clean(env), allowed=(0,), timeout_s=GIT_TIMEOUT_S)
    return Path(os.path.normpath(directory / os.fsdecode(answer.output.removesuffix(b"\n")))).parent


def run_directory(repo: Repository) -> Path:
    """Return the directory from which git itself finds this repository and worktree."""
    return repo.worktree if points_to(repo.worktree, repo.git_dir) else repo.git_dir


def _git_program(env: Mapping[str, str]) -> str:
    """Return the absolute path of git. Relative entries of PATH would let the repository supply its own."""
    entries = env.get("PATH", os.defpath).split(os.pathsep)
    program = shutil.which("git", path=os.pathsep.join(filter(os.path.isabs, entries)))
    if program is None:
        raise GitUnusable("the program 'git' is not in any directory of PATH", hint="Install git, or add it to PATH.")
    return program


def _clean(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for git: nothing of another repository, no lock, no prompt, no fetching on the way."""
    clean = {name: value for name, value in env.items() if name not in LOCAL_ENV_VARS}
    return clean | {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1"}


def _spawn(
    command: Sequence[str],
    directory: Path,
    env: Mapping[str, str],
    *,
    allowed: Collection[int],
    timeout_s: float,
    asked: bytes = b"",
) -> GitAnswer:
    ended = _run(command, directory, env, timeout_s=timeout_s, asked=asked)
    if ended.returncode not in allowed:
        said = " ".join(ended.stderr.decode("utf-8", "backslashreplace").split())
        if unknown := _UNKNOWN_FORMAT.search(said):
            raise _too_old(directory, said, unknown)
        raise GitUnusable(
            f"`{_shown(command)}` in {directory} ended with status {ended.returncode}: {said or 'no message'}"
        )
    return GitAnswer(status=ended.returncode, output=ended.stdout)


def _run(
    command: Sequence[str],
    directory: Path,
    env: Mapping[str, str],
    *,
    timeout_s: float = GIT_TIMEOUT_S,
    asked: bytes = b"",
) -> subprocess.CompletedProcess[bytes]:
    """Run git to its end. It is killed when its time is over or when the work that it is done for is stopped."""
    started: list[subprocess.Popen[bytes]] = []

    def kill() -> None:
        for one in started:
            one.kill()

    pipe = subprocess.PIPE
    try:
        with (
            # Before the program: that the work was stopped already is then said before there is one to wait for.
            interrupting.step(kill, timeout_s) as step,
            subprocess.Popen(command, cwd=directory, env=env, stdin=pipe, stdout=pipe, stderr=pipe) as process,
        ):
            started.append(process)
            try:
                output, complaints = process.communicate(asked)
            except BaseException:
                process.kill()
                raise
    except (OSError, ValueError) as error:
        refused = exhausted(error, may_be_written=False)
        if refused:
            raise refused from error
        raise GitUnusable(f"`{_shown(command)}` in {directory} could not be run: {error}") from error
    if step.is_interrupted and process.returncode < 0:
        if step.is_stopped:
            raise Stopped
        raise GitUnusable(f"`{_shown(command)}` in {directory} gave no answer within {timeout_s:g} s")
    return subprocess.CompletedProcess(command, process.returncode, output, complaints)


def _shown(command: Sequence[str]) -> str:
    return " ".join(["git", *command[command.index("-c") + 2 :]])


def _too_old(directory: Path, said: str, unknown: re.Match[str]) -> GitUnusable:
    """Return the error for a repository in a format that came after the git that is to read it."""
    remedy = needed((unknown["extensions"] or "").split())
    return GitUnusable(
        f"git is too old for the repository in {directory}: {said}", hint=f"{remedy}; see `git --version`."
    )
