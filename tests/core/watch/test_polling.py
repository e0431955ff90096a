"""Files are looked at where the system reports no change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kbcore.watch import pauses
from kbcore.watch.events import Listening, Polling
from kbcore.watch.notices import NotedPaths
from tests.core.watch.watching import ONE, REQS
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files
from tests.support.repository.watched import Watched


class Deaf(NotedPaths):
    """The notices of a system that has no watches left: it can only be asked to look itself."""

    @property
    def refusal(self) -> str:
        return "" if self._is_polling else "no watches are left"


def test_where_the_system_tells_nothing_files_are_looked_at_and_that_is_said(project: Project) -> None:
    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Deaf) as watched:
        assert [event.reason for event in watched.of(Polling)] == ["no watches are left"]
        (project.root / ONE).write_text(req("REQ-1"))
        watched.until_there("REQ-1")


def test_where_the_system_tells_nothing_it_is_asked_again_after_a_while_of_quiet(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    asked: list[bool] = []

    class Short(Deaf):
        @property
        def refusal(self) -> str:
            return "" if len(asked) > 3 else super().refusal

        def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
            super().__init__(deep, flat, is_polling=is_polling)
            asked.append(is_polling)

    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Short) as watched:
        watched.until_event(lambda event: isinstance(event, Listening))
        assert (asked[0], asked[-1]) == (False, False)
        assert any(asked)
        assert len(watched.of(Polling)) == 1


def test_where_files_are_looked_at_a_listener_that_ends_is_replaced(project: Project) -> None:
    made: list[NotedPaths] = []

    class Dying(Deaf):
        def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
            super().__init__(deep, flat, is_polling=is_polling)
            made.append(self)

        @property
        def has_ended(self) -> bool:
            return super().has_ended or (len(made) < 4 and self._is_polling)

    (project.root / REQS).mkdir(parents=True)
    with Watched(project.root, listen=Dying) as watched:
        watched.until(lambda: len(made) >= 4)
        (project.root / ONE).write_text(req("REQ-1"))
        watched.until_there("REQ-1")


def test_what_nobody_tells_of_is_found_after_a_while_of_quiet_again_and_again(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pauses, "QUIET_SCAN_S", 0.1)
    monkeypatch.setattr(pauses, "LONGEST_QUIET_SCAN_S", 0.4)
    commit_files(project.root, {"real.txt": req("REQ-1")})
    (project.root / REQS).mkdir(parents=True)
    (project.root / ONE).symlink_to("../../real.txt")
    with Watched(project.root) as watched:
        for title in ("Two", "Three"):
            (project.root / "real.txt").write_text(req("REQ-1", title=title))
            watched.until_there("REQ-1", title=title)
        watched.assert_in_step()
