"""Where the measurements happen: a directory for the run, and what several questions need in it, made once.

What is handed out is either only read by the questions, or a copy of their own.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import generate
from benchmarks.measure import Sample, process
from tests.support.repos import git, git_env, make_repository

ROOT = Path(__file__).resolve().parent.parent
DUCKDB_START = "import duckdb; duckdb.connect()"


class Sizes(msgspec.Struct, frozen=True):
    """How much is measured, and how often. ``rounds`` are of processes that end soon, ``long_rounds`` of others."""

    documents: int = 5_000
    records: int = 100_000
    few_records: int = 1_000
    tail: int = 200
    calls: int = 300
    rounds: int = 15
    long_rounds: int = 5


QUICK = Sizes(documents=40, records=400, few_records=100, tail=10, calls=5, rounds=1, long_rounds=1)
"""Only shows that everything runs; the figures mean nothing."""


class Place:
    """A directory for one run, the sizes, and the environment of every program that is measured."""

    def __init__(self, directory: Path, sizes: Sizes) -> None:
        self.directory = directory
        self.sizes = sizes
        self.env = git_env({"PYTHONPATH": str(ROOT), "NO_COLOR": "1"})
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' programs are compiled once, not at every start

    def kb(self, repository: Path, *words: str, allowed: tuple[int, ...] = (0,)) -> Sample:
        """Run ``kb`` in a repository, as a user does."""
        return process([*_program("kb", "kbcli.app"), *words], cwd=repository, env=self.env, allowed=allowed)

    def kb_mcp(self, repository: Path) -> list[str]:
        """Return the command that serves MCP for a repository."""
        return [*_program("kb-mcp", "kbmcp.server"), "-C", str(repository)]

    def python(self, *words: str) -> Sample:
        """Run the interpreter that runs this, for a floor."""
        return process([sys.executable, *words], cwd=self.directory, env=self.env)

    def documents(self) -> Path:
        """Return a committed repository with documents and a KB that has not read them."""
        root = self.directory / "documents"
        if not root.exists():
            make_repository(root)
            generate.write_documents(root, self.sizes.documents)
            self.kb(root, "init", "--no-hooks")
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "-m", "documents")
        return root

    def synced_documents(self) -> Path:
        """Return such a repository whose documents KB has taken in."""
        root = self.directory / "synced"
        if not root.exists():
            self._copy(self.documents(), root)
            git(root, "status")  # a copy has other inodes: git notes them once, and so does KB at its first sync
            self.kb(root, "sync")
        return root

    def store(self, count: int) -> Path:
        """Return a repository whose store has ``count`` records in one segment, and a view of them."""
        root = self.directory / f"store-{count}"
        if not root.exists():
            self.python("-m", "benchmarks.stores", "fill", str(root), str(count))
        return root

    def compacted_store(self, count: int, tail: int = 0) -> Path:
        """Return the same sealed under a snapshot, with ``tail`` more records that neither it nor the view has."""
        root = self.directory / f"compacted-{count}-{tail}"
        if not root.exists():
            self._copy(self.store(count), root)
            self.python("-m", "benchmarks.stores", "compact", str(root))
            self.python("-m", "benchmarks.stores", "grow", str(root), str(tail))
        return root

    def copy_of(self, repository: Path, name: str) -> Path:
        """Return a copy of a repository for one question alone, to write to."""
        root = self.directory / name
        self._copy(repository, root)
        return root

    @staticmethod
    def _copy(source: Path, target: Path) -> None:
        shutil.copytree(source, target, symlinks=True)

    def answer(self, *words: str) -> Any:
        """Run the interpreter and return the JSON that it prints: for what is timed inside of one process."""
        done = subprocess.run(
            [sys.executable, *words], cwd=self.directory, env=self.env, stdout=subprocess.PIPE, check=True
        )
        return json.loads(done.stdout)


def _program(script: str, module: str) -> list[str]:
    """Return how to start a program: the script that was installed beside this interpreter, else its module."""
    installed = Path(sys.executable).with_name(script)
    return [str(installed)] if installed.is_file() else [sys.executable, "-m", module]
