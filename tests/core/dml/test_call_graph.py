"""The predicates within reach of `agent_main` and the tools."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.dml.call_graph import Uses, unreachable

PREDICATES = st.sampled_from(
    [("agent_main", 0), ("tool", 1), *((name, arity) for name in "abcd" for arity in range(3))]
)
USES = st.builds(Uses, PREDICATES, st.lists(PREDICATES, max_size=3), st.lists(PREDICATES, max_size=2))


def test_a_name_in_data_may_be_called_with_further_arguments():
    main = Uses(("agent_main", 0), [], [("a", 1)])
    others = [Uses(("a", arity), [], []) for arity in range(4)]
    assert unreachable([main, *others], []) == {("a", 0)}


def test_what_goals_may_add_clauses_to_is_within_reach():
    clauses = [Uses(("agent_main", 0), [], []), Uses(("a", 0), [("b", 0)], []), Uses(("b", 0), [], [])]
    assert unreachable(clauses, []) == {("a", 0), ("b", 0)}
    assert unreachable(clauses, [("a", 0)]) == set()


@given(st.lists(USES, max_size=12))
def test_what_is_left_is_named_by_nothing_within_reach(clauses):
    left = unreachable(clauses, [])
    for clause in clauses:
        if clause.predicate not in left:
            assert not left & {*clause.calls}
            named = {(name, arity) for name, given in clause.mentions for arity in range(given, 3)}
            assert not left & named
    assert not {name for name, _ in left} & {"agent_main", "tool"}


@given(st.lists(USES, max_size=8), st.randoms())
def test_the_order_of_clauses_changes_nothing(clauses, random):
    other = [*clauses]
    random.shuffle(other)
    assert unreachable(clauses, []) == unreachable(other, [])


@given(st.lists(USES, max_size=8))
def test_what_is_left_can_be_taken_out_and_nothing_else_is_left(clauses):
    left = unreachable(clauses, [])
    assert unreachable([one for one in clauses if one.predicate not in left], []) == set()
