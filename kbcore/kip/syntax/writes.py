"""The parts of UPSERT and UPDATE: blocks, links and calculations. Pure data."""

from __future__ import annotations

from typing import Literal

import msgspec

from kbcore.kip.syntax.patterns import ClauseGroup, LinkId, Matcher, Path, Variable
from kbcore.kip.syntax.values import Count, JsonValue, Object, Text

CalculationName = Literal["ADD", "MUL", "COALESCE", "CLAMP"]


class WrittenLink(msgspec.Struct, frozen=True, tag_field="node", tag="Fact"):
    """One link to be written or pointed at: its two ends and its predicate.

    The tag is in the digests of commands that records have (``digest_of``): like the names of the other nodes it stays.
    """

    subject: Target
    predicate: Text
    object: Target
    at: int = 0


class SetProposition(msgspec.Struct, frozen=True, tag_field="node"):
    """One link of SET PROPOSITIONS, which begins at the concept of its block."""

    predicate: Text
    target: Target
    metadata: Object | None = None
    at: int = 0


class ConceptBlock(msgspec.Struct, frozen=True, tag_field="node"):
    """A block of UPSERT that finds or makes a concept. ``identity`` has an id, or type and name."""

    handle: Variable | None
    identity: Matcher
    expected_version: Count | None = None
    attributes: Object | None = None
    links: tuple[SetProposition, ...] = ()
    metadata: Object | None = None
    at: int = 0


class Proposition(msgspec.Struct, frozen=True, tag_field="node"):
    """A block of UPSERT that finds or makes a link."""

    handle: Variable | None
    fact: WrittenLink | LinkId
    expected_version: Count | None = None
    attributes: Object | None = None
    metadata: Object | None = None
    at: int = 0


class Upsert(msgspec.Struct, frozen=True, tag_field="node"):
    """One UPSERT. With ``where`` its blocks are applied once for each row found, whose variables may be targets."""

    blocks: tuple[ConceptBlock | Proposition, ...]
    where: ClauseGroup | None = None
    metadata: Object | None = None
    at: int = 0


class Calculation(msgspec.Struct, frozen=True, tag_field="node"):
    """ADD, MUL and COALESCE of two, CLAMP of three: numbers, paths on the target, or calculations."""

    function: CalculationName
    arguments: tuple[JsonValue | Path | Calculation, ...]
    at: int = 0


class AttributeChange(msgspec.Struct, frozen=True, tag_field="node"):
    """A key of UPDATE and what it becomes."""

    key: str
    value: JsonValue | Path | Calculation
    at: int = 0


class Assignments(msgspec.Struct, frozen=True, tag_field="node"):
    """The map after a SET of UPDATE; each key is there once."""

    assignments: tuple[AttributeChange, ...]
    at: int = 0
    parameter: str = ""


Target = Variable | Matcher | WrittenLink | LinkId
Block = ConceptBlock | Proposition
