"""Writers and readers of one store, and how they are judged."""

from __future__ import annotations

from tests.support.crowd.crowd import Crowd, Member
from tests.support.processes.lines import Message
from tests.support.repository.project import Project


def readers(crowd: Crowd, project: Project, count: int, pause_s: float = 0.005) -> list[Member]:
    root = str(project.root)
    return [
        crowd.member("crowd_jobs:reading", root=root, name=f"r{number}", pause_s=pause_s) for number in range(count)
    ]


def of_readers(tally, said: list[Message]) -> list[str]:
    """Count the reads, and return what was wrong with any."""
    tally.tried(sum(message.get("reads", 0) for message in said))
    return [f"a reader: {message['violated']}" for message in said if "violated" in message]
