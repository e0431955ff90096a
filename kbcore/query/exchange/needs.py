"""The file ``needs.json`` of Sphinx-Needs, in the form of the profile ``sphinx-needs``. Pure.

Edges are options of links by their names; a ``relates_to`` is ``links`` where that is its kind, else
``relates_to_KIND``.
"""

from __future__ import annotations

from typing import Any, Final

from kbcore.extract.links import RELATES_TO
from kbcore.extract.sources import profiles
from kbcore.extract.sources.entry import folded
from kbcore.model.schema import CORE
from kbcore.query.exchange.graph import CORE_TEXTS, TEXT, Graph, attributes_of, relations, status_of, urls_of
from kbcore.text.escaping import json_text

_VERSION: Final = "1.0"
_KIND: Final = "links"
_TYPE: Final = "kb_type"


def to_needs(graph: Graph) -> bytes:
    """Return the file."""
    keys = profiles.read("sphinx-needs")["source"]["fields"]
    taken = {folded(key) for key in keys}
    needs: dict[str, dict[str, Any]] = {}
    for entity in graph.entities:
        attributes = {
            name: value
            for name, value in attributes_of(graph, entity, frozenset(taken), has_lists=True).items()
            if not name.endswith("_back")
        }
        text = attributes.pop(TEXT, "")
        need: dict[str, Any] = {
            "id": entity["id"],
            "type": entity["type"],
            "title": entity["title"],
            "status": status_of(entity),
            "tags": entity.get("tags", []),
            "links": [],
        }
        if isinstance(text, str) and text:
            need["content"] = text
        if entity["type"] not in CORE.entities:
            need[_TYPE] = entity["type"]
        need |= {name: entity[name] for name in (*CORE_TEXTS, "text_ref") if entity.get(name)}
        if urls := urls_of(entity):
            need["urls"] = urls
        needs[entity["id"]] = {**need, **attributes}
    for edge, type_, kind in relations(graph, needs):
        if type_ not in CORE.edges and "," in edge["to"]:
            continue
        name = type_ if type_ != RELATES_TO else _KIND if kind == _KIND else f"{RELATES_TO}_{kind}"
        needs[edge["from"]].setdefault(name, []).append(edge["to"])
    moment = graph.moment()
    version = {"created": moment, "needs": needs, "needs_amount": len(needs)}
    whole = {"created": moment, "current_version": _VERSION, "project": "", "versions": {_VERSION: version}}
    return (json_text(whole, 1) + "\n").encode()
