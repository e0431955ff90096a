"""Laws of ids and of branch directory names."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import ids
from tests.support.repository.repos import run_git

NAMES = st.text(min_size=0, max_size=80) | st.text(alphabet="aA.%-_/ ~@cConNuUlLtT09é\udce9", max_size=12)
RESERVED = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}


@pytest.mark.parametrize(
    "text",
    [
        "REQ-1",
        "a",
        "x" * 200,
        "ünïcode",
        "has inner space",
        "../../etc/passwd",
        "link:",
        "link:" + "g" * 32,
        "名前",
    ],
)
def test_ordinary_ids_are_accepted(text):
    assert ids.check_id(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "at least one"),
        ("x" * 201, "at most 200"),
        (" a", "space"),
        ("a\u00a0", "space"),
        ("a\x00b", "U+0000 is at position 1"),
        ("a\x1b[31m", "U+001B"),
        ("a\x85b", "U+0085"),
        ("a\u2028b", "U+2028"),
        ("a\u2029b", "U+2029"),
        ("a\ud800b", "U+D800"),
        ("link:" + "0" * 32, "edges"),
    ],
)
def test_other_ids_are_refused_with_the_reason(text, reason):
    assert reason in (ids.check_id(text) or "")


@given(st.text(max_size=30))
def test_an_accepted_id_is_one_line_of_valid_text(text):
    if ids.check_id(text) is None:
        assert text.splitlines() == [text]
        assert text.encode("utf-8").decode("utf-8") == text


ENDS = st.text(max_size=12)


@given(st.tuples(ENDS, ENDS, ENDS, ENDS), st.tuples(ENDS, ENDS, ENDS, ENDS))
def test_link_ids_are_equal_exactly_when_edges_are(one, other):
    assert (ids.link_id(*one) == ids.link_id(*other)) == (one == other)
    assert ids.is_link_id(ids.link_id(*one))


def test_link_id_distinguishes_shifted_boundaries_and_takes_no_kind_for_an_empty_one():
    assert ids.link_id("ab", "c", "x", "y") != ids.link_id("a", "bc", "x", "y")
    assert ids.link_id("t", "", 'a","b', "c") != ids.link_id("t", "", "a", 'b","c')
    assert ids.link_id("t", None, "a", "b") == ids.link_id("t", "", "a", "b")
    assert ids.check_id(ids.link_id("t", None, "a", "b")) is not None


def test_link_ids_never_change_between_releases():
    assert ids.link_id("depends_on", None, "REQ-1", "REQ-2") == "link:14ec9f8d280eb0b00196496196c20fbf"


@pytest.mark.parametrize(
    ("name", "dirname"),
    [
        ("main", "main"),
        ("feature/login", "feature%2flogin"),
        ("CON", "%43%4f%4e"),
        ("con", "%63on"),
        ("com1.txt", "%63om1.txt"),
        ("console", "console"),
        ("a..b", "a..b"),
        ("v1.2", "v1.2"),
        (".tmp-x", "%2etmp-x"),
        ("end.", "end%2e"),
        ("end ", "end%20"),
        (".", "%2e"),
        ("..", "%2e%2e"),
        ("Main", "%4dain"),
        ("-x", "%2dx"),
        ("--output=pwn", "%2d-output%3dpwn"),
        ("é", "%c3%a9"),
        ("100%", "100%25"),
        ("@", "%40"),
        ("detached:" + "0" * 40, "detached%3a" + "0" * 40),
        ("", "%"),
    ],
)
def test_directory_names_are_readable_where_they_can_be(name, dirname):
    assert ids.encode_branch(name) == dirname
    assert ids.decode_branch(dirname) == name


@given(NAMES)
def test_a_directory_name_gives_the_branch_back(name):
    encoded = ids.encode_branch(name)
    if "%~" in encoded:
        assert ids.decode_branch(encoded) is None
    else:
        assert ids.decode_branch(encoded) == name


@given(NAMES, NAMES)
def test_two_names_never_share_a_directory_even_where_case_is_ignored(one, other):
    same = ids.encode_branch(one).casefold() == ids.encode_branch(other).casefold()
    assert same == (one == other)


@given(st.text(max_size=400))
def test_directory_names_are_safe_everywhere(name):
    encoded = ids.encode_branch(name)
    assert 1 <= len(encoded) <= ids.MAX_DIRECTORY_CHARS
    assert set(encoded) <= set(string.ascii_lowercase + string.digits + "-_.%~")
    assert encoded[0] not in ".-"
    assert encoded[-1] != "."
    assert encoded.partition(".")[0] not in RESERVED


@given(st.text(alphabet="abc/%~0123456789def.-", max_size=20))
def test_decoding_accepts_only_what_encoding_makes(dirname):
    name = ids.decode_branch(dirname)
    assert name is None or ids.encode_branch(name) == dirname


def test_long_names_that_differ_at_the_end_keep_different_directories():
    stem = "feature/" + "é" * 150
    encoded = {ids.encode_branch(stem + ending) for ending in ("a", "b", "A", "")}
    assert len(encoded) == 4
    assert all(text.startswith("feature%2f%c3%a9") and "%~" in text for text in encoded)
    assert {ids.decode_branch(text) for text in encoded} == {None}


def test_directories_of_awkward_names_can_be_made(tmp_path):
    names = ["feature/login", "CON", "Con", "a..b", ".tmp-x", "x.", "x ", "é" * 300, "%", "@"]
    for name in names:
        (tmp_path / ids.encode_branch(name)).mkdir()
    assert len(list(tmp_path.iterdir())) == len(names)


def test_detached_names_carry_the_commit_and_are_no_branch_names():
    name = ids.detached_name("a" * 40)
    assert ids.is_detached_name(name)
    assert ids.is_detached_name(ids.detached_name("0" * 64))
    assert not ids.is_detached_name("detached:abc")
    assert ids.check_branch_name(name) is not None


@pytest.mark.parametrize(
    "name",
    ["main", "feature/login", "CON", "@", "--output=pwn", "a.b", "é/ü", "x{y}", r"caf\xe9", "\u202e", "\x85"],
)
def test_names_that_git_can_hold_pass(name):
    assert ids.check_branch_name(name) is None


@pytest.mark.parametrize(
    "name",
    [
        *("", "/a", "a/", "a//b", "../../x", "a..b", ".a", "a/.b", "a.", "a.lock", "a.lock/b", "a@{b", "a b"),
        *(
            "a\x00b",
            "a\nb",
            "a\x7fb",
            "a~1",
            "a^",
            "a:b",
            "a?b",
            "a*",
            "a[b",
            "a\\b",
            r"\xE9",
            r"\x41",
            "a\udce9",
        ),
    ],
)
def test_names_that_git_would_never_make_are_refused(name):
    assert ids.check_branch_name(name)


@pytest.mark.parametrize("length", [1, 2, 3])
def test_branch_rules_are_those_of_git(tmp_path, length):
    """Ask git about short combinations of the characters that its rules are about."""
    pieces = ["a", ".", "/", "@", "{", "-", ".lock", "~", " ", "é"]
    names = pieces
    for _ in range(length - 1):
        names = [name + piece for name in names for piece in pieces]
    for name in names[:: max(1, len(names) // 60)]:
        done = run_git(tmp_path, "check-ref-format", f"refs/heads/{name}")
        assert (done.returncode == 0) == (ids.check_branch_name(name) is None), name


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/a.md", ".", "a.md", ""])
def test_a_path_that_leads_out_and_a_name_stay_as_they_are(path):
    assert ids.worktree_path(path, "/repo/tree") == path
