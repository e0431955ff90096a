"""Makes real git repositories for tests; nothing of the user's configuration reaches them."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from kbcore.storage.scratch import user_folder
from tests.support.effort.scale import SCALE

_WHEN = "2026-11-20T09:30:00Z"
_PAGE_BYTES: Final = 4096
_HOME: Final = "KB_TEST_HOME"
_DATA_HOME: Final = "KB_TEST_DATA_HOME"
"""The data folder with the WebAssembly engine of Prolog."""
OWN_DATA_HOME: Final = Path(sys.prefix, "share")
"""That of this environment of Python, where ``make prolog`` installs it."""
_XDG: Final = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
_IN_MEMORY: Final = "/dev/shm"
_NEEDED_BYTES: Final = 2**31
"""More than all that one run has in temporary files at any time."""


def use_temporary_files_in_memory() -> None:
    """Have this process, and every program that it starts, make temporary files in memory, where Linux has room there.

    A fifth of the time of the tests is that of a disk with many small files. Who names a folder (``TMPDIR``) has them
    in that, and ``make fault`` on the disk.
    """
    if SCALE != "slice" or "TMPDIR" in os.environ:
        return
    with contextlib.suppress(OSError):
        place = os.statvfs(_IN_MEMORY)
        may_be_used = os.access(_IN_MEMORY, os.W_OK | os.X_OK) and not place.f_flag & os.ST_NOEXEC
        if may_be_used and place.f_bavail * place.f_frsize >= _NEEDED_BYTES:
            os.environ["TMPDIR"] = _IN_MEMORY
            tempfile.tempdir = None  # pytest has asked for it before


def use_empty_home() -> None:
    """Give this process, and every program that it starts, an empty home folder: KB keeps files below the user's.

    The workers of one run use the same one; it is removed when the process that made it ends.
    """
    is_own = (OWN_DATA_HOME / "kb" / "prolog").is_dir()
    found = OWN_DATA_HOME if is_own else user_folder(os.environ, "XDG_DATA_HOME", ".local/share")
    os.environ.setdefault(_DATA_HOME, str(found or OWN_DATA_HOME))
    for name in _XDG:
        os.environ.pop(name, None)
    if _HOME not in os.environ:
        os.environ[_HOME] = tempfile.mkdtemp(prefix="kb-test-home-")
        atexit.register(shutil.rmtree, os.environ[_HOME], ignore_errors=True)
    os.environ["HOME"] = os.environ[_HOME]


def git_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment for git and kb: no user or system configuration, fixed identity, fixed times.

    A ``kb`` started with it may keep what Python compiles of it: hundreds are started, and each would do it again.
    """
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "KB_"))}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env |= {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.org",
        "GIT_AUTHOR_DATE": _WHEN,
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.org",
        "GIT_COMMITTER_DATE": _WHEN,
        "GIT_EDITOR": "true",
        "LC_ALL": "C.UTF-8",
    }
    return env | dict(extra or {})


