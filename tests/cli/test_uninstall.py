"""`kb uninstall`: repository and home are as they were before KB, to the byte, and no journal is lost unasked."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.support.processes.cli import DOCUMENTS, write
from tests.support.processes.terminal import Terminal
from tests.support.repository.repos import add_worktree, commit_files, git

PROGRAM = Path(sys.executable).with_name("kb")
OF_GIT = ("objects", "index", "logs", "COMMIT_EDITMSG", "ORIG_HEAD")
"""Paths that git's own commands change in its directory."""
SETTINGS = {
    ".claude.json": '{"oauthAccount": {"token": "sekret"}, "projects": {}}',
    ".codex/config.toml": 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "y"\n',
    ".gemini/settings.json": '// mine\n{\n\t"theme": "dark",\n}\n',
    ".config/opencode/opencode.json": "{}",
    ".cache/other/file": "x",
}


def snapshot(*folders: Path) -> dict[str, tuple[str, bytes | str]]:
    """Return all that is in folders: kind and mode, with the content of a file, or where a link leads."""
    found: dict[str, tuple[str, bytes | str]] = {}
    for folder in folders:
        for path in [folder, *sorted(folder.rglob("*"))]:
            if any(path.is_relative_to(folder / ".git" / name) for name in OF_GIT):
                continue
            said = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            found[str(path)] = (stat.filemode(path.lstat().st_mode), said)
    return found


def use(kb, root: Path) -> None:
    """Set up all there is, and use it: settings, stores, hooks, caches, clients of the project and of the user."""
    write(root, DOCUMENTS)
    assert kb("init", "--yes").status == 0
    assert kb("config", "set", "kip.rowLimit", "7").status == 0
    assert kb("sync").status == 0
    for words in (["install", "--all", "--skill"], ["install", "--all", "--skill", "--scope", "user"]):
        assert kb("agents", *words, "--write").status == 0
    assert kb("mcp", "install", "cursor", "--scope", "user", "--name", "second", "--write").status == 0
    kb("apply", "-", stdin=json.dumps({"entities": [{"id": "T-1", "type": "task", "title": "Do", "status": "open"}]}))
    kb("query", "--text", "login")
    kb("prime")
    kb("agents", "hook", "claude-code", "session-start", stdin="{}")
    kb("hook", "post-merge", "0")
    kb("check")
    kb("doctor")
    for name in DOCUMENTS:
        (root / name).unlink()
    shutil.rmtree(root / "docs")


@pytest.mark.parametrize("is_used_before", [False, True], ids=["empty home", "home with settings"])
def test_repository_and_home_are_as_before_to_the_byte(kb, home, root, is_used_before):
    if is_used_before:
        write(home, SETTINGS)
        (home / ".codex/config.toml").chmod(0o640)
        commit_files(root, {"AGENTS.md": "Read me.", "CLAUDE.md": "Mine\r\n", ".mcp.json": '{"mcpServers": {}}'})
        (root / ".github").mkdir()
    before = snapshot(root, home)
    use(kb, root)
    assert len(snapshot(root, home)) > len(before) + 60
    shown = kb("uninstall", "--delete-all")
    assert (shown.status, "it needs --yes. Nothing was changed." in shown.err) == (2, True)
    assert "delete       " in shown.out
    as_json = kb("uninstall", "--delete-all", "--json")
    assert (as_json.status, as_json.json["done"]) == (2, False)
    assert kb("status").status == 0
    done = kb("uninstall", "--delete-all", "--yes")
    assert (done.status, done.out.splitlines()[-1]) == (0, "KB is taken out of this repository.")
    assert snapshot(root, home) == before
    assert "Nothing of KB is here." in kb("uninstall").out
    assert kb("uninstall", "--json").status == 0


def test_at_a_terminal_a_no_changes_nothing(kb, home, root, tmp_path):
    assert kb("init").status == 0
    before = snapshot(root)
    terminal = Terminal(root, tmp_path / "state", "Take this out? [y/N]: ", "uninstall", env={"HOME": str(home)})
    assert terminal.leave("n\n") == 130
    assert snapshot(root) == before


