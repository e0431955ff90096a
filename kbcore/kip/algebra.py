"""The algebra that KQL is compiled by way of: what a WHERE does to a set of rows, step by step. Pure data.

Rows map variables to ids of elements, names of predicates, or null. Every end of a link is a variable here, those that
the text does not name are ``#1``, ``#2``, …; types are KB's names, steps are in the order in which they take effect.
A row says nothing about how often it was found: equal rows are one.
"""

from __future__ import annotations

import msgspec

from kbcore.kip.syntax import Condition


class MatchNode(msgspec.Struct, frozen=True):
    """Join with the nodes that have this id, type and name, as far as they are given."""

    variable: str
    id: str | None = None
    type: str | None = None
    name: str | None = None
    ids: tuple[str, ...] | None = None
    """Ids among which all that matches is, as ``narrowing`` found out; None where that is open."""


class MatchLink(msgspec.Struct, frozen=True):
    """Join with the links between two ends, of one of these predicates (none: of any), or with the link of an id."""

    variable: str
    subject: str
    object: str
    predicates: tuple[str, ...] = ()
    predicate: str = ""
    """The variable that takes the predicate's name."""
    id: str | None = None
    rows: tuple[tuple[str, str, str, str], ...] | None = None
    """Id, both ends and predicate of all links that match, as ``narrowing`` found out; None where that is open."""
    ids: tuple[str, ...] | None = None
    subject_ids: tuple[str, ...] | None = None
    object_ids: tuple[str, ...] | None = None
    """Ids among which all links, subjects and objects are that match."""


class WalkJoin(msgspec.Struct, frozen=True):
    """Join with the pairs of elements between which there is a walk of ``least`` to ``most`` links (None: or more)."""

    subject: str
    predicate: str
    object: str
    least: int
    most: int | None
    rows: tuple[tuple[str, str], ...] | None = None
    """The ends of all links that a walk takes, that which it comes from first; None where that is open."""
    subject_ids: tuple[str, ...] | None = None
    object_ids: tuple[str, ...] | None = None


class KeepRows(msgspec.Struct, frozen=True):
    """Keep the rows for which a condition holds."""

    condition: Condition


class Without(msgspec.Struct, frozen=True):
    """Drop the rows for which the steps have a solution; ``shared`` are the variables of the row that they mention."""

    steps: tuple[Step, ...]
    shared: tuple[str, ...]


class Perhaps(msgspec.Struct, frozen=True):
    """Extend each row by the solutions of the steps, and keep it as it is where there are none."""

    steps: tuple[Step, ...]
    shared: tuple[str, ...]


class Also(msgspec.Struct, frozen=True):
    """Add the solutions of the steps; ``is_first`` where they are not added to any rows, but are the first ones."""

    steps: tuple[Step, ...]
    is_first: bool = False


Step = MatchNode | MatchLink | WalkJoin | KeepRows | Without | Perhaps | Also
