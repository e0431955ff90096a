"""The programs that KB ships, by name: each is a file of the folder ``programs``."""

from __future__ import annotations

import pkgutil
from typing import Final

import msgspec

from kbcore.errors import NotFound
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean

PREFIX: Final = "kb:"
"""Begins the name of a shipped program where a file could be named as well."""


class Shipped(msgspec.Struct, frozen=True):
    """A program: its name, KB's tools that it calls, and those of them that have to be allowed to write."""

    name: str
    tools: tuple[str, ...]
    writing: tuple[str, ...] = ()


PROGRAMS: Final = (
    Shipped("sleep", ("kb_sleep", "execute_kip"), ("execute_kip",)),
    Shipped("review", ("kb_query",)),
    Shipped("triage", ("kb_check",)),
)


def shipped(name: str) -> Shipped:
    """Return a shipped program. Raises: ``NotFound``."""
    found = {one.name: one for one in PROGRAMS}
    if name not in found:
        hint = did_you_mean(name, [*found]) or f"There are {', '.join(PREFIX + one for one in found)}."
        raise NotFound(f"KB ships no program {in_quotes(name[:100])}.", hint=hint)
    return found[name]


def shipped_code(name: str) -> str:
    """Return the text of a shipped program. Raises: ``NotFound``."""
    data = pkgutil.get_data(__name__, f"programs/{shipped(name).name}.dml")
    assert data is not None  # noqa: S101 - the file is part of the package
    return data.decode("utf-8")
