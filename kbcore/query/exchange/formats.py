"""The formats by their names: their files, and what these do not hold, by the profile that reads them again. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from kbcore.extract.facts import Facts, SourceFile
from kbcore.extract.links import DEFAULT_KIND, RELATES_TO
from kbcore.extract.settings import EDGE_NAMES
from kbcore.extract.sources import profiles
from kbcore.extract.sources.extractor import EXTRACTOR
from kbcore.model.graph import PROPOSED
from kbcore.query.exchange import doorstop, needs, reqif, tables
from kbcore.query.exchange.graph import Graph
from kbcore.text.wording import pluralize, some_of

Format = Literal["reqif", "doorstop", "needs", "csv", "xlsx"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
PROFILES: Final[Mapping[Format, str]] = {
    "reqif": "reqif",
    "doorstop": "doorstop",
    "needs": "sphinx-needs",
    "csv": "table",
    "xlsx": "table",
}
"""The profile that reads each format."""
BINARY: Final = frozenset({"xlsx"})
FOLDERS: Final = frozenset({"doorstop"})
"""Formats of several files, which are written into a folder."""
_WRITERS: Final[Mapping[Format, Callable[[Graph], bytes]]] = {
    "reqif": reqif.to_reqif,
    "needs": needs.to_needs,
    "csv": tables.to_csv,
    "xlsx": tables.to_xlsx,
}
_NOT_COMPARED: Final = frozenset({"id", "type", "created_at", "updated_at", "source"})
_NAMED: Final = 3
_FIELDS: Final = 10
_LISTED: Final = 1000
_OBJECTS: Final = ("attributes", "metadata")
_Edge = tuple[str, str, str, str]


class Exchanged(msgspec.Struct, frozen=True):
    """The files of an export by path, "" for one that is a file itself, and what they do not hold.

    ``entities`` are ids, ``edges`` as (from, type, kind, to), and ``values`` as (id, field), of an edge by its ends and
    without those of what is left out itself. ``added`` are ids and edges that the files state in addition: there should
    be none.
    """

    files: dict[str, bytes]
    entities: list[str]
    edges: list[_Edge]
    values: list[tuple[str, str]]
    added: list[str | _Edge]

    @property
    def left_out(self) -> str:
        """Return in words what the format does not hold; empty where it holds everything."""
        counts = ((self.entities, "entity"), (self.edges, "edge"), (self.values, "value"))
        return ", ".join(pluralize(len(found), word) for found, word in counts if found)

    def named(self) -> list[str]:
        """Return a line for the entities, one for the edges, and one for each field of what is left out.

        Each names the first few.
        """
        fields: dict[str, list[str]] = {}
        for key, name in self.values:
            fields.setdefault(name, []).append(key)
        edges = [f"{start} {type_}{f':{kind}' if kind else ''} {end}" for start, type_, kind, end in self.edges]
        parts = [(word, found) for word, found in (("entities", self.entities), ("edges", edges)) if found]
        lines = [f"{word}: {some_of(found, _NAMED)}" for word, found in parts]
        lines += [f"{name} of {some_of(found, _NAMED)}" for name, found in list(fields.items())[:_FIELDS]]
        return [*lines, f"{len(fields) - _FIELDS} more fields"] if len(fields) > _FIELDS else lines

    def left_out_json(self) -> dict[str, Any]:
        """Return what is left out as JSON: the first of each, and how many there are."""
        edges = [{"from": one[0], "type": one[1], "kind": one[2], "to": one[3]} for one in self.edges[:_LISTED]]
        return {
            "entities": self.entities[:_LISTED],
            "edges": edges,
            "values": [{"of": key, "field": name} for key, name in self.values[:_LISTED]],
            "totals": {"entities": len(self.entities), "edges": len(self.edges), "values": len(self.values)},
        }


def exchanged(
    format_: Format, entities: list[dict[str, Any]], edges: list[dict[str, Any]], edge_names: frozenset[str]
) -> Exchanged:
    """Return what an export is in the format of another tool.

    Raises: ``InvalidQuery`` where a package that writes the format is not installed.
    """
    whole = Graph(entities, edges, edge_names)
    graph = _accepted(whole)
    files = doorstop.to_doorstop(graph) if format_ == "doorstop" else {"": _WRITERS[format_](graph)}
    names = {"reqif": "a.reqif", "needs": "needs.json", "csv": "a.csv", "xlsx": "a.xlsx", "doorstop": ""}
    settings = {**profiles.read(PROFILES[format_])["source"], EDGE_NAMES: sorted(edge_names)}
    read = [
        EXTRACTOR.extract(SourceFile(f"reqs/{path or names[format_]}", data), settings) for path, data in files.items()
    ]
    return _compared(files, whole, read)


def _accepted(graph: Graph) -> Graph:
    """Return a graph without what is only proposed, and without edges at that: no other tool has such facts."""
    entities = [one for one in graph.entities if not _is_proposed(one)]
    gone = {one["id"] for one in graph.entities} - {one["id"] for one in entities}
    edges = [one for one in graph.edges if not _is_proposed(one) and gone.isdisjoint((one["from"], one["to"]))]
    return Graph(entities, edges, graph.edge_names)


def _is_proposed(item: Mapping[str, Any]) -> bool:
    return item.get("metadata", {}).get(PROPOSED) is True


def _compared(files: dict[str, bytes], graph: Graph, read: list[Facts]) -> Exchanged:
    found = {one.id: one for facts in read for one in facts.entities}
    stated = {
        (one.target, one.type or "", one.kind, one.subject)
        if one.reverse
        else (one.subject, one.type or "", one.kind, one.target)
        for facts in read
        for one in facts.links
        if not one.in_text
    }
    lost = [one["id"] for one in graph.entities if one["id"] not in found]
    missing = [key for one in graph.edges if (key := _key_of(one)) not in stated]
    values: list[tuple[str, str]] = []
    for entity in graph.entities:
        read_one = found.get(entity["id"])
        if read_one is None:
            continue
        fields = {name: value for name, value in _flat(entity).items() if name not in _NOT_COMPARED}
        if read_one.type != entity["type"]:
            values.append((entity["id"], "type"))
        values += [
            (entity["id"], name)
            for name, value in fields.items()
            if name not in read_one.fields or read_one.fields[name] != value
        ]
    for edge in graph.edges:
        fields = {
            name: value for name, value in _flat(edge).items() if name == "confidence" or name.startswith(_OBJECTS)
        }
        values += [(" ".join(_key_of(edge)), name) for name in fields if _key_of(edge) in stated]
    known = {one["id"] for one in graph.entities}
    added: list[str | _Edge] = [*sorted(found.keys() - known)]
    added += sorted(stated - {_key_of(one) for one in graph.edges})
    return Exchanged(files, lost, missing, values, added)


def _key_of(edge: Mapping[str, Any]) -> _Edge:
    kind = str(edge.get("kind") or "")
    return edge["from"], edge["type"], kind or (DEFAULT_KIND if edge["type"] == RELATES_TO else ""), edge["to"]


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an item as facts have them."""
    fields = {name: value for name, value in item.items() if name not in _OBJECTS}
    for prefix in _OBJECTS:
        fields |= {f"{prefix}.{name}": value for name, value in item.get(prefix, {}).items()}
    return fields
