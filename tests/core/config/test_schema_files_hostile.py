"""Schema files that nobody wrote in good faith: they are refused with a place, and in a moment."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import limits
from kbcore.config.schema_files import load_schema
from kbcore.errors import InvalidConfig, Problem
from kbcore.model.schema import CORE, EdgeType, EntityType, Schema
from kbcore.model.schema_text import schema_yaml

A = ".kb/schema/a.yaml"


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BOMB, "invalid_yaml"),
        ("[" * 1000, "invalid_yaml"),
        ("{a: " * 1000, "invalid_yaml"),
        ("".join(" " * depth + "a:\n" for depth in range(1000)), "invalid_yaml"),
        ("- " * 1000 + "x", "invalid_yaml"),
        ("entities: &x {fact: *x}", "invalid_yaml"),
        ("entities: *x", "invalid_yaml"),
        ("entities: {a: {description: \x00}}", "invalid_yaml"),
        ('entities: {a: {description: "\\0"}}', "bad_text"),
        ('entities: {a: {description: "\\ud800"}}', "invalid_yaml"),
        ("entities: {a: {description: \ud800}}", "wrong_encoding"),
        ("entities:\n\ta:\n", "invalid_yaml"),
        ("entities: !!python/object/apply:os.system [true]", "invalid_yaml"),
        ("entities: !!binary aGk=", "invalid_yaml"),
        ("entities: {a: }\n---\nentities: {b: }\n", "invalid_yaml"),
        ("? [a]\n: b\n", "invalid_yaml"),
        ("<<<<<<< HEAD\nentities:\n=======\nedges:\n>>>>>>> x\n", "merge_conflict"),
        ("#" * (limits.MAX_CONFIG_BYTES + 1), "too_long"),
    ],
)
def test_hostile_files_are_refused_with_one_problem(text, code):
    started = time.process_time()
    (problem,) = read(text)[1]
    assert problem.code == code
    assert time.process_time() - started < 2


def test_huge_numbers_and_odd_scalars_are_text_like_any_other():
    text = f"entities: {{a: {{description: {'9' * 5000}, statuses: [no, ~, 1e999, 2026-01-01, .nan]}}}}"
    entity = load_schema({A: text}).entities["a"]
    assert len(entity.description) == 5000
    assert entity.statuses == ("no", "~", "1e999", "2026-01-01", ".nan")


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "text",
    [
        "entities:\n" + "".join(f"  t{number}: {{x: }}\n" for number in range(30_000)),
        "edges:\n" + "".join(f"  e{number}: {{from: q{number}, to: req}}\n" for number in range(20_000)),
        "entities:\n"
        + "".join(f"  t{number}:\n" for number in range(20_000))
        + "edges:\n"
        + "".join(f"  e{number}: {{from: tt{number}, to: req}}\n" for number in range(10_000)),
        "entities: {a: {statuses: [" + ", ".join(str(number) for number in range(90_000)) + "]}}",
        "entities:\n  x: &x {"
        + ", ".join(f"k{number}: 1" for number in range(300))
        + "}\n"
        + "".join(f"  t{number}: *x\n" for number in range(300)),
    ],
)
def test_a_large_file_is_refused_in_a_moment(text):
    started = time.process_time()
    assert 1 <= len(read(text)[1]) <= limits.MAX_PROBLEMS
    assert time.process_time() - started < 10


WORDS = st.sampled_from(
    [
        *"{}[]:,&*!|>-?#%@\"' \n\t",
        "\r\n",
        "entities",
        "edges",
        "req",
        "a",
        ": ",
        "\n  ",
        "- ",
        "true",
        "from",
        "<<",
    ]
)
KEYS = ["entities", "edges", "req", "a", "from", "to", "attributes", "statuses", "values", "required", "kind"]
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=15,
)


@given(st.text() | st.lists(WORDS, max_size=30).map("".join) | TREES.map(repr).map(lambda text: text.replace("'", '"')))
def test_any_text_is_a_schema_or_is_refused_with_lines(text):
    schema, problems = read(text)
    if schema is not None:
        assert set(CORE.entities) <= set(schema.entities)
        again = load_schema({A: schema_yaml(*_own(schema))})
        assert _own(again) == _own(schema)
        return
    assert problems
    for problem in problems:
        file, _, line = problem.place.rpartition(":")
        assert file == A
        assert int(line) >= 1
        assert problem.message[0].isupper() or not problem.message[0].isalpha()


def read(text: str) -> tuple[Schema | None, list[Problem]]:
    try:
        return load_schema({A: text}), []
    except InvalidConfig as error:
        return None, list(error.details)


def _own(schema: Schema) -> tuple[list[EntityType], list[EdgeType]]:
    entities = [one for one in schema.entities.values() if one.origin]
    edges = [one for one in schema.edges.values() if one.origin]
    return entities, edges
