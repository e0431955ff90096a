"""The plugins, the entry of the registry and the bundle: up to date, and in the forms that others ask for."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile

import pytest

from kbcore import __version__
from kbcore.prime.agent_text import skill_text
from tests.support.docs import agent_files
from tests.support.docs.agent_files import BUNDLE, CLIENTS, PACKAGE, PLUGINS, ROOT
from tests.support.docs.regenerate_docs import COMMAND

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", agent_files.files())
def test_a_file_for_agents_is_up_to_date(name):
    assert agent_files.current(name) == agent_files.files()[name], f"{name} is out of date; run: {COMMAND}"


def test_no_file_is_left_that_is_not_generated():
    there = {one.relative_to(ROOT).as_posix() for folder in (PLUGINS, BUNDLE) for one in (ROOT / folder).rglob("*")}
    files = {name for name in there if (ROOT / name).is_file() and "__pycache__" not in name}
    assert files <= {*agent_files.files()}


def test_a_stale_file_is_found_and_written(tmp_path, monkeypatch):
    monkeypatch.setattr(agent_files, "ROOT", tmp_path)
    assert agent_files.write() == [*agent_files.files()]
    (tmp_path / "server.json").write_text("{}")
    assert agent_files.write() == ["server.json"]
    assert agent_files.write() == []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_plugin_has_the_skill_the_server_and_hooks_of_programs_that_the_package_brings(client):
    folder = ROOT / PLUGINS / client
    assert (folder / "skills/kb/SKILL.md").read_text() == skill_text()
    manifest = json.loads((folder / CLIENTS[client] / "plugin.json").read_text())
    assert (manifest["name"], manifest["version"]) == ("kb", __version__)
    for key in {"skills", "mcpServers", "hooks"} & {*manifest}:
        assert (folder / manifest[key]).exists()
    servers = json.loads((folder / ".mcp.json").read_text())["mcpServers"]
    assert servers["kb"]["command"] in PROJECT["scripts"]
    hooks = json.loads((folder / "hooks/hooks.json").read_text())["hooks"]
    lines = [one["command"] for items in hooks.values() for item in items for one in item["hooks"]]
    assert len(lines) >= 2
    assert all(f"exec kb agents hook {client} " in line for line in lines)


def test_a_clone_of_the_repository_is_a_marketplace_of_each_plugin():
    claude = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())["plugins"]
    codex = json.loads((ROOT / ".agents/plugins/marketplace.json").read_text())["plugins"]
    for path, folder in ((claude[0]["source"], ".claude-plugin"), (codex[0]["source"]["path"], ".codex-plugin")):
        assert (ROOT / path / folder / "plugin.json").is_file()


def test_the_registry_names_a_package_whose_program_and_proof_are_there():
    entry = agent_files.registry_entry()
    [package] = entry["packages"]
    assert (package["identifier"], package["version"]) == (PROJECT["name"], PROJECT["version"])
    assert package["identifier"] in PROJECT["scripts"]
    assert len(entry["description"]) <= 100
    assert PROJECT["readme"] == "README.md", "PyPI shows it, and the registry looks for the name there"
    assert (ROOT / "README.md").read_text(encoding="utf-8").count(f"<!-- mcp-name: {entry['name']} -->") == 1


def test_the_name_in_the_registry_has_the_form_for_an_account_of_github_and_the_docs_name_that_account():
    account, name = re.fullmatch(r"io\.github\.([a-z0-9-]+)/([a-z0-9-]+)", agent_files.REGISTRY_NAME).groups()
    assert name == "kb"
    page = (ROOT / "docs/agents.md").read_text(encoding="utf-8")
    assert f"the user or organization `{account}` of GitHub" in page


def test_the_bundle_has_what_its_manifest_names_and_is_the_same_each_time(tmp_path):
    first, second = tmp_path / "a.mcpb", tmp_path / "b.mcpb"
    agent_files.pack(first)
    agent_files.pack(second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as bundle:
        manifest = json.loads(bundle.read("manifest.json"))
        project = tomllib.loads(bundle.read("pyproject.toml").decode())["project"]
        assert manifest["server"]["type"] == "uv"
        assert manifest["server"]["entry_point"] in bundle.namelist()
    assert project["dependencies"] == [f"{PACKAGE}=={__version__}"]
    assert [one["name"] for one in manifest["tools"]] == [
        "kb_query",
        "kb_upsert",
        "kb_delete",
        "kb_check",
        "kb_history",
    ]
