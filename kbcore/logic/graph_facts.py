"""KB's graph as facts of Prolog, and what changed of them between two records. Pure but for the view that is read.

The predicates that a user sees are in the docs (``docs/logic.md``); the facts here are those that
``engine/prolog/graph.pl`` keeps: ``n(Id, Type, Title, Status)``, ``a(Id, Key, Value)`` and
``e(EdgeId, From, To, Type, Props)``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

import msgspec

from kbcore.logic.engine.terms import atom, listed, string, value
from kbcore.view import as_of
from kbcore.view.tables import link_row, node_row
from kbcore.view.view import View
from kbcore.view.without_proposals import AcceptedTables

_PLAIN: Final = ("owner", "priority", "severity", "text_ref")
_LISTS: Final = ("tags", "links")
_NODE: Final = ("id", "type", "title", "status", "path", *_PLAIN, *_LISTS, "attributes")
_LINK: Final = ("id", "from_id", "to_id", "type", "kind", "confidence", "attributes")
_cells_of_node: Final = itemgetter(*_NODE)
_cells_of_link: Final = itemgetter(*_LINK)

_decode = msgspec.json.Decoder().decode
_CHANGED: Final = " union all ".join(
    f"select '{table}', id from {table} where version > $1 "  # noqa: S608 - constants
    f"union all select '{table}', id from {table}_history where ended > $1"
    for table in ("node", "link")
)


class GraphChange(msgspec.Struct, frozen=True):
    """A change of the graph: ``n(Id)`` and ``e(EdgeId)`` for the facts to remove, and the facts to add."""

    removed: Sequence[str]
    added: Sequence[str]


def all_facts(view: View | AcceptedTables, at: int | None = None) -> list[str]:
    """Return the facts of the whole graph, as of a seq or of the head; each a term with its full stop."""
    nodes = view.rows(f"select {', '.join(_NODE)} from {as_of.nodes(at)}", [])  # noqa: S608 - constants
    links = view.rows(f"select {', '.join(_LINK)} from {as_of.links(at)} where is_resolved", [])  # noqa: S608 - constants
    return [*_of_nodes(nodes), *_of_links(links)]


class GraphState(msgspec.Struct, frozen=True):
    """The origin of the facts: the records of a store, and what files said that is in no record."""

    store_id: str
    seq: int
    sum: str
    overlay_mark: str = ""
    nodes: frozenset[str] = frozenset()
    """Entities that only files changed."""
    links: frozenset[str] = frozenset()


def state_of(view: View) -> GraphState:
    """Return what the facts of a view are made of."""
    basis = view.recorded
    if not view.is_overlaid:
        return GraphState(basis.store_id, basis.seq, basis.sum)
    nodes, links = _changed(view, basis.seq)
    return GraphState(basis.store_id, basis.seq, basis.sum, view.overlay_mark, frozenset(nodes), frozenset(links))


def changed_facts(view: View, before: GraphState) -> GraphChange | None:
    """Return what changed of the graph since an earlier state; None where that is not known."""
    is_later = (
        view.recorded.store_id == before.store_id and view.recorded.history_from <= before.seq <= view.recorded_seq
    )
    if not (is_later and view.has_record(before.seq, before.sum)):
        return None
    since_nodes, since_links = _changed(view, before.seq)
    nodes, links = sorted(since_nodes | before.nodes), sorted(since_links | before.links)
    removed = [*(f"n({atom(key)})" for key in nodes), *(f"e({atom(key)})" for key in links)]
    found = [_cells_of_node(node_row(one)) for one in view.nodes(nodes) if not one.is_hidden]
    joined = [_cells_of_link(link_row(one)) for one in view.links(links) if one.is_resolved]
    return GraphChange(removed, [*_of_nodes(found), *_of_links(joined)])


def _changed(view: View, since: int) -> tuple[set[str], set[str]]:
    """Return the ids of the entities and of the links that changed after a seq."""
    changes = view.changes_since(since)
    if changes is not None:
        return {one.key for all_ in changes for one in all_.nodes}, {one.key for all_ in changes for one in all_.links}
    rows = view.rows(_CHANGED, [since])
    return {key for table, key in rows if table == "node"}, {key for table, key in rows if table == "link"}


def _of_nodes(rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    word = cache(atom)  # types, statuses and names of fields are few
    names = [atom(name) for name in (*_PLAIN, *_LISTS)]
    for id_, type_, title, status, path, *cells, attributes in rows:
        key = atom(id_)
        yield f"n({key},{word(type_)},{string(title or '')},{word(status or '')})."
        if path:
            yield f"a({key},'file',{value(path)})."
        for name, one in zip(names, cells, strict=True):
            if one is not None and one != []:
                yield f"a({key},{name},{value(one)})."
        for field, one in _object(attributes).items():
            if one is not None and one != []:
                yield f"a({key},{word(field)},{value(one)})."


def _of_links(rows: Sequence[tuple[Any, ...]]) -> Iterator[str]:
    word = cache(atom)
    for id_, from_id, to_id, type_, kind, confidence, attributes in rows:
        props = {"kind": kind or None, "confidence": confidence, **_object(attributes)}
        said = listed(f"{word(name)}-{value(one)}" for name, one in props.items() if one is not None)
        yield f"e({atom(id_)},{atom(from_id)},{atom(to_id)},{word(type_)},{said})."


def _object(text: str | None) -> Mapping[str, Any]:
    found = _decode(text) if text and text != "{}" else {}
    return found if isinstance(found, dict) else {}
