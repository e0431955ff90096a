"""`kb mcp install`: the entry for each client, the file that it is written to, and what is left alone."""

from __future__ import annotations

import json
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcli.clients import installing
from kbcli.clients.kinds import KINDS, file_of
from kbcli.clients.parts import ServerEntry
from kbcore.clock import SystemClock
from kbcore.errors import InvalidConfig
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine

PROGRAM = Path(sys.executable).with_name("kb-mcp")
HERE = {"command": "kb-mcp", "args": []}
NAMED = {"command": str(PROGRAM), "args": ["-C", "{root}"]}
WORKSPACE = ["-C", "${workspaceFolder}"]

GOLDEN = {
    ("claude", "user"): (".config/Claude/claude_desktop_config.json", "mcpServers", NAMED),
    ("claude-code", "project"): (".mcp.json", "mcpServers", HERE),
    ("claude-code", "user"): (".claude.json", "mcpServers", {**HERE, "command": str(PROGRAM)}),
    ("cursor", "project"): (".cursor/mcp.json", "mcpServers", {"command": "kb-mcp", "args": WORKSPACE}),
    ("cursor", "user"): (".cursor/mcp.json", "mcpServers", NAMED),
    ("vscode", "project"): (
        ".vscode/mcp.json", "servers", {"type": "stdio", "command": "kb-mcp", "args": WORKSPACE},
    ),
    ("vscode", "user"): (
        ".config/Code/User/mcp.json", "servers", {"type": "stdio", "command": str(PROGRAM), "args": WORKSPACE},
    ),
    ("codex", "project"): (".codex/config.toml", "mcp_servers", HERE),
    ("codex", "user"): (".codex/config.toml", "mcp_servers", NAMED),
    ("zed", "project"): (".zed/settings.json", "context_servers", HERE),
    ("zed", "user"): (".config/zed/settings.json", "context_servers", {**HERE, "command": str(PROGRAM)}),
    ("windsurf", "user"): (".codeium/windsurf/mcp_config.json", "mcpServers", NAMED),
    ("opencode", "project"): ("opencode.json", "mcp", {"type": "local", "enabled": True, "command": ["kb-mcp"]}),
    ("opencode", "user"): (
        ".config/opencode/opencode.json", "mcp", {"type": "local", "enabled": True, "command": [str(PROGRAM)]},
    ),
    ("junie", "project"): (".junie/mcp/mcp.json", "mcpServers", HERE),
    ("junie", "user"): (".junie/mcp/mcp.json", "mcpServers", NAMED),
    ("gemini", "project"): (".gemini/settings.json", "mcpServers", HERE),
    ("gemini", "user"): (".gemini/settings.json", "mcpServers", {**HERE, "command": str(PROGRAM)}),
}  # fmt: skip


@pytest.fixture
def home(home, root) -> Path:
    """The home folder of a user whose PATH holds this very KB, and whose repository has the folder of KB's stores."""
    (root / ".git/kb").mkdir()
    return home


def golden(client: str, scope: str, root: Path) -> str:
    """Return the whole file that a client gets, written out by hand."""
    _, table, entry = GOLDEN[client, scope]
    shown = {key: json.dumps(value).replace("{root}", str(root)) for key, value in entry.items()}
    if client == "codex":
        whole = f"[{table}.kb]\n" + "".join(f"{key} = {value}\n" for key, value in shown.items())
        return whole + (
            f'\n[sandbox_workspace_write]\nwritable_roots = ["{root}/.git/kb"]\n' if scope == "user" else ""
        )
    members = ",\n".join(f'      "{key}": {value}' for key, value in shown.items())
    return f'{{\n  "{table}": {{\n    "kb": {{\n{members}\n    }}\n  }}\n}}\n'


def everything_in(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if ".git" not in path.parts}


@pytest.mark.parametrize(("client", "scope"), GOLDEN)
def test_each_client_gets_its_own_form_and_only_when_asked(kb, home, root, client, scope):
    words = ["mcp", "install", client, "--scope", scope]
    before = everything_in(home, root)
    shown = kb(*words)
    assert (shown.status, shown.out) == (0, golden(client, scope, root))
    assert everything_in(home, root) == before
    path = (root if scope == "project" else home) / GOLDEN[client, scope][0]
    assert str(path) in shown.err
    written = kb(*words, "--write")
    assert written.status == 0
    assert path.read_text() == golden(client, scope, root)
    assert stat.S_IMODE(path.stat().st_mode) == (0o644 if scope == "project" else 0o600)
    added = [line for line in golden(client, scope, root).splitlines() if line]
    assert [line[1:] for line in written.out.splitlines()[3:]] == added
    assert KINDS[client].then in written.err
    again = kb(*words, "--write")
    assert (again.status, again.out) == (0, f"{path} has it already.\n")
    assert path.read_text() == golden(client, scope, root)


