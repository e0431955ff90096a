"""A changeset with something that looks like a secret is warned of, or refused where the project wants that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kbcore.errors import InvalidChangeset
from kbcore.model.changeset import parse
from kbcore.model.schema import CORE
from kbcore.model.state import Draft, Stamp, State
from kbcore.store.planning.plan import plan
from kbcore.store.planning.plan_builder import PlanContext
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
STAMP = Stamp(1, "2026-11-20T09:30:00.000000Z", "tester", "cli")


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def planned(level: Any, **request: Any) -> Draft:
    around = PlanContext(CORE, STAMP, gone={}, suggest=lambda _: "", secrets=level)
    return plan(parse(request), State(), around)


EVERYWHERE = {
    "changeset_id": TOKEN,
    "message": f"with {TOKEN}",
    "entities": [
        req("A", title=TOKEN, tags=["x", TOKEN], links=["https://me:Tr0ub4dor@example.org"]),
        req(TOKEN, title="B", attributes={"deep": [{"key": TOKEN}]}, metadata={"client_secret": "kX9-vR2_pL7qW4zN"}),
    ],
    "edges": [{"type": "relates_to", "kind": TOKEN, "from": "A", "to": TOKEN, "metadata": {"why": TOKEN}}],
}
PATHS = [
    "$.changeset_id",
    "$.message",
    "$.entities[0].title",
    "$.entities[0].tags[1]",
    "$.entities[0].links[0]",
    "$.entities[1].id",
    "$.entities[1].attributes.deep[0].key",
    "$.entities[1].metadata.client_secret",
    "$.edges[0].kind",
    "$.edges[0].to",
    "$.edges[0].metadata.why",
]


def test_every_place_is_reported_with_its_path_and_nothing_is_refused() -> None:
    found = planned("warning", **EVERYWHERE)
    assert [warning.split()[0] for warning in found.warnings[:-1]] == PATHS
    assert found.warnings[2] == "$.entities[0].title looks like a GitHub token (ghp_…, 40 characters)."
    assert "revoke it" in found.warnings[-1]
    assert TOKEN[:12] not in " ".join(found.warnings)
    assert len(found.ops) == 3


def test_as_an_error_the_rule_refuses_the_changeset_with_every_place() -> None:
    with pytest.raises(InvalidChangeset) as refused:
        planned("error", **EVERYWHERE)
    assert [(one.path, one.code) for one in refused.value.details] == [(path, "secret") for path in PATHS]
    assert "`secret`" in refused.value.details[0].hint
    assert TOKEN[:12] not in json.dumps(refused.value.as_json())


def test_what_is_wrong_beside_a_secret_is_reported_with_it() -> None:
    with pytest.raises(InvalidChangeset) as refused:
        planned("error", entities=[req("A", title=TOKEN, type="reqq")])
    assert {one.code for one in refused.value.details} == {"unknown_type", "secret"}


def test_the_project_can_turn_it_off() -> None:
    assert planned("off", **EVERYWHERE).warnings == ()


def test_many_secrets_are_counted() -> None:
    found = planned("warning", entities=[req(f"A{number}", title=TOKEN) for number in range(25)])
    assert len(found.warnings) == 21
    assert found.warnings[-1].startswith("So do 5 more places.")


def test_a_write_answers_with_the_warning_and_history_keeps_no_more_of_it_than_the_field(project: Project) -> None:
    answer = project.apply(entities=[req("A", attributes={"note": TOKEN})], changeset_id="once")
    assert answer.applied
    assert answer.warnings[0] == "$.entities[0].attributes.note looks like a GitHub token (ghp_…, 40 characters)."
    [journal] = (stores_at(project.root) / "main").glob("journal-*.jsonl")
    assert journal.read_text().count(TOKEN) == 1
    again = project.apply(entities=[req("A", attributes={"note": TOKEN})], changeset_id="once")
    assert again.duplicate
    assert again.warnings == answer.warnings


def test_the_configuration_of_the_project_decides(project: Project) -> None:
    config = project.root / ".kb/config.json"
    config.write_text('{"rules": {"secret": "error"}}')
    with pytest.raises(InvalidChangeset):
        project.apply(entities=[req("A", title=TOKEN)])
    assert project.seq() == 0
    config.write_text('{"rules": {"secret": "off"}}')
    assert project.apply(entities=[req("A", title=TOKEN)]).warnings == ()
