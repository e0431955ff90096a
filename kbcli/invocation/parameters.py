"""Values that are typed as ``NAME=VALUE``: JSON where the value is JSON, else text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kbcore.errors import InvalidQuery
from kbcore.text import json_reader
from kbcore.text.escaping import in_quotes

_JSON: Final = frozenset('{["-0123456789tfn')
"""The characters that a JSON value begins with."""


def parameters_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the parameters that are given as ``NAME=VALUE``: JSON where the value is JSON, else text.

    Raises: ``InvalidQuery``.
    """
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        name = name.strip().removeprefix(":")
        if not equals or not name:
            hint = 'For example --param name=Alice, or --param \'tags=["a", "b"]\'.'
            raise InvalidQuery(f"--param {in_quotes(word[:100])} is no NAME=VALUE.", hint=hint)
        if name in found:
            raise InvalidQuery(f"--param {in_quotes(name[:100])} is given twice.", hint="Leave one of the two out.")
        found[name] = value_of(value)
    return found


def value_of(text: str) -> Any:
    """Return the value that a text is as JSON, else the text."""
    if text[:1] not in _JSON:
        return text
    tree = json_reader.read(text)
    return text if tree.problems else tree.root
