"""The clients that KB knows: which file each reads, and how it starts a server from there. Pure.

A file of a project is shared with others: its content names no path of this machine where that can be avoided.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean

Scope = Literal["project", "user"]
SCOPES: Final[tuple[Scope, ...]] = ("project", "user")

_WORKSPACE: Final = "${workspaceFolder}"


class Kind(msgspec.Struct, frozen=True):
    """One client. ``places`` are its files by scope: below the worktree, or below the user's home.

    ``table`` is the member of the file that holds the servers. ``folders`` says by scope what the client starts a
    server for: ``here`` in the project's folder, the variable for that folder, or ``named``, where the
    repository has to be named.
    """

    title: str
    places: Mapping[Scope, str]
    folders: Mapping[Scope, str]
    table: str = "mcpServers"
    format: Literal["json", "toml"] = "json"
    extra: Mapping[str, Any] = {}
    """Further members of an entry."""
    is_one_list: bool = False
    """``command`` is a list that has the arguments too."""
    roots: tuple[str, str] | None = None
    """The table and its key, in the user's file, that list folders which a sandbox lets commands write to."""
    then: str = ""
    """The next step of the user after the file was written."""


_SUPPORT: Final = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
_ZED: Final = {"win32": "AppData/Roaming/Zed"}
KINDS: Final[Mapping[str, Kind]] = {
    "claude": Kind(
        "Claude Desktop",
        {"user": "{config}/Claude/claude_desktop_config.json"},
        {"user": "named"},
        then="Restart Claude Desktop.",
    ),
    "claude-code": Kind(
        "Claude Code",
        {"project": ".mcp.json", "user": ".claude.json"},
        {"project": "here", "user": "here"},
        then="Start `claude` in the project and approve the server; /mcp shows it.",
    ),
    "cursor": Kind(
        "Cursor",
        {"project": ".cursor/mcp.json", "user": ".cursor/mcp.json"},
        {"project": _WORKSPACE, "user": "named"},
        then="Switch the server on in Cursor's settings, under MCP.",
    ),
    "vscode": Kind(
        "VS Code",
        {"project": ".vscode/mcp.json", "user": "{config}/Code/User/mcp.json"},
        {"project": _WORKSPACE, "user": _WORKSPACE},
        table="servers",
        extra={"type": "stdio"},
        then="Run `MCP: List Servers` in VS Code, and start kb.",
    ),
    "codex": Kind(
        "Codex",
        {"project": ".codex/config.toml", "user": ".codex/config.toml"},
        {"project": "here", "user": "named"},
        table="mcp_servers",
        format="toml",
        roots=("sandbox_workspace_write", "writable_roots"),
        then="Start `codex`; /mcp shows the server. The file of a project counts once the project is trusted.",
    ),
    "zed": Kind(
        "Zed",
        {"project": ".zed/settings.json", "user": "{zed}/settings.json"},
        {"project": "here", "user": "here"},
        table="context_servers",
        then="Open the project in Zed and trust it; the agent panel's settings list the server.",
    ),
    "windsurf": Kind(
        "Windsurf",
        {"user": ".codeium/windsurf/mcp_config.json"},
        {"user": "named"},
        then="Refresh the MCP servers in Windsurf's Cascade panel.",
    ),
    "opencode": Kind(
        "OpenCode",
        {"project": "opencode.json", "user": ".config/opencode/opencode.json"},
        {"project": "here", "user": "here"},
        table="mcp",
        extra={"type": "local", "enabled": True},
        is_one_list=True,
        then="Start `opencode` in the project; `opencode mcp list` shows the server.",
    ),
    "junie": Kind(
        "Junie",
        {"project": ".junie/mcp/mcp.json", "user": ".junie/mcp/mcp.json"},
        {"project": "here", "user": "named"},
        then="Open Junie's MCP settings in the IDE, and see that kb is active.",
    ),
    "gemini": Kind(
        "Gemini CLI",
        {"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
        {"project": "here", "user": "here"},
        then="Start `gemini`; /mcp shows the server.",
    ),
}
TABLES: Final = tuple(dict.fromkeys(kind.table for kind in KINDS.values()))
"""The members of their files from which clients read servers."""


def find(name: str) -> Kind:
    """Return the client with this name. Raises: ``InvalidQuery``."""
    if name not in KINDS:
        raise InvalidQuery(f"KB does not support a client {in_quotes(name)}.", hint=did_you_mean(name, KINDS))
    return KINDS[name]


def scope_of(name: str, asked: str) -> Scope:
    """Return the scope that is meant: that of the project unless said, if the client has one.

    Raises: ``InvalidQuery``.
    """
    kind = find(name)
    usual = next(one for one in SCOPES if one in kind.places)
    found: Scope | None = next((one for one in SCOPES if one == (asked or usual)), None)
    if found is None:
        raise InvalidQuery(f"There is no scope {in_quotes(asked)}.", hint=f"There are {' and '.join(SCOPES)}.")
    if found not in kind.places:
        raise InvalidQuery(f"{kind.title} has one configuration, that of the user.", hint="Leave --scope out.")
    return found


def file_of(kind: Kind, scope: Scope, platform: str) -> PurePosixPath:
    """Return the client's file, below the worktree or below the user's home."""
    folders = {"config": _SUPPORT.get(platform, ".config"), "zed": _ZED.get(platform, ".config/zed")}
    return PurePosixPath(kind.places[scope].format(**folders))


def roots_of(kind: Kind, scope: Scope, data_dir: Path) -> tuple[Path, ...]:
    """Return the folders that the client's sandbox is to let commands write to: KB's own, once it is there.

    They are paths of this machine, so the file of a project names none.
    """
    return (data_dir,) if kind.roots and scope == "user" and data_dir.is_dir() else ()


def entry_of(kind: Kind, scope: Scope, command: list[str], repository: Path) -> dict[str, Any]:
    """Return how the client is to start the server that ``command`` runs."""
    folder = kind.folders[scope]
    place = [] if folder == "here" else ["-C", str(repository) if folder == "named" else folder]
    if kind.is_one_list:
        return {**kind.extra, "command": [*command, *place]}
    return {**kind.extra, "command": command[0], "args": [*command[1:], *place]}
