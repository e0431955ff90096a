"""A small graph, and queries of it."""

from __future__ import annotations

from kbcore import query
from kbcore.model.schema import CORE
from kbcore.query import Query, parse_where
from tests.support.views.graph import Texts, graph_of, link, node


def requirements_graph():
    """Return a graph of requirements in a circle, a test and a symbol; one link is unresolved."""
    return graph_of(
        [
            node("REQ-1", priority="must", tags=["auth", "web"], owner="ann", attributes__size=3),
            node("REQ-2", status="done", tags=["auth"], attributes__size=12, attributes__teams=["a", "b"]),
            node("REQ-3", title="Log in with a PASSKEY", attributes__note='say "hi"', path="docs/r3.md"),
            node("TEST-1", "test", attributes__kind="unit", attributes__is_slow=True),
            node("SYM-1", "symbol", attributes__nested={"deep": ["needle"]}),
        ],
        [
            link("REQ-1", "depends_on", "REQ-2"),
            link("REQ-2", "depends_on", "REQ-3"),
            link("REQ-3", "depends_on", "REQ-1"),
            link("REQ-1", "verified_by", "TEST-1", files=["docs/a.md", "docs/b.md"], fields={"confidence": 0.5}),
            link("SYM-1", "implements", "REQ-2"),
            link("REQ-3", "verified_by", "TEST-9", is_resolved=False),
        ],
    )


def both(*texts):
    """Return the conditions of texts, all of which must hold."""
    return tuple(map(parse_where, texts))


def ask(graph, seq=9, **asked):
    checked = query.check(Query(**asked), CORE)
    return query.page(checked, graph.rows, seq, texts=Texts(graph))


def ids(graph, **asked):
    return [found.id for found in ask(graph, **asked).entities]
