"""``kb id next``: an id that is free in all branches, stores and worktrees of the clone, and where the last one is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change, Create, EntityRef, Rename, identified
from tests.support.processes.cli import write
from tests.support.repository.repos import git


def req(number: int, **fields: str) -> str:
    more = "".join(f"{name}: {value}\n" for name, value in fields.items())
    return f"---\nid: REQ-{number}\ntitle: T{number}\nstatus: draft\n{more}---\n"


def path(name: str | int) -> str:
    return f"docs/requirements/{name}.md"


def commit(root: Path, files: dict[str, str | None]) -> None:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "change")


@pytest.fixture
def repo(kb, ready) -> Path:
    commit(ready, {path(1): req(1)})
    kb("sync")
    return ready


def taken(kb, *words: str, cwd: Path | None = None) -> dict:
    ran = kb("id", "next", "req", "--dry-run", "--json", *words, cwd=cwd)
    assert ran.status == 0, ran
    return ran.json


def last(kb, cwd: Path | None = None) -> tuple[str, str, str, str]:
    found = taken(kb, cwd=cwd)
    seen = found["last"]
    assert found["not_looked_at"] == []
    return found["id"], seen["kind"], seen["name"], seen["path"]


def test_the_own_branch_has_the_last_one(kb, repo):
    assert last(kb) == ("REQ-2", "branch", "main", "")
    assert kb("id", "next", "req", "--dry-run").err == "note: REQ-1 is the last one, in main.\n"


def test_a_commit_of_another_local_branch_counts_without_a_checkout_or_a_store(kb, repo):
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, {path(7): req(7), path(9): req(9)})
    commit(repo, {path(9): None})
    git(repo, "switch", "-q", "main")
    assert last(kb) == ("REQ-8", "ref", "topic", path(7))


def test_a_remote_tracking_branch_counts_and_former_ids_and_ends_of_links_too(kb, repo):
    upstream, other = repo.parent / "up.git", repo.parent / "other"
    git(repo.parent, "clone", "-q", "--bare", repo, upstream)
    git(repo.parent, "clone", "-q", upstream.as_uri(), other)
    git(repo, "remote", "add", "origin", upstream.as_uri())
    commit(other, {path("x"): req(3, former_ids="[REQ-12]"), path("y"): req(4, depends_on="[REQ-14]")})
    git(other, "push", "-q", "origin", "HEAD:refs/heads/feature/ü")
    assert last(kb)[0] == "REQ-2"
    git(repo, "fetch", "-q")
    assert last(kb) == ("REQ-15", "ref", "origin/feature/ü", path("y"))


def test_what_a_client_wrote_to_the_store_of_another_branch_counts(kb, repo):
    git(repo, "switch", "-q", "-c", "topic")
    entity = {"id": "REQ-20", "type": "req", "title": "Agent's", "status": "draft"}
    assert kb("apply", "-", stdin=json.dumps({"entities": [entity]})).status == 0
    git(repo, "switch", "-q", "main")
    assert last(kb) == ("REQ-21", "store", "topic", "")
    assert last(kb) == ("REQ-21", "store", "topic", "")  # as the cache has it


def test_files_of_another_worktree_count_before_they_are_committed_or_synced(kb, repo):
    worktree = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "-b", "linked", worktree)
    write(worktree, {path(30): req(30)})
    assert last(kb) == ("REQ-31", "worktree", str(worktree), path(30))
    write(worktree, {path(30): req(31)})
    assert last(kb)[0] == "REQ-32"
    write(repo, {path(40): req(40)})
    assert last(kb, cwd=worktree) == ("REQ-41", "worktree", str(repo), path(40))


def test_a_worktree_that_is_gone_is_named_and_stops_nothing(kb, repo):
    worktree = repo.parent / "linked"
    git(repo, "worktree", "add", "-q", "-b", "linked", worktree)
    worktree.rename(repo.parent / "moved")
    found = taken(kb)
    assert found["id"] == "REQ-2"
    [one] = found["not_looked_at"]
    assert (one["kind"], one["name"]) == ("worktree", str(worktree))
    assert f"the worktree {worktree} was not looked at" in kb("id", "next", "req", "--dry-run").err


def test_ids_that_changes_create_or_rename_count_in_commits_and_in_worktrees(kb, repo):
    def file(claims) -> tuple[str, bytes]:
        change = identified(Change("", "2026-11-20T10:00:00.000000Z", "agent", "kb", claims))
        data = change_file.encode([change])
        return f".kb/changes/{change_file.file_path([change], data)}", data

    git(repo, "switch", "-q", "-c", "topic")
    name, data = file((Create("REQ-50"),))
    commit(repo, {name: data.decode()})
    git(repo, "switch", "-q", "main")
    assert last(kb) == ("REQ-51", "ref", "topic", name)
    other, data = file((Rename(EntityRef("REQ-1"), "REQ-60"),))
    write(repo, {other: data.decode()})
    assert last(kb) == ("REQ-61", "worktree", str(repo), other)
    write(repo, {other: data.decode() + "more"})
    found = taken(kb)
    assert [(one["kind"], other in one["reason"]) for one in found["not_looked_at"]] == [("worktree", True)]


def test_a_branch_is_read_by_its_own_settings(kb, repo):
    git(repo, "switch", "-q", "-c", "topic")
    settings = json.loads((repo / ".kb/config.json").read_text())
    settings["extractors"]["markdown"]["paths"]["req"] = ["spec/**/*.md"]
    commit(repo, {".kb/config.json": json.dumps(settings), "spec/a.md": req(70)})
    git(repo, "switch", "-q", "main")
    assert last(kb) == ("REQ-71", "ref", "topic", "spec/a.md")
    git(repo, "switch", "-q", "topic")
    commit(repo, {".kb/config.json": "{"})
    git(repo, "switch", "-q", "main")
    found = taken(kb)
    assert [(one["kind"], one["name"]) for one in found["not_looked_at"]] == [("ref", "topic")]


def test_the_name_of_a_document_that_cannot_be_read_counts(kb, repo):
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, {path("REQ-80-torn"): "---\nid: [\n"})
    git(repo, "switch", "-q", "main")
    assert last(kb)[0] == "REQ-81"


def test_what_a_partial_clone_lacks_is_named_and_not_fetched(kb, repo):
    git(repo, "branch", "topic")
    git(repo, "switch", "-q", "topic")
    commit(repo, {path(90): req(90)})
    git(repo, "switch", "-q", "main")
    upstream, partial = repo.parent / "up.git", repo.parent / "partial"
    git(repo.parent, "clone", "-q", "--bare", repo, upstream)
    git(upstream, "config", "uploadpack.allowFilter", "true")
    git(repo.parent, "clone", "-q", "--filter=blob:none", upstream.as_uri(), partial)
    before = git(partial, "count-objects", "-v")
    found = taken(kb, cwd=partial)
    assert found["id"] == "REQ-2"
    assert found["not_looked_at"] == [
        {"kind": "ref", "name": "origin/topic", "reason": f"1 file not in this clone, such as {path(90)}."}
    ]
    assert git(partial, "count-objects", "-v") == before


def test_every_way_to_a_new_id_takes_the_same_one(kb, repo):
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, {path(100): req(100)})
    git(repo, "switch", "-q", "main")
    assert kb("rename", "REQ-1", "REQ-{n}", "--dry-run", "--json").json["ids"] == {"REQ-{n}": "REQ-101"}
    assert "REQ-101" in kb("new", "req", "title=New", "--dry-run").out
    entity = {"id": "REQ-{n}", "type": "req", "title": "Agent's", "status": "draft"}
    applied = kb("apply", "-", "--json", stdin=json.dumps({"entities": [entity]}))
    assert applied.json["ids"] == {"REQ-{n}": "REQ-101"}


def test_a_second_search_reads_no_content_of_git_again(kb, repo, monkeypatch):
    git(repo, "switch", "-q", "-c", "topic")
    commit(repo, {path(number): req(number) for number in range(2, 62)})
    git(repo, "switch", "-q", "main")
    assert last(kb) == ("REQ-62", "ref", "topic", path(61))
    for blob in git(repo, "ls-tree", "-r", "--format=%(objectname)", "topic", "docs").split():
        (repo / ".git/objects" / blob[:2] / blob[2:]).chmod(0o600)
        (repo / ".git/objects" / blob[:2] / blob[2:]).write_bytes(b"")
    assert last(kb) == ("REQ-62", "ref", "topic", path(61))
