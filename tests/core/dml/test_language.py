"""The constructs and the example programs of the language, each run with a model that follows a script."""

from __future__ import annotations

from kbcore.dml import Toolset
from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import GIVES_UP, Script, call, does, done, finish, store

Engine = dict[str, str]


def test_a_task_without_outputs_tells_its_text_and_ends_with_finish(engine: Engine) -> None:
    model = Script(done())
    found = ran(body('task("Summarize the current state of AI research")'), engine, model=model)
    assert found.outcome == "success"
    assert model.conversation(0) == ["user: Summarize the current state of AI research"]
    assert model.tool_names(0) == ["finish"]


def test_outputs_are_bound_and_fill_the_next_task(engine: Engine) -> None:
    code = body(
        'task("Analyze this text and extract the main topic, store it in Topic", Topic),'
        'task("Find related articles about {Topic}, store URLs in Articles", Articles),'
        'format(string(Text), "Found: ~w", [Articles]), answer(Text)'
    )
    model = Script(done(Topic="logic"), done(Articles=["a", "b"]))
    found = ran(code, engine, model=model)
    assert found.answers == ["Found: [a,b]"]
    assert model.asked[1][-1].text == (
        "Find related articles about logic, store URLs in Articles\n\nOutputs to store with `set_result`:\n- `Articles`"
    )
    assert model.tool_names(1) == ["finish", "set_result"]


def test_an_external_tool_gives_its_result_to_a_task(engine: Engine) -> None:
    def web_search(query: str) -> str:
        return f"results for {query}"

    model = Script(done())
    code = body('exec(web_search("AI news"), Results), task("Summarize these search results: {Results}")')
    assert ran(code, engine, model=model, tools=[web_search]).outcome == "success"
    assert model.conversation(0) == ["user: Summarize these search results: results for AI news"]


def test_tools_of_the_program_reach_the_model_with_schema_source_and_description(engine: Engine) -> None:
    def web_search(query: str) -> str:
        return f"found {query}"

    code = """
    tool(search_web(Query, Results),
         "Search the web for information") :-
        exec(web_search(Query), Results).

    tool(sub_agent(Task, Output),
         "Run a subtask with a fresh context") :-
        push_context,
        task(Task, Output),
        pop_context.

    tool(plain(X, X)).

    agent_main :-
        task("Use search_web to find info about Prolog, store in Info", Info), answer(Info).
    """
    model = Script(
        does(call("search_web", arg1="Prolog"), call("sub_agent", arg1="Look closer")),
        done(Output="close"),
        done(Info=1),
    )
    found = ran(code, engine, model=model, tools=[web_search])
    assert found.answers == ["1"]
    search, sub_agent, plain = model.offered[0][:3]
    assert search.name == "search_web"
    assert search.description.startswith("Search the web for information\n\ntool(search_web(Query, Results),")
    assert search.description.endswith("exec(web_search(Query), Results).")
    assert search.parameters == {
        "type": "object",
        "properties": {"arg1": {"type": "string"}},
        "required": ["arg1"],
        "additionalProperties": False,
    }
    assert plain.description == "tool(plain(X, X))."
    assert model.tool_names(1) == ["search_web", "plain", "finish", "set_result"], sub_agent
    assert [one.text for one in model.asked[2][-2:]] == ["found Prolog", "close"]


def test_backtracking_into_another_task_restores_the_memory(engine: Engine) -> None:
    code = body("""system("You are a research assistant"), push_context,
        (   task("Find recent AI papers") ;   pop_context, task("Search for AI news instead") )""")
    model = Script(GIVES_UP, done())
    found = ran(code, engine, model=model)
    assert found.outcome == "success"
    assert found.notes == [("task_failed", "A task failed: the model gave it up.")]
    assert model.conversation(1) == ["system: You are a research assistant", "user: Search for AI news instead"]


def test_parameters_reach_the_arguments_and_param(engine: Engine) -> None:
    code = """
    agent_main(Topic, MaxResults) :-
        format(string(Query), "Research ~w at most ~w", [Topic, MaxResults]), task(Query, Results), answer(Results).
    """
    model = Script(done(Output=1, Results="done"))
    found = ran(code, engine, model=model, params={"Topic": "quantum computing", "MaxResults": 5})
    assert found.answers == ["done"]
    assert model.asked[0][1].text.startswith("Research quantum computing at most 5\n")
    code = """
    :- param("topic", "Enter research topic").
    :- param("file:file", "Select input file").
    :- param("format:select(json,csv,xml)", "Output format").
    agent_main :-
        param("topic", _, Topic), param("file:file", Said, File), param("format:select(json,csv,xml)", _, Format),
        log("{Topic} {Said} {File} {Format}").
    """
    found = ran(code, engine, params={"topic": "logic", "file": "a.txt", "format": "csv"})
    assert found.logs == ["logic Select input file a.txt csv"]


def test_outputs_of_each_kind_are_events(engine: Engine) -> None:
    code = body('X = 1, yield("a {X}"), output("b"), log("c"), write(printed), nl, answer("d")')
    found = ran(code, engine)
    assert [(one.type, one.content) for one in found.events[:-1]] == [
        ("output", "a 1"), ("output", "b"), ("log", "c"), ("output", "printed\n"), ("answer", "d"),
    ]  # fmt: skip
    assert found.messages == ["assistant: d"]


