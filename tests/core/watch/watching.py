"""Watchers of which some hear nothing or too much, and waiting for what they say."""

from __future__ import annotations

from kbcore.watch.events import Waiting
from tests.support.repository.watched import Watched

REQS = "docs/requirements"


ONE = f"{REQS}/one.md"


CALM_S = 0.2


def waited_for(watched: Watched, kind: type[Exception]) -> None:
    """Wait until it is reported that this prevents watching."""
    watched.until_event(lambda event: isinstance(event, Waiting) and isinstance(event.error, kind))