def test_journals_stay_unless_told_and_init_takes_them_up(kb, home, root):
    use(kb, root)
    seq = kb("status", "--json").json["head"]
    ran = kb("uninstall", "--yes", "--json").json
    assert [one["reason"] for one in ran["kept"]] == ["journals", "not_in_git"]
    assert not (root / ".git/kb/cache").exists()
    assert not (home / ".cache").exists()
    assert (root / ".kb/config.json").exists()  # it was proposed, and git does not have it
    assert not (root / ".kb/schema").exists()
    assert kb("uninstall").out.splitlines()[-1] == "Nothing else of KB is here."
    assert kb("init").status == 0
    assert kb("status", "--json").json["head"] == seq
    assert kb("verify").status == 0
    assert kb("uninstall", "--delete-all", "--yes").status == 0
    assert not (root / ".kb").exists()


def test_init_after_an_uninstall_says_that_sharing_is_on(kb, home, root):
    first = kb("init", "--share", "auto").out.splitlines()[-1]
    git(root, "add", ".kb")
    git(root, "commit", "-q", "-m", "KB")
    assert first.startswith("Sharing: each `git commit` takes along")
    assert kb("uninstall", "--yes").status == 0
    git(root, "restore", ".kb")
    for _ in range(2):
        assert kb("init").out.splitlines()[-1] == first
    assert "Sharing" in kb("init", "--share", "off").out.splitlines()[-1]
    assert "Sharing" not in kb("init").out


def test_settings_that_git_has_go_and_those_that_a_person_wrote_stay(kb, home, root):
    kb("init")
    commit_files(
        root, {".kb/rules/mine.sql": "-- mine\n", ".kb/schema/mine.yaml": "entities: {risk: {description: R}}\n"}
    )
    (root / ".kb/schema/mine.yaml").write_text("entities: {risk: {description: Risks}}\n")
    git(root, "add", ".kb")
    assert kb("uninstall", "--yes").status == 0
    left = sorted(path.relative_to(root).as_posix() for path in (root / ".kb").rglob("*") if path.is_file())
    assert left == [".kb/schema/mine.yaml"]
    assert "D .kb/rules/mine.sql" in git(root, "status", "--porcelain")


def test_what_is_for_other_repositories_stays(kb, home, root, tmp_path):
    other = shutil.copytree(root, tmp_path / "other", symlinks=True)
    for folder in (root, other):
        assert kb("init", cwd=folder).status == 0
        assert kb("agents", "install", "claude-code", "zed", "--scope", "user", "--write", cwd=folder).status == 0
        assert kb("mcp", "install", "windsurf", "--name", folder.name, "--write", cwd=folder).status == 0
    kb("uninstall", "--delete-all", "--yes", cwd=root)
    assert "agents hook claude-code" in (home / ".claude/settings.json").read_text()
    servers = json.loads((home / ".codeium/windsurf/mcp_config.json").read_text())["mcpServers"]
    assert list(servers) == ["other"]
    assert kb("status", cwd=other).status == 0
    assert kb("agents", "check", "claude-code", "--scope", "user", cwd=other).status == 0
    kb("uninstall", "--delete-all", "--yes", cwd=other)
    assert sorted(home.iterdir()) == []


@pytest.mark.parametrize("option", [(), ("--delete-all",)])
def test_the_notes_of_other_repositories_stay_where_a_repository_has_no_record(kb, home, root, tmp_path, option):
    other = shutil.copytree(root, tmp_path / "other", symlinks=True)
    for folder in (root, other):
        assert kb("init", cwd=folder).status == 0
    task = {"id": "T-1", "type": "task", "title": "Do", "status": "open"}
    kb("apply", "-", stdin=json.dumps({"entities": [task]}), cwd=other)
    notes = snapshot(home / ".local/state/kb")
    ran = kb("uninstall", "--yes", *option, cwd=root)
    assert (ran.status, "is used by other repositories" in ran.out) == (0, True)
    assert snapshot(home / ".local/state/kb") == notes


def test_stores_in_the_worktree_stay_unless_told(kb, home, root):
    write(home, {".config/kb/config.json": '{"store": "worktree"}'})
    before = snapshot(root, home)
    use(kb, root)
    assert (root / ".kb/branches/main").is_dir()
    ran = kb("uninstall", "--yes")
    assert ran.status == 0
    assert sorted(path.name for path in (root / ".kb").iterdir()) == ["branches", "config.json"]
    assert kb("log", "--json").status == 0
    assert kb("uninstall", "--delete-all", "--yes").status == 0
    assert snapshot(root, home) == before


