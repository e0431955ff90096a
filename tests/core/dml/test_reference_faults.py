"""Known faults of another implementation of the language, each as a test of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from kbcore.dml import ModelFailed, Policy
from tests.support.dml.runs import body, none_left, ran, ran_async
from tests.support.dml.scripts import Script, call, does, done

Engine = dict[str, str]


def test_all_solutions_of_a_clause_body_are_tried(engine: Engine) -> None:
    code = "agent_main :- pick(X), log(X), X == c.\npick(X) :- member(X, [a, b, c])."
    assert ran(code, engine).logs == ["a", "b", "c"]


def test_a_cut_is_honoured(engine: Engine) -> None:
    assert ran("agent_main :- p(X), log(X), fail.\nagent_main :- log(end).\np(1) :- !.\np(2).", engine).logs == [
        "1",
        "end",
    ]


def test_once_ignore_and_call_are_defined_around_special_predicates(engine: Engine) -> None:
    code = body('once(task("a", X)), ignore(exec(none, _)), call(log("{X}")), G = log(g), call(G)')
    assert ran(code, engine, model=Script(done(X=1))).logs == ["1", "g"]


def test_text_of_json_in_an_answer_is_no_error(engine: Engine) -> None:
    assert ran(body('answer("{\\"key\\": {\\"A\\": 1}}")'), engine).answers == ['{"key": {"A": 1}}']


def test_success_and_failure_are_told_apart(engine: Engine) -> None:
    assert [ran(body(goal), engine).outcome for goal in ("true", "fail", "throw(x)")] == ["success", "failure", "error"]


def test_catch_does_not_swallow_the_answer(engine: Engine) -> None:
    found = ran(body('catch(( answer("a"), fail ), _, log(caught))'), engine)
    assert (found.outcome, found.answers, found.logs) == ("success", ["a"], [])


def test_missing_arguments_are_an_error_that_names_them(engine: Engine) -> None:
    found = ran('agent_main(Topic) :- answer("about {Topic}").', engine)
    assert (found.error.content, found.answers) == ("No value is given for 'Topic'.", [])


def test_shell_does_not_run(engine: Engine, tmp_path: Path) -> None:
    file = tmp_path / "evil"
    assert ran(body(f"shell('touch {file}')"), engine).outcome == "error"
    assert ran(body(f"atom_concat(she, ll, N), G =.. [N, 'touch {file}'], call(G)"), engine).outcome == "error"
    assert not file.exists()


def test_the_policy_is_asked_inside_tools(engine: Engine) -> None:
    code = 'tool(sly(X, R)) :- exec(write(X), R).\nagent_main :- task("t").'
    written: list[Any] = []

    def write(what: str) -> None:
        written.append(what)

    model = Script(does(call("sly", arg1="x")), done())
    found = ran(code, engine, tools=[write], policy=Policy("blacklist", ["write"]), model=model)
    assert (written, [code for code, _ in found.notes]) == ([], ["blocked"])
    assert model.asked[1][-1].text == "The tool failed."


def test_the_inputs_of_a_tool_have_the_order_of_its_arguments(engine: Engine) -> None:
    inputs = [f"A{at}" for at in range(1, 13)]
    code = f'tool(many({", ".join(inputs)}, [{", ".join(inputs)}])).\nagent_main :- task("t").'
    given = {f"arg{at}": f"v{at}" for at in (10, 2, 12, 1, 11, 3, 9, 4, 8, 5, 7, 6)}
    model = Script(does(call("many", **given)), done())
    ran(code, engine, model=model)
    assert model.offered[0][0].parameters["required"] == [f"arg{at}" for at in range(1, 13)]
    assert model.asked[1][-1].text == "[" + ",".join(f'"v{at}"' for at in range(1, 13)) + "]"


def test_runs_share_no_state(engine: Engine) -> None:
    async def main() -> None:
        code = "agent_main(N) :- assertz(fact(N)), nb_setval(v, N), user(N), findall(X, fact(X), L), log(L)."
        first, second = await asyncio.gather(*[ran_async(code, engine, params={"N": n}) for n in (1, 2)])
        assert (first.logs, second.logs) == (["[1]"], ["[2]"])
        assert (first.messages, second.messages) == (["user: 1"], ["user: 2"])

    asyncio.run(main())


def test_an_error_of_transport_is_no_failure_of_the_goal(engine: Engine) -> None:
    found = ran(
        'agent_main :- task("t").\nagent_main :- answer("fallback").', engine, model=Script(ModelFailed("down"))
    )
    assert (found.error.code, found.answers) == ("model_unavailable", [])


def test_no_engine_is_left_after_a_run(engine: Engine) -> None:
    async def main() -> None:
        for goal in ("true", "fail", "throw(x)", 'task("t")'):
            await ran_async(body(goal), engine)
            await none_left(0.5)

    asyncio.run(main())


def test_paths_are_judged_by_what_they_are_and_not_by_their_text(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to("../secret")
    (folder / "a..b").write_text("fine")
    code = body("""read_file_to_string("a..b", T, []), log(T),
        catch(read_file_to_string("link", _, []), error(permission_error(_, _, _), _), log(refused))""")
    assert ran(code, engine, workspace=folder).logs == ["fine", "refused"]


def test_nulls_and_keys_with_capitals_survive(engine: Engine) -> None:
    def fetch() -> dict[str, Any]:
        return {"Name": None, "items": [{"URL": "u"}]}

    code = body("exec(fetch, R), get_dict('Name', R, null), get_dict(items, R, [I]), get_dict('URL', I, U), log(U)")
    assert ran(code, engine, tools=[fetch]).logs == ["u"]
