"""Both eras of the protocol, line by line: all that the server can be asked, and every line that it says in return.

Each line is held against the types of its era, which the SDK makes from the protocol's schema. What they do not know
would be dropped by them, so that a line must come out of them as it went in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import mcp_types as types
import pytest
from mcp_types import methods

from kbmcp.resources.prompts import PROMPTS
from kbmcp.resources.resource_list import PAGES, RESOURCES
from kbmcp.tools.tool_list import TOOLS
from tests.mcp.agents import Raw, raw
from tests.support.repository.project import Project

LEGACY, MODERN = "2025-11-25", "2026-07-28"
INFO = {"name": "eras", "version": "1"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Talk:
    """One conversation: who asks notes what was asked, so that each answer can be held against it."""

    def __init__(self, server: Raw, version: str) -> None:
        self.server, self.version = server, version
        self.asked: dict[Any, str] = {}

    def send(self, method: str, params: dict[str, Any], **meta: Any) -> str:
        key = f"{method} {len(self.asked)}"
        self.asked[key] = method
        envelope = (ENVELOPE if self.version == MODERN else {}) | meta
        self.server.send(method, params | ({"_meta": envelope} if envelope else {}), key)
        return key

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        return self.server.reply(self.send(method, params))

    def result(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self.ask(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def faults(self) -> Iterator[str]:
        """Yield every line that the protocol of this era does not know as it is."""
        for line in self.server.lines:
            message = json.loads(line)
            types.jsonrpc_message_adapter.validate_json(line)
            assert not line.endswith(b"\n\n")
            if "method" in message:
                methods.parse_server_notification(message["method"], self.version, message.get("params"))
            elif "error" in message:
                assert set(message["error"]) <= {"code", "message", "data"}
            else:
                method = self.asked[message["id"]]
                methods.validate_server_result(method, self.version, message["result"])
                if methods.serialize_server_result(method, self.version, message["result"]) != message["result"]:
                    yield f"{method}: {line.decode()}"


@pytest.fixture(scope="module", params=[LEGACY, MODERN])
def talk(request, tmp_path_factory) -> Iterator[Talk]:
    project = Project(tmp_path_factory.mktemp("eras") / "project")
    entities = [
        {"id": key, "type": "req", "title": f"{key} \u202e\x1b", "status": "open"} for key in ("REQ-1", "REQ-2")
    ]
    project.apply(entities=entities, edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1"}])
    project.close()
    with raw(project.root, "--toolsets", "all") as server:
        found = Talk(server, request.param)
        if request.param == LEGACY:
            opened = found.result("initialize", protocolVersion=LEGACY, capabilities={}, clientInfo=INFO)
            server.send("notifications/initialized")
            assert opened["protocolVersion"] == LEGACY
            assert opened["serverInfo"]["name"] == "kb"
        else:
            opened = found.result("server/discover")
            assert MODERN in opened["supportedVersions"]
            assert opened["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "kb"
        assert {"tools", "resources", "prompts", "completions"} <= set(opened["capabilities"])
        assert opened["instructions"]
        yield found
        assert server.close() == 0
        assert list(found.faults()) == []


def test_every_listing_is_answered(talk):
    assert len(talk.result("tools/list")["tools"]) == len(TOOLS)
    fixed = [one for one in RESOURCES.values() if "{" not in one.uri]
    assert len(talk.result("resources/list")["resources"]) == len(fixed) + len(PAGES)
    templates = talk.result("resources/templates/list")["resourceTemplates"]
    assert len(templates) == len(RESOURCES) - len(fixed)
    assert len(talk.result("prompts/list")["prompts"]) == len(PROMPTS)


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("kb_query", {"edges": True}, {"typ": "req"}),
        ("kb_upsert", {"entities": [{"id": "N", "type": "req", "title": "n", "status": "open"}]}, {"entities": [{}]}),
        ("kb_check", {}, {"rules": ["none"]}),
        ("kb_history", {"action": "log"}, {"action": "revert"}),
        (
            "kb_delete",
            {"entities": [{"id": "REQ-2", "expected_version": 1}], "dry_run": True},
            {"entities": [{"id": "Z"}]},
        ),
        ("execute_kip", {"command": "DESCRIBE PRIMER"}, {"commands": ["DESCRIBE PRIMER", "FIND"]}),
        ("execute_kip_readonly", {"command": "DESCRIBE DOMAINS"}, {"command": "UPSERT"}),
        ("files", {"operation": "list"}, {"operation": "import"}),
        ("workspace", {"operation": "snapshot"}, {"operation": "dump"}),
        ("query_close", {}, {"query": "p(X)"}),
    ],
)
def test_every_tool_answers_and_refuses(talk, name, good, bad):
    assert name in {tool.key.replace(".", "_") for tool in TOOLS}
    answer = talk.result("tools/call", name=name, arguments=good)
    assert answer["isError"] is False
    assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
    refusal = talk.result("tools/call", name=name, arguments=bad)
    assert refusal["isError"] is True
    reported = refusal["structuredContent"]
    assert (reported if "error" in reported else reported["result"][-1])["error"]["hint"]


def test_every_resource_is_read(talk):
    for one in RESOURCES.values():
        [content] = talk.result("resources/read", uri=one.uri.replace("{id}", "REQ-1"))["contents"]
        assert content["mimeType"] == one.mime_type
        assert one.mime_type != "application/json" or json.loads(content["text"])["branch"] == "main"
    for page in PAGES.values():
        [content] = talk.result("resources/read", uri=page.uri)["contents"]
        assert content["mimeType"] == page.mime_type


@pytest.mark.sliced(5)
@pytest.mark.parametrize("prompt", PROMPTS, ids=lambda one: one.name)
def test_every_prompt_is_given_and_completed(talk, prompt):
    needed = {one.name: "REQ-1" for one in prompt.arguments if one.is_required}
    messages = talk.result("prompts/get", name=prompt.name, arguments=needed)["messages"]
    assert messages[0]["content"]["type"] == "text"
    for one in prompt.arguments:
        ref, argument = {"type": "ref/prompt", "name": prompt.name}, {"name": one.name, "value": ""}
        completion = talk.result("completion/complete", ref=ref, argument=argument)["completion"]
        assert completion["hasMore"] is False
        assert bool(completion["values"]) == bool(one.choices or (one.values and one.values != "tags"))


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("tools/call", {"name": "kb_qery"}, -32602),
        ("tools/call", {"name": 1}, -32602),
        ("resources/read", {"uri": "kb://haed"}, {LEGACY: -32002, MODERN: -32602}),
        ("prompts/get", {"name": "start_feature"}, -32602),
        ("prompts/get", {"name": "start_feature", "arguments": {"requirement": 1}}, -32602),
        (
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}},
            -32602,
        ),
        ("nonsense/method", {}, -32601),
    ],
)
def test_what_cannot_be_answered_is_an_error_of_the_protocol(talk, method, params, code):
    error = talk.ask(method, **params)["error"]
    assert error["code"] == (code if isinstance(code, int) else code[talk.version])
    assert error["message"]


def test_the_era_of_a_connection_is_kept_to(talk):
    """Messages of the other era are refused, and the connection lives on."""
    if talk.version == MODERN:
        assert talk.ask("resources/subscribe", uri="kb://head")["error"]["code"] == -32601
    else:
        assert "error" in talk.ask("subscriptions/listen", notifications={"toolsListChanged": True})
        assert talk.result("resources/subscribe", uri="kb://head") == {}
    assert talk.result("tools/list")["tools"]


def test_a_call_that_is_cancelled_gets_no_answer(talk):
    said: list[bytes] = []
    talk.server.write, write = said.append, talk.server.write  # the server is to read all three at once
    first = talk.send("tools/call", {"name": "kb_check", "arguments": {}}, progressToken="t")
    gone = talk.send("tools/call", {"name": "kb_check", "arguments": {}})
    talk.server.send("notifications/cancelled", {"requestId": gone})
    talk.server.write = write
    write(b"".join(said))
    assert "result" in talk.server.reply(first)
    assert talk.result("tools/call", name="kb_query", arguments={"limit": 1})["isError"] is False
    assert gone not in {json.loads(line).get("id") for line in talk.server.lines}
