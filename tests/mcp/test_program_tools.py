"""KB's tools for programs of DML, in a real repository."""

from __future__ import annotations

import threading

import pytest

from kbcore.dml import Policy
from kbcore.dml.kb_tools import KB_TOOLS, WRITING
from kbcore.dml.recording import new_run
from kbcore.store.history.log import RecordFilter, log
from kbmcp.program_tools import ProgramTools
from kbmcp.tools.tool_list import TOOLS
from tests.support.dml.kb_runs import allows, ran_with_kb
from tests.support.dml.runs import body
from tests.support.dml.scripts import Script, call, does, done
from tests.support.logic.engines import engine_variables
from tests.support.repository.project import Project


def upsert(key: str, title: str) -> str:
    """Return a goal that writes a requirement; the title is a text or a variable."""
    return f'exec(kb_upsert(entities: [_{{id: "{key}", type: "req", title: {title}, status: "open"}}]), _)'


UPSERT = upsert("REQ-1", '"Log in"')
KIP = 'UPSERT { CONCEPT { {type: \\"Person\\", name: \\"Ines\\"} } }'


@pytest.fixture(scope="module")
def any_engine():
    return engine_variables("auto")


def records(project: Project) -> list[dict]:
    return list(log(project.view(), RecordFilter(), limit=100))


def test_the_tools_are_those_of_the_server_with_the_same_arguments(tmp_path):
    of_kb = ProgramTools(tmp_path, {}, new_run("t"), allows=lambda _: True)
    of_server = {tool.key.replace(".", "_"): tool for tool in TOOLS}
    assert set(KB_TOOLS) <= set(of_server)
    for name in KB_TOOLS:
        tool, same = of_kb.tool(name), of_server[name]
        known = same.model.model_json_schema(by_alias=True) if same.model else same.schema
        assert [*tool.parameters["properties"]] == [*known["properties"]]
        assert tool.writes == (name in WRITING)
        assert "{" not in tool.description.replace("{ ", "").replace("{type", "").replace("{ CONCEPT", "")
    of_kb.close()


def test_a_program_reads_what_is_in_the_store(project, any_engine):
    project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "Log in", "status": "open"}])
    goals = (
        'exec(kb_query(type: "req"), Page), get_dict(entities, Page, [One]), get_dict(title, One, Title), '
        'exec(kb_query(_{ids: ["REQ-1"]}), Same), get_dict(total, Same, Total), '
        'exec(kb_check, Report), get_dict(ok, Report, Ok), exec(kb_history("log"), Log), get_dict(total, Log, Seq), '
        'exec(execute_kip_readonly("FIND(?r.name) WHERE { ?r {type: \\"Requirement\\"} }"), Kip), '
        'answer("{Title} {Total} {Ok} {Seq} {Kip}")'
    )
    ran = ran_with_kb(project.root, any_engine, body(goals))
    assert ran.answers == ['Log in 1 true 1 {"result":["REQ-1"]}'], ran.events


@pytest.mark.parametrize("policy", [None, Policy("blacklist", ["kb_check"])])
def test_a_tool_that_writes_is_blocked_where_no_policy_allows_it_by_name(project, any_engine, policy):
    ran = ran_with_kb(project.root, any_engine, body(UPSERT), policy)
    assert ran.outcome == "failure"
    assert ran.notes == [("blocked", "`kb_upsert` is blocked: it writes, and no policy allows it by name.")]
    assert records(project) == []


@pytest.mark.parametrize(
    ("goal", "why"),
    [
        ('exec(execute_kip("UPSERT { CONCEPT { {type: \\"Person\\", name: \\"x\\"} } }"), _)', "KIP_1001"),
        ('exec(kb_history(action: "revert", seq: [1]), _)', "invalid_query"),
        ('exec(kb_sleep(action: "run"), _)', "invalid_query"),
    ],
)
def test_a_tool_that_also_writes_only_reads_where_no_policy_allows_it_by_name(project, any_engine, goal, why):
    project.apply(entities=[{"id": "REQ-1", "type": "req", "title": "Log in", "status": "open"}])
    ran = ran_with_kb(project.root, any_engine, body(goal))
    assert ran.outcome == "failure"
    [(code, said)] = ran.notes
    assert (code, why in said) == ("tool_failed", True)
    assert len(records(project)) == 1


def test_what_a_program_writes_is_in_the_session_of_its_run(project, any_engine):
    run = new_run("writer.dml")
    tool = f"tool(save(Title, Done)) :- {upsert('REQ-2', 'Title')}, Done = ok."
    goals = f'{UPSERT}, task("Save it"), exec(execute_kip("{KIP}"), _)'
    model = Script(does(call("save", arg1="Log out")), done())
    ran = ran_with_kb(project.root, any_engine, body(goals, tool), allows("kb_*", "execute_kip"), run, model=model)
    assert ran.outcome == "success", ran.events
    found = records(project)
    source = f"dml:writer.dml/{run.id}"
    assert [one["source"] for one in found[::-1]] == [source, f"{source}/task-1", f"{source}/task-1"]
    assert {one["session"] for one in found} == {run.id}
    assert {one["actor"] for one in found} == {"dml/writer.dml"}


def test_a_refused_call_fails_the_goal_and_says_why(project, any_engine):
    goals = '( exec(kb_upsert(entities: [_{id: "REQ-1", typ: "req"}]), _) ; answer("refused") )'
    ran = ran_with_kb(project.root, any_engine, body(goals), allows("*"))
    assert ran.answers == ["refused"]
    [(code, said)] = ran.notes
    assert code == "tool_failed"
    assert said.startswith("The tool `kb_upsert` failed: invalid_changeset: ")
    assert records(project) == []


def test_outside_of_a_repository_a_call_says_so(tmp_path, any_engine):
    ran = ran_with_kb(tmp_path, any_engine, body('exec(kb_query(type: "req"), _)'))
    [(_, said)] = ran.notes
    assert said.startswith("The tool `kb_query` failed: not_a_repository: ")
    assert said.endswith("Run the program inside a git repository, or with -C PATH.")


def test_two_runs_at_once_write_each_in_its_own_session(project, any_engine):
    runs = [new_run(f"{name}.dml") for name in "ab"]
    outcomes = []

    def write(run):
        goals = f"forall(between(1, 5, _), {upsert('REQ-{n}', run.program.join([chr(34)] * 2))})"
        outcomes.append(ran_with_kb(project.root, any_engine, body(goals), allows("kb_upsert"), run).outcome)

    threads = [threading.Thread(target=write, args=(run,)) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["success"] * 2
    found = records(project)
    assert {one["session"]: one["actor"] for one in found} == {run.id: f"dml/{run.program}" for run in runs}
    assert len(found) == 10
