"""The common parts of the pages of the report and of the explorer: plain data to the values of a template, and HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec
from markupsafe import Markup

from kbcore.model.schema import ASPECTS
from kbcore.pages.entity import EdgeLine, EntityPage
from kbcore.query.coverage import Requirement
from kbcore.query.section import Arrow, Section
from kbcore.query.subject import Subject
from kbcore.query.svg_drawing import svg
from kbcore.rules import Violation
from kbweb.links import Links
from kbweb.rendering import day, render

MAX_IN_PICTURE: Final = 30
"""Entities of a picture of a report, which has many."""
MAX_CELLS: Final = 10
"""Entities that one cell of the table of requirements names."""

_REPEATED: Final = (("updated_at", "created_at"), ("text_ref", "source"), ("name", "id"))
"""Fields that are not shown where they say the same as another one."""
_TIMES: Final = frozenset({"created_at", "updated_at"})
_HIDDEN_FIELDS: Final = frozenset({"id", "title", "type", "status", "version", "contested", "links"})


class Detail(msgspec.Struct, frozen=True):
    """The extent of an entity's page: a picture, its last records, and at most so many edges."""

    has_picture: bool = True
    has_records: bool = True
    edges: int = 1_000
    names_ends: bool = True
    """The other ends of edges have their titles and statuses."""


WHOLE: Final = Detail()


class ChangedField(msgspec.Struct, frozen=True):
    """A field before and after a change; None where it was not there, or is not any more."""

    name: str
    before: Any
    after: Any


def changed_fields(change: Mapping[str, Any]) -> list[ChangedField]:
    """Return what differs in an element of a difference; of one that came or went, its type, title and status."""
    if "fields" in change:
        return [ChangedField(name, one.get("before"), one.get("after")) for name, one in change["fields"].items()]
    before, after = change["before"] or {}, change["after"] or {}
    return [
        ChangedField(name, before.get(name), after.get(name))
        for name in ("type", "title", "status")
        if name in before or name in after
    ]


class AspectCell(msgspec.Struct, frozen=True):
    """One aspect of a requirement, as the table shows it."""

    state: str
    ids: tuple[str, ...]
    more: int
    reason: str
    failing: tuple[str, ...] = ()


class RequirementLine(msgspec.Struct, frozen=True):
    """A row of the table of requirements."""

    requirement: Requirement
    cells: tuple[AspectCell, ...]

    @property
    def has_hole(self) -> bool:
        """Return whether an aspect that applies is shown by nothing."""
        return any(cell.state == "no" for cell in self.cells)


def requirement_lines(requirements: Iterable[Requirement]) -> list[RequirementLine]:
    """Return the rows of the table of requirements."""
    return [RequirementLine(one, tuple(_cell(one, aspect) for aspect in ASPECTS)) for one in requirements]


def by_rule(violations: Sequence[Violation]) -> list[tuple[str, list[Violation]]]:
    """Return violations by their rule, in the order in which they come."""
    return [(rule, list(found)) for rule, found in groupby(violations, key=lambda one: one.rule)]


def _cell(one: Requirement, aspect: str) -> AspectCell:
    ids: tuple[str, ...] = getattr(one, aspect)
    failing = tuple(test.id for test in one.failing) if aspect == "verified" else ()
    return AspectCell(
        one.state(aspect),
        ids[:MAX_CELLS],
        max(0, len(ids) - MAX_CELLS),
        one.not_applicable.get(aspect, ""),
        failing[:MAX_CELLS],
    )


class TypeSummary(msgspec.Struct, frozen=True):
    """The entities of a type: how many there are, and the names of the first ones."""

    type: str
    total: int
    names: list[Subject]


class _Shown(msgspec.Struct, frozen=True):
    """The page of an entity, as its template takes it."""

    subject: Subject
    fields: list[tuple[str, Any]]
    text: str
    directions: list[tuple[str, list[EdgeLine]]]
    names_ends: bool
    edges_left: int
    violations: tuple[Violation, ...]
    conflicts: tuple[Any, ...]
    picture: Markup
    records: tuple[Any, ...]
    records_total: int


def entity_html(page: EntityPage, links: Links, detail: Detail = WHOLE, text: str = "") -> Markup:
    """Return the page of an entity; ``text`` is that of its document."""
    skipped = {*_HIDDEN_FIELDS, "attributes", "metadata"}
    skipped |= {name for name, same in _REPEATED if page.facts.get(name) == page.facts.get(same)}
    fields = [
        (name, f"{day(value)} UTC" if name in _TIMES else value)
        for name, value in page.facts.items()
        if name not in skipped
    ]
    fields += [
        (name if prefix == "attributes" else f"{prefix}.{name}", value)
        for prefix in ("attributes", "metadata")
        for name, value in page.facts.get(prefix, {}).items()
    ]
    kept = page.edges[: detail.edges]
    shown = _Shown(
        page.subject,
        fields,
        text,
        [
            ("Edges from it", [one for one in kept if one.is_outgoing]),
            ("Edges to it", [one for one in kept if not one.is_outgoing]),
        ],
        detail.names_ends,
        len(page.edges) - len(kept),
        page.violations,
        page.conflicts,
        _picture(page, links) if detail.has_picture else Markup(),
        page.records if detail.has_records else (),
        page.records_total,
    )
    return Markup(render("entity.html", links=links, page=shown))  # noqa: S704 - rendered


def _picture(page: EntityPage, links: Links) -> Markup:
    """Return the picture of an entity and what is next to it; nothing where that is nothing, or too much to read."""
    others = {one.other.id: one.other for one in page.edges if one.other} | {page.subject.id: page.subject}
    if not page.edges or len(others) > MAX_IN_PICTURE:
        return Markup()
    arrows = sorted(
        {(one.type, one.kind, one.facts["from"], one.facts["to"], one.is_proposed) for one in page.edges if one.other}
    )
    section = Section([*others.values()], [Arrow(*one) for one in arrows], len(others), len(arrows))
    label = f"{page.subject.id} and what is next to it"
    return Markup(svg(section, page.subject.id, links.entity, label))  # noqa: S704 - it escapes its texts


def by_type(names: Iterable[Subject], most: int | None = None) -> list[TypeSummary]:
    """Return the names of entities by their type; of each type at most so many are named (None: all)."""
    found: dict[str, list[Subject]] = {}
    for one in names:
        found.setdefault(one.type, []).append(one)
    return [TypeSummary(type_, len(them), them[:most]) for type_, them in sorted(found.items())]
