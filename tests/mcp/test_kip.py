"""The toolset kip, as an agent finds it over the wire."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from mcp.shared.exceptions import MCPError

from kbcore.kip.reference import SIMPLE_FIND, SIMPLE_UPSERT
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE
from tests.mcp.agents import MODES, TOOLS_OF, Agent, agent, locked, text_of, unfenced
from tests.mcp.test_listing import unportable
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project

CORE, WITH_KIP, LOGIC = (TOOLS_OF[name] for name in ("core", "kip", "logic"))
KIP = WITH_KIP[:2]
PERSON = 'UPSERT { CONCEPT {{type: "Person", name: :name} SET ATTRIBUTES {person_class: "Human"}} }'


@pytest.fixture(scope="module", params=MODES)
def speaker(request: pytest.FixtureRequest, shared: Project) -> Iterator[Agent]:
    """An agent of either era that speaks KIP."""
    with agent(shared.root, "--toolsets", "core,kip", mode=request.param) as found:
        yield found


def answered(found, name="execute_kip", **arguments):
    """Return the answer to a request, after a look at both of its forms."""
    result = found.result(name, arguments)
    first = json.loads(result.content[0].text)
    assert first == result.structured_content
    assert len(text_of_all(result)) <= 20_000
    assert result.is_error is ("error" in first or any("error" in one for one in responses(first)))
    return first


def responses(first):
    result = first.get("result")
    is_batch = isinstance(result, list) and result and all(isinstance(one, dict) for one in result)
    return result if is_batch and all({"result", "error"} & one.keys() for one in result) else []


def text_of_all(result):
    return "".join(block.text for block in result.content)


def test_the_toolset_is_there_only_when_it_is_asked_for(shared, kb):
    assert [tool.name for tool in kb.tools()] == CORE
    with pytest.raises(MCPError, match="toolset kip"):
        kb.result("execute_kip", {"command": "DESCRIBE PRIMER"})
    for options, names in (
        ("core,kip", CORE + WITH_KIP),
        ("all", [name for offered in TOOLS_OF.values() for name in offered]),
        ("kip", WITH_KIP),
        ("logic", LOGIC),
    ):
        with agent(shared.root, "--toolsets", options) as found:
            assert [tool.name for tool in found.tools()] == names


def test_the_tools_say_truly_what_they_take_and_may_change(speaker):
    tools = {tool.name: tool for tool in speaker.tools() if tool.name in KIP}
    writer, reader = (tools[name] for name in KIP)
    assert (writer.annotations.read_only_hint, writer.annotations.destructive_hint) == (None, True)
    assert writer.annotations.idempotent_hint is None
    assert reader.annotations.read_only_hint is True
    assert set(writer.input_schema["properties"]) == {"command", "commands", "parameters", "dry_run"}
    assert set(reader.input_schema["properties"]) == {"command", "commands", "parameters"}
    assert [fault for tool in tools.values() for fault in unportable(tool.input_schema)] == []
    assert len(json.dumps([tool.model_dump(exclude_none=True) for tool in tools.values()])) / 4 < 600


def test_a_server_that_only_reads_offers_only_the_tool_that_reads(shared):
    with agent(shared.root, "--toolsets", "core,kip", "--read-only") as found:
        assert [tool.name for tool in found.tools()][-len(WITH_KIP[1:]) :] == WITH_KIP[1:]
        assert "execute_kip" not in [tool.name for tool in found.tools()]
        error = answered(found, "execute_kip_readonly", command=PERSON, parameters={"name": "x"})["error"]
        assert error["code"] == "KIP_3004"


def test_an_answer_is_in_the_format_of_kip_with_the_branch_next_to_it(shared, speaker):
    result = speaker.result("execute_kip", {"command": PERSON, "parameters": {"name": "Alice"}})
    assert json.loads(text_of(result)) == {
        "result": {"blocks": 1, "upsert_concept_nodes": ["Person:Alice"], "upsert_proposition_links": []}
    }
    assert (result.meta["kb/branch"], result.meta["kb/seq"]) == ("main", shared.seq())
    wrong = speaker.result("execute_kip", {"command": 'FIND(?p) WHERE { ?p {type: "Persn"} }'})
    assert (wrong.is_error, wrong.meta["kb/branch"], wrong.meta["kb/seq"]) == (True, "main", shared.seq())
    find = 'FIND(?p.name) WHERE { ?p {type: "Person", name: :name} }'
    assert answered(speaker, command=find, parameters={"name": "Alice"}) == {"result": ["Alice"]}
    assert answered(speaker, "execute_kip_readonly", command=find, parameters={"name": "Alice"}) == {
        "result": ["Alice"]
    }
    assert speaker.call("kb_query", ids=["Person:Alice"])["total"] == 1


def test_a_batch_answers_up_to_the_command_that_fails(speaker):
    answer = answered(speaker, commands=["DESCRIBE CONCEPT TYPES LIMIT 1", "FIND(?x", "DESCRIBE PRIMER"])
    assert [list(one) for one in answer["result"]] == [["result", "next_cursor"], ["error"]]
    assert answer["result"][-1]["error"]["data"]["command"] == 1


@pytest.mark.parametrize(
    ("toolsets", "remedy"),
    [
        ("core,kip", "Edit 'docs/requirements/r.md' and call kb_upsert with `sync` true"),
        ("kip", "Edit 'docs/requirements/r.md' and ask the user to run `kb sync`"),
    ],
)
def test_a_remedy_is_something_that_a_client_can_do(project, toolsets, remedy):
    project.write({"docs/requirements/r.md": "---\nid: R-1\ntitle: t\nstatus: open\n---\n"})
    project.sync()
    change = 'UPDATE ?r SET ATTRIBUTES { title: "x", status: "y" } WHERE { ?r {type: "Requirement"} }'
    with agent(project.root, "--toolsets", toolsets) as found:
        [answer] = answered(found, commands=[change])["result"]
    error = answer["error"]
    for one in (error, *error["data"]["problems"]):
        assert one["hint"].startswith(remedy)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [({}, "neither"), ({"command": "A", "cursor": "x"}, "'cursor'"), ({"command": ["A"]}, "not a list")],
)
def test_what_is_no_request_is_refused_in_kips_envelope(speaker, arguments, said):
    error = answered(speaker, **arguments)["error"]
    assert error["code"] == "KIP_1001"
    assert said in error["message"]
    assert {"hint", "name", "data"} <= error.keys()


def test_a_branch_that_another_process_writes_to_is_reported_as_a_timeout(project):
    project.write({".kb/config.json": '{"lockWaitSeconds": 0}'})
    project.apply(entities=[{"id": "R", "type": "req", "title": "t", "status": "open"}])
    directory = project.workspace().folders.directory_of("main")
    with agent(project.root, "--toolsets", "kip") as found, locked(directory):
        error = answered(found, command=PERSON, parameters={"name": "x"})["error"]
    assert (error["code"], error["data"]["kb_code"], error["data"]["retryable"]) == ("KIP_4001", "lock_timeout", True)
    assert "Nothing was written" in error["message"]


def test_only_a_request_that_writes_says_that_nothing_was_written(project):
    project.apply(entities=[{"id": "R", "type": "req", "title": "t", "status": "open"}])
    project.pool.close()
    shutil.rmtree(stores_at(project.root) / "main")
    find = 'FIND(?r) WHERE { ?r {type: "Requirement"} }'
    with agent(project.root, "--toolsets", "kip") as found:
        written = answered(found, command=PERSON, parameters={"name": "x"})["error"]
        read = answered(found, command=find)["error"]
    assert written["data"]["kb_code"] == read["data"]["kb_code"] == "store_went_back"
    assert ("Nothing was written" in written["message"], "Nothing was written" in read["message"]) == (True, False)


def test_outside_of_a_repository_the_error_says_why(tmp_path):
    with agent(tmp_path, "--toolsets", "kip") as found:
        error = answered(found, command="DESCRIBE PRIMER")["error"]
    assert (error["code"], error["data"]["kb_code"]) == ("KIP_4003", "not_a_repository")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A repository with more than fits into one answer."""
    made = Project(tmp_path_factory.mktemp("large") / "repo")
    title = "a rather long title of a requirement " * 3
    made.apply(entities=[{"id": f"R-{n:03}", "type": "req", "title": title, "status": "open"} for n in range(200)])
    made.apply(entities=[{"id": "BIG", "type": "flag", "title": "x" * 60_000, "status": "on"}])
    with agent(made.root, "--toolsets", "kip") as found:
        yield found
    made.close()


