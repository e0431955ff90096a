"""A delete removes what was read: an edge that changed since stays."""

from __future__ import annotations

import pytest

from kbcore.errors import StaleBase
from tests.support.repository.project import Project


def test_an_edge_is_deleted_only_at_the_version_that_was_read(project: Project) -> None:
    entities = [{"id": key, "type": "req", "title": key, "status": "open"} for key in ("A", "B")]
    edge = {"type": "depends_on", "from": "A", "to": "B"}
    project.apply(entities=entities, edges=[edge])
    project.apply(edges=[{**edge, "confidence": 0.5}])
    with pytest.raises(StaleBase, match="is at version 2, not 1"):
        project.delete(edges=[{**edge, "expected_version": 1}])
    assert project.delete(edges=[{**edge, "expected_version": 2}]).edges.deleted == 1
