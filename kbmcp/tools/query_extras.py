"""Adds to the answers of ``kb_query``: the impact of a change, coverage, the body of a document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from kbcore.errors import NotFound, Problem
from kbmcp.tools.answers import Payload, fit
from kbmcp.tools.argument_models import QueryArguments
from kbmcp.tools.call import Call
from kbmcp.tools.hints import of_tools

if TYPE_CHECKING:
    from kbcore.model.graph import Node
    from kbcore.model.schema import Schema
    from kbcore.query import Query
    from kbcore.text.code_owners import CodeOwners
    from kbcore.view.view import View

BODY: Final = "body"
"""In ``fields``, together with ``body``, it means the document; else an attribute of that name."""
_IMPACT_TAKES: Final = frozenset({"impact", "ids", "depth", "limit", "at", "fields", "type"})
_COVERAGE_TAKES: Final = frozenset(
    {"coverage", "body", "type", "ids", "tags", "status", "where", "has", "lacks", "fields", "limit", "cursor", "at"}
)
_HIGHER: Final = "A higher `limit` shows the rest."
_NO_ROOM: Final = (
    "No more fits into one answer: a smaller `depth` leaves out what is farther away, and "
    + of_tools("{kb_query}")
    + " with `from`, "
    "`follow` and `depth` pages through what edges reach."
)


def misuses(asked: QueryArguments) -> Iterator[Problem]:
    """Yield the arguments that ``impact`` or ``coverage`` would pass over: the answer would be a wrong one."""
    given = {name.rstrip("_") for name in asked.model_fields_set}
    for name, takes in (("impact", _IMPACT_TAKES), ("coverage", _COVERAGE_TAKES)):
        if getattr(asked, name):
            hint = (
                f"Leave it out, or ask without `{name}`. {name.capitalize()} takes {', '.join(sorted(takes - {name}))}."
            )
            for other in sorted(given - takes):
                if getattr(asked, other, getattr(asked, f"{other}_", None)):
                    yield Problem(f"$.{other}", f"not_for_{name}", f"`{other}` does not apply to `{name}`.", hint)
    yield from _unused(asked)
    if asked.impact and len(asked.ids) != 1:
        yield Problem(
            "$.ids", "missing_argument", "`impact` needs one id in `ids`.", "The impact is that of one entity."
        )
    if asked.impact:
        yield from _unknown_fields(asked)
    if asked.coverage and asked.type not in {"", "req"}:
        yield Problem("$.type", "not_for_coverage", "`coverage` is that of requirements.", "Leave `type` out.")


def _unknown_fields(asked: QueryArguments) -> Iterator[Problem]:
    """Yield the fields and the type that entities of an impact cannot have."""
    from kbcore.query.impact import FIELDS
    from kbcore.query.keys import EDGE
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean

    if asked.type == EDGE:
        yield Problem("$.type", "not_for_impact", "An impact has no edges by themselves.", "Name a type of entities.")
    for at, name in enumerate(asked.fields):
        if name not in FIELDS:
            message = f"Entities of an impact have no field {in_quotes(name)}."
            yield Problem(f"$.fields[{at}]", "unknown_field", message, did_you_mean(name, FIELDS))


def _unused(asked: QueryArguments) -> Iterator[Problem]:
    """Yield the arguments about rows that the answer has none of."""
    from kbcore.query.keys import EDGE

    if asked.count:
        for name in ("body", "edges", "fields", "provenance"):
            if getattr(asked, name):
                message = f"`count` answers only with the number, so `{name}` does not apply."
                yield Problem(f"$.{name}", "not_for_count", message, f"Leave out `count` or `{name}`.")
    elif asked.provenance and asked.fields and (asked.type == EDGE or not asked.edges):
        hint = "Name `source`, `created_at`, `updated_at` among the fields, or leave `fields` out."
        message = "`fields` says what is shown, so `provenance` does not apply."
        yield Problem("$.provenance", "not_for_fields", message, hint)
    if asked.type == EDGE and asked.body:
        yield Problem("$.body", "not_for_edges", "An edge has no document.", "Leave `body` out.")


def owners_of(call: Call) -> CodeOwners:
    """Return the owners of the files of the branch of a call, and note which lines of their file give none."""
    from kbcore.sync.code_owners import code_owners, fault_lines

    found = code_owners(call.workspace, call.branch)
    call.notes.extend(fault_lines(found))
    return found


def impact(call: Call, asked: QueryArguments, view: View, schema: Schema, seq: int | None, *, room: int) -> Payload:
    """Return what a change of the one entity affects, as much of it as fits into so many characters.

    Raises: ``NotFound``.
    """
    from kbcore.limits import MAX_TRAVERSAL_DEPTH
    from kbcore.query import impact as analysis
    from kbcore.query import subject
    from kbcore.store.history.log import no_such_entity
    from kbcore.sync.symbol_at import at_path, no_entity_at

    start, word = subject.find(view.rows, asked.ids[0], seq), asked.ids[0]
    at = at_path(call.workspace, view, word, seq, branch=call.branch) if start is None else None
    if start is None and at is None:
        if refused := no_entity_at(view, word, seq):
            raise refused
        raise no_such_entity(view, word) if seq is None else NotFound(f"There was no {word!r} at seq {seq}.")
    starts = at.subjects if at else (start,) if start else ()
    of_files = owners_of(call)
    depth = asked.depth if "depth" in asked.model_fields_set else MAX_TRAVERSAL_DEPTH
    if at and len(starts) > 1:
        found = analysis.impact_of_path(
            view.rows, schema, at.place.as_text(), starts, at=seq, depth=depth, of_files=of_files
        )
    else:
        found = analysis.impact(view.rows, schema, starts[0], at=seq, depth=depth, of_files=of_files)
    shown = {"branch": call.branch, "seq": view.seq if seq is None else seq}
    shown |= analysis.impact_json(found, depth=depth, limit=asked.limit, fields=asked.fields, type_=asked.type)
    fitted: Payload = fit(
        shown,
        [(name, shown) for name in (*analysis.PARTS, "people", *(["entities"] if at else [])) if name in shown],
        room,
    )
    if any(total > len(fitted[name]) for name, total in fitted["totals"].items()):
        fitted["note"] = f"The lists are cut: `totals` counts all. {_NO_ROOM if 'omitted' in fitted else _HIGHER}"
    return fitted


class Extras:
    """The additions to the fields on a page of entities, on one view."""

    def __init__(self, call: Call, asked: QueryArguments, checked: Query, view: View, seq: int | None) -> None:
        self._call = call
        self._asked = asked
        self._checked = checked
        self._view = view
        self._seq = seq
        self.has_body = asked.body
        self.has_coverage = asked.coverage

    def whole(self) -> Payload:
        """Return what is said of all that match, not of the rows of one page."""
        if not self._asked.coverage:
            return {}
        from kbcore.query import coverage

        counts = coverage.count(self._view.rows, self._seq, self._checked)
        left_out = {"retired": counts.retired, "proposed": counts.proposed}
        return {"coverage": counts.total.as_json() | {name: number for name, number in left_out.items() if number}}

    def rows(self, nodes: Sequence[Node], rows: Iterable[Payload], room: int) -> list[Payload]:
        """Return the rows of these entities, each with what was asked for.

        The body of a single entity is whole. Of several, no more is read than shows that they take more than the room.
        """
        shown = list(rows)
        if self.has_body:
            from kbcore.sync.searching import documents

            call = self._call
            bodies = documents(call.workspace, call.branch, self._view, nodes, self._seq, room=room)
            shown = [row | ({BODY: bodies[row["id"]]} if row["id"] in bodies else {}) for row in shown]
        if self._asked.coverage:
            from kbcore.model.statuses import RETIRED, is_status
            from kbcore.query import Query, coverage

            of_page = Query(ids=tuple(node.id for node in nodes))
            covered = coverage.read(self._view.rows, self._seq, of_page).requirements if nodes else []
            known = {one.id: one.shown_by() for one in covered}
            known |= {node.id: {"retired": True} for node in nodes if is_status(node.fields["status"], RETIRED)}
            shown = [row | ({"coverage": known[row["id"]]} if row["id"] in known else {}) for row in shown]
        return shown


def fields_of(asked: QueryArguments) -> tuple[str, ...]:
    """Return the fields of entities that are asked for; the document is none of them, nor is what an impact shows."""
    if asked.impact:
        return ()
    named = tuple(name for name in asked.fields if name != BODY or not asked.body)
    return named if named or not asked.fields else ("id",)
