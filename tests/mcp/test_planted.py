"""Stores and caches that came with a repository, or were put there, are named to agents and never read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.mcp.agents import agent
from tests.support.repository.older import entity, facts
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git

ASKING = (
    ("kb_check", {}),
    ("kb_query", {}),
    ("kb_query", {"text": "planted"}),
    ("kb_query", {"at": 1}),
    ("kb_history", {"action": "log"}),
    ("kb_history", {"action": "show", "seq": 1}),
)


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """The folder of somebody else's KB: stores and caches of a branch of the same name."""
    made = Project(tmp_path / "foreign")
    made.apply(entities=[entity("PLANTED")])
    made.close()
    made.view()  # a fresh process keeps a view in the cache
    made.close()
    assert list(caches_at(made.root).glob("main/*.duckdb"))
    folder = tmp_path / "planted"
    shutil.copytree(stores_at(made.root), folder / "branches")
    shutil.copytree(caches_at(made.root), folder / "cache")
    return folder


def plant(root: Path, foreign: Path, name: str) -> None:
    shown = root / ".kb" / name
    if shown.is_symlink():
        shown.unlink()
    shutil.rmtree(shown, ignore_errors=True)
    shutil.copytree(foreign / name, shown)


@pytest.mark.sliced(1)
@pytest.mark.parametrize("is_tracked", [False, True])
@pytest.mark.parametrize("name", ["branches", "cache"])
def test_planted_folders_are_named_by_a_check_and_not_read(
    project: Project, foreign: Path, name: str, is_tracked: bool
) -> None:
    root = project.root
    project.apply(entities=[entity("MINE")])
    plant(root, foreign, name)
    if is_tracked:
        git(root, "add", "--force", f".kb/{name}")
    before = sorted((path, path.stat().st_mtime_ns) for path in (root / ".kb" / name).rglob("*"))
    with agent(root) as found:
        answers = [found.call(tool, **arguments) for tool, arguments in ASKING]
        note = found.call("kb_check")["note"]
        assert found.refused("kb_query", **{"from": "PLANTED"})["code"] == "not_found"
        found.call("kb_upsert", entities=[entity("NEW")])
        ids = [one["id"] for one in found.call("kb_query")["entities"]]
    assert ids == ["MINE", "NEW"]
    assert not [one for one in answers if "PLANTED" in str(one)]
    if is_tracked:
        assert f"in .kb/{name}. KB reads none of them." in note
    else:
        assert f".kb/{name} is " in note
        assert "not read" in note
    assert sorted((path, path.stat().st_mtime_ns) for path in (root / ".kb" / name).rglob("*")) == before


def test_a_link_to_stores_of_another_user_is_named_and_not_followed(project: Project, foreign: Path) -> None:
    project.apply(entities=[entity("MINE")])
    shown = project.root / ".kb/branches"
    shutil.rmtree(shown, ignore_errors=True)
    shown.unlink(missing_ok=True)
    shown.symlink_to(foreign / "branches")
    before = facts(foreign)
    with agent(project.root) as found:
        assert [one["id"] for one in found.call("kb_query")["entities"]] == ["MINE"]
        found.call("kb_upsert", entities=[entity("NEW")])
    assert facts(foreign) == before


def test_a_tracked_store_is_refused_where_the_user_keeps_stores_in_the_worktree(
    project: Project, foreign: Path, tmp_path: Path
) -> None:
    root, settings = project.root, tmp_path / "config/kb/config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(json.dumps({"store": "worktree"}))
    shutil.rmtree(root / ".git/kb")
    plant(root, foreign, "branches")
    git(root, "add", "--force", ".kb/branches")
    with agent(root, env={"XDG_CONFIG_HOME": str(tmp_path / "config")}) as found:
        for tool, arguments in (*ASKING, ("kb_upsert", {"entities": [entity("NEW")]})):
            error = found.refused(tool, **arguments)
            assert error["code"] == "storage_error"
            assert "in .kb/branches. KB reads none of them." in error["message"]
            assert "git rm -r --cached .kb/branches" in error["hint"]