@pytest.mark.parametrize("find", ["?r", "?r.name, ?r.attributes.title"])
def test_pages_that_fit_hold_every_row_once_and_say_what_is_left(large, find):
    seen, cursor = [], ""
    while True:
        command = f'FIND({find}) WHERE {{ ?r {{type: "Requirement"}} }}{cursor}'
        answer = answered(large, command=command)
        rows = answer["result"][0] if "," in find else [one["name"] for one in answer["result"]]
        seen += rows
        if "next_cursor" not in answer:
            break
        assert "CURSOR" in answer["note"]
        cursor = f' CURSOR "{answer["next_cursor"]}"'
    assert seen == [f"R-{n:03}" for n in range(200)]


def test_a_row_that_is_too_long_by_itself_is_cut_and_says_so(large):
    answer = answered(large, command='FIND(?f) WHERE { ?f {type: "FeatureFlag"} }')
    assert answer["result"][0]["name"] == "BIG"
    assert "60000 characters" in answer["result"][0]["attributes"]["title"]
    assert "cut" in answer["note"]


def test_a_capsule_is_given_in_parts_that_are_whole(large):
    answer = answered(large, command='EXPORT ?r WHERE { ?r {type: "Requirement"} }')
    assert answer["result"]["capsule"].rstrip().endswith("}")
    assert 0 < answer["result"]["concepts"] < 200
    assert answer["next_cursor"]
    error = answered(large, command='EXPORT ?f WHERE { ?f {type: "FeatureFlag"} }')["error"]
    assert error["code"] == "KIP_4002"
    assert error["hint"] == (
        "Export less at a time with LIMIT, or ask the user to run `kb kip` with this command, which writes all of it."
    )


