"""A check of whether a branch needs a cycle: what has grown past its threshold. Reads only."""

from __future__ import annotations

from typing import Any

import msgspec

from kbcore.kip.sleep.assess import assess
from kbcore.kip.sleep.finish import last_cycle
from kbcore.kip.sleep.memory import Memory
from kbcore.store.workspace import Workspace
from kbcore.view.view import View


class Due(msgspec.Struct, frozen=True):
    """Reasons for a cycle, in sentences, if it is due. ``last_cycle`` is "" where there was none."""

    last_cycle: str
    reasons: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"due": bool(self.reasons), "last_cycle": self.last_cycle or None, "reasons": list(self.reasons)}


def due(workspace: Workspace, view: View) -> Due | None:
    """Return whether a cycle is due; None where nothing is remembered yet."""
    memory = Memory(view, view.schema(workspace.schema), workspace.config.sleep, workspace.machine.clock.now())
    found = assess(memory)
    if not found.concepts:
        return None
    wanted = memory.settings
    grown = (
        ("orphans", wanted.most_orphans, "concepts belong to no domain"),
        ("unsorted", wanted.most_unsorted, "concepts are in Unsorted"),
        ("stale_events", wanted.most_stale_events, "old events are not consolidated"),
    )
    reasons = [
        f"{found.metric(name).value} {words}; more than {most} is much."
        for name, most, words in grown
        if (found.metric(name).value or 0) > most
    ]
    return Due(last_cycle(memory), tuple(reasons))
