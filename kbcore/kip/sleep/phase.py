"""A phase of the cycle: what it is called, and what it comes to on a memory. Plain data.

A phase decides on the very view that its changeset is planned on, and writes at most one changeset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kbcore import limits
from kbcore.kip.kml.command_drafts import CommandDrafts
from kbcore.kip.kml.drafts import LinkDraft, NodeDraft
from kbcore.kip.sleep.memory import Memory
from kbcore.model.record import SLEEP


class PhaseResult(msgspec.Struct):
    """The plan of a phase: the drafts of what it writes, what it removes, and its messages.

    ``done`` counts what it does, by what that is; ``left`` counts what it leaves alone, by why; ``issues`` are
    sentences for a person.
    """

    work: CommandDrafts
    done: dict[str, int] = {}
    left: dict[str, int] = {}
    issues: list[str] = []
    concepts: tuple[NodeDraft, ...] = ()
    propositions: tuple[LinkDraft, ...] = ()
    items: int = 0
    """Elements that the phase names; beyond ``limits.MAX_SLEEP_ITEMS`` it leaves what is left to the next cycle."""

    @property
    def room(self) -> int:
        """Return how many more elements the phase may name."""
        return limits.MAX_SLEEP_ITEMS - self.items

    def count(self, what: str, number: int = 1) -> None:
        """Count what is done."""
        if number:
            self.done[what] = self.done.get(what, 0) + number

    def leave(self, why: str, number: int = 1) -> None:
        """Count what is left alone."""
        if number:
            self.left[why] = self.left.get(why, 0) + number


LATER = "left to the next cycle"


class Phase(msgspec.Struct, frozen=True):
    """One phase: its number, its name, and what it does in a few words. ``plan`` is None for one that only looks."""

    number: int
    name: str
    does: str
    plan: Callable[[Memory], PhaseResult] | None = None

    @property
    def source(self) -> str:
        """Return the source of its record."""
        return f"{SLEEP}{self.number}"

    @property
    def message(self) -> str:
        """Return the message of its record."""
        return f"sleep {self.number} {self.name}: {self.does}"


class PhaseDone(msgspec.Struct, frozen=True):
    """The result of a phase: the seq of its record (0 where it wrote none), and its counts."""

    phase: int
    name: str
    seq: int
    done: dict[str, Any]
    left: dict[str, Any]
    issues: tuple[str, ...]
