"""The result of a scan while files are added and removed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kbcore.extract.facts import Facts, PathRule, SourceFile
from kbcore.sync.scan import Scan, ScanState, scan
from kbcore.sync.wanted_files import activate
from tests.core.sync.readers import Reader


class Remover:
    """An extractor that removes another file whenever it reads one."""

    name = "remover"
    version = 1

    def __init__(self, victim: Path) -> None:
        self._victim = victim

    def path_rules(self, _: Mapping[str, Any]) -> list[PathRule]:
        return [PathRule("docs/*.md")]

    def extract(self, _: SourceFile, __: Mapping[str, Any]) -> Facts:
        self._victim.unlink(missing_ok=True)
        return Facts()


def scanned(root: Path, victim: Path) -> Scan:
    wants = activate([(Remover(victim), {})], {}, b"")
    return scan(root, wants, ScanState({}, {"docs/b.md": ("hash", wants[0].mark)}, 0))


def test_a_file_that_goes_away_between_its_listing_and_its_reading_is_gone(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("a.md", "b.md"):
        (tmp_path / "docs" / name).write_text("x")
    found = scanned(tmp_path, tmp_path / "docs/b.md")
    assert list(found.files) == ["docs/a.md"]
    assert not found.is_blind_to("docs/b.md")


def test_a_link_to_nothing_is_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("x")
    (tmp_path / "docs/b.md").symlink_to("../target")
    (tmp_path / "target").write_text("x")
    found = scanned(tmp_path, tmp_path / "target")
    facts = found.files["docs/b.md"].facts
    assert facts
    assert [problem.code for problem in facts.problems] == ["unreadable"]


def listed(root: Path, monkeypatch: pytest.MonkeyPatch, *globs: str, below: list[str] | None = None) -> list[str]:
    """Return the folders that a scan looks into, each time that it does."""
    seen: list[str] = []
    look = os.scandir

    def noting(path: Any) -> Any:
        seen.append(Path(path).relative_to(root).as_posix())
        return look(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", noting)
        scan(root, activate([(Reader(*globs), {})], {}, b""), ScanState({}, {}, 0), below)
    return sorted(seen)


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for path in ("docs/a/b/c", "docs/a/x", "docs/other/deep", "src/deep/deeper"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "one.md").write_text("x")
    return tmp_path


def test_a_folder_is_listed_once_however_many_globs_begin_above_it(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = listed(folders, monkeypatch, "docs/a/b/**/*.md", "docs/a/**/*.md", "docs/**/*.md", "docs/a/b/c/*.md")
    assert seen == sorted({*seen})
    assert {"docs", "docs/a/b/c", "docs/other/deep"} <= {*seen}


def test_a_folder_in_which_no_glob_means_anything_is_not_listed(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    within = ["docs/a", "docs/a/b", "docs/a/b/c", "docs/a/x"]
    assert listed(folders, monkeypatch, "*/a/**/*.md") == [".", "docs", *within, "src"]
    assert listed(folders, monkeypatch, "*/a/**/*.md", below=["docs/a/x", "src/deep"]) == ["docs/a/x"]


def test_a_search_that_begins_beyond_a_link_is_one_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/one.md").write_text("x")
    (tmp_path / "link").symlink_to("real")
    wants = activate([(Reader("**/*.md", "link/*.md"), {})], {}, b"")
    assert sorted(scan(tmp_path, wants, ScanState({}, {}, 0)).files) == ["link/one.md", "real/one.md"]


def test_many_paths_below_which_something_changed_cost_one_look_each(tmp_path: Path) -> None:
    for number in range(50):
        (tmp_path / f"d{number}").mkdir()
        (tmp_path / f"d{number}/a.md").write_text("x")
    wants = activate([(Reader(*(f"d{number}/*.md" for number in range(50))), {})], {}, b"")
    assert len(scan(tmp_path, wants, ScanState({}, {}, 0), [f"d{number}/a.md" for number in range(30)]).files) == 30
    assert len(scan(tmp_path, wants, ScanState({}, {}, 0), ["d1", "d1/a.md", "d2x"]).files) == 1
    assert len(scan(tmp_path, wants, ScanState({}, {}, 0), [""]).files) == 50
