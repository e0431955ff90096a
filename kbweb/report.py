"""The report of a branch as one HTML file, which needs neither a network nor a server.

A file has a limit. What does not fit is left out in steps; the report says what is missing and what shows it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from shlex import quote
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
"""The mark in each report, by which one is recognized."""
MAX_PICTURES: Final = 1_000
"""Pictures of a report: with more entities it has none."""
MAX_PAGES: Final = 15_000
"""Pages of entities: more of them do not fit into a report, however short they are."""
_TITLES: Final = {
    "overview": "Overview",
    "coverage": "Coverage",
    "requirements": "Requirements",
    "matrices": "Matrix",
    "violations": "Violations",
    "conflicts": "Conflicts",
    "changes": "Changes",
    "entities": "Entities",
}


class _Level(msgspec.Struct, frozen=True):
    """The extent to which a report shows its entities (None: they have no pages), and what it says of the rest.

    ``rows`` is how many rows each of its lists has at most, None for all.
    """

    detail: Detail | None = WHOLE
    left_out: str = ""
    rows: int | None = None


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
    *(
        _Level(
            None,
            f"The report has no pages of entities and at most {rows:,} rows of a list, because of its size: "
            "`kb ui` shows all.",
            rows,
        )
        for rows in (3_000, 1_000, 100, 10)
    ),
)


def html_report(report: BranchReport, descriptions: Mapping[str, str], limit: int = MAX_BYTES) -> str:
    """Return the report as an HTML document of at most ``limit`` bytes; ``descriptions`` say what each rule finds.

    Raises: ``InvalidQuery`` where the first rows of each list are larger.
    """
    size = 0
    for level in _LEVELS:
        if _cannot_fit(report, level):
            continue
        found = _document(report, descriptions, level)
        size = len(found.encode())
        if size <= limit:
            return found
    message = f"The report takes {size:,} bytes with the first rows of each list; {limit:,} are the limit."
    raise InvalidQuery(message, hint="Use `kb ui` or `--format json`, which have no such limit.")


def _cannot_fit(report: BranchReport, level: _Level) -> bool:
    """Tell whether a report has more entities than a level shows, or than fit with a line for each."""
    if level.detail and not report.entities:
        return bool(report.names)
    if level.detail and level.detail.has_picture:
        return len(report.entities) > MAX_PICTURES
    return level.rows is None and len(report.names) > MAX_PAGES


def _document(report: BranchReport, descriptions: Mapping[str, str], level: _Level) -> str:
    shown = report.entities if level.detail else {}
    links = FileLinks(frozenset(shown))
    style, script = asset("style.css"), asset("report.js")
    values = _values(report, descriptions, level.rows)
    shared = {"links": links, "overview": report.overview}
    contents = {name: Markup(render(f"{name}.html", **shared, **values[name])) for name in values}  # noqa: S704 - rendered
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
        pages=[(name, _TITLES[name]) for name in values],
        contents=contents,
        entities=entities,
        notes=[one for one in (report.records_only_reason, level.left_out) if one],
        left=_left(report, level.rows) if level.rows is not None else {},
    )


def _values(report: BranchReport, descriptions: Mapping[str, str], rows: int | None) -> dict[str, dict[str, Any]]:
    """Return what the template of each page takes; a list that is cut begins with the requirements that have holes."""
    requirements = report.covered.requirements
    if rows is not None and len(requirements) > rows:
        requirements = sorted(requirements, key=lambda one: all(one.state(name) != "no" for name in ASPECTS))[:rows]
    values: dict[str, dict[str, Any]] = {
        "overview": {name: getattr(report, name) for name in ("branch", "seq", "at", "commit")},
        "coverage": {"groups": {by: groups[:rows] for by, groups in report.groups.items()}},
        "requirements": {"aspects": ASPECTS, "requirements": requirement_lines(requirements)},
        "matrices": {"matrices": report.matrices, "most": rows},
        "violations": {"violations": by_rule(report.check.violations[:rows]), "descriptions": descriptions},
        "conflicts": {"conflicts": report.conflicts[:rows]},
        "entities": {"types": by_type(report.names, rows)},
    }
    if not report.matrices:
        del values["matrices"]
    if report.changes is not None:
        kept = {name: report.changes[name][:rows] for name in ("entities", "edges")}
        values["changes"] = {"since": report.since, "changes": {**report.changes, **kept}, "fields_of": changed_fields}
    return {name: values[name] for name in _TITLES if name in values}


def _left(report: BranchReport, rows: int) -> dict[str, tuple[int, str]]:
    """Return how many rows the list of a page lacks, and the command that shows them all."""
    changes = report.changes or {"entities": (), "edges": ()}
    lists: dict[str, tuple[int, str]] = {
        "requirements": (len(report.covered.requirements), "kb coverage --by requirement"),
        "violations": (len(report.check.violations), "kb check"),
        "conflicts": (len(report.conflicts), "kb resolve"),
        "changes": (max(len(changes["entities"]), len(changes["edges"])), f"kb diff {quote(report.since)}"),
    }
    return {name: (count - rows, command) for name, (count, command) in lists.items() if count > rows}


def _source(text: str) -> str:
    """Return the source of a Content-Security-Policy that allows exactly this script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
