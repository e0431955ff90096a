"""`kb agents`: what is installed for each client, that it can be taken out to the byte, and what a person changed."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcli.clients import setup
from kbcli.clients.kinds import KINDS
from kbcli.clients.setup import Surroundings
from kbcore.clock import SystemClock
from kbcore.prime.agent_text import agent_guide, agent_text, skill_text
from kbcore.storage.fs import RealFs
from kbcore.store.pool import Machine
from tests.support.effort.scale import tries

PROGRAM = Path(sys.executable).with_name("kb")
FULL = [name for name, kind in KINDS.items() if kind.has_more]
WITH_HOOKS = [name for name in FULL if KINDS[name].hooks]


def files_in(*folders: Path) -> dict[str, tuple[int, bytes | None]]:
    """Return every file and folder, each with its mode and content, but what git and KB keep for themselves."""
    found = {}
    for folder in folders:
        for path in [folder, *folder.rglob("*")]:
            if not {".git", ".cache", ".local"} & {*path.relative_to(folder).parts}:
                found[str(path)] = (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
    return found


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("client", FULL)
def test_what_is_installed_is_checked_stays_the_second_time_and_is_removed_to_the_byte(kb, home, root, client, scope):
    if client == "windsurf" and scope == "project":
        scope = ""
    words = [client, *(["--scope", scope] if scope else [])]
    before = files_in(home, root)
    shown = kb("agents", "install", *words)
    assert (shown.status, files_in(home, root)) == (0, before)
    assert "would be written" in shown.out
    assert kb("agents", "check", *words).status == 1
    assert "missing" in kb("agents", "check", *words).out
    assert kb("agents", "install", *words, "--write").status == 0
    installed = files_in(home, root)
    assert installed != before
    checked = kb("agents", "check", *words)
    assert (checked.status, "missing" in checked.out) == (0, False)
    again = kb("agents", "install", *words, "--write")
    assert (again.status, " written " in again.out, files_in(home, root)) == (0, False, installed)
    assert kb("agents", "remove", *words, "--write").status == 0
    assert files_in(home, root) == before


def test_all_clients_are_installed_and_removed_together(kb, home, root):
    (root / "AGENTS.md").write_text("Read me.")
    before = files_in(home, root)
    assert kb("agents", "install", "--all", "--write").status == 0
    found = kb("agents", "check", "--json").json["clients"]
    assert {one["client"] for one in found} == {*KINDS}
    assert {part["state"] for one in found for part in one["parts"]} == {"installed"}
    assert kb("agents", "remove", "--all", "--write").status == 0
    assert files_in(home, root) == before
    assert "Nothing of KB is installed" in kb("agents", "check").out


@pytest.mark.parametrize("client", [*KINDS])
def test_what_is_installed_for_the_user_is_found_where_no_client_is_named(kb, home, root, client):
    assert kb("agents", "install", client, "--scope", "user", "--write").status == 0
    found = kb("agents", "check", "--json")
    states = [(one["client"], part["scope"], part["state"]) for one in found.json["clients"] for part in one["parts"]]
    assert {*states} == {(client, "user", "installed")}
    assert found.status == 0


def test_a_client_that_has_both_scopes_and_one_file_of_servers_is_listed_with_each(kb, home, root):
    for scope in ([], ["--scope", "user"]):
        assert kb("agents", "install", "windsurf", *scope, "--write").status == 0
    texts = [part["path"] for one in kb("agents", "check", "--json").json["clients"] for part in one["parts"][1:]]
    assert texts == [str(root / "AGENTS.md"), str(home / ".codeium/windsurf/memories/global_rules.md")]
    (root / "AGENTS.md").unlink()
    (home / ".codeium/windsurf/memories/global_rules.md").unlink()
    [found] = kb("agents", "check", "--json").json["clients"]
    assert [part["state"] for part in found["parts"]] == ["installed", "missing"]


def test_clients_without_more_get_the_server_alone(kb, home, root):
    parts = kb("agents", "install", "junie", "claude", "--json").json["parts"]
    assert [(one["client"], one["part"], one["scope"]) for one in parts] == [
        ("junie", "server", "project"),
        ("claude", "server", "user"),
    ]


def test_the_entry_is_that_of_mcp_install_and_its_options_stay(kb, home, root):
    assert kb("mcp", "install", "claude-code", "--toolsets", "core,kip", "--write").status == 0
    before = (root / ".mcp.json").read_bytes()
    assert kb("agents", "install", "claude-code", "--write").status == 0
    assert (root / ".mcp.json").read_bytes() == before
    assert kb("agents", "check", "claude-code").status == 0
    assert kb("agents", "install", "claude-code", "--replace", "--write").status == 0
    assert json.loads((root / ".mcp.json").read_text())["mcpServers"]["kb"]["args"] == []
    assert kb("agents", "remove", "claude-code", "--write").status == 0
    assert not (root / ".mcp.json").exists()


def test_a_block_has_all_of_the_text_as_long_as_a_client_without_hooks_needs_it(kb, home, root):
    path = root / "AGENTS.md"
    kb("agents", "install", "codex", "--write")
    assert agent_text(is_full=False) in path.read_text()
    kb("agents", "install", "zed", "--write")
    assert agent_text(is_full=True) in path.read_text()
    assert path.read_text().count("kb:begin") == 1
    assert kb("agents", "check", "codex", "zed").status == 0
    kb("agents", "remove", "zed", "--write")
    assert agent_text(is_full=False) in path.read_text()
    kb("agents", "remove", "codex", "--write")
    assert not path.exists()


SHARED, OF_CLAUDE = ".agents/skills/kb/SKILL.md", ".claude/skills/kb/SKILL.md"


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize(
    ("clients", "files"),
    [([], [SHARED]), (["claude-code"], [OF_CLAUDE]), (["codex", "claude-code", "gemini"], [SHARED, OF_CLAUDE])],
)
def test_the_skill_is_installed_on_request_where_clients_read_it_and_goes_to_the_byte(
    kb, home, root, clients, files, scope
):
    base = root if scope == "project" else home
    words = [*clients, "--skill", "--scope", scope]
    before = files_in(home, root)
    shown = kb("agents", "install", *words)
    assert (shown.status, "would be written" in shown.out, files_in(home, root)) == (0, True, before)
    assert kb("agents", "install", *words, "--write").status == 0
    assert sorted(one.relative_to(base).as_posix() for one in base.rglob("SKILL.md")) == files
    assert {(base / one).read_text() for one in files} == {skill_text()}
    checked = kb("agents", "check", *clients, "--scope", scope)
    assert (checked.status, checked.out.count("skill        installed")) == (0, len(files))
    installed = files_in(home, root)
    assert " written " not in kb("agents", "install", *words, "--write").out
    assert files_in(home, root) == installed
    assert kb("agents", "print", *words).out.count(skill_text()) == len(files)
    assert kb("agents", "remove", *words, "--write").status == 0
    assert files_in(home, root) == before


def test_without_skill_no_skill_is_installed_and_all_takes_it_out(kb, home, root):
    kb("agents", "install", "--all", "--write")
    assert not [*root.rglob("SKILL.md")]
    kb("agents", "install", "--all", "--skill", "--write")
    assert len([*root.rglob("SKILL.md")]) == 2
    kb("agents", "remove", "--all", "--write")
    assert not [*root.rglob("SKILL.md")]


def test_a_skill_that_a_person_changed_or_wrote_is_kept_and_said(kb, home, root):
    path = root / SHARED
    kb("agents", "install", "--skill", "--write")
    path.write_text(path.read_text().replace("## Undo", "## Never"))
    changed = path.read_text()
    assert "it was changed by hand" in kb("agents", "check").out
    assert "kept" in kb("agents", "install", "--skill", "--write").out
    assert "take it out by hand" in kb("agents", "remove", "--skill", "--write").out
    assert path.read_text() == changed
    kb("agents", "install", "--skill", "--replace", "--write")
    assert path.read_text() == skill_text()
    # An older one of KB's own, as a clone has it that has no receipts, is brought up to date.
    (root / ".git/kb-clients.json").unlink()
    older = skill_text().replace("\n", "\r\n").encode()
    path.write_bytes(older)
    assert "skill        installed" in kb("agents", "check").out
    assert kb("agents", "remove", "--skill", "--write").status == 0
    assert not path.exists()


def test_a_skill_that_was_there_before_comes_back(kb, home, root):
    path = root / OF_CLAUDE
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: kb\n---\nMine.\n")
    before = files_in(home, root)
    assert "kept" in kb("agents", "install", "claude-code", "--skill", "--write").out
    kb("agents", "remove", "claude-code", "--skill", "--write")
    assert files_in(home, root) == before
    kb("agents", "install", "claude-code", "--skill", "--replace", "--write")
    assert path.read_text() == skill_text()
    kb("agents", "remove", "claude-code", "--skill", "--write")
    assert files_in(home, root) == before


def test_an_older_skill_of_kb_is_outdated_and_replaced(kb, home, root, user):
    kb("agents", "install", "--skill", "--write")
    user.setattr("kbcore.prime.agent_text._JOBS", "Newer.\n")
    assert "outdated" in kb("agents", "check").out
    assert kb("agents", "install", "--skill", "--write").status == 0
    assert (root / SHARED).read_text() == skill_text()
    assert "Newer." in skill_text()


def test_help_has_the_text_of_the_skill(kb):
    ran = kb("help", "agents")
    assert (ran.status, ran.out.startswith(agent_guide()), "`kb agents --help`" in ran.out) == (0, True, True)


def test_a_block_that_a_person_changed_is_kept_and_said(kb, home, root):
    path = root / "CLAUDE.md"
    kb("agents", "install", "claude-code", "--write")
    path.write_text(path.read_text().replace("linked to the code", "and jokes"))
    changed = path.read_text()
    checked = kb("agents", "check", "claude-code")
    assert (checked.status, "changed" in checked.out, "by hand" in checked.out) == (1, True, True)
    again = kb("agents", "install", "claude-code", "--write")
    assert "it was changed by hand; --replace replaces it" in again.out
    assert path.read_text() == changed
    assert "take it out by hand" in kb("agents", "remove", "claude-code", "--write").out
    assert path.read_text() == changed
    kb("agents", "install", "claude-code", "--replace", "--write")
    assert "and jokes" not in path.read_text()
    assert kb("agents", "check", "claude-code").status == 0


def test_a_block_of_an_older_text_is_outdated_and_replaced(kb, home, root):
    from kbcli.clients.marked_block import with_block

    path = root / "CLAUDE.md"
    path.write_text(with_block("# Mine\n", ("claude-code",), "An older text.\n"))
    kb("mcp", "install", "claude-code", "--write")
    found = kb("agents", "check", "claude-code", "--json").json["clients"][0]["parts"]
    assert {one["part"]: one["state"] for one in found} == {
        "server": "installed",
        "hooks": "missing",
        "instructions": "outdated",
    }
    assert kb("agents", "install", "claude-code", "--write").status == 0
    assert "older" not in path.read_text()
    assert kb("agents", "remove", "claude-code", "--write").status == 0
    assert path.read_text() == "# Mine\n"


@pytest.mark.parametrize("text", ["<!-- kb:begin codex sha256:0 -->\nno end\n", "<!-- kb:end -->\n"])
def test_marks_that_are_no_pair_are_refused_with_what_to_do(kb, home, root, text):
    path = root / "CLAUDE.md"
    path.write_text(text)
    ran = kb("agents", "install", "claude-code", "--write")
    assert (ran.status, path.read_text()) == (63, text)
    assert "not one pair" in ran.out
    assert "Remove what is left" in ran.out
    assert (root / ".mcp.json").exists()
    assert kb("agents", "check", "claude-code").status == 1


def test_other_hooks_and_settings_of_the_user_stay(kb, home, root):
    path = root / ".claude/settings.json"
    path.parent.mkdir()
    mine = {"matcher": "Write", "hooks": [{"type": "command", "command": "./mine.sh"}]}
    path.write_text(json.dumps({"hooks": {"PreToolUse": [mine]}, "model": "x"}, indent=4))
    before = path.read_bytes()
    kb("agents", "install", "claude-code", "--write")
    hooks = json.loads(path.read_text())["hooks"]
    assert hooks["PreToolUse"][0] == mine
    assert len(hooks["PreToolUse"]) == 2
    kb("agents", "remove", "claude-code", "--write")
    assert path.read_bytes() == before


def test_what_was_changed_since_loses_the_parts_alone(kb, home, root):
    for client in ("gemini", "codex"):
        kb("agents", "install", client, "--write")
    settings_path, text = root / ".gemini/settings.json", root / "AGENTS.md"
    settings_path.write_text(settings_path.read_text().replace("{", '{\n  "theme": "dark",', 1))
    text.write_text(f"# Before\n\n{text.read_text()}\nAfter.\n")
    config = root / ".codex/config.toml"
    config.write_text(f'model = "x"\n\n{config.read_text()}')
    for client in ("gemini", "codex"):
        assert kb("agents", "remove", client, "--write").status == 0
    assert json.loads(settings_path.read_text()) == {"theme": "dark"}
    assert text.read_text() == "# Before\n\nAfter.\n"
    assert config.read_text() == 'model = "x"\n'
    assert not (root / ".codex/hooks.json").exists()


def test_without_receipts_the_parts_are_known_by_their_content(kb, home, root):
    for client in FULL:
        kb("agents", "install", client, "--write")
    (root / ".git/kb-clients.json").unlink()
    assert kb("agents", "check").status == 0
    assert kb("agents", "remove", "--all", "--write").status == 0
    assert [path for path in files_in(root) if Path(path).is_file() and "README" not in path] == []


def test_receipts_that_cannot_be_read_are_named(kb, home, root):
    kb("agents", "install", "codex", "--write")
    (root / ".git/kb-clients.json").write_text("{")
    ran = kb("agents", "remove", "codex", "--write")
    assert ran.status == 63
    assert "kb-clients.json" in ran.out
    assert "Remove it" in ran.out


def test_a_hook_that_was_changed_by_hand_stays_and_an_older_one_is_replaced(kb, home, root):
    path = root / ".claude/settings.json"
    kb("agents", "install", "claude-code", "--write")
    path.write_text(path.read_text().replace('"timeout": 10', '"timeout": 99'))
    assert "changed" in kb("agents", "check", "claude-code").out
    kb("agents", "install", "claude-code", "--write")
    assert '"timeout": 99' in path.read_text()
    kb("agents", "install", "claude-code", "--write", "--replace")
    assert '"timeout": 99' not in path.read_text()
    # What this KB wrote itself, for another place of its program, is outdated.
    receipts = root / ".git/kb-clients.json"
    for file in (path, receipts):
        file.write_text(file.read_text().replace("exec kb agents", "exec /old/kb agents"))
    assert "outdated" in kb("agents", "check", "claude-code").out
    kb("agents", "install", "claude-code", "--write")
    assert "/old/kb" not in path.read_text()


def test_an_entry_whose_program_is_gone_is_outdated(kb, home, root):
    kb("mcp", "install", "cursor", "--scope", "user", "--write")
    path = home / ".cursor/mcp.json"
    path.write_text(path.read_text().replace(str(PROGRAM.with_name("kb-mcp")), "/gone/kb-mcp"))
    [server, *_] = kb("agents", "check", "cursor", "--scope", "user", "--json").json["clients"][0]["parts"]
    assert (server["state"], "is not there" in server["problem"]) == ("changed", True)


@pytest.mark.parametrize(("client", "name"), [("zed", ".zed/settings.json"), ("codex", ".codex/config.toml")])
def test_a_file_that_begins_with_a_byte_order_mark_keeps_it(kb, home, root, client, name):
    path = root / name
    path.parent.mkdir()
    path.write_bytes(b"\xef\xbb\xbf" + (b"" if client == "codex" else b'{"a": 1}\n'))
    before = path.read_bytes()
    assert "\ufeff" not in kb("agents", "install", client).out
    assert kb("agents", "install", client, "--write").status == 0
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    assert kb("agents", "check", client).status == 0
    assert kb("agents", "remove", client, "--write").status == 0
    assert path.read_bytes() == before


def test_the_instructions_go_where_a_client_reads_them(kb, home, root):
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    (root / "AGENTS.md").write_text("Mine.\n")
    (root / ".rules").write_text("Rules.\n")
    kb("agents", "install", "claude-code", "zed", "--write")
    assert (root / "CLAUDE.md").is_symlink()
    assert "kb:begin claude-code " in (root / "AGENTS.md").read_text()
    assert "kb:begin zed " in (root / ".rules").read_text()
    kb("agents", "remove", "claude-code", "zed", "--write")
    assert ((root / "AGENTS.md").read_text(), (root / ".rules").read_text()) == ("Mine.\n", "Rules.\n")


def test_print_shows_the_files_and_reads_and_writes_nothing(kb, home, root):
    before = files_in(home, root)
    for client in KINDS:
        ran = kb("agents", "print", client)
        assert (ran.status, "kb" in ran.out, files_in(home, root)) == (0, True, before)
    files = kb("agents", "print", "codex", "--json").json["files"]
    assert [one["part"] for one in files] == ["server", "hooks", "instructions"]
    assert "agents hook codex pre-edit" in files[1]["text"]


def test_check_names_a_program_that_is_not_there(kb, home, root, user):
    kb("agents", "install", "codex", "--write")
    assert "its program is not on the PATH" in kb("agents", "check", "codex").out
    program = home / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    user.setenv("PATH", f"{home}{os.pathsep}{os.environ['PATH']}")
    assert kb("agents", "check", "codex", "--json").json["clients"][0]["program"] == str(program)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["install"], "No client is named."),
        (["install", "cursr"], "Did you mean 'cursor'?"),
        (["install", "windsurf", "--scope", "project"], "one configuration"),
        (["install", "codex", "--scope", "all"], "There are project and user."),
    ],
)
def test_what_makes_no_sense_is_refused(kb, home, root, words, says):
    ran = kb("agents", *words, "--write")
    assert (ran.status, says in ran.err) == (2, True)


def test_a_link_that_leads_elsewhere_is_named_once_and_no_sign_of_an_installation(kb, home, root):
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs/A.md").write_text("Mine.\n")
    (root / "AGENTS.md").symlink_to("docs/A.md")
    assert kb("agents", "install", "claude-code", "--write").status == 0
    checked = kb("agents", "check")
    assert (checked.status, "AGENTS.md" in checked.out) == (0, False)
    ran = kb("agents", "install", "codex", "--write")
    [line] = [one for one in ran.out.splitlines() if " failed " in one]
    assert ran.status == 63
    assert line.count("AGENTS.md") == 1
    assert "`kb agents print` with the client shows what is meant." in line
    assert (root / "docs/A.md").read_text() == "Mine.\n"


def test_without_a_home_only_the_project_is_set_up(kb, home, root, user):
    user.delenv("HOME")
    assert kb("agents", "install", "codex", "--write").status == 0
    ran = kb("agents", "install", "codex", "--scope", "user", "--write")
    assert (ran.status, "HOME names no absolute path" in ran.err) == (2, True)
    ran = kb("agents", "check")
    assert (ran.status, ran.out.startswith("Codex")) == (0, True)


@pytest.mark.parametrize("client", [*KINDS])
def test_a_scope_that_a_refusal_advises_is_one_of_the_client(kb, home, root, user, client):
    """Some clients have no file of a project."""
    user.delenv("HOME")
    ran = kb("agents", "install", client, "--scope", "user")
    assert (ran.status, "hint: Set HOME" in ran.err) == (2, True)
    assert ("--scope project" in ran.err) is (kb("agents", "install", client, "--scope", "project").status == 0)
    assert "is not on your PATH" not in ran.err


@pytest.mark.parametrize(
    ("client", "variable", "places"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", [".claude.json", "CLAUDE.md", "settings.json"]),
        ("codex", "CODEX_HOME", ["AGENTS.md", "config.toml", "hooks.json"]),
        ("opencode", "XDG_CONFIG_HOME", ["opencode/AGENTS.md", "opencode/opencode.json", "opencode/plugins/kb.js"]),
    ],
)
@pytest.mark.parametrize("is_there", [True, False])
def test_a_client_whose_folder_is_elsewhere_is_set_up_there(kb, home, root, user, client, variable, places, is_there):
    folder = home.parent / "elsewhere" / "deep"
    if is_there:
        folder.mkdir(parents=True)
    user.setenv(variable, str(folder))
    before = files_in(home.parent)
    assert kb("agents", "install", client, "--scope", "user", "--write").status == 0
    assert sorted(str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file()) == places
    assert kb("agents", "check", client, "--scope", "user").status == 0
    assert kb("agents", "remove", client, "--scope", "user", "--write").status == 0
    after = files_in(home.parent)
    assert {name: after[name] for name in after.keys() & before.keys()} == before
    assert [name for name in after.keys() - before.keys() if Path(name).is_file()] == []
    assert not is_there or after == before


def test_a_variable_with_a_relative_folder_is_no_place_for_files_of_a_client(kb, home, root, user):
    user.setenv("CODEX_HOME", "here")
    assert kb("agents", "install", "codex", "--scope", "user", "--write").status == 0
    assert (home / ".codex/config.toml").is_file()


TEXTS = st.sampled_from(["", "# Mine", "# Mine\n", "# Mine\n\n", "a\r\nb\r\n", "\ufeff# Mine\n", "\n", "<!-- kb -->\n"])
SETTINGS = st.sampled_from(
    [
        None,
        "{}",
        '{"a": 1}',
        '{\n    "hooks": {},\n    "mcpServers": {}\n}\n',
        '// mine\n{\n\t"hooks": {"SessionStart": [{"hooks": []}],}, // here\n}\n',
        '{"hooks": {"SessionStart": []}, "mcpServers": {"other": {"command": "x"}}}\r\n',
        '\ufeff{"a": 1}\n',
    ]
)
TABLES = st.sampled_from(
    [None, "", 'model = "x"', "# c\n\n[a]\nb = 1\n\n", "[mcp_servers.other]\r\ncommand = 'y'\r\n", "\ufeffa = 1\n"]
)


@settings(max_examples=tries(20, 200), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TEXTS, SETTINGS, TABLES, st.permutations(FULL), st.permutations(FULL), st.integers(1, len(FULL)))
def test_whatever_was_there_is_there_again_in_whatever_order(tmp_path_factory, text, said, table, there, back, some):
    base = tmp_path_factory.mktemp("clients")
    root, home = base / "repo", base / "home"
    (root / ".git").mkdir(parents=True)
    home.mkdir()
    place = {"AGENTS.md": text, "CLAUDE.md": text or None, "GEMINI.md": None, ".codex/config.toml": table}
    names = (".mcp.json", ".claude/settings.json", ".gemini/settings.json", ".cursor/hooks.json", "opencode.json")
    for name, content in {**place, **dict.fromkeys(names, said)}.items():
        if content is not None:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_bytes(content.encode())
    command = {"project": ("kb",), "user": (str(PROGRAM),)}
    around = Surroundings(
        Machine(RealFs(), SystemClock(), {"HOME": str(home)}), root, root / ".git", root / ".git/kb",
        root / ".git/kb/cache", home, "linux", {"project": ("kb-mcp",), "user": ("kb-mcp",)}, command,
    )  # fmt: skip
    before = files_in(root, home)
    chosen = there[:some]
    for client in chosen:
        for target in setup.targets(around, client):
            assert setup.install(around, target, write=True).action == "written"
            assert setup.look(around, target) == "installed"
    for client in [one for one in back if one in chosen]:
        for target in setup.targets(around, client):
            setup.take_out(around, target, write=True)
            assert setup.look(around, target) == "missing"
    assert files_in(root, home) == before
    assert not (root / ".git/kb-clients.json").exists()