def test_the_commands_of_a_batch_share_the_room(large):
    find = 'FIND(?r) WHERE { ?r {type: "Requirement"} }'
    answer = answered(large, commands=[find, find, "DESCRIBE CONCEPT TYPES"])
    assert all("note" in one for one in answer["result"][:2])
    assert "Requirement" in answer["result"][2]["result"]


def test_an_answer_to_the_longest_batch_fits_and_says_what_is_left_out(large):
    results = answered(large, commands=['DESCRIBE PROPOSITION TYPE "mentions"'] * 256)["result"]
    assert len(results) == 256
    assert results[0]["result"]["name"] == "mentions"
    assert results[-1] == {"result": "…", "note": "There is no room left; send it separately."}
    people = " ".join(f'CONCEPT {{ {{type: "Person", name: "{"p" * 90}{n}"}} }}' for n in range(8))
    results = answered(large, commands=[f"UPSERT {{ {people} }}"] * 30)["result"]
    assert len(results[0]["result"]["upsert_concept_nodes"]) == 8
    assert results[-1] == {"result": "…", "note": "Written; no room for more."}


@pytest.mark.parametrize("name", MEMORY_GUIDES)
def test_each_memory_guide_is_a_prompt_and_a_resource(speaker, name):
    guide = MEMORY_GUIDES[name]
    listed = {one.uri: one for one in speaker._portal.call(speaker._client.list_resources).resources}
    assert listed[guide.uri].mime_type == "text/markdown"
    text = speaker._portal.call(speaker._client.read_resource, guide.uri).contents[0].text
    assert "execute_kip" in text
    result = speaker._portal.call(speaker._client.get_prompt, name, {})
    assert result.messages[0].content.text == text
    assert result.messages[1].content.resource.text == REFERENCE.text
    assert result.messages[1].content.resource.uri == REFERENCE.uri
    facts = json.loads(unfenced(result.messages[-1].content.text))
    assert facts["domains"]["CoreSchema"] > 20


def test_the_syntax_is_a_resource_and_in_the_descriptions_of_the_tools(speaker):
    answer = answered(speaker, command="DESCRIBE SYNTAX")["result"]
    assert speaker._portal.call(speaker._client.read_resource, REFERENCE.uri).contents[0].text == answer
    writer, reader = (next(tool for tool in speaker.tools() if tool.name == name) for name in KIP)
    assert SIMPLE_FIND.text in writer.description
    assert SIMPLE_UPSERT.text in writer.description
    assert SIMPLE_FIND.text in reader.description
    assert "UPSERT" not in reader.description
    assert "DESCRIBE SYNTAX" in writer.description
    assert "DESCRIBE SYNTAX" in reader.description


def test_the_memory_guides_belong_to_the_toolset(kb):
    assert not {one.name for one in kb._portal.call(kb._client.list_prompts).prompts} & MEMORY_GUIDES.keys()
    assert "kb://kip/waking" not in {one.uri for one in kb._portal.call(kb._client.list_resources).resources}
    for ask in (
        lambda: kb._portal.call(kb._client.read_resource, "kb://kip/waking"),
        lambda: kb._portal.call(kb._client.get_prompt, "kip_waking", {}),
    ):
        with pytest.raises(MCPError, match="toolset kip"):
            ask()


def test_a_memory_guide_of_a_read_only_server_says_so(shared):
    with agent(shared.root, "--toolsets", "kip", "--read-only") as found:
        for guide in MEMORY_GUIDES.values():
            text = found._portal.call(found._client.read_resource, guide.uri).contents[0].text
            assert "only reads" in text
            assert not [line for line in text.splitlines() if line.startswith(("W ", "R "))]
