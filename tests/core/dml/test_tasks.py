"""Tasks: outputs and their types, what ends a task, the tools of the program that a model calls, and sub-agents."""

from __future__ import annotations

import pytest

from kbcore.dml import ModelFailed, ToolCall, Turn
from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import GIVES_UP, Script, call, does, done, finish, says, store

Engine = dict[str, str]


def test_values_of_all_types_reach_the_program(engine: Engine) -> None:
    code = body("""task("t", string(A), integer(B), number(C), boolean(D), list(E), list(list(integer(F))),
        object(G), H, list(object(I)),
        [J, K]), log("{A}|{B}|{C}|{D}|{E}|{F}|{G}|{H}|{I}|{J}{K}"), string(A), C =:= 2, D == true, H == null""")
    model = Script(
        done(A="a{B}", B=2**70, C=2, D=True, E=[1, None], F=[[1], []], G={"Cap": None}, H=None, I=[{}], Output10=[1, 2])
    )
    assert ran(code, engine, model=model).logs == [
        f'a{{B}}|{2**70}|2|true|[1,null]|[[1],[]]|{{"Cap":null}}|null|[{{}}]|12'
    ]
    assert model.asked[0][-1].text == (
        "t\n\nOutputs to store with `set_result`:\n- `A`: string\n- `B`: integer\n- `C`: number\n- `D`: boolean\n"
        "- `E`: list(any)\n- `F`: list(list(integer))\n- `G`: object\n- `H`\n- `I`: list(object)\n- `Output10`"
    )


def test_outputs_that_are_bound_or_shared_are_unified(engine: Engine) -> None:
    code = body('R = 5, ( task("a", R), log(same) ; log(differs) ), task("b", X, X), log("{X}"), L = [_, _], '
                'maplist([Y]>>task("c", Y), L), log("{L}")')  # fmt: skip
    model = Script(done(R=6), done(X=1), done(Y=2), done(Y=3))
    assert ran(code, engine, model=model).logs == ["differs", "1", "[2,3]"]
    assert model.offered[1][-1].parameters["properties"]["variable"]["enum"] == ["X"]


def test_tasks_of_any_text_run_and_an_unbound_one_is_an_error(engine: Engine) -> None:
    model = Script(done(), done(), done())
    found = ran(body('task(""), task(5), task([a, 1]), task(_)'), engine, model=model)
    assert [asked[-1].text for asked in model.asked] == ["", "5", '["a",1]']
    assert (
        found.error.content
        == "The program ended with an error in `task/1`: Arguments are not sufficiently instantiated."
    )


@pytest.mark.parametrize(("goal", "predicate"), [
    ("answer(_)", "answer/1"), ("log(_)", "log/1"), ("user(_)", "user/1"), ("wait_for_input(_, _)", "wait_for_input/2"),
    ("atom_length(_, _)", "atom_length/2"), ("X is foo + 1, log(X)", "(is)/2"),
    ("throw(error(type_error(a, b), _))", ""),
    ("throw(error(type_error(a, b), context(shell/1, _)))", ""),
])  # fmt: skip
def test_an_error_names_the_predicate_that_the_program_called(engine: Engine, goal: str, predicate: str) -> None:
    error = ran(body(goal), engine).error
    assert error.data.get("predicate", "") == predicate
    where = f" in `{predicate}`" if predicate else ""
    assert error.content.startswith(f"The program ended with an error{where}: ")


def test_a_failure_of_the_model_is_raised_and_never_a_failure_of_the_goal(engine: Engine) -> None:
    found = ran(body('( task("t") ; log("failed") )'), engine, model=Script(ModelFailed("no network")))
    assert (found.error.code, found.logs) == ("model_unavailable", [])
    assert found.error.content == "The model could not be asked: no network."
    code = """
    tool(ask(_, R)) :- ( task("inner", R) ; R = failed ).
    agent_main :- catch(task("t"), error(model_error(Why), _), log("caught {Why}")), task("u"), log(on).
    """
    model = Script(does(call("ask", arg1="x")), ModelFailed("no key"), done())
    assert ran(code, engine, model=model).logs == ["caught no key", "on"]
    found = ran(body('task("t")'), engine)
    assert found.error.content == "The model could not be asked: no model is given."


