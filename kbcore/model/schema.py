"""The types of entities and edges: KB's own and the project's. Plain data with look-ups for other modules.

An end of an edge is the name of an entity type, ``any`` (every entity) or ``link`` (another edge).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import product
from typing import Any, Final, Literal

import msgspec

from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import near_ones

ANY: Final = "any"
LINK: Final = "link"
MEMORY: Final = "KIP"
"""The origin of a type or predicate of the memory, in place of a schema file: KIP's, or a branch's."""

MENTIONS: Final = "mentions"
"""The edge that a link in the text of a document is; a predicate of KIP."""

AttributeType = Literal["text", "number", "boolean", "list", "object", "any"]
Impact = Literal["from", "to", "both", "none"]


class Attribute(msgspec.Struct, frozen=True, omit_defaults=True):
    """An attribute that a type declares. ``values`` lists the allowed ones, if only some are.

    ``keys`` are the only members that an object may have; each of them then holds a text that says something.
    """

    type: AttributeType = "any"
    required: bool = False
    values: tuple[str, ...] = ()
    description: str = ""
    keys: tuple[str, ...] = ()


class EntityType(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """A type of entity. ``status_default`` is what a file that states no status gets."""

    name: str
    description: str = ""
    required: tuple[str, ...] = ("title", "status")
    status_default: str = "draft"
    statuses: tuple[str, ...] = ()
    attributes: dict[str, Attribute] = {}
    origin: str = ""
    """The schema file that defines it, or ``MEMORY``; empty for KB's own."""

    @property
    def is_memo(self) -> bool:
        """Return whether it is KB's own type of notes or tasks, and not one that the project defines instead."""
        return self.name in MEMOS and not self.origin

    @cached_property
    def required_fields(self) -> tuple[str, ...]:
        """Return the names of the fields that an entity of this type must have."""
        return (*self.required, *(f"attributes.{name}" for name, one in self.attributes.items() if one.required))


class EdgeType(msgspec.Struct, frozen=True, omit_defaults=True):
    """A type of edge: which entity types may be at its ends, and whether a cycle breaks a rule.

    ``impact`` is the end that is affected when the other one changes.
    """

    name: str
    from_types: tuple[str, ...]
    to_types: tuple[str, ...]
    description: str = ""
    acyclic: bool = False
    needs_kind: bool = False
    impact: Impact = "from"
    origin: str = ""

    @property
    def way(self) -> str:
        """Return in words from what to what it leads; an edge is no entity."""
        return self.way_between(str)

    def way_between(self, called: Callable[[str], str]) -> str:
        """Return the same, each type as ``called`` names it."""
        ends = (self.from_types, self.to_types)
        return " to ".join(" or ".join("any entity" if one == ANY else called(one) for one in types) for types in ends)


class Schema(msgspec.Struct, frozen=True, dict=True):
    """All types in force for one request."""

    entities: dict[str, EntityType]
    edges: dict[str, EdgeType]

    def fits(self, edge: str, from_type: str, to_type: str) -> bool:
        """Tell whether an edge may lead from one type to the other; ``link`` is the type of an edge's end.

        Where a type of the memory is at an end, and no type that the definition of one of KB's own edges names, that
        definition does not apply: the edge is a common word that an agent uses.
        """
        definition = self.edges.get(edge)
        if definition is None:
            return False
        return self.admits(edge, from_type, to_type) or (
            not definition.origin
            and (from_type in self.memory_types or to_type in self.memory_types)
            and not {from_type, to_type} & {*definition.from_types, *definition.to_types, LINK}
        )

    def admits(self, edge: str, from_type: str, to_type: str) -> bool:
        """Tell whether the definition of an edge names both types, or any."""
        definition = self.edges.get(edge)
        return definition is not None and (
            _admits(definition.from_types, from_type) and _admits(definition.to_types, to_type)
        )

    @cached_property
    def memory_types(self) -> frozenset[str]:
        """Return the entity types of the memory."""
        return frozenset(name for name, one in self.entities.items() if one.origin == MEMORY)

    def edges_like(self, name: str, from_type: str, to_type: str) -> tuple[list[str], list[str]]:
        """Return the edge types that are most like a name: those that lead from one type to the other, and back."""
        near = near_ones(name, self.edges)
        ahead = [one for one in near if self.fits(one, from_type, to_type)]
        return ahead, [one for one in near if one not in ahead and self.fits(one, to_type, from_type)]

    def bare_edge(self, subject_type: str, target_type: str) -> tuple[str, str, bool]:
        """Return the edge that a bare link from a subject to a target means, as (type, kind, is_reversed).

        It is the one edge type with named ends that fits, in whichever direction; when none or several fit it
        is ``relates_to`` with the kind ``link``.
        """
        forth = self._between_named.get((subject_type, target_type), ())
        back = self._between_named.get((target_type, subject_type), ()) if subject_type != target_type else ()
        if len(forth) + len(back) == 1:
            return (*forth, *back)[0], "", bool(back)
        return "relates_to", "link", False

    @cached_property
    def _between_named(self) -> Mapping[tuple[str, str], list[str]]:
        """Return the edge types with named ends, by the types at both ends."""
        found: dict[tuple[str, str], list[str]] = {}
        for name, edge in self.edges.items():
            if not (edge.needs_kind or ANY in edge.from_types or ANY in edge.to_types):
                for ends in product({*edge.from_types}, {*edge.to_types}):
                    found.setdefault(ends, []).append(name)
        return found


