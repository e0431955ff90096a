"""Random commands of KML: as data for the model, and as text for KB."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.oracles.kip_model import Key

TYPES = ("Person", "Domain", "Taste")
PREDICATES = ("likes", "mentions")
DEFINED = (
    'UPSERT { CONCEPT { {type: "$ConceptType", name: "Taste"} } CONCEPT { {type: "$PropositionType", name: "likes"} } }'
)
_NAMES = ("n1", "n2", "n3", 'n "4"')
_KEYS = ("a", "b", "status", "priority", "tags", "title", "name")
_VALUES: tuple[Any, ...] = (1, 2, "x", "y", None, ["t"], {"k": [1, None]}, 0.5, True, "")
_METADATA = ("m", "confidence", "status")
_CONFIDENCES = (0, 1, 0.25, 0.5, None)
"""All else is refused, which tests/core/kip/kml/test_refusals.py looks at."""


class Dice:
    """Draws commands; most of what they name exists, some does not."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def command(self, known: list[Key]) -> dict[str, Any]:
        """Return a command; ``known`` are the elements there are."""
        draws: dict[Callable[[list[Key]], dict[str, Any]], int] = {
            self.upsert: 10,
            self.delete_concepts: 1,
            self.delete_propositions: 1,
            self.delete_keys: 2,
            self.update: 3,
            self.merge: 2,
        }
        [draw] = self.random.choices(list(draws), weights=list(draws.values()))
        return draw(known)

    def node(self, known: list[Key]) -> Key:
        nodes = [key for key in known if key[0] == "node"]
        if nodes and self.random.random() < 0.8:
            return self.random.choice(nodes)
        wrong = self.random.random() < 0.03
        return ("node", "Nope" if wrong else self.random.choice(TYPES), self.random.choice(_NAMES))

    def predicate(self) -> str:
        return "nope" if self.random.random() < 0.02 else self.random.choice(PREDICATES)

    def target(self, known: list[Key], depth: int = 0) -> Key:
        links = [key for key in known if key[0] == "link"]
        if depth < 2 and self.random.random() < 0.25:
            if links and self.random.random() < 0.9:
                return self.random.choice(links)
            return ("link", self.target(known, depth + 1), self.predicate(), self.target(known, depth + 1))
        return self.node(known)

    def members(self, keys: tuple[str, ...], most: int = 3) -> dict[str, Any]:
        drawn = [self.random.choice(keys) for _ in range(self.random.randint(0, most))]
        return {key: self.random.choice(_CONFIDENCES if key == "confidence" else _VALUES) for key in drawn}

    def upsert(self, known: list[Key]) -> dict[str, Any]:
        blocks, there = [], list(known)
        for _ in range(self.random.randint(1, 3)):
            block: dict[str, Any] = {"attributes": self.members(_KEYS), "metadata": self.members(_METADATA, 1)}
            if self.random.random() < 0.7:
                block["key"] = self.node(there if self.random.random() < 0.4 else [])
                entries = [(self.predicate(), self.target(there), self.members(_METADATA, 1)) for _ in range(2)]
                block["entries"] = entries if self.random.random() < 0.6 else []
            else:
                block["key"] = ("link", self.target(there), self.predicate(), self.target(there))
            blocks.append(block)
            there.append(block["key"])
        return {"do": "upsert", "blocks": blocks, "metadata": self.members(_METADATA, 2)}

    def where(self, known: list[Key], kinds: tuple[str, ...]) -> tuple[Any, ...]:
        kind = self.random.choice(kinds)
        if kind == "named":
            return (kind, *self.node(known)[1:])
        if kind == "typed":
            return (kind, self.random.choice(TYPES), self.random.choice(_KEYS), self.random.choice((1, 2, "x", "y")))
        return (kind, self.random.choice(PREDICATES))

    def delete_concepts(self, known: list[Key]) -> dict[str, Any]:
        return {"do": "delete_concepts", "where": self.where(known, ("named", "typed"))}

    def delete_propositions(self, known: list[Key]) -> dict[str, Any]:
        return {"do": "delete_propositions", "where": self.where(known, ("links",))}

    def delete_keys(self, known: list[Key]) -> dict[str, Any]:
        part = self.random.choice(("attributes", "metadata"))
        keys = self.random.sample(_KEYS if part == "attributes" else _METADATA, 2)
        where = self.where(known, ("named", "typed", "links"))
        return {"do": "delete_keys", "part": part, "keys": keys, "where": where}

    def update(self, known: list[Key]) -> dict[str, Any]:
        how = self.random.choice(("set", "add", "coalesce"))
        value = self.random.choice((1, 2, 0.5)) if how != "set" else self.random.choice(_VALUES)
        where = self.where(known, ("named", "typed", "links"))
        return {"do": "update", "name": self.random.choice(_KEYS), "how": how, "value": value, "where": where}

    def merge(self, known: list[Key]) -> dict[str, Any]:
        return {"do": "merge", "source": self.node(known)[1:], "target": self.node(known)[1:]}


