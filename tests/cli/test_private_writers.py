"""Whatever writes: what is private by actor or by type is in no file, pack, ref, object or index of git."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path

import pytest

from kbcore.logic.branch_clauses import BranchClauses, ClauseCache
from kbcore.store.write_request import Author
from tests.mcp.agents import agent
from tests.support.repository.clauses import change
from tests.support.repository.project import Project
from tests.support.repository.repos import git, make_repository

MARKER = "for-eve-alone"
PUBLIC = {"type": "symbol", "title": "One", "status": "active"}


class Place:
    """A repository with sharing, and those who write in it: ``writer`` what is private, ``ann`` what is not."""

    def __init__(self, root: Path, kb, user, writer: str, kind: str) -> None:
        self.root, self.kb, self.user, self.writer = root, kb, user, writer
        self.note = {
            "type": kind,
            "title": MARKER,
            "status": "active",
            "attributes": {MARKER: MARKER},
            "tags": [MARKER],
        }

    def run(self, actor, *words, stdin=""):
        """Run ``kb`` as somebody; it must succeed."""
        self.user.setenv("KB_ACTOR", actor)
        ran = self.kb(*words, stdin=stdin)
        assert ran.status == 0, (words, ran)
        return ran

    def apply(self, actor, *words, **changeset):
        """Apply a changeset."""
        self.run(actor, "apply", "-", *words, stdin=json.dumps(changeset))

    @property
    def seq(self):
        """Return the last seq."""
        return self.kb("status", "--json").json["seq"]


def edge(source, target, kind=MARKER):
    return {"type": "relates_to", "kind": kind, "from": source, "to": target}


def by_apply(at):
    at.apply(at.writer, entities=[{"id": f"{MARKER}-1", **at.note}], edges=[edge(f"{MARKER}-1", "S-1")])


def by_set(at):
    by_apply(at)
    at.run(at.writer, "set", f"{MARKER}-1", f"owner={MARKER}")
    at.run(at.writer, "set", f"{MARKER}-1", "owner=nobody")


def by_link(at):
    by_apply(at)
    at.run(at.writer, "link", "S-2", f"relates_to:{MARKER}-2", f"{MARKER}-1")
    at.run(at.writer, "unlink", "S-2", f"relates_to:{MARKER}-2", f"{MARKER}-1")


def by_rename(at):
    by_apply(at)
    at.run(at.writer, "rename", f"{MARKER}-1", f"{MARKER}-2")


def by_delete(at):
    by_apply(at)
    at.run(at.writer, "delete", "--yes", f"{MARKER}-1")


def by_revert(at):
    by_apply(at)
    at.run(at.writer, "set", f"{MARKER}-1", f"owner={MARKER}")
    at.run(at.writer, "revert", str(at.seq))
    at.run(at.writer, "revert", str(at.seq))


def by_rollback(at):
    by_apply(at)
    seq = at.seq
    at.run(at.writer, "delete", "--yes", f"{MARKER}-1")
    at.run(at.writer, "rollback", str(seq))


def by_import(at):
    at.apply(at.writer, "--import", entities=[{"id": f"{MARKER}-1", **at.note, "created_at": "2026-01-01T00:00:00Z"}])


def by_merge_and_resolve(at):
    by_apply(at)
    git(at.root, "add", "--all")
    git(at.root, "commit", "--quiet", "--allow-empty", "-m", "before")
    git(at.root, "switch", "--quiet", "-c", "topic")
    at.kb("branch", "ensure")
    at.run(at.writer, "set", f"{MARKER}-1", f"owner={MARKER}")
    git(at.root, "switch", "--quiet", "main")
    at.run(at.writer, "set", f"{MARKER}-1", f"owner={MARKER}-too")
    at.run("ann", "merge", "topic")
    at.run(at.writer, "resolve", f"{MARKER}-1", "owner", "--take", "1")


def by_kip(at):
    note = f'{{type: "Component", name: "{MARKER}"}} SET ATTRIBUTES {{title: "{MARKER}", status: "active"}}'
    at.run(at.writer, "kip", f"UPSERT {{ CONCEPT {{ {note} }} }}")


def by_mcp(at):
    with agent(at.root, name=at.writer) as found:
        found.call("kb_upsert", entities=[{"id": f"{MARKER}-1", **at.note}], edges=[edge(f"{MARKER}-1", "S-1")])
        seq = at.seq
        found.call("kb_upsert", entities=[{"id": f"{MARKER}-1", "owner": f"{MARKER}-too"}])
        found.call("kb_history", action="rollback", to=str(seq))


def by_clauses(at):
    project = Project(at.root, is_new=False)
    author = Author(at.writer, "cli", "kb/test")
    clauses = BranchClauses(project.workspace(), "main", author, follows_head=True, cache=ClauseCache())
    change(clauses, f"likes(eve, '{MARKER}').")
    project.close()


def by_sleep(at):
    by_kip(at)
    at.run("ann", "sleep")


WRITERS = {
    writes.__name__.removeprefix("by_"): writes
    for writes in (
        by_apply, by_set, by_link, by_rename, by_delete, by_revert, by_rollback, by_import, by_merge_and_resolve,
        by_kip, by_mcp, by_clauses, by_sleep,
    )
}  # fmt: skip


@pytest.fixture(params=["actor", "type"])
def at(request, synced, kb, user):
    """A repository in which ann shares what she writes of symbols, and what eve writes, or other types, is private."""
    git(synced, "remote", "add", "origin", make_repository(synced.parent / "up", commits=0))
    kb("config", "set", "share.mode", "auto")
    by_actor = request.param == "actor"
    kb("config", "set", *(("share.actors", '["ann"]') if by_actor else ("share.types", '["symbol"]')))
    git(synced, "add", "--all")
    git(synced, "commit", "--quiet", "-m", "The settings")
    found = Place(synced, kb, user, "eve" if by_actor else "ann", "symbol" if by_actor else "component")
    found.apply("ann", entities=[{"id": "S-1", **PUBLIC}, {"id": "S-2", **PUBLIC}])
    return found


def share_everywhere(at):
    at.run("ann", "share")
    git(at.root, "add", "--all")
    git(at.root, "commit", "--quiet", "--allow-empty", "-m", "shared")
    at.run("ann", "sync")
    at.run("ann", "push")
    at.run("ann", "share", "pack", "--before", "now")
    git(at.root, "add", "--all")
    for place in (at.root, at.root.parent / "up"):
        assert MARKER.encode() not in everything_in(place), place
    files = [path.read_text() for path in (at.root / ".kb/changes").rglob("*") if path.is_file()]
    assert any("S-1" in text for text in files)
    assert not any(MARKER in text for text in files)


def everything_in(root):
    words = ["git", "-C", str(root), "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    return subprocess.run(words, capture_output=True, check=True).stdout


@pytest.mark.sliced(4)
@pytest.mark.parametrize("name", WRITERS)
def test_what_is_private_is_in_nothing_that_git_has_whatever_writes_and_undoes_it(at, name):
    first = at.seq
    WRITERS[name](at)
    last = at.seq
    share_everywhere(at)

    def ann(*words):
        at.user.setenv("KB_ACTOR", "ann")
        with contextlib.suppress(AssertionError):  # a record that others need is not undone
            return at.kb(*words).status
        return 1

    done = [ann("revert", "--force", str(seq)) for seq in range(last, first, -1)]
    share_everywhere(at)
    done += [ann("revert", "--force", str(seq)) for seq in range(at.seq, last, -1)]
    done += [ann("rollback", str(seq)) for seq in range(first, last + 1)]
    done += [
        ann("rollback", str(last)),
        ann("delete", "--yes", "--cascade", f"{MARKER}-1"),
        ann("rollback", str(first)),
    ]
    share_everywhere(at)
    assert 0 in done
