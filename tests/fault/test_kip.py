"""K1: FIND as it is compiled says what the evaluator says that is slow and obvious, thousands of times."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from kbcore.kip.printer import write
from tests.core.kip.test_find_laws import is_right
from tests.support.kip_queries import links, nodes, queries
from tests.support.scale import SEED, tries

PARTS = 8
GRAPHS = tries(4, 212, 700)
QUERIES = 12
"""A graph is asked so many different things: making it takes as long as some of them."""
EXAMPLES = 2
"""The simplest graph, and one at random. Of more, Hypothesis would make five out of six from parts of the one before,
and ask most things again."""


@pytest.mark.fault("K1")
@pytest.mark.parametrize("part", range(PARTS if GRAPHS > PARTS else 1))
def test_no_answer_differs_from_the_obvious_one(tally, part) -> None:
    """Each graph has a seed of its own; nothing is asked twice, and a query that differs is shown, with its graph."""
    asked: set[str] = set()
    for number in range(GRAPHS):
        ask(SEED * 10_000 + part * GRAPHS + number, asked, tally)
    tally.done(at_least=GRAPHS * QUERIES * 9 // 10)


def ask(number: int, asked: set[str], tally) -> None:
    """Hold the answers over the graphs of one seed, of queries that were not asked before, against the obvious ones."""

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(nodes(), links(), st.lists(queries(), min_size=QUERIES, max_size=QUERIES))
    def hold(some_nodes, some_links, some_queries) -> None:
        new = {text: one for one in some_queries if (text := write(one)) not in asked}
        asked.update(new)
        for difference in is_right(some_nodes, some_links, list(new.values())) if new else ():
            if difference:
                tally.violated(f"seed {number}", difference)
            tally.tried()

    hold()