def _admits(ends: tuple[str, ...], end_type: str) -> bool:
    return end_type in ends or (ANY in ends and end_type != LINK)


def _entity(name: str, description: str, status: str, **attributes: Attribute) -> EntityType:
    return EntityType(name, description, status_default=status, attributes=attributes)


def _edge(
    name: str,
    ends: tuple[str, str],
    impact: Impact,
    description: str,
    *,
    acyclic: bool = False,
    needs_kind: bool = False,
) -> EdgeType:
    from_types, to_types = (tuple(end.split()) for end in ends)
    return EdgeType(name, from_types, to_types, description, acyclic, needs_kind, impact)


NOT_APPLICABLE: Final = "not_applicable"
"""The attribute of a requirement that says what it needs not have, and why."""
ASPECTS: Final = ("specified", "verified", "implemented")
"""The expected form of a requirement."""

NOTE: Final = "note"
TASK: Final = "task"
MEMOS: Final = frozenset({NOTE, TASK})
"""KB's types of what is remembered in one sentence: a client need not state the status, and no edge is needed."""
ORDER: Final = "order"
"""The attribute of a task that says where it is in the list."""
LATER: Final[Mapping[str, frozenset[str]]] = {TASK: frozenset({ORDER, "file"}), NOTE: frozenset({"file"})}
"""Attributes, by type, that a project may have defined before KB did: its definition takes the place of KB's."""
_ABOUT: Final = Attribute("text", description="The file that it is about, from the root of the repository.")

CORE_ENTITIES: Final = (
    _entity(
        "req",
        "A requirement: something the product must do or be.",
        "draft",
        **{NOT_APPLICABLE: Attribute("object", description="What it need not be, each with the reason.", keys=ASPECTS)},
    ),
    _entity("scenario", "A behaviour of the product, as in BDD.", "draft"),
    _entity(
        "test",
        "A test that verifies requirements.",
        "active",
        kind=Attribute("text", values=("unit", "integration", "e2e"), description="How much it takes in."),
    ),
    _entity("adr", "An architecture decision record.", "proposed"),
    _entity("flag", "A feature flag.", "active"),
    _entity("event", "A domain or system event.", "active"),
    _entity(
        "symbol",
        "A function, class or module, in any language.",
        "active",
        kind=Attribute("text", description="What it is in its language: function, class, module, …"),
        file=Attribute("text", description="The file that holds it, from the root of the repository."),
        line=Attribute("any", description="The line at which it begins."),
    ),
    _entity("component", "A part of the system.", "active"),
    _entity("doc", "A page of documentation.", "active"),
    _entity(
        TASK,
        "A piece of work, such as an issue or a ticket.",
        "open",
        **{
            ORDER: Attribute(
                "number", description="Its place in the list of tasks, lower first. KB gives the next one."
            )
        },
        file=_ABOUT,
    ),
    _entity(NOTE, "A sentence to remember.", "active", file=_ABOUT),
)

CORE_EDGES: Final = (
    _edge("depends_on", ("req", "req"), "from", "The first cannot be met without the second.", acyclic=True),
    _edge("specified_by", ("req", "scenario"), "both", "The scenario says what the requirement means."),
    _edge("verified_by", ("req", "test"), "to", "The test shows that the requirement is met."),
    _edge("implements", ("symbol", "req"), "both", "The symbol does what the requirement asks."),
    _edge("covered_by", ("symbol", "test"), "to", "The test runs the symbol."),
    _edge("constrained_by", ("symbol", "adr"), "from", "The decision limits how the symbol may be written."),
    _edge("affects", ("adr", "symbol component"), "to", "The decision changes that part."),
    _edge("guards", ("flag", "symbol event req"), "to", "The flag switches it on and off."),
    _edge("publishes", ("symbol", "event"), "both", "The symbol emits the event."),
    _edge("consumes", ("symbol", "event"), "from", "The symbol reacts to the event."),
    _edge(
        "supersedes",
        (f"{ANY} {LINK}", f"{ANY} {LINK}"),
        "none",
        "The first, the newer, takes the place of the second.",
        acyclic=True,
    ),
    _edge("relates_to", (ANY, ANY), "both", "Any other relationship; its kind says which.", needs_kind=True),
)

