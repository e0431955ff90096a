"""The clients that KB knows: which files each reads, how it starts a server from there, which hooks it has. Pure.

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
SHARED_SKILL: Final = "agents"
SKILLS: Final = {SHARED_SKILL: ".agents/skills/kb/SKILL.md", "claude-code": ".claude/skills/kb/SKILL.md"}
"""The file of the skill, below the worktree or the home: the one that clients share, and those of clients that read
another one."""

_WORKSPACE: Final = "${workspaceFolder}"


Event = Literal["session-start", "pre-compact", "pre-edit", "on-read"]
"""The events of `kb agents hook`. ``on-read`` is for clients that take no text before an edit, but with a file."""


class HookEvent(msgspec.Struct, frozen=True):
    """One event of a client at which it runs KB: its name there, and the tools for which it does, if it asks that."""

    event: Event
    name: str
    matcher: str = ""


class HookFile(msgspec.Struct, frozen=True):
    """The file of a client's hooks, by scope. ``form`` is ``plugin`` where it is a program instead of a list."""

    places: Mapping[Scope, str]
    events: tuple[HookEvent, ...]
    form: Literal["groups", "items", "plugin"] = "groups"
    """``groups``: each item of an event is a list of hooks with a matcher; ``items``: each is a hook."""
    timeout: int = 10
    """In the unit of the client."""
    is_versioned: bool = False
    """The file says ``"version": 1``."""
    has_matchers: bool = True


class ClientKind(msgspec.Struct, frozen=True):
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
    programs: tuple[str, ...] = ()
    """The names under which its program is on the PATH, if it is."""
    instructions: Mapping[Scope, tuple[str, ...]] = {}
    """The files of instructions of which it reads the first one that there is; the last one is made where none is."""
    hooks: HookFile | None = None

    @property
    def has_more(self) -> bool:
        """Return whether there is more to install than the entry of the server."""
        return bool(self.instructions) or self.hooks is not None