def test_an_error_that_the_model_itself_has_reaches_the_caller(engine: Engine) -> None:
    with pytest.raises(RuntimeError, match="defect"):
        ran(body('task("t")'), engine, model=Script(RuntimeError("defect")))


TOOLS = """
tool(err(_, _)) :- throw(oops).
tool(unknown(X, _)) :- foo(X).
tool(unbound(_, _)).
tool(fails(_, _)) :- fail.
tool(ping) :- log(ping).
tool(only(5)).
tool(got(X, R)) :- R = got(X).
tool(two(A, B, [A, B])).
tool(multi(X, first(X))).
tool(multi(X, second(X))).
tool(prints(_, ok)) :- write("printed").
tool(refused(X, _)) :- G = shell(X), call(G).
tool(long(_, R)) :- length(L, 60_000), maplist(=(x), L), R = L.
agent_main :- user(u), task("t"), user(v), task("w").
"""


def test_what_a_tool_of_the_program_gives_is_told_to_the_model(engine: Engine) -> None:
    values = ["12", "007", "1.50", "-3", "1e3", " 1", 5, None, [1], "9" * 5000, "1e400", "-0", "true", "q\n{X}'\"\\"]
    calls = [
        call(name, arg1="a")
        for name in ("err", "unknown", "unbound", "fails", "ping", "only", "multi", "prints", "refused")
    ]
    calls += [call("got", arg1=value) for value in values]
    calls += [
        call("two", arg1="x"),
        call("two", arg2="b", arg1="a"),
        call("nope"),
        ToolCall("c", "ping", {}, "bad JSON"),
    ]
    model = Script(does(*calls, call("long", arg1="x")), done(), done())
    found = ran(TOOLS, engine, model=model)
    results = [one.text for one in model.asked[1] if one.role == "tool"]
    assert results[:-1] == [
        "The tool ended with an error: Uncaught exception: `oops`.",
        "The tool ended with an error: Unknown predicate foo/1.",
        "The tool ended with an error: A value has an unbound variable: `_A`.",
        "The tool failed.", "true", "5", 'first("a")', "ok",
        "The tool ended with an error: `shell/1` is refused: it is not in the list of allowed predicates.",
        "got(12)", 'got("007")', "got(1.5)", "got(-3)", "got(1000.0)", 'got(" 1")', "got(5)", "got(null)", "got([1])",
        f'got("{"9" * 5000}")', 'got("1e400")', 'got("-0")', 'got("true")', 'got("q\\n{X}\'\\"\\\\")',
        "Missing: arg2.", '["a","b"]', "There is no tool nope.", "The arguments cannot be read: bad JSON",
    ]  # fmt: skip
    assert results[-1].endswith("\n[140,001 more characters were left out]")
    assert len(results[-1]) < 100_100
    assert (found.outcome, found.contents("output"), found.logs) == ("success", ["printed"], ["ping"])
    assert [one.role for one in model.asked[2][-2:]] == ["user", "user"]


NESTED = """
tool(outer(X, R), "Outer") :- task("in outer {X}", R).
tool(middle(X, R), "Middle") :- system("of middle"), task("in middle {X}", R), fail.
tool(middle(X, R), "Middle") :- user("second"), R = X.
tool(inner(X, R), "Inner") :- push_context, task("in inner {X}", R), pop_context, user("after pop").
agent_main :- system("S"), user("U"), task("top", R), log("{R}").
"""


def test_tools_nest_and_each_task_sees_the_conversation_as_it_is_there(engine: Engine) -> None:
    model = Script(
        does(call("outer", arg1="1")), does(call("middle", arg1="2")), does(call("inner", arg1="3")),
        done(R="deep"), done(R="mid"), done(R="out"), done(R="top"),
    )  # fmt: skip
    assert ran(NESTED, engine, model=model).logs == ["top"]
    assert [model.tool_names(at)[:-2] for at in range(7)] == [
        ["outer", "middle", "inner"], ["middle", "inner"], ["inner"], [], ["inner"], ["middle", "inner"],
        ["outer", "middle", "inner"],
    ]  # fmt: skip
    asked = [[line.partition("\n")[0] for line in model.conversation(at)] for at in range(7)]
    running = ["assistant: ", "tool: The tool has not ended yet."]
    top = ["system: S", "user: U", "user: top"]
    outer = [*top, *running, "user: in outer 1"]
    middle = [*outer, *running, "system: of middle", "user: in middle 2"]
    assert asked[:3] == [top, outer, middle]
    assert asked[3] == ["system: S", "system: of middle", "user: in inner 3"]
    assert asked[4:] == [
        [*middle, "assistant: ", "tool: deep"],
        [*outer, "assistant: ", "tool: 2"],
        [*top, "assistant: ", "tool: out"],
    ]


