"""Versions of git, for telling people what theirs lacks."""

from __future__ import annotations

import pytest

from kbcore.git.versions import lacking, parsed


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("git version 2.39.5", (2, 39)),
        ("git version 2.55.0.windows.1", (2, 55)),
        ("git version 2.39.3 (Apple Git-146)", (2, 39)),
        ("git version 3.0.0-rc1", (3, 0)),
        ("no numbers", None),
    ],
)
def test_a_version_is_found_in_what_git_says(text, version):
    assert parsed(text) == version


def test_what_a_version_lacks_is_named_with_the_version_that_has_it():
    assert lacking((3, 0)) == []
    assert lacking((2, 50)) == ["hooks by configuration (2.54)"]
    assert len(lacking((2, 30))) == 3