def test_the_simple_research_agent_runs(engine: Engine) -> None:
    code = """
    agent_main(Topic) :-
        system("You are a research assistant. Be thorough and cite sources."),
        task("Search for recent information about {Topic}", SearchResults),
        task("Analyze and summarize the findings", Summary),
        answer(Summary).
    """
    model = Script(done(SearchResults=["x"]), done(Summary="short"))
    found = ran(code, engine, model=model, params={"Topic": "AI"})
    assert found.answers == ["short"]
    assert found.messages[0] == "system: You are a research assistant. Be thorough and cite sources."
    assert found.messages[-1] == "assistant: short"
    assert [one.role for one in model.asked[1]] == ["system", "system", "user", "assistant", "tool", "tool", "user"]


def test_the_fallbacks_are_tried_in_their_order(engine: Engine) -> None:
    code = """
    agent_main(Query) :-
        (   try_academic_search(Query, Results)
        ;   try_web_search(Query, Results)
        ;   Results = "No results found"
        ),
        task("Summarize: {Results}"),
        answer(Results).
    try_academic_search(Query, Results) :- exec(google_scholar(Query), Results), Results \\= "".
    try_web_search(Query, Results) :- exec(web_search(Query), Results), Results \\= "".
    """

    def google_scholar(query: str) -> str:
        return ""

    def web_search(query: str) -> str:
        return f"web {query}"

    given = {"engine": engine, "params": {"Query": "q"}}
    assert ran(code, model=Script(done()), tools=[google_scholar, web_search], **given).answers == ["web q"]
    assert ran(code, model=Script(done()), tools=[google_scholar], **given).answers == ["No results found"]
    model = Script(GIVES_UP, done())
    found = ran(code, model=model, tools=[google_scholar, web_search], **given)
    assert found.answers == ["No results found"]
    assert model.conversation(1) == ["user: Summarize: No results found"]


def test_the_user_is_asked_through_a_tool_of_the_program(engine: Engine) -> None:
    code = """
    tool(clarify(Question, Answer)) :-
        % This exposes clarify to the task agent
        wait_for_input(Question, Answer).
    agent_main :-
        task("Ask the user what they want to research, use clarify tool", Topic),
        task("Research {Topic} thoroughly"),
        task("Write a comprehensive report", Report),
        answer(Report).
    """
    model = Script(does(call("clarify", arg1="What?")), done(Topic="birds"), done(), done(Report="r"))
    found = ran(code, engine, model=model, on_input=lambda prompt: f"{prompt} Birds")
    assert found.answers == ["r"]
    assert [one.prompt for one in found.events if one.type == "input_required"] == ["What?"]
    assert model.asked[1][-1].text == "What? Birds"
    assert model.tool_names(0) == ["clarify", "finish", "set_result", "ask_user"]


def test_the_sub_agent_pattern_runs(engine: Engine) -> None:
    code = """
    tool(delegate(SubTask, Output)) :-
        push_context,
        task(SubTask, Output),
        pop_context.
    agent_main(ComplexTask) :-
        task("Break down {ComplexTask} into subtasks", Subtasks),
        process_subtasks(Subtasks, Results),
        task("Combine all results: {Results}", FinalAnswer),
        answer(FinalAnswer).
    process_subtasks([], []).
    process_subtasks([Task|Tasks], [Result|Results]) :-
        task("Execute subtask using delegate: {Task}", Result),
        process_subtasks(Tasks, Results).
    """
    model = Script(
        done(Subtasks=["one", "two"]),
        does(call("delegate", arg1="do one")), done(Output=1), done(Result="r1"),
        does(call("delegate", arg1="do two")), done(Output=2), done(Result="r2"),
        done(FinalAnswer="all"),
    )  # fmt: skip
    found = ran(code, engine, model=model, params={"ComplexTask": "everything"})
    assert found.answers == ["all"]
    assert model.conversation(2) == ["user: do one\n\nOutputs to store with `set_result`:\n- `Output`"]
    assert model.asked[-1][-1].text.startswith('Combine all results: ["r1","r2"]')


def test_the_new_form_of_an_old_program_runs(engine: Engine) -> None:
    def web_search(query: str) -> str:
        return query

    code = body("""exec(web_search("AI"), Results),
        task("Extract main topics from this text: {Results}, store in Topics", Topics), answer(Topics)""")
    assert ran(code, engine, model=Script(done(Topics=["a"])), tools=Toolset([web_search])).answers == ['["a"]']


def test_goals_of_the_old_language_and_of_the_model_name_what_replaces_them(engine: Engine) -> None:
    code = """
    extract(Text, Topics) :- @("Extract main topics from Text as a list").
    a :- chat("Summarize this").
    b(R) :- tool(web_search("AI"), R).
    c :- finish(true).
    d :- set_result("X", 1).
    e(A) :- ask_user("q", A).
    f :- findall(X, entity(X, _, _, _), _).
    agent_main :- true.
    """
    details = ran(code, engine).error.data["details"]
    assert [(one["source"], one["code"]) for one in details] == [
        ("program:2", "old_instruction"), ("program:3", "old_chat"), ("program:4", "old_tool"),
        ("program:5", "model_only"), ("program:6", "model_only"), ("program:7", "model_only"), ("program:8",
        "no_graph"),
    ]  # fmt: skip
    assert [one["hint"] for one in details[:3]] == [
        'Write `task("…", Output)`: the model is asked, and its result is bound to the output.',
        'Write `task("…")`.',
        "Write `exec(Call, Result)`.",
    ]
    found = ran(body('G = chat("x"), call(G)'), engine)
    assert found.error.content == "The program ended with an error: `chat/1` is of an earlier language."


def test_a_turn_after_finish_in_one_turn_still_stores_its_output(engine: Engine) -> None:
    model = Script(does(finish(), store("X", 9)))
    assert ran(body('task("t", X), log("{X}")'), engine, model=model).logs == ["9"]
