"""The entities and edges to be written in the format of another tool, and what each of them may say there. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from kbcore.extract.links import RELATES_TO, parse_target
from kbcore.extract.sources.entry import folded

_NAME: Final = re.compile(r"[^\W_][\w .-]*(?<! )")
"""The name of an attribute that is the same as a key of any format."""
NOT_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""A character that XML cannot have."""
_SUPERSEDING: Final = re.compile(r"super[sc]ed", re.IGNORECASE)
TEXT: Final = "text"
"""The attribute that is the text of a requirement in formats that have one."""
CORE_TEXTS: Final = ("owner", "priority", "severity")
EPOCH: Final = "1970-01-01T00:00:00Z"
_TAKEN: Final = frozenset(
    {
        *("id", "type", "title", "name", "status", "tags", "links", "relationships", "attributes", "metadata"),
        *(*CORE_TEXTS, "text-ref", "created-at", "updated-at", "superseded-by", "heading"),
    }
)
"""Keys that mean something else than an attribute in every format, folded."""


class Graph(msgspec.Struct, frozen=True):
    """The items of an export, and the names of the edges that the schema has."""

    entities: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    edge_names: frozenset[str]

    def moment(self) -> str:
        """Return the time of the last change, so that the same facts give the same file."""
        return max((moment_of(one) for one in self.entities), default=EPOCH)


def moment_of(entity: dict[str, Any]) -> str:
    """Return the time of the last change of an entity."""
    return str(entity.get("updated_at") or entity.get("created_at") or EPOCH)


def attributes_of(
    graph: Graph, entity: dict[str, Any], taken: AbstractSet[str] = frozenset(), *, has_lists: bool = False
) -> dict[str, Any]:
    """Return the attributes that can be keys of a format: texts, and lists of texts where the format has them.

    ``taken`` are the folded keys that mean something else there.
    """
    found: dict[str, Any] = {}
    for name, value in sorted(entity.get("attributes", {}).items()):
        key = folded(name)
        is_edge = key.replace("-", "_") in graph.edge_names or key.startswith(("edge-", "relates-to"))
        if not _NAME.fullmatch(name) or key in taken or (key in _TAKEN) or is_edge:
            continue
        is_list = has_lists and isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)
        if (isinstance(value, str) and value.strip()) or is_list:
            found[name] = value
    return found


def status_of(entity: dict[str, Any]) -> str:
    """Return the status; one that would state an edge, such as ``superseded by X``, is cut to its first word."""
    status = str(entity["status"])
    return status.split(maxsplit=1)[0] if _SUPERSEDING.match(status.strip()) else status


def urls_of(entity: dict[str, Any]) -> list[str]:
    """Return the links of an entity that are read as URLs again; one with a space in it would be read as an id."""
    targets = ((one, parse_target(one, "")) for one in entity.get("links", ()))
    return [one for one, target in targets if target.is_url and target.text == one]


def relations(graph: Graph, ids: Collection[str]) -> Iterator[tuple[dict[str, Any], str, str]]:
    """Yield the edges between these entities that a file can state, each with its edge type and its kind.

    A kind that is the name of an edge would be read as that edge.
    """
    known = frozenset(ids)
    for edge in graph.edges:
        kind = str(edge.get("kind") or "")
        is_plain = kind == kind.strip() and kind not in graph.edge_names and not {"\n", "\r"} & {*kind}
        if {edge["from"], edge["to"]} <= known and is_statable(edge["to"]) and (edge["type"] != RELATES_TO or is_plain):
            yield edge, edge["type"], kind


def is_statable(key: str) -> bool:
    """Tell whether an id is read as one where it is the target of a link, not as a path, a URL or a wiki link."""
    target = parse_target(key, "")
    return target.text == key and not (target.is_url or target.is_path or target.fault) and "\n" not in key
