"""Refs of a remote: the commits that they name, their objects, and a push that replaces only what was read.

How a remote is reached, and as whom, is what the user has configured for git. Nothing is written to the configuration
of git, and no ref of this repository is made or moved.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Final

from kbcore.errors import GitUnusable, InvalidQuery
from kbcore.git import blobs
from kbcore.git.commands import run_git, run_plain
from kbcore.git.repository import Repository
from kbcore.text.escaping import in_quotes

_TIMEOUT_S: Final = 300.0
_NAME, _EMAIL = "KB", "kb@localhost"
_IDENTITY: Final = {
    "GIT_AUTHOR_NAME": _NAME,
    "GIT_AUTHOR_EMAIL": _EMAIL,
    "GIT_COMMITTER_NAME": _NAME,
    "GIT_COMMITTER_EMAIL": _EMAIL,
}
"""The author of commits that no person makes."""
_UNREAD: Final = "`git remote -v` lists the remotes of this clone. See that this one is there and can be reached."
_REFUSED: Final = "The remote must let you push, also to refs below refs/kb: ask who runs it."


def commit_of_ref(repo: Repository, env: Mapping[str, str], remote: str, ref: str) -> str | None:
    """Return what a ref of a remote names now, None where the remote has no such ref.

    Raises: ``InvalidQuery`` for what cannot be a remote; ``GitUnusable``.
    """
    if not remote.strip() or remote.startswith("-"):
        raise InvalidQuery(f"{in_quotes(remote)} is no remote.", hint="`git remote -v` lists them.")
    output = _ask(repo, env, ["ls-remote", "--quiet", "--", remote, ref], f"{remote} could not be read", _UNREAD)
    named = (line.partition(b"\t") for line in output.splitlines())
    return next((name.decode("ascii", "replace") for name, _, found in named if found == os.fsencode(ref)), None)


def fetch_commit(repo: Repository, env: Mapping[str, str], remote: str, ref: str, commit: str) -> None:
    """Have the objects of a commit that a ref of a remote names, or named a moment ago. Raises: ``GitUnusable``."""
    if not blobs.absent(repo, env, [commit]):
        return
    # One ref is fetched by its name: no other one is fetched, noted, pruned or followed.
    options = ["--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-gc", "--no-prune"]
    words = ["fetch", "--quiet", *options, "--no-filter", "--refmap=", "--", remote, ref]
    _ask(repo, env, words, f"{ref} of {remote} could not be fetched", _UNREAD)
    if blobs.absent(repo, env, [commit]):
        raise GitUnusable(f"{ref} of {remote} was set to another commit meanwhile.", hint="Try again.")


def write_commit(
    repo: Repository, env: Mapping[str, str], files: Mapping[str, bytes], parent: str | None, message: str
) -> str:
    """Write a commit of files, which no ref names, and return it. Raises: ``GitUnusable``."""
    listed = b""
    for path, data in files.items():
        listed += b"100644 blob %b\t%b\0" % (blobs.write_blob(repo, env, data).encode(), os.fsencode(path))
    tree = _run(repo, env, ["mktree", "-z"], listed)
    return _run(repo, {**env, **_IDENTITY}, ["commit-tree", tree, *(("-p", parent) if parent else ()), "-m", message])


def push_commit(
    repo: Repository, env: Mapping[str, str], remote: str, ref: str, commit: str, *, instead_of: str = ""
) -> None:
    """Have a ref of a remote name a commit that comes after what it names, or one ``instead_of`` which it names still.

    Raises: ``GitUnusable``.
    """
    options = ["--no-verify", "--no-follow-tags", "--no-recurse-submodules", "--no-signed"]
    options += [f"--force-with-lease={ref}:{instead_of}"] if instead_of else []
    words = ["push", "--quiet", *options, "--", remote, f"{commit}:{ref}"]
    _ask(repo, env, words, f"{remote} did not take the push to {ref}", _REFUSED)


def _ask(repo: Repository, env: Mapping[str, str], words: Sequence[str], failed: str, hint: str) -> bytes:
    """Return what git writes; what it complains of is in the error, without the command and its advice."""
    ended = run_plain(repo, env, words, timeout_s=_TIMEOUT_S, runs_hooks=False)
    if ended.returncode:
        said = _without_advice(ended.stderr.decode("utf-8", "backslashreplace").strip().splitlines())
        raise GitUnusable(f"{failed}: {said or 'git gave no reason'}", hint=hint)
    return ended.stdout


def _without_advice(lines: Sequence[str]) -> str:
    """Return what git and the programs beside it complain of, a message a line.

    What comes after an empty line after git's own last complaint is advice. A server's greeting comes before it.
    """
    own = [at for at, line in enumerate(lines) if line.startswith(("fatal: ", "error: "))]
    last = own[-1] if own else len(lines)
    kept = [*lines[:last], *takewhile(str.strip, lines[last:])]
    return "; ".join(" ".join(line.split()) for line in kept if line.strip())


def _run(repo: Repository, env: Mapping[str, str], words: Sequence[str], asked: bytes = b"") -> str:
    return run_git(repo, env, words, asked=asked, timeout_s=_TIMEOUT_S).output.decode("ascii", "replace").strip()
