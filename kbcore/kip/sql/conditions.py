"""Conditions of FILTER: two-valued, where SQL knows a third. Pure.

What is made here may be null instead of false; only where that would make a difference, after ``!``, is it made false.
"""

from __future__ import annotations

from typing import Final

from kbcore.kip import syntax as s
from kbcore.kip.sql.relation import Bound
from kbcore.kip.sql.statement import SqlStatement
from kbcore.kip.sql.values import compared, constant, is_member, operand

_SIGNS: Final = {"==": "=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_TESTS: Final = {
    "CONTAINS": "contains",
    "STARTS_WITH": "starts_with",
    "ENDS_WITH": "ends_with",
    "REGEX": "regexp_matches",
}


def truth(st: SqlStatement, columns: dict[str, Bound], condition: s.Condition) -> str:
    """Return the condition over the columns of a relation, which is true exactly where KIP says so."""
    match condition:
        case s.AllOf(conditions) | s.AnyOf(conditions):
            word = " and " if isinstance(condition, s.AllOf) else " or "
            return f"({word.join(truth(st, columns, one) for one in conditions)})"
        case s.Negation(inner):
            return _not(truth(st, columns, inner))
        case s.Comparison(sign, left, right):
            one, other = operand(st, columns, left), operand(st, columns, right)
            return _not(compared(st, "=", one, other)) if sign == "!=" else compared(st, _SIGNS[sign], one, other)
        case s.IsIn(of, values):
            one = operand(st, columns, of)
            return f"({' or '.join(compared(st, '=', one, constant(st, value)) for value in values.json) or 'false'})"
        case s.IsNull(of, negated):
            is_null = operand(st, columns, of).is_null
            return f"(not {is_null})" if negated else is_null
        case s.TextTest(function, text, pattern):
            one, other = operand(st, columns, text), operand(st, columns, pattern)
            parts = [f"{_TESTS[function]}({one.text}, {other.text})"] if one.text and other.text else []
            parts += is_member(one, other) if function == "CONTAINS" else []
            return f"({' or '.join(parts)})" if parts else "false"


def _not(condition: str) -> str:
    return f"(not coalesce({condition}, false))"
