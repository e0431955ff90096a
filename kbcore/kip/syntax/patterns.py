"""The parts of WHERE: nodes, links, conditions and groups of them. Pure data."""

from __future__ import annotations

from typing import Literal

import msgspec

from kbcore.kip.syntax.values import Count, JsonValue, Text

AggregateName = Literal["COUNT", "SUM", "AVG", "MIN", "MAX"]
Operator = Literal["==", "!=", "<", "<=", ">", ">="]
TextTestName = Literal["CONTAINS", "STARTS_WITH", "ENDS_WITH", "REGEX"]


class Variable(msgspec.Struct, frozen=True, tag_field="node"):
    """A variable or a handle, without its question mark."""

    name: str
    at: int = 0


class Path(msgspec.Struct, frozen=True, tag_field="node"):
    """A variable and the way into what it holds: ``?n.attributes.tier`` has the parts attributes and tier."""

    variable: str
    parts: tuple[str, ...] = ()
    at: int = 0


class Aggregate(msgspec.Struct, frozen=True, tag_field="node"):
    """COUNT, SUM, AVG, MIN or MAX of a path."""

    function: AggregateName
    path: Path
    distinct: bool = False
    at: int = 0


class Matcher(msgspec.Struct, frozen=True, tag_field="node"):
    """The key of a concept: its id alone, or its type, its name, or both. In a write: its id, or both."""

    id: Text | None = None
    type: Text | None = None
    name: Text | None = None
    at: int = 0


class LinkId(msgspec.Struct, frozen=True, tag_field="node"):
    """A link that is known by its id: ``(id: "…")``."""

    id: Text
    at: int = 0


class PredicateNames(msgspec.Struct, frozen=True, tag_field="node"):
    """A predicate by name; several names are alternatives."""

    names: tuple[Text, ...]
    at: int = 0


class Hops(msgspec.Struct, frozen=True, tag_field="node"):
    """A path of links of one predicate; ``most`` is None where it is open, and equals ``least`` in ``{n}``."""

    name: Text
    least: Count
    most: Count | None
    at: int = 0


class Triple(msgspec.Struct, frozen=True, tag_field="node"):
    """A pattern of links, as a clause or as the end of another one."""

    subject: Term
    predicate: Predicate
    object: Term
    at: int = 0


class ConceptPattern(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause that binds a variable to concepts."""

    variable: Variable
    matcher: Matcher
    at: int = 0


class LinkPattern(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause that matches links, and binds them to a variable if there is one."""

    variable: Variable | None
    triple: Triple | LinkId
    at: int = 0


class Comparison(msgspec.Struct, frozen=True, tag_field="node"):
    """Two operands compared."""

    operator: Operator
    left: Operand
    right: Operand
    at: int = 0


class Now(msgspec.Struct, frozen=True, tag_field="node"):
    """NOW(): the time at which the command is carried out, moved by a duration such as "-7d" if one is given."""

    offset: Text | None = None
    at: int = 0


class TextTest(msgspec.Struct, frozen=True, tag_field="node"):
    """CONTAINS, STARTS_WITH, ENDS_WITH or REGEX of a text and what is looked for in it; CONTAINS takes lists too."""

    function: TextTestName
    text: Operand
    pattern: Operand
    at: int = 0


class IsIn(msgspec.Struct, frozen=True, tag_field="node"):
    """IN: an operand is one of a list of scalars."""

    operand: Operand
    values: JsonValue
    at: int = 0


class IsNull(msgspec.Struct, frozen=True, tag_field="node"):
    """IS_NULL, or IS_NOT_NULL where ``negated``."""

    operand: Operand
    negated: bool = False
    at: int = 0


class Negation(msgspec.Struct, frozen=True, tag_field="node"):
    """``!`` in front of a condition."""

    condition: Condition
    at: int = 0


class AllOf(msgspec.Struct, frozen=True, tag_field="node"):
    """Conditions joined by ``&&``; two at least."""

    conditions: tuple[Condition, ...]
    at: int = 0


class AnyOf(msgspec.Struct, frozen=True, tag_field="node"):
    """Conditions joined by ``||``; two at least."""

    conditions: tuple[Condition, ...]
    at: int = 0


class FilterClause(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause that keeps the rows for which a condition holds."""

    condition: Condition
    at: int = 0


class ClauseGroup(msgspec.Struct, frozen=True, tag_field="node"):
    """The clauses between two braces; one at least."""

    clauses: tuple[Clause, ...]
    at: int = 0


class Not(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause that drops the rows for which the group has a solution."""

    group: ClauseGroup
    at: int = 0


class Optional(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause whose variables are null where the group has no solution."""

    group: ClauseGroup
    at: int = 0


class Union(msgspec.Struct, frozen=True, tag_field="node"):
    """A clause that adds the rows of the group."""

    group: ClauseGroup
    at: int = 0


Expression = Path | Aggregate
Operand = Path | JsonValue | Now
Term = Variable | Matcher | Triple | LinkId
Predicate = Variable | PredicateNames | Hops
Condition = Comparison | TextTest | IsIn | IsNull | Negation | AllOf | AnyOf
Clause = ConceptPattern | LinkPattern | FilterClause | Not | Optional | Union
