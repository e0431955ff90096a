"""Expressions that FIND and ORDER BY may use for the variables of WHERE, and the size limits of a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kbcore import limits
from kbcore.kip import scoping
from kbcore.kip import syntax as s
from kbcore.kip.errors import RESOURCE, SYNTAX, refused
from kbcore.kip.steps import MAPS, Kinds, Translation

_CLAUSES: Final = (s.Matcher, s.Triple, s.LinkId, s.FilterClause, s.Not, s.Optional, s.Union)
_CONDITIONS: Final = (s.Comparison, s.TextTest, s.IsIn, s.IsNull)


def check_size(asked: s.FindCommand | s.ClauseGroup) -> None:
    """Refuse what would take the database too long to plan. Raises: ``KipRefused`` with KIP_4002."""
    shown = (*asked.find, *asked.order) if isinstance(asked, s.FindCommand) else ()
    parts = [*scoping.parts_of(asked.where if isinstance(asked, s.FindCommand) else asked)]
    _check_count([one for one in parts if isinstance(one, _CLAUSES)], limits.MAX_KIP_CLAUSES, "patterns and groups")
    wording = "conditions"
    hint = 'Compare with a list, IN(?x.name, ["a", "b"]), or split the command into several.'
    _check_count([one for one in parts if isinstance(one, _CONDITIONS)], limits.MAX_KIP_CONDITIONS, wording, hint)
    values = [one.values for one in parts if isinstance(one, s.IsIn) for _ in one.values.json]
    _check_count(values, limits.MAX_KIP_VALUES, "values in lists", "Ask for a part of them at a time.")
    _check_count(shown, limits.MAX_KIP_EXPRESSIONS, "expressions", "FIND the whole element, ?x, or its ?x.attributes.")


def _check_count(found: Sequence[Any], most: int, what: str, hint: str = "") -> None:
    if len(found) > most:
        message = f"The command has {len(found)} {what}; the limit is {most}."
        raise refused(RESOURCE, message, at=found[most].at, hint=hint or "Split it into several commands.")


def check_query(translation: Translation, query: s.FindCommand, bound: Kinds) -> None:
    """Refuse what a FIND cannot ask for; ``bound`` are the variables of WHERE.

    Raises: ``KipRefused`` with KIP_3001 for a variable that is not bound, KIP_1001 for the rest.
    """
    clauses = query.where.clauses
    for one in (*query.find, *(sort.key for sort in query.order)):
        translation.check_path(one.path if isinstance(one, s.Aggregate) else one, bound, clauses)
    for one in query.find:
        if isinstance(one, s.Aggregate) and _is_map(one.path) and (one.function != "COUNT" or one.distinct):
            raise _of_a_map(one.path, f"{one.function} takes single values")
    found = {_plainly(one) for one in query.find}
    for sort in query.order:
        if isinstance(sort.key, s.Path):
            if _is_map(sort.key):
                raise _of_a_map(sort.key, "ORDER BY takes single values")
        elif _plainly(sort.key) not in found:
            wording = f"ORDER BY names {sort.key.function}(…), which FIND does not ask for."
            hint = "Put the same aggregate into FIND(…) as well."
            raise refused(SYNTAX, wording, at=sort.key.at, hint=hint)


def check_variables(variables: tuple[s.Variable, ...], where: s.ClauseGroup, bound: Kinds) -> None:
    """Refuse a variable that WHERE does not bind. Raises: ``KipRefused`` with KIP_3001."""
    for one in variables:
        if one.name not in bound:
            raise scoping.unbound(one.name, one.at, bound, where.clauses)


def _plainly(expression: s.Expression) -> tuple[Any, ...]:
    if isinstance(expression, s.Path):
        return expression.variable, expression.parts
    return expression.function, expression.distinct, expression.path.variable, expression.path.parts


def _is_map(path: s.Path) -> bool:
    return len(path.parts) == 1 and path.parts[0] in MAPS


def _of_a_map(path: s.Path, wording: str) -> Exception:
    shown = f"?{path.variable}.{path.parts[0]}"
    return refused(
        SYNTAX, f"{wording}, and {shown} is a map.", at=path.at, hint=f"Name a key of it, such as {shown}.name."
    )
