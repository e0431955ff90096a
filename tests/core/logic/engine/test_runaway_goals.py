"""A goal that does not end, or takes all memory, is stopped; the workspace is as it was and the next query works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kbcore.logic.workspace import Mode
from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env

LIMIT_S = 2
MAX_KIB = 1536 * 1024
CLAUSES = (
    "loop :- loop.",
    "grow(X) :- grow(f(X)).",
    "deep(X) :- deep(s(X)), true.",
    "nat(0).",
    "nat(N) :- nat(M), N is M + 1.",
    "left(X) :- left(Y), nat(X), Y == X.",
    "double(L) :- append(L, L, M), double(M).",
    "words --> words, [a].",
)
GOALS = {
    "loop": {"timeout", "inference_limit"},
    "repeat, fail": {"timeout", "inference_limit"},
    "between(1, inf, X), X < 0": {"timeout", "inference_limit"},
    "nat(X), X < 0": {"timeout", "inference_limit", "memory"},
    "left(X)": {"memory", "timeout"},
    "phrase(words, [a])": {"memory", "timeout"},
    "grow(a)": {"memory", "timeout"},
    "deep(a)": {"memory", "timeout"},
    "double([a])": {"memory", "timeout"},
    "findall(X, repeat, L)": {"memory", "timeout"},
    "numlist(1, 100000000, L)": {"memory", "timeout"},
    "length(L, 100000000)": {"memory", "timeout"},
    "X is 7 ** (7 ** (7 ** 7))": {"memory", "timeout", "query_lost"},
    "X is 2 ** 1000000000, Y is X * X": {"memory", "timeout", "query_lost"},
    "X is 1 << 200000000, Y is X mod 7": {"memory", "timeout", "query_lost"},
    "repeat, write(text), fail": {"output_limit", "timeout"},
    "repeat, nl, fail": {"output_limit", "timeout"},
    "format('~*c', [1000000000, 0'x])": {"memory", "timeout", "output_limit", "query_lost"},
    "format('~t~w~1000000000|', [a])": {"memory", "timeout", "output_limit", "query_lost", "exception"},
    "with_output_to(string(S), (repeat, write(textextext), fail))": {"memory", "timeout", "query_lost"},
    "catch(loop, _, true), loop": {"timeout", "inference_limit"},
    "repeat, catch(loop, _, fail)": {"timeout", "inference_limit"},
    "repeat, catch(grow(a), _, fail)": {"timeout", "memory"},
    "repeat, catch((repeat, write(text), fail), _, fail)": {"timeout", "output_limit"},
    "setup_call_cleanup(true, fail, loop)": {"timeout", "inference_limit"},
    "setup_call_cleanup(true, member(X, [1, 2]), loop), fail": {"timeout", "inference_limit"},
    "freeze(X, loop), X = 1": {"timeout", "inference_limit"},
    "G = (true, G), call(G)": {"timeout", "memory"},
    "X = f(X, Y), copy_term(X, Z), repeat, Z \\= X": {"timeout", "inference_limit"},
    "length(L, 12), L ins 1..12, all_different(L), sum(L, #=, 7), label(L), false ; loop": {"timeout"},
    "numlist(1, 12, L), permutation(L, P), P = [13 | _]": {"timeout", "inference_limit"},
    "atom_to_term('f(X)', T, B), repeat, copy_term(T, U), fail": {"timeout", "inference_limit"},
    "numlist(1, 500000, L), atomic_list_concat(L, A), repeat, atom_concat(A, A, B), atom_concat(B, B, C), fail":
        {"timeout", "memory", "query_lost"},
    "findall(A, (between(1, inf, N), atom_concat(atom_of_some_length_, N, A)), L)": {"timeout", "memory", "query_lost"},
}  # fmt: skip
"""Each goal with the kinds of errors that it may end with."""


@pytest.fixture(scope="module")
def limited(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogicProject]:
    """A workspace with some clauses and a short limit."""
    with logic_project(tmp_path_factory.mktemp("runaway") / "p", git_env(engine)) as found:
        found.project.write({".kb/config.json": f'{{"logic": {{"timeLimitSeconds": {LIMIT_S}}}}}'})
        assert found.add(*CLAUSES).succeeded == len(CLAUSES)
        yield found


@contextmanager
def _measured(logic: LogicProject) -> Iterator[list[int]]:
    """Yield a list that gets the sizes of the engine, in KiB, while the block runs."""
    sizes, is_over = [0], threading.Event()

    def look() -> None:
        while not is_over.wait(0.01):
            try:
                lines = Path(f"/proc/{logic.pid}/status").read_text(encoding="utf-8").splitlines()
            except OSError:
                continue
            sizes.extend(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))

    watch = threading.Thread(target=look)
    watch.start()
    try:
        yield sizes
    finally:
        is_over.set()
        watch.join()


@pytest.mark.sliced(12)
@pytest.mark.parametrize("mode", ["engine", "standard"])
@pytest.mark.parametrize("goal", GOALS)
def test_a_runaway_goal_ends_with_an_error_and_harms_nothing(limited: LogicProject, goal: str, mode: Mode) -> None:
    before = limited.snapshot()
    limited.first("true")
    with _measured(limited) as sizes:
        error = limited.failure(goal, mode)
    assert error.data["kind"] in GOALS[goal]
    assert max(sizes) < MAX_KIB
    assert limited.snapshot() == before
    assert limited.values("nat(X), X >= 2, !", "X") == ["2"]
