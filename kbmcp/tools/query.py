"""Carries out ``kb_query``: one page within the budget of characters, one value in parts, or pages of several queries.

Every row comes on exactly one page, whatever its size and whatever is written meanwhile: a page that would be too long
is asked for again with fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import HistoryPruned, InvalidQuery, KBError, NotFound, Problem
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbcore.text.tokens import chars_of
from kbcore.text.wording import pluralize
from kbmcp.tools import context as contexts
from kbmcp.tools import query_extras
from kbmcp.tools.answers import MOST_CHARS, PAGE_CHARS, Payload, cut_deep, leading, length_of
from kbmcp.tools.argument_models import QueryArguments, read
from kbmcp.tools.call import Call
from kbmcp.tools.entity_parts import PartPlace, cut_entity, part_cursor, part_of, read_part_cursor
from kbmcp.tools.hints import hint_for, in_tool_words, of_tools
from kbmcp.tools.provenance import add_provenance
from kbmcp.tools.query_extras import Extras
from kbmcp.tools.refusals import error_json, refused_arguments

if TYPE_CHECKING:
    from kbcore.query import Page, Query
    from kbcore.query.conditions import AnyOf
    from kbcore.query.empty_result import Filter
    from kbcore.store.history.when import When
    from kbcore.view.view import View

_AROUND_CHARS: Final = 800
_ROOM: Final = PAGE_CHARS - _AROUND_CHARS
"""The most characters of rows; the rest is for the other members of an answer."""
_CUTS_SHARE: Final = 10
"""One part in so many of the room is left for the list of cuts."""
_COMMON: Final = ("branch", "seq", "freshness", "pending_files", "freshness_reason")
"""Members that several answers share."""
_FRAME_CHARS: Final = _AROUND_CHARS // 2 + MOST_CHARS - PAGE_CHARS
"""Characters of what several answers share, and of the note on stored text."""
_ALONE: Final = "Ask for it by itself, or side by side in `queries`."
_BESIDE: Final = "Put it into each of the queries that it belongs to."
_MOST_FILTERS: Final = 5
_VALUE_CHARS: Final = 80
"""Of the filters that leave nothing so many are named, with so much of their values."""
_ASK_BODY: Final = "`body` true adds the document; with it, `fields` may name `body`."
_UNREAD: Final = "?"
"""A placeholder for the start of a walk that cannot be read: arguments that need one are not wrong."""


def query(call: Call, asked: QueryArguments, problems: Sequence[Problem]) -> Payload:
    """Return a page of entities or edges, or a part of one value; with ``queries`` the answer to each of them.

    With ``context`` it is the facts that bind what the context names.

    Raises: as ``_page``, but with ``queries`` only where they are requested wrongly; as ``context.context``.
    """
    return _answers(call, asked, problems) if asked.queries else _answer(call, asked, problems, PAGE_CHARS)


def _answer(call: Call, asked: QueryArguments, problems: Sequence[Problem], room: int) -> Payload:
    """Return the answer to one query in so many characters: a page, or the facts of a context."""
    if asked.context is None:
        return _page(call, asked, problems, room - min(_AROUND_CHARS, room // 2))
    found = [*problems, *_beside(asked, "context", _ALONE)]
    if found:
        raise refused_arguments(found)
    return contexts.context(call, contexts.read_context(asked.context), room)


def _beside(asked: QueryArguments, argument: str, hint: str, allowed: frozenset[str] = frozenset()) -> list[Problem]:
    """Return a problem for each argument that is given next to one which is the whole request."""
    names = [name.rstrip("_") for name in sorted(asked.model_fields_set - {argument} - allowed)]
    return [Problem(f"$.{name}", f"beside_{argument}", f"`{name}` is next to `{argument}`.", hint) for name in names]


def _answers(call: Call, asked: QueryArguments, problems: Sequence[Problem]) -> Payload:
    """Return the answers to several queries in their order; what is wrong with one of them is the answer to that one.

    What all of them say of their state is said once. Raises: ``InvalidQuery``.
    """
    found = [*problems, *_beside(asked, "queries", _BESIDE, frozenset({"context"}))]
    if len(asked.queries) > limits.MAX_QUERIES:
        message = f"{len(asked.queries)} queries were given; one call takes {limits.MAX_QUERIES}."
        found.append(Problem("$.queries", "too_many", message, "Ask in several calls."))
    if found:
        raise refused_arguments(found)
    answers: list[Payload] = []
    left = _ROOM + _AROUND_CHARS // 2
    if asked.context is not None:
        left = min(left, chars_of(contexts.shared_budget(asked.context, len(asked.queries))) - _FRAME_CHARS)
    for at, given in enumerate(asked.queries):
        answers.append(_answer_of_many(call, given, left // (len(asked.queries) - at)))
        left -= length_of(answers[-1]) + 1
    answered = [one for one in answers if "error" not in one] or [{"branch": call.branch, "seq": call.store.head().seq}]
    common = {
        name: value
        for name, value in answered[0].items()
        if name in _COMMON and all(one.get(name) == value for one in answered)
    }
    return common | {"answers": [{name: one[name] for name in one if name not in common} for one in answers]}


def _answer_of_many(call: Call, given: Mapping[str, Any], room: int) -> Payload:
    """Return the answer to one of several queries, or why it has none, in so many characters."""
    try:
        shown = _answer(call, *_one_query(given), room)
    except (InvalidQuery, NotFound, HistoryPruned) as error:
        return _refusal(call, error, room)
    if "note" in shown:
        shown["note"] = in_tool_words(shown["note"], is_dotted=call.is_dotted)
    if length_of(shown) <= room:
        return shown
    too_long = InvalidQuery("The answer does not fit next to the others.", hint="Ask this query by itself.")
    return _refusal(call, too_long, room)


def _one_query(given: Mapping[str, Any]) -> tuple[QueryArguments, list[Problem]]:
    """Return the arguments of one of several queries, and what is wrong with them. Raises: ``InvalidQuery``."""
    asked, problems = read(QueryArguments, given)
    if asked is None:
        raise refused_arguments(problems)
    if asked.queries:
        hint = "Put them side by side."
        problems.append(Problem("$.queries", "nested", "A query in `queries` has `queries` itself.", hint))
        raise refused_arguments(problems)
    return asked, problems


def _refusal(call: Call, error: KBError, room: int) -> Payload:
    hint = hint_for(error, "kb.query", is_dotted=call.is_dotted)
    shown: Payload = cut_deep(error_json(error, hint, {}, writes=False, is_dotted=call.is_dotted), room)
    return shown


def _page(call: Call, asked: QueryArguments, problems: Sequence[Problem], room: int) -> Payload:
    """Return a page of entities or edges in so many characters, or a part of one value.

    Raises: ``InvalidQuery`` with every problem, those that are known already among them; ``NotFound`` for the start of
    a walk; ``HistoryPruned``.
    """
    from kbcore.query import DataNames, check
    from kbcore.query.conditions import said_times
    from kbcore.query.former_ids import said, with_present_ids
    from kbcore.store.history.moment import Meant
    from kbcore.store.history.when import span_meant
    from kbcore.sync.active_extractors import settings_faults
    from kbcore.sync.at_commit import read_point
    from kbcore.sync.overlay import as_of
    from kbcore.view.branch_definitions import schema_at

    part = read_part_cursor(asked.cursor)
    if part is not None and room < _ROOM:
        raise InvalidQuery("This cursor continues one value.", hint="Send it in a call of its own.")
    found = [*problems, *query_extras.misuses(asked)]
    wanted = _query_of(asked, found, is_part=part is not None)
    at = None if asked.at is None else str(asked.at)
    if part is not None:
        at = None if part.overlay else str(part.seq)
    point = None if at is None else _point_of(call, at, found)
    project, root = call.workspace.schema, str(call.workspace.repo.worktree)
    times = partial(span_meant, now=call.workspace.machine.clock.now())

    def answer(view: View, seq: int | None) -> Payload:
        schema = view.schema(project) if seq is None else schema_at(view.rows, project, seq)
        known = DataNames(view.rows, is_edge=wanted.is_edge, owners=partial(query_extras.owners_of, call))
        checked = check(wanted, schema, known, found, root=root, times=times)
        call.notes.extend(said_times(checked.where))
        checked, former = with_present_ids(view, checked, seq)
        call.notes.extend(said(former, seq))
        of_present = asked.model_copy(update={"ids": list(checked.ids)})
        if asked.impact:
            return query_extras.impact(call, of_present, view, schema, seq, room=room)
        pages = _Pages(
            call,
            view,
            msgspec.structs.replace(checked, at=seq),
            Extras(call, of_present, checked, view, seq),
            asked.fields,
            room=room,
            with_provenance=asked.provenance,
            is_limited="limit" in asked.model_fields_set,
        )
        if part and part.overlay not in {"", view.overlay_mark}:
            raise InvalidQuery("Files or records have changed since the first part.", hint=cursors.START_OVER)
        return pages.part(part.offset) if part else pages.fitting()

    def answer_at(view: View, meant: Meant) -> Payload:
        state = as_of(meant.seq, meant.said, is_of_documents=meant.is_of_documents)
        return answer(view, meant.seq) | state.as_json()

    try:
        if point is not None:
            return read_point(call.workspace, call.store, point, answer_at, notes=call.notes)
        call.notes.extend(f"{fault.message} {fault.remedy}" for fault in settings_faults(call.workspace))
        return call.page(lambda view: answer(view, None))
    except InvalidQuery as error:
        raise _as_asked(error, asked) from error


def _point_of(call: Call, at: str, problems: list[Problem]) -> When | None:
    """Return the point of the history that a text means; what is no point is added to the problems."""
    from kbcore.store.history.when import point_in

    try:
        return point_in(call.workspace, call.branch, at)
    except InvalidQuery as error:
        problems.append(Problem("$.at", "bad_value", error.message, error.remedy))
        return None


def _query_of(asked: QueryArguments, problems: list[Problem], *, is_part: bool) -> Query:
    """Return the query that the arguments describe, ``at`` left out; what cannot be read is added to the problems."""
    from kbcore.query import NO_PATTERN, UNREAD, Query, parse_each, parse_pattern

    where: Iterable[Any] = asked.where.items() if isinstance(asked.where, dict) else asked.where
    is_start_wrong = any(problem.path == "$.from" for problem in problems)
    return Query(
        type=asked.type or ("req" if asked.coverage else ""),
        ids=tuple(asked.ids),
        tags=tuple(asked.tags),
        status=asked.status,
        where=parse_each("where", where, _conditions, UNREAD, problems),
        has=parse_each("has", asked.has, parse_pattern, NO_PATTERN, problems),
        lacks=parse_each("lacks", asked.lacks, parse_pattern, NO_PATTERN, problems),
        text=asked.text,
        from_id=_UNREAD if is_start_wrong else asked.from_,
        follow=tuple(asked.follow),
        depth=asked.depth,
        reverse=asked.reverse,
        edges=asked.edges,
        count=asked.count,
        sort=asked.sort,
        fields=query_extras.fields_of(asked),
        limit=asked.limit,
        cursor="" if is_part else asked.cursor,
    )


def _conditions(item: Any) -> AnyOf:
    """Return the conditions of a text, or of a member of an object. Raises: ``InvalidQuery``."""
    from kbcore.query import conditions_of, parse_where

    if isinstance(item, str):
        return parse_where(item)
    return conditions_of(*item) if isinstance(item, tuple) else conditions_of("", None)


def _as_asked(error: InvalidQuery, asked: QueryArguments) -> InvalidQuery:
    """Return the error with the comparisons of an object named by their keys, and with how the document is had."""
    where = asked.where
    names = {f"$.where[{at}]": f"$.where.{key}" for at, key in enumerate(where)} if isinstance(where, dict) else {}
    hints = {f"$.fields[{at}]": _ASK_BODY for at, name in enumerate(asked.fields) if name == query_extras.BODY}
    details = [
        msgspec.structs.replace(one, path=names.get(one.path, one.path), remedy=hints.get(one.path, one.remedy))
        for one in error.details
    ]
    return InvalidQuery(error.message, hint=error.remedy, details=details, data=error.data, says_first=error.says_first)


class _Pages:
    """The answers to one query on one view."""

    def __init__(
        self,
        call: Call,
        view: View,
        wanted: Query,
        more: Extras,
        named: Sequence[str],
        *,
        room: int,
        with_provenance: bool,
        is_limited: bool,
    ) -> None:
        self._more = more
        self._named = named
        """The fields as the client names them, the body among them."""
        self._room = room
        self._with_provenance = with_provenance
        self._is_limited = is_limited
        """The client said how many rows it wants."""
        self._call = call
        self._view = view
        self._wanted = wanted

    def fitting(self) -> Payload:
        """Return the page with as many of the rows asked for as fit."""
        page = self._page(self._wanted.limit)
        if self._wanted.count:
            return self._counted(page)
        shown = self._shown(page)
        asked = len(page.edges if self._wanted.is_edge else page.entities)
        if length_of(shown) > self._room:
            count = max(1, self._how_many_fit(shown, asked))
            if count < asked:
                page = self._page(count)
                shown = self._shown(page)
            if count == asked or length_of(shown) > self._room:
                shown = self._cut(shown, page.seq)
        return self._noted(shown, asked)

    def part(self, offset: int) -> Payload:
        """Return the part of the one value asked for that begins at an offset."""
        page = self._page(1)
        if len(page.entities) != 1 or len(self._named) != 1:
            raise InvalidQuery("This cursor continues one value.", hint="Send it with the one id and the one field.")
        return self._part(self._shown(page), page.seq, offset)

    def _page(self, limit: int) -> Page:
        from kbcore.sync.searching import search

        call, wanted = self._call, msgspec.structs.replace(self._wanted, limit=limit)
        return search(call.workspace, call.store, call.branch, self._view, wanted)

    def _shown(self, page: Page) -> Payload:
        from kbcore.model.graph import edge_json
        from kbcore.query import project, shown_entity, without_provenance

        fields, is_edge = self._wanted.fields, self._wanted.is_edge

        def chosen(whole: Payload, fields: Sequence[str] = fields) -> Payload:
            shown = project(whole, fields)
            return shown if fields or self._with_provenance else without_provenance(shown)

        entities = [
            chosen(shown_entity(node, fields))
            | ({"stale": True} if node.id in page.stale else {})
            | page.walked(node.id)
            | (page.found.shown(node.id, fields) if page.found else {})
            for node in page.entities
        ]
        entities = self._more.rows(page.entities, entities, self._room)
        edges = [
            chosen({**edge_json(link), "id": link.id}) if is_edge else chosen(edge_json(link), ())
            for link in page.edges
        ]
        each: Payload = {}
        if not self._with_provenance:
            shown_edges = [] if fields and is_edge else [*zip(page.edges, edges, strict=True)]
            shown_nodes = [] if fields else [*zip(page.entities, entities, strict=True)]
            each = add_provenance(self._view, shown_nodes, shown_edges)
        return {
            "branch": self._call.branch,
            "seq": page.seq,
            "total": page.total,
            **self._more.whole(),
            **each,
            "entities": entities,
            "edges": edges,
            "next_cursor": page.next_cursor or None,
        } | ({"search": page.found.document(page.total)} if page.found else {})

    def _counted(self, page: Page) -> Payload:
        """Return how many match, and where it is none, why."""
        notes = self._unknown_ids() if page.total else self._nothing()
        return (
            {"branch": self._call.branch, "seq": page.seq, "total": page.total}
            | ({"search": page.found.document(page.total)} if page.found else {})
            | ({"note": note} if (note := " ".join(notes)) else {})
        )

    def _how_many_fit(self, shown: Payload, asked: int) -> int:
        """Return how many of the first rows fit, each entity with the edges that come with it."""
        room = self._room - 200 - length_of(shown.get("search", ""))
        if self._wanted.is_edge:
            return leading(shown["edges"], room)
        owner = {entity["id"]: at for at, entity in enumerate(shown["entities"])}
        sizes = [length_of(entity) for entity in shown["entities"]]
        for edge in shown["edges"]:
            first = min(owner.get(end, asked) for end in (edge["from"], edge["to"]))
            sizes[first] += length_of(edge) + 1
        return leading(sizes, room, size=int)

    def _cut(self, shown: Payload, seq: int) -> Payload:
        """Return a page of one row that is too long by itself, with its long values and its edges cut."""
        if self._wanted.is_edge:
            edge, cuts = cut_entity(shown["edges"][0], self._room - self._room // _CUTS_SHARE)
            return shown | {"edges": [edge], "cut": cuts}
        is_one_value = len(self._named) == 1 and len(self._wanted.ids) == 1
        if is_one_value and not shown["edges"] and self._room == _ROOM:
            return self._part(shown, seq, 0)
        edges = shown["edges"]
        entity, cuts = cut_entity(shown["entities"][0], (self._room - self._room // _CUTS_SHARE) // (2 if edges else 1))
        if cuts:
            shown["cut"] = cuts
        kept = leading(edges, self._room - length_of(shown | {"entities": [entity], "edges": []}) - 100)
        if kept < len(edges):
            shown["omitted"] = {"edges": len(edges) - kept}
        shown["edges"] = edges[:kept]
        shown["entities"] = [entity]
        return shown

    def _part(self, shown: Payload, seq: int, offset: int) -> Payload:
        entity = shown["entities"][0]
        field = self._named[0] if self._more.has_body else self._wanted.fields[0]
        part, following = part_of(entity, field, offset)
        if not part["characters"]:
            raise NotFound(f"{entity['id']!r} has no {field!r} at seq {seq}.")
        place = PartPlace(seq, following, self._view.overlay_mark if self._wanted.at is None else "")
        cursor = part_cursor(place) if following else None
        return shown | {"entities": [{"id": entity["id"]}], "part": part, "next_cursor": cursor}

    def _unknown_ids(self) -> Iterable[str]:
        if not (self._wanted.lacks or len(self._wanted.ids) > 1):
            return ()
        from kbcore.query.empty_result import unknown_ids

        return unknown_ids(self._view, self._wanted)

    def _nothing(self) -> Iterator[str]:
        """Yield why nothing matches: an unknown value, a walk in a wrong direction, filters that exclude each other."""
        from kbcore.query.empty_result import filters_of

        filters = filters_of(self._view, self._wanted)
        found = [lacking for one in filters if (lacking := one.lacking())]
        found += [
            f"Against the direction of the edges: {one.against}. {self._other_way()}" for one in filters if one.against
        ]
        yield from found or [self._without(one) for one in filters if one.total][:_MOST_FILTERS]

    def _without(self, one: Filter) -> str:
        """Return how many match without one filter."""
        matches = f"{pluralize(one.total, 'edge' if self._wanted.is_edge else 'entity')} would match"
        if one.name == "type" and self._more.has_coverage:
            return f"`coverage` is that of requirements: {matches} without it."
        if one.name == "from":
            followed = " of those in `follow`" if self._wanted.follow else ""
            return f"No edge{followed} leads from {in_quotes(one.value[:_VALUE_CHARS])} in either direction."
        return f"Without `{one.name}` {in_quotes(one.value[:_VALUE_CHARS])} {matches}."

    def _other_way(self) -> str:
        if self._wanted.reverse:
            return "Leave out `reverse`."
        if any(name.startswith("^") for name in self._wanted.follow):
            return "Leave out the `^` in `follow`."
        return "Set `reverse`, or `^` in `follow`."

    def _noted(self, shown: Payload, asked: int) -> Payload:
        """Add what was left out, in plain words, with the call that gets it."""
        notes: list[str] = []
        # Who asks for the few best has them, and little use for those that come after.
        is_best = bool(self._wanted.text) and self._is_limited and len(shown["entities"]) == asked
        rows: Sequence[Any] = shown["edges"] if self._wanted.is_edge else shown["entities"]
        if "part" in shown:
            part = shown["part"]
            notes.append(
                f"The value is too long for one answer: characters {part['offset']} to "
                f"{part['offset'] + len(part['text'])} of {part['characters']}."
            )
        elif len(rows) < asked:
            notes.append(f"{len(rows)} of the {asked} rows of this page fit into one answer; {shown['total']} match.")
        elif shown["next_cursor"] and not is_best:
            notes.append(f"{len(rows)} of {shown['total']} rows.")
        elif not shown["total"]:
            notes += self._nothing()
        if shown["total"]:
            notes += self._unknown_ids()
        if shown["next_cursor"] and not is_best:
            notes.append("Repeat the call with this next_cursor as `cursor` for what comes next.")
        if shown.get("cut"):
            notes.append(
                f"Long values are cut, as listed in `cut`: {of_tools('{kb_query}')} with the one id in `ids` and the "
                "one field in "
                "`fields` gives such a value in full, in parts if needed"
                + (', the document with `body` and `fields` ["body"].' if self._more.has_body else ".")
            )
        if shown.get("omitted"):
            notes.append(
                f"{shown['omitted']['edges']} more edges: "
                f'{of_tools("{kb_query}")} with type "edge" and where ["from=ID"] or ["to=ID"] '
                "pages through them."
            )
        return shown | ({"note": " ".join(notes)} if notes else {})
