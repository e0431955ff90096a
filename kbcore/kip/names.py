"""Names of types, elements and fields in KIP, and their names in KB. Pure.

Names of types lead there and back: no two types of a schema have the same KIP name, and a type has only one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from kbcore.model.concepts import CORE_CONCEPTS, ORIGIN, TYPE
from kbcore.model.record import DML, SLEEP
from kbcore.model.schema import ANY, LINK, Schema

CORE_TYPES: Final[Mapping[str, str]] = {
    "req": "Requirement",
    "scenario": "Scenario",
    "test": "Test",
    "adr": "Decision",
    "flag": "FeatureFlag",
    "event": "DomainEvent",
    "symbol": "Symbol",
    "component": "Component",
    "doc": "DocumentationPage",
    "task": "WorkItem",
    "note": "WorkNote",
}
"""KB's own types, and what KIP calls them: names that projects and branches are unlikely to have given to others."""

NODE_TEXTS: Final = ("title", "status", "owner", "priority", "severity", "text_ref")
NODE_LISTS: Final = ("tags", "links")
NODE_ATTRIBUTES: Final = (*NODE_TEXTS, *NODE_LISTS)
"""Attributes of a concept that are fields of the entity where their value is of the field's kind."""

LINK_ATTRIBUTES: Final[Mapping[str, str]] = {"kind": "kind"}
"""Attributes of a proposition that are fields of the edge, and which."""

NODE_METADATA: Final[Mapping[str, str]] = {
    "source": "source",
    "created_at": "created_at",
    "updated_at": "updated_at",
    "_created_at": "created_at",
    "_version": "version",
}
LINK_METADATA: Final[Mapping[str, str]] = {
    "source": "source",
    "created_at": "created_at",
    "author": "created_by",
    "confidence": "confidence",
    "_created_at": "created_at",
    "_version": "version",
}
"""Metadata that are fields of an entity or of an edge, and which. A member of ``metadata`` of the name goes first.

``source`` and ``author`` are shown out of a field only where ``is_given`` holds for the source. Of all these KIP
writes no field but ``confidence``: what a command says of an element is a member. ``_created_at`` is always KB's own
time, and shown where a member hides it.
"""

GIVEN: Final = frozenset({"source", "author"})
"""The source of a fact, if one was given."""

PROGRAMS: Final = ("cli", "import", "kip", "sync")
BEGINNINGS: Final = ("mcp:", DML, SLEEP)
"""The source that KB notes where none was given: the program that wrote it, or the beginning of that."""

_WORDS: Final = re.compile(r"[A-Za-z0-9]+")
_VOCABULARY: Final = frozenset(one.name for one in CORE_CONCEPTS if one.type == TYPE)


class TypeNames(msgspec.Struct, frozen=True):
    """The types of a schema, by what KIP calls them (``of_kip``) and by what KB does (``of_kb``).

    ``native`` are KB's names of the types that KIP did not bring: an entity of those has its id as its name.
    """

    of_kip: dict[str, str]
    of_kb: dict[str, str]
    native: frozenset[str]

    def is_named_by_id(self, kb_type: str) -> bool:
        """Return whether the name of an entity of this type is its id."""
        return kb_type in self.native

    def shown(self, kb_type: str) -> str:
        """Return what KIP calls a type; one that the schema does not know goes by its own name."""
        return self.of_kb.get(kb_type, kb_type)


def is_given(source: str) -> bool:
    """Return whether a source says where a fact comes from (a file, or what a client gave), and not what wrote it."""
    return bool(source) and source not in PROGRAMS and not source.startswith(BEGINNINGS)


def type_names(schema: Schema) -> TypeNames:
    """Return what KIP calls the types of a schema, which ``concepts.extended`` has extended.

    A name goes to KB's own types first, then to KIP's vocabulary, to the project's types in order (``user_story`` is
    ``UserStory``; where that is taken it keeps its own name), and last to what a branch defines.
    """
    own = {kb: kip for kb, kip in CORE_TYPES.items() if kb in schema.entities and not schema.entities[kb].origin}
    of_kip = {kip: kb for kb, kip in own.items()}
    of_kip |= {name: name for name in _VOCABULARY if name in schema.entities and name not in of_kip}
    project = [name for name, one in schema.entities.items() if one.origin != ORIGIN and name not in own]
    for name in sorted(project, key=lambda one: (camel_case(one) != one, one)):
        wanted = camel_case(name)
        of_kip.setdefault(wanted if wanted and wanted not in of_kip else name, name)
    for name in sorted(schema.entities):
        if schema.entities[name].origin == ORIGIN:
            of_kip.setdefault(name, name)
    native = frozenset(name for name, one in schema.entities.items() if one.origin != ORIGIN)
    return TypeNames(of_kip, {kb: kip for kip, kb in of_kip.items()}, native)


def camel_case(name: str) -> str:
    """Return a name as KIP writes types: ``user_story`` becomes ``UserStory``."""
    return "".join(word[0].upper() + word[1:] for word in _WORDS.findall(name))


def end_types(names: TypeNames, ends: tuple[str, ...]) -> list[str]:
    """Return the types at one end of an edge type as a definition of KIP lists them; ``*`` is any."""
    if ANY in ends or LINK in ends:
        return ["*"]
    return [names.shown(one) for one in ends]
