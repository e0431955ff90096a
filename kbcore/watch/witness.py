"""What a watcher knows of the store it follows: the last head that it saw, and what it has told of losses.

A store that lost what the watcher itself had told of is not written to: whatever came next would bury the loss.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbcore.branchview import basis_of
from kbcore.errors import JournalTruncated
from kbcore.storage import files
from kbcore.storage.head import Head
from kbcore.viewcache import is_lost
from kbcore.workspace import Workspace

_HINT = "Put it back, from a backup for one; if this is as it should be, end `kb watch` and begin it again."


class Witness:
    """The witness of one branch at a time."""

    def __init__(self) -> None:
        self._seen: Head | None = None
        self._told: set[str] = set()

    def saw(self, head: Head) -> None:
        """Note the head as it is now."""
        self._seen = head

    def forget(self) -> None:
        """Forget what was seen: another branch is another store."""
        self._seen = None

    def loss(self, workspace: Workspace, branch: str) -> JournalTruncated | None:
        """Return what is wrong when the branch's store lacks what was seen in it; None when all of it is there.

        A store that was put away, or goes by another name now, is not lost.

        Raises: what reading a head raises.
        """
        seen = self._seen
        if seen is None or not seen.seq:
            return None
        fs, directory = workspace.machine.fs, workspace.directory_of(branch)
        now = workspace.store(branch).head() if workspace.has_store(branch) else None
        if now is not None and now.store_id == seen.store_id:
            if now.seq >= seen.seq:
                return None
            what = f"the store of {branch} ends at seq {now.seq}, and was at seq {seen.seq} before"
        elif not files.is_directory(fs, directory.parent) or is_lost(
            fs, directory, basis_of(seen), now.store_id if now else ""
        ):
            instead = "another one has its place" if now else "nothing has its place"
            what = f"the store of {branch} that was at seq {seen.seq} is gone, and {instead}"
        else:
            return None
        return JournalTruncated(f"{directory}: {what}. Nothing is written.", hint=_HINT)

    def news(self, notices: Iterable[str]) -> tuple[str, ...]:
        """Return those of these notices that were not told yet, each once."""
        fresh = tuple(one for one in dict.fromkeys(notices) if one not in self._told)
        self._told.update(fresh)
        return fresh
