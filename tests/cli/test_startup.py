"""The imports of each command: a start-up is as quick as the list is short, so the list is held by name."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kbcore.store.pool import Machine
from tests.support.disk.faultfs import NoSyncFs
from tests.support.processes.cli import environment, program, run_kb, write
from tests.support.repository.clocks import PatientClock
from tests.support.repository.project import Project, req

WATCHED = (
    *("typer", "rich", "duckdb", "yaml", "pydantic", "mcp", "watchfiles", "asyncio", "gherkin", "msgspec", "email"),
    *(
        "kbcore.store.branch_store",
        "kbcore.sync.run",
        "kbcore.view.base",
        "kbcore.text.yaml_salvage",
        "kbcore.text.terms",
        "kbcore.rules",
        "kbcore.store.history",
        "kbcore.logic",
    ),
)
"""Libraries that cost several milliseconds each, and rooms of our own that not every command has business in."""

BASE = {"msgspec", "typer"}
STORE = BASE | {
    "duckdb",
    "email",
    "kbcore.store.branch_store",
    "kbcore.view.base",
}  # DuckDB brings the package for e-mail
HISTORY = STORE | {"kbcore.store.history"}
SYNC = STORE | {"kbcore.sync.run"}
COMMANDS = {
    "--version": BASE,
    "query --help": BASE,
    "schema req": BASE,
    "hooks status": BASE,
    "mcp install claude-code": BASE,
    "query --id REQ-1": HISTORY,
    "show REQ-1": HISTORY | {"kbcore.rules"},
    "show REQ-1 --json": HISTORY,
    "log": HISTORY,
    "branch list": STORE,
    "coverage": HISTORY,
    "impact REQ-1": HISTORY,
    "graph REQ-1": HISTORY,
    "prime": HISTORY,
    "kip DESCRIBE\\ PRIMER": HISTORY,
    "export": HISTORY,
    "sync": SYNC,
    "hook post-checkout 0 0 0": set[str](),
    "hook post-merge 0": (SYNC - {"typer"}),
}


def imported_by(words: list[str], cwd: Path) -> set[str]:
    """Run ``kb`` in a fresh interpreter and return what it imported of the modules that are watched."""
    script = (
        "import os, sys\nfrom kbcli.app import main\nout = os.dup(1)\nos.dup2(2, 1)\n"
        f"status = main({words!r})\nsys.stdout.flush()\nassert status == 0, status\n"
        f"os.write(out, ' '.join(name for name in {WATCHED!r} if name in sys.modules).encode())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=cwd, env=environment(), capture_output=True, check=True)
    return set(done.stdout.decode().split())


@pytest.mark.sliced(6)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_only_what_it_needs(synced: Path, command: str) -> None:
    assert imported_by(shlex.split(command), synced) == COMMANDS[command]


@pytest.mark.parametrize(
    "command",
    [*(one for one, names in COMMANDS.items() if "duckdb" in names and "hook" not in one), "set TEST-1 owner=ann"],
)
def test_a_program_that_opened_duckdb_writes_nothing_to_standard_error_at_its_end(synced: Path, command: str) -> None:
    # A forked process, and one in which Python ends otherwise, would not show what the binding reports of its objects.
    words = [*program(), *shlex.split(command)]
    done = subprocess.run(words, cwd=synced, env=environment(), capture_output=True, check=True)
    assert done.stderr.decode() == ""


def test_no_collection_of_cycles_walks_what_the_imports_of_a_query_made(synced: Path) -> None:
    script = (
        # What makes collections seldom is itself imported before that.
        "import gc\nfrom kbcli.app import main\nfrom kbcore import gc_pause\nseen = []\n"
        "gc.callbacks.append(lambda phase, about: seen.append(phase))\n"
        "assert main(['query', '--id', 'REQ-1']) == 0\nassert not seen, seen\ngc.collect()\nassert seen\n"
    )
    subprocess.run([sys.executable, "-c", script], cwd=synced, env=environment(), stdout=subprocess.DEVNULL, check=True)


@pytest.fixture
def idle(tmp_path: Path) -> Path:
    """A repository in which a sync found nothing to do, some seconds after its files were written."""
    project = Project(tmp_path / "repo")
    project.machine = Machine(NoSyncFs(), PatientClock(ahead_s=10), project.machine.env)
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    assert project.sync().is_idle
    project.pool.close()
    return project.root


def test_a_hook_or_a_sync_that_finds_nothing_new_needs_no_database(idle: Path) -> None:
    words = ["hook", "post-checkout", "0", "0", "1"]
    assert imported_by(words, idle) == {"msgspec"}
    assert imported_by(["sync"], idle) == {"msgspec", "typer"}
    write(idle, {"docs/requirements/2.md": req("REQ-2")})
    assert "kb: main at seq 2: 1 created" in run_kb(idle, *words).err


@pytest.mark.sliced
def test_only_front_matter_that_is_not_plain_needs_yaml(idle: Path) -> None:
    write(idle, {"docs/requirements/2.md": req("REQ-2")})
    assert "yaml" not in imported_by(["sync"], idle)
    write(idle, {"docs/requirements/3.md": "---\nid: REQ-3\ntitle: |\n  Sign in\nstatus: open\n---\n"})
    assert "yaml" in imported_by(["sync"], idle)
