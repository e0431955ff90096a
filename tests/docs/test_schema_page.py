"""The examples on the pages about the schema and the configuration can be used as they are."""

from __future__ import annotations

import re

import pytest

from kbcore.config.json_schema import schema as settings_schema
from kbcore.config.schema_files import load_schema
from kbcore.config.schema_members import ATTRIBUTE_KEYS, ATTRIBUTE_TYPES, IMPACTS
from kbcore.config.settings import DEFAULT, SCHEMA_KEY, parse_config
from kbcore.extract import registry
from kbcore.model.schema import CORE
from tests.support.docs.regenerate_docs import DOCS, fenced
from tests.support.docs.schema_tables import edge_table, type_table


def examples(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def test_the_examples_of_schema_files_load_side_by_side():
    project, more, core = examples("schema.md", "yaml")
    schema = load_schema({"a/project.yaml": project, "a/more.yaml": more, "a/core.yaml": core})
    assert set(schema.entities) - set(CORE.entities) == {"fact", "risk"}
    assert set(schema.edges) - set(CORE.edges) == {"constrains", "threatens", "doubts"}
    assert schema.entities["req"].statuses
    assert not schema.edges["depends_on"].acyclic


@pytest.mark.parametrize("key", [*ATTRIBUTE_KEYS, *ATTRIBUTE_TYPES, *IMPACTS, "impact"])
def test_every_word_about_attributes_and_impact_is_on_the_page(key):
    assert f"`{key}`" in (DOCS / "schema.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("key", sorted(settings_schema()["properties"].keys() - {SCHEMA_KEY}))
def test_every_setting_has_a_row_on_the_page_of_the_configuration(key):
    page = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{key}[`.]", page, re.MULTILINE)


def test_the_examples_of_configuration_files_can_be_used():
    default, changed = (parse_config(text, "x") for text in examples("configuration.md", "json"))
    assert default.lock_wait_s == DEFAULT.lock_wait_s
    for config in (default, changed):
        for name, settings in config.extractors.items():
            assert bool(registry.BUILT_IN[name].path_rules(settings)) == bool(settings["paths"])
    assert changed.switched_off == ("manifest",)


def test_a_fence_closes_on_its_own_line():
    assert fenced("json", "{}\n\n") == "```json\n{}\n```"


def test_tables_have_one_row_for_each_type_and_keep_their_shape():
    text = "entities: {a: {description: 'x | y', attributes: {'p|q': {values: ['1|2']}}}}"
    schema = load_schema({"a/project.yaml": text})
    rows = type_table(schema).splitlines()
    assert len(rows) == 2 + len(CORE.entities) + 1
    assert rows[-1] == "| `a` | x \\| y | `draft` | `p\\|q` (text; one of 1\\|2) |"
    assert len(edge_table(schema).splitlines()) == 2 + len(CORE.edges)
    assert "| `relates_to` | any | any | Any other relationship; its kind says which. | `both` | needs `kind` |" in (
        edge_table(schema)
    )
