"""The vocabulary of KIP that every store knows: concept types, predicates and the few nodes they need. Plain data.

It is the same in every store and no record holds it: an element of it is recorded as soon as it is changed.
Definitions that a branch adds while it runs are nodes of the same two types, and extend the schema likewise.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore.ids import check_id
from kbcore.limits import MAX_NAME_CHARS
from kbcore.model.schema import ANY, LINK, MEMORY, MENTIONS, EdgeType, EntityType, Impact, Schema

TYPE: Final = "$ConceptType"
"""The type of the nodes that define types of concepts, itself among them."""

PREDICATE: Final = "$PropositionType"
"""The type of the nodes that define predicates."""

DEFINING: Final = (TYPE, PREDICATE)
DOMAIN: Final = "Domain"
IN_DOMAIN: Final = "belongs_to_domain"
SCHEMA_DOMAIN: Final = "CoreSchema"
UNSORTED: Final = "Unsorted"
ARCHIVED: Final = "Archived"
PERSON: Final = "Person"
EVENT: Final = "Event"
SLEEP_TASK: Final = "SleepTask"
SELF: Final = "$self"
SYSTEM: Final = "$system"
AUTHOR: Final = "SystemBootstrap"
"""The source of all of it."""

_STYLES: Final = {TYPE: re.compile(r"[A-Z][A-Za-z0-9]*"), PREDICATE: re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")}
STYLE_WORDS: Final = {TYPE: "UpperCamelCase", PREDICATE: "snake_case"}
"""The grammar of the names of types and of predicates."""

ORIGIN: Final = MEMORY
"""The origin of a type or predicate of KIP, in place of a schema file."""
_HASHED: Final = re.compile(r"~[0-9a-f]{32}")
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_IN_SCHEMA_FILE: Final = {
    TYPE: "`entities: {%s: {description: …}}`",
    PREDICATE: "`edges: {%s: {from: any, to: any, description: …}}`",
}
_NOUN: Final = {TYPE: "type", PREDICATE: "edge type"}


class Concept(msgspec.Struct, frozen=True):
    """A node by its type and name, with its attributes."""

    type: str
    name: str
    attributes: Mapping[str, Any]


def _member(kind: str, description: str, *, required: bool = False, values: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind, "description": description}
    if required:
        found["required"] = True
    return found | ({"enum": list(values)} if values else {})


_PERSON: Final = {
    "id": _member("string", "An id that does not change, such as an account's.", required=True),
    "person_class": _member(
        "string", "What kind of actor it is.", required=True, values=("AI", "Human", "Organization", "System")
    ),
    "name": _member("string", "The name it is called by."),
    "handle": _member("string", "A short name, as others mention it."),
    "avatar": _member("object", "A picture: its address or its data."),
    "status": _member("string", "Whether it still acts; `active` unless somebody says otherwise."),
    "persona": _member("string", "How it speaks and behaves."),
    "core_directives": _member("array", "What it never acts against."),
    "core_mission": _member("string", "What it is there for."),
    "capabilities": _member("array", "What it can do."),
    "relationship_to_self": _member("string", "What it is to the agent that remembers it."),
    "interaction_summary": _member("object", "What is remembered of dealings with it, in short."),
    "privacy_settings": _member("object", "What may be told about it, and to whom."),
    "service_endpoints": _member("array", "Where its services are reached."),
}
_EVENT: Final = {
    "event_class": _member("string", "What kind of episode it was, such as a conversation.", required=True),
    "start_time": _member("string", "When it began, RFC 3339 in UTC.", required=True),
    "content_summary": _member("string", "What happened, in a few sentences.", required=True),
    "end_time": _member("string", "When it ended, RFC 3339 in UTC."),
    "participants": _member("array", "Who took part."),
    "key_concepts": _member("array", "What it was about."),
    "outcome": _member("string", "What came of it."),
    "raw_content_ref": _member("string", "Where the whole of it is kept."),
    "context": _member("object", "What surrounded it: place, tool, task."),
    "consolidation_status": _member(
        "string", "Whether its lasting knowledge was taken out.", values=("pending", "completed", "archived")
    ),
    "salience_score": _member("number", "How much it matters, from 0 to 1."),
}
_TASK: Final = {
    "target_type": _member("string", "The type of the concept to look after."),
    "target_name": _member("string", "The name of that concept."),
    "requested_action": _member(
        "string",
        "What is to be done with it.",
        values=("consolidate_to_semantic", "archive", "merge_duplicates", "reclassify", "review"),
    ),
    "reason": _member("string", "Why somebody asked for it."),
    "status": _member("string", "How far it has come.", values=("pending", "in_progress", "completed", "failed")),
    "priority": _member("number", "A higher number goes first; 1 unless somebody says otherwise."),
    "result": _member("string", "What came of it."),
}


def _type(name: str, description: str, schema: Mapping[str, Any]) -> Concept:
    return Concept(TYPE, name, {"description": description, "instance_schema": dict(schema)})


def _predicate(name: str, description: str, subjects: tuple[str, ...], objects: tuple[str, ...]) -> Concept:
    ends = {"subject_types": list(subjects), "object_types": list(objects)}
    return Concept(PREDICATE, name, {"description": description, **ends})


_PREFERENCE: Final = {
    "description": _member("string", "What is preferred, in a sentence.", required=True),
    "aliases": _member("array", "Other words for it."),
    "strength": _member("number", "How much it matters, from 0 to 1."),
}


_DESCRIPTION: Final = {"description": _member("string", "What it means.", required=True)}
_OF_TYPES: Final = {**_DESCRIPTION, "instance_schema": _member("object", "The attributes of its instances, by name.")}
_OF_PREDICATES: Final = {
    **_DESCRIPTION,
    "subject_types": _member("array", "The types that it leads from; * is any."),
    "object_types": _member("array", "The types that it leads to; * is any."),
}

CORE_CONCEPTS: Final = (
    _type(TYPE, "A definition of a type of concepts.", _OF_TYPES),
    _type(PREDICATE, "A definition of a predicate, by which one element is linked to another.", _OF_PREDICATES),
    _type(DOMAIN, "A field of knowledge that concepts belong to.", _DESCRIPTION),
    _type(PERSON, "Somebody who acts: a human, an agent, an organisation or a system.", _PERSON),
    _type(EVENT, "An episode that is remembered, such as a conversation. KB's own events are DomainEvent.", _EVENT),
    _type(SLEEP_TASK, "Work that the waking mind leaves for the sleeping mind.", _TASK),
    _type("Preference", "Something that somebody likes better than the rest.", _PREFERENCE),
    _predicate(IN_DOMAIN, "The subject belongs to that field of knowledge.", ("*",), (DOMAIN,)),
    _predicate("consolidated_to", "What lasts of the episode was taken out as the object.", (EVENT,), ("*",)),
    _predicate("derived_from", "The subject was taken out of that episode.", ("*",), (EVENT,)),
    _predicate(MENTIONS, "The episode speaks of the object, or the text of the document links to it.", ("*",), ("*",)),
    _predicate("assigned_to", "The task is for that actor.", (SLEEP_TASK,), (PERSON,)),
    _predicate("created_by", "That actor made the subject.", ("*",), (PERSON,)),
    _predicate("prefers", "The subject prefers the object.", (PERSON,), ("Preference",)),
    _predicate("knows", "The subject knows the object.", (PERSON,), ("*",)),
    _predicate("interested_in", "The subject is interested in the object.", (PERSON,), ("*",)),
    _predicate("working_on", "The subject works on the object.", (PERSON,), ("*",)),
    Concept(DOMAIN, SCHEMA_DOMAIN, {"description": "The definitions of types and predicates."}),
    Concept(DOMAIN, UNSORTED, {"description": "What nobody has put into a field yet."}),
    Concept(DOMAIN, ARCHIVED, {"description": "What was put away and is kept."}),
    Concept(
        PERSON,
        SELF,
        {
            "person_class": "AI",
            "core_directives": [
                "Say where knowledge comes from, and how sure it is.",
                "Read before you write, and correct what turns out to be wrong.",
                "Keep what others told in confidence to yourself.",
            ],
            "capabilities": ["to remember", "to find again", "to connect what it knows"],
        },
    ),
    Concept(
        PERSON,
        SYSTEM,
        {
            "id": "aaaaa-aa",
            "person_class": "System",
            "core_directives": [
                "Put away before you delete.",
                "Change as little as the order of the memory needs.",
                "Write down what was done.",
            ],
            "sleep_duties": ["tasks", "unsorted", "orphans", "stale events", "duplicates", "decay", "domains", "log"],
            "last_sleep_cycle": None,
            "maintenance_log": [],
        },
    ),
)
"""Every definition belongs to the domain CoreSchema."""


VOCABULARY: Final = frozenset((one.type, one.name) for one in CORE_CONCEPTS)
"""The concepts that every store knows, by type and name."""


def concept_id(kip_type: str, name: str) -> str:
    """Return the id that a concept of a type of KIP's gets when it is made, the same on every branch.

    It is ``Type:name``, or ``Type:~`` and 32 hex digits where that would be no id. Who looks for a concept looks for
    its type and name: one that a document or ``kb apply`` has made has another id.
    """
    plain = f"{kip_type}:{name}"
    if name and check_id(plain) is None and not _HASHED.fullmatch(name):
        return plain
    both = json.dumps([kip_type, name], ensure_ascii=True)
    return f"{kip_type}:~{hashlib.sha256(both.encode('ascii')).hexdigest()[:32]}"


def is_well_named(definition: Concept) -> bool:
    """Tell whether a type or predicate has a name of its style, or one of the vocabulary."""
    is_styled = _STYLES[definition.type].fullmatch(definition.name) and len(definition.name) <= MAX_NAME_CHARS
    return bool(is_styled) or (definition.type, definition.name) in VOCABULARY


def how_to_add(what: str, name: str, *, by_record: bool = True) -> str:
    """Return how an entity type (``what`` is ``TYPE``) or an edge type (``PREDICATE``) of this name is added.

    ``by_record`` is False where only a schema file can add it, as for whom a document is checked.
    """
    text = _IN_SCHEMA_FILE[what] % (name if _NAME.fullmatch(name) else "NAME")
    said = f"A new {_NOUN[what]} goes into a file of .kb/schema/: {text}"
    if not by_record:
        return f"{said}."
    example = name if is_well_named(Concept(what, name, {})) else "NAME"
    style = "" if example == name else f", with a name in {STYLE_WORDS[what]}"
    entity = f"an entity of the type `{what}` with the id `{what}:{example}` and the title `{example}`"
    return f"{said}. For this branch alone, create {entity}{style}."


def extended(schema: Schema, definitions: Iterable[Concept] = ()) -> Schema:
    """Return a schema that also knows KIP's types and predicates, and those that a branch defines.

    What the schema has already stays as it is, and a definition whose name is not of its style defines nothing. Any two
    elements may stand at the ends of a predicate: the types that its definition names are advice.
    """
    entities, edges = dict(schema.entities), dict(schema.edges)
    own = [one for one in definitions if is_well_named(one)]
    defined = {(one.type, one.name) for one in own}
    for one in (*own, *(core for core in CORE_CONCEPTS if (core.type, core.name) not in defined)):
        description = str(one.attributes.get("description") or "")
        if one.type == TYPE:
            entities.setdefault(one.name, EntityType(one.name, description, ("title",), "active", origin=ORIGIN))
        elif one.type == PREDICATE:
            acyclic = one.attributes.get("acyclic") is True
            # What mentions something is not affected when that changes.
            impact: Impact = "none" if one.name == MENTIONS else "from"
            ends = (ANY, LINK)
            edges.setdefault(
                one.name, EdgeType(one.name, ends, ends, description, acyclic=acyclic, impact=impact, origin=ORIGIN)
            )
    return Schema(entities, edges)