CLAUSE_KINDS: Final = ("clause", "directive", "import")

HIDDEN: Final[Mapping[str, EntityType]] = {
    "clause": EntityType(
        "clause",
        "A clause or directive of the Prolog workspace.",
        required=(),
        status_default="",
        attributes={
            "text": Attribute("text", required=True, description="The clause as it was typed, with its full stop."),
            "key": Attribute("text", required=True, description="A digest of the clause up to names of variables."),
            "name": Attribute("text", required=True, description="`name/arity`, or what a directive is called."),
            "kind": Attribute("text", required=True, values=CLAUSE_KINDS, description="What it is."),
            "file": Attribute("text", description="The file that it was imported from."),
            "line": Attribute("number", description="The line of that file at which it begins."),
            "order": Attribute("number", required=True, description="Its place among all clauses."),
        },
    ),
}
"""KB's own types that no schema lists, by name. Wherever nobody names the type or an id, its entities are left out.

A project may have a type of the same name. The ids of its entities are others, and these are not left out.
"""

GENERATED_DIGITS: Final = 16
"""Hex digits of a generated id, 64 random bits: in a million ids the chance that two are equal is 1 in 37 million."""
_GENERATED: Final = re.compile(rf"([a-z]+):[0-9a-f]{{{GENERATED_DIGITS}}}")


def is_hidden(type_name: str, id_: str) -> bool:
    """Tell whether an entity of this type and id is left out of what names neither."""
    return type_name in HIDDEN and id_.startswith(f"{type_name}:") and is_hidden_id(id_)


def is_hidden_id(id_: str) -> bool:
    """Tell whether an id is one that entities of a hidden type have."""
    found = _GENERATED.fullmatch(id_)
    return found is not None and found[1] in HIDDEN


def schema_of(entities: Iterable[EntityType], edges: Iterable[EdgeType]) -> Schema:
    """Return a schema out of definitions; a later one of the same name takes the place of an earlier one."""
    return Schema({entity.name: entity for entity in entities}, {edge.name: edge for edge in edges})


CORE: Final = schema_of(CORE_ENTITIES, CORE_EDGES)
"""KB's own vocabulary, the same in every store."""


_SIMPLE: Final = re.compile(r"[A-Za-z][\w-]{0,60}", re.ASCII)
"""A value that needs no quotes in YAML."""
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {
    "text": (str,),
    "number": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "object": (dict,),
}


def attribute_problem(attribute: Attribute, value: Any) -> str:
    """Return what is wrong with a value of a declared attribute, or the empty text."""
    expected = _KINDS.get(attribute.type)
    is_boolean = isinstance(value, bool)
    if expected and (not isinstance(value, expected) or (is_boolean and attribute.type != "boolean")):
        such = f" such as {_example(attribute.keys[0])}" if attribute.keys else ""
        return f"must be {'an' if attribute.type == 'object' else 'a'} {attribute.type}{such}"
    if attribute.values and value not in attribute.values:
        return f"must be one of {', '.join(attribute.values)}"
    return _members_problem(attribute.keys, value) if attribute.keys else ""


def allowed_values_hint(definition: EntityType, field: str, value: Any) -> str:
    """Return how a project adds a value to the list that an attribute of a type has; empty where that is no remedy."""
    name = field.removeprefix("attributes.")
    attribute = definition.attributes.get(name) if name != field else None
    if attribute is None or not attribute.values or not isinstance(value, str) or not _SIMPLE.fullmatch(value):
        return ""
    core = CORE.entities.get(definition.name)
    if core is None or name not in core.attributes:
        return f"A new value goes into the `values` of {in_quotes(name)} in {definition.origin or '.kb/schema'}."
    example = f"entities: {{{definition.name}: {{attributes: {{{name}: {{values: [{value}]}}}}}}}}"
    return f"A new value goes into a file of .kb/schema/: `{example}`."


def _members_problem(keys: tuple[str, ...], value: Mapping[str, Any]) -> str:
    unknown = next((name for name in value if name not in keys), None)
    if unknown is not None:
        return f"has a member {in_quotes(unknown)}; there may be {', '.join(keys)}, as in {_example(keys[0])}"
    mute = next((name for name in value if not isinstance(value[name], str) or not value[name].strip()), None)
    return "" if mute is None else f"must say something at {in_quotes(mute)}, as in {_example(mute)}"


def _example(key: str) -> str:
    """Return an object with this member, as JSON and YAML both read it."""
    return f'{{"{key}": "some text"}}'
