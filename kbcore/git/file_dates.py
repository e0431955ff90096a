"""The dates of files in the history of HEAD: when each came and last changed, and who wrote the commit that brought it.

A renamed file keeps the dates of its earlier names. Times are those of the authors of commits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from kbcore.git.commands import run_git
from kbcore.git.repository import Repository

_FORMAT: Final = "%x01%at%x00%aN"
_LOG: Final = (
    *("-c", "log.showRoot=true", "log", "-M", "--name-status", "-z"),
    *("--no-show-signature", "--no-follow", "--encoding=UTF-8", "-O/dev/null"),
)
"""The arguments of git's log, whatever the user's settings say of it."""
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


class DateChanges(msgspec.Struct, frozen=True):
    """The dates of files in a range of commits.

    ``found`` has the files that they touched, by the names after them: when this range touched a file first and last.
    ``names`` has the name after them of each file before them that they renamed, by its old name: None for one that is
    gone, and for a name that another file has now.
    """

    found: dict[str, FileDates] = {}
    names: dict[str, str | None] = {}

    def lookup(self, before: Callable[[str], FileDates | None]) -> Callable[[str], FileDates | None]:
        """Return what gives the dates of a file after the range, by those of files before it."""
        olds = {now: old for old, now in self.names.items() if now is not None}

        def dates(name: str) -> FileDates | None:
            later = self.found.get(name)
            old = olds.get(name) or (None if name in self.names else name)
            known = before(old) if old is not None else None
            return _joined(known, later) if known else later

        return dates

    def of_all(self, known: Mapping[str, FileDates]) -> dict[str, FileDates]:
        """Return the dates of all files after the range; ``known`` are those before it."""
        result = dict(self.found)
        for name, before in known.items():
            now = self.names.get(name, name)
            if now is not None:
                result[now] = _joined(before, self.found.get(now))
        return result

    def then(self, later: DateChanges) -> DateChanges:
        """Return what this range and the one after it say together."""
        names = {old: None if now is None else later.names.get(now, now) for old, now in self.names.items()}
        names |= {old: now for old, now in later.names.items() if old not in self.names}
        return DateChanges(later.of_all(self.found), names)


def _joined(before: FileDates, later: FileDates | None) -> FileDates:
    return FileDates(before.created_s, later.updated_s if later else before.updated_s, before.author)


class _Commit(msgspec.Struct, frozen=True):
    """A commit, newest first: for each file its status as git has it, the name it had, and the name it got.

    ``at_s`` is 0 for a time that cannot be one, which a commit may have: it then says nothing of dates.
    """

    at_s: int
    author: str
    files: list[tuple[str, str, str]]


def read_date_changes(
    repo: Repository, env: Mapping[str, str], commits: str, folders: Sequence[str], *, timeout_s: float
) -> DateChanges:
    """Return what commits, a range or one with all before it, say of the files below these folders.

    Without folders all files count. Raises: ``GitUnusable``, also when git takes longer than ``timeout_s``.
    """
    arguments = [*_LOG, f"--format={_FORMAT}", commits, "--"]
    output = run_git(repo, env, [*arguments, *(f":(literal){one}" for one in folders)], timeout_s=timeout_s).output
    return _changes(_commits(output))


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


def _changes(commits: Iterator[_Commit]) -> DateChanges:
    """Return what commits, the newest first, say."""
    names: dict[str, str | None] = {}
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
    return DateChanges(found, names)
