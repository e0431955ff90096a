"""An edge that several files state: made once, stated by each, and each takes back only its own word."""

from __future__ import annotations

import pytest

from kbcore.model.graph import Link
from tests.support.repository.places import caches_at
from tests.support.repository.project import Project, document, req

REQ = "docs/requirements/a.md"
TEST = "docs/tests/b.md"


def linked(key: str, links: str) -> str:
    return document(key, title=key, status="open", links=links)


def edges(project: Project) -> list[Link]:
    return sorted(project.view().touching(["R", "T"]), key=lambda link: link.id)


def sources(project: Project) -> list[str]:
    return [statement.src for statement in project.link("R", "verified_by", "T").statements]


def replayed(project: Project) -> list[Link]:
    """Return the edges as the journal alone gives them."""
    fresh = Project(project.root, is_new=False)
    for path in caches_at(project.root).glob("*/view.duckdb"):
        path.unlink()
    try:
        return edges(fresh)
    finally:
        fresh.close()


def test_an_edge_that_another_file_states_is_stated_once_more_and_not_made_again(project: Project) -> None:
    project.sync({REQ: linked("R", "[T]"), TEST: req("T")})
    answer = project.sync({TEST: linked("T", "[R]")})
    assert (answer.outcome.edges.created, answer.outcome.edges.updated) == (0, 1)
    assert sources(project) == [REQ, TEST]
    assert edges(project) == replayed(project)


def test_an_edge_goes_when_the_last_file_that_states_it_stops(project: Project) -> None:
    project.sync({REQ: linked("R", "[T]"), TEST: req("T")})
    project.sync({TEST: linked("T", "[R]")})
    project.sync({REQ: req("R")})
    assert sources(project) == [TEST]
    project.sync({TEST: req("T")})
    assert edges(project) == replayed(project) == []


def test_an_edge_that_a_client_and_an_open_link_mean_is_one(project: Project) -> None:
    project.sync({REQ: linked("R", "[T]")})
    project.apply(
        entities=[{"id": "T", "type": "test", "title": "T", "status": "open"}],
        edges=[{"type": "verified_by", "from": "R", "to": "T", "confidence": 0.5}],
    )
    assert sources(project) == ["", REQ]
    assert project.link("R", "verified_by", "T").fields == {"confidence": 0.5}
    assert edges(project) == replayed(project)


def test_the_first_file_to_state_a_field_counts_and_the_other_one_is_reported(project: Project) -> None:
    files = {REQ: linked("R", "[{target: T, confidence: 0.4}]"), TEST: linked("T", "[{target: R, confidence: 0.9}]")}
    answer = project.sync(files)
    [(path, problem)] = answer.problems
    assert (path, problem.line, problem.code, problem.severity) == (TEST, 5, "contested_field", "warning")
    assert f"{REQ} states `confidence` of the same link as 0.4" in problem.message
    for _ in range(2):
        assert not project.sync(rebuild=True).outcome.applied
    assert project.link("R", "verified_by", "T").fields == {"confidence": 0.4}
    assert project.sync({TEST: linked("T", "[{target: R, confidence: 0.4}]")}).problems == ()


@pytest.mark.parametrize("left", [req("R"), linked("R", "[T]"), None], ids=["no link", "no field", "no file"])
def test_a_field_that_its_file_gives_up_is_what_the_other_file_says(project: Project, left: str | None) -> None:
    project.sync({REQ: linked("R", "[{target: T, confidence: 0.4}]"), TEST: req("T")})
    project.sync({TEST: linked("T", "[{target: R, confidence: 0.9}]")})
    assert project.link("R", "verified_by", "T").fields == {"confidence": 0.4}
    answer = project.sync({REQ: left})
    assert answer.problems == ()
    link = project.view().touching(["T"])[0]
    assert (link.fields, link.owners) == ({"confidence": 0.9}, {"confidence": TEST})
    assert edges(project) == replayed(project)


def test_an_edge_about_an_edge_is_resolved_again_when_a_client_states_what_a_file_gave_up(project: Project) -> None:
    project.sync({REQ: linked("R", "[T]"), TEST: req("T")})
    about = project.link("R", "verified_by", "T").id
    project.write({".kb/schema/doubts.yaml": "edges: {doubts: {from: [req], to: [link]}}\n"})
    project.apply(edges=[{"type": "doubts", "from": "R", "to": about}])
    project.sync({REQ: req("R")})
    assert not next(link for link in edges(project) if link.type == "doubts").is_resolved
    project.apply(edges=[{"type": "verified_by", "from": "R", "to": "T"}])
    assert next(link for link in edges(project) if link.type == "doubts").is_resolved
    assert edges(project) == replayed(project)
