"""Which paths a glob means."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract.globs import compiled, glob_fault, matches


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("docs/adr/**/*.md", "docs/adr/a.md"),
        ("docs/adr/**/*.md", "docs/adr/x/y/a.md"),
        ("**/*.md", "a.md"),
        ("**/*.md", "x/y/a.md"),
        ("docs/**", "docs/x/y.md"),
        ("./docs/*.md", "docs/a.md"),
        ("docs/a?.md", "docs/ab.md"),
        ("docs/[ab].md", "docs/a.md"),
        ("docs/[!ab].md", "docs/c.md"),
        ("docs/[a-c]*.md", "docs/b1.md"),
        ("docs/[z-a].md", "docs/-.md"),
        ("docs/a+(b).md", "docs/a+(b).md"),
        ("docs/[.md", "docs/[.md"),
        ("docs/**x/a.md", "docs/yx/a.md"),
        ("docs/with space [1].md", "docs/with space 1.md"),
    ],
)
def test_a_glob_means_the_path(glob, path):
    assert matches(path, [glob])


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("docs/adr/*.md", "docs/adr/x/a.md"),
        ("docs/adr/**/*.md", "docs/adr2/a.md"),
        ("docs/adr/**/*.md", "docs/adr/a.mdx"),
        ("docs/**", "docs"),
        ("docs/?.md", "docs//.md"),
        ("docs/[!a].md", "docs/a.md"),
        ("docs/[!a]b.md", "docs//b.md"),
        ("Docs/*.md", "docs/a.md"),
        ("*.md", "docs/a.md"),
        ("docs/*x/a.md", "docs/y/a.md"),
    ],
)
def test_a_glob_does_not_mean_the_path(glob, path):
    assert not matches(path, [glob])


def test_one_of_several_globs_is_enough():
    assert matches("b.md", ["a.md", "b.md"])
    assert not matches("c.md", [])


@pytest.mark.parametrize("glob", ["", "  ", "/docs/*.md", "../x/*.md", "docs/../x.md", "docs\\a.md", 3, None])
def test_a_glob_that_cannot_be_used_says_why(glob):
    assert glob_fault(glob)


def test_a_usable_glob_has_no_fault():
    assert glob_fault("docs/**/*.md") == ""


@given(st.text(alphabet="ab*?[]!^-/.\\&|~", max_size=12), st.text(alphabet="ab-/.", max_size=8))
def test_every_text_is_a_glob_that_answers(glob, path):
    assert compiled(glob).fullmatch(path) is None or matches(path, [glob])


@given(st.text(alphabet="abc./_-+() ", min_size=1, max_size=20).filter(lambda text: not text.startswith("./")))
def test_a_path_without_signs_means_itself(path):
    assert matches(path, [path])


def test_braces_that_list_alternatives_are_refused_and_others_are_text():
    assert "list a glob for each" in glob_fault("docs/{a,b}/*.md")
    assert glob_fault("docs/{a}/*.md") == ""
    assert matches("docs/{a}/x.md", ["docs/{a}/*.md"])


@pytest.mark.parametrize("glob", ["[a-\n]", "[z-a]", "[\n-a]*", "x[--\n]"])
def test_a_set_with_a_line_break_or_a_range_the_wrong_way_round_is_text(glob):
    assert not matches("docs/a.md", [glob])
