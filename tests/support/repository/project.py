"""A real repository with a KB, driven through the core as the front ends drive it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from kbcore.checks.introduced import written
from kbcore.clock import SystemClock
from kbcore.model import changeset
from kbcore.model.graph import Link, Node
from kbcore.storage.fs import Fs
from kbcore.store import apply, branches, pointer
from kbcore.store.answers import Outcome
from kbcore.store.pool import Machine, StorePool
from kbcore.store.workspace import Workspace, open_workspace
from kbcore.store.write_request import Author
from kbcore.sync.run import SyncAnswer, SyncOptions, sync
from kbcore.view.view import View
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.repos import copy_model, git, git_env, make_repository
from tests.support.repository.stores import view_of

AUTHOR = Author("tester", "cli", "kb/test")


class Project:
    """One worktree and the stores that this process has open."""

    def __init__(self, root: Path, *, fs: Fs | None = None, is_new: bool = True, is_written_to: bool = True) -> None:
        """Make the repository, unless it ``is_new`` no more. ``is_written_to`` as if KB had written in it before."""
        self.root = root
        self.machine = Machine(fs or NoSyncFs(), SystemClock(), git_env())
        self.pool = StorePool()
        if is_new:
            make_repository(root)
            (root / ".kb").mkdir()
            stores_at(root).mkdir(parents=True)
            caches_at(root).mkdir()
            if is_written_to:
                _settle(root)

    def workspace(self) -> Workspace:
        return open_workspace(self.root, self.machine, self.pool)

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files below the root; None deletes one."""
        for name, content in files.items():
            path = self.root / name
            if content is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def sync(self, files: Mapping[str, str | bytes | None] | None = None, **options: Any) -> SyncAnswer:
        """Write files, then sync the branch that is checked out."""
        self.write(files or {})
        workspace = self.workspace()
        _, choice, _ = branches.open_branch(workspace, None)
        return sync(workspace, choice.branch, AUTHOR, SyncOptions(**options))

    def apply(self, *, branch: str | None = None, author: Author = AUTHOR, **request: Any) -> Outcome:
        """Apply a changeset given as the members of its JSON."""
        return self._carry_out(changeset.parse(request), branch, author)

    def import_(self, **request: Any) -> Outcome:
        """Import a changeset given as the members of its JSON, which may say when and by whom things were made."""
        return self._carry_out(changeset.parse(request, is_import=True), None, apply.importing(AUTHOR))

    def delete(self, *, branch: str | None = None, author: Author = AUTHOR, **request: Any) -> Outcome:
        """Delete what a request given as the members of its JSON names."""
        return self._carry_out(changeset.parse_deletion(request), branch, author)

    def _carry_out(self, parsed: changeset.Changeset, branch: str | None, author: Author) -> Outcome:
        workspace = self.workspace()
        _, choice, _ = branches.open_branch(workspace, branch)
        return written.apply_changeset(workspace, choice.branch, author, parsed, follows_head=choice.follows_head)

    def view(self, branch: str | None = None) -> View:
        store, _, _ = branches.open_branch(self.workspace(), branch)
        return view_of(store)

    def node(self, key: str) -> Node | None:
        return next(iter(self.view().nodes([key])), None)

    def edges(self, key: str) -> set[tuple[str, str, str, bool]]:
        """Return the links of an entity as (from, type, to, is_resolved)."""
        return {(link.from_id, link.type, link.to_id, link.is_resolved) for link in self.view().touching([key])}

    def link(self, from_id: str, kind: str, to_id: str) -> Link:
        found = [link for link in self.view().touching([from_id]) if (link.type, link.to_id) == (kind, to_id)]
        assert len(found) == 1
        return found[0]

    def seq(self) -> int:
        return self.view().seq

    def switch(self, branch: str, *, create: bool = False) -> None:
        git(self.root, "switch", "--quiet", *(["-c"] if create else []), branch)

    def close(self) -> None:
        self.pool.close()


def _settle(root: Path) -> None:
    """Leave in a repository what the first write of KB makes there by four calls of git, and no index, for one less."""
    copy_model(_kept_guard(), root / ".kb/branches")
    (root / ".git/index").unlink()
    with (root / ".git/config").open("a", encoding="utf-8") as config:
        config.write(f"[kb]\n\tid = {uuid.uuid4().hex}\n")


@cache
def _kept_guard() -> Path:
    """Return the guard that KB makes in a repository without settings; it is kept until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="kb-test-model-"))
    atexit.register(shutil.rmtree, folder)
    project = Project(folder / "made", is_written_to=False)
    pointer.point(project.workspace().folders, project.pool)
    return folder / "made/.kb/branches"


def document(key: str, body: str = "", **fields: str) -> str:
    """Return a Markdown document with front matter."""
    lines = [f"id: {key}", *(f"{name}: {value}" for name, value in fields.items())]
    return "---\n" + "\n".join(lines) + f"\n---\n{body}\n"


def req(key: str, **fields: str) -> str:
    """Return the document of a requirement with a title and a status, unless they are given."""
    return document(key, **{"title": f"Title of {key}", "status": "open", **fields})