def test_a_block_that_a_person_changed_stays_and_is_named(kb, home, root):
    kb("init")
    kb("agents", "install", "claude-code", "--write")
    path = root / "CLAUDE.md"
    path.write_text(path.read_text().replace("knowledge base", "treasure"))
    ran = kb("uninstall", "--delete-all", "--yes")
    assert (ran.status, "was changed by hand" in ran.err) == (1, True)
    assert "treasure" in path.read_text()
    assert not (root / ".mcp.json").exists()
    assert not (root / ".kb").exists()


def test_a_file_that_cannot_be_read_does_not_stop_the_rest(kb, home, root):
    kb("init")
    kb("agents", "install", "claude-code", "gemini", "--write")
    (root / ".mcp.json").write_text("{")
    ran = kb("uninstall", "--delete-all", "--yes")
    assert (ran.status, ".mcp.json" in ran.err) == (63, True)
    assert not (root / "GEMINI.md").exists()
    assert not (root / ".git/kb").exists()


def test_linked_worktrees_lose_their_kept_answers(kb, home, root):
    kb("init")
    other = add_worktree(root, root.parent / "linked", "feature")
    kb("sync", cwd=other)
    kb("prime", cwd=other)
    before = snapshot(root)
    assert kb("uninstall", "--delete-all", "--yes", cwd=other).status == 0
    after = {path for path in snapshot(root) if "/kb" in path.removeprefix(str(root))}
    assert any("/kb" in path.removeprefix(str(root)) for path in before)
    assert after == set()


def test_without_a_repository_it_says_so(kb, home, tmp_path):
    (tmp_path / "empty").mkdir()
    assert kb("uninstall", "--yes", cwd=tmp_path / "empty").status != 0


def test_it_waits_for_no_one_who_works_on_the_stores(kb, home, root, user):
    from kbcore.clock import SystemClock
    from kbcore.storage import lock
    from kbcore.storage.fs import RealFs

    kb("init")
    user.setattr("kbcore.maintenance.uninstalling._WAIT_S", 0.1)
    with lock.held(RealFs(), SystemClock(), root / ".git/kb/lock", wait_s=0, command="test"):
        ran = kb("uninstall", "--delete-all", "--yes")
    assert ran.status
    assert (root / ".git/kb/branches").exists()
    assert kb("uninstall", "--delete-all", "--yes").status == 0


def test_what_was_written_in_another_worktree_is_named_and_can_be_taken_out_there(kb, home, root):
    commit_files(root, {"README.md": "x"})
    other = add_worktree(root, root.parent / "other", "other")
    before = snapshot(other)
    assert kb("agents", "install", "codex", "--write", cwd=other).status == 0
    ran = kb("uninstall", "--yes")
    assert ran.status == 1
    assert f"{other / 'AGENTS.md'} stays: `kb agents remove --all --write` in its worktree" in ran.err
    assert kb("uninstall", "--yes", "--json").json["in_other_worktrees"] == [
        str(other / name) for name in (".codex/config.toml", ".codex/hooks.json", "AGENTS.md")
    ]
    assert kb("agents", "remove", "--all", "--write", cwd=other).status == 0
    assert snapshot(other) == before
    assert kb("uninstall", "--yes").status == 0


def test_a_file_that_clients_share_is_named_once_and_a_link_that_kb_never_wrote_through_not_at_all(kb, home, root):
    (root / "docs").mkdir(exist_ok=True)
    (root / "docs/G.md").write_text("Mine.\n")
    (root / "GEMINI.md").symlink_to("docs/G.md")
    assert kb("agents", "install", "zed", "--write").status == 0
    path = root / "AGENTS.md"
    path.write_text(path.read_text().replace("linked to the code", "and jokes"))
    ran = kb("uninstall", "--yes")
    assert ran.status == 1
    assert [line.count("AGENTS.md") for line in ran.err.splitlines()] == [1]
    assert [line for line in ran.out.splitlines() if line.startswith("instructions")] == [
        f"instructions of cursor, vscode, codex, zed, windsurf, opencode in {path}"
    ]
