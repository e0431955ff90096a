"""Messages for a type or predicate that a command names and that is not defined. Pure."""

from __future__ import annotations

from collections.abc import Collection

from kbcore.errors import KipRefused
from kbcore.kip.errors import TYPE_MISMATCH, Code, refused
from kbcore.kip.names import TypeNames
from kbcore.kip.syntax import Text
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean


def no_type(
    names: TypeNames, named: Text, *, also: Collection[str] = (), remedy: str = "", code: Code = TYPE_MISMATCH
) -> KipRefused:
    """Return the error for a type that there is not.

    ``also`` are types besides those of the schema, ``remedy`` a sentence after the nearest name.
    """
    hint = did_you_mean(named.value, [*names.of_kip, *also])
    if named.value in names.of_kb:
        hint = f"KIP calls it {names.shown(named.value)}."
    message = f"There is no concept type {in_quotes(named.value)}."
    return refused(code, message, at=named.at, hint=f"{hint} {remedy}".strip(), data={"type": named.value})


def no_predicate(known: Collection[str], named: Text, *, remedy: str = "", code: Code = TYPE_MISMATCH) -> KipRefused:
    """Return the error for a predicate that is not among the known ones; ``remedy`` as in ``no_type``."""
    hint = did_you_mean(named.value, known)
    message = f"There is no predicate {in_quotes(named.value)}."
    return refused(code, message, at=named.at, hint=f"{hint} {remedy}".strip(), data={"predicate": named.value})