def text_of(command: Mapping[str, Any]) -> str:
    """Return a command as text."""
    what = command["do"]
    if what == "upsert":
        return _upsert(command)
    if what == "merge":
        source, target = (f"?{name} {_matcher(*command[part])}" for name, part in (("s", "source"), ("t", "target")))
        return f"MERGE CONCEPT ?s INTO ?t WHERE {{ {source} {target} }}"
    where = f"WHERE {{ {_where(command['where'])} }}"
    if what == "delete_concepts":
        return f"DELETE CONCEPT ?x DETACH {where}"
    if what == "delete_propositions":
        return f"DELETE PROPOSITIONS ?x {where}"
    if what == "delete_keys":
        return f"DELETE {command['part'].upper()} {{{', '.join(map(json.dumps, command['keys']))}}} FROM ?x {where}"
    name, value = command["name"], json.dumps(command["value"])
    path = f"?x.attributes.{name}"
    part = {"set": value, "add": f"ADD({path}, {value})", "coalesce": f"COALESCE({path}, {value})"}[command["how"]]
    return f"UPDATE ?x SET ATTRIBUTES {{ {name}: {part} }} {where}"


def _upsert(command: Mapping[str, Any]) -> str:
    handles: dict[Key, str] = {}
    parts = []
    for number, block in enumerate(command["blocks"]):
        sets = f" SET ATTRIBUTES {json.dumps(block['attributes'])}" if block["attributes"] else ""
        metadata = _metadata(block["metadata"])
        what, identity = "CONCEPT", ""
        if block["key"][0] == "node":
            identity = _matcher(*block["key"][1:])
            entries = "".join(
                f" ({json.dumps(predicate)}, {_end(target, handles)}){_metadata(own)}"
                for predicate, target, own in block["entries"]
            )
            sets += f" SET PROPOSITIONS {{{entries} }}" if entries else ""
        else:
            what, identity = "PROPOSITION", _fact(block["key"], handles)
        parts.append(f"{what} ?h{number} {{ {identity}{sets} }}{metadata}")
        handles.setdefault(tuple(block["key"]), f"?h{number}")
    return f"UPSERT {{ {' '.join(parts)} }}{_metadata(command['metadata'])}"


def _metadata(members: Mapping[str, Any]) -> str:
    return f" WITH METADATA {json.dumps(members)}" if members else ""


def _matcher(kind: str, name: str) -> str:
    return f"{{type: {json.dumps(kind)}, name: {json.dumps(name)}}}"


def _fact(key: Key, handles: Mapping[Key, str]) -> str:
    return f"({_end(key[1], handles)}, {json.dumps(key[2])}, {_end(key[3], handles)})"


def _end(key: Key, handles: Mapping[Key, str]) -> str:
    if key in handles:
        return handles[key]
    return _matcher(*key[1:]) if key[0] == "node" else _fact(key, handles)


def _where(where: tuple[Any, ...]) -> str:
    kind, *rest = where
    if kind == "named":
        return f"?x {_matcher(*rest)}"
    if kind == "typed":
        return f"?x {{type: {json.dumps(rest[0])}}} FILTER(?x.attributes.{rest[1]} == {json.dumps(rest[2])})"
    return f'?x (?s, "{rest[0]}", ?o)'
