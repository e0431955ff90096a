"""Answer a query page by page. All pages of one answer are of the same seq, whatever comes in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

from kbcore.errors import InvalidQuery, NotFound
from kbcore.model.graph import Link, Node, SyncedFile
from kbcore.query import sql, walk
from kbcore.query.data_names import near_ids
from kbcore.query.request import Query
from kbcore.query.text.results import TextMatch
from kbcore.text import cursor as cursors
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import is_it
from kbcore.view.gaps import out_of_reach
from kbcore.view.tables import Rows, files_of, link_of, node_of, source_of

if TYPE_CHECKING:
    from kbcore.query.text.page import Nodes, SearchInput

E = TypeVar("E", Node, Link)


class Stamped(Protocol):
    """The stamp of a view."""

    @property
    def history_from(self) -> int:
        """Return the seq before which the history was pruned."""


class PageSource(Protocol):
    """The source of a page: a view, at one seq."""

    @property
    def seq(self) -> int:
        """Return the seq that is answered for."""

    @property
    def recorded_seq(self) -> int:
        """Return the seq of the last record."""

    @property
    def basis(self) -> Stamped:
        """Return the stamp of its base."""

    def renamed(self, keys: Iterable[str]) -> dict[str, str]:
        """Return the present id of each of these ids that an entity had before and none has now."""

    @property
    def overlay_mark(self) -> str:
        """Return the mark of its changes that are in no record, "" for none."""

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Answer one statement."""

    def nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return the entities with these ids."""

    def as_recorded(self, elements: Iterable[E]) -> list[E]:
        """Return elements as answers show them: what is in no record has the version of the last one."""

    def unread(self, paths: Iterable[str]) -> Mapping[str, SyncedFile]:
        """Return those of these files that could not be read whole, by path."""


class Unrecorded(msgspec.Struct, frozen=True):
    """Changes that are in no record: their mark, and the seq of the last record before them."""

    mark: str
    last_record: int


class Page(msgspec.Struct, frozen=True):
    """A part of an answer. ``total`` counts the whole answer; ``next_cursor`` is "" on the last page.

    ``edges`` are what was asked for (type ``edge``), or all resolved edges that touch ``entities``. ``seq``
    is that of the page. ``stale`` are the ids of those entities of which a file that states them could not
    be read whole: what is known of them may be older than the file. ``paths`` are those of a walk, by id; ``found``
    is there when a text was searched for.
    """

    seq: int
    entities: list[Node]
    edges: list[Link]
    total: int
    next_cursor: str
    stale: frozenset[str] = frozenset()
    paths: dict[str, walk.Path] = {}
    found: TextMatch | None = None

    def walked(self, id_: str) -> dict[str, Any]:
        """Return what JSON says of how a walk came to an entity; nothing where there was no walk."""
        return walk.walked_json(self.paths[id_]) if id_ in self.paths else {}


def page_of(view: PageSource, query: Query, scope: str, texts: SearchInput | None = None) -> Page:
    """Return the page that a checked query asks for, from a view; ``scope``, ``texts`` and errors as for ``page``."""
    history_from = view.basis.history_from
    rows, seq, nodes = view.rows, view.seq, view.nodes
    found = page(
        query,
        rows,
        seq,
        scope=scope,
        history_from=history_from,
        nodes=nodes,
        texts=texts,
        unrecorded=Unrecorded(view.overlay_mark, view.recorded_seq) if view.overlay_mark else None,
    )
    stale = stale_ids(view, found.entities, found.seq)
    if not view.overlay_mark:
        return msgspec.structs.replace(found, stale=stale)
    entities, edges = view.as_recorded(found.entities), view.as_recorded(found.edges)
    return msgspec.structs.replace(found, stale=stale, entities=entities, edges=edges)


def stale_ids(view: PageSource, entities: Collection[Node], seq: int) -> frozenset[str]:
    """Return the ids of those entities, as of a seq, of which a file that states them may say something else."""
    paths = {path for node in entities for path in files_of(node)}
    if not paths:
        return frozenset()
    is_now = seq == view.seq
    found = view.unread(paths).values() if is_now else map(source_of, view.rows(*sql.unread(sorted(paths), seq)))
    unread = {one.path: one for one in found}
    return frozenset(
        node.id
        for node in entities
        if unread and any(unread[path].may_be_newer(node.id) for path in files_of(node) & unread.keys())
    )


def page(
    query: Query,
    rows: Rows,
    seq: int,
    *,
    scope: str = "",
    history_from: int = 0,
    nodes: Nodes | None = None,
    texts: SearchInput | None = None,
    unrecorded: Unrecorded | None = None,
) -> Page:
    """Return the page that a checked query asks for.

    ``seq`` is that of the head which ``rows`` reads; ``scope`` names the store, so that a cursor fits no
    other; before ``history_from`` the history was pruned or is missing. ``texts`` is where a text is searched; a
    query without a text needs none. ``unrecorded`` says what ``rows`` reads besides the records.

    Raises: ``InvalidQuery`` for a cursor that does not fit, or a text without words; ``NotFound`` when the
    start of a walk does not exist; ``HistoryPruned``.
    """
    digest = _digest(query, scope)
    cursor = cursors.decode(query.cursor, digest) if query.cursor else None
    overlay, last_record = (unrecorded.mark, unrecorded.last_record) if unrecorded else ("", seq)
    at = _seq_of(query, cursor, seq, overlay, last_record)
    if at < history_from:
        raise out_of_reach(rows, history_from, at)
    asked = msgspec.structs.replace(query, at=None if at == seq else at)
    if asked.count:
        asked = msgspec.structs.replace(asked, limit=1, edges=False, sort="")
    if nodes and _is_look_up(asked):
        looked_up = sorted(nodes(sorted(set(asked.ids))), key=lambda node: node.id)
        return Page(at, looked_up, [], len(looked_up), "")
    last = cursor.last if cursor else ""
    found: TextMatch | None = None
    entities: list[Node] = []
    edges: list[Link] = []
    if asked.text:
        if texts is None:
            raise ValueError("a text is searched for, and there is nothing to search in")
        from kbcore.query.text.page import page_found  # noqa: PLC0415 - most queries ask no text

        found, entities, total, is_last = page_found(asked, last, rows, texts, nodes)
    else:
        ids, total, is_last = _ids(asked, last, rows, is_first=cursor is None)
        entities, edges = _elements(asked, ids, rows, nodes)
    basis = f"{found.search.basis if found else ''}{query.owned.mark}"
    cursors.check_basis(cursor, basis)
    if not (edges or entities) and query.from_id and cursor is None:
        _check_start(asked, rows, min(at, last_record))
    if query.count:
        return Page(at, [], [], total, "", found=found)
    total = cursor.total if cursor else total
    next_cursor = ""
    if not is_last:
        mark = "" if asked.at is not None else overlay
        last = (edges or entities)[-1].id
        next_cursor = cursors.encode(cursors.Cursor(digest, at, total, last, basis, mark))
    if query.edges and entities:
        edges = _edges_touching(entities, rows, asked.at)
    return Page(at, entities, edges, total, next_cursor, paths=_paths(asked, entities, rows), found=found)


def _ids(query: Query, last: str, rows: Rows, *, is_first: bool) -> tuple[list[str], int, bool]:
    """Return the ids of a page, how many the whole answer has (on the first page), and whether it is the last."""
    compiled = sql.compile(query, last)
    found = [id_ for (id_,) in rows(compiled.sql, compiled.params)]
    is_last = len(found) <= query.limit
    total = len(found) if is_last or not is_first else rows(compiled.count_sql, compiled.count_params)[0][0]
    return found[: query.limit], total, is_last


def _elements(query: Query, ids: Sequence[str], rows: Rows, nodes: Nodes | None) -> tuple[list[Node], list[Link]]:
    """Return the entities, or the edges, of a query with these ids, in this order."""
    if not ids:
        return [], []
    if query.is_edge:
        links = {link.id: link for link in map(link_of, rows(*sql.elements(query, ids)))}
        return [], [links[key] for key in ids]
    found = nodes(ids) if nodes and query.at is None else map(node_of, rows(*sql.elements(query, ids)))
    known = {node.id: node for node in found}
    return [known[key] for key in ids], []


def _is_look_up(query: Query) -> bool:
    """Return whether entities are asked for by their ids alone, as they are now, no more than one page."""
    plain = Query(ids=query.ids, fields=query.fields, limit=query.limit)
    return 0 < len(query.ids) <= query.limit and query == plain


def _paths(asked: Query, entities: Sequence[Node], rows: Rows) -> dict[str, walk.Path]:
    if not asked.from_id or not entities:
        return {}
    ids = [node.id for node in entities]
    return walk.read_paths(rows, *sql.trails(asked, ids), ids)


def _edges_touching(entities: Sequence[Node], rows: Rows, at: int | None) -> list[Link]:
    """Return all resolved edges that touch these entities, each once, in the order of their ends."""
    found = rows(*sql.links_touching([node.id for node in entities], at))
    links = {link.id: link for link in map(link_of, found) if link.is_resolved}
    return sorted(links.values(), key=lambda link: (link.from_id, link.type, link.to_id, link.kind))


def _digest(query: Query, scope: str) -> str:
    """Return what a cursor is bound to: everything but what may differ from page to page."""
    plain = Query()
    where = tuple(tuple(msgspec.structs.replace(one, span=None) for one in any_of) for any_of in query.where)
    bare = msgspec.structs.replace(
        query,
        where=where,
        owned=plain.owned,
        cursor=plain.cursor,
        limit=plain.limit,
        fields=plain.fields,
        edges=plain.edges,
    )
    return cursors.request_mark((scope, bare))


def _seq_of(query: Query, cursor: cursors.Cursor | None, seq: int, overlay: str, last_record: int) -> int:
    """Return the seq that is answered for. Raises: ``InvalidQuery`` for one that there is not."""
    if cursor:
        cursors.check_overlay(cursor, overlay)
        if cursor.seq > seq:
            message = (
                f"The cursor belongs to seq {cursor.seq}, which this branch no longer has; its head is {last_record}."
            )
            raise InvalidQuery(message, hint=cursors.START_OVER)
        return cursor.seq
    if query.at is not None and query.at > last_record:
        message = f"There is no seq {query.at} yet; the head is {last_record}."
        raise InvalidQuery(message, hint=f"Ask for a seq up to {last_record}.")
    return seq if query.at is None else query.at


def _check_start(query: Query, rows: Rows, at: int) -> None:
    if not rows(*sql.exists(query.from_id, query.at)):
        message = f"There is no {in_quotes(query.from_id)} at seq {at}, so nothing can be reached from it."
        near = near_ids(rows, query.from_id)
        hint = is_it(near) if near else "Look for it by a word of its title."
        raise NotFound(message, hint=hint)
