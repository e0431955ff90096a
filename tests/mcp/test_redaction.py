"""A server that has a store open follows a redaction by another process, and answers without what was taken out."""

from __future__ import annotations

import pytest

from kbcore.maintenance import redaction
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.store.folders import DATA
from tests.mcp.agents import agent
from tests.support.disk.secrets import files_with
from tests.support.repository.project import AUTHOR, Project

SECRET = "hunter2-Pa$$w0rd"


@pytest.fixture
def leaked(project: Project) -> Project:
    entity = {"id": "REQ-1", "type": "req", "title": f"Use {SECRET}", "status": "open"}
    project.apply(entities=[entity], message=f"as {SECRET}", changeset_id="leak")
    project.apply(entities=[{**entity, "id": "REQ-2", "title": "Plain"}])
    return project


def test_an_open_server_answers_without_the_secret_and_writes_on(leaked: Project) -> None:
    with agent(leaked.root) as found:
        assert SECRET in str(found.call("kb_query", ids=["REQ-1"]))
        assert SECRET in str(found.call("kb_history", action="log"))
        redaction.redact(leaked.workspace(), "main", Wanted("pattern", SECRET), AUTHOR)
        for answer in (
            found.call("kb_query", ids=["REQ-1"]),
            found.call("kb_history", action="log"),
            found.call("kb_history", action="show", seq=1),
            found.call("kb_history", action="diff", seq=1),
            found.call("kb_query", text="hunter2"),
        ):
            assert SECRET not in str(answer)
            assert "went back" not in str(answer)
        assert "[redacted]" in str(found.call("kb_query", ids=["REQ-1"]))
        refused = found.refused("kb_history", action="revert", seq=1)
        assert refused["code"] == "redacted"
        again = {"id": "REQ-1", "type": "req", "title": f"Use {SECRET}", "status": "open"}
        refused = found.refused("kb_upsert", entities=[again], message=f"as {SECRET}", changeset_id="leak")
        assert refused["code"] in {"redacted", "changeset_id_reused"}
        assert found.call("kb_upsert", entities=[{**again, "title": "New"}])["applied"]
    assert files_with(SECRET, leaked.root / ".git" / DATA) == []
