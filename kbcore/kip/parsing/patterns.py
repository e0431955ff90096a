"""WHERE and its parts, but for conditions: tokens to groups, clauses, matchers, links and predicates."""

from __future__ import annotations

from typing import Final

from kbcore import limits
from kbcore.kip.errors import RESOURCE, SYNTAX, placing, refused
from kbcore.kip.parsing import literals
from kbcore.kip.parsing.filters import condition
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.syntax import (
    Clause,
    ClauseGroup,
    ConceptPattern,
    Count,
    FilterClause,
    Hops,
    LinkId,
    LinkPattern,
    Matcher,
    Not,
    Optional,
    Predicate,
    PredicateNames,
    Term,
    Text,
    Triple,
    Union,
    Variable,
)

CLAUSES: Final = ("a variable (?x)", "`(`", "`FILTER`", "`NOT`", "`OPTIONAL`", "`UNION`")
ENDS: Final = ("a variable (?x)", "`{`", "`(`")
_GROUPS: Final[dict[str, type[Not | Optional | Union]]] = {"NOT": Not, "OPTIONAL": Optional, "UNION": Union}
_KEYS: Final = frozenset({"id", "type", "name"})
_KEY_HINT: Final = "A matcher is {id: …}, {type: …}, {name: …} or {type: …, name: …}; its keys have no quotes."
_NO_COMMA: Final = "Clauses follow each other without commas."
_BARE_PREDICATE: Final = 'A predicate is written in double quotes: (?a, "knows", ?b).'


def where(t: Tokens, hint: str = "") -> ClauseGroup:
    """Return the group after WHERE, which is required here. Raises: ``KipRefused``."""
    t.take("WHERE", hint=hint)
    return group(t)


def group(t: Tokens) -> ClauseGroup:
    """Return the clauses between two braces. Raises: ``KipRefused``."""
    at = t.enter("{")
    clauses: list[Clause] = []
    while t.kind != "}":
        clauses.append(_clause(t, "`}`" if clauses else ""))
    if not clauses:
        raise t.unexpected(*CLAUSES, hint="A group has at least one clause.")
    t.leave("}")
    return ClauseGroup(tuple(clauses), at)


def _clause(t: Tokens, end: str) -> Clause:
    kind, at = t.kind, t.at
    if kind == "path":
        variable = literals.variable(t)
        if t.kind == "{":
            return ConceptPattern(variable, matcher(t), at)
        if t.kind != "(":
            raise t.unexpected(
                "`{`", "`(`", hint='After the variable comes what it matches: ?x {type: "…"}, or ?l (?a, "…", ?b).'
            )
        return LinkPattern(variable, triple(t), at)
    if kind == "(":
        return LinkPattern(None, triple(t), at)
    if kind == "FILTER":
        t.advance()
        t.enter("(", hint='A condition is written in parentheses: FILTER(?x.name == "…").')
        holds = condition(t)
        t.leave(")")
        return FilterClause(holds, at)
    if kind in _GROUPS:
        t.advance()
        return _GROUPS[kind](group(t), at)
    raise t.unexpected(*CLAUSES, *([end] if end else []), hint=_NO_COMMA if kind == "," else "")


def matcher(t: Tokens, *, identifies: bool = False) -> Matcher:
    """Return the content of the braces of a concept. Raises: ``KipRefused``.

    With ``identifies`` it must be an id alone, or type and name, as in writes.
    """
    at = t.enter("{")
    found: dict[str, Text] = {}
    while True:
        key = _matcher_key(t, found)
        t.colon()
        what = "an id in quotes" if key == "id" else f"a {key} in quotes"
        found[key] = literals.text(t, what)
        if t.kind == "," and "id" in found:
            raise t.unexpected("`}`", hint="An id is used alone: it names one concept.")
        if len(found) == 2 or "id" in found or not t.accept(","):  # noqa: PLR2004 - type and name
            break
    if identifies and "id" not in found and len(found) < 2:  # noqa: PLR2004 - type and name
        hint = 'A concept is named by {type: "…", name: "…"}, or by {id: "…"}.'
        raise t.wrong(f"`{next(iter(found))}` alone names no single concept.", hint=hint, at=at)
    t.leave("}")
    return Matcher(found.get("id"), found.get("type"), found.get("name"), at)


