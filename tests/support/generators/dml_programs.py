"""Programs of Prolog that end, and searches with messages, for Hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

MOST: int = 200
"""The solutions that are looked at."""
_ATOMS = st.sampled_from(["a", "b", "c", "'A b'", "[]", '"text"', "1", "2", "-3", "f(a)", "[a, 1]", "point{k: 1}"])
_VARIABLES = ("X", "Y", "Z")


def _term() -> st.SearchStrategy[str]:
    return st.one_of(_ATOMS, st.sampled_from(_VARIABLES), st.builds("g({})".format, st.sampled_from(_VARIABLES)))


def _simple(level: int) -> st.SearchStrategy[str]:
    """Return goals that call predicates of lower levels only: every program ends."""
    variable = st.sampled_from(_VARIABLES)
    goals = [
        st.just("true"), st.just("fail"), st.just("!"),
        st.builds("{} = {}".format, variable, _term()),
        st.builds("{} \\= {}".format, variable, _term()),
        st.builds("member({}, [1, b, 3])".format, variable),
        st.builds("between(1, 3, {})".format, variable),
        st.builds("( integer({0}) -> {1} is {0} + 1 ; {1} = none )".format, variable, variable),
        st.builds("( integer({0}), {0} > 1 ; atom({0}) )".format, variable),
        st.builds('string_concat("s", "{}", {})'.format, st.sampled_from(["x", "é", "{X}"]), variable),
        st.builds("catch({} =.. [h|a], _, {} = caught)".format, variable, variable),
        st.builds("catch(throw(ball({})), ball({}), true)".format, variable, variable),
    ]  # fmt: skip
    if level:
        lower = st.integers(0, level - 1)
        goals.append(st.builds("p{}({}, {})".format, lower, _term(), _term()))
    return st.one_of(goals)


def _goal(level: int) -> st.SearchStrategy[str]:
    def deeper(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        variable = st.sampled_from(_VARIABLES)
        return st.one_of(
            st.builds("{}, {}".format, inner, inner),
            st.builds("( {} ; {} )".format, inner, inner),
            st.builds("( {} -> {} ; {} )".format, inner, inner, inner),
            st.builds("( {} *-> {} ; {} )".format, inner, inner, inner),
            st.builds("\\+ ( {} )".format, inner),
            st.builds("once(( {} ))".format, inner),
            st.builds("ignore(( {} ))".format, inner),
            st.builds("call(( {} ))".format, inner),
            st.builds("forall(( {} ), ( {} ))".format, inner, inner),
            st.builds("findall({}, ( {} ), {})".format, variable, inner, variable),
            st.builds("aggregate_all(count, ( {} ), {})".format, inner, variable),
            st.builds("catch(( {} ), _, {} = error)".format, inner, variable),
        )

    return st.recursive(_simple(level), deeper, max_leaves=5)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Draw clauses of `p0/2` to `p2/2`, each of which calls those below it."""
    clauses = []
    for level in range(3):
        for _ in range(draw(st.integers(1, 3))):
            head = f"p{level}({draw(_term())}, {draw(_term())})"
            goal = draw(st.one_of(st.just("true"), _goal(level)))
            clauses.append(f"{head} :- {goal}.")
    return "\n".join(clauses)


Search = tuple[str, Any]
"""A goal of a search: ("say", number), ("ask", number), ("fail", None), ("all", goals), ("any", goals), ("once", goal),
("not", goal), ("catch", goal): the goal, and an error after it that is caught, ("found", goal): findall/3."""


def searches() -> st.SearchStrategy[Search]:
    """Return searches, in which messages are added and tasks run in any order."""
    numbers = st.integers(0, 9)
    leaf: st.SearchStrategy[Search] = st.one_of(
        st.tuples(st.just("say"), numbers), st.tuples(st.just("ask"), numbers), st.tuples(st.just("fail"), st.none())
    )

    def deeper(inner: st.SearchStrategy[Search]) -> st.SearchStrategy[Search]:
        some = st.lists(inner, min_size=1, max_size=4).map(tuple)
        return st.one_of(
            st.tuples(st.sampled_from(["all", "any"]), some),
            st.tuples(st.sampled_from(["once", "not", "catch", "found"]), inner),
        )

    return st.recursive(leaf, deeper, max_leaves=12)
