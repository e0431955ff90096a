"""Links are followed from a named end by look-ups, and the answer is the same whatever those find."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from kbcore.kip import narrowing
from kbcore.kip.binding import read
from kbcore.kip.find import compiled
from tests.core.kip.test_find_laws import is_right
from tests.support.effort.scale import tries
from tests.support.generators.kip_queries import SCHEMA, links, nodes, queries
from tests.support.views.graph import graph_of

START = '{type: "Person", name: "$self"}'


@pytest.mark.sliced
@settings(max_examples=tries(8, 30), deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(nodes(), links(), st.lists(queries(), min_size=2, max_size=5), st.sampled_from([0, 1, 2, 100]))
def test_answers_are_the_same_where_few_elements_are_looked_up(some_nodes, some_links, some_queries, most) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(narrowing, "LEAST_LINKS", 0)
        patch.setattr(narrowing, "MOST_KEYS", most)
        patch.setattr(narrowing, "_MOST_ROWS", most + 1)
        for difference in is_right(some_nodes, some_links, some_queries):
            assert not difference, difference


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    "where",
    [
        f'({START}, "mentions", ?x)',
        f'(?x, "mentions", {START})',
        f'?y {START} (?y, "mentions", ?x)',
        f'({START}, "mentions", ?a) (?a, "mentions", ?b) (?b, "mentions", ?x)',
        f'(?a, "mentions", ?x) (?b, "mentions", ?a) ({START}, "mentions", ?b)',
        f'({START}, "mentions"{{1,3}}, ?x)',
        f"({START}, ?p, ?x)",
        f'({START}, "mentions", ?x) OPTIONAL {{ (?x, "mentions", ?y) }} NOT {{ (?x, "derived_from", ?z) }}',
        f'?x {{type: "Person"}} UNION {{ ({START}, "mentions", ?x) }}',
    ],
)
def test_a_hop_from_a_named_end_reads_no_table_of_links(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "LEAST_LINKS", 0)
    query: Any = read(f"FIND(?x.name) WHERE {{ {where} }}")
    sql = compiled(graph_of([], []), SCHEMA, query).sql
    assert "from link" not in sql
    assert "join link" not in sql
