"""A whole element as KIP shows it: its id, what it is, all attributes and all metadata. Pure.

A value that is in a field of the graph and under the same name among the attributes or metadata is shown as the
latter says, as everywhere in KIP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kbcore.kip.names import LINK_ATTRIBUTES, LINK_METADATA, NODE_ATTRIBUTES, NODE_METADATA, TypeNames, is_given
from kbcore.model.graph import CLIENT, CONTESTED, Link, Node, nested
from kbcore.model.values import is_same

CONTESTED_KEY: Final = "_contested"
"""Metadata with the contested fields of an element, and what changes state of each."""
STAMPS: Final = frozenset({"created_at", "updated_at", "_created_at", "_version", CONTESTED_KEY})
"""Metadata that KB writes down of an element by itself, whatever is said of it."""


def name_of(node: Node, names: TypeNames) -> str:
    """Return the name of a concept: the id of an entity of KB's or the project's types."""
    return node.id if names.is_named_by_id(node.type) else str(node.fields.get("name", node.id))


def element_json(element: Node | Link, names: TypeNames) -> dict[str, Any]:
    """Return an element whole, the keys of its two maps in order.

    A concept is ``{id, type, name, attributes, metadata}``, a proposition ``{id, subject, predicate, object,
    attributes, metadata}``.
    """
    return node_json(element, names) if isinstance(element, Node) else link_json(element)


def node_json(node: Node, names: TypeNames) -> dict[str, Any]:
    """Return a concept whole."""
    name = name_of(node, names)
    attributes = {key: node.fields[key] for key in NODE_ATTRIBUTES if node.fields.get(key) is not None}
    if attributes.get("title") == name:
        del attributes["title"]
    given = node.fields.get("name")
    if given is not None and given != name:
        attributes["name"] = given
    attributes |= nested(node.fields, "attributes")
    return {
        "id": node.id,
        "type": names.shown(node.type),
        "name": name,
        "attributes": dict(sorted(attributes.items())),
        "metadata": _metadata(node, NODE_METADATA, {"source": node.source if is_given(node.source) else None}),
    }


def link_json(link: Link) -> dict[str, Any]:
    """Return a proposition whole."""
    attributes = {key: getattr(link, field) for key, field in LINK_ATTRIBUTES.items() if getattr(link, field)}
    source = link.statements[0].source
    said = is_given(source)
    given = {
        "source": source if said else None,
        # A sync gives no author; whoever gave a source gave the author too.
        "author": link.created_by if said and all(one.src == CLIENT for one in link.statements) else None,
        "confidence": link.fields.get("confidence"),
    }
    return {
        "id": link.id,
        "subject": link.from_id,
        "predicate": link.type,
        "object": link.to_id,
        "attributes": dict(sorted((attributes | nested(link.fields, "attributes")).items())),
        "metadata": _metadata(link, LINK_METADATA, given),
    }


def _metadata(element: Node | Link, fields: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of an element; what is in the vocabulary alone was made at no time and has no version."""
    values = {key: given[key] if key in given else getattr(element, field) for key, field in fields.items()}
    shown = {key: value for key, value in values.items() if value not in {None, ""} and (value or key != "_version")}
    shown |= nested(element.fields, "metadata")
    if contested := nested(element.fields, CONTESTED):
        shown[CONTESTED_KEY] = contested
    if shown.get("_created_at") == shown.get("created_at"):
        shown.pop("_created_at", None)
    return dict(sorted(shown.items()))


def is_restated(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether two whole elements say the same, whenever either was written."""
    return is_same(*({**element, "metadata": without_stamps(element["metadata"])} for element in (one, other)))


def without_stamps(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without what KB writes down by itself."""
    return {key: value for key, value in metadata.items() if key not in STAMPS}


def in_order(links: Iterable[Link]) -> list[Link]:
    """Return links in an order that is always the same, in which one comes before the links about it."""
    left = {link.id: link for link in sorted(links, key=lambda one: one.id)}
    found: list[Link] = []
    while left:
        ready = [one for one in left.values() if one.from_id not in left and one.to_id not in left]
        found += ready
        for link in ready:
            del left[link.id]
    return found
