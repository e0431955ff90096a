"""A small graph, and queries of it."""

from __future__ import annotations

from kbcore import query
from kbcore.model.schema import CORE
from kbcore.query import Query, parse_where
from tests.support.views.graph import Texts


def both(*texts):
    """Return the conditions of texts, all of which must hold."""
    return tuple(map(parse_where, texts))


def ask(graph, seq=9, **asked):
    checked = query.check(Query(**asked), CORE)
    return query.page(checked, graph.rows, seq, texts=Texts(graph))


def ids(graph, **asked):
    return [found.id for found in ask(graph, **asked).entities]
