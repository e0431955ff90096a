"""A ReqIF file with all entities in one specification, in the form of the profile ``reqif``. Pure.

An object type is an entity type, and a relation type an edge type or the kind of a ``relates_to``. Attributes of KB
that ReqIF has no name for begin with ``KB.``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from kbcore.extract.links import DEFAULT_KIND, RELATES_TO
from kbcore.extract.sources import profiles
from kbcore.extract.sources.entry import folded
from kbcore.query.exchange.graph import (
    CORE_TEXTS,
    NOT_XML,
    TEXT,
    Graph,
    attributes_of,
    moment_of,
    relations,
    status_of,
    urls_of,
)

_NAMESPACE: Final = "http://www.omg.org/spec/ReqIF/20110401/reqif.xsd"
_IDENTIFIER: Final = re.compile(r"(?!_kb)[A-Za-z_][A-Za-z0-9_.-]{0,100}")
_BREAKS: Final = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_STRING: Final = "_kb-string"


def to_reqif(graph: Graph) -> bytes:
    """Return the file."""
    keys = {*profiles.read("reqif")["source"]["fields"], "TYPE", "relations", "parent", "IDENTIFIER", "State"}
    taken = frozenset(map(folded, keys))
    objects = {one["id"]: _attributes(graph, one, taken) for one in graph.entities if not NOT_XML.search(one["id"])}
    entities = {one["id"]: one for one in graph.entities if one["id"] in objects}
    names = {
        type_: sorted({name for key, found in objects.items() if entities[key]["type"] == type_ for name in found})
        for type_ in sorted({one["type"] for one in entities.values()})
    }
    numbers = {type_: at for at, type_ in enumerate(names)}
    related = [
        (edge["from"], edge["to"], (kind or DEFAULT_KIND) if type_ == RELATES_TO else type_)
        for edge, type_, kind in relations(graph, objects)
        if not NOT_XML.search(kind)
    ]
    ways = {name: f"_kb-relation-{at}" for at, name in enumerate(sorted({name for _, _, name in related}))}
    moment = graph.moment()
    out = ['<?xml version="1.0" encoding="UTF-8"?>', f'<REQ-IF xmlns="{_NAMESPACE}">']
    out += _header(moment)
    out += ["<CORE-CONTENT><REQ-IF-CONTENT>", "<DATATYPES>"]
    stamped = f'LAST-CHANGE="{moment}"'
    out.append(f'<DATATYPE-DEFINITION-STRING IDENTIFIER="{_STRING}" {stamped} LONG-NAME="Text" MAX-LENGTH="65536"/>')
    out += ["</DATATYPES>", "<SPEC-TYPES>"]
    places = {type_: {name: at for at, name in enumerate(listed)} for type_, listed in names.items()}
    for type_, listed in names.items():
        out += _object_type(f"_kb-type-{numbers[type_]}", type_, listed, moment)
    for name, key in ways.items():
        out.append(f'<SPEC-RELATION-TYPE IDENTIFIER="{key}" LAST-CHANGE="{moment}" LONG-NAME={_quoted(name)}/>')
    out.append(f'<SPECIFICATION-TYPE IDENTIFIER="_kb-specification-type" LAST-CHANGE="{moment}" LONG-NAME="Export"/>')
    out += ["</SPEC-TYPES>", "<SPEC-OBJECTS>"]
    for key, found in objects.items():
        type_ = entities[key]["type"]
        out += _object(entities[key], found, f"_kb-type-{numbers[type_]}", places[type_])
    out += ["</SPEC-OBJECTS>", "<SPEC-RELATIONS>"]
    for at, (begin, end, name) in enumerate(related):
        out += [f'<SPEC-RELATION IDENTIFIER="_kb-edge-{at}" LAST-CHANGE="{moment}">']
        out += [f"<TYPE><SPEC-RELATION-TYPE-REF>{ways[name]}</SPEC-RELATION-TYPE-REF></TYPE>"]
        out += [f"<SOURCE><SPEC-OBJECT-REF>{_identifier(begin)}</SPEC-OBJECT-REF></SOURCE>"]
        out += [f"<TARGET><SPEC-OBJECT-REF>{_identifier(end)}</SPEC-OBJECT-REF></TARGET>", "</SPEC-RELATION>"]
    out += ["</SPEC-RELATIONS>", *_specification(objects, moment), "</REQ-IF-CONTENT></CORE-CONTENT>", "</REQ-IF>"]
    return ("\n".join(out) + "\n").encode()


def _header(moment: str) -> Iterator[str]:
    yield '<THE-HEADER><REQ-IF-HEADER IDENTIFIER="_kb-header">'
    yield f"<CREATION-TIME>{moment}</CREATION-TIME><REQ-IF-TOOL-ID>kb</REQ-IF-TOOL-ID>"
    yield "<REQ-IF-VERSION>1.0</REQ-IF-VERSION><SOURCE-TOOL-ID>kb</SOURCE-TOOL-ID><TITLE>Export</TITLE>"
    yield "</REQ-IF-HEADER></THE-HEADER>"


def _attributes(graph: Graph, entity: dict[str, Any], taken: frozenset[str]) -> dict[str, str]:
    """Return the attributes of an object by their names in ReqIF."""
    attributes = attributes_of(graph, entity, taken)
    found = {"ReqIF.Name": str(entity["title"]), "Status": status_of(entity), "ReqIF.ForeignID": entity["id"]}
    if _identifier(entity["id"]) != entity["id"]:
        found["KB.id"] = entity["id"]
    found |= {f"KB.{name}": str(entity[name]) for name in (*CORE_TEXTS, "text_ref") if entity.get(name)}
    found |= {"KB.tags": ", ".join(entity["tags"])} if entity.get("tags") else {}
    found |= {"KB.links": "\n".join(urls)} if (urls := urls_of(entity)) else {}
    found |= {"ReqIF.Text": attributes.pop(TEXT)} if TEXT in attributes else {}
    found |= attributes
    return {name: text for name, text in found.items() if not NOT_XML.search(name + text)}


def _object_type(key: str, type_: str, names: list[str], moment: str) -> Iterator[str]:
    yield f'<SPEC-OBJECT-TYPE IDENTIFIER="{key}" LAST-CHANGE="{moment}" LONG-NAME={_quoted(type_)}><SPEC-ATTRIBUTES>'
    for at, name in enumerate(names):
        yield f'<ATTRIBUTE-DEFINITION-STRING IDENTIFIER="{key}-{at}" LAST-CHANGE="{moment}"'
        yield f" LONG-NAME={_quoted(name)}><TYPE>"
        yield f"<DATATYPE-DEFINITION-STRING-REF>{_STRING}</DATATYPE-DEFINITION-STRING-REF>"
        yield "</TYPE></ATTRIBUTE-DEFINITION-STRING>"
    yield "</SPEC-ATTRIBUTES></SPEC-OBJECT-TYPE>"


def _object(entity: dict[str, Any], found: dict[str, str], type_: str, places: dict[str, int]) -> Iterator[str]:
    """Yield an object; ``places`` are the numbers of the attributes of its type."""
    yield f'<SPEC-OBJECT IDENTIFIER="{_identifier(entity["id"])}" LAST-CHANGE="{moment_of(entity)}">'
    yield f"<TYPE><SPEC-OBJECT-TYPE-REF>{type_}</SPEC-OBJECT-TYPE-REF></TYPE><VALUES>"
    for name, text in found.items():
        yield f"<ATTRIBUTE-VALUE-STRING THE-VALUE={_quoted(text)}><DEFINITION>"
        reference = f"{type_}-{places[name]}"
        yield f"<ATTRIBUTE-DEFINITION-STRING-REF>{reference}</ATTRIBUTE-DEFINITION-STRING-REF>"
        yield "</DEFINITION></ATTRIBUTE-VALUE-STRING>"
    yield "</VALUES></SPEC-OBJECT>"


def _specification(keys: dict[str, Any], moment: str) -> Iterator[str]:
    """Yield the specification that has all objects, one below the other: tools show what is in one."""
    yield f'<SPECIFICATIONS><SPECIFICATION IDENTIFIER="_kb-specification" LAST-CHANGE="{moment}" LONG-NAME="Export">'
    yield "<TYPE><SPECIFICATION-TYPE-REF>_kb-specification-type</SPECIFICATION-TYPE-REF></TYPE><CHILDREN>"
    for at, key in enumerate(keys):
        yield f'<SPEC-HIERARCHY IDENTIFIER="_kb-place-{at}" LAST-CHANGE="{moment}"><OBJECT>'
        yield f"<SPEC-OBJECT-REF>{_identifier(key)}</SPEC-OBJECT-REF></OBJECT></SPEC-HIERARCHY>"
    yield "</CHILDREN></SPECIFICATION></SPECIFICATIONS>"


def _identifier(key: str) -> str:
    """Return an id as an identifier of XML: itself, or a digest where it has signs that those cannot have."""
    return key if _IDENTIFIER.fullmatch(key) else f"_{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def _quoted(text: str) -> str:
    return quoteattr(text, _BREAKS)
