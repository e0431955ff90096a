"""Named paths: relative to where a command runs, and never outside of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import InvalidQuery
from kbcore.sync.paths import is_named, normal_paths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / "docs/adr").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (root / "docs/link.md").symlink_to(tmp_path / "outside/1.md")
    return root


@pytest.mark.parametrize(
    ("typed", "start", "meant"),
    [
        (".", "", ""),
        (".", "docs", "docs"),
        ("..", "docs", ""),
        ("../..", "docs/adr", ""),
        ("adr/..", "docs", "docs"),
        ("../docs/adr/", "docs", "docs/adr"),
        ("gone/1.md", "docs", "docs/gone/1.md"),
        ("link.md", "docs", "docs/link.md"),
    ],
)
def test_a_path_is_meant_from_the_folder_it_is_typed_in(root: Path, typed: str, start: str, meant: str) -> None:
    assert normal_paths([typed], root / start, root) == (meant,)
    assert normal_paths([str(root / start / typed)], Path("/"), root) == (meant,)


@pytest.mark.parametrize("typed", ["..", "../..", "../outside", "/", "docs/../..", "docs/../../outside/1.md"])
def test_a_path_outside_of_the_repository_is_refused_by_name(root: Path, typed: str) -> None:
    with pytest.raises(InvalidQuery, match="is not inside the repository") as refused:
        normal_paths(["docs", typed], root, root)
    assert (refused.value.details[0].path, refused.value.details[0].code) == ("$.paths[1]", "outside")
    assert str(root) in refused.value.hint


def test_what_lies_below_a_named_path_is_named_and_a_longer_name_is_not() -> None:
    assert is_named("docs/a.md", ())
    assert is_named("docs/a.md", ("",))
    assert is_named("docs/a.md", ("docs",))
    assert not is_named("docs2/a.md", ("docs",))


@pytest.mark.parametrize("named", [(), ("",), ("docs",), ("docs/a.md",), ("docs2", "x"), ("doc",)])
@pytest.mark.parametrize("path", ["docs/a.md", "docs2/a.md", "a.md"])
def test_a_set_of_named_paths_is_answered_for_like_a_list(path: str, named: tuple[str, ...]) -> None:
    assert is_named(path, frozenset(named)) == is_named(path, named)
