"""The examples in docs/mcp.md come back as shown; every argument and every client has its place on its page."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from kbcli.clients.kinds import KINDS
from kbmcp.tools.argument_models import names_of
from kbmcp.tools.hints import spelled
from kbmcp.tools.tool_list import TOOLS
from tests.mcp.agents import ROOT, answer_of, spawned
from tests.support.logic.engines import engine_variables

PAGE = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
CLIENTS = (ROOT / "docs" / "mcp-clients.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"<!-- call: (\w+) -->\n```json\n(.*?)```\n\n<!-- (answers|fails) -->\n```json\n(.*?)```", re.DOTALL
)
MANY = "…"


def as_shown(found, shown):
    """Tell whether an answer is as the page shows it; a text that ends in … stands for any that begins so."""
    if isinstance(shown, str) and shown.endswith(MANY):
        return isinstance(found, str) and found.startswith(shown.removesuffix(MANY))
    if isinstance(shown, dict):
        return (
            isinstance(found, dict)
            and list(found) == list(shown)
            and all(as_shown(found[key], shown[key]) for key in shown)
        )
    if isinstance(shown, list):
        return isinstance(found, list) and len(found) == len(shown) and all(map(as_shown, found, shown))
    return found == shown


@pytest.mark.sliced
def test_every_example_comes_back_as_shown(project):
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("<!-- call:")
    assert {name for name, *_ in examples} == {spelled(tool.key, is_dotted=False) for tool in TOOLS}
    with spawned(project.root, "--toolsets", "all", env=engine_variables("wasm")) as found:
        for name, request, outcome, shown in examples:
            result = found.result(name, json.loads(request))
            answer = answer_of(result)
            assert result.is_error is (outcome == "fails")
            assert as_shown(answer, json.loads(shown)), f"{name} {request} answered {json.dumps(answer, indent=1)}"


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.key)
def test_every_argument_is_on_the_page(tool):
    section = PAGE.partition(f"\n## {spelled(tool.key, is_dotted=False)}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| `")]
    listed = [name for line in table for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert sorted(listed) == sorted(names_of(tool.model) if tool.model else tool.schema["properties"])


def test_the_configurations_of_clients_can_be_parsed():
    found = re.findall(r"```(json|toml)\n(.*?)```", CLIENTS, re.DOTALL)
    assert len(found) == len(KINDS)
    for language, text in found:
        assert "kb-mcp" in str(json.loads(text) if language == "json" else tomllib.loads(text))


def test_every_client_has_a_row_and_a_section_on_the_page_about_clients():
    servers = CLIENTS.partition("| default scope |")[2]
    assert sorted(re.findall(r"^\| `([a-z-]+)`", servers, re.MULTILINE)) == sorted(KINDS)
    assert {kind.title for kind in KINDS.values()} <= set(re.findall(r"^## (.+)$", CLIENTS, re.MULTILINE))
