"""The place of the measurements: a directory for the run, and what several questions need in it, made once.

It is read by several questions: one that writes takes a copy, or restores what was there.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import generate
from benchmarks.measure import Sample, process
from benchmarks.peers import Peers
from benchmarks.sizes import Sizes
from tests.support.repository.repos import git, git_env, make_repository

ROOT = Path(__file__).resolve().parent.parent
DUCKDB_START = "import duckdb; duckdb.connect()"


class Place:
    """A directory for one run, the sizes, the peers, and the environment of every program that is measured."""

    def __init__(self, directory: Path, sizes: Sizes, peers: Peers | None = None) -> None:
        self.directory = directory
        self.sizes = sizes
        self.peers = peers or Peers()
        self._synced: set[int] = set()
        self.env = git_env({"PYTHONPATH": str(ROOT), "NO_COLOR": "1"})
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # users' programs are compiled once, not at every start

    def kb(self, repository: Path, *words: str, allowed: tuple[int, ...] = (0,), with_children: bool = False) -> Sample:
        """Run ``kb`` in a repository, as a user does; ``with_children`` is that of ``measure.process``."""
        return process(
            self.kb_words(*words), cwd=repository, env=self.env, allowed=allowed, with_children=with_children
        )

    def kb_words(self, *words: str) -> list[str]:
        """Return the command that runs ``kb`` with these words."""
        return [*_program("kb", "kbcli.app"), *words]

    def kb_mcp(self, repository: Path) -> list[str]:
        """Return the command that serves MCP for a repository."""
        return [*_program("kb-mcp", "kbmcp.server"), "-C", str(repository)]

    def python(self, *words: str) -> Sample:
        """Run the interpreter that runs this, for a floor."""
        return process([sys.executable, *words], cwd=self.directory, env=self.env)

    def documents(self, count: int) -> Path:
        """Return a committed repository with so many documents and a KB, whether or not that has read them."""
        return self.committed(f"documents-{count}", lambda root: generate.write_documents(root, count))

    def committed(self, name: str, write: Callable[[Path], object]) -> Path:
        """Return a repository of this name with a KB and the files that ``write`` writes into it, all committed."""
        root = self.directory / name
        if not root.exists():
            make_repository(root)
            write(root)
            self.kb(root, "init", "--no-hooks")
            git(root, "add", "--all")
            git(root, "commit", "--quiet", "-m", name)
        return root

    def synced_documents(self, count: int) -> Path:
        """Return such a repository whose documents KB has recorded. A question that changes one of them restores it."""
        root = self.documents(count)
        if count not in self._synced:
            self.settle(root)
            self._synced.add(count)
        return root

    def settle(self, root: Path) -> None:
        """Record what has changed, and wait until nothing counts as just written any more."""
        self.kb(root, "sync")
        time.sleep(self.sizes.settle_s)
        git(root, "status")
        self.kb(root, "sync")

    def store(self, count: int) -> Path:
        """Return a repository whose store has ``count`` records in one segment, and a view of them."""
        return self._filled("fill", count)

    def changed_store(self, count: int) -> Path:
        """Return a repository whose store has one entity that was changed in each of ``count`` records."""
        return self._filled("change", count)

    def wordy_store(self, count: int) -> Path:
        """Return a repository whose store has ``count`` entities of fifty words each, and a view of them."""
        return self._filled("say", count)

    def remembering_store(self, count: int) -> Path:
        """Return a repository whose store has ``count`` concepts of KIP with three links each, and a view of them."""
        return self._filled("remember", count)

    def store_of_two_branches(self, count: int) -> Path:
        """Return a repository whose branch ``topic`` has ``count`` records that main, which is checked out, lacks."""
        return self._filled("branch", count)

    def _filled(self, action: str, count: int) -> Path:
        root = self.directory / f"{action}-{count}"
        if not root.exists():
            self.python("-m", "benchmarks.stores", action, str(root), str(count))
        return root

    def compacted_store(self, count: int, tail: int = 0) -> Path:
        """Return the same sealed under a snapshot, with ``tail`` more records that neither it nor the view has."""
        root = self.directory / f"compacted-{count}-{tail}"
        if not root.exists():
            self._copy(self.store(count), root)
            self.python("-m", "benchmarks.stores", "compact", str(root))
            if tail:
                self.python("-m", "benchmarks.stores", "grow", str(root), str(tail))
        return root

    def copy_of(self, repository: Path, name: str) -> Path:
        """Return a new copy of a repository for one question only, to write to."""
        root = self.directory / name
        shutil.rmtree(root, ignore_errors=True)
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
    """Return how to start a program: the script that was installed next to this interpreter, else its module."""
    installed = Path(sys.executable).with_name(script)
    return [str(installed)] if installed.is_file() else [sys.executable, "-m", module]
