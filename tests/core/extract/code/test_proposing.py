"""The globs that are proposed for source code."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract.code.proposing import globs_of_code
from kbcore.text.globs import matches

PARTS = st.sampled_from(["src", "lib", "packages", "x", "y", "tests", "__tests__"])
NAMES = st.sampled_from(["a.py", "test_a.py", "b.ts", "b.spec.ts", "c.go", "c_test.go", "ATest.java", "readme.md"])
PATHS = st.builds(lambda folders, name: "/".join([*folders, name]), st.lists(PARTS, max_size=4), NAMES)


@pytest.mark.parametrize(
    ("paths", "plain", "tests"),
    [
        (["a.py", "src/a.py", "src/x/b.py"], ["*.py", "src/**/*.py"], []),
        (["src/a.py", "tests/unit/test_a.py", "src/test_b.py"], ["src/**/*.py"], ["src/**/test_*.py", "tests/**/*.py"]),
        (
            ["packages/x/src/a.ts", "packages/x/src/__tests__/a.ts", "packages/y/src/b.spec.ts"],
            ["packages/x/src/**/*.ts"],
            ["packages/x/src/**/__tests__/**/*.ts", "packages/y/src/**/*.spec.ts"],
        ),
        ([f"packages/{n}/src/a.go" for n in range(50)], ["packages/**/*.go"], []),
        ([f"{n}/a.go" for n in range(50)], ["**/*.go"], []),
    ],
)
def test_globs_begin_as_deep_as_the_files_lie(paths, plain, tests):
    found = globs_of_code(paths)
    assert (list(found.paths), list(found.tests)) == (plain, tests)


def test_a_single_file_and_other_files_are_no_source_code():
    assert globs_of_code(["a.py"]) is None
    assert globs_of_code(["a.md", "b.txt", "c.json"]) is None


def test_languages_are_named_the_most_frequent_first():
    found = globs_of_code(["a.go", "b.py", "c.py"])
    assert (found.files, found.languages) == (3, ("python", "go"))


@given(st.lists(PATHS, max_size=30))
def test_each_source_file_is_meant_and_no_other_ending(paths):
    found = globs_of_code(paths)
    source = [path for path in paths if not path.endswith(".md")]
    if found is None:
        assert len(source) < 2
        return
    assert found.files == len(source)
    assert all(matches(path, [*found.paths, *found.tests]) for path in source)
    assert not any(
        matches("/".join([*path.split("/")[:-1], "readme.md"]), [*found.paths, *found.tests]) for path in paths
    )
