"""The skill over MCP: declared, listed, got by its URI and read, with the digest of the bytes that are read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kbcore.prime.agent_text import skill_text
from tests.mcp.agents import Raw, raw
from tests.support.repository.project import Project

URI = "skill://kb/SKILL.md"
MODERN = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "skills", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Raw]:
    project = Project(tmp_path_factory.mktemp("skills") / "project")
    project.close()
    with raw(project.root, "--read-only") as found:
        yield found


def ask(server: Raw, method: str, **params: Any) -> dict[str, Any]:
    key = f"{method} {params}"
    server.send(method, {**params, "_meta": ENVELOPE}, key)
    return server.reply(key)


def test_the_extension_is_declared_beside_resources(server):
    found = ask(server, "server/discover")["result"]["capabilities"]
    assert found["extensions"] == {"io.modelcontextprotocol/skills": {}}
    assert "resources" in found


def test_the_list_and_a_get_give_one_complete_entry_that_may_be_kept(server):
    listed = ask(server, "skills/list")["result"]
    got = ask(server, "skills/get", uri=URI)["result"]
    assert [listed["skills"], listed["resultType"], got["resultType"]] == [[got["skill"]], "complete", "complete"]
    assert all(one["ttlMs"] >= 0 and one["cacheScope"] in {"public", "private"} for one in (listed, got))
    assert got["skill"]["uri"] == URI
    assert URI.split("/")[-2] == got["skill"]["frontmatter"]["name"]


def test_what_is_read_has_the_digest_size_and_front_matter_of_the_entry(server):
    [skill] = ask(server, "skills/list")["result"]["skills"]
    [file] = skill["resources"]
    [content] = ask(server, "resources/read", uri=file["uri"])["result"]["contents"]
    assert (content["text"], content["mimeType"]) == (skill_text(), "text/markdown")
    data = content["text"].encode()
    assert (file["digest"], file["size"]) == (f"sha256:{hashlib.sha256(data).hexdigest()}", len(data))
    assert yaml.safe_load(content["text"].split("---\n")[1]) == skill["frontmatter"]
    listed = [one for one in ask(server, "resources/list")["result"]["resources"] if one["uri"] == URI]
    assert [(one["name"], one["description"]) for one in listed] == [("kb", skill["frontmatter"]["description"])]


@pytest.mark.parametrize("uri", ["skill://kb", "skill://other/SKILL.md", "kb://head", "", "skill://\x1b" + "x" * 9999])
def test_another_skill_is_refused_with_the_one_that_there_is(server, uri):
    error = ask(server, "skills/get", uri=uri)["error"]
    assert (error["code"], URI in error["message"], "\x1b" in error["message"]) == (-32602, True, False)
    assert len(error["message"]) < 1000


def test_wrong_parameters_are_named(server):
    error = ask(server, "skills/get", uri=1)["error"]
    assert (error["code"], "`params.uri`" in error["message"]) == (-32602, True)
