"""Servers of the toolset logic: several at once, their options, their engines, and what is listed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from kbcore.logic.engine.libraries import LISTED
from tests.mcp.agents import MODES, TOOLS_OF, WAIT_S, agent, program, raw
from tests.mcp.prolog_agents import PrologAgent, engine_pids, prolog_agent
from tests.mcp.test_listing import unportable
from tests.support.logic.engines import engine_variables, is_running
from tests.support.processes.cli import run_kb
from tests.support.repository.project import Project
from tests.support.repository.repos import git

NAMES = TOOLS_OF["logic"]
LOOP = "repeat, fail"


@pytest.fixture
def prolog(project: Project, engine: dict[str, str]) -> Iterator[PrologAgent]:
    """A client of a server of its own."""
    with prolog_agent(project.root, engine) as found:
        yield found


def until(is_so):
    """Wait until something is so; a test that waits in vain fails."""
    ends = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < ends
        time.sleep(0.02)


def wait_until_busy(root: Path) -> int:
    """Wait until the only engine of a repository has worked for a tenth of a second, and return its process."""
    [pid] = engine_pids(root)
    before = ticks(pid)
    until(lambda: ticks(pid) >= before + 10)
    return pid


def ticks(pid: int) -> int:
    """Return the time that a process has worked, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# What is listed


@pytest.mark.parametrize("mode", MODES)
def test_the_listing_of_the_seven_stays_under_550_tokens(shared, mode):
    with agent(shared.root, "--toolsets", "logic", mode=mode) as found:
        assert [tool.name for tool in found.tools()] == NAMES
        assert len(json.dumps(json.loads(found.listing())["tools"], separators=(",", ":"))) / 4 <= 550
        assert [(tool.name, fault) for tool in found.tools() for fault in unportable(tool.input_schema)] == []
        changing = {tool.name for tool in found.tools() if not tool.annotations.read_only_hint}
        assert changing == {"clauses", "files", "workspace"}


def test_resources_and_prompts_belong_to_the_toolset(shared, kb):
    own = {
        "prolog://workspace/snapshot": "text/x-prolog",
        "prolog://workspace/symbols": "application/json",
        "reference://help": "text/markdown",
        "reference://license": "text/plain",
        "reference://logo": "image/svg+xml",
    }
    with agent(shared.root, "--toolsets", "logic") as found:
        listed = {one.uri: one.mime_type for one in found._portal.call(found._client.list_resources).resources}
        assert own.items() <= listed.items()
        names = [one.name for one in found._portal.call(found._client.list_prompts).prompts]
        assert names == ["expert", "knowledge", "optimize", "puzzle"]
    assert not own.keys() & {one.uri for one in kb._portal.call(kb._client.list_resources).resources}
    for ask in (
        lambda: kb._portal.call(kb._client.read_resource, "reference://help"),
        lambda: kb._portal.call(kb._client.get_prompt, "puzzle", {}),
        lambda: kb.result("clauses", {"operation": "assert", "clauses": "p(1)."}),
    ):
        with pytest.raises(MCPError, match="toolset logic"):
            ask()


@pytest.mark.sliced
def test_a_prompt_has_a_text_for_each_mode_and_the_predicates(prolog):
    prolog.add("p(1).")
    quick, facts = prolog.prompt("expert", mode="quick")
    assert '"predicates":["p/1"]' in facts
    texts = [prolog.prompt(*one[:1], **dict(one[1:]))[0] for one in (
        ("expert",), ("knowledge",), ("knowledge", ("mode", "analyzer")), ("optimize",), ("puzzle",))]  # fmt: skip
    assert len({quick, *texts}) == 6
    assert prolog.prompt("expert", mode="init")[0] == texts[0]
    with pytest.raises(MCPError, match="init or quick"):
        prolog.prompt("expert", mode="slow")


# Options


