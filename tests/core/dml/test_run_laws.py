"""Laws of runs: a program without tasks has the answers of the bare engine, and a model sees the path to its goal."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from kbcore.dml import Turn
from tests.support.dml.runs import ran, ran_async
from tests.support.dml.scripts import GIVES_UP, Script, done
from tests.support.effort.scale import tries
from tests.support.generators.dml_programs import MOST, Search, programs, searches

Engine = dict[str, str]

ANSWERS = f"""
main :-
    nb_setval(left, {MOST}),
    (   catch(p2(X, Y), E, ( written(error(E)), fail )), written(X-Y), nb_getval(left, N), M is N - 1,
        nb_setval(left, M), M =:= 0
    ->  true
    ;   true
    ).
written(error(error(Formal, _))) :- !, numbered(error(Formal)).
written(Term) :- numbered(Term).
numbered(Term) :- copy_term(Term, Copy), numbervars(Copy, 0, _),
    write_term(Copy, [quoted(true), numbervars(true), ignore_ops(true)]), nl.
"""
"""Writes the answers of `p2/2` in their order."""


@pytest.mark.skipif(shutil.which("swipl") is None, reason="the bare engine is `swipl`")
@settings(max_examples=tries(8, 60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(program=programs())
def test_the_answers_of_a_program_and_their_order_are_those_of_the_bare_engine(
    engine: Engine, tmp_path: Path, program: str
) -> None:
    file = tmp_path / "bare.pl"
    head = ":- discontiguous p0/2, p1/2, p2/2.\n:- style_check(-singleton).\n"
    file.write_text(f"{head}{program}\n{ANSWERS}", encoding="utf-8")
    command = ["swipl", "-q", "-f", "none", "-g", "main", "-t", "halt", str(file)]
    bare = subprocess.run(command, capture_output=True, text=True, check=True, encoding="utf-8", timeout=60)
    found = ran(f"{program}\n{ANSWERS}\nagent_main :- main.", engine)
    assert found.outcome == "success", (program, found.events)
    assert "".join(found.contents("output")) == bare.stdout, program


def written(search: Search) -> str:
    """Return a search as a goal: a task that asks for an odd number fails."""
    kind, inner = search
    if kind in {"say", "ask"}:
        return f"user(u{inner})" if kind == "say" else f"task(t{inner})"
    if kind in {"all", "any"}:
        return f"( {(', ' if kind == 'all' else ' ; ').join(map(written, inner))} )"
    return {
        "fail": "fail",
        "once": "once({})",
        "not": "\\+ {}",
        "catch": "catch(( {}, throw(x) ), x, true)",
        "found": "findall(x, {}, _)",
    }[kind].format(written(inner) if inner else "")


Path_ = tuple[str, ...]


def solved(  # noqa: C901, PLR0912 - a branch for each kind of goal
    search: Search, path: Path_, asked: list[Path_]
) -> Iterator[Path_]:
    """Yield the messages after each solution of a search; note what each task is asked with."""
    kind, inner = search
    if kind == "say":
        yield (*path, f"user: u{inner}")
    elif kind == "ask":
        asked.append((*path, f"user: t{inner}"))
        if inner % 2 == 0:
            yield (*path, f"user: t{inner}", "assistant: ", "tool: ok")
    elif kind == "all":
        first, *rest = inner
        for after in solved(first, path, asked):
            yield from solved(("all", tuple(rest)), after, asked) if rest else [after]
    elif kind == "any":
        for one in inner:
            yield from solved(one, path, asked)
    elif kind == "once":
        yield from (after for after, _ in zip(solved(inner, path, asked), [0], strict=False))
    elif kind == "not":
        if next(solved(inner, path, asked), None) is None:
            yield path
    elif kind == "catch":
        if next(solved(inner, path, asked), None) is not None:
            yield path
    elif kind == "found":
        for _ in solved(inner, path, asked):
            pass
        yield path


@settings(max_examples=tries(12, 150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(search=searches())
def test_a_model_sees_the_path_from_the_root_of_the_search_to_its_goal(engine: Engine, search: Search) -> None:
    asked: list[Path_] = []
    ended = next(solved(search, (), asked), None)

    def turn(messages: object, tools: object) -> Turn:
        number = int(model.asked[-1][-1].text[1:])
        return GIVES_UP if number % 2 else done()

    model = Script(forever=turn)
    found = asyncio.run(ran_async(f"agent_main :- {written(search)}.", engine, model=model))
    assert found.outcome == ("failure" if ended is None else "success")
    assert [tuple(model.conversation(at)) for at in range(len(model.asked))] == asked
    assert tuple(found.messages) == (ended or ())
