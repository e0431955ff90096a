"""FIND as it is compiled, held against the evaluator that is slow and obvious, on random graphs and queries."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kbcore.errors import KipRefused
from kbcore.kip import syntax as s
from kbcore.kip.find import find
from kbcore.kip.printer import write
from kbcore.kip.vocabulary import vocabulary
from kbcore.model.graph import Link, Node
from tests.support.effort.scale import tries
from tests.support.generators.kip_queries import SCHEMA, links, nodes, queries
from tests.support.oracles.kip_reference import World
from tests.support.oracles.kip_reference_find import answer
from tests.support.views.graph import graph_of

VOCABULARY = vocabulary(SCHEMA)


def is_same(one: Any, other: Any) -> bool:
    """Tell whether two answers are one; sums of numbers with a point may differ in the last place."""
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def is_right(
    some_nodes: Sequence[Node],
    some_links: Sequence[Link],
    some_queries: Sequence[s.FindCommand],
    *,
    is_past: bool = False,
) -> Iterator[str]:
    """Yield for each query that can be asked how its answer differs from the obvious one, "" where it does not.

    ``is_past``: everything was removed since, and is asked for as it stood before.
    """
    if is_past:
        graph = graph_of(old_nodes=[(one, 3) for one in some_nodes], old_links=[(one, 3) for one in some_links])
        graph.seq = 3
    else:
        graph = graph_of(some_nodes, some_links)
    world = World([*VOCABULARY.nodes, *some_nodes], [*VOCABULARY.links, *some_links], VOCABULARY.names)
    for query in some_queries:
        try:
            found = find(graph, SCHEMA, query, at=2 if is_past else None).result
        except KipRefused as error:
            if "means the name of a predicate" in error.message:
                continue
            raise
        wanted = answer(world, query)
        if is_same(found, wanted):
            yield ""
        else:
            yield f"{write(query)}\nfound  {found}\nwanted {wanted}\n{some_nodes}\n{some_links}"


@pytest.mark.sliced
@settings(
    max_examples=tries(10, 30),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(nodes(), links(), st.lists(queries(), min_size=2, max_size=5))
def test_an_answer_is_what_the_obvious_evaluator_comes_to(some_nodes, some_links, some_queries) -> None:
    for difference in is_right(some_nodes, some_links, some_queries):
        assert not difference, difference


@settings(max_examples=tries(2, 6), deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(nodes(), links(), st.lists(queries(), min_size=2, max_size=5))
def test_what_stood_earlier_is_answered_as_it_was_then(some_nodes, some_links, some_queries) -> None:
    for difference in is_right(some_nodes, some_links, some_queries, is_past=True):
        assert not difference, difference
