"""K1: FIND as it is compiled says what the evaluator says that is slow and obvious, thousands of times."""

from __future__ import annotations

import random

import pytest

from kbcore.kip import syntax as s
from kbcore.kip.printer import write
from tests.core.kip.test_find_laws import is_right
from tests.support.effort.scale import SEED, tries
from tests.support.generators.kip_queries import Drawing

PARTS = 8
GRAPHS = tries(2, 105, 350)
QUERIES = 24
"""A graph is asked so many different things: making it takes as long as some of them."""


@pytest.mark.fault("K1")
@pytest.mark.parametrize("part", range(PARTS if GRAPHS > PARTS else 1))
def test_no_answer_differs_from_the_obvious_one(tally, part) -> None:
    """Each graph has a seed of its own; nothing is asked twice, and a query that differs is shown, with its graph."""
    asked: set[str] = set()
    for number in range(GRAPHS):
        seed = SEED * 10_000 + part * GRAPHS + number
        drawing = Drawing(random.Random(seed).choice)
        for difference in is_right(drawing.nodes(), drawing.links(), new(drawing, asked)):
            if difference:
                tally.violated(f"seed {seed}", difference)
            tally.tried()
    tally.done(at_least=GRAPHS * QUERIES * 9 // 10)


def new(drawing: Drawing, asked: set[str]) -> list[s.FindCommand]:
    """Return queries that were not asked before."""
    found: list[s.FindCommand] = []
    while len(found) < QUERIES:
        query = drawing.query()
        if (text := write(query)) not in asked:
            asked.add(text)
            found.append(query)
    return found