@pytest.mark.sliced
def test_a_server_that_only_reads_offers_no_change(project, engine):
    with prolog_agent(project.root, engine) as writer:
        writer.add("p(1).", "p(2).")
    with prolog_agent(project.root, engine, "--read-only") as prolog:
        listed = {tool.name: tool for tool in prolog.agent.tools()}
        assert set(listed) & {*NAMES} == {*NAMES} - {"clauses"}
        assert all(tool.annotations.read_only_hint for tool in listed.values())
        assert listed["files"].input_schema["properties"]["operation"]["enum"] == ["list"]
        assert listed["workspace"].input_schema["properties"]["operation"]["enum"] == ["snapshot", "list_symbols"]
        assert "reset" not in listed["workspace"].description
        assert prolog.solutions("p(X)") == [{"X": "1"}, {"X": "2"}]
        assert prolog.snapshot() == "p(1).\np(2)."
        prolog.write("a.pl", "p(3).")
        files = [("files", {"operation": name, "filename": "a.pl"}) for name in ("import", "unimport")]
        for name, given in (("workspace", {"operation": "reset"}), *files):
            assert prolog.error(name, **given)["details"] == [{"path": "$.operation", "code": "not_offered"}]
        with pytest.raises(MCPError, match="--read-only"):
            prolog.add("p(3).")
        assert prolog.snapshot() == "p(1).\np(2)."


@pytest.mark.sliced
def test_libraries_of_the_variable_and_of_the_option_are_loaded(project, engine):
    env = {"KB_LIBRARIES": "assoc, ugraphs,lists"}
    with prolog_agent(project.root, engine, "-l", "heaps", "--kb-libraries", "rbtrees", env=env) as prolog:
        queries = ("list_to_assoc([a-1], A), get_assoc(a, A, X)", "vertices_edges_to_ugraph([a], [], [X-_])",
                   "list_to_heap([1-a], H), get_from_heap(H, _, X, _)", "rb_new(T), X = 1, T = T")  # fmt: skip
        assert [prolog.solutions(query)[0]["X"] for query in queries] == ["1", "a", "a", "1"]
    with prolog_agent(project.root, engine) as prolog:
        assert "library(assoc)" in prolog.refusal("list_to_assoc([a-1], A)")["message"]


LIBRARIES = {
    "assoc": "list_to_assoc([a-1], A), put_assoc(b, A, 2, B), assoc_to_list(B, X)",
    "rbtrees": "list_to_rbtree([a-1], T), rb_insert(T, b, 2, U), rb_map(U, succ, V), rb_keys(V, X)",
    "ugraphs": "vertices_edges_to_ugraph([], [a-b, b-c], G), transitive_closure(G, C), top_sort(C, X)",
    "heaps": "list_to_heap([3-c, 1-a], H), merge_heaps(H, H, M), heap_to_list(M, X)",
    "nb_set": "empty_nb_set(S), add_nb_set(a, S), add_nb_set(a, S), nb_set_to_list(S, X)",
    "option": "option(a(X), [a(1)]), merge_options([a(1)], [b(2)], _)",
    "clpb": "sat(X + ~Y), sat(~Y), labeling([X, Y]), sat_count(+[1, A, B], 4)",
    "clpr": "{X = 2 * 3.0}",
    "simplex": "gen_state(S), constraint([x] =< 5, S, T), maximize([x], T, U), variable_value(U, x, X)",
    "strings": 'string_lines(X, ["a", "b"])',
    "varnumbers": "varnumbers(f('$VAR'(1), b), X)",
    "random": "random_member(X, [a]), random_between(1, 3, _), random_permutation([1, 2], _)",
    "solution_sequences": "limit(1, order_by([desc(X)], member(X, [a, c, b])))",
    "dicts": "dict_keys(_{a: 1}, X)",
    "dcg/basics": "phrase(integer(X), `12`)",
    "dcg/high_order": "phrase(sequence(digit, X), `12`)",
}


@pytest.mark.sliced
def test_every_listed_library_can_be_used(project, engine):
    assert [*LIBRARIES] == [*LISTED]
    with prolog_agent(project.root, engine, "-l", ",".join(LISTED)) as prolog:
        found = {name: prolog.first(query)["bindings"]["X"] for name, query in LIBRARIES.items()}
        assert (found["assoc"], found["ugraphs"], found["nb_set"]) == ("[a-1, b-2]", "[a, b, c]", "[a]")
        assert (found["simplex"], found["solution_sequences"], found["dcg/basics"]) == ("5", "c", "12")


