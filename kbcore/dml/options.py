"""The options of a run beside its program. Plain data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kbcore.dml.budget import Budget
from kbcore.dml.model import Model
from kbcore.dml.tools import Toolset

OnInput = Callable[[str], str | Awaitable[str]]
"""Takes a prompt and returns what the user says to it."""


class Options(msgspec.Struct, frozen=True):
    """The arguments of ``run_dml``, which explains them, but the program."""

    params: Mapping[str, Any]
    args: Sequence[Any]
    model: Model | None
    tools: Toolset
    workspace: Path | None
    on_input: OnInput | None
    budget: Budget
    channels: frozenset[str]
    """The types of ``events.CHANNELS`` that are sent."""
    file: str
    env: Mapping[str, str]
