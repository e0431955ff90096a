"""The context of one phase: a view, the schema of its branch, the settings, and the instant of the cycle.

The memory is what agents wrote as concepts: entities of types that KIP brought, and edges of predicates that it
brought. KB's own types and the project's are not part of it, definitions and the core vocabulary are protected, and
what a file states is only counted.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from kbcore.clock import text_of
from kbcore.config.settings import KipLimits
from kbcore.config.sleep import SleepSettings
from kbcore.kip.kml.command_drafts import CommandDrafts
from kbcore.model.concepts import DEFINING, ORIGIN, VOCABULARY, concept_id
from kbcore.model.schema import Schema
from kbcore.view.view import View

PROTECTED: Final = tuple(sorted(concept_id(kind, name) for kind, name in VOCABULARY))
"""The ids of what every store knows."""

_WITH: Final = """with mine as (
  select * from node
  where type in (select unnest($1::varchar[])) and id not in (select unnest($2::varchar[])) and contested = '{}'
), member as (
  select id, from_id, to_id, files from link where is_resolved and type = 'belongs_to_domain'
)
"""
"""``mine`` are the concepts of the memory, ``member`` says which domains anything belongs to.

A concept of which something is contested waits for a decision, and is left alone.
"""


class Memory:
    """A memory at one seq. ``now`` is the instant of the cycle, the same for all its phases."""

    def __init__(self, view: View, schema: Schema, settings: SleepSettings, now: str) -> None:
        self.view = view
        self.schema = schema
        self.settings = settings
        self.now = now
        self.types = sorted(
            name for name, one in schema.entities.items() if one.origin == ORIGIN and name not in DEFINING
        )
        self.predicates = sorted(name for name, one in schema.edges.items() if one.origin == ORIGIN)

    def ask(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement over ``mine`` and ``member``; its own parameters begin with ``$3``."""
        return self.view.rows(_WITH + sql, [self.types, PROTECTED, *params])

    def work(self) -> CommandDrafts:
        """Return what the writes of one phase are planned on."""
        return CommandDrafts(self.view, self.schema, KipLimits())

    def ago(self, days: float) -> str:
        """Return the instant so many days before the cycle."""
        return days_later(self.now, -days)


def days_later(instant: str, days: float) -> str:
    """Return an instant so many days later; the first year of the calendar is the earliest."""
    try:
        return text_of(datetime.fromisoformat(instant) + timedelta(days=days))
    except OverflowError:
        return "0001-01-01T00:00:00.000000Z"


def hours_between(earlier: str, later: str) -> float:
    """Return the hours from one instant to another."""
    return (datetime.fromisoformat(later) - datetime.fromisoformat(earlier)).total_seconds() / 3600