@pytest.mark.sliced
def test_a_library_that_is_not_listed_is_named_on_standard_error_and_the_server_starts(project, engine):
    options = ("--toolsets", "logic", "-l", "assoc,nosuch")
    with program(project.root, *options, env={**engine, "KB_LIBRARIES": "process;x"}) as server:
        server.greet()
        server.call(1, "query_start", {"query": "list_to_assoc([], A)"})
        assert server.answer(1)["status"] == "ready"
        assert server.complained("library(nosuch)")
        assert server.complained("library(process;x)")
        assert b"library(assoc)" not in server.errors
        server.assert_only_messages()


@pytest.mark.sliced
def test_files_of_roots_may_be_imported_and_an_empty_list_refuses_all(project, engine, tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "facts.pl").write_text(f"p({name}).\n")
    roots, paths = (
        {"KB_LOGIC_ROOTS": str(tmp_path / "one")},
        [str(tmp_path / one / "facts.pl") for one in ("one", "two")],
    )
    with prolog_agent(project.root, engine, "--kb-roots", str(tmp_path / "two"), env=roots) as prolog:
        for path in paths:
            assert prolog.call("files", operation="import", filename=path)["filename"] == path
        assert prolog.import_("own.pl", "p(own).")["status"] == "success"
        error = prolog.error("files", operation="import", filename=str(tmp_path / "three" / "facts.pl"))
        assert error["kind"] == "file_path_violation"
    with prolog_agent(project.root, engine, env={"KB_LOGIC_ROOTS": ""}) as prolog:
        prolog.write("more.pl", "p(more).")
        assert prolog.error("files", operation="import", filename="more.pl")["kind"] == "file_path_violation"
        assert [one["filename"] for one in prolog.files()] == [*paths, str(project.root / "own.pl")]
        assert prolog.call("files", operation="unimport", filename=paths[0])["clausesRemoved"] == 1


@pytest.mark.parametrize("words", [["clauses", {"operation": "assert", "clauses": "p(1)."}],
                                   ["files", {"operation": "import", "filename": "a.pl"}],
                                   ["query_start", {"query": "p(X)"}],
                                   ["query_next", {}]], ids=lambda words: words[0])  # fmt: skip
def test_without_an_engine_a_tool_says_what_is_missing(without_engine, words):
    error = without_engine.error(words[0], **words[1])
    assert error["code"] == "prolog_unavailable"
    assert "".join(error["message"].splitlines()).isprintable()
    native, wasm = [one["message"] for one in error["details"]]
    assert native.startswith("native: no `swipl` on the PATH")
    assert wasm.startswith("wasm: ")
    assert "ask the user to run `kb prolog install`" in error["hint"]


def test_without_an_engine_what_needs_none_works(without_engine):
    assert [tool.name for tool in without_engine.agent.tools()][-7:] == NAMES
    assert without_engine.snapshot() == "p(1)."
    assert without_engine.symbols() == ["p/1"]
    assert len(without_engine.files()) == 1
    assert without_engine.resource("prolog://workspace/snapshot") == "p(1)."
    assert json.loads(without_engine.resource("prolog://workspace/symbols"))["count"] == 1
    assert without_engine.help() == without_engine.resource("reference://help")
    assert without_engine.call("query_close")["status"] == "no_active_session"
    assert without_engine.call("kb_query", type="clause")["total"] == 2


@pytest.fixture(scope="module")
def without_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrologAgent]:
    """A client of a server without an engine, on a workspace that has one imported file."""
    folder = tmp_path_factory.mktemp("no engine")
    programs = folder / "bin"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(shutil.which(name))
    project = Project(folder / "repo")
    with prolog_agent(project.root, engine_variables("wasm")) as prolog:
        prolog.import_("a.pl", "p(1).")
    nothing = {"PATH": str(programs), "XDG_DATA_HOME": str(folder), "KB_LOGIC_ENGINE": "auto"}
    with prolog_agent(project.root, engine_variables("wasm"), env=nothing) as prolog:
        yield prolog
    project.close()


