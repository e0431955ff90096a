"""Files read by one entry of ``sources``, given as its settings."""

from __future__ import annotations

import json
from typing import Any

from kbcore.config.settings import parse_config
from kbcore.extract.facts import Facts, SourceFile
from kbcore.extract.sources.extractor import EXTRACTOR


def read(path: str, text: str | bytes, **entry: Any) -> Facts:
    """Return what a file states by an entry, which is checked as that of a settings file is."""
    config = parse_config(json.dumps({"sources": [entry]}), "config.json")
    data = text if isinstance(text, bytes) else text.encode()
    return EXTRACTOR.extract(SourceFile(path, data), config.sources[0])


def fields(facts: Facts) -> dict[str, dict[str, Any]]:
    """Return the fields of each entity by its id, without the reference to its text."""
    return {
        one.id: {"type": one.type, **{key: value for key, value in one.fields.items() if key != "text_ref"}}
        for one in facts.entities
    }


def edges(facts: Facts) -> set[tuple[str, str | None, str, str]]:
    """Return the links as (from, edge, kind, to), turned as they are meant."""
    return {
        (one.target, one.type, one.kind, one.subject) if one.reverse else (one.subject, one.type, one.kind, one.target)
        for one in facts.links
    }


def codes(facts: Facts) -> list[str]:
    return [one.code for one in facts.problems]
