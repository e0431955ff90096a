"""Which attributes and metadata the data of a branch has: asked only for a name that the schema does not know."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from kbcore.model import OBJECT_FIELDS

Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Answers one statement: SQL and its parameters."""

_MAX_NAMES: Final = 1000


class Known:
    """The names that entities, or edges, have or once had, by the full name of a field such as ``attributes.kind``."""

    def __init__(self, rows: Rows, *, is_edge: bool) -> None:
        self._rows = rows
        self._tables = ("link", "link_history") if is_edge else ("node", "node_history")

    def is_empty(self) -> bool:
        """Tell whether there is nothing yet that could have a name."""
        return not any(self._rows(f"select 1 from {table} limit 1", []) for table in self._tables)  # noqa: S608 - fixed

    def has(self, field: str) -> bool:
        """Tell whether any element has this attribute or member of ``metadata``, or once had it."""
        column, _, member = field.partition(".")
        return any(
            self._rows(f"select 1 from {table} where json_exists({column}, ?) limit 1", [pointer(member)])  # noqa: S608
            for table in self._tables
        )

    def names(self) -> list[str]:
        """Return the full names that there are now, in order, to find the nearest one."""
        found: set[str] = set()
        for column in OBJECT_FIELDS:
            rows = self._rows(
                f"select distinct unnest(json_keys({column})) as name from {self._tables[0]} "  # noqa: S608 - fixed
                f"order by name limit {_MAX_NAMES}",
                [],
            )
            found.update(f"{column}.{name}" for (name,) in rows)
        return sorted(found)


def pointer(member: str) -> str:
    """Return the JSON pointer of a member, RFC 6901."""
    return "/" + member.replace("~", "~0").replace("/", "~1")
