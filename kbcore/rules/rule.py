"""What a rule is: a question to the view whose answers are findings. Plain data.

A rule reads and never writes, says the same about the same state, and takes one or two statements however large
the graph is: nothing is asked entity by entity.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from kbcore.schema import Schema

Severity = Literal["error", "warning"]
Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Answers one statement over the tables of the view: SQL and its parameters."""


class RuleContext(msgspec.Struct, frozen=True):
    """What rules look at. With ``ids``, only what concerns one of these is reported."""

    rows: Rows
    schema: Schema
    ids: frozenset[str] | None = None


class Finding(msgspec.Struct, frozen=True):
    """One thing that breaks a rule. ``source`` is the file to edit, "" where no file states it.

    ``concerns`` are further ids for which this is shown when only some were asked for.
    """

    id: str
    message: str
    hint: str = ""
    source: str = ""
    concerns: frozenset[str] = frozenset()


class Rule(msgspec.Struct, frozen=True):
    """A rule: its stable name, its severity where the project says nothing, and how it is run."""

    id: str
    severity: Severity
    description: str
    run: Callable[[RuleContext], list[Finding]]


def first_file(files: Sequence[str] | None) -> str:
    """Return the first of the files that state an edge, "" when only a client does."""
    return min(files) if files else ""


def edge_remedy(edge: tuple[str, str, str], source: str) -> str:
    """Return the end of a sentence that says how an edge (from, type, to) is taken away."""
    from_id, name, to_id = edge
    if source:
        return f"take the link out of {source} and run `kb sync`"
    return f"remove it: kb delete --edge {quoted(from_id)} {name} {quoted(to_id)}"


def quoted(text: str) -> str:
    """Return a text as one word of a shell."""
    import shlex  # noqa: PLC0415 - only violations pay for it

    return shlex.quote(text)