@pytest.mark.parametrize("client", KINDS)
def test_each_client_gets_the_toolsets_that_the_server_offers(kb, home, root, client):
    plain = json.loads(kb("mcp", "install", client, "--json").out)["entry"]
    reported = json.loads(kb("mcp", "install", client, "--toolsets", "core, kip", "--json").out)
    if client == "opencode":
        program, *others = plain["command"]
        assert reported["entry"] == {**plain, "command": [program, "--toolsets", "core,kip", *others]}
    else:
        assert reported["entry"] == {**plain, "args": ["--toolsets", "core,kip", *plain["args"]]}


def test_an_entry_changes_with_its_toolsets(kb, home, root):
    kb("mcp", "install", "claude-code", "--write")
    reported = json.loads(kb("mcp", "install", "claude-code", "--toolsets", "all", "--write", "--json").out)
    assert (reported["state"], reported["written"]) == ("other", True)
    assert json.loads((root / ".mcp.json").read_text())["mcpServers"]["kb"]["args"] == ["--toolsets", "all"]


def test_toolsets_that_there_are_not_and_options_that_would_do_nothing_are_refused(kb, home, root):
    before = everything_in(home, root)
    ran = kb("mcp", "install", "claude-code", "--toolsets", "core,kp", "--write")
    assert ran.status
    assert "there is no toolset 'kp'; choose from core, kip, logic, all." in ran.err
    for option in (["--toolsets", "all"], ["--read-only"], ["--tool-names", "dotted"], ["-l", "assoc"]):
        ran = kb("mcp", *option, "install", "claude-code", "--write")
        assert ran.status
        assert "in front of `install` do nothing" in ran.err
        assert "kb mcp install CLIENT --toolsets SETS" in ran.err
    assert everything_in(home, root) == before


@pytest.mark.parametrize("client", KINDS)
def test_the_usual_scope_is_the_project_where_the_client_has_a_file_there(kb, home, root, client):
    reported = json.loads(kb("mcp", "install", client, "--json").out)
    assert reported["scope"] == ("user" if client in {"claude", "windsurf"} else "project")
    assert reported["state"] == "absent"
    assert reported["written"] is False


def test_each_system_has_its_own_folder_for_settings():
    for platform, folder in [
        ("darwin", "Library/Application Support"),
        ("win32", "AppData/Roaming"),
        ("linux", ".config"),
    ]:
        assert str(file_of(KINDS["claude"], "user", platform)).startswith(folder)


COMMENTED = """\
// servers of this project
{
\t"servers": {
\t\t"other": {"command": "x"}, // keep me
\t\t/* "off": {}, */
\t},
\t"inputs": [],
}
"""


