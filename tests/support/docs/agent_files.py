"""The files that bring KB to agents by way of others: plugins, the entry of the MCP registry, the bundle.

All are made of the text for agents, the clients that KB knows and the version; ``make docs`` writes them.
``python -m tests.support.docs.agent_files FILE`` packs the bundle; ``make bundle`` does.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kbcli.clients.kinds import KINDS, entry_of
from kbcli.clients.parts import HookLists
from kbcore import __version__
from kbcore.prime.agent_text import SKILL_DESCRIPTION, skill_text

ROOT: Final = Path(__file__).resolve().parents[3]
PACKAGE: Final = "kb-memory"
AUTHOR: Final = {"name": "KB maintainers"}
LICENSE: Final = "Apache-2.0"
SUMMARY: Final = "Requirements, decisions, tests, tasks and notes of a repository, per git branch."
"""At most 100 characters, as the registry has it."""
REGISTRY_NAME: Final = "io.github.kb-memory/kb"
"""Whoever publishes to the registry proves to own what is before the slash; the README names it, as PyPI shows that."""
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
PLUGINS: Final = "kbcli/plugins"
CLIENTS: Final = {"claude-code": ".claude-plugin", "codex": ".codex-plugin"}
"""The clients that have plugins, and the folder of the manifest."""
BUNDLE: Final = "mcpb"
ENTRY_POINT: Final = '''\
"""Start the MCP server of KB on a repository; the host installs the package that `pyproject.toml` names."""

from kbmcp.server import main

main()
'''


def files() -> dict[str, str]:
    """Return the text of every file by its path below the root."""
    return {**_plugins(), **_marketplaces(), "server.json": _json(registry_entry()), **_bundle()}


def write() -> list[str]:
    """Bring the files up to date; return those that were not."""
    stale = [name for name, text in files().items() if current(name) != text]
    for name in stale:
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files()[name], encoding="utf-8")
    return stale


def current(name: str) -> str:
    """Return the text of a file now, "" where it is not there."""
    path = ROOT / name
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def pack(path: Path) -> None:
    """Write the bundle; the same files give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, text in sorted(_bundle().items()):
            bundle.writestr(zipfile.ZipInfo(name.removeprefix(f"{BUNDLE}/")), text)


def registry_entry() -> dict[str, Any]:
    """Return the entry of the registry of MCP servers."""
    package = {
        "registryType": "pypi",
        "identifier": PACKAGE,
        "version": __version__,
        "runtimeHint": "uvx",
        "packageArguments": [
            {
                "type": "named",
                "name": "-C",
                "description": "The folder of the repository; without it, the one that the server is started in.",
                "format": "filepath",
            }
        ],
        "transport": {"type": "stdio"},
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": REGISTRY_NAME,
        "title": "KB",
        "description": SUMMARY,
        "version": __version__,
        "packages": [package],
    }


def bundle_manifest() -> dict[str, Any]:
    """Return the manifest of the bundle."""
    entry = "src/server.py"
    words = ["run", "--directory", "${__dirname}", entry, "-C", "${user_config.repository}"]
    return {
        "manifest_version": "0.4",
        "name": PACKAGE,
        "display_name": "KB",
        "version": __version__,
        "description": SUMMARY,
        "long_description": SKILL_DESCRIPTION,
        "author": AUTHOR,
        "license": LICENSE,
        "server": {"type": "uv", "entry_point": entry, "mcp_config": {"command": "uv", "args": words}},
        "tools": [{"name": name} for name in _tools()],
        "user_config": {
            "repository": {
                "type": "directory",
                "title": "Repository",
                "description": "The folder of the git repository that the knowledge base belongs to.",
                "required": True,
            }
        },
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
    }


def _plugins() -> dict[str, str]:
    found = dict[str, str]()
    for client, folder in CLIENTS.items():
        base, kind = f"{PLUGINS}/{client}", KINDS[client]
        assert kind.hooks
        hooks = HookLists(client, kind.hooks, ("kb", "agents", "hook", client)).items()
        server = entry_of(kind, "project", ["kb-mcp"], ROOT)
        found[f"{base}/{folder}/plugin.json"] = _json(_manifest(client))
        found[f"{base}/.mcp.json"] = _json({"mcpServers": {"kb": server}})
        found[f"{base}/hooks/hooks.json"] = _json({"hooks": hooks})
        found[f"{base}/skills/kb/SKILL.md"] = skill_text()
    return found


def _manifest(client: str) -> dict[str, Any]:
    """Return the manifest of a plugin. Claude Code finds the parts by their names, Codex is told all of them."""
    common = {
        "name": "kb",
        "version": __version__,
        "description": SUMMARY,
        "author": AUTHOR,
        "license": LICENSE,
        "keywords": ["requirements", "decisions", "traceability", "memory"],
    }
    if client == "claude-code":
        return common
    shown = {
        "displayName": "KB",
        "shortDescription": SUMMARY,
        "longDescription": SKILL_DESCRIPTION,
        "developerName": AUTHOR["name"],
        "category": "Coding",
    }
    parts = {"skills": "./skills/", "mcpServers": "./.mcp.json", "hooks": "./hooks/hooks.json"}
    return {**common, **parts, "interface": shown}


def _marketplaces() -> dict[str, str]:
    """Return the lists by which a client finds its plugin in a clone of the repository."""
    claude = {"name": "kb", "source": f"./{PLUGINS}/claude-code", "description": SUMMARY}
    codex = {
        "name": "kb",
        "source": {"source": "local", "path": f"./{PLUGINS}/codex"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Coding",
    }
    return {
        ".claude-plugin/marketplace.json": _json(
            {"name": "kb", "owner": AUTHOR, "description": "The plugin of KB.", "plugins": [claude]}
        ),
        ".agents/plugins/marketplace.json": _json(
            {"name": "kb", "interface": {"displayName": "KB"}, "plugins": [codex]}
        ),
    }


def _bundle() -> dict[str, str]:
    project = (
        f'[project]\nname = "kb-bundle"\nversion = "{__version__}"\nrequires-python = ">=3.11"\n'
        f'dependencies = ["{PACKAGE}=={__version__}"]\n'
    )
    return {
        f"{BUNDLE}/manifest.json": _json(bundle_manifest()),
        f"{BUNDLE}/pyproject.toml": project,
        f"{BUNDLE}/src/server.py": ENTRY_POINT,
    }


def _tools() -> list[str]:
    """Return the tools that are offered if nothing else is said."""
    from kbmcp.tools.hints import spelled
    from kbmcp.tools.tool_list import TOOLS

    return [spelled(one.key, is_dotted=False) for one in TOOLS if one.toolset == "core"]


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
