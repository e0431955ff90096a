"""A limit ends the step that reaches it, whatever the goal catches, and charges nothing to the next query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kbcore import limits
from kbcore.logic import workspace
from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env

UNCLEAN = "setup_call_cleanup(true, member(X, [1, 2, 3]), (repeat, fail))"


@pytest.fixture(scope="module")
def few(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogicProject]:
    """A workspace whose goals may take few inferences."""
    with logic_project(tmp_path_factory.mktemp("limits") / "p", git_env(engine)) as found:
        with pytest.MonkeyPatch.context() as patch:  # an engine gets the limit when it starts
            patch.setattr(limits, "MAX_GOAL_INFERENCES", 100_000)
            found.add("safely(G) :- catch(G, _, true).", "loop :- loop.")
        yield found


@pytest.mark.parametrize("mode", ["engine", "standard"])
@pytest.mark.parametrize(
    "goal",
    [
        "catch({0}, _, true)",
        "catch({0}, E, true)",
        "catch({0}, _, true), numlist(1, 100000, L)",
        "findall(E, catch({0}, E, true), L)",
        "G = catch({0}, _, true), call(G)",
        "safely({0})",
        "maplist(catch({0}), [_], [true])",
        "catch(catch({0}, _, true), _, true)",
        "catch(catch({0}, E, throw(E)), _, true)",
        "repeat, catch({0}, _, fail)",
        # What the cleanup throws takes the place of the limit's own error, or is the last error of KB itself.
        "catch(setup_call_cleanup(true, {0}, throw(error(type_error(a, b), _))), _, true)",
        "catch(setup_call_cleanup(true, {0}, throw(b)), _, true)",
        "catch(call_cleanup({0}, (G = shell(ls), catch(G, _, true))), _, true)",
        "catch(setup_call_cleanup(true, {0}, (G = shell(ls), G)), _, true), numlist(1, 100000, L)",
    ],
)
@pytest.mark.parametrize(
    ("part", "kind"), [("loop", "inference_limit"), ("(repeat, format('~*c', [9000, 0'x]), fail)", "output_limit")]
)
def test_a_limit_that_a_goal_catches_ends_the_step_all_the_same(
    few: LogicProject, goal: str, part: str, kind: str, mode: workspace.Mode
) -> None:
    assert few.failure(goal.format(part), mode).data["kind"] == kind
    assert few.answers("X = 1") == [{"bindings": {"X": "1"}}]


def test_the_ball_of_a_limit_is_no_exception_that_a_goal_can_throw(few: LogicProject) -> None:
    assert few.failure("throw(inference_limit_exceeded)").data["kind"] == "refused"
    assert few.failure("catch(throw(inference_limit_exceeded), E, throw(E))").data["kind"] == "refused"


def test_a_recovery_is_called_for_errors_and_is_shown_as_it_was_typed(few: LogicProject) -> None:
    assert few.values("catch(throw(mine), E, member(X, [1, 2]))", "X") == ["1", "2"]
    assert few.values("catch(atom_length(_, _), error(E, _), true)", "E") == ["instantiation_error"]
    assert few.failure("catch(throw(mine), _, halt)").data["name"] == "halt/0"
    assert few.failure("catch(throw(mine), _, G)").data["kind"] == "instantiation_error"
    assert few.values("clause(safely(g), Body)", "Body") == ["catch(g, _A, true)"]


def test_a_cleanup_without_end_is_not_charged_to_the_next_query(
    logic: LogicProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_CLOSE_LIMIT_S", 0.5)
    logic.add("p(1).")
    logic.prolog.notices.clear()
    logic.first(UNCLEAN)
    assert logic.values("p(Y)", "Y") == ["1"]
    [notice] = logic.prolog.notices
    assert notice.startswith("The query that was open did not finish its cleanup")


def test_a_query_that_is_closed_with_a_cleanup_without_end_says_that_its_engine_was_ended(
    logic: LogicProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "_CLOSE_LIMIT_S", 0.5)
    logic.prolog.notices.clear()
    logic.first(UNCLEAN)
    assert logic.prolog.close_query()
    assert (len(logic.prolog.notices), logic.pid) == (1, 0)


def test_a_query_that_is_closed_without_a_cleanup_keeps_its_engine_and_says_nothing(logic: LogicProject) -> None:
    logic.prolog.notices.clear()
    logic.first("setup_call_cleanup(true, member(X, [1, 2, 3]), true)")
    pid = logic.pid
    assert logic.values("member(X, [1])", "X") == ["1"]
    assert (logic.prolog.notices, logic.pid) == ([], pid)


@pytest.mark.parametrize("goal", ["format('~*c', [2000000000, 0'x])", "format('~t~w~1000000000|', [a])"])
def test_memory_outside_of_the_stacks_is_memory_and_the_message_has_no_address(logic: LogicProject, goal: str) -> None:
    failure = logic.failure(goal)
    assert failure.data["kind"] == "memory"
    assert failure.message.startswith("The query took more memory than the 1024 MiB it may.")


def test_an_error_of_a_stream_that_a_goal_throws_is_no_lack_of_memory(logic: LogicProject) -> None:
    ball = "error(io_error(write, s), context(format/2, 'Cannot allocate memory'))"
    for goal in (f"throw({ball})", f"B = {ball}, maplist(throw, [B])"):
        assert logic.failure(goal).data["kind"] == "exception"
