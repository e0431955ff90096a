"""The folders that are watched, and the meaning of a change at a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.text.globs import matches
from kbcore.watch.places import Places, places_of
from tests.support.generators.histories import laws
from tests.support.repository.places import CACHES_NAME, STORES_NAME, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import add_worktree, commit_files

ROOT = Path("/r")
GLOBS = ("docs/req/**/*.md", "docs/adr/*.md", "symbols.yaml", "docs/*/notes.md")


def places(*globs: str) -> Places:
    return Places(ROOT, ROOT / ".git", ROOT / ".kb", ROOT / STORES_NAME / "main", globs or GLOBS, (), ())


@pytest.mark.parametrize(
    ("path", "meaning"),
    {
        "docs/req/a.md": "file",
        "docs/req/deep/er/a.md": "file",
        "symbols.yaml": "file",
        "docs/x/notes.md": "file",
        "docs/req/a.txt": "folder",
        "docs/req/deep": "folder",
        "docs/req": "layout",
        "docs": "layout",
        "other": "nothing",
        "docs/adr/deep/a.md": "folder",
        "docsx/req/a.md": "nothing",
        "docs/req/.git/a.md": "nothing",
        ".git/HEAD": "checkout",
        ".git/index.lock": "checkout",
        ".git/logs/HEAD": "nothing",
        ".git/ORIG_HEAD": "nothing",
        ".kb": "settings",
        ".kb/config.json": "settings",
        ".kb/schema": "settings",
        ".kb/schema/own.yaml": "settings",
        ".kb/rules/own.yaml": "settings",
        ".kb/rules/deep/own.yaml": "nothing",
        f"{CACHES_NAME}/main/view.duckdb": "nothing",
        f"{STORES_NAME}/main/head.json": "store",
        f"{STORES_NAME}/main/journal-0000000001.jsonl": "nothing",
        f"{STORES_NAME}/other/head.json": "nothing",
        "../elsewhere/docs/req/a.md": "nothing",
    }.items(),
)
def test_a_path_means_what_its_place_says(path: str, meaning: str) -> None:
    where = Path("/elsewhere") / path if path.startswith("..") else ROOT / path
    assert places().meaning(where) == meaning


_part = st.sampled_from(["docs", "req", "adr", "a.md", "notes.md", "symbols.yaml", "x"])


@laws(200)
@given(st.lists(_part, min_size=1, max_size=4))
def test_every_file_that_a_glob_means_and_every_folder_that_may_hold_one_counts(parts: list[str]) -> None:
    name = "/".join(parts)
    meaning = places().meaning(ROOT / name)
    below = [f"{name}/{rest}" for rest in ("a.md", "notes.md", "x/notes.md", "req/a.md", "x/a.md")]
    if matches(name, GLOBS):
        assert meaning == "file"
    elif matches("/".join(below[:1]), GLOBS) or any(matches(one, GLOBS) for one in below):
        assert meaning in {"folder", "layout"}


def test_a_glob_from_the_root_lets_everything_count_but_what_is_gits_and_kbs() -> None:
    rooted = places("**/*.md")
    assert rooted.meaning(ROOT / "any" / "where") == "folder"
    assert rooted.meaning(ROOT / ".git" / "x.md") == "nothing"
    assert rooted.meaning(ROOT / ".kb" / "x.md") == "nothing"


def test_folders_are_watched_as_they_lie(project: Project) -> None:
    project.write({"docs/req/a.md": "a", "docs/req/deep/b.md": "b"})
    outside = project.root.parent / "outside"
    outside.mkdir()
    (project.root / "docs/adr").symlink_to(outside)
    found = places_of(project.workspace(), ["docs/req/**/*.md", "docs/req/deep/**/*.md", "docs/adr/**/*.md"], "main")
    assert found.deep == (project.root / "docs/req",)
    assert {project.root, project.root / "docs", project.root / ".git", project.root / ".kb"} <= set(found.flat)
    assert all(found.is_listened(one) for one in (*found.deep, *found.flat))
    assert not found.is_listened(project.root / "docs/req/deep")
    assert places_of(project.workspace(), ["none/**/*.md"], "main").deep == ()


def test_a_folder_that_a_glob_names_is_watched_through_its_link_too_where_another_glob_begins_above_it(
    project: Project,
) -> None:
    project.write({"docs/a.md": "a", "other/deep/b.md": "b"})
    (project.root / "docs/adr").symlink_to(project.root / "other")
    found = places_of(project.workspace(), ["docs/**/*.md", "docs/adr/**/*.md"], "main")
    assert found.deep == (project.root / "docs", project.root / "docs/adr")
    below = places_of(project.workspace(), ["docs/adr/**/*.md", "docs/adr/deep/**/*.md"], "main")
    assert below.deep == (project.root / "docs/adr",), "the target of the link is watched once"


def test_a_linked_worktree_has_its_own_head_and_settings_that_may_come_or_be_those_of_the_main_one(
    project: Project,
) -> None:
    commit_files(project.root, {"a": "a"})
    (project.root / ".kb/config.json").write_text("{}")
    linked = Project(add_worktree(project.root, project.root.parent / "linked", "feature"), is_new=False)
    found = places_of(linked.workspace(), GLOBS, "feature")
    assert found.settings == project.root / ".kb"
    assert found.meaning(project.root / ".kb/config.json") == "settings"
    assert found.meaning(linked.root / ".kb") == found.meaning(linked.root / ".kb/config.json") == "settings"
    assert found.meaning(project.root / ".git/HEAD") == "nothing"
    assert found.meaning(project.root / ".git/worktrees/linked/HEAD") == "checkout"
    assert found.meaning(stores_at(project.root) / "feature/head.json") == "store"
    linked.close()
