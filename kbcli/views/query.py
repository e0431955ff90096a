"""A page of a query in every format: JSON, lines of JSON, tables, CSV and Markdown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.terminal import tables
from kbcli.terminal.cells import shortened, width_of
from kbcli.terminal.colours import STALE
from kbcli.terminal.path_tables import laid_out_with_paths
from kbcli.views.listing import Rows
from kbcore.limits import MAX_PAGE_ROWS
from kbcore.model.graph import CORE_FIELDS, OBJECT_FIELDS, edge_json
from kbcore.query import project, shown_entity
from kbcore.query.keys import SNIPPET
from kbcore.query.walk import path_text
from kbcore.text.escaping import escape_controls, json_text

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcli.terminal.output import Output
    from kbcore.query import Page, Query

Json = Mapping[str, Any]

_ENTITY_HEAD: Final = ("ID", "TYPE", "STATUS", "TITLE")
_EDGE_HEAD: Final = ("FROM", "EDGE", "TO", "CONFIDENCE", "SOURCE")
_ENTITY_COLUMNS: Final = ("id", *CORE_FIELDS, *OBJECT_FIELDS, "version", "stale", "proposed")
_WALK_COLUMNS: Final = ("depth", "path")
_TEXT_COLUMNS: Final = ("score", "snippet")
_LEAST_SNIPPET_COLUMNS: Final = 12
_HIT_MARK: Final = re.compile("[«»]")
_EDGE_COLUMNS: Final = (
    *("type", "from", "to", "kind", "confidence", *OBJECT_FIELDS),
    *("created_at", "created_by", "source", "sources", "version", "id", "proposed"),
)


class QueryAnswer:
    """The answer to a query: a page of it, or all its pages one after the other, and what is said of it.

    ``first`` is the first page; an answer that has no more than that shows it as it is.
    """

    def __init__(self, first: Page, asked: Query, *, is_limited: bool) -> None:
        self.first = first
        self.is_limited = is_limited
        """It was asked for so many rows only: that there are more is no news."""
        self.next_cursor = ""
        self.rows = Rows()
        """Each entity, or edge where edges are asked for, as JSON, with the path that a walk took to it."""
        self.edges = Rows()
        """The edges that touch the entities, where they are asked for: each once."""
        self.asked = asked
        """The checked query."""
        self._seen: set[str] = set()

    def add(self, page: Page) -> None:
        """Add a page. Raises: ``StorageError``."""
        self.next_cursor = page.next_cursor
        if self.asked.is_edge:
            for link in page.edges:
                self.rows.add((project({**edge_json(link), "id": link.id}, self.asked.fields), ""))
            return
        for item in _entities(page, self.asked):
            self.rows.add((item, path_text(page.paths[item["id"]]) if page.paths else ""))
        for link in page.edges:
            if link.id not in self._seen:
                self._seen.add(link.id)
                self.edges.add(edge_json(link))


def read_answer(asked: Query, page_of: Callable[[Query], Page], *, is_whole: bool, is_limited: bool) -> QueryAnswer:
    """Return the answer to a checked query: one page, or with ``is_whole`` all of them.

    Raises: as ``page_of``; ``StorageError``.
    """
    page = page_of(asked)
    answer = QueryAnswer(page, asked, is_limited=is_limited)
    answer.add(page)
    while is_whole and page.next_cursor:
        page = page_of(msgspec.structs.replace(asked, cursor=page.next_cursor))
        answer.add(page)
    return answer


def write_document(output: Output, answer: QueryAnswer, head: Mapping[str, Any]) -> None:
    """Write an answer as the contract has it; with edges, each entity also carries its own.

    A page of edges themselves gives each its id, by which another edge can name it as an end.
    """
    page = answer.first
    search: dict[str, Any] = {"search": page.found.document(page.total)} if page.found else {}
    if answer.asked.count:
        output.document({**head, "total": page.total, **search})
        return
    items = (item for item, _ in answer.rows)
    rest = {"next_cursor": answer.next_cursor or None} | search
    entities, edges = ((), items) if answer.asked.is_edge else (items, iter(answer.edges))
    output.document_of({**head, "total": page.total}, {"entities": entities, "edges": edges}, rest)


def _entities(page: Page, asked: Query) -> list[dict[str, Any]]:
    shown = [
        project(shown_entity(node, asked.fields), asked.fields)
        | ({"stale": True} if node.id in page.stale else {})
        | page.walked(node.id)
        | (page.found.shown(node.id, asked.fields) if page.found else {})
        for node in page.entities
    ]
    if asked.edges:
        own: dict[str, list[dict[str, Any]]] = {entity["id"]: [] for entity in shown}
        for link in page.edges:
            for end in dict.fromkeys((link.from_id, link.to_id)):
                if end in own:
                    own[end].append(edge_json(link))
        for entity in shown:
            entity["edges"] = own[entity["id"]]
    return shown


def show(session: Session, answer: QueryAnswer, format_: str, nothing: Sequence[str]) -> None:
    """Write an answer for people, or in the format of another program; ``nothing`` says why it is empty, if it is."""
    output, asked = session.output, answer.asked
    output.is_paged = format_ == "table"
    if asked.count:
        output.data(f"{answer.first.total}\n")
        _show_rest(session, answer, nothing)
        return
    items = (item for item, _ in answer.rows)
    if format_ == "jsonl":
        output.stream(json_text(item) + "\n" for item in items)
    elif format_ == "csv":
        columns = asked.fields or (_EDGE_COLUMNS if asked.is_edge else _entity_columns(asked))
        rows = ([cell_text(_field(item, key)) for key in columns] for item in items)
        output.stream(tables.comma_separated(columns, rows))
    elif format_ == "markdown":
        table = _Table(answer, asked, has_all=False)
        output.stream(tables.markdown(table.head, table))
    elif format_ == "tsv":
        table = _Table(answer, asked, has_all=True)
        output.stream(_lines(tables.tab_separated(table.head, table)))
        if asked.edges and not asked.is_edge:
            output.data("\n")
            output.stream(_lines(tables.tab_separated(_EDGE_HEAD, map(edge_row, answer.edges))))
    elif len(answer.rows):
        output.stream(_lines(_drawn(output, answer, asked)))
        if len(answer.edges):
            output.data("\n")
            output.stream(_lines(_fitted(output, _EDGE_HEAD, _EdgeRows(answer.edges))))
    _show_rest(session, answer, nothing)


def _entity_columns(asked: Query) -> tuple[str, ...]:
    return (
        *_ENTITY_COLUMNS,
        *(_WALK_COLUMNS if asked.from_id else ()),
        *(_TEXT_COLUMNS if asked.text else ()),
    )


class _EdgeRows:
    """Edges as rows of a table, which can be read again."""

    def __init__(self, edges: Rows) -> None:
        self._edges = edges

    def __len__(self) -> int:
        return len(self._edges)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return map(edge_row, self._edges)


class _Table:
    """The result as a table: its head, and its rows, which can be read again.

    With ``has_all`` there is every column that a query of that kind can have, for other programs; a reader gets
    those that hold something. ``with_snippets`` adds what does not fit on a terminal with the rest. Where fields are
    asked for, they are the columns.
    """

    def __init__(self, answer: QueryAnswer, asked: Query, *, has_all: bool, with_snippets: bool = True) -> None:
        self._rows = answer.rows
        self._is_edge = asked.is_edge
        self._fields = asked.fields if with_snippets else tuple(name for name in asked.fields if name != SNIPPET)
        items = (item for item, _ in answer.rows)
        self._has_all = has_all and not asked.is_edge
        self._tags = self._has_all or any(item.get("tags") for item in items)
        self._path = bool(asked.from_id)
        self._snippets = bool(asked.text) and with_snippets
        columns = {
            "TAGS": self._tags,
            "STALE": self._has_all,
            "PROPOSED": self._has_all,
            "PATH": self._path,
            "SCORE": self._has_all and bool(asked.text),
            "SNIPPET": self._snippets,
        }
        shown = (name for name, is_shown in columns.items() if is_shown)
        self.head: tuple[str, ...] = _EDGE_HEAD if self._is_edge else (*_ENTITY_HEAD, *shown)
        if self._fields:
            self.head = tuple(name.removeprefix("attributes.").upper() for name in self._fields)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        for item, path in self._rows:
            if self._fields:
                yield tuple(cell_text(_field(item, name)) for name in self._fields)
                continue
            yield edge_row(item) if self._is_edge else tuple(map(self._cells_of(item, path), self.head))

    def _cells_of(self, item: Json, path: str) -> Callable[[str], str]:
        cells = {
            "ID": item["id"],
            "TYPE": item["type"],
            "STATUS": item.get("status", "") if self._has_all else _status(item),
            "TITLE": item.get("title", ""),
            "TAGS": ", ".join(item.get("tags", ())),
            "STALE": "true" if item.get("stale") else "",
            "PROPOSED": cell_text(item.get("proposed")),
            "PATH": path,
            "SCORE": cell_text(item.get("score")),
            "SNIPPET": item.get("snippet", {}).get("text", ""),
        }
        return cells.__getitem__


def _drawn(output: Output, answer: QueryAnswer, asked: Query) -> Iterator[str]:
    """Yield the lines of a table, below each row the snippet of its entity."""
    table = _Table(answer, asked, has_all=False, with_snippets=False)
    blocks = iter(_blocks(output, table.head, table, has_paths=bool(asked.from_id and not asked.fields)))
    yield from next(blocks)
    for lines, (item, _) in zip(blocks, answer.rows if asked.text else itertools.repeat(({}, "")), strict=False):
        yield from lines
        if snippet := item.get("snippet"):
            yield _snippet_line(output, snippet["field"], snippet["text"])


def _snippet_line(output: Output, field: str, text: str) -> str:
    """Return a snippet in one line, its first hit visible: by its style, between marks where there is none.

    ``text`` has every hit between ``«`` and ``»``, and these nowhere else.
    """
    has_style = output.styled("x", "bold") != "x"
    lead = f"    {field}: "
    pieces = [(escape_controls(piece), place % 2 == 1) for place, piece in enumerate(_HIT_MARK.split(text))]
    if not has_style:
        pieces = [(f"«{piece}»" if is_hit else piece, is_hit) for piece, is_hit in pieces]
    room = None if output.width is None else max(output.width - width_of(lead), _LEAST_SNIPPET_COLUMNS)
    if room is not None:
        pieces = _cut_before_hit(pieces, room)
    return output.styled(lead, "dim") + "".join(
        output.styled(text, "bold" if is_hit else "dim") for text, is_hit in pieces if text
    )


def _cut_before_hit(pieces: list[tuple[str, bool]], room: int) -> list[tuple[str, bool]]:
    """Return the pieces of a snippet in so many columns; the text before the first hit is cut first."""
    before = "".join(text for text, _ in itertools.takewhile(lambda one: not one[1], pieces))
    rest = list(itertools.dropwhile(lambda one: not one[1], pieces))
    if width_of(before) > room // 2 and rest:
        words = before[-(room // 3) :].partition(" ")
        before = f"… {words[2]}"
    kept: list[tuple[str, bool]] = []
    for text, is_hit in [(before, False), *rest]:
        kept.append((shortened(text, room), is_hit))
        room -= width_of(text)
        if room <= 0:
            break
    return kept


def _blocks(
    output: Output, head: Sequence[str], rows: Iterable[Sequence[str]], *, has_paths: bool = False
) -> Iterable[list[str]]:
    """Return the lines of the head of a table, and of each of its rows, where the reader has so much room."""
    if output.width is None:
        return tables.whole(head, rows, output.styled)
    table = laid_out_with_paths if has_paths else tables.laid_out
    return table(head, list(rows), output.width, output.styled)


def _fitted(output: Output, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    return (line for lines in _blocks(output, head, rows) for line in lines)


def _show_rest(session: Session, answer: QueryAnswer, nothing: Sequence[str]) -> None:
    output, page, shown = session.output, answer.first, len(answer.rows)
    for sentence in page.found.sentences(page.total) if page.found else ():
        output.note(sentence)
    if not shown and page.total and not answer.asked.count:
        output.note("The answer ends here.")
    elif not shown and nothing:
        output.note("\n".join(nothing))
    elif shown and answer.next_cursor:
        say = output.note if answer.is_limited else output.note_always
        say(f"{shown} of {page.total}; for more: {ways_on(shown, page.total, escape_controls(answer.next_cursor))}")


def ways_on(shown: int, total: int, cursor: str) -> str:
    """Return the options that show more of an answer than so many rows."""
    most = min(total, MAX_PAGE_ROWS)
    return (f"--limit {most}, or " if shown < most else "") + f"--cursor {cursor}"


def _status(item: Json) -> str:
    """Return the status of an entity, marked where its file could not be read completely."""
    marks = [STALE if item.get("stale") else "", mark_of_proposed(item)]
    return " ".join(filter(None, [item.get("status", ""), *marks]))


def mark_of_proposed(item: Json) -> str:
    """Return the mark of an entity or edge in JSON of which something is only proposed."""
    proposed = item.get("proposed")
    return "" if not proposed else "(proposed)" if proposed is True else "(change proposed)"


def edge_row(edge: dict[str, Any]) -> tuple[str, ...]:
    """Return an edge in JSON as a row of a table."""
    name = f"{edge['type']}:{edge['kind']}" if edge.get("kind") else edge["type"]
    name = f"{name} {mark_of_proposed(edge)}".rstrip()
    return edge["from"], name, edge["to"], cell_text(edge.get("confidence")), edge["source"]


def _field(item: Json, name: str) -> Any:
    """Return the value of a field by its full name, None where there is none."""
    prefix, dot, member = name.partition(".")
    return item.get(prefix, {}).get(member) if dot else item.get(name)


def cell_text(value: Any) -> str:
    """Return a value as the text of a cell: JSON of what is no text, and nothing for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json_text(value)


def _lines(lines: Iterable[str]) -> Iterator[str]:
    return (line + "\n" for line in lines)
