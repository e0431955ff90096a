"""When files came into the history of HEAD and last changed there, and who wrote the commit that brought each.

A renamed file keeps the dates of its earlier names. Times are those of the authors of commits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.git.commands import run_git
from kbcore.git.repository import Repository

_FORMAT: Final = "%x01%at%x00%aN"
_LOG: Final = (
    *("-c", "log.showRoot=true", "log", "-M", "--name-status", "-z"),
    *("--no-show-signature", "--no-follow", "--encoding=UTF-8", "-O/dev/null"),
)
"""What git is asked, whatever the settings of the user say of its log."""
_BEGINS: Final = "\x01"
_LAST_S: Final = 253_402_300_799
"""The end of the year 9999: what is later is no time."""


class FileDates(msgspec.Struct, frozen=True, array_like=True):
    """Seconds since 1970 of the first and the last commit of a file, and the author of the first one."""

    created_s: int
    updated_s: int
    author: str


class DocumentDates(msgspec.Struct, frozen=True):
    """The times, RFC 3339 in UTC, of a document's first and last commit, and the author of the first one."""

    created_at: str
    updated_at: str
    author: str


class _Commit(msgspec.Struct, frozen=True):
    """A commit, newest first: for each file its status as git has it, the name it had, and the name it got.

    ``at_s`` is 0 for a time that cannot be one, which a commit may have: it then says nothing of dates.
    """

    at_s: int
    author: str
    files: list[tuple[str, str, str]]


def read_file_dates(
    repo: Repository,
    env: Mapping[str, str],
    commits: str,
    folders: Sequence[str],
    known: Mapping[str, FileDates],
    *,
    timeout_s: float,
) -> dict[str, FileDates]:
    """Return the dates of the files of the last of these commits, those of files below these folders alone.

    ``commits`` is a commit or a range; ``known`` are the dates at the beginning of the range. Without folders all files
    count. Raises: ``GitUnusable``, also when git takes longer than ``timeout_s``.
    """
    arguments = [*_LOG, f"--format={_FORMAT}", commits, "--"]
    output = run_git(repo, env, [*arguments, *(f":(literal){one}" for one in folders)], timeout_s=timeout_s).output
    return _dates(_commits(output), known)


def _commits(output: bytes) -> Iterator[_Commit]:
    """Yield the commits that git printed: a line for each, then pairs, or triples, of a status and names."""
    words = iter(output.split(b"\0"))
    commit: _Commit | None = None
    for word in words:
        text = os.fsdecode(word).removeprefix("\n")
        if text.startswith(_BEGINS):
            if commit:
                yield commit
            at_s = int(text[1:] or 0)
            commit = _Commit(at_s if 0 < at_s <= _LAST_S else 0, next(words, b"").decode("utf-8", "replace"), [])
        elif text and commit:
            old = os.fsdecode(next(words, b""))
            new = os.fsdecode(next(words, b"")) if text[0] in "RC" else old
            commit.files.append((text[0], old, new))
    if commit:
        yield commit


def _dates(commits: Iterator[_Commit], known: Mapping[str, FileDates]) -> dict[str, FileDates]:
    """Return dates out of commits, the newest first, on top of those that were known before the oldest of them."""
    names: dict[str, str | None] = {}
    """The present name of a file by one that it had; None where that was another file, which is gone."""
    found: dict[str, FileDates] = {}

    def note(name: str, commit: _Commit) -> str | None:
        now = names.get(name, name)
        if now is not None and commit.at_s:
            later = found.get(now)
            found[now] = FileDates(commit.at_s, later.updated_s if later else commit.at_s, commit.author)
        return now

    for commit in commits:
        for status, old, new in commit.files:
            if status == "D":
                names[old] = None
                continue
            now = note(new, commit)
            if status in "AC":
                names[new] = None
            elif status == "R":
                names[new] = None
                names[old] = now
    for name, before in known.items():
        now = names.get(name, name)
        if now is not None:
            later = found.get(now)
            found[now] = FileDates(before.created_s, later.updated_s if later else before.updated_s, before.author)
    return found
