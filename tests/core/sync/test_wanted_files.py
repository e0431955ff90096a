"""The extractors in force decide by their globs which of them reads a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore import limits
from kbcore.errors import InvalidConfig
from kbcore.git import find_repository
from kbcore.git.blobs import tree_of
from kbcore.sync.documents import wanted_in
from kbcore.sync.scan import ScanState, scan
from kbcore.sync.wanted_files import activate, first_wanting, is_wanted
from tests.core.sync.readers import Reader
from tests.support.repository.repos import commit_files, make_repository


def test_the_first_extractor_whose_glob_means_a_file_reads_it_with_the_type_of_the_glob() -> None:
    wants = activate([(Reader("docs/adr/*.md", type_="decision"), {}), (Reader("docs/**"), {})], {}, b"")
    assert first_wanting(wants, "docs/adr/1.md") == (wants[0], "decision")
    assert first_wanting(wants, "docs/adr/1.txt") == (wants[1], None)
    assert first_wanting(wants, "src/1.md") is None
    assert [is_wanted(wants, path) for path in ("docs/1.md", "1.md")] == [True, False]


@pytest.mark.parametrize(
    ("first", "second", "path"),
    [
        ("docs/adr/*.md", "docs/**/*.md", "docs/adr/1.md"),
        ("docs/**/*.md", "docs/adr/*.md", "docs/adr/1.md"),
        ("docs/a/b/*.md", "docs/a/**", "docs/a/b/1.md"),
        ("*/adr/1.md", "docs/adr/*.md", "docs/adr/1.md"),
    ],
)
def test_a_scan_a_tree_and_a_path_choose_the_first_extractor_that_wants_a_file(
    tmp_path: Path, first: str, second: str, path: str
) -> None:
    repo = make_repository(tmp_path / "repo")
    commit = commit_files(repo, {path: "x"})
    wants = activate([(Reader(first), {}), (Reader(second), {})], {}, b"")
    assert first_wanting(wants, path) == (wants[0], None)
    found = scan(repo, wants, ScanState({}, {}, 0, {})).files[path]
    assert found.wanted is wants[0]
    tree = tree_of(find_repository(repo), {}, commit)
    assert [one.wanted for one in wanted_in(tree, wants)] == wants[:1]


def test_the_globs_of_all_extractors_together_have_a_limit() -> None:
    many = Reader(*(f"docs/{number}/*.md" for number in range(limits.MAX_GLOBS // 2)))
    assert len(activate([(many, {}), (many, {})], {}, b"")) == 2
    with pytest.raises(InvalidConfig, match="the limit is 1000") as refused:
        activate([(many, {}), (many, {}), (Reader("a.md"), {})], {}, b"")
    assert refused.value.details[0].code == "too_many_globs"
