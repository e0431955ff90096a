"""The other commands that write: tokens to DELETE, UPDATE and MERGE."""

from __future__ import annotations

from typing import Any, Final, get_args

from kbcore.kip.errors import REFERENCE, refused
from kbcore.kip.parsing import literals
from kbcore.kip.parsing.filters import path
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.parsing.patterns import where
from kbcore.kip.parsing.queries import limit
from kbcore.kip.syntax import (
    Assignments,
    AttributeChange,
    Calculation,
    CalculationName,
    Delete,
    DeleteConcepts,
    DeleteKeys,
    DeletePropositions,
    JsonValue,
    Merge,
    Path,
    Text,
    Update,
)
from kbcore.text.escaping import in_quotes

_CALCULATIONS: Final[frozenset[Any]] = frozenset(get_args(CalculationName))
_PARTS: Final = ("a number", "a path on the target", "a placeholder (:name)", "`ADD`", "`MUL`", "`COALESCE`", "`CLAMP`")


def delete(t: Tokens) -> Delete:
    """Return the DELETE that begins here. Raises: ``KipRefused``."""
    at = t.take("DELETE")
    if t.accept("CONCEPT"):
        variable = literals.variable(t)
        hint = "A concept is deleted with its links: DELETE CONCEPT ?x DETACH WHERE { … }."
        t.take("DETACH", hint=hint)
        return DeleteConcepts(variable, where(t), at)
    if t.accept("PROPOSITIONS"):
        variable = literals.variable(t)
        return DeletePropositions(variable, where(t), at)
    if t.kind not in {"ATTRIBUTES", "METADATA"}:
        raise t.unexpected("`CONCEPT`", "`PROPOSITIONS`", "`ATTRIBUTES`", "`METADATA`")
    part: Any = t.kind
    t.advance()
    keys = _keys(t)
    t.take("FROM", hint=f'Say of what: DELETE {part} {{"key"}} FROM ?x WHERE {{ … }}.')
    return DeleteKeys(part, keys, literals.variable(t), where(t), at)


def _keys(t: Tokens) -> tuple[Text, ...]:
    t.enter("{")
    keys = [literals.text(t, "a key in quotes")]
    while t.accept(","):
        if t.kind == "}":
            raise t.unexpected("a key in quotes", "a placeholder (:name)", hint="No comma follows the last key.")
        keys.append(literals.text(t, "a key in quotes"))
    hint = "Keys are named without values." if t.kind in {":", "parameter"} else ""
    t.leave("}", hint=hint)
    return tuple(keys)


def update(t: Tokens) -> Update:
    """Return the UPDATE that begins here. Raises: ``KipRefused``."""
    at = t.take("UPDATE")
    variable = literals.variable(t)
    changes: dict[str, Assignments] = {}
    place = t.at
    while t.accept("SET"):
        if t.kind == "ATTRIBUTES" and "METADATA" in changes and "ATTRIBUTES" not in changes:
            raise t.wrong("SET ATTRIBUTES comes after SET METADATA.", hint="Put SET ATTRIBUTES first.", at=place)
        if t.kind in changes:
            raise t.wrong(f"SET {t.kind} is here twice.", hint="Put everything into one SET.", at=place)
        if t.kind not in {"ATTRIBUTES", "METADATA"}:
            raise t.unexpected("`ATTRIBUTES`", "`METADATA`")
        part = t.kind
        t.advance()
        changes[part] = _assignments(t, variable.name)
        place = t.at
    if not changes:
        raise t.unexpected(hint="Say what to change: UPDATE ?x SET ATTRIBUTES { … } WHERE { … }.")
    return Update(variable, changes.get("ATTRIBUTES"), changes.get("METADATA"), where(t), limit(t), at)


def _assignments(t: Tokens, target: str) -> Assignments:
    at = t.at
    if t.kind == "parameter":
        return Assignments((), at, literals.placeholder(t))
    if t.kind != "{":
        raise t.unexpected("`{`", "a placeholder (:name)")
    t.enter("{")
    found: dict[str, AttributeChange] = {}
    while t.kind != "}":
        place = t.at
        key = literals.key(t)
        if key in found:
            raise t.wrong(f"The key {in_quotes(key[:100])} is here twice.", hint=literals.TWICE, at=place)
        is_calculated = t.kind == "path" or t.kind in _CALCULATIONS
        found[key] = AttributeChange(key, _part(t, target) if is_calculated else literals.value(t), place)
        if not t.accept(","):
            break
    t.leave("}")
    return Assignments(tuple(found.values()), at)


def _part(t: Tokens, target: str) -> JsonValue | Path | Calculation:
    if t.kind in {"number", "parameter"}:
        return literals.value(t)
    if t.kind == "path":
        found = path(t)
        if found.variable != target:
            message = f"UPDATE ?{target} reads only ?{target}, not ?{found.variable}."
            hint = f"Write ?{target}, or pass the value as a parameter."
            raise t.placed(refused(REFERENCE, message, at=found.at, hint=hint))
        return found
    if t.kind not in _CALCULATIONS:
        raise t.unexpected(*_PARTS)
    function: CalculationName = t.kind  # type: ignore[assignment] # it is one of them
    at = t.take(function)
    t.enter("(")
    wanted = 3 if function == "CLAMP" else 2
    words = "a value, the least and the most" if function == "CLAMP" else "two"
    parts = [_part(t, target)]
    while len(parts) < wanted:
        t.take(",", hint=f"{function} takes {words}.")
        parts.append(_part(t, target))
    t.leave(")", hint=f"{function} takes {words}.")
    return Calculation(function, tuple(parts), at)


def merge(t: Tokens) -> Merge:
    """Return the MERGE that begins here. Raises: ``KipRefused``."""
    at = t.take("MERGE")
    t.take("CONCEPT")
    source = literals.variable(t)
    t.take("INTO", hint="Say into what: MERGE CONCEPT ?old INTO ?new WHERE { … }.")
    return Merge(source, literals.variable(t), where(t), at)
