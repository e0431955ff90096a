"""Asked of some ids, a rule says what it says of everything, as far as that concerns them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.rules import RULES, RuleContext, acyclic, duplicate_title, similar_ids
from kbcore.schema import CORE
from tests.support.graph import graph_of, link, node
from tests.support.histories import laws

IDS = ("REQ-1", "REQ-01", "req-1", "REQ-10", "K0", "\u212a0", "é", "e\u0301", "A")
TITLES = ("Log in", " log  IN", "log\tin", "log\fin", "Straße", "STRASSE", "", "Other")

nodes = st.lists(
    st.builds(
        lambda id_, type_, title, status: node(id_, type_, title=title, status=status, path=f"docs/{id_}.md"),
        st.sampled_from(IDS),
        st.sampled_from(["req", "req", "adr"]),
        st.sampled_from(TITLES),
        st.sampled_from(["open", "open", "retired"]),
    ),
    unique_by=lambda one: one.id,
)
links = st.lists(
    st.builds(
        lambda from_id, type_, to_id, stands: link(from_id, type_, to_id, stands=stands),
        st.sampled_from(IDS),
        st.sampled_from(["depends_on", "supersedes"]),
        st.sampled_from(IDS),
        st.sampled_from([True, True, True, False]),
    ),
    unique_by=lambda one: one.id,
    max_size=14,
)


def limited(graph, rule, ids):
    """Return what a rule finds when it is asked of some ids, and the part that concerns them of all it finds."""
    wanted = frozenset(ids)
    found, whole = (rule.run(RuleContext(graph.rows, CORE, one)) for one in (wanted, None))
    return tuple(
        sorted((one for one in part if one.id in wanted or one.concerns & wanted), key=repr) for part in (found, whole)
    )


@laws(40)
@given(nodes, links, st.sets(st.sampled_from([*IDS, "NOBODY"]), min_size=1, max_size=3))
def test_what_is_asked_of_some_ids_is_that_part_of_the_whole(nodes, links, ids):
    graph = graph_of(nodes, links)
    for rule in RULES:
        if rule.id not in {"missing-file", "suspect-edge"}:  # these need files, and a history
            found, part = limited(graph, rule, ids)
            assert found == part, rule.id


def test_a_circle_that_is_found_by_reading_all_is_the_same_one():
    count = 2 * acyclic._MOST_STEPS
    names = [f"N{at:03d}" for at in range(count)]
    ring = [link(name, "depends_on", names[(at + 1) % count]) for at, name in enumerate(names)]
    for links in (ring, ring[:-1], ring[:10]):
        found, part = limited(graph_of(map(node, names), links), acyclic.RULE, [names[4]])
        assert (found, len(found)) == (part, len(links) == count)


@pytest.mark.parametrize("rule", [acyclic.RULE, similar_ids.RULE, duplicate_title.RULE], ids=lambda one: one.id)
def test_what_is_far_from_the_ids_asked_for_is_not_brought_along(rule):
    pairs = [(f"A{at}X", f"a{at}x") for at in range(1, 9)]
    nodes = [node(id_, title=f"Title {pair[0]}") for pair in pairs for id_ in pair]
    links = [link(*ends) for a, b in pairs for ends in ((a, "depends_on", b), (b, "supersedes", a))]
    graph, brought = graph_of(nodes, links), []

    def rows(sql, params):
        found = graph.rows(sql, params)
        brought.extend(found)
        return found

    rule.run(RuleContext(rows, CORE, None))
    everything = len(brought)
    brought.clear()
    rule.run(RuleContext(rows, CORE, frozenset(["A1X"])))
    assert (everything, len(brought)) == ({"acyclic": 16}.get(rule.id, 8), 1)