def test_everything_else_in_a_file_stays_as_it_is(kb, home, root):
    path = root / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text(COMMENTED)
    path.chmod(0o640)
    ran = kb("mcp", "install", "vscode", "--write")
    members = ['"type": "stdio"', '"command": "kb-mcp"', '"args": ["-C", "${workspaceFolder}"]']
    added = '\t\t"kb": {\n\t\t\t' + ",\n\t\t\t".join(members) + "\n\t\t},\n"
    assert path.read_text() == COMMENTED.replace("\t},\n", added + "\t},\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert "other" not in ran.out
    assert [line for line in ran.out.splitlines() if line.startswith("-") and not line.startswith("---")] == []


def test_an_entry_that_is_there_keeps_what_the_user_added(kb, home, root):
    path = root / ".mcp.json"
    path.write_text('{"mcpServers": {"kb": {"command": "/old/kb-mcp", "args": [], "env": {"KB_BRANCH": "main"}}}}')
    reported = json.loads(kb("mcp", "install", "claude-code", "--write", "--json").out)
    assert (reported["state"], reported["written"]) == ("other", True)
    assert path.read_text() == (
        '{"mcpServers": {"kb": {"command": "kb-mcp", "args": [], "env": {"KB_BRANCH": "main"}}}}'
    )


CODEX = """\
model = "x" # mine

[mcp_servers.kb]
args = [
  "-C", "/elsewhere",
]
startup_timeout_sec = 20

[mcp_servers.kb.env]
A = "1"

[mcp_servers.other]
command = "y"
"""


def test_a_table_of_codex_is_changed_in_its_place(kb, home, root):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(CODEX)
    assert kb("mcp", "install", "codex", "--scope", "user", "--write").status == 0
    args = f'args = ["-C", "{root}"]\n'
    roots = f'\n[sandbox_workspace_write]\nwritable_roots = ["{root}/.git/kb"]\n'
    changed = CODEX.replace('args = [\n  "-C", "/elsewhere",\n]\n', args).replace(
        "startup_timeout_sec = 20\n", f'startup_timeout_sec = 20\ncommand = "{PROGRAM}"\n'
    )
    assert path.read_text() == changed + roots
    assert kb("mcp", "install", "codex", "--scope", "user", "--write", "--name", "second").status == 0
    assert path.read_text() == changed + roots + f'\n[mcp_servers.second]\ncommand = "{PROGRAM}"\n{args}'


def test_the_folder_of_the_stores_joins_the_writable_folders_of_codex(kb, home, root):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    mine = (
        'sandbox_mode = "workspace-write"\n\n[sandbox_workspace_write]\nwritable_roots = [\n  "/a", # mine\n]\n'
        "network_access = true\n"
    )
    path.write_text(mine)
    reported = json.loads(kb("mcp", "install", "codex", "--scope", "user", "--json").out)
    assert reported["writable_roots"] == [f"{root}/.git/kb"]
    assert any(f'"{root}/.git/kb",' in line for line in reported["diff"])
    assert path.read_text() == mine
    assert kb("mcp", "install", "codex", "--scope", "user", "--write").status == 0
    changed = path.read_text()
    assert changed.startswith(mine.replace('  "/a", # mine', f'  "{root}/.git/kb",\n  "/a", # mine'))
    assert json.loads(kb("mcp", "install", "codex", "--scope", "user", "--write", "--json").out)["written"] is False
    assert path.read_text() == changed


def test_without_a_kb_the_sandbox_of_codex_gets_no_folder(kb, home, root):
    (root / ".git/kb").rmdir()
    assert json.loads(kb("mcp", "install", "codex", "--scope", "user", "--json").out)["writable_roots"] == []


@pytest.mark.parametrize(
    "text", ["[sandbox_workspace_write]\nwritable_roots = 1\n", "sandbox_workspace_write = {a = 1}\n"]
)
def test_a_sandbox_that_is_written_in_another_form_is_left_to_a_person(kb, home, root, text):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    ran = kb("mcp", "install", "codex", "--scope", "user", "--write")
    assert ran.status == 63
    assert "sandbox_workspace_write" in ran.err
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("client", "text", "place", "says"),
    [
        ("claude-code", '{"a": 1', ":1:8", "never closed"),
        ("claude-code", "[]", ":1:1", "no object"),
        ("claude-code", '{\n  "mcpServers": []\n}', ":2:17", "`mcpServers` is no object"),
        ("claude-code", '{"a": 1, "a": 2}', ":1:10", "twice"),
        ("gemini", '{"a": tru}', ":1:7", "`tru` is no value"),
        ("gemini", "\xff", "", "not UTF-8"),
    ],
)
def test_a_damaged_file_is_refused_with_its_place_and_stays(kb, home, root, client, text, place, says):
    path = root / GOLDEN[client, "project"][0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text.encode("latin-1"))
    ran = kb("mcp", "install", client, "--write")
    assert ran.status == 63
    assert f"{path}{place}" in ran.err
    assert says in ran.err
    assert "Nothing was written." in ran.err
    assert path.read_bytes() == text.encode("latin-1")
    shown = kb("mcp", "install", client)
    assert (shown.status, shown.out) == (0, golden(client, "project", root))
    assert says in shown.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a = 1\nb = [}", "config.toml:2: "),
        ('mcp_servers = {kb = {command = "x"}}', "another form"),
        ('mcp_servers.kb.command = "x"', "another form"),
        ("mcp_servers = 1", "no table"),
    ],
)  # fmt: skip
def test_toml_that_is_damaged_or_of_another_form_is_left_to_a_person(kb, home, root, text, says):
    path = home / ".codex" / "config.toml"
    path.parent.mkdir()
    path.write_text(text)
    ran = kb("mcp", "install", "codex", "--scope", "user", "--write")
    assert ran.status == 63
    assert says in ran.err
    assert path.read_text() == text


@pytest.mark.parametrize("is_folder", [False, True])
def test_no_link_is_followed(kb, home, root, tmp_path, is_folder):
    outside = tmp_path / "outside"
    (outside if is_folder else tmp_path).mkdir(exist_ok=True)
    path = root / ".cursor"
    if is_folder:
        path.symlink_to(outside)
    else:
        path.mkdir()
        (path / "mcp.json").symlink_to(outside)
    ran = kb("mcp", "install", "cursor", "--write")
    assert ran.status == 63
    assert "symbolic link" in ran.err
    assert not outside.is_file()
    assert not is_folder or list(outside.iterdir()) == []
    assert kb("mcp", "install", "cursor").out == golden("cursor", "project", root)


