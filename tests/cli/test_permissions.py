"""Files of several users: modes and groups as git's settings ask for, and the error for a user without them."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.processes.cli import Ran, environment, program
from tests.support.processes.second_user import ALICE, BOB, TEAM, common, kb_as, needs_root, run_as
from tests.support.repository.repos import git, make_repository

__all__ = ["common"]

MODES = [
    ("group", 0o660, 0o2770),
    ("true", 0o660, 0o2770),
    ("1", 0o660, 0o2770),
    ("all", 0o664, 0o2775),
    ("world", 0o664, 0o2775),
    ("everybody", 0o664, 0o2775),
    ("2", 0o664, 0o2775),
    ("0640", 0o640, 0o2750),
    ("0660", 0o660, 0o2770),
    ("umask", 0o600, 0o700),
    ("false", 0o600, 0o700),
    ("0", 0o600, 0o700),
]
CHANGE = '{"entities": [{"id": "%s", "type": "req", "title": "t", "status": "open"}]}'


def run_kb(root: Path, *words: str, env: Mapping[str, str] | None = None) -> Ran:
    """Run `kb` with a umask that gives others nothing."""
    done = subprocess.run(
        [*program(), *words],
        cwd=root,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        umask=0o077,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def own(root: Path) -> list[Path]:
    """Return everything that KB made in the git directory, but the private and the database's own."""
    data = root / ".git/kb"
    hooks = [path for path in (root / ".git/hooks").iterdir() if not path.name.endswith(".sample")]
    return [data, *sorted(data.rglob("*")), *hooks]


@pytest.mark.sliced(5)
@pytest.mark.parametrize(("value", "file", "folder"), MODES)
def test_what_is_made_has_the_mode_that_git_gives_its_own_files(
    value: str, file: int, folder: int, tmp_path: Path
) -> None:
    root = make_repository(tmp_path / "repo")
    git(root, "config", "core.sharedRepository", value)
    assert run_kb(root, "init").status == 0
    (root / "change.json").write_text(CHANGE % "A")
    assert run_kb(root, "apply", "change.json").status == 0
    assert run_kb(root, "compact").status == 0
    (root / "text").write_text("x")
    subprocess.run(["git", "add", "text"], cwd=root, check=True, umask=0o077)
    newest = max((root / ".git/objects").glob("??"), key=lambda path: path.stat().st_ctime_ns)
    assert mode(newest) == folder, "git itself"
    made = own(root)
    assert len(made) > 8
    for path in made:
        wanted = folder if path.is_dir() else file | (file & 0o444) >> 2 if path.parent.name == "hooks" else file
        assert (path.name, oct(mode(path))) == (path.name, oct(wanted))


