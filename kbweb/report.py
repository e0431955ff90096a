"""The report of a branch as one HTML file, which needs neither a network nor a server.

A file has a limit. What does not fit is left out in steps; the report says what is missing and what shows it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from markupsafe import Markup

from kbcore.errors import InvalidQuery
from kbcore.model.schema import ASPECTS
from kbcore.pages.branch_report import BranchReport
from kbweb.contents import WHOLE, Detail, by_rule, by_type, changed_fields, entity_html, requirement_lines
from kbweb.links import FileLinks
from kbweb.rendering import asset, render

MAX_BYTES: Final = 5_000_000
"""The size of a report."""
GENERATOR: Final = '<meta name="generator" content="kb '
"""What is in each report, by which one is recognized."""
MAX_PICTURES: Final = 1_000
"""Pictures of a report: with more entities it has none."""
_TITLES: Final = {
    "overview": "Overview",
    "coverage": "Coverage",
    "requirements": "Requirements",
    "violations": "Violations",
    "conflicts": "Conflicts",
    "changes": "Changes",
    "entities": "Entities",
}


class _Level(msgspec.Struct, frozen=True):
    """How much a report shows of its entities (None: they have no pages), and what it says of the rest."""

    detail: Detail | None = WHOLE
    left_out: str = ""


_SHOWS_ALL: Final = "`kb show ID` shows all."
_LEVELS: Final = (
    _Level(),
    _Level(Detail(has_picture=False), "The report has no pictures, because of its size: `kb graph ID` draws one."),
    _Level(
        Detail(has_picture=False, has_records=False),
        f"The report has no pictures and no history, because of its size: {_SHOWS_ALL}",
    ),
    _Level(
        Detail(has_picture=False, has_records=False, edges=20, names_ends=False),
        f"The report has no pictures, no history and at most 20 edges of an entity, because of its size: {_SHOWS_ALL}",
    ),
    _Level(None, f"The report has no pages of entities, because of its size: {_SHOWS_ALL}"),
)


def html_report(report: BranchReport, descriptions: Mapping[str, str], limit: int = MAX_BYTES) -> str:
    """Return the report as an HTML document of at most ``limit`` bytes; ``descriptions`` say what each rule finds.

    Raises: ``InvalidQuery`` where the pages without entities are larger.
    """
    for level in _LEVELS[len(report.entities) > MAX_PICTURES :]:
        found = _document(report, descriptions, level)
        size = len(found.encode())
        if size <= limit:
            return found
    message = f"The report takes {size:,} bytes without its entities; {limit:,} are the limit."
    raise InvalidQuery(message, hint="Choose a part with --path, or use `kb ui`, which has no such limit.")


def _document(report: BranchReport, descriptions: Mapping[str, str], level: _Level) -> str:
    shown = report.entities if level.detail else {}
    links = FileLinks(frozenset(shown))
    style, script = asset("style.css"), asset("report.js")
    names = [name for name in _TITLES if name != "changes" or report.changes is not None]
    shared = {"links": links, "overview": report.overview}
    values: dict[str, dict[str, Any]] = {
        "overview": {name: getattr(report, name) for name in ("branch", "seq", "at", "commit")},
        "coverage": {"groups": report.groups},
        "requirements": {
            "is_whole": True,
            "aspects": ASPECTS,
            "requirements": requirement_lines(report.covered.requirements),
        },
        "violations": {"violations": by_rule(report.check.violations), "descriptions": descriptions},
        "conflicts": {"conflicts": report.conflicts},
        "changes": {"since": report.since, "changes": report.changes, "fields_of": changed_fields},
        "entities": {"types": by_type(report.entities.values())},
    }
    contents = {name: Markup(render(f"{name}.html", **shared, **values[name])) for name in names}  # noqa: S704 - rendered
    detail = level.detail or WHOLE
    entities = [(links.entity(id_)[1:], entity_html(page, links, detail)) for id_, page in shown.items()]
    return render(
        "report.html",
        links=links,
        branch=report.branch,
        seq=report.seq,
        version=report.version,
        policy=f"default-src 'none'; style-src {_source(style)}; script-src {_source(script)}; base-uri 'none'",
        style=style,
        script=script,
        pages=[(name, _TITLES[name]) for name in names],
        contents=contents,
        entities=entities,
        left_out=level.left_out,
    )


def _source(text: str) -> str:
    """Return the source of a Content-Security-Policy that allows exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
