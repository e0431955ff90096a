"""The files below the folders where globs begin, found by name. No link to a folder is followed.

A folder that is not looked into hides what the state knows to be below it. That is an error then, else a note at most.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from kbcore.ids import path_text
from kbcore.sync.paths import is_named
from kbcore.text.globs import GlobSet, GlobState, parents
from kbcore.text.problems import FileProblem

SKIPPED_FOLDERS: Final = frozenset({".git", ".kb", "node_modules"})
"""A search begins in one where a glob names it, and goes into none."""

_DEEPEST: Final = 64
"""A search goes so many folders down from where it begins."""

_KEPT: Final = "What was known of its files is kept."
_OUTSIDE: Final = "It points outside of the repository, which is not followed."
_LINK: Final = "It is a link to a folder, which is not followed."
_NOWHERE: Final = "It is a link to nothing."


class NamedFile:
    """A file that was found by its path, as ``os.scandir`` would have found it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what the file looks like from outside."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)  # noqa: PTH116 - as an entry of `os.scandir`

    def is_symlink(self) -> bool:
        """Return whether it is a link."""
        return os.path.islink(self.path)  # noqa: PTH114 - as an entry of `os.scandir`


Entry = os.DirEntry[str] | NamedFile


class FolderWalk:
    """One search below the top of a worktree. Paths are from there, with ``/``.

    ``blind`` are folders that hide what is known to be below them; ``notes`` pairs a path with what was passed over.
    """

    def __init__(
        self,
        root: Path,
        known: Collection[str],
        starts: Collection[str],
        is_wanted: Callable[[str], bool],
        counted: Collection[str] = (),
    ) -> None:
        """``starts`` are the folders where searches begin: links to these, or on the way to them, are followed.

        In ``counted`` and below, files that no glob means are counted where some glob means others by their ending.
        """
        self._root = root
        self._starts = starts
        self._known = known
        self._is_wanted = is_wanted
        self._counted = frozenset(counted)
        self.blind: dict[str, FileProblem] = {}
        self.notes: dict[str, FileProblem] = {}
        self.folders: list[str] = []
        """The folders that were looked into."""
        self.not_read: dict[str, int] = {}
        """The number of files, by the endings of their names."""

    def files(self, folder: str, globs: GlobSet, below: Sequence[str] | None) -> Iterator[tuple[str, Entry, int]]:
        """Yield the files below a folder that globs mean, with their paths and the number of the first such glob.

        ``below`` limits them to those at one of these paths, or below one that is a folder; it is in order.
        """
        place = self._root / folder
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(self._root):
            self._pass_over(folder, _OUTSIDE, "Put the folder itself there.")
        elif real != place and not real.exists():
            self._pass_over(folder, _NOWHERE)
        elif below is None or any(_has(below, one) for one in (folder, *parents(folder))):
            yield from self._all(folder, globs, globs.below(folder), _DEEPEST)
        else:
            for path in _below(below, folder):
                yield from self._at(folder, globs, path)

    def _at(self, folder: str, globs: GlobSet, path: str) -> Iterator[tuple[str, Entry, int]]:
        """Yield the file at a path below a folder, or the files below it; neither beyond links nor skipped folders."""
        parts = path.removeprefix(f"{folder}/" if folder else "").split("/")
        place = folder
        for part in parts[:-1]:
            place = f"{place}/{part}" if place else part
            if part in SKIPPED_FOLDERS or self._is_closed(place):
                return
        try:
            about = os.lstat(self._root / path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.blind[path_text(path)] = _unlisted(error)
            return
        if stat.S_ISDIR(about.st_mode):
            if parts[-1] not in SKIPPED_FOLDERS:
                yield from self._all(path, globs, globs.below(path), _DEEPEST - len(parts))
        elif not self._is_closed(path):
            first = globs.first(path)
            if first is not None:
                yield path, NamedFile(os.path.join(self._root, path)), first  # noqa: PTH118 - as `os.scandir` names it

    def _all(self, folder: str, globs: GlobSet, state: GlobState, depth: int) -> Iterator[tuple[str, Entry, int]]:
        """Yield the files below a folder, in order of path; ``state`` is what the globs leave open in it."""
        if depth < 0 or state.is_dead:
            return
        try:
            with os.scandir(self._root / folder if folder else self._root) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.blind[path_text(folder)] = _unlisted(error)
            return
        self.folders.append(folder)
        counts = state.has_patterns and not self._counted.isdisjoint((folder, *parents(folder)))
        for entry in listed:
            if entry.name in SKIPPED_FOLDERS:  # also where it is a link, or the file of a worktree
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from self._all(path, globs, globs.enter(state, entry.name), depth - 1)
            elif not (entry.is_symlink() and self._is_closed(path)):
                ends = state.ends(entry.name)
                if ends:
                    yield path, entry, min(ends)
                elif counts and not entry.name.startswith("."):
                    ending = os.path.splitext(entry.name)[1].lower()  # noqa: PTH122 - a name, not a path
                    self.not_read[ending] = self.not_read.get(ending, 0) + 1

    def _is_closed(self, path: str) -> bool:
        """Return whether this is a link to a folder, which is not followed; that is reported.

        A link to nothing is one when files are known below it; any other is left to whoever reads it as a file.
        """
        place = self._root / path
        if not place.is_symlink() or os.path.isfile(place):  # noqa: PTH113 - not to be seen is not to be a file
            return False
        if os.path.exists(place):  # noqa: PTH110 - likewise
            self._pass_over(path, _LINK, "Name the folder itself in .kb/config.json.")
            return True
        self._pass_over(path, _NOWHERE)
        return path_text(path) in self.blind

    def _pass_over(self, path: str, message: str, remedy: str = "") -> None:
        """Report that a path is not searched; without a remedy only if it hides something."""
        if self._hides(path):
            hint = "Put the folder itself there, or remove the link and what was known with it."
            self.blind[path_text(path)] = FileProblem(0, "unreadable", f"{message} {_KEPT}", hint)
        elif remedy:
            self.notes[path_text(path)] = FileProblem(0, "passed_over", message, remedy, "note")

    @cached_property
    def _in_order(self) -> list[str]:
        """Return the paths that the state knows, in order."""
        return sorted(self._known)

    def leads_to(self, above: str, folder: str) -> bool:
        """Return whether a search that begins in a folder comes to another one below it, if that is there."""
        rest = folder.removeprefix(f"{above}/" if above else "")
        if not SKIPPED_FOLDERS.isdisjoint(rest.split("/")):
            return False
        return os.path.realpath(self._root / folder) == os.path.join(os.path.realpath(self._root / above), rest)  # noqa: PTH118

    def _leads_inside(self, folder: str) -> bool:
        """Return whether a search that begins in a folder finds one inside the repository."""
        real = Path(os.path.realpath(self._root / folder))
        return real.is_dir() and real.is_relative_to(self._root)

    def _hides(self, path: str) -> bool:
        """Return whether files are known below a path that are not looked for where it leads either."""
        above = path_text(path) + "/"
        there = _below(self._in_order, path_text(path))
        own = (
            [start for start in self._starts if is_named(start, [path]) and self._leads_inside(start)] if there else []
        )
        rests = [one.removeprefix(above) for one in there if not (own and is_named(one, own) and self._is_wanted(one))]
        real = Path(os.path.realpath(self._root / path))
        if not (rests and self._leads_inside(path)):
            return bool(rests)
        place = real.relative_to(self._root)
        return not all(self._is_wanted((place / rest).as_posix()) for rest in rests)


def _has(ordered: Sequence[str], path: str) -> bool:
    at = bisect_left(ordered, path)
    return at < len(ordered) and ordered[at] == path


def _below(ordered: Sequence[str], folder: str) -> Sequence[str]:
    """Return those of some paths in order that are below a folder, "" for the root."""
    if not folder:
        return ordered
    above = f"{folder}/"
    # "0" is the character after "/".
    return ordered[bisect_left(ordered, above) : bisect_left(ordered, f"{folder}0")]


def _unlisted(error: OSError) -> FileProblem:
    message = f"The folder cannot be listed: {error.strerror}. {_KEPT}"
    return FileProblem(0, "unreadable", message, "Give yourself permission to read it.")
