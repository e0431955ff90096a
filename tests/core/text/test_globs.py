"""The paths that a glob means."""

import fnmatch
import itertools
import sys
import tempfile
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.text.globs import GlobSet, glob_fault, matches, too_many_fault


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
    assert matches(path, [glob]) in {True, False}


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


NAMES = ["a", "b", "ab", "ba", "ba.md", "a.md", "[a]", "-", ".hidden"]
PARTS = [
    "*",
    "?",
    "a",
    "b",
    "a*",
    "*a",
    "*a*",
    "a*b",
    "?*",
    "*.md",
    "[ab]",
    "[!a]*",
    "[a-b]*",
    "[!]",
    "[]a]",
    "[[]a]",
    ".*",
]
FOLDERS = [*itertools.chain.from_iterable(itertools.product(NAMES[:3], repeat=depth) for depth in range(4))]
PATHS = ["/".join((*folder, name)) for folder in FOLDERS for name in NAMES[3:]]
part = st.sampled_from(PARTS)
spanning = st.one_of(part, st.just("**"))
globs = st.builds(lambda above, last: "/".join([*above, last]), st.lists(spanning, max_size=5), part)


@pytest.fixture(scope="module")
def tree():
    with tempfile.TemporaryDirectory() as top:
        for path in PATHS:
            place = Path(top, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        yield Path(top)


@given(glob=globs)
def test_a_glob_means_the_files_that_pathlib_finds_with_it(tree, glob):
    found = {path.relative_to(tree).as_posix() for path in tree.glob(glob) if path.is_file()}
    assert {path for path in PATHS if matches(path, [glob])} == found


def is_meant(parts, globs):
    """Say what globs mean, part by part, in the shortest way and at any cost."""
    if not globs:
        return not parts
    if globs[0] != "**":
        return bool(parts) and fnmatch.fnmatchcase(parts[0], globs[0]) and is_meant(parts[1:], globs[1:])
    if len(globs) == 1:
        return bool(parts)
    return any(is_meant(parts[number:], globs[1:]) for number in range(len(parts)))


@given(st.lists(st.one_of(globs, globs.map(lambda glob: f"{glob}/**")), min_size=1, max_size=6), st.data())
def test_globs_that_are_asked_together_mean_what_each_of_them_means(listed, data):
    made = GlobSet(listed)
    for path in data.draw(st.lists(st.sampled_from(PATHS), min_size=1, max_size=20)):
        meant = [number for number, glob in enumerate(listed) if is_meant(path.split("/"), glob.split("/"))]
        assert sorted(made.all(path)) == meant, path
        assert made.first(path) == min(meant, default=None)
        folder = path.rpartition("/")[0]
        assert not (meant and made.below(folder).is_dead), "a walk would not come there"


def steps(use):
    """Return how many functions of Python's and of C's a call comes to."""
    counted = 0

    def count(_frame, event, _arg):
        nonlocal counted
        counted += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        use()
    finally:
        sys.setprofile(None)
    return counted


@pytest.mark.parametrize("glob", ["**/a/" * 11 + "b", "**/*a*/" * 11 + "b", "**/a/a/" * 11 + "b"])
def test_the_steps_for_a_deep_path_grow_with_its_parts(glob):
    short, long = ("a/" * depth + "c" for depth in (100, 200))
    assert not matches(short, [glob])
    few, many = (steps(lambda path=path: GlobSet([glob]).first(path)) for path in (short, long))
    assert many < 3 * few


def test_the_steps_for_another_file_of_a_folder_do_not_grow_with_its_depth():
    globs = GlobSet(["**/a/" * 11 + "*.md"])
    folders = ["a/" * depth for depth in (100, 200)]
    for folder in folders:
        globs.first(f"{folder}x.md")
    short, long = (steps(lambda folder=folder: globs.below(folder).ends("y.md")) for folder in folders)
    assert long < 3 * short


def test_a_name_is_compared_with_a_part_of_many_stars_once():
    """Each further star of a pattern that tries everything again would multiply the time by the length of the name."""
    name = "a" * 200 + "c"

    def cost(stars):
        glob = "*a" * stars + "b"
        matches(name, [glob])
        start = process_time()
        for _ in range(50):
            assert not matches(name, [glob])
        return process_time() - start

    cost(1)
    assert min(cost(40) for _ in range(3)) < 200 * max(min(cost(4) for _ in range(3)), 1e-4)


def test_a_file_is_compared_with_those_of_many_globs_that_its_folder_leaves_open():
    globs = GlobSet([f"docs/{number}/**/*.md" for number in range(limits.MAX_GLOBS)])
    assert globs.first("docs/7/x/a.md") == 7
    assert globs.below("src").is_dead
    assert steps(lambda: globs.first("docs/8/x/a.md")) < 100


def test_more_globs_than_the_limit_and_longer_ones_are_refused_with_the_limit():
    assert str(limits.MAX_GLOB_CHARS) in glob_fault("a" * (limits.MAX_GLOB_CHARS + 1))
    assert glob_fault("a" * limits.MAX_GLOB_CHARS) == ""
    assert str(limits.MAX_GLOBS) in too_many_fault(["a"] * (limits.MAX_GLOBS + 1))
    assert str(limits.MAX_GLOB_PARTS) in too_many_fault(["a/" * 100] * 50)
    assert too_many_fault(["docs/*.md"] * limits.MAX_GLOBS) == ""


def test_what_was_worked_out_for_globs_is_kept_within_bounds(monkeypatch):
    monkeypatch.setattr("kbcore.text.globs._MAX_STATES", 10)
    globs = GlobSet(["**/[ab]/**/[bc]/*.md"])
    for folder in itertools.product("abcd", repeat=4):
        path = "/".join(folder)
        assert (globs.first(f"{path}/x.md") is not None) == (folder[3] in "bc" and bool({"a", "b"} & {*folder[:3]}))
    assert len(globs._states) <= 10
    assert len(globs.start.known) <= 10


@pytest.mark.parametrize("name", ["a.md", "a.MD", "A.Md", "a.markdown", "a.b.MARKDOWN"])
def test_a_glob_of_markdown_means_every_spelling_of_its_ending(name):
    assert matches(f"docs/{name}", ["docs/**/*.md"])
    assert matches(f"docs/{name}", ["docs/*.md"])
    assert not matches(f"docs/{name}x", ["docs/*.md"])


def test_a_whole_name_and_other_endings_are_meant_as_they_are_written():
    assert not matches("docs/README.MD", ["docs/README.md"])
    assert not matches("docs/a.TXT", ["docs/*.txt"])
    assert not matches("docs/a.MD", ["docs/*[.]md"])
