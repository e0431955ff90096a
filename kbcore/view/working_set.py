"""Plan on a working set of a view as if on the whole state: what the operations need is read first.

A planner names what it reads beforehand, and cannot know all that it will need. What is not in the working set counts
as absent, which is true of nothing that was not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

import msgspec

from kbcore.model.read_set import ReadSet, needs
from kbcore.model.record import Operation
from kbcore.model.state import State
from kbcore.view.view import View


class Plan(Protocol):
    """Whatever a planner comes to, operations at least."""

    @property
    def ops(self) -> Sequence[Operation]:
        """The operations, in order."""


P = TypeVar("P", bound=Plan)


def plan_until_stable(view: View, wanted: ReadSet, plan: Callable[[State], P]) -> tuple[P, State]:
    """Return what ``plan`` comes to on a working set that holds ``wanted`` and all that its operations meet.

    ``plan`` may change the state, and is called again, on another one, when its operations meet an element that was not
    in it, such as an edge that another source states already. The state is returned as the last call left it, and
    ``loaded`` of it says what was looked at. Raises: what ``plan`` raises.
    """
    while True:
        state = _gather(view, wanted)
        planned = plan(state)
        lacking = needs(planned.ops) - state.loaded
        met = _gather(view, lacking)
        if not (met.nodes or met.links or met.sources):
            state.loaded = msgspec.structs.replace(state.loaded | lacking, enough_for=planned.ops)
            return planned, state
        wanted |= lacking


def _gather(view: View, wanted: ReadSet) -> State:
    """Return what a view has of this; one of an empty branch has nothing, and need not be asked for each element."""
    if view.seq:
        return view.gather(wanted)
    state = State()
    typed = wanted.typed.keys()
    state.loaded = ReadSet(wanted.nodes | typed, wanted.links, wanted.touching | typed, wanted.sources)
    return state
