"""The parser: a text to the tree of its one command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kbcore import limits
from kbcore.kip.parsing import queries, upserts, writes
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.syntax import Command

_COMMANDS: Final[dict[str, Callable[[Tokens], Command]]] = {
    "FIND": queries.find,
    "UPSERT": upserts.upserts,
    "DELETE": writes.delete,
    "UPDATE": writes.update,
    "MERGE": writes.merge,
    "DESCRIBE": queries.describe,
    "SEARCH": queries.search,
    "EXPORT": queries.export,
}
_ORDERS: Final = {
    "FIND": "FIND(…) WHERE { … } ORDER BY … LIMIT … CURSOR …",
    "UPSERT": "UPSERT { … } WHERE { … } WITH METADATA { … }",
    "UPDATE": "UPDATE ?x SET ATTRIBUTES { … } SET METADATA { … } WHERE { … } LIMIT …",
    "SEARCH": "SEARCH CONCEPT … WITH TYPE … WITH ATTRIBUTES MODE … THRESHOLD … LIMIT … CURSOR …",
    "EXPORT": "EXPORT ?x WHERE { … } LIMIT … CURSOR …",
}


def spans(text: str, *, most_bytes: int = limits.MAX_KIP_BYTES) -> list[tuple[int, int]]:
    """Return where each command of a text begins and ends; one ends where the next one begins, or at the end.

    UPSERTs in a row are one command. Raises: ``KipRefused`` as ``parse`` does; an offset at the end of the text says
    that more of it could make it whole.
    """
    t = Tokens(text, most_bytes=most_bytes)
    found: list[tuple[int, int]] = []
    while t.kind != "end":
        first, at = t.kind, t.at
        if first not in _COMMANDS:
            hint = _too_much(t, t.kinds[0]) if found else ""
            raise t.unexpected(*(f"`{keyword}`" for keyword in _COMMANDS), hint=hint)
        _COMMANDS[first](t)
        found.append((at, t.at))
    return found


def parse(text: str, *, lead: int = 0) -> Command:
    """Return the tree of a command, in which placeholders are still open.

    ``lead`` blanks in front of it only give it its place, and do not count as a part of it.

    Raises: ``KipRefused`` with KIP_1001 where the text is no command, KIP_4002 where it is too large or too deep.
    """
    t = Tokens(text, lead=lead)
    first = t.kind
    if first not in _COMMANDS:
        hint = "Write a command, such as DESCRIBE PRIMER." if first == "end" else ""
        raise t.unexpected(*(f"`{keyword}`" for keyword in _COMMANDS), hint=hint)
    command = _COMMANDS[first](t)
    if t.kind != "end":
        raise t.unexpected("the end of the command", hint=_too_much(t, first))
    return command


def _too_much(t: Tokens, first: str) -> str:
    """Return the remedy for what comes after a whole command."""
    if t.kind in _COMMANDS:
        begins = "One command contains only UPSERTs" if first == "UPSERT" else f"One {first} is a whole command"
        return f"{begins}; send the {t.kind} as another command of the batch."
    if first in _ORDERS and f" {t.kind} " in _ORDERS[first]:
        return f"The order is {_ORDERS[first]}, and each part is written once."
    return ""
