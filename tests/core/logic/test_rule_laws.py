"""Rules that say the same in SQL and in Prolog give the same violations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import rules
from kbcore.model.schema import CORE
from kbcore.rules import RuleContext, load_rules
from kbcore.view.sandbox import Sandbox, Times
from tests.support.logic.rules import TIME_S, lend, place
from tests.support.views.graph import graph_of, link, node

BOTH = {
    "no-owner": (
        "select id, title || ' has no owner' as message from entity where type = 'req' and owner is null",
        'entity(Id, req, Title, _), \\+ attr(Id, owner, _), string_concat(Title, " has no owner", M)',
    ),
    "two-steps": (
        (
            "select distinct a.from_id as id, 'leads to ' || b.to_id as message from edge a "
            "join edge b on a.to_id = b.from_id "
            "where a.type = 'depends_on' and b.type = 'depends_on'"
        ),
        "depends_on(Id, Next), depends_on(Next, To), atom_concat('leads to ', To, M)",
    ),
    "doubtful": (
        "select id, type || ' is doubtful' as message from edge where confidence < 0.5",
        (
            "edge(Type, _, _, Props), memberchk(confidence-C, Props), C < 0.5, memberchk(id-Id, Props), "
            "atom_concat(Type, ' is doubtful', M)"
        ),
    ),
    "tagged": (
        "select id, 'is for ' || t as message from (select id, unnest(tags) as t from entity) where t <> 'all'",
        'attr(Id, tags, Tags), member(T, Tags), T \\== "all", string_concat("is for ", T, M)',
    ),
    "no-test": (
        (
            "select id, status || ' without a test' as message from entity where type = 'req' "
            "and id not in (select from_id from edge where type = 'verified_by')"
        ),
        "entity(Id, req, _, Status), \\+ verified_by(Id, _), atom_concat(Status, ' without a test', M)",
    ),
}
IDS = ["A", "B 1", "c'd", "é\\n", 'q"', "REQ-10", "REQ-9"]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8).map(lambda text: f"t{text}t")
NODES = st.builds(
    dict,
    type=st.sampled_from(["req", "test"]),
    title=TEXTS,
    status=st.sampled_from(["open", "done"]),
    owner=st.none() | TEXTS,
    tags=st.lists(st.sampled_from(["all", "web", "a'b"]), unique=True, max_size=2),
)
EDGES = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(["depends_on", "verified_by"]),
    st.sampled_from(IDS),
    st.none() | st.sampled_from([0.25, 0.5, 0.75]),
)


@pytest.fixture(scope="module")
def both(engine: dict[str, str]) -> Iterator[tuple[Sandbox, dict[str, str]]]:
    """A place for SQL, and an engine."""
    with Sandbox(lambda *_: None, Times(TIME_S, total_s=600)) as sandbox:
        yield sandbox, engine


@pytest.mark.sliced
@given(
    nodes=st.dictionaries(st.sampled_from(IDS), NODES, max_size=6),
    edges=st.lists(EDGES, max_size=8, unique_by=lambda edge: edge[:3]),
)
def test_rules_that_say_the_same_in_sql_and_prolog_give_the_same_violations(both, nodes, edges):
    sandbox, name = both
    graph = graph_of(
        [
            node(key, path=f"docs/{at}.md", **{k: v for k, v in one.items() if v})
            for at, (key, one) in enumerate(nodes.items())
        ],
        [
            link(a, type_, b, fields={} if confidence is None else {"confidence": confidence})
            for a, type_, b, confidence in edges
            if a in nodes and b in nodes
        ],
    )
    sandbox.switch_to(partial(lend, graph))
    sql = "".join(f'- id: {rule}\n  description: d\n  sql: "{one}"\n' for rule, (one, _) in BOTH.items())
    prolog = "".join(
        f"rule('{rule}-p', \"d\").\nviolation('{rule}-p', Id, M) :- {one}.\n" for rule, (_, one) in BOTH.items()
    )
    project = load_rules({"a.yaml": f"rules:\n{sql}", "b.pl": prolog})
    with place(graph, name) as runs:
        context = RuleContext(graph.rows, CORE, None, sandbox, prolog=runs)
        result = rules.check(context, {}, only=[one.id for one in project], project=project)
    assert {one.status for one in result.rules} == {"ran"}, result.rules
    by_rule: dict[str, list[dict[str, object]]] = {one.id: [] for one in project}
    for one in result.violations:
        by_rule[one.rule].append(one.as_json() | {"rule": one.rule.removesuffix("-p")})
    assert [by_rule[rule] for rule in BOTH] == [by_rule[f"{rule}-p"] for rule in BOTH]
