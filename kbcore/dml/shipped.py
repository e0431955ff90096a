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
    """A program: its name, what it does, and KB's tools that it has to be allowed to call."""

    name: str
    does: str
    tools: tuple[str, ...]


PROGRAMS: Final = (
    Shipped("sleep", "Decides what the sleep cycle leaves for judgement.", ("kb_sleep", "execute_kip")),
    Shipped("review", "Reviews a diff against the requirements.", ("kb_query",)),
    Shipped("triage", "Sorts the violations of `kb check` by what to do about them.", ("kb_check", "kb_query")),
)


def shipped_code(name: str) -> str:
    """Return the text of a shipped program. Raises: ``NotFound``."""
    names = [one.name for one in PROGRAMS]
    if name not in names:
        hint = did_you_mean(name, names) or f"There are {', '.join(PREFIX + one for one in names)}."
        raise NotFound(f"KB ships no program {in_quotes(name[:100])}.", hint=hint)
    data = pkgutil.get_data(__name__, f"programs/{name}.dml")
    assert data is not None  # noqa: S101 - the file is part of the package
    return data.decode("utf-8")
