"""A relation as it is being written: sources joined in order, conditions, and a column for each variable. Pure.

A column refers only to sources that are already there, so that a source may be joined after them.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbcore.kip.sql.statement import SqlStatement

NOTHING = "(select 1)"


class Bound:
    """The column of a variable: what it is in SQL, what it means, and the sources that have the element.

    ``kind`` is ``node``, ``link``, ``end`` (either) or ``name`` (of a predicate). ``is_open``: it may be null.
    ``is_virtual``: the element may be one of the vocabulary that is not stored. ``home`` is the relation that can
    join more to it. ``pattern`` is what the element is known to match: its type and name, "" where they are open.
    ``ids`` are those that it may have, None where that is open.
    """

    def __init__(
        self, sql: str, kind: str, home: SqlRelation, *, is_open: bool = False, is_virtual: bool = False
    ) -> None:
        self.sql = sql
        self.kind = kind
        self.home = home
        self.is_open = is_open
        self.is_virtual = is_virtual
        self.node = ""
        self.link = ""
        self.pattern = "", ""
        self.ids: tuple[str, ...] | None = None

    def with_ids(self, ids: tuple[str, ...] | None) -> Bound:
        """Return the column itself, with the ids that it may have."""
        self.ids = ids
        return self

    def as_found(self, node: str, link: str, pattern: tuple[str, str] = ("", "")) -> Bound:
        """Return the column itself, with what more is known: the sources that hold its element, and its pattern."""
        self.node, self.link, self.pattern = node or self.node, link or self.link, pattern
        return self


class SqlRelation:
    """Sources, conditions and columns; ``keys`` say what determines what."""

    def __init__(self, columns: dict[str, Bound] | None = None) -> None:
        self.columns: dict[str, Bound] = columns or {}
        self.sources: list[tuple[str, str]] = []
        self.conditions: list[str] = []
        self._stored: dict[str, tuple[int, str]] = {}
        self.implied: list[tuple[str, str]] = []
        """Pairs of columns, the first of which determines the second."""
        self.rows: list[tuple[str, tuple[tuple[str, ...], ...]]] = []
        """For each source its name, and the sets of columns that each determine its row."""

    def join(self, table: str, alias: str, *keys: tuple[str, ...], stored: str = "") -> None:
        """Add a source to all combinations; each of ``keys`` are columns that determine its row.

        ``stored`` is the same without the vocabulary, for when it turns out that what is looked for is stored.
        """
        if stored and stored != table:
            self._stored[alias] = len(self.sources), stored
        self.sources.append(("cross join" if self.sources else "", f"{table} {alias}"))
        self.rows.append((alias, keys))

    def left_join(self, table: str, alias: str, on: str) -> None:
        """Add the row of a source for which a condition holds, at most one, or nulls."""
        if not self.sources:
            self.sources.append(("", f"{NOTHING} {alias}0"))
        self.sources.append(("left join", f"{table} {alias} on ({on})"))

    def left_join_all(self, other: SqlRelation) -> None:
        """Add the rows of another relation for which its conditions hold, or nulls."""
        if not self.sources:
            self.sources.append(("", f"{NOTHING} {other.rows[0][0]}0"))
        table = other.from_()
        joined = f"({table})" if len(other.sources) > 1 else table
        self.sources.append(("left join", f"{joined} on ({' and '.join(other.conditions) or 'true'})"))
        self.rows += other.rows
        inner = {alias for alias, _ in other.rows}
        self.implied += [(one, two) for one, two in other.implied if two.partition(".")[0] in inner]

    def where(self, condition: str) -> None:
        """Keep the rows for which a condition is true."""
        self.conditions.append(condition)

    def equate(self, one: str, other: str) -> None:
        """Keep the rows in which two columns are equal, neither being null."""
        self.conditions.append(f"{one} = {other}")
        self.implied += [(one, other), (other, one)]

    def from_(self) -> str:
        """Return the clause after FROM."""
        return " ".join(f"{how} {what}".strip() for how, what in self.sources) or f"{NOTHING} only_one"

    def select(self, what: str) -> str:
        """Return a SELECT of the relation."""
        where = f" where {' and '.join(self.conditions)}" if self.conditions else ""
        return f"select {what} from {self.from_()}{where}"  # noqa: S608 - made from fixed names and placeholders

    def is_determined_by(self, columns: Iterable[str]) -> bool:
        """Return whether no two rows have the same values in these columns."""
        known = set(columns)
        left = dict(self.rows)
        while True:
            more = {two for one, two in self.implied if one in known} - known
            found = [alias for alias, keys in left.items() if any(known.issuperset(key) for key in keys)]
            if not (found or more):
                return not left
            known |= more
            for alias in found:
                known |= {f"{alias}.{name}" for name in ("id", "from_id", "to_id", "type")}
                del left[alias]

    def bind(self, variable: str, found: Bound) -> None:
        """Join a column to a variable: an open one takes the value, another one must have it."""
        old = self.columns.get(variable)
        if old is None:
            self.columns[variable] = found
        elif not (old.is_open or found.is_open):
            self.equate(found.sql, old.sql)
            # What is joined to the rows around this relation must keep all of them.
            is_own = old.home is self
            kind = _narrower(old.kind, found.kind) if is_own or found.node or found.link else old.kind
            is_virtual = old.is_virtual and found.is_virtual
            both = Bound(old.sql, kind, old.home, is_virtual=is_virtual if is_own else old.is_virtual)
            pattern = found.pattern[0] or old.pattern[0], found.pattern[1] or old.pattern[1]
            both.ids = old.ids if found.ids is None else found.ids
            self.columns[variable] = both.as_found(found.node or old.node, found.link or old.link, pattern)
            if not is_virtual:
                self._read_stored(old.node, old.link)
        else:
            parts = [f"{one.sql} is null" for one in (old, found) if one.is_open]
            self.where(f"({' or '.join(parts)} or {found.sql} = {old.sql})")
            kind = found.kind if not found.is_open or old.kind == found.kind else wider(old.kind, found.kind)
            is_open, is_virtual = old.is_open and found.is_open, old.is_virtual or found.is_virtual
            sql = f"coalesce({found.sql}, {old.sql})" if found.is_open else found.sql
            new = Bound(sql, kind, self, is_open=is_open, is_virtual=is_virtual)
            self.columns[variable] = new if found.is_open else new.as_found(found.node, found.link, found.pattern)

    def _read_stored(self, *aliases: str) -> None:
        """Leave the vocabulary out of sources of which only what is stored can match."""
        for alias in aliases:
            if alias in self._stored:
                at, stored = self._stored.pop(alias)
                self.sources[at] = self.sources[at][0], f"{stored} {alias}"


def closed(
    st: SqlStatement, relation: SqlRelation, *, keep: Iterable[str] = (), is_distinct: bool = False
) -> tuple[str, SqlRelation]:
    """Put a relation into WITH and return its name and a relation that reads it.

    It holds the variables that the text names, and those of ``keep``.
    """
    kept = {name: one for name, one in relation.columns.items() if name[0] != "#" or name in keep}
    columns = [f"c{at}" for at in range(len(kept))] or ["nothing"]
    listed = ", ".join(one.sql for one in kept.values()) or "1"
    cte = st.define("r", columns, relation.select(f"distinct {listed}" if is_distinct else listed))
    return cte, read(st, cte, kept, is_distinct=is_distinct)


def read(st: SqlStatement, cte: str, kept: dict[str, Bound], *, is_distinct: bool) -> SqlRelation:
    """Return a relation over one in WITH whose columns ``c0``, ``c1``, … are these variables."""
    alias = st.fresh("x")
    found = SqlRelation()
    every = tuple(f"{alias}.c{at}" for at in range(len(kept)))
    found.join(cte, alias, *([every] if is_distinct else []))
    for sql, (name, one) in zip(every, kept.items(), strict=True):
        column = Bound(sql, one.kind, found, is_open=one.is_open, is_virtual=one.is_virtual)
        found.columns[name] = column.as_found("", "", one.pattern).with_ids(one.ids)
    return found


def wider(one: str, other: str) -> str:
    """Return the kind that includes both of two kinds."""
    return one if one == other else "end"


def _narrower(one: str, other: str) -> str:
    return other if one == "end" else one