def test_every_call_has_a_result_in_each_request(engine: Engine) -> None:
    calls = [call("outer", arg1="1"), call("inner", arg1="x")]
    model = Script(
        does(*calls), says("t", call("nope"), call("middle", arg1="2")), done(R=1), done(R=2), done(R=3), done(R=4)
    )
    assert ran(NESTED, engine, model=model).outcome == "success"
    for messages in model.asked:
        wanted = [one.id for message in messages for one in message.calls]
        assert [message.call_id for message in messages if message.role == "tool"] == wanted


def test_a_tool_started_by_exec_is_called_with_the_memory_of_its_goal(engine: Engine) -> None:
    code = """
    tool(sub(X, R)) :- user("in sub"), task("sub {X}", R).
    agent_main :- user(u), exec(sub(1), R), task("after {R}").
    """
    model = Script(done(R="r"), done())
    ran(code, engine, model=model)
    assert (model.tool_names(0), model.tool_names(1)) == (["finish", "set_result"], ["sub", "finish"])
    assert model.conversation(1)[:2] == ["user: u", "user: in sub"]


def test_a_question_of_the_model_and_of_the_program_reach_the_user(engine: Engine) -> None:
    async def answer(prompt: str) -> str:
        return f"to {prompt}"

    code = body('X = 1, wait_for_input("q {X}", A), log(A), task("t", B), log(B)')
    model = Script(does(call("ask_user", prompt="name?"), call("ask_user", prompt=3)), done(B="b"))
    found = ran(code, engine, model=model, on_input=answer)
    assert found.logs == ["to q 1", "b"]
    assert [one.prompt for one in found.events if one.type == "input_required"] == ["q 1", "name?"]
    assert [one.text for one in model.asked[1][-2:]] == ["to name?", "`prompt` is a text."]
    found = ran(body('wait_for_input("q", A), log(A)'), engine)
    assert found.error.content == "The program ended with an error: Nobody is there who answers."


def test_what_the_input_raises_or_returns_wrongly_reaches_the_caller(engine: Engine) -> None:
    def closed(prompt: str) -> str:
        raise EOFError(prompt)

    with pytest.raises(EOFError, match="q"):
        ran(body('wait_for_input("q", _)'), engine, on_input=closed)
    with pytest.raises(TypeError, match="on_input has to return a text, and returned NoneType"):
        ran(body('wait_for_input("q", _)'), engine, on_input=lambda prompt: None)


def test_text_and_calls_of_one_turn_both_count(engine: Engine) -> None:
    model = Script(says("thinking", store("X", 1)), Turn("done", (finish(),)))
    found = ran(
        body('task("t", X), log("{X}"), task("u")'), engine, model=Script(says("a", store("X", 1), finish()), GIVES_UP)
    )
    assert found.logs == ["1"]
    found = ran(body('task("t", X), log("{X}")'), engine, model=model)
    assert found.messages[1:] == ["assistant: thinking", "tool: ok", "assistant: done", "tool: ok"]


def test_a_value_of_the_model_that_no_term_can_have_does_not_end_the_run(engine: Engine) -> None:
    deep: list[object] = []
    for _ in range(300):
        deep = [deep]
    code = "tool(same(X, X)).\n" + body('task("t", X), log(X)')
    model = Script(does(store("X", deep)), does(call("same", arg1=deep)), does(store("X", float("inf"))), done(X=1))
    found = ran(code, engine, model=model)
    assert (found.outcome, found.logs) == ("success", ["1"])
    results = [one.text for one in model.asked[-1] if one.role == "tool"]
    nested = "The arguments cannot be read: it is nested more than 200 times"
    assert results == [nested, nested, "The arguments cannot be read: it is a number that JSON does not have"]
    assert [one.arguments for message in model.asked[-1] for one in message.calls] == [{}, {}, {}]
