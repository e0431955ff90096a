"""Writers and readers of one store, and how they are judged."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kbcore.storage.fs import RealFs
from tests.support.crowd.crowd import Crowd, Member, fast_place
from tests.support.crowd.crowd_jobs import TOKEN
from tests.support.effort.scale import SCALE, tries
from tests.support.processes.lines import Message
from tests.support.repository.project import Project


@pytest.fixture(params=["memory", "disk"][: tries(1, 2)])
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Project]:
    """A project with the token in it, where calls are fast and where a sync takes its time."""
    with ExitStack() as stack:
        place = stack.enter_context(fast_place(tmp_path)) if request.param == "memory" else tmp_path
        made = Project(place / "a project", fs=RealFs())
        stack.callback(made.close)
        if SCALE == "soak":
            # Thirty-two of them on a few cores: that somebody waits his ten seconds in vain is no fault there.
            made.write({".kb/config.json": '{"lockWaitSeconds": 600}'})
        made.apply(entities=[{"id": TOKEN, "type": "req", "title": "t", "status": "open"}])
        yield made


def readers(crowd: Crowd, project: Project, count: int, pause_s: float = 0.005) -> list[Member]:
    root = str(project.root)
    return [
        crowd.member("crowd_jobs:reading", root=root, name=f"r{number}", pause_s=pause_s) for number in range(count)
    ]


def of_readers(tally, said: list[Message]) -> list[str]:
    """Count the reads, and return what was wrong with any."""
    tally.tried(sum(message.get("reads", 0) for message in said))
    return [f"a reader: {message['violated']}" for message in said if "violated" in message]
