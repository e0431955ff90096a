"""Owners of files are those of the last line of CODEOWNERS that means the file."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.text.code_owners import NONE, Ownership, globs_of, read
from kbcore.text.globs import matches
from tests.support.effort.scale import tries
from tests.support.repository.repos import git_env, make_repository

PATHS = (
    "README.md",
    "build/logs/today.txt",
    "docs/guide.md",
    "docs/guide.markdown",
    "docs/app/guide.md",
    "services/pay/docs/a.md",
    "services/pay/pay.js",
    "lib/docs/x/y.js",
)
IN_DOCS = {"docs/guide.md", "docs/guide.markdown", "docs/app/guide.md"}


def owned(text: str, path: str) -> tuple[str, ...] | None:
    found = read(text, "CODEOWNERS").of(path)
    return found.owners if found else None


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("*", {*PATHS}),
        ("*.js", {"services/pay/pay.js", "lib/docs/x/y.js"}),
        ("*.md", {"README.md", "docs/guide.md", "docs/app/guide.md", "services/pay/docs/a.md"}),
        ("/build/logs/", {"build/logs/today.txt"}),
        ("docs/*", {"docs/guide.md", "docs/guide.markdown"}),
        (
            "docs/",
            {"docs/guide.md", "docs/guide.markdown", "docs/app/guide.md", "services/pay/docs/a.md", "lib/docs/x/y.js"},
        ),
        ("/docs/", {"docs/guide.md", "docs/guide.markdown", "docs/app/guide.md"}),
        ("/docs", {"docs/guide.md", "docs/guide.markdown", "docs/app/guide.md"}),
        ("**/logs", {"build/logs/today.txt"}),
        ("services/**/a.md", {"services/pay/docs/a.md"}),
        ("/services/pay/**", {"services/pay/docs/a.md", "services/pay/pay.js"}),
        ("/*", {"README.md"}),
        ("readme.md", set()),
        ("README.m?", {"README.md"}),
    ],
)
def test_a_pattern_means_the_files_that_the_documentation_of_the_format_says(pattern, meant):
    assert {path for path in PATHS if owned(f"{pattern} @a", path)} == meant


def test_the_last_line_that_means_a_file_decides_and_is_named():
    text = "# first\n*  @all @second\n\n/docs/ @docs me@x.example  # who writes\n/docs/app/\n"
    owners = read(text, ".github/CODEOWNERS")
    assert owners.of("README.md") == Ownership(("@all", "@second"), (2,))
    assert owners.of("docs/guide.md") == Ownership(("@docs", "me@x.example"), (4,))
    assert owners.of("docs/app/guide.md") == Ownership((), (5,))
    assert (owners.file, owners.problems, NONE.of("README.md")) == (".github/CODEOWNERS", (), None)


def test_each_section_gives_owners_and_its_heading_those_of_lines_without():
    text = "* @all\n[Docs] @writers @more\n/docs/\n*.js @js\n^[Pay][2]\n/services/ @pay\n[docs]\nREADME.md @readers\n"
    assert owned(text, "docs/guide.md") == ("@all", "@writers", "@more")
    assert owned(text, "services/pay/pay.js") == ("@all", "@js", "@pay")
    assert owned(text, "README.md") == ("@all", "@readers")


def test_lines_that_cannot_be_used_give_nothing_and_are_named():
    text = "*.md @all\n!docs/guide.md @x\ndocs/[a-z]* @x\ndocs/ nobody\n/ @x\n[No] end@x @y z\n"
    owners = read(text, "CODEOWNERS")
    assert [one.line for one in owners.problems] == [2, 3, 4, 5, 6]
    assert {one.code for one in owners.problems} == {"bad_owners_line"}
    assert owners.of("docs/guide.md") == Ownership(("@all",), (1,))


def test_spaces_signs_and_letters_of_a_name_can_be_written():
    assert owned(r"/a\ b.md @x", "a b.md") == ("@x",)
    assert owned(r"/a\*b @x", "a*b") == ("@x",)
    assert owned(r"/a\*b @x", "axb") is None
    assert owned(r"\#notes @x", "#notes") == ("@x",)


_PART = st.sampled_from(["a", "b", "ab", "*", "a*", "*b", "?", "**", "a.md", "*.md", "?.md"])
_NAME = st.sampled_from(["a", "b", "ab", "ba", "a.md", "b.md", "a.markdown"])
_PATTERN = st.tuples(st.sampled_from(["", "/"]), st.lists(_PART, min_size=1, max_size=4), st.sampled_from(["", "/"]))
_FILES = st.lists(st.lists(_NAME, min_size=1, max_size=4).map("/".join), min_size=1, max_size=20, unique=True)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return make_repository(tmp_path_factory.mktemp("ignoring") / "repo")


@settings(max_examples=tries(30, 2_000), deadline=None)
@given(pattern=_PATTERN, paths=_FILES)
def test_a_pattern_means_what_it_means_to_git_but_for_a_star_alone_at_its_end(repository, pattern, paths):
    begin, parts, end = pattern
    if parts[-1] == "*" and not end and (begin or len(parts) > 1):
        parts = [*parts[:-1], "a*"]
    text = f"{begin}{'/'.join(parts)}{end}"
    (repository / ".gitignore").write_text(f"{text}\n")
    asked = "".join(f"{path}\0" for path in paths)
    words = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    ran = subprocess.run(words, cwd=repository, env=git_env(), input=asked, capture_output=True, text=True, check=False)
    assert {path for path in paths if matches(path, globs_of(text))} == {*filter(None, ran.stdout.split("\0"))}