def test_a_folder_in_the_place_of_the_file_is_refused_and_stays(kb, home, root):
    folder = root / ".mcp.json"
    folder.mkdir()
    ran = kb("mcp", "install", "claude-code", "--write")
    assert ran.status == 63
    assert f"{folder} is no file that a client could read. Nothing was written." in ran.err
    assert folder.is_dir()


def test_a_program_that_is_not_on_the_path_is_named_by_its_place(kb, home, root, user):
    user.setenv("PATH", str(home))
    ran = kb("mcp", "install", "claude-code", "--json")
    assert json.loads(ran.out)["entry"]["command"] == str(PROGRAM)
    assert "not on your PATH" in ran.err
    other = home / "kb-mcp"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    ran = kb("mcp", "install", "claude-code", "--json")
    assert json.loads(ran.out)["entry"]["command"] == str(PROGRAM)
    assert f"the kb-mcp on your PATH is another one ({other})" in ran.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["claude", "--scope", "project"], "one configuration"),
        (["cursr"], "hint: Did you mean 'cursor'?\n"),
        (["foo"], "hint: Known: claude, claude-code, codex, cursor, gemini, junie, opencode, vscode, windsurf, zed.\n"),
        (["cursor", "--scope", "global"], "There are project and user."),
        (["cursor", "--name", "a b"], "cannot be the name"),
        (["cursor", "--name", "a__b"], "cannot be the name"),
    ],
)
def test_what_makes_no_sense_is_refused(kb, home, root, words, says):
    ran = kb("mcp", "install", *words, "--write")
    assert ran.status == 2
    assert says in ran.err
    assert not (root / ".cursor").exists()


def test_a_file_that_changes_meanwhile_is_not_overwritten(tmp_path):
    kind = KINDS["claude-code"]
    place = installing.ClientFile(tmp_path, file_of(kind, "project", "linux"))
    planned = installing.plan(place, ServerEntry(kind, "kb", HERE).put)
    place.path.write_text('{"theirs": 1}')
    with pytest.raises(InvalidConfig, match="changed meanwhile"):
        installing.write(planned)
    assert place.path.read_text() == '{"theirs": 1}'
    assert [path.name for path in tmp_path.iterdir()] == [".mcp.json"]


def test_two_installations_at_the_same_time_lose_no_entry(kb, home, root):
    place = installing.ClientFile(root, file_of(KINDS["claude-code"], "project", "linux"))
    machine = Machine(RealFs(), SystemClock(), {"HOME": str(home)})
    with ThreadPoolExecutor(1) as pool:
        with installing.alone(machine, place, root / ".git/kb/cache"):
            other = pool.submit(kb, "mcp", "install", "claude-code", "--write")
            with pytest.raises(TimeoutError):
                other.result(1.0)
            place.path.write_text('{"mcpServers": {"theirs": {}}}')
        assert other.result(10.0).status == 0
    assert sorted(json.loads(place.path.read_text())["mcpServers"]) == ["kb", "theirs"]


def test_a_key_on_the_line_that_changes_is_not_shown(kb, home):
    path = home / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_text('{"a":{"apiKey":"sekret"},"mcpServers":{}}')
    ran = kb("mcp", "install", "gemini", "--scope", "user", "--write")
    assert "sekret" in path.read_text()
    assert '"kb": {' in ran.out
    assert "sekret" not in ran.out + ran.err


@pytest.mark.sliced
def test_an_entry_of_opencode_is_changed_in_its_place_and_looked_at_by_the_doctor(kb, home, root):
    path = root / "opencode.json"
    path.write_text('{"theme": "x", "mcp": {"kb": {"type": "local", "command": ["kb", "mcp"], "enabled": false}}}')
    found = [one for one in json.loads(kb("doctor", "--json").out)["findings"] if "OpenCode" in one["message"]]
    assert [one["code"] for one in found] == ["client"]
    assert kb("mcp", "install", "opencode", "--write").status == 0
    entry = {"type": "local", "enabled": True, "command": ["kb-mcp"]}
    assert json.loads(path.read_text()) == {"theme": "x", "mcp": {"kb": entry}}
    path.write_text('{"mcp": {"kb": {"type": "local", "command": ["kb-mcp", "--bogus"]}}}')
    found = [one for one in json.loads(kb("doctor", "--json").out)["findings"] if "OpenCode" in one["message"]]
    assert [one["code"] for one in found] == ["client_arguments"]