@pytest.mark.sliced
def test_the_setting_counts_wherever_git_reads_it(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    (tmp_path / "more").write_text("[core]\n\tsharedRepository\n")
    git(root, "config", "include.path", str(tmp_path / "more"))
    assert run_kb(root, "init").status == 0
    assert mode(root / ".git/kb/branches/main/head.json") == 0o660


@pytest.mark.sliced(1)
@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_the_note_of_damage_has_the_shared_mode_too(command: str, tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    git(root, "config", "core.sharedRepository", "group")
    (root / "change.json").write_text(CHANGE % "A")
    assert [run_kb(root, *words).status for words in (["init"], ["apply", "change.json"])] == [0, 0]
    journal = root / ".git/kb/branches/main/journal-0000000001.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"A"', b'"B"', 1))
    assert run_kb(root, command).status == 40
    (note,) = root.glob(".git/kb/**/damaged.json")
    assert oct(mode(note)) == oct(0o660)


@pytest.mark.sliced
def test_a_value_that_git_refuses_is_refused(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    git(root, "config", "core.sharedRepository", "0044")
    ran = run_kb(root, "init")
    assert ran.status == 67
    assert "core.sharedRepository is '0044'" in ran.err


@pytest.mark.sliced
def test_a_file_that_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    assert run_kb(root, "init").status == 0
    head = root / ".git/kb/branches/main/head.json"
    assert mode(head) == 0o600
    head.chmod(0o640)
    before = head.stat().st_ino
    (root / "change.json").write_text(CHANGE % "A")
    assert run_kb(root, "apply", "change.json").status == 0
    assert head.stat().st_ino != before
    assert mode(head) == 0o640


@pytest.mark.sliced
@needs_root
def test_two_users_of_a_shared_repository_write_alternately_and_so_does_root(common: Path) -> None:
    root = common / "repo"
    root.mkdir()
    os.chown(root, ALICE, TEAM)
    root.chmod(0o2775)
    (common / "safe").write_text("[safe]\n\tdirectory = *\n")
    safe = {"GIT_CONFIG_GLOBAL": str(common / "safe")}
    assert run_as(ALICE, ["git", "init", "-q", "-b", "main", "--shared=group"], root, safe, gid=TEAM).status == 0
    assert kb_as(ALICE, root, "init", env=safe).status == 0
    for number, uid in enumerate((BOB, ALICE, 0, BOB, ALICE)):
        change = common / "change.json"
        change.write_text(CHANGE % f"R-{number}")
        ran = kb_as(uid, root, "apply", str(change), env=safe, umask=0o077)
        assert ran.status == 0, (uid, ran.err)
        assert f"R-{number}" in kb_as(BOB, root, "query", "--json", env=safe, umask=0o077).out
    assert {path.lstat().st_gid for path in own(root)} == {TEAM}
    assert not [path for path in own(root) if not mode(path) & 0o060]


@needs_root
def test_the_error_for_a_second_user_names_the_owner_and_the_remedy(common: Path) -> None:
    root = common / "repo"
    root.mkdir()
    os.chown(root, ALICE, ALICE)
    (common / "safe").write_text("[safe]\n\tdirectory = *\n")
    safe = {"GIT_CONFIG_GLOBAL": str(common / "safe")}
    assert run_as(ALICE, ["git", "init", "-q", "-b", "main"], root, safe).status == 0
    assert kb_as(ALICE, root, "init", env=safe).status == 0
    (common / "change.json").write_text(CHANGE % "A")
    ran = kb_as(BOB, root, "apply", str(common / "change.json"), env=safe)
    assert ran.status == 23, ran.err
    assert f"uid {ALICE}" in ran.err
    assert "core.sharedRepository group" in ran.err
    head = root / ".git/kb/branches/main/head.json"
    head.chmod(0o600)
    ran = kb_as(BOB, root, "query", env=safe)
    assert ran.status == 24
    assert f"{head}: Permission denied; it belongs to uid {ALICE}" in ran.err


@pytest.mark.sliced(2)
@needs_root
@pytest.mark.parametrize(
    "closed",
    [".kb", ".kb/schema", ".git", ".git/config", ".git/kb", ".git/kb/branches/main"],
)
def test_the_error_about_a_place_that_another_user_closed_names_the_owner_and_a_way_in(
    common: Path, closed: str
) -> None:
    root = common / "repo"
    root.mkdir()
    os.chown(root, ALICE, TEAM)
    (common / "safe").write_text("[safe]\n\tdirectory = *\n")
    safe = {"GIT_CONFIG_GLOBAL": str(common / "safe")}
    assert run_as(ALICE, ["git", "init", "-q", "-b", "main"], root, safe).status == 0
    assert kb_as(ALICE, root, "init", env=safe).status == 0
    (common / "change.json").write_text(CHANGE % "A")
    assert kb_as(ALICE, root, "apply", str(common / "change.json"), env=safe).status == 0
    place = root / closed
    place.chmod(0o700 if place.is_dir() else 0o600)
    commands = [["query"], ["apply", str(common / "change.json")], ["doctor"]]
    for words in commands:
        ran = kb_as(BOB, root, *words, env=safe)
        assert ran.status not in {0, 70}, (words, ran)
        assert f"it belongs to uid {ALICE}" in ran.err + ran.out.replace("\n" + " " * 14, " "), (words, ran)
        assert "core.sharedRepository group" in ran.err + ran.out, (words, ran)
    # The way in, as the hint says it.
    assert run_as(ALICE, ["git", "config", "core.sharedRepository", "group"], root, safe).status == 0
    for words in (["chgrp", "-R", str(TEAM)], ["chmod", "-R", "g+rwX"]):
        assert run_as(ALICE, [*words, ".git", ".kb"], root, safe).status == 0
    for words in commands:
        ran = kb_as(BOB, root, *words, env=safe)
        assert ran.status == 0, (words, ran)


@pytest.mark.sliced
@needs_root
def test_a_repository_of_another_user_is_refused_with_git_s_advice_until_git_takes_it_for_safe(common: Path) -> None:
    root = common / "repo"
    root.mkdir()
    os.chown(root, ALICE, ALICE)
    assert run_as(ALICE, ["git", "init", "-q", "-b", "main"], root).status == 0
    assert kb_as(ALICE, root, "init").status == 0
    advice = run_as(BOB, ["git", "rev-parse", "--git-dir"], root).err.strip()
    assert "dubious ownership" in advice
    for words in (("status",), ("query",), ("init",), ("hooks", "status"), ("doctor",)):
        ran = kb_as(BOB, root, *words)
        assert ran.status == 67, (words, ran.out)
        assert f"git refuses {root}/.git" in ran.err
        assert all(line.strip() in ran.err for line in advice.splitlines())
    ran = kb_as(BOB, root, "status", env={"GIT_DIR": str(root / ".git")})
    assert ran.status == 0, "an explicit GIT_DIR is trusted, as git does"
    assert kb_as(0, root, "status").status == 67
    assert kb_as(0, root, "status", env={"SUDO_UID": str(ALICE)}).status == 0
    assert kb_as(BOB, root, "status", env={"SUDO_UID": str(ALICE)}).status == 67
    (common / "safe").write_text(f"[safe]\n\tdirectory = {root}\n")
    assert kb_as(BOB, root, "status", env={"GIT_CONFIG_GLOBAL": str(common / "safe")}).status == 0


@pytest.mark.sliced
def test_git_is_not_asked_about_a_repository_of_this_user(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    assert run_kb(root, "init").status == 0
    (tmp_path / "bin").mkdir()
    assert run_kb(root, "query", env={"PATH": str(tmp_path / "bin")}).status == 0
    ran = run_kb(root, "query", env={"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
    assert ran.status == 67
    assert "dubious ownership" in ran.err
