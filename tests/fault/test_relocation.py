"""A move of older stores that is killed or fails at any call leaves every store whole; the next command finishes it."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import KBError
from kbcore.storage import verify
from kbcore.store import kb_folder
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.older import Elsewhere, facts, shown
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git

NO_SYNC = NoSyncFs()


def opened(root: Path, fs: Any) -> None:
    Project(root, fs=fs, is_new=False).workspace()


@pytest.mark.sliced
@pytest.mark.fault("F2")
@pytest.mark.parametrize("inner", [NoSyncFs, Elsewhere])
@pytest.mark.parametrize("kind", [CrashingFs, FailingFs])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_move_that_ends_anywhere_leaves_every_store_whole_and_the_next_command_finishes(
    older: Project, tally, inner: type[NoSyncFs], kind: type[FailingFs], when: str
) -> None:
    kept, before = shutil.copytree(older.root, older.root.parent / "kept", symlinks=True), facts(shown(older))
    probe = LoggingFs(inner())
    opened(older.root, probe)
    naming = {"replace", "link", "symlink", "unlink", "mkdir", "rmdir", "fsync_dir"}
    writing = {"open", "write", "pwrite", "fsync", "ftruncate"}
    points = []
    for at, (call, name) in enumerate(probe.calls):
        # Renames and what prepares them always, of writing every third call, of reading a few.
        if not (call in naming or (call in writing and at % 3 == 0 and name != "lock") or at % 40 == 0):
            continue
        points.append((at, call))
    for at, call in points[:: tries(12, 1)]:
        tally.tried()
        shutil.rmtree(older.root)
        shutil.copytree(kept, older.root, symlinks=True)
        fs = kind(at, when=when, inner=inner())
        with contextlib.suppress(Crash, KBError):
            opened(older.root, fs)
        fs.close_all()
        again = Project(older.root, fs=inner(), is_new=False)
        assert again.node("A") is not None, (at, call)
        assert facts(stores_at(older.root)) == before, (at, call)
        for branch in ("main", "topic"):
            assert verify.prove(NO_SYNC, stores_at(older.root) / branch).is_sound
        assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard", (at, call)
        assert not list((older.root / ".kb").glob(".moved*")) or fs_fails(fs), (at, call)
        assert git(older.root, "status", "--porcelain", "--untracked-files=all") == "", (at, call)
        again.close()
    assert len(points) >= 15
    tally.done()


def fs_fails(fs: LoggingFs) -> bool:
    """Tell whether a process went on after the failure: what it could not remove, `kb gc` does."""
    return not isinstance(fs, CrashingFs)


class Between(LoggingFs):
    """Lets another process act before the ``at``-th call (from 0)."""

    def __init__(self, at: int, other: Callable[[], object]) -> None:
        super().__init__(NoSyncFs())
        self.at, self.other = at, other

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if len(self.calls) - 1 == self.at:
            self.other()
        return super()._run(kind, method, args)


@pytest.mark.sliced
@pytest.mark.fault("F2")
def test_a_process_that_replaces_the_pointer_between_two_calls_of_another_leaves_the_stores_whole(
    older: Project, tally
) -> None:
    opened(older.root, NO_SYNC)
    (older.root / ".kb/.gitignore").write_text("/branches\n/cache/\n")
    kept, before = shutil.copytree(older.root, older.root.parent / "kept", symlinks=True), facts(stores_at(older.root))
    probe = LoggingFs(NoSyncFs())
    opened(older.root, probe)
    assert shown(older).is_symlink()
    calls = [call for call, _ in probe.calls]
    first = calls.index("replace")
    for at in range(max(0, first - tries(3, first)), len(calls)):
        tally.tried()
        shutil.rmtree(older.root)
        shutil.copytree(kept, older.root, symlinks=True)
        opened(older.root, Between(at, lambda: opened(older.root, NO_SYNC)))
        assert facts(stores_at(older.root)) == before, (at, calls[at])
        opened(older.root, NO_SYNC)
        assert shown(older).is_symlink(), (at, calls[at])
    tally.done()
