"""A memory that is put to sleep, at a time that a test sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbcore.clock import SystemClock
from kbcore.kip.sleep import worklist
from kbcore.kip.sleep.cycle import CycleReport, SleepOptions, run
from kbcore.kip.sleep.memory import Memory, days_later
from kbcore.store import branches
from kbcore.store.pool import Machine
from tests.support.repository.kip_writing import Kip
from tests.support.repository.project import AUTHOR

TYPES = """UPSERT {
  CONCEPT { {type: "$ConceptType", name: "Preference"} SET ATTRIBUTES { description: "What somebody likes better." } }
  CONCEPT { {type: "$PropositionType", name: "prefers"} SET ATTRIBUTES { description: "Likes better." } }
}"""
LONG_AGO = "2026-01-01T00:00:00.000000Z"
NOW = "2026-11-20T09:30:00.000000Z"


class SetClock(SystemClock):
    """The machine's clock, but for the time of day, which is set by hand."""

    def __init__(self) -> None:
        self.at = NOW

    def now(self) -> str:
        return self.at


class Sleeper(Kip):
    """A project that remembers and sleeps."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.clock = SetClock()
        machine = self.project.machine
        self.project.machine = Machine(machine.fs, self.clock, machine.env)

    def later(self, days: float) -> None:
        self.clock.at = days_later(self.clock.at, days)

    def sleep(self, *phases: int, dry_run: bool = False, force: bool = False) -> CycleReport:
        workspace = self.project.workspace()
        _, choice, _ = branches.open_branch(workspace, None)
        options = SleepOptions(phases, dry_run, force)
        return run(workspace, choice.branch, AUTHOR, options, follows_head=choice.follows_head)

    def done(self, phase: int, **options: bool) -> dict[str, int]:
        """Run one phase and return what it counts."""
        [done] = self.sleep(phase, **options).phases
        return done.done

    def left(self, phase: int) -> dict[str, int]:
        [done] = self.sleep(phase, dry_run=True).phases
        return done.left

    def memory(self) -> Memory:
        workspace = self.project.workspace()
        view = self.project.view()
        return Memory(view, view.schema(workspace.schema), workspace.config.sleep, self.clock.at)

    def work(self, kind: str = "", **options: Any) -> worklist.WorklistPage:
        return worklist.page(self.memory(), "main", worklist.WorklistQuery(kind, **options))

    def answer(self, item: worklist.WorkItem, which: int, given: Mapping[str, Any] | None = None) -> None:
        """Send one of the answers of an item, with what it leaves open."""
        chosen = item.answers[which]
        for command in chosen.commands:
            self(command, {**chosen.parameters, **(given or {})})

    def domains(self, key: str) -> set[str]:
        return {link.to_id for link in self.project.view().touching([key]) if link.type == "belongs_to_domain"}

    def confidence(self, from_id: str, predicate: str, to_id: str) -> float:
        found = self.project.link(from_id, predicate, to_id).fields["confidence"]
        assert isinstance(found, float)
        return found
