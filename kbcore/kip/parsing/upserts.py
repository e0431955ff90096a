"""UPSERT: tokens to blocks, facts, links and metadata."""

from __future__ import annotations

from typing import Final

from kbcore.kip.parsing import literals, patterns
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.syntax import (
    Block,
    ConceptBlock,
    Count,
    LinkId,
    Object,
    Proposition,
    SetProposition,
    Target,
    Upsert,
    Upserts,
    Variable,
    WrittenLink,
)

_BLOCKS: Final = ("`CONCEPT`", "`PROPOSITION`")
_BEHIND: Final = {
    "EXPECT": "EXPECT VERSION comes directly after the matcher.",
    "WITH": "WITH METADATA comes after the brace of its block.",
    ",": "The parts of a block have no commas between them.",
}
_ONE_PREDICATE: Final = "A link to be written has one predicate, by its name; the rest belongs to WHERE."


def upserts(t: Tokens) -> Upserts:
    """Return the UPSERTs in a row that begin here. Raises: ``KipRefused``."""
    at = t.at
    found = [_upsert(t)]
    while t.is_at("UPSERT"):
        found.append(_upsert(t))
    return Upserts(tuple(found), at)


def _upsert(t: Tokens) -> Upsert:
    at = t.take("UPSERT")
    t.enter("{")
    blocks: list[Block] = []
    while t.kind != "}":
        blocks.append(_block(t, "`}`" if blocks else ""))
    if not blocks:
        raise t.unexpected(*_BLOCKS, hint='Say what to write: CONCEPT ?x { {type: "…", name: "…"} }.')
    t.leave("}")
    group = patterns.group(t) if t.accept("WHERE") else None
    metadata = _metadata(t)
    return Upsert(tuple(blocks), group, metadata, at)


def _block(t: Tokens, end: str) -> Block:
    if t.kind == "CONCEPT":
        return _concept(t)
    if t.kind == "PROPOSITION":
        return _proposition(t)
    hint = "Blocks follow each other without commas." if t.kind == "," else ""
    raise t.unexpected(*_BLOCKS, *([end] if end else []), hint=hint)


def _concept(t: Tokens) -> ConceptBlock:
    at = t.take("CONCEPT")
    handle = _handle(t)
    t.enter("{")
    if t.kind != "{":
        raise t.unexpected("`{`", hint='A block begins with its concept, in braces: { {type: "…", name: "…"} … }.')
    identity = patterns.matcher(t, identifies=True)
    version = _version(t)
    attributes, links = _sets(t, may_link=True)
    _close(t)
    return ConceptBlock(handle, identity, version, attributes, links, _metadata(t), at)


def _proposition(t: Tokens) -> Proposition:
    at = t.take("PROPOSITION")
    handle = _handle(t)
    t.enter("{")
    if t.kind != "(":
        raise t.unexpected("`(`", hint='A block begins with its link: { (?a, "…", ?b) … }.')
    fact = _fact(t)
    version = _version(t)
    attributes, _ = _sets(t, may_link=False)
    _close(t)
    return Proposition(handle, fact, version, attributes, _metadata(t), at)


def _handle(t: Tokens) -> Variable | None:
    if t.kind == "path":
        return literals.variable(t)
    if t.kind != "{":
        raise t.unexpected("a handle (?x)", "`{`", hint="A handle is `?` and a name." if t.kind == "name" else "")
    return None


def _version(t: Tokens) -> Count | None:
    if not t.accept("EXPECT"):
        return None
    t.take("VERSION")
    return literals.count(t, "a version")


def _sets(t: Tokens, *, may_link: bool) -> tuple[Object | None, tuple[SetProposition, ...]]:
    attributes: Object | None = None
    links: tuple[SetProposition, ...] = ()
    at = t.at
    while t.accept("SET"):
        if t.kind == "ATTRIBUTES" and links:
            raise t.wrong("SET ATTRIBUTES comes after SET PROPOSITIONS.", hint="Put SET ATTRIBUTES first.", at=at)
        if (t.kind == "ATTRIBUTES" and attributes) or (t.kind == "PROPOSITIONS" and links):
            raise t.wrong(f"SET {t.kind} is here twice.", hint="Put everything into one SET.", at=at)
        if t.accept("ATTRIBUTES"):
            attributes = literals.mapping(t)
        elif may_link and t.accept("PROPOSITIONS"):
            links = _entries(t)
        else:
            hint = "Links about a link are PROPOSITION blocks of their own." if t.kind == "PROPOSITIONS" else ""
            raise t.unexpected(hint=hint)
        at = t.at
    return attributes, links


def _close(t: Tokens) -> None:
    """Pass over the end of a block."""
    t.leave("}", hint=_BEHIND.get(t.kind, ""))


def _fact(t: Tokens) -> WrittenLink | LinkId:
    at = t.enter("(")
    if by_id := patterns.known_link(t, at):
        return by_id
    subject = _target(t, "`id`")
    t.take(",", hint='A link is (subject, "predicate", object).')
    if t.kind == "path":
        raise t.unexpected("a predicate in quotes", "a placeholder (:name)", hint=_ONE_PREDICATE)
    predicate = literals.text(t, "a predicate in quotes")
    t.take(",", hint=_ONE_PREDICATE)
    target = _target(t)
    t.leave(")", hint='A link is (subject, "predicate", object).')
    return WrittenLink(subject, predicate, target, at)


def _target(t: Tokens, *also: str) -> Target:
    if t.kind == "{":
        return patterns.matcher(t, identifies=True)
    if t.kind == "(":
        return _fact(t)
    return literals.variable(t, patterns.ENDS[0], *patterns.ENDS[1:], *also, hint=patterns.end_hint(t))


def _entries(t: Tokens) -> tuple[SetProposition, ...]:
    t.enter("{")
    entries: list[SetProposition] = []
    while t.is_at("("):
        at = t.enter("(")
        hint = 'A link of a concept is ("predicate", target); the concept itself is its subject.'
        if t.kind in {"path", "{", "("}:
            raise t.unexpected("a predicate in quotes", "a placeholder (:name)", hint=hint)
        predicate = literals.text(t, "a predicate in quotes")
        t.take(",", hint=hint)
        target = _target(t)
        t.leave(")", hint=hint)
        entries.append(SetProposition(predicate, target, _metadata(t), at))
        t.accept(",")
    if not entries:
        raise t.unexpected("`(`", hint='Name a link, ("predicate", target), or leave SET PROPOSITIONS out.')
    t.leave("}")
    return tuple(entries)


def _metadata(t: Tokens) -> Object | None:
    if not t.accept("WITH"):
        return None
    t.take("METADATA")
    return literals.mapping(t)
