"""The files below the folders where globs begin, found by name. No link to a folder is followed.

A folder that is not looked into hides what the state knows to be below it. That is an error then, else a note at most.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

from kbcore.extract.facts import FileProblem
from kbcore.ids import path_text
from kbcore.sync.paths import is_named

_SKIPPED_FOLDERS: Final = frozenset({".git", ".kb"})
_KEPT: Final = "What was known of its files is kept."
_OUTSIDE: Final = "It leads out of the repository, which is not followed."
_LINK: Final = "It is a link to a folder, which is not followed."
_NOWHERE: Final = "It is a link to nothing."


class Named:
    """A file that was found by its path, as ``os.scandir`` would have found it."""

    def __init__(self, path: str) -> None:
        self.path = path

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what the file looks like from outside."""
        return os.stat(self.path, follow_symlinks=follow_symlinks)  # noqa: PTH116 - as an entry of `os.scandir`

    def is_symlink(self) -> bool:
        """Tell whether it is a link."""
        return os.path.islink(self.path)  # noqa: PTH114 - as an entry of `os.scandir`


Entry = os.DirEntry[str] | Named


class Walk:
    """One search below the top of a worktree. Paths are from there, with ``/``.

    ``blind`` are folders that hide what is known to be below them; ``notes`` pairs a path with what was passed over.
    """

    def __init__(
        self, root: Path, known: Collection[str], starts: Collection[str], is_wanted: Callable[[str], bool]
    ) -> None:
        """``starts`` are the folders where searches begin: links to these, or on the way to them, are followed."""
        self._root = root
        self._starts = starts
        self._known = known
        self._is_wanted = is_wanted
        self.blind: dict[str, FileProblem] = {}
        self.notes: dict[str, FileProblem] = {}

    def files(self, folder: str, depth: int, below: Sequence[str] | None) -> Iterator[tuple[str, Entry]]:
        """Yield the files below a folder, ``depth`` folders down at most, with their paths.

        ``below`` limits them to those at one of these paths, or below one that is a folder.
        """
        place = self._root / folder
        real = Path(os.path.realpath(place))
        if not real.is_relative_to(self._root):
            self._pass_over(folder, _OUTSIDE, "Put the folder itself there.")
        elif real != place and not real.exists():
            self._pass_over(folder, _NOWHERE)
        elif below is None:
            yield from self._all(folder, depth)
        else:
            for path in below:
                if is_named(folder, [path]):
                    yield from self._all(folder, depth)
                elif is_named(path, [folder]):
                    yield from self._at(folder, depth, path)

    def _at(self, folder: str, depth: int, path: str) -> Iterator[tuple[str, Entry]]:
        """Yield the file at a path below a folder, or the files below it; neither beyond links nor skipped folders."""
        parts = path.removeprefix(f"{folder}/" if folder else "").split("/")
        place = folder
        for part in parts[:-1]:
            place = f"{place}/{part}" if place else part
            if part in _SKIPPED_FOLDERS or self._is_closed(place):
                return
        try:
            about = os.lstat(self._root / path)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.blind[path_text(path)] = _unlisted(error)
            return
        if stat.S_ISDIR(about.st_mode):
            if parts[-1] not in _SKIPPED_FOLDERS and depth >= len(parts):
                yield from self._all(path, depth - len(parts))
        elif not self._is_closed(path):
            yield path, Named(os.path.join(self._root, path))  # noqa: PTH118 - as `os.scandir` names it

    def _all(self, folder: str, depth: int) -> Iterator[tuple[str, Entry]]:
        """Yield the files below a folder, in order of path."""
        try:
            with os.scandir(self._root / folder if folder else self._root) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.blind[path_text(folder)] = _unlisted(error)
            return
        for entry in listed:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_dir(follow_symlinks=False):
                if depth > 0 and entry.name not in _SKIPPED_FOLDERS:
                    yield from self._all(path, depth - 1)
            elif not (entry.is_symlink() and self._is_closed(path)):
                yield path, entry

    def _is_closed(self, path: str) -> bool:
        """Tell whether this is a link to a folder, beyond which nobody looks; that is said.

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
        """Say that nobody looks below a path; without a remedy it is worth no word unless it hides something."""
        if self._hides(path):
            hint = "Put the folder itself there, or remove the link and what was known with it."
            self.blind[path_text(path)] = FileProblem(0, "unreadable", f"{message} {_KEPT}", hint)
        elif remedy:
            self.notes[path_text(path)] = FileProblem(0, "passed_over", message, remedy, "note")

    def _leads_inside(self, folder: str) -> bool:
        """Tell whether a search that begins in a folder finds one inside the repository."""
        real = Path(os.path.realpath(self._root / folder))
        return real.is_dir() and real.is_relative_to(self._root)

    def _hides(self, path: str) -> bool:
        """Tell whether files are known below a path that are not looked for where it leads either."""
        above = path_text(path) + "/"
        own = [start for start in self._starts if is_named(start, [path]) and self._leads_inside(start)]
        rests = [
            one.removeprefix(above)
            for one in self._known
            if one.startswith(above) and not (own and is_named(one, own) and self._is_wanted(one))
        ]
        real = Path(os.path.realpath(self._root / path))
        if not (rests and self._leads_inside(path)):
            return bool(rests)
        place = real.relative_to(self._root)
        return not all(self._is_wanted((place / rest).as_posix()) for rest in rests)


def _unlisted(error: OSError) -> FileProblem:
    message = f"The folder cannot be listed: {error.strerror}. {_KEPT}"
    return FileProblem(0, "unreadable", message, "Give yourself permission to read it.")
