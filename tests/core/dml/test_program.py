"""The call of `agent_main`: params by name or by position, and what is missing or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.dml.program import Param, Program, RunArguments, call_of
from kbcore.errors import ProgramFailed
from kbcore.limits import MAX_PROGRAM_VALUE_CHARS
from tests.support.dml.runs import ran


def made(*mains: tuple[str | None, ...], params: tuple[str, ...] = (), asked: tuple[str, ...] = ()) -> Program:
    """Return a program with these clauses of `agent_main` and these params."""
    return Program((), tuple(Param(key, "text", "", 1) for key in params), mains, asked)


TWO = made(("Topic", "Max"))
TAKEN: list[tuple[Program, dict[str, Any], list[Any], tuple[Any, ...]]] = [
    (TWO, {"Max": 2, "Topic": "a"}, [], ("a", 2)),
    (TWO, {"x": 1, "y": 2}, [], (1, 2)),
    (TWO, {}, [1, None], (1, None)),
    (made(("X",), ("X", "Y")), {"X": 1, "Y": 2}, [], (1, 2)),
    (made(("X",), ("X", "Y")), {"X": 1}, [], (1,)),
    (made(("X",), ("X", "Y")), {}, [5], (5,)),
    (made((None,)), {"List": [1]}, [], ([1],)),
    (made((None, "X")), {"key": 1, "X": 2}, [], (1, 2)),
    (made((), params=("key",)), {"key": 1}, [], ()),
    (made(("X",), params=("key",)), {"key": 1, "X": 2}, [], (2,)),
    (made(("X",), params=("key",)), {"key": 1}, [3], (3,)),
    (made((), ("X",)), {}, [], ()),
]


@pytest.mark.parametrize(("program", "params", "args", "arguments"), TAKEN)
def test_values_are_taken_by_name_or_by_position(
    program: Program, params: dict[str, Any], args: list[Any], arguments: tuple[Any, ...]
) -> None:
    assert call_of(program, params, args) == RunArguments(arguments, params)


REFUSED: list[tuple[Program, dict[str, Any], list[Any], str]] = [
    (TWO, {}, [], "No value is given for 'Topic', 'Max'."),
    (TWO, {"Topic": 1}, [], "No value is given for 'Max'."),
    (TWO, {}, [1, 2, 3], "No value is given for 'Topic', 'Max'."),
    (TWO, {"Topic": 1, "Max": 2, "Z": 3}, [], "The program has no param 'Z'."),
    (TWO, {"Q": 1}, [1, 2], "The program has no param 'Q'."),
    (TWO, {"Mx": 2, "Topic": "a"}, [], "The program has no param 'Mx'."),
    (TWO, {"Topci": "a", "Maxi": 2}, [], "The program has no param 'Topci'."),
    (made(("Text",)), {"Txet": "a"}, [], "The program has no param 'Txet'."),
    (made((), params=("a",), asked=("b",)), {}, [], "No value is given for 'a', 'b'."),
    (made((), asked=("file",)), {"file:file": 1}, [], "The program has no param 'file:file'."),
    (made(()), {"L": 1}, [], "The program has no param 'L'."),
    (made(()), {}, [1], "`agent_main` takes no arguments, and 1 value is given by position."),
]


@pytest.mark.parametrize(("program", "params", "args", "message"), REFUSED)
def test_what_is_missing_or_unknown_is_an_error(
    program: Program, params: dict[str, Any], args: list[Any], message: str
) -> None:
    with pytest.raises(ProgramFailed) as refused:
        call_of(program, params, args)
    assert refused.value.message.startswith(message)


def test_a_missing_param_is_an_error_before_anything_runs(engine: dict[str, str]) -> None:
    code = """
    :- param("a", "The A").
    agent_main :- log(begun), param("a", D, A), K = "c", param(K, C), param("b:file", B), log("{A}{B}{C}{D}").
    """
    found = ran(code, engine)
    assert (found.error.content, found.logs) == ("No value is given for 'a', 'b'.", [])
    assert [one["path"] for one in found.error.data["details"]] == ["$.params.a", "$.params.b"]
    found = ran(code, engine, params={"a": 1, "b": 2})
    assert (found.outcome, found.logs) == ("failure", ["begun"])
    found = ran('agent_main(A) :- log("{A}").', engine, params={"A": {"K": [None, "{B}", 10**30, 0.5]}})
    assert found.logs == ['{"K":[null,"{B}",' + str(10**30) + ",0.5]}"]
    found = ran("agent_main(A) :- true.", engine, params={"A": object()})
    assert found.error.content == "A param has no value of JSON: it is of the type object."
    found = ran("agent_main(A) :- true.", engine, params={"A": "x" * (MAX_PROGRAM_VALUE_CHARS + 1)})
    assert found.error.content == "The params have more than 16,777,216 characters."


def test_what_cannot_be_loaded_is_named_with_its_place(engine: dict[str, str]) -> None:
    code = """
task(x).
tool(X, "d") :- true.
tool(f(X)).
  tool(f(X, Y)).
tool(g(X), X).
tool('a b'(X)).
p :- .
:- param("k").
:- param("k", "again").
"""
    details = ran(code, engine).error.data["details"]
    assert {(one["source"], one["code"]) for one in details} == {
        ("program:2", "program_head"), ("program:3", "tool_head"), ("program:5", "tool_arity"),
        ("program:6", "tool_description"), ("program:7", "tool_name"), ("program:8", "syntax_error"),
        ("program:10", "param_twice"),
    }  # fmt: skip
    for empty in ("", "foo.", "agent_main --> []."):
        [one] = ran(empty, engine).error.data["details"]
        assert one["message"] == "There is no clause of `agent_main`, which is run."


def test_a_clause_that_is_nested_too_deeply_is_named_with_its_place(engine: dict[str, str]) -> None:
    deep = 30_000
    error = ran(f"agent_main.\np :- X = {'f(' * deep}x{')' * deep}, log(X).\n", engine, file="a.dml").error
    [one] = error.data["details"]
    assert (error.code, one["code"], one["source"], one["path"]) == ("program_failed", "too_deep", "a.dml:2", "$")
