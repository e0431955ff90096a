"""The scratch repositories that jobs begin in: the example project with what its agents wrote two days ago.

There are two with the same facts, one with a KB and one of Markdown files alone, and the file of a memory server. Each
job gets copies. Nothing of the user is read or written.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kbcli.demo import project
from kbcore.clock import SystemClock, days_before
from kbcore.errors import GitUnusable

if TYPE_CHECKING:
    from kbcore.store.facts_export import Export
    from kbcore.store.workspace import Workspace

KB: Final = "kb"
MARKDOWN: Final = "markdown"
MEMORY_FILE: Final = "memory.jsonl"
_DAYS_OF_DOCUMENTS: Final = 3
_DAYS_OF_NOTES: Final = 2
_WROTE: Final = "tomas"
_WHY: Final = "Ines agreed to ADR-0004"
_WRITTEN: Final[Mapping[str, Any]] = {
    "message": _WHY,
    "entities": [
        {"id": "ADR-0004", "type": "adr", "title": "Retry failed messages three times", "status": "accepted"},
        {"id": "TASK-1", "type": "task", "title": "Measure the retention job", "attributes": {"order": 1}},
        {"id": "TASK-2", "type": "task", "title": "Ask the depots for version 2", "attributes": {"order": 2}},
        {
            "id": "NOTE-1",
            "type": "note",
            "title": "Vans send their late scans at night",
            "attributes": {"file": "src/timeline.rs"},
        },
    ],
    "edges": [{"type": "affects", "from": "ADR-0004", "to": "waymark.notify.send"}],
}
_FILES: Final[Mapping[str, str]] = {
    "docs/decisions/0004-retry.md": (
        "---\nid: ADR-0004\nstatus: accepted\nlinks:\n  - affects: [waymark.notify.send]\n---\n"
        "# Retry failed messages three times\n"
    ),
    "TASKS.md": "- [ ] TASK-1 Measure the retention job\n- [ ] TASK-2 Ask the depots for version 2\n",
    "NOTES.md": "- src/timeline.rs: Vans send their late scans at night\n",
}
"""The same as ``_WRITTEN``, as Markdown."""


class _DaysAgo(SystemClock):
    """The clock of some days ago."""

    def __init__(self, days: int) -> None:
        self._days = days

    def now(self) -> str:
        return days_before(super().now(), self._days)


class Scene:
    """The repositories that copies are made of."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        """Make them below a folder that is empty.

        Raises: ``GitUnusable``; what a sync and a write raise.
        """
        self._folder = folder / "scene"
        self._env = env
        self._copies = folder / "jobs"
        self._made = 0
        self._make_kb()
        self._make_markdown()

    def env_of(self, home: Path) -> dict[str, str]:
        """Return the environment of the programs that work in a copy."""
        return project.child_env(self._env, home)

    def copy(self, name: str) -> Path:
        """Return a new copy of a repository."""
        self._made += 1
        home = self._copies / f"{self._made}" / name
        shutil.copytree(self._folder / name, home, symlinks=True)
        return home

    def memory_file(self) -> Path:
        """Return a new copy of the file of the memory server."""
        self._made += 1
        folder = self._copies / f"{self._made}"
        folder.mkdir(parents=True)
        return Path(shutil.copy(self._folder / MEMORY_FILE, folder))

    def _make_kb(self) -> None:
        home = self._folder / KB
        env = self.env_of(home)
        project.set_up(home, env | _git_dates(_DAYS_OF_DOCUMENTS))
        self._run([sys.executable, "-m", "kbcli.app", "init", "--no-hooks"], home, env)
        self._commit("Set up KB", home, env, days=_DAYS_OF_DOCUMENTS)
        lines = _memory_lines(home, _record(home, env))
        (self._folder / MEMORY_FILE).write_bytes(b"\n".join(map(msgspec.json.encode, lines)))

    def _make_markdown(self) -> None:
        home = self._folder / MARKDOWN
        env = self.env_of(home)
        project.set_up(home, env | _git_dates(_DAYS_OF_DOCUMENTS))
        shutil.rmtree(home / ".kb")
        for name, text in _FILES.items():
            (home / name).write_text(text, encoding="utf-8")
        self._commit(_WHY, home, env, days=_DAYS_OF_NOTES, author=_WROTE)

    def _commit(self, message: str, home: Path, env: Mapping[str, str], *, days: int, author: str = "") -> None:
        self._run(["git", "add", "--all"], home, env)
        by = ["-c", f"user.name={author}"] if author else []
        self._run(["git", *by, "commit", "--quiet", "-m", message], home, {**env, **_git_dates(days)})

    @staticmethod
    def _run(words: list[str], home: Path, env: Mapping[str, str]) -> None:
        status, answer = project.spawn(words, home, env)
        if status:
            raise GitUnusable(f"{words!r} ended with status {status}: {answer[-2000:]}")


def _git_dates(days: int) -> dict[str, str]:
    at = f"{_DaysAgo(days).now()[:19]}Z"
    return {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}


def _record(home: Path, env: Mapping[str, str]) -> Export:
    """Sync the documents and write what the agents wrote, at the times of then; return all facts."""
    from kbcore.checks.introduced import written
    from kbcore.model import changeset
    from kbcore.storage.fs import RealFs
    from kbcore.store import branches, facts_export
    from kbcore.store.pool import Machine, StorePool
    from kbcore.store.workspace import open_workspace
    from kbcore.store.write_request import Author
    from kbcore.sync.run import SyncOptions, sync

    def at(days: int) -> Workspace:
        return open_workspace(home, Machine(RealFs(), _DaysAgo(days), env), StorePool())

    workspace = at(_DAYS_OF_DOCUMENTS)
    branches.open_branch(workspace, project.BRANCH)
    sync(workspace, project.BRANCH, Author("leila", "cli", "kb"), SyncOptions())
    parsed = changeset.parse(dict(_WRITTEN))
    author = Author(_WROTE, f"mcp:{_WROTE}", "kb", "earlier")
    workspace = at(_DAYS_OF_NOTES)
    written.apply_changeset(workspace, project.BRANCH, author, parsed, follows_head=True)
    return workspace.store(project.BRANCH).read(facts_export.export)


def _memory_lines(home: Path, exported: Export) -> Iterator[dict[str, Any]]:
    """Yield the lines of the memory server's file: all that KB knows, and the texts of the documents."""
    for one in exported.entities:
        said = [one["title"], *(f"{key}: {one[key]}" for key in ("status", "priority", "owner") if one.get(key))]
        said += [f"tags: {', '.join(one['tags'])}"] if one.get("tags") else []
        said += [f"{key}: {value}" for key, value in one.get("attributes", {}).items()]
        said += filter(None, [_body(home, one.get("text_ref", ""))])
        yield {"type": "entity", "name": one["id"], "entityType": one["type"], "observations": said}
    for edge in exported.edges:
        yield {"type": "relation", "from": edge["from"], "to": edge["to"], "relationType": edge["type"]}


def _body(home: Path, path: str) -> str:
    """Return the text of a document without its front matter, "" where there is none."""
    if not path.endswith(".md"):
        return ""
    text = (home / path).read_text(encoding="utf-8")
    return text.split("---\n", 2)[-1].strip() if text.startswith("---\n") else text.strip()
