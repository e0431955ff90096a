"""A goal or a clause that may not run is refused by name, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import PrologFailed
from kbcore.logic.engine.libraries import Libraries
from tests.support.fuzz.hostile_goals import ACCEPTED, CLAUSES, DISGUISED, JAVASCRIPT, LIBRARIES, LIBRARY, NATIVE, PLAIN
from tests.support.logic.workspaces import LogicProject, children_of, logic_project
from tests.support.repository.repos import git_env

STATE = (
    'findall(P-T-N, current_op(P, T, N), L0), msort(L0, L), term_hash(L, Operators), X = "text", string(X), '
    "Y = 'a b', D is 7 / 2, findall(S, safe(S), Safe), findall(C, (current_predicate(C), C = N1/_, "
    "memberchk(N1, [evil, safe, calling])), Known0), msort(Known0, Known)"
)
"""A query whose answer shows operators, flags, clauses and predicates."""


@pytest.fixture(scope="module")
def attacked(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogicProject]:
    """A workspace with some clauses, whose engine goes on from test to test."""
    root = tmp_path_factory.mktemp("hostile") / "p"
    with logic_project(root, git_env(engine), Libraries(LIBRARIES)) as found:
        assert found.add(*ACCEPTED).succeeded == len(ACCEPTED)
        yield found


@pytest.fixture
def unchanged(attacked: LogicProject, tmp_path: Path) -> Iterator[tuple[LogicProject, Path]]:
    """The workspace, and the path of a file that must not be made; what it holds must be the same at the end."""
    before = _state(attacked)
    file = tmp_path / "evil"
    yield attacked, file
    assert _state(attacked) == before
    assert not file.exists()


def _state(logic: LogicProject) -> tuple[Any, ...]:
    answer = logic.first(STATE)
    files = sorted(logic.folder.iterdir())
    return answer, files, children_of(logic.pid), logic.pid, logic.snapshot(), logic.source().clauses.read().seq


def _refused(logic: LogicProject, goal: str, name: str, mode: Any = "engine") -> PrologFailed:
    error = logic.failure(goal, mode)
    assert error.data.get("kind") == "refused", error.message
    assert ("~@" if name == "format/1" else name) in error.message
    return error


@pytest.mark.sliced
@pytest.mark.parametrize(("goal", "name"), [*PLAIN.items(), *DISGUISED.items(), *LIBRARY.items()])
def test_a_goal_that_may_not_run_is_refused_by_name(unchanged: tuple[LogicProject, Path], goal: str, name: str) -> None:
    logic, file = unchanged
    _refused(logic, goal.replace("{file}", str(file)), name)


@pytest.mark.parametrize("goal", [*DISGUISED][::7])
def test_the_standard_mode_refuses_the_same(unchanged: tuple[LogicProject, Path], goal: str) -> None:
    logic, file = unchanged
    _refused(logic, goal.replace("{file}", str(file)), DISGUISED[goal], "standard")


@pytest.mark.parametrize(("goal", "name"), [*JAVASCRIPT.items(), *NATIVE.items()])
def test_a_predicate_of_one_engine_is_refused_or_unknown(
    unchanged: tuple[LogicProject, Path], engine: dict[str, str], goal: str, name: str
) -> None:
    logic, file = unchanged
    error = logic.failure(goal.replace("{file}", str(file)))
    own = "wasm" if goal in JAVASCRIPT else "native"
    assert error.data["kind"] in ({"refused"} if engine["KB_LOGIC_ENGINE"] == own else {"refused", "unknown_predicate"})
    assert name in error.message


@pytest.mark.parametrize(("clause", "name"), CLAUSES.items())
def test_a_clause_that_may_not_be_added_is_refused_by_name(
    unchanged: tuple[LogicProject, Path], clause: str, name: str
) -> None:
    logic, file = unchanged
    [outcome] = logic.add(clause.replace("{file}", str(file))).outcomes
    assert outcome.status == "error"
    assert name in outcome.message


def test_there_are_as_many_hostile_goals_as_promised() -> None:
    assert len(PLAIN) + len(DISGUISED) + len(LIBRARY) >= 130


def test_an_exception_that_is_a_format_is_shown_and_not_run(unchanged: tuple[LogicProject, Path]) -> None:
    logic, file = unchanged
    error = logic.failure(f"throw(error(format(\"~@\", [system:shell('touch {file}')]), _))")
    assert error.data["kind"] == "exception"


@pytest.mark.parametrize(
    "ball",
    [
        *(
            "error(refused, _)",
            "error(unknown_predicate, _)",
            "error(timeout, _)",
            "error(query_lost, _)",
            "error(X, _)",
        ),
        *("error(kb_refused(a/1, evil), _)", "error(kb_limit(evil), _)", "_", "1", '"text"', "f(X, Y)", "end_of_file"),
        *("error(kb_refused(shell/1, not_allowed), _)", "error(kb_refused(p/1, library(assoc)), _)"),
        *("error(kb_limit(inference), _)", "error(kb_limit(output), _)"),
        *("error(resource_error(memory), _)", "error(resource_error(private_table_space), stack_overflow{a: 1})"),
    ],
)
def test_an_exception_of_a_user_forges_no_answer_of_the_engine(unchanged: tuple[LogicProject, Path], ball: str) -> None:
    logic, _ = unchanged
    kind = "instantiation_error" if ball == "_" else "exception"
    for goal in (f"throw({ball})", f"B = {ball}, maplist(throw, [B])", f"catch(throw({ball}), E, throw(E))"):
        assert logic.failure(goal).data["kind"] == kind


def test_a_resource_error_by_the_library_is_no_lack_of_memory(unchanged: tuple[LogicProject, Path]) -> None:
    logic, _ = unchanged
    for goal in ("resource_error(memory)", "call(resource_error, memory)", "maplist(resource_error, [memory])"):
        assert logic.failure(goal).data["kind"] == "exception"


@pytest.mark.parametrize(
    ("goal", "kind"),
    [
        ("G = assertz(a), call(G)", "refused"),
        ("numlist(1, 100000000, L)", "memory"),
        ("numlist(1, 2000, L), member(_, L), format('~*c', [1000, 0'x]), fail", "output_limit"),
    ],
)
def test_a_limit_that_is_met_after_an_equal_term_was_thrown_keeps_its_kind(
    logic: LogicProject, goal: str, kind: str
) -> None:
    terms = ("kb_refused(assertz/1, state_change)", "kb_limit(output)", "resource_error(memory)")
    for term in terms:
        assert logic.failure(f"catch(throw(error({term}, _)), _, true), {goal}").data["kind"] == kind
        assert logic.failure(f"throw(error({term}, _))").data["kind"] == "exception"


def test_a_checked_goal_cannot_be_changed_by_destructive_assignment(
    unchanged: tuple[LogicProject, Path], tmp_path: Path
) -> None:
    logic, _ = unchanged
    program = tmp_path / "program.pl"
    program.write_text("workspace:evil(1).\n")
    closure = "C = aggregate_all(count, X, []), freeze(V, maplist(C, [N]))"
    keys = [f"'{'/' * slashes}{program}'" for slashes in range(8)]
    for key in keys:
        try:
            outcome = logic.first(f"{closure}, add_nb_set({key}, s(C, 0)), V = 1")["status"]
        except PrologFailed as error:
            outcome = error.data["kind"]
        # The library takes no such set (10.1); or it does (9.0), and what it made of the goal is called by its name.
        assert outcome in {"done", "type_error", "domain_error", "refused", "memory"}
        assert logic.failure("evil(X)").data["kind"] == "unknown_predicate"


def test_a_body_whose_own_predicate_is_gone_does_not_call_that_of_a_library(
    logic: LogicProject, tmp_path: Path
) -> None:
    file = tmp_path / "evil"
    own = "process_create(a, b, c)."
    caller = f"call_it :- process_create(path(touch), ['{file}'], [])."
    assert logic.add(own).succeeded + logic.add(caller).succeeded == 2
    logic.remove(own)
    for _ in ("the engine that loaded both", "one that loads what is left"):
        error = logic.failure("call_it")
        assert (error.data["kind"], logic.prolog.notices) == ("unknown_predicate", [])
        logic.prolog.close()
    assert not file.exists()
