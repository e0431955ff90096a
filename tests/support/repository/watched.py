"""A watcher in a thread of its own. Whoever waits for it waits for what it tells, or for what is in the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from kbcore.storage.fs import RealFs
from kbcore.watch.events import Checked, Event, Following, Synced
from kbcore.watch.watcher import Watcher
from tests.support.repository.project import AUTHOR, Project

E = TypeVar("E")
WAIT_S = 120.0
"""More than any machine needs, however busy; nobody waits that long unless something is wrong."""

_STEP_S = 0.02


class Watched:
    """A worktree with a watcher; ``reader`` sees the store as another process does."""

    def __init__(self, root: Path, **given: Any) -> None:
        self.root = root
        self.events: list[Event] = []
        self.error: BaseException | None = None
        # Two that meet at one store need files that are replaced in one step.
        self.reader = Project(root, fs=RealFs(), is_new=False)
        self._own = Project(root, fs=RealFs(), is_new=False)
        self.watcher = Watcher(self._own.workspace(), AUTHOR, self.events.append, **given)
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self.until_event(lambda event: isinstance(event, Checked) and event.is_first)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.end()
        self.reader.close()
        if kind is None and self.error:
            raise self.error

    def end(self) -> float:
        """Stop the watcher, and return how long it took to end, in seconds."""
        begun_s = time.monotonic()
        self.watcher.stop()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive(), "the watcher does not end"
        self._own.close()
        return time.monotonic() - begun_s

    def is_running(self) -> bool:
        return self._thread.is_alive()

    def until(self, is_so: Callable[[], object], what: object = "") -> None:
        """Wait until something is so."""
        end_s = time.monotonic() + WAIT_S
        while not is_so():
            if self.error:
                raise self.error
            assert time.monotonic() < end_s, f"{what or 'not so'} after {WAIT_S:g} s; reported: {self.events}"
            time.sleep(_STEP_S)

    def until_event(self, is_it: Callable[[Event], object], since: int = 0) -> Event:
        """Wait until something was reported, and return it; ``since`` skips so many of the first reports."""
        found: list[Event] = []

        def has_event() -> bool:
            found[:] = [event for event in self.events[since:] if is_it(event)]
            return bool(found)

        self.until(has_event)
        return found[0]

    def until_there(self, *keys: str, title: str = "") -> None:
        """Wait until these entities are in the store, with a title where one is given."""

        def is_there() -> bool:
            nodes = self.reader.view().nodes(keys)
            return len(nodes) == len(keys) and (not title or all(node.fields["title"] == title for node in nodes))

        self.until(is_there, f"no {keys} {title}")

    def until_gone(self, *keys: str) -> None:
        """Wait until these entities are not in the store."""
        self.until(lambda: not self.reader.view().nodes(keys), f"still {keys}")

    def until_follows(self, branch: str, since: int = 0) -> Following:
        """Wait until a branch is followed, and checked for the first time."""
        reported = self.until_event(
            lambda event: isinstance(event, Following) and event.answer.outcome.branch == branch, since
        )
        self.until_event(lambda event: isinstance(event, Checked) and event.branch == branch, since)
        assert isinstance(reported, Following)
        return reported

    def of(self, kind: type[E]) -> list[E]:
        """Return the reports of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def deleted(self) -> list[str]:
        """Return the ids that records have deleted since the watcher began."""
        return [key for event in self.of(Synced) for key in event.answer.outcome.deleted]

    def is_quiet(self, calm_s: float) -> bool:
        """Tell whether nothing is written for so long."""
        seq = self.reader.seq()
        time.sleep(calm_s)
        return self.reader.seq() == seq

    def until_in_step(self) -> None:
        """Wait until a sync of everything would find nothing to do."""
        self.until(lambda: self.reader.sync(dry_run=True).is_idle, "not in step")

    def until_quiet(self, calm_s: float) -> None:
        """Wait until nothing was written for so long."""
        self.until(lambda: self.is_quiet(calm_s))

    def assert_in_step(self) -> None:
        """End the watcher, and see that it left nothing to do for a sync of everything."""
        self.end()
        left = self.reader.sync()
        assert not left.outcome.applied, left

    def _run(self) -> None:
        try:
            self.watcher.run()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for, in another thread
            self.error = error
