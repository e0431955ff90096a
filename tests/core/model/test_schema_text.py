"""The schema as text: what is written reads back, and has the same order every time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.config.schema_files import load_schema
from kbcore.config.schema_members import IMPACTS
from kbcore.model.schema import CORE, CORE_EDGES, CORE_ENTITIES, Attribute, EdgeType, EntityType, Schema
from kbcore.model.schema_text import core_schema_text, schema_json, schema_yaml

A, B = ".kb/schema/a.yaml", ".kb/schema/b.yaml"


def test_the_core_text_is_the_format_that_project_files_have():
    """Under other names, what KB writes about its own types reads back as the same definitions."""
    entities = [EntityType(f"x_{one.name}", *_rest(one)) for one in CORE_ENTITIES]
    edges = [EdgeType(f"x_{one.name}", *_rest(one)) for one in CORE_EDGES]
    schema = load_schema({A: schema_yaml(entities, edges)})
    assert [_rest(schema.entities[one.name])[:-1] for one in entities] == [_rest(one)[:-1] for one in entities]
    assert [_rest(schema.edges[one.name])[:-1] for one in edges] == [_rest(one)[:-1] for one in edges]
    assert core_schema_text().endswith(schema_yaml(CORE_ENTITIES, CORE_EDGES))


def _rest(definition: EntityType | EdgeType) -> list[object]:
    return [getattr(definition, field) for field in definition.__struct_fields__[1:]]


LABELS = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "), min_size=1, max_size=100).filter(
    lambda text: text.isprintable() and text == text.strip()
)
TEXTS = st.text(st.characters(exclude_categories=["C"]) | st.just("\n")).filter(
    lambda text: text.replace("\n", "").isprintable()
)
NAMES = st.from_regex(r"x_[a-z0-9_]{0,8}|X[A-Za-z0-9]{0,8}", fullmatch=True)
ATTRIBUTES = st.builds(
    Attribute, st.sampled_from(["text", "number", "list", "any"]), st.booleans(), st.just(()), TEXTS
) | st.builds(Attribute, st.just("text"), st.booleans(), st.lists(LABELS, unique=True).map(tuple), TEXTS)
ATTRIBUTES |= st.builds(
    Attribute, st.just("object"), st.booleans(), st.just(()), TEXTS, st.lists(LABELS, unique=True).map(tuple)
)
ENTITIES = st.builds(
    EntityType,
    NAMES,
    TEXTS,
    st.sampled_from([("title", "status"), ("title", "status", "owner", "tags")]),
    LABELS,
    st.just(()),
    st.dictionaries(LABELS.map(lambda text: f"x{text}"[:100].strip()), ATTRIBUTES, max_size=3),
    st.just(A),
)
EDGES = st.builds(
    EdgeType,
    st.from_regex(r"x_[a-z0-9_]{0,8}", fullmatch=True),
    st.lists(st.sampled_from(["req", "any", "link"]), min_size=1, unique=True).map(tuple),
    st.lists(st.sampled_from(["test", "any", "link"]), min_size=1, unique=True).map(tuple),
    TEXTS,
    st.booleans(),
    st.booleans(),
    st.sampled_from(IMPACTS),
    st.just(A),
)


@given(st.lists(ENTITIES, max_size=3), st.lists(EDGES, max_size=2))
def test_what_is_written_reads_back_as_the_same_types(entities, edges):
    wanted = Schema({one.name: one for one in entities}, {one.name: one for one in edges})
    text = schema_yaml(wanted.entities.values(), wanted.edges.values())
    schema = load_schema({A: text})
    assert schema.entities == {**CORE.entities, **wanted.entities}
    assert schema.edges == {**CORE.edges, **wanted.edges}


def test_json_has_every_key_and_the_same_order_whatever_the_files():
    one, two = "entities: {b: , a: }", "entities: {c: }\nedges: {e: {from: a, to: link, kind: true}}"
    schema = load_schema({A: one, B: two})
    shown = schema_json(schema)
    assert list(shown["entities"]) == [*CORE.entities, "a", "b", "c"]
    assert list(shown["edges"]) == [*CORE.edges, "e"]
    assert shown["edges"]["e"] == {
        "description": "",
        "from": ["a"],
        "to": ["link"],
        "acyclic": False,
        "kind": True,
        "impact": "both",
        "origin": B,
    }
    assert shown["entities"]["test"] == {
        "description": "A test that verifies requirements.",
        "required": ["title", "status"],
        "statusDefault": "active",
        "statuses": [],
        "attributes": {
            "kind": {
                "type": "text",
                "required": False,
                "values": ["unit", "integration", "e2e"],
                "keys": [],
                "description": "How much it takes in.",
            }
        },
        "origin": "core",
    }
    shuffled = Schema(dict(reversed(schema.entities.items())), dict(reversed(schema.edges.items())))
    assert list(schema_json(shuffled)["entities"]) == list(shown["entities"])
