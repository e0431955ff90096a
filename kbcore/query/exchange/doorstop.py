"""Files of Doorstop, one a requirement and a folder a prefix, in the form of the profile ``doorstop``. Pure.

Links of Doorstop have no type: they are the ``relates_to`` of the kind ``parent``. Other edges are in ``relations``,
and what Doorstop has no field for in fields of its own, both of which it keeps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from kbcore.extract.links import RELATES_TO
from kbcore.model.statuses import RETIRED
from kbcore.query.exchange.graph import CORE_TEXTS, TEXT, Graph, attributes_of, relations, status_of, urls_of
from kbcore.text.escaping import json_text

PARENT: Final = "parent"
_UID: Final = re.compile(r"([A-Za-z][A-Za-z0-9]*?)([-_.]?)([0-9]{1,9})")
_TAKEN: Final = frozenset(
    {
        *("active", "derived", "header", "level", "normative", "ref", "references", "reviewed", "relations", "urls"),
        *("path", "root", "uid", "document", "filename", "parent-links", "child-links", "stamp", "data", "suspect"),
    }
)
_NOT_YAML: Final = re.compile("[\U000e0000-\U000e0fff]")


def to_doorstop(graph: Graph) -> dict[str, bytes]:
    """Return the files by their paths below the folder of the export."""
    parts: dict[str, re.Match[str]] = {}
    numbers = set[tuple[str, int]]()
    separators: dict[str, str] = {}
    spelt: dict[str, str] = {}
    """The prefixes in the capitals in which they are met first: Doorstop takes others for the same."""
    digits: dict[str, int] = {}
    for entity in graph.entities:
        found = _UID.fullmatch(entity["id"])
        if found is None or (found[1].lower(), int(found[3])) in numbers:
            continue
        is_other = spelt.setdefault(found[1].lower(), found[1]) != found[1]
        if is_other or separators.setdefault(found[1], found[2]) != found[2]:
            continue
        numbers.add((found[1].lower(), int(found[3])))
        parts[entity["id"]] = found
        digits[found[1]] = max(digits.get(found[1], 0), len(found[3]))
    links: dict[str, list[str]] = {}
    others: dict[str, list[dict[str, str]]] = {}
    for edge, type_, kind in relations(graph, parts):
        if (type_, kind) == (RELATES_TO, PARENT):
            links.setdefault(edge["from"], []).append(edge["to"])
        else:
            relation = {"edge": type_, "kind": kind, "to": edge["to"]}
            others.setdefault(edge["from"], []).append({name: one for name, one in relation.items() if one})
    files: dict[str, bytes] = {}
    prefixes = sorted(digits)
    for prefix in prefixes:
        settings: dict[str, Any] = {"digits": digits[prefix], "itemformat": "yaml"}
        settings |= {"parent": prefixes[0]} if prefix != prefixes[0] else {}
        settings |= {"prefix": prefix, "sep": separators[prefix]}
        files[f"{prefix}/.doorstop.yml"] = _yaml({"settings": settings})
    counts: dict[str, int] = {}
    for entity in graph.entities:
        key = entity["id"]
        if key in parts:
            prefix = parts[key][1]
            counts[prefix] = counts.get(prefix, 0) + 1
            item = _item(graph, entity, counts[prefix], links.get(key, []), others.get(key, []))
            files[f"{prefix}/{key}.yml"] = _yaml(item)
    return files


def _item(
    graph: Graph, entity: dict[str, Any], number: int, links: list[str], others: list[dict[str, str]]
) -> dict[str, Any]:
    attributes = attributes_of(graph, entity, _TAKEN, has_lists=True)
    text = attributes.pop(TEXT, "")
    status = status_of(entity)
    item: dict[str, Any] = {
        "active": status not in RETIRED,
        "derived": False,
        "header": entity["title"],
        "level": f"1.{number}",
        "links": [{key: None} for key in links],
        "normative": True,
        "ref": "",
        "reviewed": None,
        "text": text if isinstance(text, str) else "",
        "status": status,
        "type": entity["type"],
    }
    item |= {name: entity[name] for name in (*CORE_TEXTS, "tags", "text_ref") if entity.get(name)}
    item |= {"urls": urls} if (urls := urls_of(entity)) else {}
    item |= {"relations": others} if others else {}
    return {**item, **{name: value for name, value in attributes.items() if not _NOT_YAML.search(str(value))}}


def _yaml(values: Mapping[str, Any]) -> bytes:
    """Return YAML whose texts are those of JSON, which are its texts in double quotes."""
    lines: list[str] = []
    for key, value in values.items():
        if isinstance(value, dict):
            lines.append(f"{key}:")
            lines += [f"  {name}: {_scalar(one)}" for name, one in value.items()]
        elif isinstance(value, list) and value:
            lines.append(f"{key}:")
            lines += [f"- {_scalar(one)}" for one in value]
        else:
            lines.append(f"{_key(key)}: {_scalar(value)}")
    return ("\n".join(lines) + "\n").encode()


def _key(key: str) -> str:
    return key if re.fullmatch(r"[a-z_]+", key) else _text(key)


def _text(value: Any) -> str:
    """Return a value as JSON has it, without the two characters that YAML cannot have and JSON can."""
    return json_text(value).replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")


def _scalar(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text(name)}: {_scalar(one)}" for name, one in value.items()) + "}"
    return _text(value)