@pytest.mark.sliced
def test_help_works_outside_of_a_repository(tmp_path):
    with agent(tmp_path, "--toolsets", "logic") as found:
        assert found.result("help", {"topic": "modes"}).content[0].text.startswith("## Modes")
        assert found.refused("workspace", operation="snapshot")["code"] == "not_a_repository"


# Several servers, branches, worktrees


@pytest.mark.sliced
def test_two_servers_on_one_branch_see_each_others_clauses_at_the_next_call(project, engine):
    with prolog_agent(project.root, engine, name="one") as one, prolog_agent(project.root, engine, name="two") as two:
        one.add("p(1).")
        assert two.solutions("p(X)") == [{"X": "1"}]
        two.add("p(2).", "q(X) :- p(X).")
        assert one.solutions("q(X)") == [{"X": "1"}, {"X": "2"}]
        one.remove("p(1)")
        assert two.solutions("q(X)") == [{"X": "2"}]
        two.import_("a.pl", "p(3).")
        assert one.solutions("p(X)") == [{"X": "2"}, {"X": "3"}]
        assert one.error("files", operation="import", filename="a.pl")["kind"] == "already_imported"
        assert one.files() == two.files()
        one.reset()
        assert two.refusal("p(X)")["kind"] == "unknown_predicate"
        assert (one.snapshot(), two.snapshot()) == ("", "")
        two.add("p(9).")
        assert one.snapshot() == two.snapshot() == "p(9)."


@pytest.mark.sliced
def test_a_query_is_that_of_its_connection(project, engine):
    with prolog_agent(project.root, engine) as one, prolog_agent(project.root, engine) as two:
        one.add("p(1).", "p(2).")
        one.call("query_start", query="p(X)")
        assert two.error("query_next")["kind"] == "no_active_session"
        assert one.call("query_next")["bindings"] == {"X": "1"}
        two.add("p(3).")
        assert two.solutions("p(X)") == [{"X": "1"}, {"X": "2"}, {"X": "3"}]
        assert one.call("query_next")["bindings"] == {"X": "2"}


@pytest.mark.sliced
def test_another_branch_has_its_own_clauses_and_loses_the_open_query(project, prolog):
    prolog.add("p(1).", "p(2).")
    prolog.first("p(X)")
    project.switch("feature", create=True)
    error = prolog.error("query_next")
    assert error["kind"] == "query_lost"
    prolog.add("p(feature).")
    assert prolog.snapshot() == "p(1).\np(2).\np(feature)."
    assert [one["X"] for one in prolog.solutions("p(X)")] == ["1", "2", "feature"]
    project.switch("main")
    assert prolog.snapshot() == "p(1).\np(2)."
    answer = prolog.first("p(X), X \\== 1")
    assert (answer["bindings"], answer["branch"]) == ({"X": "2"}, "main")


@pytest.mark.sliced
def test_three_worktrees_have_each_the_clauses_of_its_branch(project, engine, tmp_path):
    with prolog_agent(project.root, engine) as prolog:
        prolog.add("p(0).")
    roots = [project.root, tmp_path / "two", tmp_path / "three"]
    for number, root in enumerate(roots[1:], 2):
        git(project.root, "worktree", "add", "-q", "-b", f"branch{number}", str(root))
    with ExitStack() as stack:
        agents = [stack.enter_context(prolog_agent(root, engine)) for root in roots]
        # A branch begins with the clauses that its parent has when it is first written to.
        for number, one in reversed([*enumerate(agents, 1)]):
            one.add(f"p({number}).")
            one.import_("own.pl", f"own({number}).")
        for number, one in enumerate(agents, 1):
            assert one.solutions("p(X)") == [{"X": "0"}, {"X": str(number)}]
            assert one.solutions("own(X)") == [{"X": str(number)}]
            assert [file["filename"] for file in one.files()] == [str(one.root / "own.pl")]


