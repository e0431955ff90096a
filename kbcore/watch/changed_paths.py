"""Changed paths of a worktree, queried in one thread: for a process that answers questions.

The kernel notes a change before the call that made it returns: whatever was saved before a question is in the answer.
Changes through a memory map, through another name of a file, and at the end of a link are not noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kbcore.store.kb_folder import KB
from kbcore.store.workspace import Workspace
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.watch import inotify
from kbcore.watch.inotify_coverage import readable
from kbcore.watch.places import Places, places_of

_GIT = ".git"


class ChangedFiles:
    """Listens to the folders in which extractors want files, and to those that lead there."""

    def __init__(self, places: Places) -> None:
        """Raises: ``OSError`` when the system refuses."""
        own = {places.root / _GIT, places.root / KB, places.git_dir, places.settings, places.store}
        flat = [one for one in readable(places.flat) if not any(one.is_relative_to(folder) for folder in own)]
        self._places = places
        # The flat ones tell when a deep folder goes or comes, so they have to be there first.
        self._flat = inotify.Listener(flat, is_deep=False)
        try:
            self._deep = inotify.Listener(readable(places.deep), is_deep=True)
        except BaseException:
            self._flat.close()
            raise

    def take(self) -> set[str] | None:
        """Return the files and folders that changed, by their paths from the root; None: any may have."""
        found: set[str] = set()
        for listener in (self._flat, self._deep):
            try:
                changed = listener.take()
            except OSError:  # a new folder cannot be listened to
                return None
            if changed is None:
                return None
            for path in map(Path, changed):
                meaning = self._places.meaning(path)
                if meaning == "layout" or self._places.is_listened(path):
                    return None
                if meaning in {"file", "folder"}:
                    found.add(path.relative_to(self._places.root).as_posix())
        return found

    def close(self) -> None:
        """Stop listening."""
        self._flat.close()
        self._deep.close()


def listen(workspace: Workspace, wants: Sequence[ActiveExtractor]) -> ChangedFiles | None:
    """Begin to listen to the files of a worktree; None where the system does not say what changes there."""
    if not inotify.IS_AVAILABLE:
        return None
    globs = [glob for want in wants for glob, _ in want.globs]
    try:
        return ChangedFiles(places_of(workspace, globs, workspace.head().branch))
    except OSError:
        return None
