"""The settings files that a watcher has used: one that is gone or empty since is being saved, until it is believed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kbcore.clock import Clock
from kbcore.store.settings_files import CONFIG, RULES, SCHEMA
from kbcore.store.workspace import Workspace
from kbcore.watch.debounce import Debouncer


class Settings:
    """The settings files that were there at the last sync."""

    def __init__(self, clock: Clock, debouncer: Debouncer) -> None:
        self._clock = clock
        self._debouncer = debouncer
        self._there: frozenset[str] = frozenset()

    def note_used(self, workspace: Workspace) -> None:
        """Note the files that are there now, besides those that were."""
        self._there |= {str(path) for path in _files(workspace.settings_dir) if not is_doubtful(path)}

    def forget(self, believed: Iterable[str] | None = None) -> None:
        """Forget the files that are believed to be gone or empty, or all: another branch has settings of its own."""
        self._there = frozenset() if believed is None else self._there.difference(believed)

    def are_being_saved(self) -> bool:
        """Return whether they changed a moment ago; those that went are looked at when that may be believed."""
        missing = [path for path in self._there if is_doubtful(Path(path))]
        self._debouncer.add(missing, self._clock.monotonic_s(), are_settings=True)
        return bool(missing)


def is_doubtful(path: Path) -> bool:
    """Return whether a path is gone or holds nothing, as while it is being saved."""
    try:
        about = os.lstat(path)
    except OSError:
        return True
    return about.st_size == 0


def _files(settings: Path) -> Iterator[Path]:
    yield settings / CONFIG
    for folder in (settings / SCHEMA, settings / RULES):
        try:
            yield from folder.iterdir()
        except OSError:  # there is none, or whoever reads it says what is wrong
            continue
