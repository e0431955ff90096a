"""The commands of KIP. Pure data."""

from __future__ import annotations

from typing import Literal

import msgspec

from kbcore.kip.syntax.patterns import Aggregate, ClauseGroup, Matcher, Path, Variable
from kbcore.kip.syntax.values import Count, JsonValue, Text
from kbcore.kip.syntax.writes import Assignments, Upsert

Kind = Literal["CONCEPT", "PROPOSITION"]


class Sort(msgspec.Struct, frozen=True, tag_field="node"):
    """One key of ORDER BY."""

    key: Path | Aggregate
    descending: bool = False
    at: int = 0


class FindCommand(msgspec.Struct, frozen=True, tag_field="node"):
    """FIND."""

    find: tuple[Path | Aggregate, ...]
    where: ClauseGroup
    order: tuple[Sort, ...] = ()
    limit: Count | None = None
    cursor: Text | None = None
    at: int = 0
    when: JsonValue | None = None
    """The seq or the time as of which it is answered; None for now."""


class Upserts(msgspec.Struct, frozen=True, tag_field="node"):
    """A command of one UPSERT or several in a row; handles live in one UPSERT."""

    upserts: tuple[Upsert, ...]
    at: int = 0


class DeleteConcepts(msgspec.Struct, frozen=True, tag_field="node"):
    """DELETE CONCEPT … DETACH."""

    variable: Variable
    where: ClauseGroup
    at: int = 0


class DeletePropositions(msgspec.Struct, frozen=True, tag_field="node"):
    """DELETE PROPOSITIONS."""

    variable: Variable
    where: ClauseGroup
    at: int = 0


class DeleteKeys(msgspec.Struct, frozen=True, tag_field="node"):
    """DELETE ATTRIBUTES or DELETE METADATA: keys that are dropped from what the variable holds."""

    part: Literal["ATTRIBUTES", "METADATA"]
    keys: tuple[Text, ...]
    variable: Variable
    where: ClauseGroup
    at: int = 0


class Update(msgspec.Struct, frozen=True, tag_field="node"):
    """UPDATE; at least one of the two maps is there. Paths in them begin at ``variable``."""

    variable: Variable
    attributes: Assignments | None
    metadata: Assignments | None
    where: ClauseGroup
    limit: Count | None = None
    at: int = 0


class Merge(msgspec.Struct, frozen=True, tag_field="node"):
    """MERGE CONCEPT source INTO target."""

    source: Variable
    target: Variable
    where: ClauseGroup
    at: int = 0


class DescribePrimer(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE PRIMER."""

    at: int = 0


class DescribeDomains(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE DOMAINS."""

    at: int = 0


class DescribeSyntax(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE SYNTAX."""

    at: int = 0


class DescribeTypes(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE CONCEPT TYPES or DESCRIBE PROPOSITION TYPES: their names."""

    of: Kind
    limit: Count | None = None
    cursor: Text | None = None
    at: int = 0


class DescribeType(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE CONCEPT TYPE or DESCRIBE PROPOSITION TYPE: one definition."""

    of: Kind
    name: Text
    at: int = 0


class SearchCommand(msgspec.Struct, frozen=True, tag_field="node"):
    """SEARCH. ``threshold`` holds a number; ``is_whole`` asks for the elements with all their attributes."""

    of: Kind
    term: Text
    type: Text | None = None
    is_whole: bool = False
    mode: Text | None = None
    threshold: JsonValue | None = None
    limit: Count | None = None
    cursor: Text | None = None
    at: int = 0


class ExportCommand(msgspec.Struct, frozen=True, tag_field="node"):
    """EXPORT."""

    variable: Variable
    where: ClauseGroup
    limit: Count | None = None
    cursor: Text | None = None
    at: int = 0


Delete = DeleteConcepts | DeletePropositions | DeleteKeys


class DescribeNeighbourhood(msgspec.Struct, frozen=True, tag_field="node"):
    """DESCRIBE NEIGHBOURHOOD: a concept and its links in both directions, within a number of characters."""

    of: Matcher
    limit: Count | None = None
    budget: Count | None = None
    at: int = 0


Describe = DescribePrimer | DescribeDomains | DescribeSyntax | DescribeTypes | DescribeType | DescribeNeighbourhood
Command = FindCommand | Upserts | Delete | Update | Merge | Describe | SearchCommand | ExportCommand
