"""Uncommitted changes of a worktree: which files differ from HEAD, and in which lines. Staged or not is the same here.

git compares; nothing that the repository configures is run for it. Files that git ignores are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from kbcore.git.commands import LONG_TIMEOUT_S, run_git
from kbcore.git.repository import Repository
from kbcore.ids import path_text

Way = Literal["modified", "new", "deleted", "renamed"]
LineRange = tuple[int, int]
"""The first and the last line, counted from 1, of the file as it is now."""

_NO_HEAD: Final = 128
"""The status of git where HEAD names no commit yet."""
_DIFF: Final = ("diff", "--raw", "--patch", "-z", "-U0", "-M", "--no-color", "--no-ext-diff", "--no-textconv", "HEAD")
_WAYS: Final[Mapping[str, Way]] = {"A": "new", "D": "deleted", "R": "renamed", "C": "new"}
_TWO_PATHS: Final = ("R", "C")
_TYPE_CHANGED: Final = "T"
_UNMERGED: Final = "U"
_SECTION: Final = re.compile(rb"^diff --git ", re.MULTILINE)
_HUNK: Final = re.compile(rb"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)


class FileChange(msgspec.Struct, frozen=True):
    """A file that differs from HEAD. ``was`` is the former path of a renamed one, else "".

    ``lines`` are the changed ranges in the order of the file; of removed lines the one before them. A new or a deleted
    file, and one that is not text, has none: all of it is meant.
    """

    path: str
    way: Way
    was: str = ""
    lines: tuple[LineRange, ...] = ()


def uncommitted(repo: Repository, env: Mapping[str, str]) -> tuple[FileChange, ...]:
    """Return the files of the worktree that differ from HEAD, in the order of their paths; two processes of git.

    Before the first commit every file is new. Raises: ``GitUnusable``.
    """
    if not repo.has_worktree:
        return ()
    answer = run_git(repo, env, _DIFF, allowed=(0, _NO_HEAD), timeout_s=LONG_TIMEOUT_S)
    listed = ["ls-files", "-z", "--full-name", "--others", "--exclude-standard"]
    if answer.status == _NO_HEAD:
        listed.append("--cached")
    fresh = run_git(repo, env, listed, timeout_s=LONG_TIMEOUT_S).output.split(b"\0")
    found = {one.path: one for one in _changes(answer.output)} if answer.status == 0 else {}
    found |= {path: FileChange(path, "new") for path in map(path_text, filter(None, fresh))}
    return tuple(found[path] for path in sorted(found))


def _changes(output: bytes) -> Iterator[FileChange]:
    """Yield the files of ``git diff --raw --patch -z``: first a list of all, then a section for each in its order."""
    listed, _, patch = output.partition(b"\0\0")
    sections = iter(_SECTION.split(patch)[1:])
    words = iter(listed.split(b"\0"))
    for word in words:
        if not word.startswith(b":"):
            continue
        letter = word.rsplit(b" ", 1)[1][:1].decode("ascii", "replace")
        first = path_text(next(words))
        if letter == _UNMERGED:  # the same file comes again, with its section
            continue
        path, was = (path_text(next(words)), first) if letter in _TWO_PATHS else (first, "")
        section = next(sections, b"")
        if letter == _TYPE_CHANGED:  # one section for the file that went, and one for that which came
            section = next(sections, b"")
        way = _WAYS.get(letter, "modified")
        lines = () if way in {"new", "deleted"} or letter == _TYPE_CHANGED else tuple(_ranges(section))
        yield FileChange(path, way, was if way == "renamed" else "", lines)


def _ranges(section: bytes) -> Iterator[LineRange]:
    for hunk in _HUNK.finditer(section):
        first, count = int(hunk[1]), int(hunk[2] or 1)
        yield (first, first + count - 1) if count else (max(first, 1), max(first, 1))
