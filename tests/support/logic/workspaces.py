"""A Prolog workspace over the branch of a project, as the front ends have one."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbcore.errors import PrologFailed
from kbcore.logic import contents
from kbcore.logic.branch_clauses import BranchClauses, ClauseCache
from kbcore.logic.engine.libraries import NO_LIBRARIES, Libraries
from kbcore.logic.parsed_clauses import ClauseOutcomes
from kbcore.logic.source import BranchSource
from kbcore.logic.workspace import Mode, PrologWorkspace
from tests.support.repository.clauses import clause_store
from tests.support.repository.project import Project


class LogicProject:
    """A project, and a workspace that follows its branch."""

    def __init__(self, project: Project, env: Mapping[str, str], libraries: Libraries = NO_LIBRARIES) -> None:
        self.project = project
        self.prolog = PrologWorkspace(env, libraries)
        self._cache = ClauseCache()

    def source(self) -> BranchSource:
        """Return the source of one request."""
        workspace = self.project.workspace()
        clauses: BranchClauses = clause_store(self.project, self._cache)
        return BranchSource(workspace, "main", clauses, workspace.store("main").read)

    @property
    def pid(self) -> int:
        """Return the number of the process of the engine, 0 where there is none."""
        engine = self.prolog._engine.process
        return engine.pid if engine else 0

    @property
    def folder(self) -> Path:
        """Return the working folder of the engine."""
        engine = self.prolog._engine.process
        assert engine is not None
        return Path(engine._folder.name)

    def add(self, *texts: Any) -> ClauseOutcomes:
        """Assert clauses."""
        return self.prolog.assert_clauses(self.source(), texts)

    def remove(self, *texts: Any) -> ClauseOutcomes:
        """Retract clauses."""
        return self.prolog.retract_clauses(self.source(), texts)

    def reset(self) -> None:
        """Remove everything."""
        contents.reset(self.source().clauses)

    def snapshot(self) -> str:
        """Return the text of all clauses."""
        return contents.snapshot(self.source().clauses.read())

    def start(self, query: str, mode: Mode = "engine") -> None:
        """Open a query."""
        self.prolog.start_query(self.source(), query, mode)

    def next(self) -> dict[str, Any]:
        """Return the next answer of the open query."""
        return self.prolog.next_answer(self.source())

    def first(self, query: str, mode: Mode = "engine") -> dict[str, Any]:
        """Return the first answer of a query."""
        self.start(query, mode)
        return self.next()

    def answers(self, query: str, mode: Mode = "engine") -> list[dict[str, Any]]:
        """Return all answers of a query, without ``status``."""
        self.start(query, mode)
        found = []
        while (answer := self.next()).pop("status") == "success":
            found.append(answer)
        return found

    def values(self, query: str, name: str) -> list[str]:
        """Return what one variable is in each solution of a query."""
        return [answer["bindings"].get(name, "_") for answer in self.answers(query)]

    def failure(self, query: str, mode: Mode = "engine") -> PrologFailed:
        """Return the error of the first answer of a query, or of its start."""
        try:
            answer = self.first(query, mode)
        except PrologFailed as error:
            return error
        raise AssertionError(f"{query}: {answer}")

    def close(self) -> None:
        """End the engine and close the project."""
        self.prolog.close()
        self.project.close()


@contextmanager
def logic_project(root: Path, env: Mapping[str, str], libraries: Libraries = NO_LIBRARIES) -> Iterator[LogicProject]:
    """Make a repository with an empty workspace."""
    found = LogicProject(Project(root), env, libraries)
    try:
        yield found
    finally:
        found.close()


def children_of(pid: int) -> list[str]:
    """Return the numbers of the processes that a process has started."""
    lists = [*Path(f"/proc/{pid}/task").glob("*/children")]
    if lists:
        found: list[str] = []
        for one in lists:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                found += one.read_text(encoding="ascii").split()
        return found
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return listed.stdout.split()
