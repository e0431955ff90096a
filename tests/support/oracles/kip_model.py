"""KML on plain dictionaries, slow and obvious: what a store should hold after each command, and what it should answer.

It knows no KB: concepts by type and name, propositions by subject, predicate and object. A command that is refused
leaves everything as it was.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

Key = tuple[Any, ...]
"""("node", type, name), or ("link", subject, predicate, object) with keys as its ends."""


class Refused(Exception):
    """A command is refused; the text is the code."""


class Model:
    """All that a store holds, by key; each with its attributes and metadata."""

    def __init__(self, types: set[str], predicates: set[str]) -> None:
        self.types = types
        self.predicates = predicates
        self.elements: dict[Key, dict[str, dict[str, Any]]] = {}

    def run(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a command, whole or not at all. Raises: ``Refused``."""
        before = copy.deepcopy(self.elements)
        try:
            answer: dict[str, Any] = getattr(self, command["do"])(command)
        except Refused:
            self.elements = before
            raise
        return answer

    def upsert(self, command: Mapping[str, Any]) -> dict[str, Any]:
        nodes, links = [], []
        for block in command["blocks"]:
            metadata = {**command["metadata"], **block["metadata"]}
            key = tuple(block["key"])
            self.write(key, block["attributes"], metadata)
            (nodes if key[0] == "node" else links).append(key)
            for predicate, target, own in block.get("entries", ()):
                links.append(("link", key, predicate, target))
                self.write(links[-1], {}, {**metadata, **own})
        return {"nodes": nodes, "links": links}

    def write(self, key: Key, attributes: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
        if key[0] == "node" and key[1] not in self.types:
            raise Refused("KIP_2001")
        if key[0] == "link":
            if key[2] not in self.predicates:
                raise Refused("KIP_2001")
            for end in (key[1], key[3]):
                self.check_target(end)
        element = self.elements.setdefault(key, {"attributes": {}, "metadata": {}})
        element["attributes"] |= attributes
        confidence = metadata.get("confidence")
        if key[0] == "link" and type(confidence) is int and 0 <= confidence <= 1:
            metadata = {**metadata, "confidence": float(confidence)}  # the field of an edge is no whole number
        element["metadata"] |= metadata

    def check_target(self, key: Key) -> None:
        if key in self.elements:
            return
        if key[0] == "node" and key[1] not in self.types:
            raise Refused("KIP_2001")
        if key[0] == "link":
            if key[2] not in self.predicates:
                raise Refused("KIP_2001")
            for end in (key[1], key[3]):
                self.check_target(end)
        raise Refused("KIP_3002")

    def gone(self, keys: list[Key]) -> tuple[int, int]:
        """Remove elements with everything that leads to or from them."""
        leaving = set(keys)
        while more := {k for k in self.elements if k[0] == "link" and k not in leaving and {k[1], k[3]} & leaving}:
            leaving |= more
        for key in leaving:
            del self.elements[key]
        nodes = sum(key[0] == "node" for key in leaving)
        return nodes, len(leaving) - nodes

    def find(self, command: Mapping[str, Any]) -> list[Key]:
        """Return what WHERE finds: one concept, all of a type with an attribute, or all links of a predicate."""
        kind, *rest = command["where"]
        if kind == "named":
            self.check_target(("node", *rest))
            return [("node", *rest)]
        if kind == "typed":
            name, value = rest[1:]
            return [
                k
                for k, e in self.elements.items()
                if k[:2] == ("node", rest[0]) and is_equal(e["attributes"].get(name), value)
            ]
        return [k for k in self.elements if k[0] == "link" and k[2] == rest[0]]

    def delete_concepts(self, command: Mapping[str, Any]) -> dict[str, Any]:
        nodes, links = self.gone(self.find(command))
        return {"deleted_concepts": nodes, "deleted_propositions": links}

    def delete_propositions(self, command: Mapping[str, Any]) -> dict[str, Any]:
        return {"deleted_propositions": self.gone(self.find(command))[1]}

    def delete_keys(self, command: Mapping[str, Any]) -> dict[str, Any]:
        counts = {"updated_concepts": 0, "updated_propositions": 0}
        for key in self.find(command):
            members = self.elements[key][command["part"]]
            had = [name for name in command["keys"] if name in members]
            for name in had:
                del members[name]
            counts["updated_concepts" if key[0] == "node" else "updated_propositions"] += bool(had)
        return counts

    def update(self, command: Mapping[str, Any]) -> dict[str, Any]:
        found = self.find(command)
        before = copy.deepcopy(self.elements)
        skipped = 0
        for key in found:
            was = before[key]["attributes"].get(command["name"])
            if command["how"] == "add":
                if was is None:
                    skipped += 1
                    continue
                if isinstance(was, bool) or not isinstance(was, int | float):
                    raise Refused("KIP_2003")
                self.elements[key]["attributes"][command["name"]] = was + command["value"]
            else:
                value = was if command["how"] == "coalesce" and was is not None else command["value"]
                self.elements[key]["attributes"][command["name"]] = value
        updated = sum(not same(before[key], self.elements[key]) for key in found)
        return {"updated": updated, "matched": len(found)} | ({"skipped": skipped} if skipped else {})

    def merge(self, command: Mapping[str, Any]) -> dict[str, Any]:
        source, target = (("node", *command["source"]), ("node", *command["target"]))
        if not {source[1], target[1]} <= self.types:
            raise Refused("KIP_2001")
        for key in (source, target):
            self.check_target(key)
        if source == target or source[1] != target[1]:
            raise Refused("KIP_2002")
        repointed = deduplicated = 0
        conflicts: list[list[Any]] = []
        moved: dict[Key, Key | None] = {source: target}
        pending = [source]
        while pending:
            end = pending.pop(0)
            for key in [k for k in self.elements if k[0] == "link" and end in (k[1], k[3]) and k not in moved]:
                ends = [moved.get(one, one) for one in (key[1], key[3])]
                if any(one is None for one in ends) or (ends[0] == ends[1] and key[1] != key[3]):
                    moved[key] = None
                    continue
                new: Key = ("link", ends[0], key[2], ends[1])
                there = self.elements.get(new) if new != key else None
                old = self.elements[key]
                if there is None:
                    self.elements[new] = copy.deepcopy(old)
                else:
                    wins = sureness(old) > sureness(there)
                    conflicts += joined(there, old, wins=wins)
                repointed, deduplicated = repointed + (there is None), deduplicated + (there is not None)
                moved[key] = new
                pending.append(key)
        kept, lost = self.elements[target], self.elements[source]
        aliases = [*listed(kept["attributes"].get("aliases")), source[2], *listed(lost["attributes"].get("aliases"))]
        lost = {
            "metadata": lost["metadata"],
            "attributes": {k: v for k, v in lost["attributes"].items() if k != "aliases"},
        }
        missing = sum(v is not None and kept["attributes"].get(k) is None for k, v in lost["attributes"].items())
        wins = 0 <= sureness(kept) < sureness(lost)
        conflicts += joined(kept, lost, wins=wins)
        kept["attributes"]["aliases"] = [one for one in dict.fromkeys(aliases) if one != target[2]]
        self.gone([source])
        reported = {"links_repointed": repointed, "links_deduplicated": deduplicated, "attributes_filled": missing}
        return {"merged": True, "merged_concepts": 1, **reported, "conflicts": in_order(conflicts)}


def sureness(element: Mapping[str, Any]) -> float:
    confidence = element["metadata"].get("confidence")
    return -1 if confidence is None else confidence


def joined(kept: dict[str, Any], gone: Mapping[str, Any], *, wins: bool) -> list[list[Any]]:
    """Have one element say what another one said; return key, value that stays and the other where they differ."""
    found = []
    for part in ("attributes", "metadata"):
        for key, value in gone[part].items():
            own = kept[part].get(key)
            if own is None and value is not None and (key != "confidence" or part != "metadata" or wins):
                kept[part][key] = value
            elif own is not None and value is not None and not same(own, value):
                found.append([f"{part}.{key}", value, own] if wins else [f"{part}.{key}", own, value])
                kept[part][key] = value if wins else own
    return found


def in_order(conflicts: list[list[Any]]) -> list[list[Any]]:
    return sorted(conflicts, key=lambda one: json.dumps(one, sort_keys=True))


def listed(value: Any) -> list[Any]:
    return [] if value is None else list(value)


def is_equal(one: Any, number: float) -> bool:
    """Tell whether FILTER finds a value equal to a number: 1 is 1.0, and true is neither."""
    return not isinstance(one, bool) and bool(one == number)


def same(one: Any, other: Any) -> bool:
    """Tell whether two JSON values are equal; true is not 1, and neither is 1.0."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)
