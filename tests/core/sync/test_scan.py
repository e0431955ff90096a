"""What a scan finds while files come and go under it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kbcore.extract.facts import Facts, PathRule, Source
from kbcore.sync.scan import Known, Scan, scan, wanted


class Remover:
    """An extractor that removes another file whenever it reads one."""

    name = "remover"
    version = 1

    def __init__(self, victim: Path) -> None:
        self._victim = victim

    def path_rules(self, _: Mapping[str, Any]) -> list[PathRule]:
        return [PathRule("docs/*.md")]

    def extract(self, _: Source, __: Mapping[str, Any]) -> Facts:
        self._victim.unlink(missing_ok=True)
        return Facts()


def scanned(root: Path, victim: Path) -> Scan:
    wants = wanted([Remover(victim)], {}, {}, b"")
    return scan(root, wants, Known({}, {"docs/b.md": ("hash", wants[0].mark)}, 0))


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