def run_git(
    folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run git in ``folder`` and return how it ended, whatever the status.

    ``file`` remotes are allowed, and nothing is tidied up while a test runs.
    """
    return subprocess.run(
        ["git", "-c", "protocol.file.allow=always", "-c", "maintenance.auto=false", *map(str, arguments)],
        cwd=folder,
        env=dict(env) if env is not None else git_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def git(folder: Path, *arguments: str | Path, env: Mapping[str, str] | None = None) -> str:
    """Run git in ``folder``, insist that it succeeds and return its output without the last newline."""
    done = run_git(folder, *arguments, env=env)
    assert done.returncode == 0, f"git {arguments}: {done.stderr}{done.stdout}"
    return done.stdout.removesuffix("\n")


def make_repository(folder: Path, *, branch: str = "main", commits: int = 1) -> Path:
    """Make a repository in ``folder`` (made if absent) with that many empty commits; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _model(branch, commits):
        path = folder / name
        if content is None:
            path.mkdir()
        else:
            path.write_bytes(content)
    return folder


@cache
def _model(branch: str, commits: int) -> list[tuple[str, bytes | None]]:
    """Return the folders (None) and files of a repository that git made: its times are fixed, so all would be the same.

    It has the folders that git's own templates make, without their samples of hooks. Thousands are made of it, and to
    copy one takes several times as long as to write it.
    """
    with tempfile.TemporaryDirectory(prefix="kb-test-model-") as made:
        folder = Path(made)
        git(folder, "init", "--quiet", "--template=", f"--initial-branch={branch}")
        for name in ("hooks", "info"):
            (folder / ".git" / name).mkdir()
        for number in range(commits):
            git(folder, "commit", "--quiet", "--allow-empty", "-m", f"commit {number}")
        inside = sorted(folder.rglob("*"))
        return [(str(path.relative_to(folder)), None if path.is_dir() else path.read_bytes()) for path in inside]


def copy_model(model: Path, folder: Path) -> Path:
    """Copy a folder that does not change any more into another one, made if absent; return that one.

    It is read once. Pages with nothing but zeros are not written: most of the file of a small view are such.
    """
    folder.mkdir(exist_ok=True)
    for one in _read(model):
        path = folder / one.name
        if one.target:
            path.symlink_to(one.target)
        elif one.pages is None:
            path.mkdir(exist_ok=True)
        else:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            for at, page in one.pages:
                os.pwrite(file, page, at)
            os.truncate(file, one.length_bytes)
            os.fchmod(file, one.mode)
            os.utime(file, ns=(one.modified_ns, one.modified_ns))
            os.close(file)
    return folder


class _Entry(NamedTuple):
    """A folder, a link, or a file with its pages by their places, below a model."""

    name: str
    target: str = ""
    pages: Sequence[tuple[int, bytes]] | None = None
    length_bytes: int = 0
    mode: int = 0
    modified_ns: int = 0


@cache
def _read(model: Path) -> list[_Entry]:
    """Return all that is in a folder, each folder before what is in it."""
    found = []
    for path in sorted(model.rglob("*")):
        name = str(path.relative_to(model))
        if path.is_symlink():
            found.append(_Entry(name, str(path.readlink())))
        elif path.is_dir():
            found.append(_Entry(name))
        else:
            data, about = path.read_bytes(), path.stat()
            pages = ((at, data[at : at + _PAGE_BYTES]) for at in range(0, len(data), _PAGE_BYTES))
            kept = [(at, page) for at, page in pages if page.strip(b"\0")]
            found.append(_Entry(name, "", kept, len(data), stat.S_IMODE(about.st_mode), about.st_mtime_ns))
    return found


def commit_files(folder: Path, files: Mapping[str, str], message: str = "change") -> str:
    """Write ``files`` (path to content) below ``folder``, commit them and return the commit."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    git(folder, "add", "--", *files)
    git(folder, "commit", "--quiet", "-m", message)
    return git(folder, "rev-parse", "HEAD")


def add_worktree(repository: Path, folder: Path, branch: str) -> Path:
    """Add a linked worktree at ``folder`` on a new branch; return the folder."""
    git(repository, "worktree", "add", "--quiet", "-b", branch, folder)
    return folder


def add_submodule(repository: Path, source: Path, name: str = "sub") -> Path:
    """Add ``source`` as a submodule called ``name`` and commit that; return the submodule's folder."""
    git(repository, "submodule", "--quiet", "add", source, name)
    git(repository, "commit", "--quiet", "-m", f"add {name}")
    return repository / name


def start_conflicting_rebase(repository: Path, branch: str = "feature", *, apply: bool = False) -> None:
    """Leave the repository in a rebase of ``branch`` onto main that has stopped at a conflict."""
    git(repository, "switch", "--quiet", "-c", branch)
    commit_files(repository, {"same.txt": "theirs\n"})
    git(repository, "switch", "--quiet", "main")
    commit_files(repository, {"same.txt": "ours\n"})
    git(repository, "switch", "--quiet", branch)
    stopped = run_git(repository, "rebase", *(["--apply"] if apply else []), "main")
    assert stopped.returncode != 0, "the rebase was meant to conflict"


def set_trap(repository: Path, env: Mapping[str, str] | None = None) -> Path:
    """Configure ``core.fsmonitor`` and a hook that leave a file when run; return that file's path."""
    marker = repository.parent / f"{repository.name}-trap-was-run"
    trap = repository.parent / f"{repository.name}-trap.sh"
    trap.write_text(f"#!/bin/sh\ntouch '{marker}'\n", encoding="utf-8")
    trap.chmod(0o755)
    git(repository, "config", "core.fsmonitor", trap, env=env)
    hooks = repository / ".git" / "hooks"
    for event in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / event).write_bytes(trap.read_bytes())
        (hooks / event).chmod(0o755)
    return marker
