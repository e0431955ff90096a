"""``kb`` as a program of its own: pipes, folders, variables, and what it writes where."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.cli import DOCUMENTS, Ran, environment, program, run_kb, write
from tests.support.processes.forked import stand_in
from tests.support.repository.repos import git, make_repository

BIG = 400


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    """A repository whose whole answer is far longer than a pipe takes at once."""
    root = make_repository(tmp_path_factory.mktemp("program") / "repo")
    assert run_kb(root, "init", "--no-hooks").status == 0
    text = "\n".join(f"line {number} \u00e9" for number in range(40))
    documents = {
        f"docs/requirements/r{number:03}.md": f'---\nid: R-{number:03}\ntitle: "Requirement {number}"\nstatus: open\n'
        f"note: |\n  {text.replace(chr(10), chr(10) + '  ')}\n---\n"
        for number in range(BIG)
    }
    write(root, DOCUMENTS | documents)
    assert run_kb(root, "sync").status == 0
    return root


def start(cwd: Path, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*program(), *words],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.sliced
def test_a_long_answer_comes_whole_through_a_pipe(project):
    with start(project, "query", "--limit", "1000", "--json") as running:
        out, err = running.communicate()
    assert err == b""
    assert len(out) > 4 * 64 * 1024
    assert json.loads(out)["total"] == BIG + 3
    assert out.count(b"\n") == 1


@pytest.mark.sliced
def test_a_reader_that_closes_the_pipe_ends_the_program_quietly(project):
    for words in (["query", "--limit", "1000", "--json"], ["query", "--limit", "1000", "--format", "jsonl"]):
        with start(project, *words) as running:
            assert running.stdout is not None
            assert running.stderr is not None
            running.stdout.read(100)
            running.stdout.close()
            assert running.stderr.read() == b""
            assert running.wait() == 141


@pytest.mark.sliced
def test_head_and_a_slow_reader_see_no_message(project):
    command = shlex.join([*program(), "query", "--limit", "1000", "--json"])
    shell = subprocess.run(
        ["sh", "-c", f"{command} | head -c 100; {command} | (sleep 0.3; cat) | wc -c"],
        cwd=project, env=environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shell.stderr == ""
    assert int(shell.stdout[100:]) > 4 * 64 * 1024


@pytest.mark.sliced
def test_a_full_or_closed_standard_output_is_a_failure_that_is_reported(project):
    for target, reason in (("> /dev/full", "No space left"), (">&-", "closed")):
        shell = subprocess.run(
            ["sh", "-c", f"{shlex.join(program())} query --json {target}"],
            cwd=project, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert shell.returncode == 74
        assert shell.stderr.startswith("error: cannot write to standard output")
        assert reason in shell.stderr
        assert shell.stderr.count("\n") == 1


def test_it_runs_as_if_started_elsewhere(project, tmp_path):
    ran = run_kb(tmp_path, "-C", str(project), "query", "--id", "REQ-1", "--json")
    assert ran.json["total"] == 1
    assert run_kb(tmp_path, "query").status == 60
    assert list(tmp_path.iterdir()) == []


def test_the_branch_of_the_environment_counts(project):
    ran = run_kb(project, "status", "--json", env=environment({"KB_BRANCH": "nope"}))
    assert (ran.status, ran.error["code"]) == (62, "unknown_branch")


@pytest.mark.sliced(1)
@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_answers_are_utf_8_in_every_locale(project, locale):
    env = environment({"LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    done = subprocess.run(
        [*program(), "query", "--id", "R-000", "--json"], cwd=project, env=env, capture_output=True, check=True
    )
    assert "line 1 é" in json.loads(done.stdout.decode("utf-8"))["entities"][0]["attributes"]["note"]


@pytest.mark.sliced
def test_with_an_unwritable_kb_reading_works_and_writing_is_refused(tmp_path):
    root = make_repository(tmp_path / "repo")
    run_kb(root, "init", "--no-hooks")
    write(root, DOCUMENTS)
    run_kb(root, "sync")
    folders = [root / ".kb", *(path for path in (root / ".kb").rglob("*") if path.is_dir())]
    files = [path for path in (root / ".kb").rglob("*") if path.is_file()]
    for path in [*files, *folders]:
        path.chmod(0o444 if path.is_file() else 0o555)
    try:
        assert run_kb(root, "query", "--json").json["total"] == 3
        assert run_kb(root, "status").status == 0
    finally:
        for path in folders:
            path.chmod(0o755)


@pytest.mark.sliced
def test_a_config_of_the_repository_cannot_run_programs(tmp_path):
    root = make_repository(tmp_path / "repo")
    marker = tmp_path / "ran"
    for name in ("core.fsmonitor", "core.pager", "core.editor", "diff.external"):
        git(root, "config", name, f"touch '{marker}'; false")
    run_kb(root, "init", "--no-hooks")
    write(root, DOCUMENTS)
    for words in (["sync"], ["status"], ["query"], ["log"], ["show", "REQ-1"], ["diff", "0"], ["gc"]):
        assert run_kb(root, *words).status == 0
    assert not marker.exists()


def test_as_a_module_it_is_the_same_program(project):
    command = [sys.executable, "-m", "kbcli.app", "--version"]
    done = subprocess.run(command, cwd=project, env=environment(), capture_output=True, text=True, check=True)
    installed = subprocess.run(
        [*program(), "--version"], cwd=project, env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout == installed.stdout


@pytest.mark.sliced
def test_a_fork_and_the_replacement_of_the_program_end_with_the_same_status(project):
    for words, status in ((("query", "--id", "REQ-1", "--json"), 0), (("query", "--id", "", "--é\udce9"), 2)):
        commands = ([*program(), *words], [stand_in("kb"), *words])
        ended = [
            subprocess.run(one, cwd=project, env=environment(), capture_output=True, check=False) for one in commands
        ]
        said = [Ran(one.returncode, one.stdout.decode(), one.stderr.decode()) for one in ended]
        assert [*said, run_kb(project, *words)] == [said[0]] * 3
        assert said[0].status == status


def test_completion_is_installed_for_the_shell_that_asks(tmp_path):
    env = environment({"HOME": str(tmp_path)})
    command = f"{shlex.join(program())} --install-completion; true"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert "bash completion installed" in done.stdout, done
    scripts = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("_KB_COMPLETE=complete_bash" in text for text in scripts)


@pytest.mark.sliced
def test_the_server_for_agents_starts_and_ends_with_its_client(project):
    with start(project, "mcp", "--read-only") as running:
        assert running.communicate() == (b"", b"")
    assert running.returncode == 0
    assert run_kb(project, "mcp", "--tool-names", "loud").status == 2
