"""The types of entities and edges as Markdown tables, for the page about the schema; in the schema's own order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kbcore.model.schema import Schema
from kbcore.model.schema_text import schema_json


def type_table(schema: Schema) -> str:
    """Return the entity types as a Markdown table."""
    rows = [
        (
            f"`{name}`",
            _cell(entity["description"]),
            f"`{_cell(entity['statusDefault'])}`",
            ", ".join(_attribute_words(key, one) for key, one in entity["attributes"].items()),
        )
        for name, entity in schema_json(schema)["entities"].items()
    ]
    return _table(("type", "meaning", "default status", "attributes"), rows)


def edge_table(schema: Schema) -> str:
    """Return the edge types as a Markdown table."""
    rows = []
    for name, edge in schema_json(schema)["edges"].items():
        notes = ["must not form a cycle"] * edge["acyclic"] + ["needs `kind`"] * edge["kind"]
        ends = (", ".join(edge[end]) for end in ("from", "to"))
        rows.append((f"`{name}`", *ends, _cell(edge["description"]), f"`{edge['impact']}`", "; ".join(notes)))
    return _table(("edge", "from", "to", "meaning", "impact", "notes"), rows)


def _attribute_words(name: str, attribute: Mapping[str, Any]) -> str:
    words: list[str] = [attribute["type"]] if attribute["type"] != "any" else []
    words += ["one of " + ", ".join(attribute["values"])] if attribute["values"] else []
    words += ["may hold " + ", ".join(attribute["keys"])] if attribute["keys"] else []
    words += ["required"] if attribute["required"] else []
    return f"`{_cell(name)}`" + (f" ({_cell('; '.join(words))})" if words else "")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
