"""A program does only what the lists of the engine and of programs name, however it hides a goal."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from kbcore.logic.engine.libraries import LISTED
from tests.support.dml.runs import Ran, ran
from tests.support.dml.scripts import Script, call, does, done
from tests.support.fuzz.hostile_goals import DISGUISED, LIBRARIES, LIBRARY, PLAIN

Engine = dict[str, str]

OWN: Final = frozenset(
    [
        "assert/1",
        "asserta/1",
        "assertz/1",
        "retract/1",
        "retractall/1",
        "(dynamic)/1",
        "nb_setval/2",
        "b_setval/2",
        "open/3",
        "open/4",
        "read/1",
        "read_term/2",
        "get_char/1",
        "write/2",
        "nl/1",
        "exists_file/1",
        "directory_files/2",
        "current_output/1",
        "format/3",
    ]
)
"""Goals that a program has and the workspace has not: they change nothing but the program, and its folder."""
FORGED: Final = (
    "kb_program:exec_(a, b)", "kb_program:task_(a, [])", "kb_program:assertz_(evil)", "kb_program:own_tool(a, 1)",
    "kb_program_requests:request(exec, [], _)", "kb_program_requests:set_memory(1)", "kb_program_requests:note_answer",
    "kb_program_files:own_stream(a, b, c, d)", "kb_program_files:open_('{file}', write, _)",
    "kb_values:json_value(a, _)",
    "kb_server:protocol(I, O)", "kb_server:send(O, x)", "kb_interpolation:filled(a, b)", "kb_guard:add_clause(a, b)",
    "set_memory(1)", "protocol(I, O)", "exec_(a, b)", "task_(a, [])", "'$kb_text'(a)", "'$kb_output'(a, b)",
    "b_setval_(a, b)", "current_input(_)", "set_input(user_input)", "set_prolog_flag(sandboxed_load, true)",
    "with_quasi_quotation_input(a, b, true)", "string(a, b, c, d)", 'js_run_script("1")', "tmp_file_stream(utf8, F, S)",
    "read_file_to_codes('/etc/passwd', C, [])", "read_term_from_stream(x)", "copy_stream_data(a, b)", "close_files",
    "term_expansion(a, b)", "entity(a, b, c, d)", "call_with_inference_limit(halt, 1, R)", "inference_limit(halt, 1)",
)  # fmt: skip
"""Goals that name parts of a program that are not the program's."""


def hostile(file: Path) -> list[str]:
    """Return the goals of the workspace and those of programs that may not run."""
    goals = [goal for goal, name in {**PLAIN, **DISGUISED, **LIBRARY}.items() if name not in OWN]
    return [goal.replace("{file}", str(file)) for goal in (*goals, *FORGED)]


LOADED: Final = "".join(f":- use_module(library({name})).\n" for name in LIBRARIES if name in LISTED)
CALLING: Final = """
:- dynamic evil/0.
safe(1).
calling(G) :- G.
applying(C, X) :- call(C, X).
throwing(G) :- catch(throw(G), X, X).
"""


def tried(goals: list[str], engine: Engine, tmp_path: Path, how: str) -> Ran:
    """Run a program that reads each goal at run time, and calls it in a way; it logs those that were not refused."""
    (tmp_path / "goals.pl").write_text("".join(f"({goal}).\n" for goal in goals))
    code = f"""{LOADED}{CALLING}
    way(call, G) :- call(G).
    way(partial, G) :- G =.. [N|A], ( append(B, [C], A) -> H =.. [N|B], call(H, C) ; call(N) ).
    way(closure, G) :- maplist([X]>>call(X), [G]).
    way(asserted, G) :- assertz((h :- G)), ( h ; true ), retractall(h).
    way(found, G) :- findall(x, G, _), forall(G, true).
    tool(way(_, done)) :- each(call).
    each(How) :-
        open("goals.pl", read, S), repeat, read(S, G),
        (   G == end_of_file
        ->  !, close(S)
        ;   result(How, G, Result), \\+ is_refused(Result), format(string(T), "~q: ~q", [G, Result]), log(T), fail
        ).
    result(How, G, Result) :- catch(( way(How, G) -> Result = succeeded ; Result = failed ), error(E, _), Result = E).
    is_refused(kb_refused(_, _)).
    is_refused(existence_error(procedure, _)).
    agent_main :- {how}, \\+ evil.
    """
    return ran(code, engine, workspace=tmp_path, model=Script(does(call("way", arg1="x")), done()))


def test_a_goal_that_is_written_down_is_refused_before_anything_runs(engine: Engine, tmp_path: Path) -> None:
    goals = hostile(tmp_path / "evil")
    assert len(goals) > 250
    found = ran(f"{LOADED}agent_main :- log(begun).\n" + "".join(f"h :- {goal} .\n" for goal in goals), engine)
    assert (found.outcome, found.logs) == ("error", [])
    assert len(found.error.data["details"]) >= 100
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("how", ["call", "partial", "closure", "asserted", "found", "tool"])
def test_a_goal_that_is_built_while_the_program_runs_is_refused(engine: Engine, tmp_path: Path, how: str) -> None:
    goals = hostile(tmp_path / "evil")
    found = tried(goals, engine, tmp_path, 'task("t")' if how == "tool" else f"each({how})")
    assert found.outcome == "success", found.events[-2:]
    assert found.logs == []
    assert not (tmp_path / "evil").exists()
    assert not (tmp_path.parent / "evil").exists()


def test_a_tool_that_is_named_as_a_goal_of_the_system_is_only_asked_for(engine: Engine) -> None:
    code = (
        "agent_main :- exec(shell('touch evil'), _).\nagent_main :- exec(halt, _).\nagent_main :- exec(user:halt, _)."
    )
    found = ran(code, engine)
    assert [text for _, text in found.notes] == ["There is no tool `shell`.", "There is no tool `halt`."]
    assert found.error.data["kind"] == "type_error"
