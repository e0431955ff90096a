"""The Prolog workspace of a connection: the engine with the open query, and what the server was started with for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kbcore.logic.engine.libraries import chosen
from kbcore.logic.pool import ClausePool
from kbcore.logic.source_files import Roots, roots_of
from kbcore.logic.workspace import PrologWorkspace


class PrologConnection:
    """All of the workspace that outlives a call. It lives as long as the server process."""

    def __init__(self, env: Mapping[str, str], libraries: Sequence[str], roots: Sequence[str]) -> None:
        """Take the values of ``--kb-libraries`` and ``--kb-roots``. No engine is started."""
        self.pool = ClausePool()
        self.workspace = PrologWorkspace(env, chosen(env, libraries))
        self._env = env
        self._roots = roots

    def roots(self, worktree: Path | None) -> Roots:
        """Return the folders whose files may be read."""
        return roots_of(worktree, self._env, self._roots)

    def taken_notices(self) -> list[str]:
        """Return what is to be said of the engine with the next answer, and forget it."""
        notices = self.workspace.notices
        taken = notices[:]
        del notices[: len(taken)]
        return taken

    def close(self) -> None:
        """End the engine."""
        self.workspace.close()
