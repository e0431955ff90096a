"""Patterns that take parts out of a text, and templates that put parts together."""

from __future__ import annotations

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.extract.sources.patterns import (
    MAX_MATCHED_CHARS,
    MAX_PLACEHOLDERS,
    fill,
    glob_fault,
    match,
    path_parts,
    pattern_fault,
    slug,
    template_fault,
)

WORDS = st.text(string.ascii_letters + string.digits, min_size=1, max_size=20)


@given(WORDS, WORDS)
def test_a_pattern_takes_out_what_a_template_of_the_same_text_put_in(left: str, right: str) -> None:
    text = "[{a}] -- {b}"
    filled = fill(text, {"a": left, "b": right}.get)
    assert filled.text == f"[{left}] -- {right}"
    assert match([text], filled.text) == {"a": left, "b": right}


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("REQ-{n:d} {title}", "REQ-12 Log in (again)", {"n": "12", "title": "Log in (again)"}),
        ("[{id:w}] {title}", "[A.b-1] x", {"id": "A.b-1", "title": "x"}),
        ("{title} ({id:w})", "Log in (now) (REQ-1)", {"title": "Log in (now)", "id": "REQ-1"}),
        ("{_:d}. {title}", "3. Use x", {"title": "Use x"}),
        ("{{{x}}}", "{y}", {"x": "y"}),
        ("REQ-{n:d}", "REQ-x", None),
        ("a.c", "abc", None),
    ],
)
def test_a_pattern_fits_all_of_a_text_or_none_of_it(pattern: str, text: str, expected: dict[str, str] | None) -> None:
    assert match([pattern], text) == expected


def test_the_first_of_several_patterns_that_fits_counts() -> None:
    assert match(["x{a}", "{a}y", "{a}"], "zy") == {"a": "z"}


def test_a_template_without_a_value_names_what_is_missing() -> None:
    assert fill("{a}-{b}-{c}", {"a": "1", "b": ""}.get).missing == ("b", "c")


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{x|slug}", "straeng-ae-co"),
        ("{x|lower}", "str\u00e4ng \u00e6 & co."),
        ("{n|04}", "0007"),
        ("{long|02}", "12345"),
    ],
)
def test_a_filter_of_a_template_changes_the_value(template: str, expected: str) -> None:
    values = {"x": "Str\u00e4ng \u00c6 & Co.", "n": "7", "long": "12345"}
    assert fill(template, values.get).text == expected.replace("straeng-ae-co", slug(values["x"]))


def test_a_slug_has_small_letters_digits_and_hyphens_alone() -> None:
    assert slug("  \u00c9t\u00e9: l'\u00eele / 2 ") == "ete-l-ile-2"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{a", "not closed"),
        ("}", "not closed"),
        ("{}", "no name"),
        ("{a b}", "cannot be the name"),
        ("{a:x}", "unknown kind"),
        ("{a}{a}", "twice"),
        ("{a}{b}{c}{d}", f"more than {MAX_PLACEHOLDERS}"),
        ("x" * 1001, "limit"),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why(text: str, reason: str) -> None:
    assert reason in pattern_fault(text)


def test_a_template_with_an_unknown_filter_says_which_there_are() -> None:
    assert "|slug" in template_fault("{a|shout}")
    assert not template_fault("{a|slug}-{b.c}-{d|03}")


def test_a_text_that_nearly_fits_is_refused_within_a_bounded_number_of_steps() -> None:
    hostile = "a" * 100_000
    assert match(["{a}a{b}a{c}!"], hostile) is None
    assert match(["{a:w}{b:w}{c:w}!"], hostile) is None
    assert match(["{a}"], hostile) == {"a": "a" * MAX_MATCHED_CHARS}


SHAPES = st.lists(st.sampled_from(["{}", "{:d}", "{:w}", "a", "1", "-", "ab"]), min_size=1, max_size=6)


@given(SHAPES, st.text("a1-b", max_size=12))
def test_the_parts_of_a_text_are_those_that_trying_all_places_gives(shapes: list[str], text: str) -> None:
    names = iter("xyz")
    pattern, expression, kinds = "", "", {"{}": ".+?", "{:d}": "[0-9]+", "{:w}": r"[A-Za-z0-9](?:[\w.-]*\w)?"}
    for shape in shapes:
        name = next(names, "") if shape in kinds else ""
        if name:
            pattern += shape.replace("{", "{" + name)
            expression += f"(?P<{name}>{kinds[shape]})"
        elif shape not in kinds:
            pattern, expression = pattern + shape, expression + re.escape(shape)
    found = re.fullmatch(expression, text)
    assert match([pattern], text) == (found and found.groupdict())


def test_a_name_that_nearly_fits_a_glob_is_refused_within_a_bounded_number_of_steps() -> None:
    assert path_parts(["d/" + "*a" * 20 + "*{n:d}.md"], f"d/{'a' * 250}.md") == {}
    assert path_parts(["d/" + "{a}a*{b}" + "*a" * 20 + "*b.md"], f"d/{'a' * 250}.md") == {}
    assert path_parts(["**/a*/**/{n:d}.md"], f"{'a/' * 500}x.md") == {}


def test_a_glob_with_placeholders_spans_folders_twice_at_the_most() -> None:
    assert "more than 2 `**`" in glob_fault("**/a/**/b/**/{n:d}.md")
    assert not glob_fault("**/a/**/b/**/*.md")


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("keps/**/{number:d}-{slug}/kep.yaml", "keps/sig-a/12-a-b/kep.yaml", {"number": "12", "slug": "a-b"}),
        ("keps/**/{number:d}-{slug}/kep.yaml", "keps/12-x/kep.yaml", {"number": "12", "slug": "x"}),
        ("{area}/*.md", "docs/x.md", {"area": "docs"}),
        ("{area}/*.md", "docs/y/x.md", {}),
        ("docs/**", "docs/x", {}),
        ("docs/*-{slug}.md", "docs/a-b-c.md", {"slug": "b-c"}),
        ("docs/?-{slug}", "docs/a-b", {"slug": "b"}),
    ],
)
def test_the_placeholders_of_a_glob_name_parts_of_a_path(glob: str, path: str, expected: dict[str, str]) -> None:
    assert not glob_fault(glob)
    assert path_parts([glob], path) == expected