def _matcher_key(t: Tokens, found: dict[str, Text]) -> str:
    word = t.word
    if t.kind != "name" or word not in _KEYS or word in found or (found and word == "id"):
        left = [f"`{key}`" for key in ("id", "type", "name") if key not in found and (not found or key != "id")]
        again = f"`{word}` is here twice." if word in found else ""
        bare = "No comma follows the last key of a matcher." if found and t.kind == "}" else _KEY_HINT
        raise t.unexpected(*(left or ["`}`"]), hint=again or bare)
    t.advance()
    return word


def triple(t: Tokens) -> Triple | LinkId:
    """Return a pattern of links, or a link known by its id. Raises: ``KipRefused``."""
    at = t.enter("(")
    if by_id := known_link(t, at):
        return by_id
    subject = end(t, "`id`")
    t.take(",", hint=_between(t))
    predicate = _predicate(t)
    t.take(",", hint=_between(t))
    target = end(t)
    t.leave(")", hint='A link is (subject, "predicate", object).' if t.kind == "," else _between(t))
    return Triple(subject, predicate, target, at)


def known_link(t: Tokens, at: int) -> LinkId | None:
    """Return the link that is known by its id, if `id` comes after the parenthesis. Raises: ``KipRefused``."""
    if t.kind != "name" or t.word != "id":
        return None
    t.advance()
    t.colon()
    link_id = LinkId(literals.text(t, "an id in quotes"), at)
    t.leave(")")
    return link_id


def _between(t: Tokens) -> str:
    if t.kind in {"{", "("}:
        return "A matcher inside of a link has no variable: give it a clause of its own."
    return 'A link is (subject, "predicate", object).'


def end(t: Tokens, *also: str) -> Term:
    """Return an end of a link: a variable, a matcher or another link. Raises: ``KipRefused``."""
    if t.kind == "{":
        return matcher(t)
    if t.kind == "(":
        return triple(t)
    return literals.variable(t, ENDS[0], *ENDS[1:], *also, hint=end_hint(t))


def end_hint(t: Tokens) -> str:
    """Return the remedy for a text where an end of a link is meant."""
    is_text = t.kind in {"plain", "string", "parameter", "name"}
    return 'Name a concept by {type: "…", name: "…"}, or by a variable.' if is_text else ""


def _predicate(t: Tokens) -> Predicate:
    at = t.at
    if t.kind == "path":
        variable: Variable = literals.variable(t)
        if t.kind in {"{", "|"}:
            raise t.unexpected("`,`", hint="Hops and alternatives belong to predicates in quotes, not to variables.")
        return variable
    if t.kind not in {"plain", "string", "parameter"}:
        raise t.unexpected("a predicate in quotes", "a variable (?p)", "a placeholder (:name)", hint=_BARE_PREDICATE)
    names = [literals.text(t)]
    if t.kind == "{":
        return _hops(t, names[0])
    while t.accept("|"):
        names.append(literals.text(t, "a predicate in quotes"))
    if t.kind == "{":
        raise t.unexpected(
            "`,`", "`|`", hint="Hops do not go with alternatives: write one link for each predicate, in a UNION."
        )
    return PredicateNames(tuple(names), at)


def _hops(t: Tokens, name: Text) -> Hops:
    t.enter("{")
    if t.kind == ",":
        raise t.unexpected("a number of hops", hint="Write the fewest hops too: {0,3} or {1,3}.")
    least = _bound(t)
    most: Count | None = least
    if t.accept(","):
        most = None if t.kind == "}" else _bound(t)
    t.leave("}")
    hops = Hops(name, least, most, name.at)
    with placing(t.text):
        check_hops(hops)
    return hops


def _bound(t: Tokens) -> Count:
    return literals.count(t, "a number of hops")


def check_hops(hops: Hops) -> None:
    """Refuse numbers of hops that are too many or in the wrong order; those still open are left.

    Raises: ``KipRefused``.
    """
    least, most = hops.least, hops.most
    for bound in (least, most):
        if bound and bound.value > limits.MAX_KIP_HOPS:
            message = f"A path has at most {limits.MAX_KIP_HOPS} hops."
            raise refused(RESOURCE, message, at=bound.at, hint="Ask for fewer hops, or in several steps.")
    if most and not least.parameter and not most.parameter and least.value > most.value:
        message = f"The fewest hops ({least.value}) are more than the most ({most.value})."
        raise refused(SYNTAX, message, at=least.at, hint="Write {fewest,most}.")
