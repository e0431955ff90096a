"""`exec/2`: the arguments that a tool gets, the results that a program gets, and the policy."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import Any

import pydantic
import pytest

from kbcore.dml import Policy, Tool
from kbcore.limits import MAX_PROGRAM_VALUE_CHARS
from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import Script, call, does, done

Engine = dict[str, str]


def echo(a: Any = None, b: Any = None, C: Any = None) -> dict[str, Any]:  # noqa: N803 - a key with a capital
    """Return the arguments."""
    return {"a": a, "b": b, "C": C}


class Point(pydantic.BaseModel):
    """A result of a tool."""

    x: int
    Cap: str | None = None


async def slow(x: int) -> int:
    """Return the next number."""
    await asyncio.sleep(0)
    return x + 1


def wrong() -> None:
    """Raise an error on two lines."""
    raise ValueError("no\nway")


def silent() -> None:
    """Raise an error without a text."""
    raise KeyError


class Odd(Exception):
    """An error with a method of the name that errors of pydantic have, and without a text."""

    def errors(self) -> list[str]:
        """Return what no caller expects."""
        return ["x"]

    def __str__(self) -> str:
        """Raise."""
        raise ZeroDivisionError


def odd() -> None:
    """Raise an error that cannot be shown."""
    raise Odd


def leaves() -> None:
    """End as a program does."""
    raise SystemExit("bye")


def wordy() -> None:
    """Raise an error with a long text."""
    raise ValueError("x" * 5000)


def empty() -> None:
    """Raise an error that no future of asyncio can hold."""
    raise StopIteration


def large() -> str:
    """Return more than a program is given."""
    return "x" * (MAX_PROGRAM_VALUE_CHARS + 1)


def thing() -> object:
    """Return what is no value of JSON."""
    return object()


def deep() -> list[Any]:
    """Return a list that is nested too deeply."""
    found: list[Any] = []
    for _ in range(300):
        found = [found]
    return found


TOOLS = [echo, slow, wrong, silent, odd, leaves, wordy, empty, large, thing, deep]


def test_arguments_are_positional_named_or_a_dict_and_keep_their_types(engine: Engine) -> None:
    tries: dict[str, Any] = {
        "echo(1, 2, 3)": {"a": 1, "b": 2, "C": 3},
        "echo(b: 2, a: 1)": {"a": 1, "b": 2, "C": None},
        "echo(_{a: null, b: true, 'C': \"x\"})": {"a": None, "b": True, "C": "x"},
        "echo(1, 'C': 3)": {"a": 1, "b": None, "C": 3},
        "echo": {"a": None, "b": None, "C": None},
        "echo(123456789012345678901234567890, -1.5e300, -0.0)": {
            "a": 123456789012345678901234567890, "b": -1.5e300, "C": -0.0,
        },
        'echo([[1, [2, []]], "ü😀\\n\\x0\\"], \'A b\', f(x))': {
            "a": [[1, [2, []]], "ü😀\n\0"], "b": "A b", "C": "f(x)",
        },
        'echo([_{\'Kap\': [null, false]}], "{X} {{X}}", x)': {"a": [{"Kap": [None, False]}], "b": "v {X}", "C": "x"},
        "echo('', [], {})": {"a": "", "b": [], "C": "{}"},
        "echo([a|b], 1r3, json('}'))": {"a": "[a|b]", "b": "1r3", "C": "json('}')"},
    }  # fmt: skip
    given: list[dict[str, Any]] = []
    recorder = Tool("echo", "", {"properties": {"a": {}, "b": {}, "C": {}}}, lambda **a: given.append(a), lambda a: a)
    goals = ", ".join(f"exec({goal}, null)" for goal in tries)
    assert ran(body(f"X = v, {goals}"), engine, tools=[recorder]).outcome == "success"
    assert [{"a": None, "b": None, "C": None} | one for one in given] == [*tries.values()]


def test_results_keep_their_types(engine: Engine) -> None:
    results = [
        None, True, 1, 2**200, 1.5, "x{Y}", {"Cap": None, "a b": [1, []]}, Point(x=1), (1, 2), dt.date(2026, 1, 2),
        b"ab", {}, [], "", -5, [[[]]],
    ]  # fmt: skip
    tool = Tool("next", "", {}, lambda: results.pop(0), lambda arguments: arguments)
    goals = ", ".join([f"exec(next, R{at}), (is_dict(R{at}) -> log(R{at}) ; log(R{at}))" for at in range(16)])
    checks = "R0 == null, R1 == true, R3 =:= 2 ** 200, string(R5), get_dict('Cap', R6, null)"
    found = ran(body(f"{goals}, {checks}"), engine, tools=[tool])
    assert found.outcome == "success"
    assert found.logs == [
        "null", "true", "1", str(2**200), "1.5", "x{Y}", '{"Cap":null,"a b":[1,[]]}', '{"Cap":null,"x":1}', "[1,2]",
        "2026-01-02", "YWI=", "{}", "[]", "", "-5", "[[[]]]",
    ]  # fmt: skip


def test_a_tool_that_cannot_be_called_or_fails_is_logged_and_the_goal_fails(engine: Engine) -> None:
    tries = {
        "echo(1, 2, 3, 4)": "The tool `echo` failed: 4 arguments were given; it takes a, b, C.",
        "echo(a: 1, 1)": "The tool `echo` failed: the argument a was given twice.",
        "echo(x: 1)": "The tool `echo` failed: x: Extra inputs are not permitted.",
        'slow("x")': (
            "The tool `slow` failed: x: Input should be a valid integer, unable to parse string as an integer."
        ),
        "slow": "The tool `slow` failed: x: Field required.",
        "wrong": "The tool `wrong` failed: no way.",
        "silent": "The tool `silent` failed: KeyError.",
        "odd": "The tool `odd` failed: Odd.",
        "leaves": "The tool `leaves` failed: bye.",
        "wordy": f"The tool `wordy` failed: {'x' * 1000}….",
        "empty": "The tool `empty` failed: coroutine raised StopIteration.",
        "large": "The tool `large` failed: its result has more than 16,777,216 characters.",
        "thing": (
            "The tool `thing` failed: its result is no value of JSON: Encoding objects of type object is unsupported."
        ),
        "deep": "The tool `deep` failed: it is nested more than 200 times.",
        "nothing(1)": "There is no tool `nothing`.",
        "'no name'(1)": "There is no tool `no name`.",
    }
    goals = ", ".join(f"( exec({goal}, _) -> log(no) ; true )" for goal in tries)
    found = ran(body(f"{goals}, exec(slow(1), Two), log(Two)"), engine, tools=TOOLS)
    assert [text for _, text in found.notes] == [*tries.values()]
    assert {code for code, _ in found.notes} == {"tool_failed", "unknown_tool"}
    assert found.logs == ["2"]


def test_a_number_with_too_many_digits_is_no_result(engine: Engine) -> None:
    tool = Tool("large", "", {}, lambda: 10**5000, lambda arguments: arguments)
    found = ran(body("exec(large, _)"), engine, tools=[tool])
    assert found.notes == [("tool_failed", "The tool `large` failed: it is a number with more than 4,000 digits.")]


@pytest.mark.parametrize(("goal", "message"), [
    ("exec(_, _)", "Arguments are not sufficiently instantiated."),
    ('exec("echo", _)', 'Type error: `callable` expected, found `"echo"` (a string).'),
    ("exec(echo:x, _)", "Type error: `callable` expected, found `echo:x` (a compound)."),
])  # fmt: skip
def test_what_is_no_call_of_a_tool_is_an_error(engine: Engine, goal: str, message: str) -> None:
    said = ran(body(goal), engine, tools=TOOLS).error.content
    assert said.removeprefix("The program ended with an error").removeprefix(" in `exec/2`") == f": {message}"


def test_a_tool_of_the_program_is_called_with_all_its_arguments(engine: Engine) -> None:
    code = """
    tool(double(X, Y)) :- Y is X * 2.
    tool(many(X)) :- member(X, [1, 2]).
    tool(ping) :- log(ping).
    agent_main :- exec(double(4), D), log(D), exec(many, M), log(M), exec(ping, P), log(P), M > 1.
    agent_main :- exec(double(1, 2), _).
    """
    found = ran(code, engine)
    assert found.logs == ["8", "1", "ping", "true"]
    assert found.error.content == (
        "The program ended with an error: "
        "The tool takes other arguments; it is `double/2`, where the last one is the result."
    )


POLICIES = {
    "none": (None, ["read", "write", "deep done", "deep done"], []),
    "whitelist": (Policy("whitelist", ["read_*"]), ["read"], ["it is not on the list of allowed tools"]),
    "blacklist": (Policy("blacklist", ["w?ite_*"]), ["read"], ["the policy denies `w?ite_*`"]),
    "denied": (Policy("whitelist", ["*"], ["write_b"]), ["read"], ["the policy denies `write_b`"]),
    "nothing": (Policy("whitelist", []), [], ["it is not on the list of allowed tools"]),
    "case": (Policy("whitelist", ["READ_*"]), [], ["it is not on the list of allowed tools"]),
}


@pytest.mark.parametrize("name", POLICIES)
def test_the_policy_is_asked_at_every_depth(engine: Engine, name: str) -> None:
    def read_a() -> str:
        return "read"

    def write_b() -> str:
        written.append(1)
        return "write"

    code = """
    tool(outer(X, R)) :- exec(inner(X), R), task("nested").
    tool(inner(_, "deep done")) :- exec(write_b, _).
    agent_main :-
        ( exec(read_a, A) -> log(A) ; true ), ( exec(write_b, B) -> log(B) ; true ),
        ( G = exec(inner(1), C), call(G) -> log(C) ; true ), ( exec(outer(1), D) -> log(D) ; true ), task("t").
    """
    written: list[int] = []
    policy, logs, reasons = POLICIES[name]
    nested = done() if policy is None else None
    steps = [one for one in (nested, does(call("outer", arg1="x")), nested, done()) if one]
    found = ran(code, engine, tools=[read_a, write_b], policy=policy, model=Script(*steps))
    assert (found.outcome, found.logs) == ("success", logs)
    blocked = [text for code, text in found.notes if code == "blocked" and "`write_b`" in text]
    assert blocked == [f"`write_b` is blocked: {reason}." for reason in reasons] * 4
    assert len(written) == (4 if policy is None else 0)


def test_registered_tools_reach_the_model_only_through_tools_of_the_program(engine: Engine) -> None:
    model = Script(does(call("echo", a=1)), done())
    assert ran(body('task("t")'), engine, tools=TOOLS, model=model).outcome == "success"
    assert model.tool_names(0) == ["finish"]
    assert model.asked[1][-1].text == "There is no tool echo."
