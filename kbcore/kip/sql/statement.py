"""One statement as it is being written: its parameters, the tables as of its seq, and its WITH clause. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from kbcore.kip.algebra import MatchNode
from kbcore.kip.names import TypeNames
from kbcore.model.schema import LINK, Schema
from kbcore.view import tables

NODES: Final = "kip_node"
LINKS: Final = "kip_link"
"""The tables of the connection that hold the vocabulary. Their columns are those of ``tables.NODE`` and ``LINK``, and
``is_hidden``: whether the element is stored now."""

_INDEXED_KEYS: Final = 48
"""The most constants looked up in an index at once; for many more, DuckDB reads the whole table."""
MOST_KEYS: Final = 8 * _INDEXED_KEYS
"""The most ids looked up one by one; for more, reading the whole table takes no longer."""

_PLACE: Final = re.compile(r"\$([0-9]+)")


class CompileContext(msgspec.Struct, frozen=True):
    """The parts of a schema and its vocabulary that compiling needs.

    ``nodes`` are id, type and name of the vocabulary's nodes, in any combination of which parts may be None; ``links``
    the ids of its links.
    """

    schema: Schema
    names: TypeNames
    nodes: frozenset[tuple[str | None, str | None, str | None]]
    links: frozenset[str]


class SqlStatement:
    """The parameters of one statement, numbered as they are bound, and the tables that it reads."""

    def __init__(self, known: CompileContext, at: int | None = None, *, now: str = "") -> None:
        """``at`` is the seq that is asked for, None for the head; ``now`` is the time that NOW() means."""
        self.known = known
        self.now = now
        self._params: list[Any] = []
        self._bound: dict[tuple[type, Any], str] = {}
        self._ctes: list[str] = []
        self._numbers = 0
        self._among: dict[tuple[str, tuple[str, ...]], str] = {}
        self._at = None if at is None else self.bind(at)

    def bind(self, value: Any) -> str:
        """Return the placeholder of a scalar, or of a tuple of texts as a list."""
        key = (type(value), value)
        if key not in self._bound:
            self._params.append(list(value) if isinstance(value, tuple) else value)
            kind = "::varchar[]" if isinstance(value, tuple) else ""
            self._bound[key] = f"${len(self._params)}{kind}"
        return self._bound[key]

    def fresh(self, letter: str) -> str:
        """Return a new name."""
        self._numbers += 1
        return f"{letter}{self._numbers}"

    def define(self, letter: str, columns: Sequence[str], body: str | Callable[[str], str]) -> str:
        """Put a relation into WITH and return its name; ``body`` may be made from that name, if it is recursive."""
        name = self.fresh(letter)
        made = body if isinstance(body, str) else body(name)
        self._ctes.append(f"{name}({', '.join(columns)}) as ({made})")
        return name

    def whole(self, select: str) -> tuple[str, list[Any]]:
        """Return the whole statement and its parameters: those that it still uses, renumbered."""
        text = f"with recursive {', '.join(self._ctes)} {select}" if self._ctes else select
        numbers: dict[str, int] = {}
        made = _PLACE.sub(lambda found: f"${numbers.setdefault(found[1], len(numbers) + 1)}", text)
        return made, [self._params[int(number) - 1] for number in numbers]

    def nodes(self, *, with_vocabulary: bool) -> str:
        """Return the relation of nodes, for use after FROM."""
        return self._table("node", tables.NODE, NODES if with_vocabulary else "")

    def links(self, *, with_vocabulary: bool) -> str:
        """Return the relation of links, for use after FROM; not all of them are resolved."""
        return self._table("link", tables.LINK, LINKS if with_vocabulary else "")

    def _table(self, name: str, columns: tables.Columns, vocabulary: str) -> str:
        listed = ", ".join(columns)
        parts = [f"select {listed} from {name}"]  # noqa: S608 - fixed names
        if self._at is not None:
            parts = [
                f"select {listed} from {name} where version <= {self._at}",  # noqa: S608 - fixed names
                f"select {listed} from {name}_history where version <= {self._at} and ended > {self._at}",  # noqa: S608
            ]
        if vocabulary:
            stored = " union all ".join(part.replace(listed, "id", 1) for part in parts)
            hidden = "is_hidden" if self._at is None else f"id in ({stored})"
            parts.append(f"select {listed} from {vocabulary} where not {hidden}")  # noqa: S608 - fixed names
        is_plain = self._at is None and not vocabulary
        return name if is_plain else f"({' union all '.join(parts)})"

    def among(self, table: str, ids: Sequence[str]) -> str:
        """Return the elements of a relation that have one of these ids, as a relation in WITH.

        There the look-up is a statement of its own: an index serves a condition on one column with a few constants,
        and no other condition.
        """
        key = (table, tuple(ids))
        if key not in self._among:
            self._among[key] = self.fresh("k")
            parts = " union all ".join(self.looked_up(table, "id", ids, "*"))
            self._ctes.append(f"{self._among[key]} as materialized ({parts})")
        return self._among[key]

    def constants(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
        """Return a relation of constant texts, for use after FROM; they are bound column by column, as lists."""
        lists = (self.bind(tuple(row[at] for row in rows)) for at in range(len(columns)))
        listed = ", ".join(f"unnest({of}) as {name}" for of, name in zip(lists, columns, strict=True))
        return f"(select {listed})"

    def looked_up(self, table: str, column: str, ids: Sequence[str], columns: str) -> list[str]:
        """Return SELECTs of some columns of the rows of a relation in which a column has one of these values."""
        lists = [ids[at : at + _INDEXED_KEYS] for at in range(0, len(ids), _INDEXED_KEYS)]
        wanted = [f"t.{column} in ({', '.join(map(self.bind, some))})" for some in lists] or ["false"]
        return [f"select {columns} from {table} t where {one}" for one in wanted]  # noqa: S608 - fixed names

    def may_be_virtual(self, step: MatchNode) -> bool:
        """Return whether the vocabulary has a node of this id, type and name, as far as they are given."""
        return (step.id, step.type, step.name) in self.known.nodes

    def end_kinds(self, predicates: Sequence[str]) -> tuple[str, str]:
        """Return the kinds of the two ends of links of these predicates: ``node``, or ``end`` for links as well."""
        edges = [self.known.schema.edges[name] for name in predicates]
        sides = ([edge.from_types for edge in edges], [edge.to_types for edge in edges])
        first, second = ("end" if not edges or any(LINK in types for types in side) else "node" for side in sides)
        return first, second

    def has_kinds(self, predicates: Sequence[str]) -> bool:
        """Return whether there may be several links between two elements that match."""
        return len(predicates) != 1 or self.known.schema.edges[predicates[0]].needs_kind
