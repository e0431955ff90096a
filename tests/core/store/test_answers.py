"""The answer of a write: the counts of its answer are those of its record, whoever asks, and whenever."""

from __future__ import annotations

from typing import Any

from kbcore.store.answers import EdgeCounts, Outcome, summarize_at
from kbcore.store.history.log import log
from tests.support.repository.project import Project, req


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id, **fields}


def counts(project: Project, outcome: Outcome) -> tuple[int, int, int]:
    """Return how many edges were made, changed and removed, after making sure that everybody says the same."""
    edges = outcome.edges
    view = project.view()
    assert summarize_at(view, outcome.seq).edges == EdgeCounts(edges.created, edges.updated, 0, edges.deleted)
    assert log(view, limit=1)[0]["summary"]["edges"] == edges.created + edges.updated + edges.deleted
    return edges.created, edges.updated, edges.deleted


def test_an_edge_counts_as_soon_as_it_is_stated_and_settling_is_an_update(project: Project) -> None:
    states = {"docs/requirements/a.md": req("A", depends_on="B")}
    assert counts(project, project.sync(states).outcome) == (1, 0, 0)
    assert counts(project, project.sync({"docs/requirements/b.md": req("B")}).outcome) == (0, 1, 0)
    assert counts(project, project.sync({"docs/requirements/b.md": None}).outcome) == (0, 1, 0)
    assert counts(project, project.sync({"docs/requirements/a.md": req("A")}).outcome) == (0, 0, 1)


def test_an_edge_that_waits_for_its_end_is_deleted_like_any_other(project: Project) -> None:
    project.sync({"docs/requirements/b.md": req("B")})
    assert counts(project, project.apply(entities=[entity("A")], edges=[edge("A", "B")])) == (1, 0, 0)
    project.sync({"docs/requirements/b.md": None})
    outcome = project.delete(edges=[edge("A", "B")])
    assert outcome.applied
    assert counts(project, outcome) == (0, 0, 1)


def test_a_changeset_sent_twice_is_answered_with_the_counts_of_the_first_time(project: Project) -> None:
    request: Any = {"changeset_id": "c", "entities": [entity("A"), entity("B")], "edges": [edge("A", "B")]}
    first, again = project.apply(**request), project.apply(**request)
    assert again.duplicate
    assert first.edges == again.edges == EdgeCounts(created=1)