@pytest.mark.sliced
def test_history_and_undo_apply_to_clauses(project, prolog):
    first = prolog.add("p(1).", "p(2).")
    prolog.remove("p(1).")
    prolog.import_("a.pl", "q(1).")
    prolog.reset()
    log = prolog.call("kb_history", action="log")["records"]
    messages = [one["message"] for one in log]
    assert messages == ["Reset the workspace", "Import a.pl", "Remove clauses", "Add clauses"]
    assert {one["actor"] for one in log} == {"tester/1.2"}
    clause = first["outcomes"][0]["id"]
    assert prolog.call("kb_history", action="log", id=clause)["records"]
    shown = prolog.call("kb_history", action="show", seq=first["seq"])
    assert clause in json.dumps(shown)
    prolog.call("kb_history", action="revert", seq=log[0]["seq"])
    assert prolog.snapshot() == "p(2).\nq(1)."
    assert prolog.solutions("q(X)") == [{"X": "1"}]
    ran = run_kb(project.root, "log")
    assert "Import a.pl" in ran.out
    assert not run_kb(project.root, "revert", str(log[1]["seq"])).status
    assert prolog.snapshot() == "p(2)."
    assert not run_kb(project.root, "revert", str(log[2]["seq"])).status
    assert prolog.snapshot() == "p(1).\np(2)."
    assert [one["X"] for one in prolog.solutions("p(X)")] == ["1", "2"]


@pytest.mark.sliced
def test_a_workspace_of_the_session_is_not_recorded(project, engine):
    project.write({".kb/config.json": '{"logic": {"workspace": "session"}}'})
    with prolog_agent(project.root, engine) as one, prolog_agent(project.root, engine) as two:
        before = one.call("kb_query")["seq"]
        answer = one.add("p(1).")
        assert (answer["branch"], answer["seq"]) == ("main", before)
        one.import_("a.pl", "p(2).")
        assert one.solutions("p(X)") == [{"X": "1"}, {"X": "2"}]
        assert (one.snapshot(), two.snapshot()) == ("p(1).\np(2).", "")
        assert len(one.files()) == 1
        assert one.call("kb_query")["seq"] == before


# Engines


@pytest.mark.sliced
def test_a_killed_engine_is_replaced_and_loses_no_clause(prolog):
    prolog.add("p(1).", "p(2).")
    prolog.solutions("p(X)")
    [pid] = engine_pids(prolog.root)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    answer = prolog.add("p(3).")
    assert "started again" in answer["note"]
    assert [one["X"] for one in prolog.solutions("p(X)")] == ["1", "2", "3"]
    prolog.first("p(X)")
    [pid] = engine_pids(prolog.root)
    os.kill(pid, signal.SIGKILL)
    until(lambda: not is_running(pid))
    assert prolog.error("query_next")["kind"] == "query_lost"
    assert prolog.error("query_next")["kind"] == "no_active_session"
    assert prolog.first("p(X)")["bindings"] == {"X": "1"}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("use_engine", [True, False])
def test_a_step_that_takes_too_long_is_ended_and_the_next_query_works(project, engine, use_engine):
    project.write({".kb/config.json": '{"logic": {"timeLimitSeconds": 1}}'})
    with prolog_agent(project.root, engine) as prolog:
        prolog.add("p(1).")
        prolog.call("query_start", query=LOOP, use_engine=use_engine)
        error = prolog.error("query_next")
        assert error["kind"] == "timeout"
        assert "logic.timeLimitSeconds" in error["message"]
        assert prolog.error("query_next")["kind"] == "no_active_session"
        assert prolog.solutions("p(X)") == [{"X": "1"}]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("how", ["close", "terminate", "kill"])
def test_a_busy_engine_ends_with_its_server(project, engine, how):
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "query_start", {"query": LOOP})
        server.answer(1)
        server.call(2, "query_next")
        pid = wait_until_busy(project.root)
        if how == "close":
            server.close()
        else:
            getattr(server.process, how)()
            server.ended()
        until(lambda: not is_running(pid))


