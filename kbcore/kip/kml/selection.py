"""The elements that the variable of a command means: distinct, in a stable order, of the kind that it takes."""

from __future__ import annotations

from typing import Final

from kbcore.kip import syntax as s
from kbcore.kip.errors import REFERENCE, refused
from kbcore.kip.kml.command_drafts import CommandDrafts, Draft
from kbcore.kip.kml.drafts import LinkDraft, NodeDraft
from kbcore.kip.sql.projection import ValueSlice
from kbcore.text.escaping import in_quotes

_ALL: Final = ValueSlice()


def selected(work: CommandDrafts, variable: s.Variable, where: s.ClauseGroup, page: ValueSlice = _ALL) -> list[Draft]:
    """Return the elements that a variable means in the rows of WHERE, ordered by their ids, or a page of them.

    Raises: ``KipRefused``: KIP_3002 when WHERE names an element for it that does not exist, KIP_3001 when it means
    predicates.
    """
    found: list[Draft] = []
    keys = [key for row in work.solutions(where, [variable], page) if (key := row[variable.name]) is not None]
    work.look_up(keys)
    for key in keys:
        draft = work.element(key, variable.at)
        if draft is None:
            message = f"?{variable.name} means predicates, such as {in_quotes(key)}."
            raise refused(REFERENCE, message, at=variable.at, hint="Use a variable of concepts or propositions.")
        draft.at = variable.at
        found.append(draft)
    if not found:
        check_named(work, variable, where)
    return found


def concepts(work: CommandDrafts, variable: s.Variable, where: s.ClauseGroup, command: str) -> list[NodeDraft]:
    """Return the concepts that a variable means. Raises: as ``selected``; KIP_3001 when it means others."""
    found = selected(work, variable, where)
    if any(isinstance(draft, LinkDraft) for draft in found):
        message = f"?{variable.name} means propositions; {command} takes concepts."
        raise refused(REFERENCE, message, at=variable.at, hint="DELETE PROPOSITIONS takes propositions.")
    return [draft for draft in found if isinstance(draft, NodeDraft)]


def propositions(work: CommandDrafts, variable: s.Variable, where: s.ClauseGroup) -> list[LinkDraft]:
    """Return the propositions that a variable means. Raises: as ``concepts``."""
    found = selected(work, variable, where)
    if any(isinstance(draft, NodeDraft) for draft in found):
        message = f"?{variable.name} means concepts; DELETE PROPOSITIONS takes propositions."
        hint = 'Bind links to a variable in front of a triple: ?link (?s, "predicate", ?o).'
        raise refused(REFERENCE, message, at=variable.at, hint=hint)
    return [draft for draft in found if isinstance(draft, LinkDraft)]


def check_named(work: CommandDrafts, variable: s.Variable, where: s.ClauseGroup) -> None:
    """Refuse a WHERE that names one element for a variable, where there is none. Raises: ``KipRefused`` (KIP_3002)."""
    for clause in where.clauses:
        match clause:
            case s.ConceptPattern(one, matcher) if one.name == variable.name and (
                matcher.id or (matcher.type and matcher.name)
            ):
                work.concept(matcher)
            case s.LinkPattern(s.Variable(name), s.LinkId(key)) if name == variable.name:
                work.link_by_id(key)
