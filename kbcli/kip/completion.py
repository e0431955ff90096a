"""Completions of the beginning of a word at the prompt: a keyword, a name of the schema, a variable, a part. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from kbcore.kip.grammar import KEYWORDS

BREAKS: Final = " \t\n(){}[],|:"
"""The characters at which words end. Quotation marks, ``?``, ``.`` and ``$`` are parts of them."""

_VARIABLE: Final = re.compile(r"\?[A-Za-z_][A-Za-z0-9_]*")
_OF_TYPE: Final = re.compile(r'(?:\btype\s*:\s*|\bTYPES?\s+)"?$')
_OF_PREDICATE: Final = re.compile(r'(?:\(\s*[^()]*,\s*|\(\s*|PROPOSITION\s+TYPE\s+|\|\s*)"?$')
_PARTS: Final = ("attributes.", "id", "metadata.", "name", "object", "predicate", "subject", "type")


class KipNames(msgspec.Struct, frozen=True):
    """The concept types and the predicates of the branch."""

    types: Sequence[str] = ()
    predicates: Sequence[str] = ()


def candidates(before: str, word: str, names: KipNames) -> list[str]:
    """Return what a word may become; ``before`` is all that was typed in front of it."""
    if word.startswith("?"):
        return _variables(before, word)
    if word.startswith('"'):
        found = names.predicates if _is_predicate(before) else names.types if _OF_TYPE.search(before) else ()
        known = found or [*names.types, *names.predicates]
        return [f'"{name}"' for name in known if name.startswith(word[1:])]
    if before.endswith(":"):
        return []  # a placeholder, whose name is the client's
    keywords = sorted(one for one in KEYWORDS if one.startswith(word.upper()) and one.isupper())
    return keywords if word else []


def _is_predicate(before: str) -> bool:
    return bool(_OF_PREDICATE.search(before)) and not _OF_TYPE.search(before)


def _variables(before: str, word: str) -> list[str]:
    variable, dot, part = word.partition(".")
    if dot:
        return [f"{variable}.{one}" for one in _PARTS if one.startswith(part)]
    return sorted({one for one in _VARIABLE.findall(before) if one.startswith(word)})
