"""The listing of a server of the toolset logic, its options, and what it does without an engine."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from kbcore.logic.engine.libraries import LISTED
from tests.mcp.agents import MODES, TOOLS_OF, agent, program
from tests.mcp.prolog_agents import PrologAgent, prolog_agent
from tests.mcp.test_listing import unportable
from tests.support.logic.engines import engine_variables
from tests.support.repository.project import Project

NAMES = TOOLS_OF["logic"]


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
def test_a_prompt_has_a_text_for_each_mode_and_the_predicates(own_prolog):
    own_prolog.add("p(1).")
    quick, facts = own_prolog.prompt("expert", mode="quick")
    assert '"predicates":["p/1"]' in facts
    texts = [own_prolog.prompt(*one[:1], **dict(one[1:]))[0] for one in (
        ("expert",), ("knowledge",), ("knowledge", ("mode", "analyzer")), ("optimize",), ("puzzle",))]  # fmt: skip
    assert len({quick, *texts}) == 6
    assert own_prolog.prompt("expert", mode="init")[0] == texts[0]
    with pytest.raises(MCPError, match="init or quick"):
        own_prolog.prompt("expert", mode="slow")


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
