"""K1: FIND as it is compiled says what the evaluator says that is slow and obvious, thousands of times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.core.kip.test_find_laws import is_right
from tests.support.kip_queries import links, nodes, queries
from tests.support.scale import SEED, tries

PARTS = 8
GRAPHS = tries(4, 214, 700)
QUERIES = 12
"""A graph is asked so many different things: making it takes as long as some of them."""


@pytest.mark.fault("K1")
@pytest.mark.parametrize("part", range(PARTS if GRAPHS > PARTS else 1))
def test_no_answer_differs_from_the_obvious_one(tally, part) -> None:
    """Each part begins with another seed; a query that differs is shown whole, with its graph."""

    @seed(SEED + part)
    @settings(
        max_examples=GRAPHS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(nodes(), links(), st.lists(queries(), min_size=QUERIES, max_size=QUERIES))
    def hold(some_nodes, some_links, some_queries) -> None:
        for difference in is_right(some_nodes, some_links, some_queries):
            if difference:
                tally.violated(f"seed {SEED + part}", difference)
            tally.tried()

    hold()
    tally.done(at_least=GRAPHS * QUERIES * 3 // 4)
