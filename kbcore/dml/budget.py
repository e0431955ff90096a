"""The budgets of a run, and what it has used of them."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from kbcore.dml.model import Usage
from kbcore.errors import ResourceLimit

TASK_ROUNDS: Final = 50


class Budget(msgspec.Struct, frozen=True):
    """The most that a run may use. One that is exceeded ends the run; a task that has used its rounds fails."""

    gas: int = 1_000_000_000
    """Steps of the program: inferences of Prolog."""
    timeout_s: float = 3_600.0
    """Wall clock of the whole run, waiting for models and people included."""
    rounds: int = 1_000
    """Turns of the model in all tasks."""
    task_rounds: int = TASK_ROUNDS
    """Turns of the model in one task."""
    tokens: int | None = None
    cost_usd: float | None = None
    """Holds only for models whose price is known."""


class Spent:
    """The use of each budget so far."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.usage = Usage()
        self.rounds = 0
        self.inferences = 0
        """Steps up to the last request of the program, or to its end."""

    def add_round(self) -> None:
        """Count a turn that is about to be asked for. Raises: ``BudgetExceeded``."""
        if self.rounds >= self._budget.rounds:
            raise BudgetExceeded("rounds", f"{self._budget.rounds:,} turns of the model")
        self.rounds += 1

    def add_usage(self, usage: Usage) -> None:
        """Count what a turn has used. Raises: ``BudgetExceeded``."""
        self.usage += usage
        budget = self._budget
        if budget.tokens is not None and self.usage.tokens > budget.tokens:
            raise BudgetExceeded("tokens", f"{budget.tokens:,} tokens")
        if budget.cost_usd is not None and (self.usage.cost_usd or 0.0) > budget.cost_usd:
            raise BudgetExceeded("cost_usd", f"{budget.cost_usd:g} US dollars")

    def steps_exceeded(self) -> BudgetExceeded:
        """Return the error for a program that has taken more steps than it may."""
        return BudgetExceeded("gas", f"{self._budget.gas:,} steps")

    def as_json(self) -> dict[str, Any]:
        """Return it as the last event of a run shows it."""
        used: dict[str, Any] = {
            "rounds": self.rounds,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
            "inferences": self.inferences,
        }
        return used | ({} if self.usage.cost_usd is None else {"cost_usd": self.usage.cost_usd})


class BudgetExceeded(Exception):
    """A budget is used up: the run ends. ``name`` is that of the field of ``Budget``."""

    def __init__(self, name: str, most: str) -> None:
        super().__init__(name)
        self.name = name
        self.most = most

    def as_error(self, spent: Spent) -> ResourceLimit:
        """Return the error that a user sees, with what was used."""
        option = self.name.partition("_")[0]
        hint = (
            f"Give it more (`--{option}`, in Python `{self.name}` of `Budget`), or look with `--trace` at what it does."
        )
        data = {"budget": self.name, "spent": spent.as_json()}
        return ResourceLimit(f"The run has used its budget of {self.most}.", hint=hint, data=data)