@pytest.mark.sliced
def test_a_cancelled_query_ends_and_the_next_call_works(project, engine):
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(1)
        server.call(2, "query_start", {"query": LOOP})
        server.answer(2)
        server.call(3, "query_next")
        wait_until_busy(project.root)
        server.call(4, "query_next")
        server.send("notifications/cancelled", {"requestId": 3})
        assert server.answer(4)["error"]["kind"] == "query_lost"
        server.call(5, "query_start", {"query": "p(X)"})
        server.call(6, "query_next")
        assert server.answer(6)["bindings"] == {"X": "1"}


@pytest.mark.sliced
def test_calls_that_are_sent_at_once_are_carried_out_in_their_order(project, engine):
    with raw(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        key = 0
        for number in range(5):
            for name, arguments in (
                ("clauses", {"operation": "assert", "clauses": f"p({number})."}),
                ("query_start", {"query": f"p({number}), X = {number}"}),
                ("query_next", {}),
                ("query_next", {}),
                ("query_close", {}),
            ):
                key += 1
                server.call(key, name, arguments)
        answers = [server.answer(number) for number in range(1, key + 1)]
        assert [one.get("status") for one in answers] == [None, "ready", "success", "done", "closed"] * 5
        assert [one["bindings"] for one in answers if "bindings" in one] == [{"X": str(n)} for n in range(5)]


@pytest.mark.sliced
def test_a_call_that_needs_no_engine_does_not_wait_for_an_import_whose_engine_does_not_answer(project, engine):
    project.write({"a.pl": "a(1)."})
    with program(project.root, "--toolsets", "logic", env=engine) as server:
        server.greet()
        server.call(1, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(1)
        [pid] = engine_pids(project.root)
        os.kill(pid, signal.SIGSTOP)
        server.call(2, "files", {"operation": "import", "filename": "a.pl"})
        server.call(3, "workspace", {"operation": "snapshot"})
        server.call(4, "workspace", {"operation": "list_symbols"})
        server.call(5, "files", {"operation": "list"})
        assert server.answer(3)["dump"] == "p(1)."
        assert server.answer(4)["predicates"] == ["p/1"]
        assert server.answer(5)["files"] == []
        os.kill(pid, signal.SIGCONT)
        assert server.answer(2)["status"] == "success"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("workspace", ["branch", "session"])
def test_a_client_that_follows_the_workspace_is_notified(project, engine, workspace):
    project.write({".kb/config.json": json.dumps({"logic": {"workspace": workspace}})})
    uri = "prolog://workspace/snapshot"
    with raw(project.root, "--toolsets", "core,logic", env=engine) as server:
        server.greet()
        server.send("resources/subscribe", {"uri": uri}, "follow")
        server.reply("follow")
        entity = {"id": "R", "type": "req", "title": "t", "status": "open"}
        server.call(1, "kb_upsert", {"entities": [entity]})
        server.answer(1)
        server.call(2, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(2)
        notice = server._next(lambda one: one.get("method") == "notifications/resources/updated", "a change", WAIT_S)
        assert notice["params"]["uri"] == uri


@pytest.mark.sliced(1)
@pytest.mark.parametrize("words", [["kb-mcp"], ["kb", "mcp"]], ids=" ".join)
def test_the_installed_programs_take_the_options(project, engine, tmp_path, words):
    name, *rest = words
    command = [str(Path(sys.executable).with_name(name)), *rest]
    options = ["--toolsets", "logic", "-l", "assoc", "--kb-roots", str(tmp_path)]
    (tmp_path / "a.pl").write_text("p(1).")
    with program(project.root, *options, env=engine, command=command) as server:
        server.greet()
        server.call(1, "files", {"operation": "import", "filename": str(tmp_path / "a.pl")})
        assert server.answer(1)["status"] == "success"
        server.call(2, "query_start", {"query": "p(X), list_to_assoc([], A)"})
        server.call(3, "query_next")
        assert server.answer(3)["bindings"] == {"X": "1", "A": "t"}
