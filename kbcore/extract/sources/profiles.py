"""The profiles: settings of a source by name, each a JSON file that KB ships.

A file has ``description``, ``documentation`` (an address), ``source`` (an entry of ``sources``, its ``glob`` the usual
place), and ``signs``, by which such documents are recognised.
"""

from __future__ import annotations

import json
import pkgutil
from functools import cache
from typing import Any, Final

NAMES: Final = (
    *("adr-tools", "madr", "log4brains", "eip", "pep", "rust-rfc", "kep"),
    *("openspec", "spec-kit", "kiro", "backlog", "backstage"),
    *("doorstop", "strictdoc", "openfasttrace", "sphinx-needs", "reqif", "table"),
    *("jira-csv", "github-issues", "mkdocs", "sphinx"),
)
"""All profiles, by the files in the folder ``profiles``."""


@cache
def read(name: str) -> dict[str, Any]:
    """Return the profile of one of the names."""
    data = pkgutil.get_data(__name__, f"profiles/{name}.json")
    assert data is not None  # noqa: S101 - the file is part of the package
    found: dict[str, Any] = json.loads(data)
    return found
