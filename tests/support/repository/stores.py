"""One branch's store without a repository: a directory, its cache, and a clock that a test moves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbcore.model.folding import apply
from kbcore.model.read_set import needs
from kbcore.model.record import Operation, PutNode
from kbcore.model.state import Draft, Stamp
from kbcore.storage import branchdir
from kbcore.storage.fs import Fs
from kbcore.store.answers import Outcome
from kbcore.store.branch_store import BranchStore
from kbcore.store.write_request import Author, Planner, Request
from kbcore.view.cache_files import CacheFiles
from kbcore.view.view import View
from tests.support.disk.faultfs import NoSyncFs
from tests.support.generators.histories import LINEAGE, based

AUTHOR = Author("tester", "cli", "kb/test")


class SteppingClock:
    """A clock that goes on by a second at each look, unless it is set."""

    def __init__(self) -> None:
        self.elapsed_s = 0

    def now(self) -> str:
        self.elapsed_s += 1
        days, rest = divmod(self.elapsed_s, 86400)
        return f"2026-11-{20 + days}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.000000Z"

    def epoch_ns(self) -> int:
        return self.elapsed_s * 10**9

    def monotonic_s(self) -> float:
        return float(self.elapsed_s)

    def sleep(self, wait_s: float) -> None:
        self.elapsed_s += 1


class Stored:
    """A store on disk that may be opened again, as another process would."""

    def __init__(self, root: Path, *, fs: Fs | None = None, clock: Any = None) -> None:
        self.fs: Any = fs or NoSyncFs()
        self.clock = clock or SteppingClock()
        self.directory = root / "branches" / "main"
        self.cache_dir = root / "cache" / "main"
        for folder in (self.directory.parent, self.cache_dir.parent):
            folder.mkdir(parents=True, exist_ok=True)
        if not self.directory.exists():
            branchdir.create(self.fs, self.directory, self.clock, branch="main", lineage=LINEAGE)
        self.store = self.opened()

    def opened(self, **how: Any) -> BranchStore:
        """Return the store as a process sees it that has just begun."""
        return BranchStore(self.fs, self.clock, self.directory, CacheFiles(self.fs, self.cache_dir), **how)

    def reopen(self) -> BranchStore:
        """Forget everything that is only in memory."""
        self.store.close()
        self.store = self.opened()
        return self.store

    def commit(self, ops: Sequence[Operation], **request: Any) -> Outcome:
        """Commit operations as they are; their ``base`` is filled in."""
        return self.store.commit(AUTHOR, Request(**{"lock_wait_s": 0, **request}), planner(ops), branch="main")

    def put(self, key: str, **request: Any) -> Outcome:
        """Commit one entity of that id and title."""
        return self.commit([PutNode(id=key, base=0, set={"type": "req", "title": key})], **request)

    def view(self) -> View:
        return view_of(self.store)

    def close(self) -> None:
        self.store.close()


def view_of(store: BranchStore) -> View:
    """Return a view of the store's head, to ask more than one thing of it; the next reading may move or replace it."""
    return store.read(lambda view: view)


def planner(ops: Sequence[Operation]) -> Planner:
    """Return a planner for operations that are given as they are."""

    def plan(view: View, stamp: Stamp) -> Draft:
        state = view.gather(needs([msgspec.structs.replace(op, base=0) for op in ops]))
        ready = tuple(based(state, ops))
        return Draft(ready, apply(state, stamp, ready), state.loaded)

    return plan