_SUPPORT: Final = {"darwin": "Library/Application Support", "win32": "AppData/Roaming"}
_ZED: Final = {"win32": "AppData/Roaming/Zed"}
_MOVED: Final = {
    "CLAUDE_CONFIG_DIR": (".claude", ".claude.json"),
    "CODEX_HOME": (".codex",),
    "XDG_CONFIG_HOME": (".config",),
}
"""By variable: what of the home is in the folder that it names, where it names one. A file goes there under its name, a
folder is that one."""
_ZED_RULES: Final = (
    ".rules",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    "AGENT.md",
    "AGENTS.md",
)
KINDS: Final[Mapping[str, ClientKind]] = {
    "claude": ClientKind(
        "Claude Desktop",
        {"user": "{config}/Claude/claude_desktop_config.json"},
        {"user": "named"},
        then="Restart Claude Desktop.",
    ),
    "claude-code": ClientKind(
        "Claude Code",
        {"project": ".mcp.json", "user": ".claude.json"},
        {"project": "here", "user": "here"},
        then="Start `claude` in the project and approve the server; /mcp shows it.",
        programs=("claude",),
        instructions={"project": ("CLAUDE.md",), "user": (".claude/CLAUDE.md",)},
        hooks=HookFile(
            {"project": ".claude/settings.json", "user": ".claude/settings.json"},
            (
                HookEvent("session-start", "SessionStart"),
                HookEvent("pre-compact", "PreCompact"),
                HookEvent("pre-edit", "PreToolUse", "Edit|MultiEdit|Write|NotebookEdit"),
            ),
        ),
    ),
    "cursor": ClientKind(
        "Cursor",
        {"project": ".cursor/mcp.json", "user": ".cursor/mcp.json"},
        {"project": _WORKSPACE, "user": "named"},
        then="Switch the server on in Cursor's settings, under MCP.",
        programs=("cursor", "cursor-agent"),
        instructions={"project": ("AGENTS.md",)},
        hooks=HookFile(
            {"project": ".cursor/hooks.json", "user": ".cursor/hooks.json"},
            (HookEvent("session-start", "sessionStart"), HookEvent("on-read", "postToolUse", "Read")),
            form="items",
            is_versioned=True,
        ),
    ),
    "vscode": ClientKind(
        "VS Code",
        {"project": ".vscode/mcp.json", "user": "{config}/Code/User/mcp.json"},
        {"project": _WORKSPACE, "user": _WORKSPACE},
        table="servers",
        extra={"type": "stdio"},
        then="Run `MCP: List Servers` in VS Code, and start kb.",
        programs=("code",),
        instructions={"project": ("AGENTS.md",)},
        hooks=HookFile(
            {"project": ".github/hooks/kb.json", "user": ".copilot/hooks/kb.json"},
            (HookEvent("session-start", "SessionStart"), HookEvent("pre-edit", "PreToolUse")),
            form="items",
            is_versioned=True,
            has_matchers=False,
        ),
    ),
    "codex": ClientKind(
        "Codex",
        {"project": ".codex/config.toml", "user": ".codex/config.toml"},
        {"project": "here", "user": "named"},
        table="mcp_servers",
        format="toml",
        roots=("sandbox_workspace_write", "writable_roots"),
        then="Start `codex`; /mcp shows the server. The file of a project counts once the project is trusted.",
        programs=("codex",),
        instructions={"project": ("AGENTS.md",), "user": (".codex/AGENTS.md",)},
        hooks=HookFile(
            {"project": ".codex/hooks.json", "user": ".codex/hooks.json"},
            (
                HookEvent("session-start", "SessionStart", "startup|resume|clear|compact"),
                HookEvent("pre-edit", "PreToolUse", "apply_patch|Edit|Write"),
            ),
        ),
    ),
    "zed": ClientKind(
        "Zed",
        {"project": ".zed/settings.json", "user": "{zed}/settings.json"},
        {"project": "here", "user": "here"},
        table="context_servers",
        then="Open the project in Zed and trust it; the agent panel's settings list the server.",
        programs=("zed", "zeditor"),
        instructions={"project": _ZED_RULES, "user": ("{zed}/AGENTS.md",)},
    ),
    "windsurf": ClientKind(
        "Windsurf",
        {"user": ".codeium/windsurf/mcp_config.json"},
        {"user": "named"},
        then="Refresh the MCP servers in Windsurf's Cascade panel.",
        programs=("windsurf",),
        instructions={"project": ("AGENTS.md",), "user": (".codeium/windsurf/memories/global_rules.md",)},
    ),
    "opencode": ClientKind(
        "OpenCode",
        {"project": "opencode.json", "user": ".config/opencode/opencode.json"},
        {"project": "here", "user": "here"},
        table="mcp",
        extra={"type": "local", "enabled": True},
        is_one_list=True,
        then="Start `opencode` in the project; `opencode mcp list` shows the server.",
        programs=("opencode",),
        instructions={"project": ("AGENTS.md",), "user": (".config/opencode/AGENTS.md",)},
        hooks=HookFile(
            {"project": ".opencode/plugins/kb.js", "user": ".config/opencode/plugins/kb.js"},
            (
                HookEvent("session-start", "experimental.chat.system.transform"),
                HookEvent("pre-compact", "experimental.session.compacting"),
                HookEvent("on-read", "tool.execute.after", "read"),
            ),
            form="plugin",
        ),
    ),
    "junie": ClientKind(
        "Junie",
        {"project": ".junie/mcp/mcp.json", "user": ".junie/mcp/mcp.json"},
        {"project": "here", "user": "named"},
        then="Open Junie's MCP settings in the IDE, and see that kb is active.",
    ),
    "gemini": ClientKind(
        "Gemini CLI",
        {"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
        {"project": "here", "user": "here"},
        then="Start `gemini`; /mcp shows the server.",
        programs=("gemini",),
        instructions={"project": ("GEMINI.md",), "user": (".gemini/GEMINI.md",)},
        hooks=HookFile(
            {"project": ".gemini/settings.json", "user": ".gemini/settings.json"},
            (HookEvent("session-start", "SessionStart"), HookEvent("on-read", "AfterTool", "read_file")),
            timeout=10_000,
        ),
    ),
}
TABLES: Final = tuple(dict.fromkeys(kind.table for kind in KINDS.values()))
"""The members of their files from which clients read servers."""


def find(name: str) -> ClientKind:
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
    found = scope_in(asked or usual)
    if found not in kind.places:
        raise InvalidQuery(f"{kind.title} has one configuration, that of the user.", hint="Leave --scope out.")
    return found


def scope_in(asked: str) -> Scope:
    """Return the scope of this name, that of the project where none is named. Raises: ``InvalidQuery``."""
    found: Scope | None = next((one for one in SCOPES if one == (asked or SCOPES[0])), None)
    if found is None:
        raise InvalidQuery(f"There is no scope {in_quotes(asked)}.", hint=f"There are {' and '.join(SCOPES)}.")
    return found


def file_of(kind: ClientKind, scope: Scope, platform: str) -> PurePosixPath:
    """Return the client's file of servers, below the worktree or below the user's home."""
    return below(kind.places[scope], platform)


def below(place: str, platform: str) -> PurePosixPath:
    """Return a place of a client's file, with the folders of a platform in it."""
    folders = {"config": _SUPPORT.get(platform, ".config"), "zed": _ZED.get(platform, ".config/zed")}
    return PurePosixPath(place.format(**folders))


def in_home(home: Path, place: PurePosixPath, env: Mapping[str, str]) -> tuple[Path, PurePosixPath]:
    """Return the folder that a place of the user is below, the home or the one that a variable names, and the rest."""
    top, *rest = place.parts
    for variable, (folder, *files) in _MOVED.items():
        named = Path(env.get(variable, ""))
        if named.is_absolute() and (top == folder or top in files):
            return named, place if top in files else PurePosixPath(*rest)
    return home, place


def roots_of(kind: ClientKind, scope: Scope, data_dir: Path) -> tuple[Path, ...]:
    """Return the folders that the client's sandbox is to let commands write to: KB's own, once it is there.

    They are paths of this machine, so the file of a project names none.
    """
    return (data_dir,) if kind.roots and scope == "user" and data_dir.is_dir() else ()


def entry_of(kind: ClientKind, scope: Scope, command: list[str], repository: Path) -> dict[str, Any]:
    """Return how the client is to start the server that ``command`` runs."""
    folder = kind.folders[scope]
    place = [] if folder == "here" else ["-C", str(repository) if folder == "named" else folder]
    if kind.is_one_list:
        return {**kind.extra, "command": [*command, *place]}
    return {**kind.extra, "command": command[0], "args": [*command[1:], *place]}
